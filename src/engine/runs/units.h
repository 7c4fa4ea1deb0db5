/* units.h -- the units of a run in Redis: waiting, held by a worker, done (SCR-3, SCR-6).
 *
 * Owns task:<uid>:<qid>:pending_blocks and task:<uid>:<qid>:inflight, and of
 * query:<uid>:<qid>:status the fields state, total_blocks, finished_blocks and fresh. A unit has a
 * name that its application understands: a block "meta:<Journal>:<Year>", or a slice of one.
 *
 * A worker that takes a unit leaves a lease: the incarnation of its node and a number. Giving back
 * and finishing need the same lease, so a unit is finished once, by the worker that holds it now:
 * the lease acts as a fencing token against a node that was declared dead and continues.
 *
 * A Redis that was restarted may have lost results of a unit, and still have its lease. So a unit
 * is finished only in the generation in which it was taken: a worker that listed its papers before
 * does not know which of them are lost. The unit goes back to the list instead.
 *
 * unit_take checks in this order, in one atomic step: terminated, paused, then a unit. */
#ifndef ENGINE_RUNS_UNITS_H
#define ENGINE_RUNS_UNITS_H

#include "engine/runs/state.h"
#include "engine/store/generation.h"

#define UNIT_LEASE_BYTES 48

struct run_id {
    int64_t uid;
    struct str qid;
};

struct unit {
    struct str name; /* in the task's arena */
    char lease[UNIT_LEASE_BYTES];
    struct generation generation; /* it was taken in */
    bool fresh;                   /* none of its papers can have a result */
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
/* *last: it was the last one of all, and the run is DONE: true once, for one worker. ERR_CONFLICT:
 * the lease is lost, or the run has ended. */
MUST_CHECK int unit_finish(struct task *t, struct redis *r, struct run_id id, const struct unit *u,
                           bool *last);

/* Gives back, to the head of the list, units that no worker holds any more: those of dead nodes,
 * and those that a worker of this node has left. *returned: how many. A worker whose unit was given
 * back cannot finish it. */
typedef bool unit_held_fn(const void *arg, uint64_t incarnation, uint64_t number);
MUST_CHECK int units_reap(struct task *t, struct redis *r, struct run_id id, unit_held_fn *held,
                          const void *arg, int64_t *returned);
#endif
