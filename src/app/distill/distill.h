/* distill.h -- a run over the relevant papers of another one, for a tenth of their price
 * (DIS-1..3).
 *
 * Its papers are frozen when it is submitted (engine/chosen/frozen.h), from search_result of a run
 * that has ended and is archived. So they stay the same whatever happens to that run.
 *
 * Prices are frozen in search_params, as those of any run: a distillation copies them from the run
 * that it distils, so that a paper costs the same at every level. */
#ifndef APP_DISTILL_DISTILL_H
#define APP_DISTILL_DISTILL_H

#include "engine/runs/run.h"

#define DISTILL_KIND  "distill"
#define DISTILL_CENTS 10 /* of a point: a tenth */

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
#endif
