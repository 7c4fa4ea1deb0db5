/* live.h -- progress of runs from Redis, which is newer than the row until a run is archived. */
#ifndef ENGINE_RUNS_LIVE_H
#define ENGINE_RUNS_LIVE_H

#include "engine/runs/row.h"

/* Brings those of the rows that are not archived up to date, in one round trip. Unchanged after an
 * error. */
MUST_CHECK int run_live(struct task *t, struct redis *r, struct run_row *rows, size_t count);
#endif
