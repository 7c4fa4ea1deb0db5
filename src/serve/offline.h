/* offline.h -- the private stores without a server: for a command that must have them alone.
 *
 *   1. offline_open: becomes the configured user and takes the lock of the data directory, so that
 *      no `millrace serve` runs there; until the process ends;
 *   2. offline_clear: stops stores that a killed supervisor has left;
 *   3. offline_start, offline_stop: runs those that the settings do not name elsewhere. */
#ifndef SERVE_OFFLINE_H
#define SERVE_OFFLINE_H

#include "serve/datadir.h"
#include "serve/store.h"

struct offline {
    struct config config; /* data_dir is absolute */
    struct system_user user;
    struct datadir dir;
    struct supervision shared;
    struct group stores;
    struct store redis, mariadb;
};

/* ERR_BUSY: a server runs there; ERR_IO, ERR_INVALID; the text is in task_error. */
MUST_CHECK int offline_open(struct task *t, const struct config *c, struct arena *a,
                            struct offline *out);
void offline_clear(struct task *t, struct offline *o);
/* Returns when they answer. ERR_IO: one does not start. ERR_CANCELED: offline_cancel was called. */
MUST_CHECK int offline_start(struct task *t, struct offline *o);
/* t must not be one that is cancelled: stores are never left half stopped. */
void offline_stop(struct task *t, struct offline *o);
void offline_cancel(struct offline *o); /* from a signal */
#endif
