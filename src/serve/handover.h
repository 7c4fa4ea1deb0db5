/* handover.h -- the state of a supervisor across exec: a reload replaces the program and keeps the
 * process, its sockets, its lock and its children.
 *
 * Passed as JSON in a memfd whose number is in the environment. A newer version must read what an
 * older one wrote, so fields are only ever added. */
#ifndef SERVE_HANDOVER_H
#define SERVE_HANDOVER_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/metrics.h"

struct handover {
    const char *listen;   /* the setting that listen_fd was opened for */
    const char *data_dir; /* absolute */
    int listen_fd, lock_fd, metrics_fd;
    bool listen_given;   /* by a service manager, whatever the setting */
    const char *retired; /* an earlier "listen", whose socket at a path is to be removed; "" */
    pid_t sim_pid;       /* 0: none */
    int sim_port;
    int64_t drain_ms; /* as the nodes were started */
    size_t node_count;
    struct handover_node {
        pid_t pid;
        int index;
        bool draining;
    } nodes[METRICS_NODES_MAX];
};

/* Replaces the program by the one at path, with argv and the same environment. Signals stay blocked
 * until the new one unblocks them. Returns only on failure, with everything as before
 * and errno. */
void handover_exec(const struct handover *h, const char *path, char **argv);

/* False: this is a first start. Otherwise *out is filled, strings in a. A handover that cannot be
 * read stops the process: its children would be lost. */
bool handover_take(struct arena *a, struct handover *out);
/* SIG_BLOCK or SIG_UNBLOCK: SIGHUP, SIGINT and SIGTERM. */
void handover_signals(int how);
#endif
