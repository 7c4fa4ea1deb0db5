/* results.h -- what was found out about the papers of a run, page by page or all of it.
 *
 * Until a run is archived its results are in Redis, in the order they came
 * (result:<uid>:<qid>:arrivals); paging is stable, because a paper keeps its place. From then on
 * they are in search_result, in the final order: hits, misses, failed ones; within these by block
 * (journal and year) and DOI. A cursor of the first kind that is used after the run was archived
 * begins the new order from its start, and says so (restarted).
 *
 * While MySQL is away, results of any run that Redis still has are read from there, in the order
 * they came; a page says so (degraded). Redis keeps them until seven days after the run was
 * archived.
 *
 * Misses and failed ones have no list of their own in Redis: they are picked out of the arrivals.
 * Such a page may have fewer rows than asked for, or none, and still a next one. */
#ifndef ENGINE_RUNS_RESULTS_H
#define ENGINE_RUNS_RESULTS_H

#include "engine/money/ledger.h"
#include "engine/papers/block.h"
#include "engine/money/result.h"
#include "engine/runs/run.h"

#define RESULTS_LIMIT_MAX 500 /* of one page */

struct results {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct ledger *ledger; /* called first: repairs what a restarted Redis has lost (BIL-4) */
    struct blocks *blocks;
    struct cache *cache; /* whether Redis can be trusted. NULL: only what MySQL vouches for */
};

/* In this order once they are archived. */
enum results_kind {
    RESULTS_HIT = OUTCOME_HIT,
    RESULTS_MISS = OUTCOME_MISS,
    RESULTS_FAILED = OUTCOME_FAILED,
    RESULTS_ALL
};

struct result_row {
    struct str doi;
    struct result result;
    struct str journal; /* from block_key */
    int64_t year;
};

struct results_page {
    struct result_row *rows; /* in the task's arena, as all of it */
    size_t count;
    struct str next; /* p == NULL: nothing more is there now */
    bool restarted;
    bool degraded; /* MySQL is away */
};

/* cursor: next of the page before; p == NULL: from the start. kind: only those. ERR_INVALID: not a
 * cursor of ours for that kind. ERR_NOT_FOUND: the user has no such run. ERR_UNAVAILABLE: the store
 * that has the results does not answer. */
MUST_CHECK int results_list(struct task *t, const struct results *r, struct run_id id,
                            enum results_kind kind, struct str cursor, int64_t limit,
                            struct results_page *out);

/* That of one paper. ERR_NOT_FOUND: the user has no such run, or it has no result of that paper.
 * *degraded: MySQL is away. */
MUST_CHECK int results_find(struct task *t, const struct results *r, struct run_id id,
                            struct str doi, struct result_row *out, bool *degraded);

/* All or the hits (RESULTS_ALL, RESULTS_HIT), in batches of up to RESULTS_LIMIT_MAX, in final order
 * if the run is archived, else as they came. The task's arena is reset after each batch. Other than
 * 0 from fn ends it. */
typedef int results_fn(struct task *t, const struct result_row *rows, size_t count, void *arg);
MUST_CHECK int results_each(struct task *t, const struct results *r, struct run_id id,
                            enum results_kind kind, results_fn *fn, void *arg);
#endif
