/* lock.h -- one holder at a time over all nodes: a lease, kept as a key in Redis with a token.
 *
 * A lock saves work, it does not guard data: its holder may stall until it has expired. So whatever
 * is written under a lock is written by a script that compares the token once more (a fencing
 * token). */
#ifndef ENGINE_STORE_LOCK_H
#define ENGINE_STORE_LOCK_H

#include "wire/redis.h"

#define LOCK_TOKEN_BYTES 33

struct lock {
    struct redis *redis;
    struct str key;
    char token[LOCK_TOKEN_BYTES]; /* random: tells this holder from all others; with a NUL */
};

/* Takes it for ms. key must live as long as the lock. ERR_BUSY: another holder has it. */
MUST_CHECK int lock_take(struct task *t, struct redis *r, struct str key, int64_t ms,
                         struct lock *out);
/* Renews the lease: ms from now. ERR_CONFLICT: it has expired and may have another holder. */
MUST_CHECK int lock_keep(struct task *t, const struct lock *l, int64_t ms);
/* Releases it. False: Redis has not answered; the lock expires by itself, or its holder may go on
 * with lock_keep. Idempotent; the task's error text stays. */
bool lock_drop(struct task *t, const struct lock *l);
static inline struct str lock_token(const struct lock *l)
{
    return str_of(l->token);
}
#endif
