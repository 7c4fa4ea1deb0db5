/* result.h -- what was found out about one paper of a run, as result:<uid>:<qid> holds it:
 *
 *     {"ai_result": {"relevant": true, "reason": "…"}, "block_key": "meta:<Journal>:<Year>"}
 *     {"ai_result": {"error": "…"}, "block_key": "meta:<Journal>:<Year>"}
 *     {"ai_result": {"not_judged": "…"}, "block_key": "meta:<Journal>:<Year>"}
 *     {"ai_result": {"withdrawn": "…"}, "block_key": "meta:<Journal>:<Year>"}
 *
 * A verdict of the simulated AI has a member "simulated": true beside its reason.
 *
 * Table search_result has ai_result and block_key in columns of those names. */
#ifndef ENGINE_MONEY_RESULT_H
#define ENGINE_MONEY_RESULT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "engine/money/outcome.h"

struct result {
    struct str block_key;
    enum outcome outcome; /* a hit is "relevant" */
    bool simulated;       /* the verdict is of the simulated AI */
    /* OUTCOME_FAILED, because there was nothing to judge (SCR-18), or because the paper had left
     * the corpus when its turn came (SCR-1); not both: */
    bool not_judged, withdrawn;
    struct str reason; /* or why it failed */
};

void result_write(struct buf *out, const struct result *r);
void result_write_verdict(struct buf *out, const struct result *r); /* only what ai_result is */
/* In a. ERR_PROTO: not what result_write writes. */
MUST_CHECK int result_read(struct arena *a, struct str json, struct result *out);
/* The text of ai_result in json, of which r was read: as it stands there, or written anew in a. */
struct str result_verdict_text(struct arena *a, struct str json, const struct result *r);
/* The two columns. ai_result p == NULL: a failure without words. */
MUST_CHECK int result_read_columns(struct arena *a, struct str block_key, struct str ai_result,
                                   struct result *out);
#endif
