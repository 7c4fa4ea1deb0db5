/* process.h -- one serving process, and the descriptors that the supervisor passes to it.
 *
 *   millrace serve        the supervisor: owns the listening socket, the private stores, the nodes
 *     redis-server        private store, outlives a supervisor that is killed
 *     mariadbd            likewise
 *     millrace db …       makes the tables of the private MariaDB, and loads a sample once
 *     millrace sim        the simulated AI, when no other is configured
 *     millrace node 0…N   serve the API; end when the supervisor does */
#ifndef SERVE_NODE_PROCESS_H
#define SERVE_NODE_PROCESS_H

#include <stdbool.h>

/* Runs until its drain has ended; the exit status of the program. simulated: ai.url is that of the
 * supervisor's own simulated AI. */
int node_process(int index, int place, bool simulated);

/* Open in every node. */
enum {
    NODE_FD_LISTEN = 3,
    NODE_FD_READY = 4,   /* a pipe; the node writes a line when it serves: "ready" or a problem;
                            and NODE_ALIVE every two seconds */
    NODE_FD_METRICS = 5, /* shared memory, see base/metrics.h */
    NODE_FD_CONFIG = 6,  /* the settings as config_write gives them */
};

#define NODE_ALIVE "alive"

/* A node that has not ended this long after drain_ms is killed. */
#define NODE_DRAIN_SLACK_MS 3000
#endif
