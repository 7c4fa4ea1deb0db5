/* node_engine_private.h -- what node_engine.c and node_roles.c share. */
#ifndef SERVE_NODE_ENGINE_PRIVATE_H
#define SERVE_NODE_ENGINE_PRIVATE_H

#include "base/arena.h"
#include "engine/money/audit.h"
#include "engine/money/sweeper.h"
#include "engine/papers/catalog.h"
#include "engine/runs/archive.h"
#include "engine/runs/run.h"
#include "engine/store/role.h"
#include "serve/node_engine.h"

struct node_engine {
    struct node *node;
    bool tables;  /* as far as we know, MySQL has them */
    bool started; /* the roles are */
    struct arena arena;
    struct catalog catalog;
    struct sweeper sweeper;
    struct audit audit;
    struct archive archive;
    struct runs runs;
    struct roles *roles;
    struct dispatcher *dispatcher;
    struct crew *crew;
    struct api *api;
};

/* node_roles.c */
void node_roles_start(struct node_engine *e);
#endif
