/* reserve.h -- what of a user's balance is promised to works that are not finished (SCR-1).
 *
 * reserved is the sum over the user's runs that are QUEUED, RUNNING or PAUSED of what each may
 * still cost: its ceiling, frozen when it was submitted, less its cost so far; and of what jobs
 * that are not finished will cost (table job_reserve). free is the balance less that. A charge
 * lowers balance and reserved alike, so free stays what it is while runs work;
 * it grows when a run ends below its ceiling, or by a recharge.
 *
 * Nothing is kept: the list of works is read from MySQL, the costs from Redis together with the
 * balance (ledger_spendable). A job is paid before its row leaves job_reserve: for that moment
 * free is too small, never too large. */
#ifndef ENGINE_RUNS_RESERVE_H
#define ENGINE_RUNS_RESERVE_H

#include "engine/runs/run.h"

struct reserve {
    int64_t balance;
    bool known; /* reserved and free */
    int64_t reserved, free;
    bool degraded; /* a store does not answer: from MySQL, charges of the last seconds may be
                    * missing, and the costs so far are not known; or the works are not known */
};
/* To be shown. The list of works may be RESERVE_SEEN_MS old where a run was submitted or ended at
 * the same moment. Errors as those of ledger_balance. */
#define RESERVE_SEEN_MS 2000
MUST_CHECK int reserve_look(struct task *t, const struct runs *r, int64_t uid, struct reserve *out);

/* To be relied on: in a transaction that has locked the user's row, so that no two submissions
 * spend the same money. Redis has a second to answer. *loaded false: the balance has left Redis;
 * end the transaction and load it, which locks the same row. ERR_FUNDS: cents are not free, with a
 * sentence for the user about what ("run"). ERR_UNAVAILABLE: Redis does not answer. */
MUST_CHECK int reserve_check(struct task *t, const struct runs *r, struct sql *c, int64_t uid,
                             int64_t cents, const char *what, bool *loaded);

#define RESERVE_LOADS_MAX 5 /* of a balance that leaves Redis before it is looked at */
/* The same before a run that is DONE tries its failed papers again: what they cost at most. */
struct run_row;
MUST_CHECK int run_reserve_retry(struct task *t, const struct runs *r, struct sql *c,
                                 const struct run_row *row, bool *loaded);

/* "the balance is 60.00, 30.00 of it reserved for unfinished work, 30.00 free": a clause of a
 * sentence, in the task's arena. */
const char *reserve_text(struct task *t, const struct reserve *r);
#endif
