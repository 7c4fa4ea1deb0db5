/* archive.h -- runs that have ended go to MySQL, for ever (ARC-1).
 *
 * A run is archived as soon as its row is final: what was charged is in MySQL with its verdict
 * already (money/filing.h), but for what the syncer has not written yet. (A FAILED run has no
 * results, but keys that must end.) So:
 *
 *   1. ledger_balance is called, which repairs what a restarted Redis has lost (BIL-4). Redis must
 *      know that the run has ended, so that no paper can be charged any more, and one that is DONE
 *      must be whole there: else it goes on (keeper.h). The rest of its charges and verdicts is
 *      synced;
 *   2. papers without a charge (failed, not judged, withdrawn) are filed in idempotent batches.
 *      Each batch is a transaction that holds the ledger's fence: what was read from a Redis that
 *      has died since is not written. Verdicts that MySQL lacks, because a version before did not
 *      write them with their charges, are filed in the same way; a verdict whose charge was written
 *      off is filed as a failure;
 *   3. in one transaction, with the fence too, the row gets its counts and archived = 1, if it is
 *      still as it was in 1, and archive_outbox gets a row. All of the run is in MySQL now, and
 *      stays there, whatever Redis forgets;
 *   4. the keys of all runs in archive_outbox get ARCHIVE_TTL_MS, but for a run that goes on. Never
 *      before. The row goes when Redis has had ARCHIVE_AFTER_MS to write that to its disk; until
 *      then the repair restores results of the run, because an older Redis may take it for one that
 *      works.
 *
 * If a node dies between two steps, any node continues. A run that is reopened later (retry_failed)
 * gets archived = 0 and a later changed_at, and run_tell removes the TTL from its keys. */
#ifndef ENGINE_RUNS_ARCHIVE_H
#define ENGINE_RUNS_ARCHIVE_H

#include "base/metrics.h"
#include "engine/runs/results.h"
#include "engine/store/role.h"

#define ARCHIVE_AFTER_MS 5000
#define ARCHIVE_TTL_MS   (7LL * 24 * 3600 * 1000)

struct archive {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct ledger *ledger;
    /* millrace_archive_{runs,results}_total, millrace_archive_{waiting,stuck}. NULL: not shown */
    struct metrics *metrics;
    int64_t after_ms;       /* 0: ARCHIVE_AFTER_MS; for tests */
    struct role_turn *turn; /* of a round under way; NULL: none holds a lock */
    int64_t stuck;          /* runs of the last round that could not be archived */
};

/* All runs that wait for it, one after the other. *archived: how many. A run that cannot be
 * archived is logged and left; the error is one that concerns all. */
MUST_CHECK int archive_round(struct task *t, struct archive *a, int64_t *archived);
/* Before a run that is DONE goes on (retry_failed): it is archived, and Redis has all of it again,
 * if need be from MySQL, which takes seconds. Others are left as they are. ERR_NOT_FOUND: the user
 * has no such run. ERR_CONFLICT: it goes on already, or cannot be archived yet. */
MUST_CHECK int archive_recall(struct task *t, const struct archive *a, struct run_id id);
/* archive_round, one node at a time. arg of both: a struct archive. */
role_fn archive_role;
void archive_elsewhere(void *arg);
#endif
