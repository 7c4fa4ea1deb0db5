/* nearest.h -- screenings of the papers that are nearest to a text, instead of whole journals
 * (EMB-5).
 *
 * The list (engine/search/neighbours.h) is made when the run is submitted, and its papers are
 * frozen with it (engine/chosen/frozen.h): the index goes on, the run does not follow. A list from
 * which papers may be missing is not frozen; the submission is refused with the reason. */
#ifndef APP_SCREEN_NEAREST_H
#define APP_SCREEN_NEAREST_H

#include "engine/runs/run.h"
#include "engine/search/neighbours.h"

#define NEAREST_KIND  "nearest"
#define NEAREST_CENTS 100 /* of a point: papers cost what they cost in their journals */

struct nearest_wish {
    struct str question;        /* that papers are judged by */
    struct run_nearest nearest; /* its text may be another one */
    struct catalog_choice choice;
    struct str request_id; /* as that of run_submit */
};
/* ERR_INVALID: no paper is near, or the text is too long. ERR_CONFLICT: also if nothing is indexed,
 * or papers may be missing from the list now. Else as run_submit. */
MUST_CHECK int nearest_submit(struct task *t, const struct runs *r,
                              const struct neighbours_from *from, int64_t uid,
                              const struct nearest_wish *w, char qid[RUN_ID_BYTES],
                              struct str *unknown);
#endif
