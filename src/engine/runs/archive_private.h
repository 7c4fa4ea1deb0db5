/* archive_private.h -- what the files of the archive share. The steps are functions of their own,
 * so that tests can end between any two of them. */
#ifndef ENGINE_RUNS_ARCHIVE_PRIVATE_H
#define ENGINE_RUNS_ARCHIVE_PRIVATE_H

#include "engine/money/fence.h"
#include "engine/runs/archive.h"

#define ARCHIVE_BATCH 2000 /* results in one transaction, about */

/* A row that waits. */
struct archive_run {
    struct run_id id;
    struct str state;
    int64_t changed_ms;
    /* since step 1: */
    struct generation generation; /* that its results are read from */
    int64_t results, failed;      /* in Redis; failed: of those */
    bool recount;                 /* Redis has more verdicts than were counted with charges */
};

/* Step 1. *ready stays false: the end of the run has not reached Redis, or Redis has lost part of
 * the run: the keeper reconciles both. */
MUST_CHECK int archive_prepare(struct task *t, struct archive *a, struct archive_run *run,
                               bool *ready);
/* Step 2. */
MUST_CHECK int archive_copy(struct task *t, struct archive *a, struct archive_run *run);
/* Step 3. *closed stays false: the row is not as it was. */
MUST_CHECK int archive_close(struct task *t, struct archive *a, const struct archive_run *run,
                             bool *closed);
/* Steps 1 to 3. *done stays false: it is not archived, and this is no error. */
MUST_CHECK int archive_run(struct task *t, struct archive *a, struct archive_run *run, bool *done);
/* Step 4, of all runs that wait for it. */
MUST_CHECK int archive_expire(struct task *t, struct archive *a);

/* Between two batches: the lock lasts, or this is ERR_UNAVAILABLE. */
MUST_CHECK int archive_keep(struct task *t, struct archive *a);
int64_t archive_after_ms(const struct archive *a);
#endif
