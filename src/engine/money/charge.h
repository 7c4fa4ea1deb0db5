/* charge.h -- one paper of a run: judged, charged, recorded, in one step (BIL-1, SCR-5, SCR-7,
 * PAU-3).
 *
 * One script over the keys of one user: balance, ledger, billing queue, result:<uid>:<qid>, its
 * :arrivals and :relevant, query:<uid>:<qid>:status and :failed,
 * progress:<uid>:<qid>:finished_count. All or nothing:
 *   - the run must be RUNNING or PAUSED; a reply that comes after it was terminated is dropped;
 *   - a paper that has a verdict is passed over: no second charge, after any crash, pause or retry;
 *   - too little money: nothing changes, and the run pauses itself (SCR-8);
 *   - a failed paper is recorded without a charge, and its DOI is in :failed until a later verdict
 *     replaces it.
 * In the status, finished counts verdicts and failures, as the progress does; failed those without
 * a verdict; cost is in cents. */
#ifndef ENGINE_MONEY_CHARGE_H
#define ENGINE_MONEY_CHARGE_H

#include "engine/money/ledger.h"
#include "engine/money/outcome.h"
#include "engine/store/amount.h"

#define CHARGE_MANY_MAX         100 /* papers in one call */
#define CHARGE_QID_BYTES_MAX    64
#define CHARGE_RESULT_BYTES_MAX (256 * 1024)

struct charge {
    int64_t uid, cents;   /* at most AMOUNT_CENTS_MAX */
    struct str qid, doi;  /* UTF-8; the DOI at most DOI_BYTES_MAX */
    struct str result;    /* JSON {"ai_result": …, "block_key": "meta:…"} */
    enum outcome outcome; /* OUTCOME_FAILED: cents must be 0 */
};

enum charge_outcome {
    CHARGE_DONE,
    CHARGE_EXISTS,  /* the paper has a result already; after a lost reply it may be this call's */
    CHARGE_FUNDS,   /* too little money; nothing changed */
    CHARGE_STOPPED, /* the run is not RUNNING or PAUSED */
};

const char *charge_problem(const struct charge *c); /* NULL: none */

/* 1 to CHARGE_MANY_MAX papers of one user and run, in order, as if each came alone. Idempotent:
 * safe to repeat after any error. The outcomes are no errors. ERR_UNAVAILABLE: a store does not
 * answer. ERR_INVALID: not charges. ERR_INTERNAL: the stores contradict each other about the user's
 * money; the user is not charged until the operator has resolved it. */
MUST_CHECK int ledger_charge(struct task *t, struct ledger *l, size_t count, const struct charge *c,
                             enum charge_outcome *out);
/* Before workers begin with a run: what a restarted Redis has lost of the user's results is back,
 * so that no paper is asked about again. Errors as above. */
MUST_CHECK int ledger_ready(struct task *t, struct ledger *l, int64_t uid);
#endif
