/* engine.h -- the parts of the engine in a node: made, started, drained, freed. */
#ifndef SERVE_NODE_ENGINE_H
#define SERVE_NODE_ENGINE_H

#include "base/arena.h"
#include "engine/api/api.h"
#include "engine/money/audit.h"
#include "engine/jobs/pay.h"
#include "engine/money/sweeper.h"
#include "engine/papers/catalog.h"
#include "engine/runs/archive.h"
#include "engine/runs/run.h"
#include "engine/setup/node.h"
#include "engine/store/role.h"

/* The routes of all applications. */
extern const struct api_table node_api;

struct node_engine {
    struct node *node;
    bool tables;  /* MySQL has them, or did not answer */
    bool started; /* the roles are */
    struct arena arena;
    struct catalog catalog;
    struct sweeper sweeper;
    struct jobs_paid jobs_paid;
    struct audit audit;
    struct archive archive;
    struct runs runs;
    struct roles *roles;
    struct dispatcher *dispatcher;
    struct crew *crew;
    struct api *api;
};

/* Makes the parts and sets their members of n: loop, group, config, redis, sql, client, metrics,
 * index and place must be set, and the config must be valid. */
struct node_engine *node_engine_new(struct node *n);
void node_engine_free(struct node_engine *e); /* after n->group has ended */
/* Adds the routes of all applications to n->http. */
void node_engine_serve(struct node_engine *e);
/* Reads switches and drains from MySQL before the node does anything. If MySQL does not answer, the
 * roles read them later. */
void node_engine_prepare(struct task *t, struct node_engine *e);
/* Starts the background roles in n->group: at once, or as soon as MySQL has tables. */
void node_engine_go(struct node_engine *e);
/* node/roles.c: all of them, but those that do not need tables. */
void node_roles_start(struct node_engine *e);
struct vitals;
struct node_warm;
void node_roles_first(struct node_engine *e, struct vitals *v, struct node_warm *w);
/* Why a submit would not be taken although both stores answer and the tables are there; NULL: it
 * would. */
const char *node_engine_lacks(const struct node_engine *e);
/* Finishes work in progress, in at most ms, while the roles still run. */
void node_engine_drain(struct task *t, struct node_engine *e, int64_t ms);
/* Releases leases: after the roles have ended, while Redis is still connected. */
void node_engine_part(struct task *t, struct node_engine *e);
#endif
