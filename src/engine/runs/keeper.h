/* keeper.h -- looks after runs, so that none needs a hand.
 *
 * A row of query_log says what was promised; Redis may not have heard of it, or may have forgotten it. In
 * rounds over all rows that are not archived, final ones too:
 *   - what Redis does not know it is told (SYS-6);
 *   - a run that Redis has finished, and whose worker died before it could say so, is DONE in its row;
 *   - a run that is DONE in its row, but not in Redis, because that came back older than it was, goes on:
 *     the papers it lacks are judged again, and their charges were reversed (BIL-4);
 *   - a run that should have workers, but waits for none and has none, waits again.
 * And a run that was paused for seven days is terminated (PAU-4). */
#ifndef ENGINE_RUNS_KEEPER_H
#define ENGINE_RUNS_KEEPER_H

#include "engine/runs/run.h"
#include "engine/store/role.h"

#define KEEPER_PAUSED_MS_MAX (7LL * 24 * 3600 * 1000)

/* One round. *mended: runs that were not as they should be. */
MUST_CHECK int run_reconcile(struct task *t, const struct runs *r, int64_t *mended);
/* Terminates runs that were paused for too long, and pauses those of users who are banned. *changed: how many. */
MUST_CHECK int run_sweep(struct task *t, const struct runs *r, int64_t *changed);

/* Both, one node at a time. arg: a struct runs. */
role_fn keeper_role;
#endif
