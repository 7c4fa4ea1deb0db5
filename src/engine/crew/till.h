/* till.h -- verdicts of one run on their way into the ledger.
 *
 * A worker hands a verdict in and asks the AI about its next paper while the verdict is recorded
 * and charged: as many calls are under way as there are workers, and a call of the charge script
 * costs little more for a hundred papers than for one. How a verdict goes:
 *
 *   1. till_give appends it to the queue, and does not wait. The first one in the queue starts a
 *      clerk, a task of its own.
 *   2. The clerk collects a batch: until there are CHARGE_MANY_MAX, or a worker waits for a queued
 *      record, or TILL_PATIENCE_MS have passed. Then it charges the batch in one call. The AI's
 *      answers are paid for, so the clerk retries, with backoff, for as long as the stores are
 *      unavailable.
 *   3. Before a worker hands in its next verdict, till_wait returns what became of the last one: a
 *      worker is never more than one verdict ahead.
 *
 * A verdict that cannot be recorded for a lasting reason (too little money, a ledger that cannot be
 * loaded, not a charge) pauses its run at once: otherwise the run's next workers would ask the AI
 * about the same papers without end, and each answer costs. So does a run of whose last 2 × workers
 * verdicts, TILL_LOST_MIN at least, none was recorded, whatever the reason (BIL-6). */
#ifndef ENGINE_CREW_TILL_H
#define ENGINE_CREW_TILL_H

#include "engine/money/charge.h"
#include "loop/task.h"

#define TILL_PATIENCE_MS 10
#define TILL_CLERKS_MAX  16 /* calls under way */
#define TILL_LOST_MIN    20

struct till {
    struct group
        *group; /* of the clerks; all but what follows the blank line is set by the owner */
    struct ledger *ledger;
    int64_t *judged, *failed; /* metrics: papers that were recorded */
    /* Called by a clerk, or within till_give. err: any that does not pass by itself; but for
     * ERR_FUNDS, task_error has the words. May wait. */
    void (*refused)(struct task *t, void *arg, int err);
    void *arg;
    const int64_t *workers; /* of the run, here */

    int64_t lost;     /* verdicts in a row that were not recorded */
    struct list line; /* queue: struct till_record that no clerk has */
    size_t count;     /* of them */
    size_t clerks;
    bool gathers;          /* one of them collects a batch, or was started to */
    struct task *gatherer; /* that one, while it waits */
    bool hurried;          /* a worker waits for a queued record: flush */
};

/* One worker's. Zero at first. */
struct till_slip {
    struct task *task; /* while it waits */
    struct till_record *record;
    int err; /* of the last one */
};

void till_open(struct till *x);
bool till_idle(const struct till *x); /* no record, no clerk: it may be freed */

/* Waits until the slip's last verdict is recorded; 0 if there was none. ERR_FUNDS, ERR_CLOSED (the
 * run is terminated), ERR_INTERNAL, and others: it was refused. */
MUST_CHECK int till_wait(struct task *t, struct till *x, struct till_slip *s);
/* After till_wait. c's strings are copied, but for qid, which must stay valid until the till is
 * idle. ERR_INVALID: not a charge; refused has been called. ERR_LIMIT: no clerk runs and none could
 * be started; the verdict was not taken. */
MUST_CHECK int till_give(struct task *t, struct till *x, struct till_slip *s,
                         const struct charge *c);
/* The worker ends. Waits for its last verdict even if the task is cancelled, unless *cut_off: then
 * the verdict is dropped if no clerk has it. The caller that sets *cut_off must wake the task. */
void till_leave(struct task *t, struct till *x, struct till_slip *s, const bool *cut_off);
#endif
