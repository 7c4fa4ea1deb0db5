/* fleet.h -- the nodes: as many as wanted are kept running; those from before a reload are
 * drained once all new ones are ready.
 *
 * A node has an index, the slab of the metrics page it writes. Nodes of two generations stand side
 * by side during a reload, so indexes are lent like seats. It also has a place, from 0 on, which whoever
 * follows it has again, after a crash as after a reload: what admins tell a node is told to its place. */
#ifndef SERVE_FLEET_H
#define SERVE_FLEET_H

#include "base/metrics.h"
#include "serve/child.h"

struct member {
    struct fleet *fleet;
    struct child child;
    int place; /* of those that we have started */
    bool used;
    bool old;      /* from before the reload */
    bool ready;    /* it serves */
    bool draining; /* it has been told to end */
    int ready_fd;  /* -1 once it has spoken */
    struct poller ready_poller;
};

struct fleet {
    struct supervision *shared;
    int listen_fd, metrics_fd, config_fd;
    int64_t drain_ms, old_drain_ms; /* of the nodes adopted: what they were started with */
    int wanted;
    int started; /* tasks that keep a node; each has a place */

    bool stop;    /* set by the owner: drain and end all */
    int failures; /* in a row: nodes that ended before they were ready */
    struct member members[METRICS_NODES_MAX];
};

/* A node of the generation before. */
void fleet_adopt(struct fleet *f, pid_t pid, int index, bool draining);
/* Starts a task per adopted node in g. They serve until the new ones are ready. */
MUST_CHECK int fleet_go_old(struct fleet *f, struct group *g);
/* Starts a task per new node in g. */
MUST_CHECK int fleet_go(struct fleet *f, struct group *g);

int fleet_ready(const struct fleet *f); /* nodes of this generation that serve */
int fleet_old(const struct fleet *f);   /* nodes of earlier ones that still live */
#endif
