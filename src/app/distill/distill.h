/* distill.h -- a run over the relevant papers of another one, for a tenth of their price
 * (DIS-1..3).
 *
 * Its papers are frozen when it is submitted: in distill_paper, in the transaction that writes its
 * row, from search_result of a run that has ended and is archived. So they stay the same whatever
 * happens to that run, or to Redis. A unit is a chunk of them: a hundred, or fewer, so that each of
 * the user's workers has one. A chunk in Redis is a copy that may expire any time.
 *
 * Prices are frozen in search_params, as those of any run: a distillation copies them from the run
 * that it distils, so that a paper costs the same at every level. */
#ifndef APP_DISTILL_DISTILL_H
#define APP_DISTILL_DISTILL_H

#include "engine/crew/application.h"
#include "engine/runs/run.h"

#define DISTILL_KIND         "distill"
#define DISTILL_CHUNK_PAPERS 100
#define DISTILL_CENTS        10 /* of a point: a tenth */
#define DISTILL_CHUNK_TTL_MS (7LL * 24 * 3600 * 1000)

struct distill_estimate {
    int64_t papers, cents;
    size_t journal_count;
    struct catalog_estimate_row *journals;
    int64_t changed_ms; /* version of the original's row that was counted */
};
/* What distilling a run would cost. ERR_NOT_FOUND: the user has no such run. ERR_CONFLICT: it has
 * not ended, or is not archived yet. */
MUST_CHECK int distill_estimate(struct task *t, const struct runs *r, struct run_id original,
                                struct distill_estimate *out);
/* request_id: as that of run_submit. ERR_CONFLICT: also if none of its papers is relevant. Else as
 * run_enter. */
MUST_CHECK int distill_submit(struct task *t, const struct runs *r, struct run_id original,
                              struct str question, struct str request_id, char qid[RUN_ID_BYTES]);

/* --- chunks --- */

/* Their names, which are those of the run's units. ERR_INVALID: the run is no distillation. */
MUST_CHECK int distill_chunks(struct task *t, const struct app_run *run, struct str **names,
                              size_t *count);
/* The papers of one: from Redis, else from MySQL, which fills Redis again. */
MUST_CHECK int distill_chunk_read(struct task *t, struct redis *redis, struct sql_pool *sql,
                                  const struct app_run *run, struct str name,
                                  struct app_paper **papers, size_t *count);
#endif
