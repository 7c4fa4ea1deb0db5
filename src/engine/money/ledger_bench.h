/* ledger_bench.h -- a ledger for benches without MySQL: charge.c is real, loading a balance is
 * not. */
#ifndef ENGINE_MONEY_LEDGER_BENCH_H
#define ENGINE_MONEY_LEDGER_BENCH_H

#include "engine/money/ledger.h"

/* Borrows its arguments. free() frees it. */
struct ledger *ledger_bench_new(struct redis *r, struct cache *c);

/* Defined by the bench: writes the balance to Redis, marked with this generation. */
MUST_CHECK int ledger_bench_load(struct task *t, struct redis *r, struct cache *c, int64_t uid,
                                 int64_t *cents);
#endif
