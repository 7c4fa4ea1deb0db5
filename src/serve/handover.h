/* handover.h -- what a supervisor tells itself across exec: a reload replaces the program and keeps
 * the process, its sockets, its lock and its children.
 *
 * It travels as JSON in a memory file whose number is in the environment; a newer version must read
 * what an older one wrote, so fields are only ever added. */
#ifndef SERVE_HANDOVER_H
#define SERVE_HANDOVER_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/metrics.h"

struct handover {
    const char *listen;   /* the setting that listen_fd was opened for */
    const char *data_dir; /* absolute */
    int listen_fd, lock_fd, metrics_fd;
    pid_t sim_pid; /* 0: none */
    int sim_port;
    int64_t drain_ms; /* that the nodes were started with */
    size_t node_count;
    struct handover_node {
        pid_t pid;
        int index;
        bool draining;
    } nodes[METRICS_NODES_MAX];
};

/* Becomes the program at path with argv and our environment. Signals wait until the new one lets them in with
 * handover_open_signals. Returns only when it fails, with everything as before, and errno. */
void handover_exec(const struct handover *h, const char *path, char **argv);

/* False: this is a first start. Otherwise *out is filled, strings in a. What cannot be read stops the process: it would have
 * lost its children. */
bool handover_take(struct arena *a, struct handover *out);
/* Signals wait; signals are let in. */
void handover_shut_signals(void);
void handover_open_signals(void);
#endif
