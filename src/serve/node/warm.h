/* warm.h -- keeps Redis filled, as a background role of every node.
 *
 *   1. waits until both stores answer;
 *   2. checks that the database has the tables of this program, and checks again until it does;
 *   3. fills Redis (engine/papers/warm.h), with exponential backoff until that succeeds;
 *   4. waits for a new connection to Redis, which may have lost data: then from 1.
 *
 * When nothing is missing a repetition costs a few round trips. */
#ifndef SERVE_NODE_WARM_H
#define SERVE_NODE_WARM_H

#include "engine/setup/node.h"
#include "engine/store/role.h"

struct node_warm;

/* Sets n->warm; n->redis, n->sql and n->blocks must be set before the task starts. */
struct node_warm *node_warm_new(struct node *n);
void node_warm_free(struct node_warm *w);
role_fn node_warm_role; /* arg: one */

/* Waits for a node that has just started to load the catalog; returns at once after the first try,
 * and while a store is away. */
void node_warm_settle(struct task *t, const struct node_warm *w, int64_t ms);
/* Why a node is not ready although its stores answer; NULL: it is. Valid until the next wait. */
const char *node_warm_lacks(const struct node_warm *w);
/* MySQL has the tables of this program, as of the last look. */
bool node_warm_has_tables(const struct node_warm *w);
/* The newest migration of the database when it was last read; -1: not yet. */
int64_t node_warm_database(const struct node_warm *w);
#endif
