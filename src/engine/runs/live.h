/* live.h -- rows of query_log as Redis has them: progress, which is newer than the row until a run
 * is archived; and while MySQL does not answer, the rest of the row, too (BIL-8).
 *
 * run_tell.lua leaves what a view needs with every version of a row, in query:<uid>:<qid>:info and
 * :status; there it stays until seven days after the run was archived. Only keys with the user's
 * own prefix are read (ISO-1). */
#ifndef ENGINE_RUNS_LIVE_H
#define ENGINE_RUNS_LIVE_H

#include "engine/runs/row.h"

/* Brings those of the rows that are not archived up to date, in one round trip. Unchanged after an
 * error. */
MUST_CHECK int run_live(struct task *t, struct redis *r, struct run_row *rows, size_t count);

/* ERR_NOT_FOUND: the user's history is whole, and does not have the run. ERR_UNAVAILABLE: Redis
 * does not have it, or not any more, which means nothing. archived is not known, and false. */
MUST_CHECK int run_row_away(struct task *t, struct redis *r, struct run_id id, struct run_row *out);
/* Those of the runs that Redis has, in their order; *count: how many. */
MUST_CHECK int run_rows_away(struct task *t, struct redis *r, int64_t uid, const struct str *qids,
                             size_t qid_count, struct run_row *out, size_t *count);
#endif
