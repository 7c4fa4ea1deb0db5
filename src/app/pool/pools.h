/* pools.h -- items, titles and contents, that are handed out once each, over all nodes (POL-1..4).
 *
 * MySQL has the items: status 1 usable, 2 numbered, 0 used. An item has number 0 while it is
 * usable, and keeps the one that it gets. Redis has a list per type and group, from which they are
 * handed out. No index of the items changes on their way; two small tables say where they are:
 * pool_batch from which id on a batch may have usable ones (usable.c), pool_run which ids the
 * numbers have that are not marked yet (runs.c). Both save work, as indexes do: an item is taken
 * only if its row says so, what pool_batch has passed is looked for when a group seems to be empty
 * (pool_adopt), and a number that no run has is looked for among all items of its group. How an
 * item goes:
 *
 *   1. Fill (fill.c). One transaction gives up to POOL_LIST_ITEMS usable items, newest batch_id
 *      first, then by id, status 2 and the next numbers of their group, and notes both in these
 *      tables. Then they are pushed to the list (push.c), in the order of numbers (pool_push.lua
 *      takes only what continues the list). While pops empty the list fast, the next block is
 *      numbered as this one is pushed, and pops go on with the first that are there.
 *   2. Limit (limit.c). pool_list.handed_limit in MySQL is raised before the list hands out a
 *      number above it, POOL_AHEAD_MAX ahead at most; then the list is told (pool_limit.lua).
 *   3. Pop (pop.c). pool_pop.lua takes items from the list, in the order of numbers and up to the
 *      limit that it was told. Pops of one group that wait on a node go in one call.
 *   4. Mark (limit.c). Numbers below the list's next one get status 0, in batches, in the
 *      background; pool_group.marked says how far. This locks no more than the items: that a number
 *      was handed out stays true, whatever becomes of its list.
 *
 * Where the list is empty, or Redis does not answer, MySQL hands out usable items itself, status 1
 * to 0 in one statement (direct.c, POL-3).
 *
 * The list has a name, random, in MySQL and in Redis; a list counts if both have the same and Redis
 * is of the generation that began it. If not (Redis was restarted, was emptied, or is another one)
 * it is mended (fill.c): one transaction makes numbers up to handed_limit used and all others
 * usable again, has the next numbers begin above both, and gives the list a new name; then an empty
 * list of this name begins in Redis.
 *
 * Why no item is handed out twice, whatever dies when:
 *   - An item leaves status 1 in a transaction that locks its group's row (pool_group), either to 2
 *     with a new number, or to 0 by MySQL itself. A number is given once: numbered only grows. All
 *     writes to pool_batch, and those that add to pool_run, are in such transactions.
 *   - A list hands out each of its numbers once: the script is atomic, the numbers in the list
 *     follow each other, and it does so only in the process of Redis that began the list, whose
 *     memory of it is whole.
 *   - So two lists would have to hand out the same item. One goes back to status 1 only when the
 *     list's name is changed in MySQL, and only if its number is above handed_limit. The old list,
 *     if a Redis somewhere still has it, has been told no limit above that (it is told after the
 *     commit), and will be told none: raising it is `UPDATE … WHERE list = <old name>`, which finds
 *     nothing. All that it can still hand out has been made used. This needs no Redis to be gone:
 *     two that believe to be the one, each with nodes of its own, hand out nothing twice either.
 *   - The lock on filling saves work and guards nothing. Two fillers at once number different
 *     items in turns, by the lock on the group's row; both pushes are in the order of numbers, or
 *     refused.
 *
 * What a death leaves behind, step by step:
 *   - after the numbering, before the push (or a COMMIT whose answer is lost): numbers above the
 *     list's last. The next fill compares both, and pushes them first; a round of pools_fill_role
 *     finds them where the list is not low;
 *   - after raising the limit, before the list is told: the next one to raise it tells;
 *   - after the pop, before the answer: the items are used, unseen; so many answers were cut off. A
 *     request id gets them again, for POOL_REQUEST_MS;
 *   - after the pop, before the mark: the list's next number says so, to any node;
 *   - after a list was renamed in MySQL, before it begins in Redis: the names differ, and the next
 *     one to look mends it again. That costs numbers, no items.
 * Used up unseen when Redis is lost: numbers from the last one handed out to handed_limit, at most
 * POOL_AHEAD_MAX a group; none in a group at rest, whose limit is taken back (pool_settle), and so
 * none after an orderly stop.
 *
 * request_id: the script that hands out keeps the ids of the items under it, MySQL keeps what it
 * handed out itself (pool_request). A list that began less than POOL_REQUEST_MS ago, and one
 * beside which MySQL has answered, have MySQL asked first. Before MySQL answers a request, it is
 * marked in Redis, so that no list answers a repeat of it at the same time. A repeat gets other
 * items only if the Redis that knew of the first was lost or evicted it, or does not answer now; or
 * if the first was answered by MySQL for a node that could not reach a Redis that others could. The
 * items of the first request stay used then: they are handed out to no other. */
