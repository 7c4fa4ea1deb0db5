/* sweeper.h -- evicts users from Redis eight hours after their last request (EXP).
 *
 * Deadlines are scores of sys:expiry, a sorted set of uids that cache_touch renews. For a user
 * whose deadline has passed:
 *   1. ledger_let_go: the balance goes only when its queue is empty and MySQL has confirmed the
 *      same amount (ACC-4); else it is tried again later, and counted;
 *   2. a script drops the user's other records, but for the version of user:<uid>:info;
 *   3. another takes the deadline away, unless it was renewed meanwhile.
 * Idempotent: any number of nodes may sweep at once. */
#ifndef ENGINE_MONEY_SWEEPER_H
#define ENGINE_MONEY_SWEEPER_H

#include "engine/money/ledger.h"
#include "engine/store/cache.h"
#include "engine/store/role.h"

#define SWEEPER_AT_ONCE  100
#define SWEEPER_RETRY_MS 60000 /* until the next try to evict a user */

struct sweeper {
    struct redis *redis; /* all borrowed */
    struct cache *cache;
    struct ledger *ledger;
    struct metrics *metrics; /* millrace_sweeper_{swept,kept}_total; NULL: not shown */
};
/* One round: up to SWEEPER_AT_ONCE users whose deadline has passed. *swept: how many are gone. */
MUST_CHECK int sweeper_round(struct task *t, struct sweeper *s, int64_t *swept);
role_fn sweeper_role; /* arg: a struct sweeper */
#endif
