/* archive.h -- runs that have ended go to MySQL, for ever (ARC-1).
 *
 * A run is archived when its row is DONE or CANCELLED since ARCHIVE_AFTER_MS at least: by then Redis has its
 * results on disk, so that no restart can bring an older state of it back. Then:
 *
 *   1. the user's balance is asked for, which repairs what a restarted Redis has lost (BIL-4);
 *   2. results are copied to search_result in batches; a repeat changes nothing, a verdict replaces a
 *      failure;
 *   3. in one transaction the row gets its counts and archived = 1, if it is still as it was in 1;
 *   4. the keys of the run get ARCHIVE_TTL_MS. Never before.
 *
 * Whoever dies on the way is followed by any node. A run that goes on after that (retry_failed) has
 * archived = 0 again, and its keys lose their TTL first. */
#ifndef ENGINE_ARCHIVE_H
#define ENGINE_ARCHIVE_H

#include "base/metrics.h"
#include "engine/results.h"

#define ARCHIVE_AFTER_MS 5000
#define ARCHIVE_TTL_MS   (7LL * 24 * 3600 * 1000)

struct archive {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct ledger *ledger;
    struct metrics *metrics; /* millrace_archive_{runs,results}_total, …_waiting */
    int64_t after_ms;        /* 0: ARCHIVE_AFTER_MS; for tests */
};

/* All runs that wait for it, one after the other. *archived: how many. */
MUST_CHECK int archive_round(struct task *t, struct archive *a, int64_t *archived);
/* For ever, one node at a time. A task_fn with a struct archive. */
void archive_task(struct task *t, void *arg);
#endif
