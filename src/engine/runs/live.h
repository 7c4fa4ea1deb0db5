/* live.h -- how far runs are, as Redis knows it: until a run is archived, it knows better than the row. */
#ifndef ENGINE_RUNS_LIVE_H
#define ENGINE_RUNS_LIVE_H

#include "engine/runs/row.h"

/* Brings those of the rows that are not archived up to date, in one round trip. After an error they are as before. */
MUST_CHECK int run_live(struct task *t, struct redis *r, struct run_row *rows, size_t count);
#endif
