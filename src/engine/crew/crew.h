/* crew.h -- the workers of this node (SCR-2, SCR-3, PAU-1..3).
 *
 * The dispatcher says in Redis how many workers a run may have. Every node takes its share of them, and asks
 * for each before it starts it: all nodes together never have more workers of a user than the user's
 * permission (engine/crew/workers_claim.lua). How one run goes, seen from here:
 *
 *   1. It is listed in sys:running: a share of its workers is claimed, and they start.
 *   2. A worker takes a unit, judges its papers one by one, and takes the next (worker.c). Finding none, it
 *      ends.
 *   3. A pause, or less permission: workers stop after the paper in hand; who waits for a permit or
 *      sleeps stops at once. What they held goes back to the head of the list.
 *   4. Terminated: they are cut off where they stand, replies that are under way are dropped.
 *   5. A node that drains, or was drained by an admin, does as in 3 for all of its runs; a node that dies is missed by the others,
 *      who give its units back.
 *
 * News of pauses and ends is looked for every CREW_NEWS_MS. A Redis that was restarted may have forgotten
 * some: until the dispatcher has rebuilt its queue from MySQL nobody works. */
#ifndef ENGINE_CREW_CREW_H
#define ENGINE_CREW_CREW_H

#include "loop/task.h"

struct crew;
struct node;

#define CREW_NEWS_MS   25
#define CREW_MANAGE_MS 500 /* shares, claims, dead nodes: at least this often */

/* n is borrowed: redis, blocks, cache, ledger, runs, ai, works, metrics, incarnation, draining, drained. */
struct crew *crew_new(struct node *n);
void crew_free(struct crew *c); /* after crew_drain */

void crew_go(struct crew *c); /* from now on */

/* After node->draining was set, and while the other background tasks still run: waits at most ms for papers in
 * hand, cuts off the rest, gives all units back, and says good-bye. */
void crew_drain(struct task *t, struct crew *c, int64_t ms);
#endif
