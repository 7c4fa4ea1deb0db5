/* keeper.h -- the reconciler of runs: makes Redis and query_log agree, without an operator.
 *
 * query_log is the source of truth; a version of a row may not have reached Redis, or Redis may
 * have lost it. In rounds over all rows that are not archived, final ones too:
 *   - a row whose version Redis lacks is written to Redis again (SYS-6);
 *   - a run that is DONE in Redis, but whose worker died before it wrote the row, becomes DONE in
 *     its row;
 *   - a run that is DONE in its row but not in Redis, because Redis came back older, is reopened:
 *     results that MySQL has are put back, and only papers that it lacks are judged (BIL-7);
 *   - a run that should have workers, but is neither queued nor running, is queued again;
 *   - a run that was paused or terminated while MySQL was away is so in its row (owed.h).
 * And a run that was paused for seven days is terminated (PAU-4). */
#ifndef ENGINE_RUNS_KEEPER_H
#define ENGINE_RUNS_KEEPER_H

#include "engine/runs/run.h"
#include "engine/store/role.h"

#define KEEPER_PAUSED_MS_MAX (7LL * 24 * 3600 * 1000)

/* One round. *mended: runs that differed. */
MUST_CHECK int run_reconcile(struct task *t, const struct runs *r, int64_t *mended);
/* Terminates runs that were paused for too long, and pauses those of users who are banned.
 * *changed: how many. */
MUST_CHECK int run_sweep(struct task *t, const struct runs *r, int64_t *changed);

/* Both, one node at a time. arg: a struct runs. */
role_fn keeper_role;
#endif
