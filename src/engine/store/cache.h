/* cache.h -- rows of MySQL that live in Redis as hashes: Redis first, then MySQL, then fill.
 *
 * A record is a hash with a field "version", which counts the changes of its row. How a slow loader
 * is kept from bringing an old row back (ACC-2):
 *
 *   1. whoever changes the row commits it in MySQL, with version + 1;
 *   2. then cache_changed leaves the new version in Redis, alone, also where nothing was: a hash
 *      with nothing but a version counts as missing;
 *   3. a fill is a script that refuses a row whose version is lower than what it finds.
 *
 * Records have no native TTL. Each belongs to a user, whose deadline (EXP, 8 hours) is renewed by
 * access and kept by the sweeper.
 *
 * When Redis does not answer, records come from MySQL, marked degraded, and nothing is filled. What
 * was changed meanwhile could not be told to Redis: its user is remembered in table cache_stale
 * in the same transaction (cache_mark_stale), and after Redis is back nothing of that user is
 * read from there before it was dropped. A Redis that was restarted may have lost its last second:
 * everybody who has a deadline there counts as changed. */
#ifndef ENGINE_STORE_CACHE_H
#define ENGINE_STORE_CACHE_H

#include "base/metrics.h"
#include "wire/redis.h"
#include "wire/sql.h"

struct cache;

#define CACHE_EXP_MS (8LL * 3600 * 1000)

struct cache_options {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    /* millrace_cache_{hits,misses,loads,stale_drops}_total{kind="user"}, millrace_cache_degraded.
     * NULL: not shown */
    struct metrics *metrics;
};
struct cache *cache_new(const struct cache_options *o);
void cache_free(struct cache *c); /* no call may be under way */
struct redis *cache_redis(const struct cache *c);
struct sql_pool *cache_sql(const struct cache *c);

struct cache_field {
    struct str name, value;
};
struct cache_record {
    int64_t version;
    size_t count;
    const struct cache_field *fields; /* without the version; in the task's arena */
    bool degraded;                    /* read from MySQL because Redis does not answer */
};
struct str cache_value(const struct cache_record *r, const char *name); /* p == NULL: none */

/* Reads the row and its version from MySQL into the task's arena. ERR_NOT_FOUND: there is none. */
typedef int cache_load(struct task *t, struct sql_pool *sql, int64_t uid, struct cache_record *out);

struct cache_kind {
    const char *name; /* for metrics: "user" */
    struct str (*key)(struct arena *a, int64_t uid);
    cache_load *load;
    bool of_admin; /* uid is an admin's, who has no deadline: the record has a TTL, CACHE_EXP_MS */
};

/* One load at a time per key and node: whoever comes meanwhile waits for it. */
MUST_CHECK int cache_get(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid,
                         struct cache_record *out);

/* In the transaction that changes a row or ends a session of the user. */
MUST_CHECK int cache_mark_stale(struct task *t, struct sql *c, int64_t uid);
MUST_CHECK int cache_mark_stale_admin(struct task *t, struct sql *c, int64_t uid); /* of an admin */
/* After it: tells Redis the new version, then settles the user. An error leaves the mark: what is
 * stale is dropped by whoever drains it, and read from MySQL until then. */
MUST_CHECK int cache_changed(struct task *t, struct cache *c, const struct cache_kind *k,
                             int64_t uid, int64_t version);
/* Drops what Redis holds of a marked user or admin, sessions too, and takes the mark away unless it
 * was raised meanwhile: a mark does not tell which of several changes it stands for. Nothing to do
 * where there is no mark. For changes without a version; cache_task does the same within a second. */
MUST_CHECK int cache_settle(struct task *t, struct cache *c, int64_t uid);
MUST_CHECK int cache_settle_admin(struct task *t, struct cache *c, int64_t uid);

/* All sessions of a user leave Redis, with their set, and are read from MySQL when they are used
 * again. For whoever ends a user's stay there: a session whose set is gone could not be found, and
 * dropped, when it has ended. */
MUST_CHECK int cache_drop_sessions(struct task *t, struct cache *c, int64_t uid);

/* Renews the user's deadline; cheap, most calls do nothing. Every record that cache_get fills has
 * one, and whoever puts something else of a user into Redis calls this first. */
void cache_touch(struct task *t, struct cache *c, int64_t uid);

/* Redis answers, and everything that was changed while it did not has been dropped from it. */
bool cache_trusts_redis(const struct cache *c);
/* For ever: drains cache_stale, and does so before Redis is trusted again after it was away. A
 * task_fn with a struct cache. */
void cache_task(struct task *t, void *arg);
#endif
