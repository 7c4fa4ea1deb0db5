/* mariadb.h -- a mariadbd of the test's own, in a temporary directory.
 *
 * Installs, starts and stops a real server; a program that is not installed fails the test. The
 * server dies with the test program. The user is root, without a password. These calls block: a
 * test that wants its tasks to run meanwhile uses mariadb_spawn, which does not. */
#ifndef TESTS_MARIADB_H
#define TESTS_MARIADB_H

#include <stdbool.h>
#include <sys/types.h>

struct mariadb {
    char dir[64];
    char socket[80];
    char url[160]; /* for sql_pool_new: over the socket, database "test" */
    int port;      /* 0: no TCP */
    const char *const *args;
    pid_t pid; /* 0: not running */
};

struct mariadb_options {
    bool tcp;                /* also listens on a free port of 127.0.0.1 */
    bool tls;                /* with dir/cert.pem, made for the name localhost */
    const char *const *args; /* more options for mariadbd, up to NULL; kept */
};

void mariadb_start(struct mariadb *m, const struct mariadb_options *o); /* o may be NULL */
void mariadb_release(struct mariadb *m); /* stops it and removes the directory */

void mariadb_stop(struct mariadb *m);    /* asks it to end, and waits */
void mariadb_kill(struct mariadb *m);    /* as if the machine had lost power */
void mariadb_restart(struct mariadb *m); /* starts a stopped one, and waits until it answers */
void mariadb_spawn(struct mariadb *m);   /* the same without waiting */
void mariadb_freeze(struct mariadb *m);  /* it runs, but does nothing more */
void mariadb_thaw(struct mariadb *m);
#endif
