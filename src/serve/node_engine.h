/* node_engine.h -- the parts of the engine that a node has: made, set to work, taken apart. */
#ifndef SERVE_NODE_ENGINE_H
#define SERVE_NODE_ENGINE_H

#include "base/arena.h"
#include "engine/setup/node.h"
#include "loop/task.h"

struct node_engine;

/* Fills in n what stands on its stores: loop, group, config, redis, sql, client, metrics, index and place must be set, and
 * the config must be without problems. */
struct node_engine *node_engine_new(struct node *n);
void node_engine_free(struct node_engine *e); /* after n->group has ended */
/* Adds the routes of all applications to n->http. */
void node_engine_serve(struct node_engine *e);
/* Learns what admins have told nodes, before anything else is done. If MySQL does not answer, the roles learn it later. */
void node_engine_prepare(struct task *t, struct node_engine *e);
/* Starts the background roles, in n->group: at once, or when MySQL has tables. */
void node_engine_go(struct node_engine *e);
/* Ends work that is under way, in at most ms, while they still run. */
void node_engine_drain(struct task *t, struct node_engine *e, int64_t ms);
/* After they have ended, while Redis is still there. */
void node_engine_part(struct task *t, struct node_engine *e);
#endif
