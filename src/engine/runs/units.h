/* units.h -- the units of a run in Redis: waiting, held by a worker, done (SCR-3, SCR-6).
 *
 * Owns task:<uid>:<qid>:pending_blocks, :inflight and :vain, and of query:<uid>:<qid>:status the
 * fields state, total_blocks, finished_blocks and fresh. A unit has a name that its application
 * understands: a block "meta:<Journal>:<Year>", or a slice of one.
 *
 * A worker that takes a unit leaves a lease: the incarnation of its node and a number. Giving back
 * and finishing need the same lease, so a unit is finished once, by the worker that holds it now:
 * the lease acts as a fencing token against a node that was declared dead and continues.
 *
 * A Redis that was restarted may have lost results of a unit, and still have its lease. So a unit
 * is finished only in the generation in which it was taken: a worker that listed its papers before
 * does not know which of them are lost. The unit goes back to the list instead.
 *
 * Asking the AI costs money, also where the verdict is lost with its node, or cannot be recorded.
 * So a unit that is given back after that counts it, and its worker tells how many papers were open
 * when it was taken: as long as that number stays the same, it is the first of them that is asked
 * about in vain, and after UNIT_VAIN_MAX times it is not asked about any more (BIL-6).
 *
 * unit_take checks in this order, in one atomic step: terminated, paused, then a unit. */
#ifndef ENGINE_RUNS_UNITS_H
#define ENGINE_RUNS_UNITS_H

#include "engine/runs/state.h"
#include "engine/store/generation.h"

#define UNIT_LEASE_BYTES 48
#define UNIT_VAIN_MAX    12

struct run_id {
    int64_t uid;
    struct str qid;
};

struct unit {
    struct str name; /* in the task's arena */
    char lease[UNIT_LEASE_BYTES];
    struct generation generation; /* it was taken in */
    bool fresh;                   /* none of its papers can have a result */
    int64_t vain;                 /* asks of its first open paper that may have cost something */
    int64_t vain_open;            /* papers that were open then; 0: unknown */
};

enum unit_found {
    UNIT_FOUND,
    UNIT_NONE,       /* none is waiting; workers may hold others */
    UNIT_PAUSED,     /* the run is paused */
    UNIT_TERMINATED, /* or is final, or not there any more */
};

/* Puts the units of a run into its list and makes it RUNNING. Idempotent: a run that has units is
 * left as it is. ERR_CONFLICT: the run is not QUEUED or RUNNING. */
MUST_CHECK int units_put(struct task *t, struct redis *r, struct run_id id, const struct str *units,
                         size_t count);
struct unit_claim {
    uint64_t incarnation; /* of this node */
    uint64_t number;      /* new for each take */
    bool again; /* a take with this number has failed: it may have been done all the same */
};
MUST_CHECK int unit_take(struct task *t, struct redis *r, struct run_id id,
                         const struct unit_claim *claim, enum unit_found *found, struct unit *out);
/* So many of its papers are open now. Another number than before: vain begins anew, for the first
 * of these. Nothing happens where vain is 0. */
MUST_CHECK int unit_opened(struct task *t, struct redis *r, struct run_id id, struct unit *u,
                           int64_t open);
/* *last: it was the last one of all, and the run is DONE: true once, for one worker. ERR_CONFLICT:
 * the lease is lost, or the run has ended. */
MUST_CHECK int unit_finish(struct task *t, struct redis *r, struct run_id id, const struct unit *u,
                           bool *last);

/* Gives back, to the head of the list, units that no worker holds any more: those of dead nodes,
 * and those that a worker of this node has left. *returned: how many. A worker whose unit was given
 * back cannot finish it. */
enum unit_holder {
    UNIT_HELD,
    UNIT_LEFT,         /* its worker has left it */
    UNIT_LEFT_IN_VAIN, /* after an ask that may have cost something */
};
typedef enum unit_holder unit_holder_fn(const void *arg, uint64_t incarnation, uint64_t number);
MUST_CHECK int units_reap(struct task *t, struct redis *r, struct run_id id, unit_holder_fn *holder,
                          const void *arg, int64_t *returned);
#endif
