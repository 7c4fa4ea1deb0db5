/* attempts.h -- sliding windows that limit guesses: failed log-ins per user and per address
 * (ATTEMPTS_MAX in ATTEMPTS_WINDOW_MS), registrations per address (new_user.hourly_max in an hour).
 *
 * Counted over all nodes in Redis, by its clock, in keys that no eviction can take (no native TTL;
 * the sweeper of this module removes old ones). While Redis does not answer each node counts by
 * itself, so that a guess is never free. A name counts whether or not there is such a user; of IPv6
 * a whole network counts as one address (address_subject). */
#ifndef ENGINE_PEOPLE_ATTEMPTS_H
#define ENGINE_PEOPLE_ATTEMPTS_H

#include "base/metrics.h"
#include "engine/store/role.h"

#define ATTEMPTS_MAX            10
#define ATTEMPTS_WINDOW_MS      (5 * 60 * 1000)
#define REGISTRATIONS_WINDOW_MS (60 * 60 * 1000)
#define ATTEMPTS_LOCAL_MAX      20000 /* users and addresses in a node without Redis */

struct attempts;                                                   /* of one kind */
struct attempts *attempts_new(struct redis *r, struct metrics *m); /* log-ins; borrows both */
struct attempts *attempts_new_registrations(struct redis *r, struct metrics *m, int64_t max);
void attempts_free(struct attempts *a);
void attempts_set_window(struct attempts *a, int64_t ms); /* for tests, which cannot wait so long */

/* What is counted: a folded user name and an address; realm keeps users and admins apart. */
struct attempt {
    const char *realm;        /* "user", "admin", "registration" */
    struct str name, address; /* name.p == NULL: counted for the address only */
};
/* Counts an attempt before the password is checked, so that many at once cannot slip through.
 * ERR_RATE with *retry_after_s: there were too many; nothing was counted.
 * ERR_BUSY: there is no Redis, and this node counts ATTEMPTS_LOCAL_MAX others already. */
MUST_CHECK int attempts_take(struct task *t, struct attempts *a, const struct attempt *who,
                             int64_t *retry_after_s);
/* It was right, or was not examined: its count is taken back; all counts of the user are. */
void attempts_forgive(struct task *t, struct attempts *a, const struct attempt *who);
/* Removes what is older than the window. arg: a struct attempts. */
role_fn attempts_role;
#endif
