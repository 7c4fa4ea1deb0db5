/* session_private.h -- what the files of sessions share. */
#ifndef ENGINE_PEOPLE_SESSION_PRIVATE_H
#define ENGINE_PEOPLE_SESSION_PRIVATE_H

#include "engine/people/session.h"

/* What differs between users and admins. */
struct session_home {
    struct str kind; /* in MySQL */
    const char *one; /* SELECT of a session: sid, last used after */
    const char *all; /* SELECT of an owner's: uid, last used after */
    int64_t ttl_ms;
    struct str (*key)(struct arena *a, struct str sid);
    struct str (*set)(struct arena *a, int64_t uid);
    int (*mark_stale)(struct task *t, struct sql *c, int64_t uid);
    int (*settle)(struct task *t, struct cache *c, int64_t uid);
};
const struct session_home *session_home(enum session_kind kind);

/* A task that can go on though a store has failed. */
static inline bool session_goes_on(struct task *t)
{
    return !task_canceled(t) && task_time_left_ms(t) > 0;
}

bool session_is_name(struct str s); /* 64 hexadecimal digits: a token or a sid */

/* As session_end. */
MUST_CHECK int session_end_at(struct task *t, struct cache *c, const struct session_home *h,
                              int64_t uid, struct str sid);
/* Ends those of an owner beyond SESSIONS_PER_USER_MAX, but never the one named. */
MUST_CHECK int session_end_surplus(struct task *t, struct cache *c, const struct session_home *h,
                                   int64_t uid, struct str but_sid);
#endif
