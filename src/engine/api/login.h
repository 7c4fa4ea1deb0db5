/* login.h -- logging in, for users and admins alike: guesses are counted, sessions begin, are
 * listed and end. */
#ifndef ENGINE_API_LOGIN_H
#define ENGINE_API_LOGIN_H

#include "engine/api/api.h"
#include "engine/people/attempts.h"

extern const struct api_field api_login_body[];     /* username, password */
extern const struct api_field api_login_reply[];    /* uid, username, token */
extern const struct api_field api_password_body[];  /* old_password, new_password */
extern const struct api_field api_sessions_reply[]; /* sessions */

/* A user or an admin, as its table in MySQL has it. */
struct api_account {
    int64_t uid;
    struct str username;
    struct str password; /* its hash */
    bool banned;         /* of users */
    bool super;          /* of admins */
};

/* Counts a registration for its address, before the password is hashed. ERR_RATE: too many. */
MUST_CHECK int api_attempt_register(struct task *t, struct api_call *c, struct attempt *who);

/* A handler of api_login_body: begins a session, sets its cookie and writes api_login_reply.
 * Log-ins of admins are noted, and wrong guesses at the password of one. ERR_RATE: too many
 * guesses. */
MUST_CHECK int api_log_in(struct task *t, struct api_call *c, enum session_kind kind,
                          struct json_writer *w, struct api_account *out);
/* For a handler of api_password_body: the account that calls, if the old password is right, and the
 * hash of the new one. */
MUST_CHECK int api_new_password(struct task *t, struct api_call *c, struct api_account *out,
                                struct str *hash);

/* For accounts that are logged in: of users or of admins, as the access of the route says. An end
 * is noted where the route has a name for it. */
api_handler api_session_list;
api_handler api_session_leave;
api_handler api_session_end; /* of the session ":sid" of the path */
#endif
