/* crew.h -- the workers of this node (SCR-2, SCR-3, PAU-1..3).
 *
 * The dispatcher writes to Redis how many workers a run may have. Every node takes its share of
 * them, and claims each worker before it starts it: all nodes together never have more workers of a
 * user than the user's permission (engine/crew/workers_claim.lua). How one run goes, seen from
 * here:
 *
 *   1. It is listed in sys:running: a share of its workers is claimed, and they start.
 *   2. A worker leases a unit, judges its papers one by one, and leases the next (worker.c). It
 *      ends when no unit is waiting.
 *   3. A pause, or less permission: workers stop after the paper in hand; a worker that waits for a
 *      permit or sleeps stops at once. Units that they held go back to the head of the list.
 *   4. Terminated: workers are cancelled at once, replies that are under way are dropped.
 *   5. A node that drains, or was drained by an admin, does as in 3 for all of its runs. When a
 *      node dies, the others see its heartbeat stop and give its units back.
 *
 * Every CREW_NEWS_MS the manager reads the stream of runs whose state was changed. A Redis that was
 * restarted may have lost pauses and ends: no worker starts until the dispatcher has rebuilt the
 * queue from MySQL. */
#ifndef ENGINE_CREW_CREW_H
#define ENGINE_CREW_CREW_H

#include "loop/task.h"

struct crew;
struct node;

#define CREW_NEWS_MS   25
#define CREW_MANAGE_MS 500 /* shares, claims, dead nodes: at least this often */

/* n is borrowed: redis, blocks, cache, ledger, runs, ai, judge, applications, metrics, incarnation,
 * draining, drained. */
struct crew *crew_new(struct node *n);
void crew_free(struct crew *c); /* after crew_drain */

void crew_go(struct crew *c); /* starts the manager task */

/* After node->draining was set, and while the other background tasks still run: waits at most ms
 * for papers in hand, cancels the other workers, gives all units back, and leaves the member
 * list. */
void crew_drain(struct task *t, struct crew *c, int64_t ms);
#endif
