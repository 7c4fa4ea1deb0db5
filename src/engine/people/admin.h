/* admin.h -- accounts that may run millrace; those of users (user.h) are apart.
 *
 * Owns table admin_info and admin:<uid>:info, which lacks the password. Names are as those of
 * users, and unique among admins. Always true: once there is a super admin there always is one. To
 * remove or demote one, all admins are locked, so that two cannot remove each other. */
#ifndef ENGINE_PEOPLE_ADMIN_H
#define ENGINE_PEOPLE_ADMIN_H

#include "engine/people/admin_log.h"
#include "engine/store/cache.h"

#define ADMINS_MAX 1000

struct admin {
    int64_t uid;
    struct str username;
    struct str password; /* its hash; admin_find only */
    bool super;          /* may add, change and remove admins */
    int64_t version;
    int64_t created_ms; /* admin_list only */
    bool degraded;      /* from MySQL, because Redis does not answer */
};

const char *admin_role(bool super); /* "super", "admin" */

/* By id, from Redis or MySQL. ERR_NOT_FOUND. */
MUST_CHECK int admin_get(struct task *t, struct cache *c, int64_t uid, struct admin *out);
/* By name, as it was given or in another case; from MySQL. ERR_NOT_FOUND. */
MUST_CHECK int admin_find(struct task *t, struct sql_pool *sql, struct str name, struct admin *out);
/* All of them, by number, in the task's arena. */
MUST_CHECK int admin_list(struct task *t, struct sql_pool *sql, struct admin **out, size_t *count);

/* Each of these is noted with `by` in the same transaction; target, before and after are filled in.
 * After ERR_UNCERTAIN it may have been done. */

/* ERR_EXISTS: the name is taken. ERR_CONFLICT: there are ADMINS_MAX. ERR_INVALID: no name. */
MUST_CHECK int admin_create(struct task *t, struct sql_pool *sql, struct str name, struct str hash,
                            bool super, const struct admin_deed *by, int64_t *uid);
/* As part of a transaction of the caller's; ERR_FORBIDDEN: there are ADMINS_MAX. */
struct admin_new {
    struct str username, password_hash;
    bool super;
    const struct admin_deed *by;
};
MUST_CHECK int admin_create_on(struct task *t, struct sql *c, const struct admin_new *n,
                               int64_t *uid);
/* Their sessions end everywhere. ERR_NOT_FOUND. ERR_CONFLICT: the last super admin. */
MUST_CHECK int admin_remove(struct task *t, struct cache *c, int64_t uid,
                            const struct admin_deed *by);
/* Effective with the next request. ERR_NOT_FOUND. ERR_CONFLICT: the last super admin. */
MUST_CHECK int admin_set_role(struct task *t, struct cache *c, int64_t uid, bool super,
                              const struct admin_deed *by);
/* All sessions end, but for one (p == NULL: none is kept). ERR_NOT_FOUND. */
MUST_CHECK int admin_set_password(struct task *t, struct cache *c, int64_t uid, struct str hash,
                                  struct str but_sid, const struct admin_deed *by);
/* As part of a transaction of the caller's; sessions stay. Redis is told within a second of its
 * end. *version: of the admin afterwards. */
MUST_CHECK int admin_set_password_on(struct task *t, struct sql *c, int64_t uid, struct str hash,
                                     const struct admin_deed *by, int64_t *version);
#endif
