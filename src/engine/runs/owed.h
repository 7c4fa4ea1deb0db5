/* owed.h -- pause and terminate while MySQL is away (BIL-8): in Redis at once, in the row later.
 *
 * Owns sys:owed, and `owed` of query:<uid>:<qid>:status: a note of what the row is owed, "PAUSED
 * <token>" or "CANCELLED <token>". The run is announced in sys:owed before it is noted, so that a
 * note is always found. Until the row has followed, the note wins: run_tell.lua writes no other
 * state over it, unless the run has ended, and views show the state that Redis has.
 *
 * A note is settled by the keeper, or by the next event of the run if that is earlier: in a
 * transaction that holds the lock of the row, if the note is still the same, the row gets the
 * state; then Redis is told, and the note goes. So of a note and a resume that meet, the later one
 * holds. Notes are as durable as Redis: one that is lost with it is forgotten. */
#ifndef ENGINE_RUNS_OWED_H
#define ENGINE_RUNS_OWED_H

#include "engine/runs/run.h"

/* Pause or terminate by the run's user. *degraded: one of the stores does not know it yet. Errors
 * as run_control; ERR_UNAVAILABLE: MySQL does not answer, and Redis does not have the run. */
MUST_CHECK int run_halt(struct task *t, const struct runs *r, struct run_id id, enum run_event e,
                        enum run_state *state, bool *degraded);

/* Of one run; 0 also if there is no note. */
MUST_CHECK int run_settle(struct task *t, const struct runs *r, struct run_id id);
/* Of all runs. */
MUST_CHECK int run_settle_all(struct task *t, const struct runs *r);

/* p == NULL: there is none. */
MUST_CHECK int run_owed(struct task *t, struct redis *r, struct run_id id, struct str *note);
/* What it stands for: RUN_PAUSE or RUN_TERMINATE. */
enum run_event run_owed_event(struct str note);
/* Drops it, if it is still the same. */
MUST_CHECK int run_owed_drop(struct task *t, struct redis *r, struct run_id id, struct str note);
#endif
