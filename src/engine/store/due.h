/* due.h -- sorted sets of times: a member is announced with a time before there is something to do
 * about it, and taken out once nothing is left, unless it was announced again meanwhile. */
#ifndef ENGINE_STORE_DUE_H
#define ENGINE_STORE_DUE_H

#include "wire/redis.h"

/* latest_ms: the latest time that it may have. *dropped: 1, or 0: it was announced again, or was
 * not there. Idempotent. */
MUST_CHECK int due_drop(struct task *t, struct redis *r, struct str times, struct str member,
                        int64_t latest_ms, int64_t *dropped);
#endif
