/* supervisor_private.h -- the one struct that supervisor.c, announce.c and reload.c share. */
#ifndef SERVE_SUPERVISOR_PRIVATE_H
#define SERVE_SUPERVISOR_PRIVATE_H

#include "engine/setup/store_check.h"
#include "serve/datadir.h"
#include "serve/fleet.h"
#include "serve/handover.h"
#include "serve/notify.h"
#include "serve/simulator.h"
#include "serve/store.h"
#include "serve/supervisor.h"
#include "serve/system_user.h"

/* As the service manager sees it. */
enum phase { PHASE_STARTING, PHASE_READY, PHASE_RELOADING, PHASE_STOPPING };

struct supervisor {
    const struct serve_options *options;
    struct arena arena;
    struct config config;
    struct system_user user;
    struct datadir dir;
    int listen_fd, metrics_fd;
    bool listen_given; /* by a service manager, which keeps the socket when the server stops */
    int nodes;
    int terminal_fd;       /* -1: not started from one */
    bool reloaded;         /* exec has replaced another program in this process */
    bool simulated;        /* the AI is a child of the supervisor */
    int64_t sample_papers; /* made-up papers in the private MariaDB */
    struct handover before;

    struct supervision shared;
    bool reload; /* SIGHUP */
    struct notify notify;
    enum phase phase;
    bool ended; /* everything is stopped */

    struct group stores, sims, fleet_group, checks;
    struct store redis, mariadb;
    struct store_report checked; /* the settings of both stores; its sentences are gone */
    bool unsafe;                 /* a store that came up after the start must not be used */
    struct simulator sim;
    struct fleet fleet;
    const char *problem; /* why it ends, in arena; NULL: by request */
    int status;
};

/* The server is ready: prints where and on what it runs, makes the first accounts and shows them
 * (serve/first_accounts.h). After a reload, and with JSON logs, it logs instead. */
void supervisor_announce(struct task *t, struct supervisor *s);

/* The server answers, but a submit would not be taken: prints where, and what is missing. */
void supervisor_announce_lacking(struct supervisor *s, const char *lacks);

/* Asks the stores of c that are not known in r yet (store_check.h), and logs what is unsafe. 0, or
 * ERR_REFUSED with the sentence in task_error: they must not be used. */
MUST_CHECK int supervisor_check_stores(struct task *t, const struct config *c,
                                       struct store_report *r);

/* Lets those connect to a socket at a path that the settings allow (listener_admit). */
MUST_CHECK int supervisor_admit(struct task *t, const struct supervisor *s, const struct config *c);

/* Enters a phase and tells the service manager; the text is shown by "systemctl status". */
void supervisor_tell(struct supervisor *s, enum phase phase, const char *fmt, ...) PRINTF(3, 4);
/* Starts the task that keeps the service manager patient, if there is one. It ends by s->ended. */
void supervisor_beat_go(struct supervisor *s, struct group *g);

/* Checks settings and program, then execs the program on disk. Returns only if that failed: the log
 * says why, and nothing has changed. */
void supervisor_reload(struct task *t, struct supervisor *s);
#endif
