/* lock.h -- one at a time over all nodes: a key in Redis that holds a token for a while.
 *
 * A lock saves work, it does not guard data: its holder may stall until it has expired. So whatever
 * is written under a lock is written by a script that looks at the token once more. */
#ifndef ENGINE_STORE_LOCK_H
#define ENGINE_STORE_LOCK_H

#include "wire/redis.h"

#define LOCK_TOKEN_BYTES 33

struct lock {
    struct redis *redis;
    struct str key;
    char token[LOCK_TOKEN_BYTES]; /* random: tells this holder from all others; with a NUL */
};

/* Takes it for ms. key must live as long as the lock. ERR_BUSY: somebody else has it. */
MUST_CHECK int lock_take(struct task *t, struct redis *r, struct str key, int64_t ms,
                         struct lock *out);
/* Makes it last ms from now. ERR_CONFLICT: it has expired and may be somebody else's. */
MUST_CHECK int lock_keep(struct task *t, const struct lock *l, int64_t ms);
/* Lets go. If that cannot be done now, it ends by itself. */
void lock_drop(struct task *t, const struct lock *l);
static inline struct str lock_token(const struct lock *l)
{
    return str_of(l->token);
}
#endif
