/* session_private.h -- what the files of sessions share. */
#ifndef ENGINE_PEOPLE_SESSION_PRIVATE_H
#define ENGINE_PEOPLE_SESSION_PRIVATE_H

#include "engine/people/session.h"

/* What differs between users, admins and API tokens. */
struct session_home {
    const struct cache_owner *owner;
    struct record_kind record;
    int64_t ttl_ms;    /* in Redis */
    const char *where; /* which row counts, given its sid and a time in ms since 1970 */
    int64_t idle_ms;   /* how long that time is before now */
    /* A row that was read before a change of its owner is not put into Redis after it, so that one
     * that a ban suspends is dead at once, and lives again with the end of the ban. */
    bool fenced;
};
const struct session_home *session_home(enum session_kind kind);

/* By its sid, from Redis or MySQL. ERR_UNAUTHENTICATED: there is none. *from_row: from MySQL. */
MUST_CHECK int session_load(struct task *t, struct cache *c, const struct session_home *h,
                            struct str sid, struct session *out, bool *from_row);
/* After the transaction that has ended some of an owner and marked it stale: tells Redis. Best
 * effort, cache_role does the rest. */
void session_tell(struct task *t, struct cache *c, const struct session_home *h, int64_t uid,
                  size_t count, const struct str *sids);
/* Redis may have something of an owner that MySQL has not: all of it is dropped there. */
MUST_CHECK int session_doubt(struct task *t, struct cache *c, const struct session_home *h,
                             int64_t uid);
/* What MySQL cannot hold: at most so many bytes, in whole characters; what is no text becomes
 * '?'. */
struct str session_clean(struct arena *a, struct str s, size_t bytes_max);

/* Ends those of an owner beyond SESSIONS_PER_USER_MAX, but never the one named. */
MUST_CHECK int session_end_surplus(struct task *t, struct cache *c, const struct session_home *h,
                                   int64_t uid, struct str but_sid);
#endif
