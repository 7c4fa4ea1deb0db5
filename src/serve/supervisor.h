/* supervisor.h -- `millrace serve`: keeps the stores, the simulated AI and the nodes running.
 *
 * Start: lock the data directory, listen, become the configured user, start the stores, make tables
 *   and a sample in a private MariaDB (serve/provision.h), start simulator and nodes, print where.
 * SIGHUP: check the settings and the program on disk, then exec it in place (serve/handover.h);
 *   the new program starts new nodes on the same socket and drains the old ones when all are ready.
 * SIGTERM, SIGINT: drain the nodes, then stop the stores. A second one kills the nodes, a third
 *   the stores.
 * Killed: nodes and simulator end by themselves; the next start adopts the stores. */
#ifndef SERVE_SUPERVISOR_H
#define SERVE_SUPERVISOR_H

#include "engine/setup/config.h"

struct serve_options {
    const char *config_file;    /* NULL: config.json if there is one */
    const char *nodes, *listen; /* override settings; NULL: not given */
    bool allow_unsafe_stores;   /* likewise */
    char **argv;                /* for reloads: the whole command line, "serve" included */
};

/* Reads the settings. ERR_INVALID, ERR_IO with *why (in a). */
MUST_CHECK int serve_settings(struct arena *a, const struct serve_options *o, struct config *out,
                              const char **why);
/* The exit status of the program. */
int supervisor_main(const struct serve_options *o);
#endif
