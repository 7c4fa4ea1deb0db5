/* fence.h -- the generation of Redis that MySQL takes records and results of: a fencing token.
 *
 * MySQL holds one (setting ledger.redis_run). A transaction that writes what was read from Redis
 * locks that row and writes only if the generation is still the same: what was read from a Redis
 * that has died since cannot come to MySQL behind the repair's back. The proof is in fence.c. */
#ifndef ENGINE_MONEY_FENCE_H
#define ENGINE_MONEY_FENCE_H

#include "engine/money/ledger.h"
#include "engine/store/generation.h"

/* Brings the generation that Redis has now to MySQL. */
MUST_CHECK int ledger_fence(struct task *t, struct ledger *l, struct generation *out);
/* In a transaction: is it this one? It stays so until the transaction ends. */
MUST_CHECK int ledger_fence_holds(struct task *t, struct sql *c, const struct generation *g,
                                  bool *holds);
#endif
