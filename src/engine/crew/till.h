/* till.h -- verdicts of one run on their way into the ledger.
 *
 * A worker hands a verdict in and asks the AI about its next paper while it is recorded and charged: as many calls are
 * under way as there are workers, and a call of the charge script costs little more for a hundred papers than for one. How a
 * verdict goes:
 *
 *   1. till_give puts it in line, and does not wait. The first one in line starts a clerk, a task of its own.
 *   2. The clerk gathers until there are CHARGE_MANY_MAX, or somebody waits, or TILL_PATIENCE_MS have passed. Then it
 *      charges them in one call. It was paid for, so the clerk waits for the stores as long as need be.
 *   3. Before a worker hands in its next one, till_wait tells what became of the last one: it is never more than one verdict
 *      ahead.
 *
 * A verdict that cannot be recorded for a lasting reason (too little money, a ledger that cannot be
 * loaded, not a charge) pauses its run at once: otherwise the run's next workers would ask the AI
 * about the same papers without end, and each answer costs. */
#ifndef ENGINE_CREW_TILL_H
#define ENGINE_CREW_TILL_H

#include "engine/money/charge.h"
#include "loop/task.h"

#define TILL_PATIENCE_MS 10
#define TILL_CLERKS_MAX  16 /* calls under way */

struct till {
    struct group
        *group; /* of the clerks; all but what follows the blank line is set by the owner */
    struct ledger *ledger;
    int64_t *judged, *failed; /* metrics: papers that were recorded */
    /* Called by a clerk, or within till_give. err: any that does not pass by itself; but for
     * ERR_FUNDS, task_error has the words. May wait. */
    void (*refused)(struct task *t, void *arg, int err);
    void *arg;

    struct list line; /* struct till_record that no clerk has */
    size_t count;     /* of them */
    size_t clerks;
    bool gathers;          /* one of them does, or will in a moment */
    struct task *gatherer; /* that one, while it waits */
    bool hurried;          /* somebody needs what is in line */
};

/* One worker's. Zero at first. */
struct till_slip {
    struct task *task; /* while it waits */
    struct till_record *record;
    int err; /* of the last one */
};

void till_open(struct till *x);
bool till_idle(const struct till *x); /* it may be forgotten */

/* Until the slip's last one is recorded; 0 if there was none. ERR_FUNDS, ERR_CLOSED (the run is terminated), ERR_INTERNAL, and
 * others: it was refused. */
MUST_CHECK int till_wait(struct task *t, struct till *x, struct till_slip *s);
/* After till_wait. c's strings are copied, but for qid, which must stay as long as the till is not idle. ERR_INVALID: not a
 * charge; refused has been called. ERR_LIMIT: there is nobody who could record it. */
MUST_CHECK int till_give(struct task *t, struct till *x, struct till_slip *s,
                         const struct charge *c);
/* The worker ends. Waits for its last one even if the task is cancelled, unless *cut_off: then it is dropped if no clerk has
 * it. Whoever sets that wakes the task. */
void till_leave(struct task *t, struct till *x, struct till_slip *s, const bool *cut_off);
#endif
