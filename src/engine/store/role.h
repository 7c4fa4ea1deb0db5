/* role.h -- background roles: what a node does again and again, by one loop for all of them.
 *
 * A role is a row of one table (serve/node/roles.c): a name, an interval, perhaps a lock, one
 * round, and what the log says when a round fails. Always true:
 *   - A role with a lock runs on one node at a time. The lock is kept from round to round, and let
 *     go when a round fails, when the node drains, and when the node ends (roles_part): another
 *     node goes on after one interval, not after the lock has expired.
 *   - A lock saves work, it does not guard data (lock.h): every round is idempotent.
 *   - The log has one line when rounds begin to fail, and one when they succeed again.
 * No other code sleeps in a loop: see loop/backoff.h for retries. */
#ifndef ENGINE_STORE_ROLE_H
#define ENGINE_STORE_ROLE_H

#include "engine/store/lock.h"

struct group;
struct roles;

/* A round's result besides 0. */
#define ROLE_MORE 1 /* more is waiting, the next round begins at once */
#define ROLE_IDLE 2 /* nothing was tried, and so nothing has failed or works again */

/* The lock of a round under way. */
struct role_turn {
    struct lock lock;
    bool locked; /* false: the role has none */
    int64_t ms, kept_ms;
};

/* One round, in a scope of its own. 0, ROLE_*, or an ERR_ code with its text. */
typedef int role_fn(struct task *t, void *arg, struct role_turn *turn);

struct role {
    const char *name; /* of the task, and of its log lines */
    role_fn *round;
    void *arg;
    int64_t each_ms;     /* between two rounds; jittered */
    int64_t each_ms_max; /* backoff: the interval doubles up to this after failures; 0: it stays */
    const struct str *lock; /* NULL: every node does it */
    int64_t lock_ms;
    const char *complaint; /* "no runs are dispatched", when a round fails */
    /* NULL, or called when another node has the lock: what this node said of it is void. */
    void (*elsewhere)(void *arg);
};

/* draining is borrowed: once it is true, roles with a lock let it go and rest. */
struct roles *roles_new(struct redis *r, const bool *draining);
void roles_free(struct roles *x);
/* Starts one in g. *r is copied. */
void roles_go(struct roles *x, struct group *g, const struct role *r);
/* After the group has ended: lets go of all locks, in one attempt each. */
void roles_part(struct task *t, struct roles *x);

/* In a long round, now and then: renews the lock when a third of its time is over. ERR_CONFLICT:
 * it has expired, and the round should end. Without a lock it does nothing. */
MUST_CHECK int role_keep(struct task *t, struct role_turn *turn);
#endif
