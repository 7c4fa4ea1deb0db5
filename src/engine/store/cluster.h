/* cluster.h -- transactions that must not overlap, on all nodes of a Galera cluster.
 *
 * FOR UPDATE and LOCK IN SHARE MODE lock rows on one node. Galera compares what transactions of
 * different nodes have written, not what they have locked: two that lock a row and write others
 * both commit. Where the locked row itself is written, with another value, nothing is missing: one
 * of them is rolled back (ERR_CONFLICT) and run again by sql_tx. Where it is only locked, the
 * transaction takes a turn first, which is such a write.
 *
 * docs/galera.md has all locks, and why each is enough. */
#ifndef ENGINE_STORE_CLUSTER_H
#define ENGINE_STORE_CLUSTER_H

#include "wire/sql.h"

/* What several rooms take turns for. */
#define CLUSTER_USER       "user"       /* by uid: promises, quotas, bans */
#define CLUSTER_COLLECTION "collection" /* of vectors: spaces, changes and their log */

/* Of two transactions that take the same turn on different nodes, the one that commits later is run
 * again, and sees what the other has done. Before everything that depends on it is read, locks
 * included. Does nothing on other servers, where the lock that follows is enough. */
MUST_CHECK int cluster_turn(struct task *t, struct sql *c, const char *what, int64_t id);

/* For many that may overlap, but not with one that takes all: each takes one part. */
#define CLUSTER_PARTS 32
MUST_CHECK int cluster_turn_part(struct task *t, struct sql *c, const char *what);
MUST_CHECK int cluster_turn_all(struct task *t, struct sql *c, const char *what);
#endif
