/* history.h -- a user's runs, newest first. There is no delete and no hide (HIS-1).
 *
 * Owns user:<uid>:history, a sorted set: query id -> when it was submitted, ms. It is whole once it
 * has the member HISTORY_WHOLE, which is put in last; until then it is filled from query_log. Runs
 * are only ever added, so a slow loader adds nothing wrong, and run_announce adds a run whether the
 * set is whole or not. */
#ifndef ENGINE_RUNS_HISTORY_H
#define ENGINE_RUNS_HISTORY_H

#include "engine/runs/row.h"

#define HISTORY_WHOLE     "-" /* no query id looks like this */
#define HISTORY_LIMIT_MAX 100 /* of one page */

struct history {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct cache *cache; /* says whether Redis can be trusted */
};

struct history_page {
    struct run_row *runs; /* in the task's arena, as all of it */
    size_t count;
    struct str next; /* the cursor of the page behind it; p == NULL: this is the last */
    bool degraded;   /* a store is away. If it is MySQL, runs may be missing that Redis has lost */
};

/* cursor: what an earlier page gave as next; p == NULL: the newest runs. ERR_INVALID: not one of
 * ours. */
MUST_CHECK int history_list(struct task *t, const struct history *h, int64_t uid, struct str cursor,
                            int64_t limit, struct history_page *out);
#endif
