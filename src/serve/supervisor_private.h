/* supervisor_private.h -- the one struct that supervisor.c, announce.c and reload.c share. */
#ifndef SERVE_SUPERVISOR_PRIVATE_H
#define SERVE_SUPERVISOR_PRIVATE_H

#include "serve/datadir.h"
#include "serve/fleet.h"
#include "serve/handover.h"
#include "serve/simulator.h"
#include "serve/store.h"
#include "serve/supervisor.h"
#include "serve/system_user.h"

struct supervisor {
    const struct serve_options *options;
    struct arena arena;
    struct config config;
    struct system_user user;
    struct datadir dir;
    int listen_fd, metrics_fd;
    int nodes;
    int terminal_fd;       /* -1: we were not started from one */
    bool reloaded;         /* this program replaced another one in this process */
    bool simulated;        /* the AI is our own child */
    int64_t sample_papers; /* made-up papers in the private MariaDB */
    struct handover before;

    struct supervision shared;
    bool reload; /* SIGHUP */

    struct group stores, sims, fleet_group;
    struct store redis, mariadb;
    struct simulator sim;
    struct fleet fleet;
    const char *problem; /* why we do not go on, in arena; NULL if by request */
    int status;
};

/* It serves: tells people so on standard output, makes the first accounts (serve/first_accounts.h) and
 * shows them; after a reload there is a line in the log. */
void supervisor_announce(struct task *t, struct supervisor *s);

/* Checks everything, then becomes the program on disk. Returns only if that is not to be: the
 * log says why, and nothing has changed. */
void supervisor_reload(struct task *t, struct supervisor *s);
#endif
