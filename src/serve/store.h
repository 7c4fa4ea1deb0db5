/* store.h -- a private store: prepared, started or adopted, probed, restarted, stopped.
 *
 * One task per store, in this order:
 *   1. prepare: folders, credentials, for MariaDB the first database;
 *   2. a process that an earlier supervisor left is adopted if it answers, else stopped; if there
 *      is none, one is started, and once more if its files could be mended;
 *   3. when it answers, the store is READY;
 *   4. it is probed every few seconds; three probes without an answer count as dead;
 *   5. a dead one is started again, with exponential backoff, until store->stop is set.
 * A store that has never been READY is not tried again: it has FAILED, and problem says why.
 *
 * Stores run in sessions of their own and outlive a supervisor that is killed: they must not be
 * killed while they write. */
#ifndef SERVE_STORE_H
#define SERVE_STORE_H

#include "engine/setup/config.h"
#include "serve/child.h"
#include "serve/system_user.h"
#include "wire/sql.h"

struct store;

struct store_kind {
    const char *name;   /* of its files: "redis" */
    const char *title;  /* for people: "Redis" */
    const char *exe;    /* the name of its program begins like this */
    const char *folder; /* its working directory, below data_dir */
    bool start_first;   /* SIGTERM is safe only after it has come up */
    const char *alarm;  /* what a line of its log has in it that an operator must see */
    /* Makes files, finds programs. */
    int (*prepare)(struct task *t, struct store *s);
    /* Fills path and argv. */
    int (*command)(struct task *t, struct store *s, struct child_spec *spec);
    /* 0: it answers. ERR_BUSY: it runs but is not ready. All others: it does not answer. */
    int (*ping)(struct task *t, struct store *s);
    void (*hang_up)(struct store *s); /* before its process is stopped; may be NULL */
    /* After a process that has ended instead of coming up: repairs its files, if that is why.
     * True: it is worth another start. May be NULL. */
    bool (*mend)(struct task *t, struct store *s);
};
extern const struct store_kind store_redis, store_mariadb;

enum store_state { STORE_OFF, STORE_STARTING, STORE_READY, STORE_DOWN, STORE_FAILED };

struct store {
    const struct store_kind *kind;
    const struct config *config;
    const char *data_dir; /* absolute */
    const struct system_user *user;
    size_t nodes; /* that will connect */
    struct supervision *shared;

    enum store_state state;
    bool stop;      /* set by the owner: end it */
    bool was_ready; /* set by the owner after a reload: a failed start is retried */
    char problem[512];

    const char *program, *secret, *socket_path; /* in the arena of its task, as are the following */
    struct child child;
    off_t log_start;      /* where the log of its last start begins */
    bool cannot_write;    /* Redis: as of the last probe */
    bool mended;          /* this is the other start after mend */
    struct sql_pool *sql; /* MariaDB, for probes; NULL while not connected */
};

/* Starts the store's task in g; the fields up to shared must be set. */
MUST_CHECK int store_go(struct store *s, struct group *g);

/* Stops a process that an earlier supervisor left, if there is one; for stores not in use. */
void store_clear(struct task *t, struct store *s);

/* For the kinds: the rest of this header. */

/* Sets problem and returns err. */
int store_fail(struct store *s, int err, const char *fmt, ...) PRINTF(3, 4);
/* The full path of a program in PATH or the usual folders of servers. ERR_NOT_FOUND. */
MUST_CHECK int store_find_program(struct task *t, const char *name, const char **out);
/* Runs a program to its end; its output goes to the store's log. ERR_REFUSED: it failed.
 * ERR_CANCELED: the store was stopped meanwhile. */
MUST_CHECK int store_run(struct task *t, struct store *s, struct child_spec *spec);
/* What the last program that was started has written to the store's log so far. */
struct str store_log(struct task *t, const struct store *s);
#endif
