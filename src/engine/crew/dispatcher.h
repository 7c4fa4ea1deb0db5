/* dispatcher.h -- which runs get workers, and how many (SCR-2, R1, R2).
 *
 * One node at a time, by a lock. In rounds:
 *   1. After Redis was restarted, its queue is deleted and rebuilt from MySQL (reconcile): it may
 *      have come back older than it was. Until that is done no worker starts (crew.h).
 *   2. Runs that have workers: those that are paused or ended leave the list; the others have at
 *      most as many workers as units are left, and all of a user at most the user's permission.
 *   3. The queue, in the order of submission: a run starts when the rate left, in requests and in
 *      tokens of a minute over all keys, is enough for what its workers will use; that is
 *      estimated from moving averages of latency and tokens over all nodes. A run that waits for
 *      the rate blocks those behind it; one that waits for its own user's permission does not. The
 *      first one always starts when nothing runs. A run of a user who has nothing at work does not
 *      wait for the rate if its workers need no more than an equal share of it; after half a minute
 *      it starts with as many as the share feeds, one at least. So a huge run of another user does
 *      not hold it up. Nothing starts while no node takes work. To start a run: split it, set its
 *      row to RUNNING, put its units in its list, and list it with its workers.
 *
 * Each step is idempotent, and two dispatchers at once, while a lock changes hands, do no harm: the
 * limits themselves are enforced by the key pool (permits.h) and by the claims of the crews. */
#ifndef ENGINE_CREW_DISPATCHER_H
#define ENGINE_CREW_DISPATCHER_H

#include "engine/store/role.h"

struct dispatcher;
struct node;

/* n is borrowed: redis, sql, cache, catalog, runs, permits, applications, and switches, if any:
 * SWITCH_NEW_RUNS has runs wait that were never started. */
struct dispatcher *dispatcher_new(struct node *n);
void dispatcher_free(struct dispatcher *d);
/* One round of all three. arg: a struct dispatcher. */
role_fn dispatcher_role;
#endif
