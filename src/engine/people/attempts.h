/* attempts.h -- sliding windows that limit guesses: failed log-ins, and registrations per address
 * (new_user.hourly_max in an hour).
 *
 * Failed log-ins in ATTEMPTS_WINDOW_MS (ACC-1):
 *   - of a user name from one address: ATTEMPTS_MAX;
 *   - of a user name from anywhere: ATTEMPTS_NAME_MAX, then one at a time after a delay that
 *     doubles up to ATTEMPTS_SLOW_MOST_MS: an account is never shut. Those from loopback do not
 *     count here: an operator on the machine cannot be locked out from elsewhere, nor lock out;
 *   - from one address: login.address_max. A campus is one address.
 * An account that logged in from an address within ATTEMPTS_KNOWN_MS is held up there by the first
 * limit only, whatever others guess.
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
#define ATTEMPTS_NAME_MAX       100
#define ATTEMPTS_WINDOW_MS      (5 * 60 * 1000)
#define ATTEMPTS_SLOW_MS        1000
#define ATTEMPTS_SLOW_MOST_MS   (60 * 1000)
#define ATTEMPTS_KNOWN_MS       (30LL * 24 * 3600 * 1000)
#define REGISTRATIONS_WINDOW_MS (60 * 60 * 1000)
#define ATTEMPTS_LOCAL_MAX      20000 /* users, addresses and pairs in a node without Redis */
#define ATTEMPT_ID_BYTES        33

struct attempts; /* of one kind */
/* Of log-ins; borrows both. */
struct attempts *attempts_new(struct redis *r, struct metrics *m, int64_t address_max);
struct attempts *attempts_new_registrations(struct redis *r, struct metrics *m, int64_t max);
void attempts_free(struct attempts *a);
void attempts_set_window(struct attempts *a, int64_t ms); /* for tests, which cannot wait so long */

/* What is counted: a folded user name and an address; realm keeps users and admins apart. */
struct attempt {
    const char *realm;         /* "user", "admin", "registration" */
    struct str name, address;  /* name.p == NULL: counted for the address only */
    char id[ATTEMPT_ID_BYTES]; /* of attempts_take */
};
/* Counts an attempt before the password is checked, so that many at once cannot slip through.
 * ERR_RATE with *retry_after_s: there were too many; nothing was counted.
 * ERR_BUSY: there is no Redis, and this node counts ATTEMPTS_LOCAL_MAX others already. */
MUST_CHECK int attempts_take(struct task *t, struct attempts *a, struct attempt *who,
                             int64_t *retry_after_s);
/* Its password was right: it is taken back, and so are all of its name from its address. */
void attempts_forgive(struct task *t, struct attempts *a, const struct attempt *who);
/* It was not examined: it alone is taken back. */
void attempts_return(struct task *t, struct attempts *a, const struct attempt *who);
/* Ends a lock-out: forgets all log-ins of a folded name, from anywhere. *count: subjects that had
 * some. What a node counts by itself, without Redis, stays. */
MUST_CHECK int attempts_unlock(struct task *t, struct redis *r, const char *realm, struct str name,
                               int64_t *count);
/* Removes what is older than the window. arg: a struct attempts. */
role_fn attempts_role;
#endif
