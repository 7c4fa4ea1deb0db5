/* claims.h -- how many AI calls of a user are made at once, over all nodes (SCR-2, JOB-2).
 *
 * A worker of a run and a job that calls the AI are claimed before they begin: all living nodes
 * together never have more of both than the user's permission (workers_claim.lua). While both want
 * more than there is, a fifth is for jobs, one at least; a single call changes sides. Claims of a
 * node that died go by themselves. */
#ifndef ENGINE_CREW_CLAIMS_H
#define ENGINE_CREW_CLAIMS_H

#include "engine/crew/members.h"

struct cache;

struct claimant {
    struct redis *redis; /* all borrowed */
    struct cache *cache;
    const struct members *members;
    uint64_t incarnation; /* of this node */
};

#define CLAIM_JOBS "jobs" /* what: all jobs of the user on this node */

struct claim {
    struct str what;    /* id of a run, or CLAIM_JOBS */
    int64_t has, wants; /* at once; wants less than has: only the report counts */
    int64_t granted;    /* out: less than has: a run must end so many workers */
};

/* For all runs of the user that have, had or want workers on this node; or for its jobs. What this
 * node does not list of them it does not have. Idempotent: after an error, also ERR_UNCERTAIN, the
 * next call sets it right. A user who is unknown or banned has a permission of 0. */
MUST_CHECK int claims_make(struct task *t, const struct claimant *c, int64_t uid, bool jobs,
                           struct claim *list, size_t count, int64_t *permission);
#endif
