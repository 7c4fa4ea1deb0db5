/* user.h -- accounts that may use millrace.
 *
 * Owns table user_info but for its money, and user:<uid>:info. Names are unique after NFKC and case
 * folding. A change is in MySQL before Redis or a client is told. */
#ifndef ENGINE_PEOPLE_USER_H
#define ENGINE_PEOPLE_USER_H

#include "engine/people/admin_log.h"
#include "engine/people/password.h"
#include "engine/store/cache.h"

#define USER_NAME_CHARS_MIN     3
#define USER_NAME_CHARS_MAX     32
#define USER_PASSWORD_BYTES_MIN 8
#define USER_PASSWORD_BYTES_MAX PASSWORD_BYTES_MAX

struct user {
    int64_t uid;
    struct str username;
    struct str password; /* its hash */
    int64_t permission;  /* workers at the same time, over all runs; 0: may not submit */
    bool banned;
    int64_t version;
    bool degraded; /* from MySQL, because Redis does not answer */
};

/* What is wrong with a name or password, as a text for the user; NULL: nothing. */
const char *user_name_problem(struct str name);
const char *user_password_problem(struct str password);
/* The form that must be unique. The name must be fine. */
struct str user_name_folded(struct arena *a, struct str name);
/* The form that folded names begin with when a name begins so. False: none does. */
bool user_name_prefix(struct arena *a, struct str begin, struct str *out);
/* A user or an admin has this name, or one that looks like it: in another case, with letters of
 * other scripts. For names that strangers choose. */
MUST_CHECK int user_name_taken(struct task *t, struct sql_pool *sql, struct str name, bool *taken);

/* By id, from Redis or MySQL. ERR_NOT_FOUND. */
MUST_CHECK int user_get(struct task *t, struct cache *c, int64_t uid, struct user *out);
/* By name, as it was registered or in another case; from MySQL. ERR_NOT_FOUND. */
MUST_CHECK int user_find(struct task *t, struct sql_pool *sql, struct str name, struct user *out);

struct user_new {
    struct str username, password_hash;
    int64_t permission;
    int64_t opening_cents;       /* the first row of billing_log, if not 0 */
    const struct admin_deed *by; /* noted in the same transaction; NULL: the user's own */
};
/* ERR_EXISTS: the name is taken. */
MUST_CHECK int user_create(struct task *t, struct sql_pool *sql, const struct user_new *n,
                           int64_t *uid);
/* As part of a transaction of the caller's. */
MUST_CHECK int user_create_on(struct task *t, struct sql *c, const struct user_new *n,
                              int64_t *uid);

/* Sets one thing in MySQL, with version + 1, then tells Redis. ERR_NOT_FOUND. by: noted in the same
 * transaction, with user_uid, before and after filled in; NULL: not noted. */
enum user_part { USER_PERMISSION, USER_BANNED, USER_PASSWORD };
struct user_change {
    int64_t uid;
    enum user_part part;
    int64_t number;  /* the permission; 1 or 0 for banned */
    struct str hash; /* of the password */
    const struct admin_deed *by;
};
MUST_CHECK int user_change(struct task *t, struct cache *c, const struct user_change *ch);
/* As part of a transaction of the caller's. Redis hears of it within a second of the end of that.
 * *version: of the user afterwards. */
MUST_CHECK int user_change_on(struct task *t, struct sql *c, const struct user_change *ch,
                              int64_t *version);
#endif
