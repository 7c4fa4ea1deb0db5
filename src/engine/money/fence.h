/* fence.h -- the generation of Redis that MySQL takes records and results of: a fencing token.
 *
 * MySQL holds one (setting ledger.redis_run). A transaction that writes what was read from Redis
 * locks that row and writes only if the generation is still the same: what was read from a Redis
 * that has died since cannot reach MySQL after the repair. The proof is in fence.c. */
#ifndef ENGINE_MONEY_FENCE_H
#define ENGINE_MONEY_FENCE_H

#include "engine/money/ledger.h"
#include "engine/store/generation.h"

/* Writes the current generation of Redis to MySQL. */
MUST_CHECK int ledger_fence(struct task *t, struct ledger *l, struct generation *out);
/* In a transaction: is this the generation in MySQL? The answer holds until the transaction
 * ends. */
MUST_CHECK int ledger_fence_holds(struct task *t, struct sql *c, const struct generation *g,
                                  bool *holds);
#endif
