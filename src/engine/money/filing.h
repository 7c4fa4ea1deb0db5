/* filing.h -- results of papers on their way from Redis to search_result (BIL-7).
 *
 * Owns search_result, and of query_log judged_papers, relevant_papers and total_cost. The syncer
 * files the verdicts of a batch of charges in the transaction that writes the charges; what was not
 * charged (failed, not judged, withdrawn) is filed when the run is closed (runs/archive.h). A
 * verdict replaces a failure, never the other way round. */
#ifndef ENGINE_MONEY_FILING_H
#define ENGINE_MONEY_FILING_H

#include "engine/money/ledger.h"
#include "engine/money/result.h"

struct filing_paper {
    struct str qid, doi; /* qid p == NULL: not a paper, passed over */
    int64_t cents;       /* that it was charged */
    /* Filled in by filing_read, in the task's arena: */
    bool readable; /* else Redis has no result of it, or a damaged one: passed over */
    struct result result;
    int64_t year;
    struct str verdict; /* text of ai_result */
};

/* The results of papers of one user; best if those of a run stand together. One round trip. */
MUST_CHECK int filing_read(struct task *t, struct redis *r, int64_t uid, struct filing_paper *p,
                           size_t count);
/* In a transaction: rows of search_result. Idempotent. */
MUST_CHECK int filing_write(struct task *t, struct sql *c, int64_t uid,
                            const struct filing_paper *p, size_t count);
/* In the transaction that writes their charges: the counts of their runs grow. A run that was
 * closed before is to be closed again. */
MUST_CHECK int filing_count(struct task *t, struct sql *c, int64_t uid,
                            const struct filing_paper *p, size_t count);
#endif
