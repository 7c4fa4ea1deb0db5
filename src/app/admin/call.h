/* call.h -- what the handlers of admins have in common. */
#ifndef APP_ADMIN_CALL_H
#define APP_ADMIN_CALL_H

#include "engine/api/api.h"

#define ADMIN_LIMIT_DEFAULT 50
#define ADMIN_LIMIT_MAX     200
#define ADMIN_CURSOR_MAX    64

/* What stands in the braces of rows of tables of fields. */
#define ADMIN_REASON_FIELD                                                                         \
    "reason", API_TEXT, .optional = true, .least = 1, .most = ADMIN_AUDIT_TEXT_CHARS,              \
                        .about = "for the audit log"
#define ADMIN_LIMIT_FIELD                                                                          \
    "limit", API_INT, .optional = true, .least = 1, .most = ADMIN_LIMIT_MAX,                       \
                      .about = "on a page; 50 if absent"
#define ADMIN_CURSOR_FIELD                                                                         \
    "cursor", API_TEXT, .optional = true, .least = 1, .most = ADMIN_CURSOR_MAX,                    \
                        .about = "next of the page before"
#define ADMIN_NEXT_FIELD                                                                           \
    "next", API_TEXT, .optional = true, .most = ADMIN_CURSOR_MAX,                                  \
                      .about = "cursor of the next page; null: none"

#define ADMIN_KEY_STATE_ABOUT                                                                      \
    "refused: by the AI service; off: by an admin; capped: a cap is used up; resting: after a 429"

/* A number in the path, from 1 to INT32_MAX. ERR_NOT_FOUND: "there is no <what> <text>". */
MUST_CHECK int admin_path_number(struct task *t, const struct api_call *c, const char *name,
                                 const char *what, int64_t *out);
/* The ":uid" of the path. ERR_NOT_FOUND: there is no such user. */
MUST_CHECK int admin_path_user(struct task *t, const struct api_call *c, int64_t *uid);
/* Of the member "password" of the body. */
MUST_CHECK int admin_hash(struct task *t, struct api_call *c, struct str *hash);
int64_t admin_limit(const struct api_call *c);
/* A cursor that is one number; *out stays as it is if none was sent. */
MUST_CHECK int admin_cursor(struct task *t, struct api_call *c, int64_t *out);
MUST_CHECK int admin_cursor_refused(struct task *t, struct api_call *c);

/* The deed of the call, with the reason that was sent. */
struct admin_deed admin_deed_of(const struct api_call *c);
#endif
