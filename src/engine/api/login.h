/* login.h -- logging in, as users and admins do it: guesses are counted, sessions begin and are
 * listed. What differs is whose table the password is in. */
#ifndef ENGINE_API_LOGIN_H
#define ENGINE_API_LOGIN_H

#include "engine/api/api.h"
#include "engine/people/attempts.h"

extern const struct api_field api_login_body[];     /* username, password */
extern const struct api_field api_login_reply[];    /* uid, username, token */
extern const struct api_field api_password_body[];  /* old_password, new_password */
extern const struct api_field api_sessions_reply[]; /* sessions */

/* Counts a guess at the password of that name, before it is looked at. ERR_RATE: too many. *who is for
 * attempts_forgive when it was right. */
MUST_CHECK int api_attempt(struct task *t, struct api_call *c, enum session_kind kind,
                           struct str name, struct attempt *who);

/* Counts a registration for its address, before the password is hashed. ERR_RATE: too many. */
MUST_CHECK int api_attempt_register(struct task *t, struct api_call *c, struct attempt *who);

struct api_visitor {
    enum session_kind kind;
    int64_t uid;
    struct str username;
    char token[SESSION_TOKEN_BYTES];
};
/* Begins a session. Whoever was banned or got another password while the old one was looked at may
 * have missed the end of all sessions: so the caller looks once more, and then either welcomes the visitor,
 * which sets the cookie and writes api_login_reply, or turns the session away. */
MUST_CHECK int api_session_begin(struct task *t, struct api_call *c, struct api_visitor *v);
void api_session_welcome(struct api_call *c, struct json_writer *w, const struct api_visitor *v);
MUST_CHECK int api_session_turn_away(struct task *t, struct api_call *c,
                                     const struct api_visitor *v);

/* Handlers of those who are logged in. */
MUST_CHECK int api_session_leave(struct task *t, struct api_call *c, enum session_kind kind,
                                 const struct admin_deed *by); /* NULL: not noted */
MUST_CHECK int api_session_list(struct task *t, struct api_call *c, struct json_writer *w,
                                enum session_kind kind);
#endif