#ifndef APP_POOL_POOLS_H
#define APP_POOL_POOLS_H

#include "app/pool/type.h"
#include "base/metrics.h"
#include "engine/store/role.h"
#include "engine/watch/alert_source.h"

struct group;
struct pools;
struct sql_pool;

#define POOL_LIST_ITEMS     5000 /* in a list, at most */
#define POOL_LOW_ITEMS      1000 /* a list with fewer is filled */
#define POOL_PUSH_ITEMS     500  /* in one call */
#define POOL_LIST_BYTES_MAX (32 << 20)
#define POOL_AHEAD_MAX      1000 /* numbers between the last one handed out and the limit */
#define POOL_COUNT_MAX      100  /* items of one pop */
#define POOL_REQUEST_MS     600000
#define POOL_REQUEST_CHARS  64
#define POOL_GROUP_MAX      ((INT64_C(1) << 53) - 1) /* groups are numbers from 1 to this */
#define POOL_LOCK_MS        60000
#define POOL_HELD_MAX       10000 /* groups that a node remembers; more are looked up each time */

struct pools_options {
    struct redis *redis;      /* all borrowed; this one may be NULL for pool_drop */
    struct redis *redis_bulk; /* for pushes; NULL: redis */
    struct sql_pool *sql;
    struct group *group; /* of tasks that fill, raise limits and pop */
    struct metrics *metrics;
    int64_t lists_bytes_max; /* of all lists in Redis; above it no list is filled. 0: no limit */
    int64_t rest_ms;         /* a group without pops for so long is settled; 0: 5000 */
};
struct pools *pools_new(const struct pools_options *o);
void pools_free(struct pools *p); /* after its tasks */

struct pool_id {
    const struct pool_type *type;
    int64_t group;
};

struct pool_wish {
    struct pool_id pool;
    int64_t count;
    int64_t uid;        /* whose request it is */
    struct str request; /* p == NULL: none */
};
struct pool_items {
    struct str json; /* [{"id", "text"}, …], in the task's arena */
    int64_t count;   /* 1 to the wish's: fewer if there are no more */
    bool direct;     /* by MySQL, because Redis does not answer */
};
/* ERR_CONFLICT: nothing is left in the group. ERR_NOT_FOUND: there never was anything in it.
 * ERR_UNAVAILABLE: MySQL is needed and away, or what is left is in the list of a Redis that does
 * not answer. ERR_UNCERTAIN: items may have been taken; a request id gets them again. */
MUST_CHECK int pool_pop(struct task *t, struct pools *p, const struct pool_wish *w,
                        struct pool_items *out);

/* --- what there is --- */

struct pool_level {
    struct str type;
    int64_t group;
    int64_t usable, in_list, handed_out, used; /* handed_out: but not marked yet */
    int64_t unseen;   /* of those used: at most so many were lost with Redis */
    int64_t per_hour; /* handed out, at the present pace */
    int64_t minutes;  /* until it runs out at this pace; -1: it does not */
};
struct pool_levels {
    const struct pool_level *list; /* by type and group */
    size_t count;
    int64_t counted_ms; /* since 1970 */
    bool degraded;      /* Redis does not answer: what is in lists counts as handed out */
};
/* Of all groups, in the task's arena. Items are counted again when the last count is older than
 * POOL_COUNT_MS, and than POOL_COUNT_SHARE times what it took. */
#define POOL_COUNT_MS    1000
#define POOL_COUNT_SHARE 20
MUST_CHECK int pools_count(struct task *t, struct pools *p, struct pool_levels *out);

/* --- what runs out (low.c) --- */

#define POOL_LOW_MINUTES  60 /* a group that runs out within this is low, and an alert begins */
#define POOL_WELL_MINUTES 90 /* it ends above this: at the border it would begin and end for ever */

/* The groups that the node that fills has found to be low, for the alerts of any node. arg: a
 * struct pools. */
alerts_look_fn pools_low_look;

/* Marks what was handed out on this node, and settles groups at rest; on every node. */
role_fn pools_mark_role;
/* Fills all lists that are low, pushes and marks what nodes that died have left, finds groups that
 * run out; on one node. */
role_fn pools_fill_role;
/* When the node stops: settles the groups that it has handed out from. */
void pools_part(struct task *t, struct pools *p);
#endif
