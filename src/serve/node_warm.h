/* node_warm.h -- keeps Redis filled, as a background task of every node.
 *
 *   1. waits until both stores answer;
 *   2. looks whether the database has the tables of this program; if not, looks again now and then;
 *   3. fills Redis (engine/papers/warm.h), again and again until that succeeds;
 *   4. waits for a new connection to Redis, which may have come back with less: then from 1.
 *
 * Most of the time a second look finds everything in place and costs a few round trips. */
#ifndef SERVE_NODE_WARM_H
#define SERVE_NODE_WARM_H

#include "engine/setup/node.h"
#include "loop/task.h"

struct node_warm;

/* Sets n->warm; n->redis, n->sql and n->blocks must be set before the task starts. */
struct node_warm *node_warm_new(struct node *n);
void node_warm_free(struct node_warm *w);
void node_warm_task(struct task *t, void *arg); /* a task_fn with a struct node_warm; never ends */

/* Gives a node that has just started a moment to load the catalog; not more than once the
 * first try is over. */
void node_warm_settle(struct task *t, const struct node_warm *w, int64_t ms);
/* What a node whose stores answer lacks to do its work; NULL: nothing. Valid until the next wait. */
const char *node_warm_lacks(const struct node_warm *w);
/* The newest migration of the database when it was last looked at; -1: not yet. */
int64_t node_warm_database(const struct node_warm *w);
#endif
