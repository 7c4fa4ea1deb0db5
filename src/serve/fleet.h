/* fleet.h -- the nodes: keeps as many running as wanted; after a reload, drains the old ones once
 * all new ones are ready.
 *
 * A node tells on a pipe when it serves, when it takes submits, and every two seconds that its
 * loop turns. One that falls silent hangs: it is killed, and another started.
 *
 * A node has an index, its slab of the metrics page. During a reload two generations run side by
 * side, so an index is taken at a start and given back at the end. A node also has a place, from 0
 * on: the id of the slot, which a restarted node in the same slot has again, after a crash and
 * after a reload. What admins tell a node is addressed to its place. */
#ifndef SERVE_FLEET_H
#define SERVE_FLEET_H

#include "base/metrics.h"
#include "serve/child.h"

struct member {
    struct fleet *fleet;
    struct child child;
    int place; /* for nodes of this generation */
    bool used;
    bool old;        /* of an earlier generation */
    bool ready;      /* it serves */
    bool open;       /* and takes submits */
    char lacks[200]; /* ready, but not open: why */
    bool draining;   /* it was sent SIGTERM */
    bool heard;      /* a line has come since the last look */
    int ready_fd;    /* -1 once the node has closed its end */
    struct poller ready_poller;
};

struct fleet {
    struct supervision *shared;
    int listen_fd, metrics_fd, config_fd;
    int64_t drain_ms, old_drain_ms; /* old: of the adopted nodes, as they were started */
    int wanted;
    bool simulated; /* the nodes ask the simulated AI */
    int started;    /* tasks so far that keep a node; gives them their places */

    bool stop;    /* set by the owner: drain and end all */
    int failures; /* in a row: nodes that ended before they were ready */
    struct member members[METRICS_NODES_MAX];
};

/* A node of an earlier generation. */
void fleet_adopt(struct fleet *f, pid_t pid, int index, bool draining);
/* Starts a task per adopted node in g. They serve until the new ones are ready. */
MUST_CHECK int fleet_go_old(struct fleet *f, struct group *g);
/* Starts a task per new node in g. */
MUST_CHECK int fleet_go(struct fleet *f, struct group *g);

int fleet_ready(const struct fleet *f); /* nodes of this generation that serve */
int fleet_old(const struct fleet *f);   /* nodes of earlier ones that still live */
/* Every node of this generation takes submits, and there is one. */
bool fleet_open(const struct fleet *f);
/* What a node that serves said it lacks for that; NULL: none did. */
const char *fleet_lacks(const struct fleet *f);
#endif
