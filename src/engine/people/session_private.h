/* session_private.h -- what the files of sessions share. */
#ifndef ENGINE_PEOPLE_SESSION_PRIVATE_H
#define ENGINE_PEOPLE_SESSION_PRIVATE_H

#include "engine/people/session.h"

/* What differs between users and admins. */
struct session_home {
    const struct cache_owner *owner;
    struct record_kind record;
    int64_t ttl_ms;
};
const struct session_home *session_home(enum session_kind kind);

/* As session_end. */
MUST_CHECK int session_end_at(struct task *t, struct cache *c, const struct session_home *h,
                              int64_t uid, struct str sid, const struct admin_deed *by);
/* Ends those of an owner beyond SESSIONS_PER_USER_MAX, but never the one named. */
MUST_CHECK int session_end_surplus(struct task *t, struct cache *c, const struct session_home *h,
                                   int64_t uid, struct str but_sid);
#endif
