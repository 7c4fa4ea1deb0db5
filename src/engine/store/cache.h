/* cache.h -- rows of MySQL that live in Redis as hashes: Redis first, then MySQL, then fill.
 *
 * A record is a hash with a field "version", which counts the changes of its row. How a slow loader
 * is kept from bringing an old row back (ACC-2):
 *
 *   1. a change of the row is committed in MySQL, with version + 1;
 *   2. then cache_changed leaves the new version in Redis, alone, also where nothing was: a hash
 *      with nothing but a version counts as missing;
 *   3. a fill is a script that refuses a row whose version is lower than what it finds.
 *
 * A record of a user has no native TTL: access renews the user's deadline (EXP, 8 hours), and the
 * sweeper evicts users whose deadline is over. Admins have no deadline; their records have a TTL.
 *
 * When Redis does not answer, records come from MySQL, marked degraded, and nothing is filled.
 * Changes cannot be written to Redis then, so table cache_stale is an outbox: the transaction that
 * changes a row also marks its owner there (cache_mark_stale), and once Redis is back nothing of a
 * marked owner is read from it before that was dropped. A Redis that was restarted may have lost
 * its last second: then every user that has a deadline there counts as changed. */
#ifndef ENGINE_STORE_CACHE_H
#define ENGINE_STORE_CACHE_H

#include "base/metrics.h"
#include "engine/store/record.h"
#include "engine/store/role.h"

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

/* Metrics of one kind of cached row: millrace_cache_…_total{kind="…"}. m may be NULL. */
struct cache_counts {
    const char *name; /* of the kind */
    int64_t *hits, *misses, *loads, *drops;
};
struct cache_counts cache_counts_new(struct metrics *m, const char *kind);

/* What owns records and sessions: users and admins. */
struct cache_owner {
    const char *name; /* "user": in metrics, and in tables cache_stale and session */
    struct str (*info)(struct arena *a, int64_t uid);
    struct str (*sessions)(struct arena *a, int64_t uid); /* set: the sids */
    struct str (*session)(struct arena *a, struct str sid);
    int64_t ttl_ms; /* of its record; 0: the owner has a deadline */
};
extern const struct cache_owner cache_users, cache_admins;

/* A kind of record, one for each owner of that kind. */
struct cache_kind {
    const struct cache_owner *owner;
    struct record_kind record; /* with an INT of the field "version" */
    size_t version_at,
        degraded_at; /* offsetof in the struct. bool degraded: read from MySQL because
                                       Redis does not answer */
    /* NULL, or a slower cache_find by uid, for tests. */
    int (*load)(struct task *t, struct sql_pool *sql, const struct cache_kind *k, int64_t uid,
                void *out);
};

/* Into *out, with texts in the task's arena. Singleflight: one load at a time per key and node.
 * ERR_NOT_FOUND. */
MUST_CHECK int cache_get(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid,
                         void *out);
/* From MySQL: the row WHERE column = id. ERR_NOT_FOUND. */
MUST_CHECK int cache_find(struct task *t, struct sql_pool *sql, const struct cache_kind *k,
                          const char *column, struct sql_value id, void *out);
int cache_none(struct task *t, const struct cache_kind *k); /* ERR_NOT_FOUND, with its text */

/* What Redis has under a key, for records that are loaded and filled by other rules. */
enum cache_found {
    CACHE_FOUND,
    CACHE_ENDED,   /* a tombstone: a hash with the field "ended" */
    CACHE_NOTHING, /* or something that is no record of this kind */
    CACHE_AWAY,    /* Redis does not answer, or is not trusted */
};
MUST_CHECK int cache_look(struct task *t, struct cache *c, const struct record_kind *k,
                          struct str key, enum cache_found *found, void *out);

/* In the transaction that changes a row or ends a session of the owner. */
MUST_CHECK int cache_mark_stale(struct task *t, struct sql *c, const struct cache_owner *o,
                                int64_t uid);
/* After the commit: writes the new version to Redis, then settles the owner. If that fails the mark
 * stays, and cache_role does both. */
#define CACHE_VERSION_GONE (1LL << 53) /* of a row that was deleted; exact in Lua, too */
void cache_changed(struct task *t, struct cache *c, const struct cache_owner *o, int64_t uid,
                   int64_t version);
/* Drops what Redis holds of a marked owner, sessions too, and takes the mark away unless it was
 * raised meanwhile: a mark does not show which of several changes it stands for. Does nothing where
 * there is no mark, so it is idempotent. For changes without a version; cache_role does the same
 * within a second. */
MUST_CHECK int cache_settle(struct task *t, struct cache *c, const struct cache_owner *o,
                            int64_t uid);

/* All sessions of a user leave Redis, with their set, and are read from MySQL when they are used
 * again. For the sweeper: a session whose set is gone could not be found, and dropped, when it has
 * ended. */
MUST_CHECK int cache_drop_sessions(struct task *t, struct cache *c, int64_t uid);

/* Renews the user's deadline; cheap, most calls do nothing. Every record that cache_get fills has
 * one; other code calls this before it puts something of a user into Redis. */
void cache_touch(struct task *t, struct cache *c, int64_t uid);

/* Redis answers, and everything that was changed while it did not has been dropped from it. */
bool cache_trusts_redis(const struct cache *c);
/* A store has failed; the task itself is neither canceled nor out of time. */
static inline bool cache_goes_on(const struct task *t)
{
    return !task_canceled(t) && task_time_left_ms(t) > 0;
}
/* Drains cache_stale, and does so before Redis is trusted again after it was unavailable. A role_fn
 * with a struct cache. */
#define CACHE_LOOK_EACH_MS 100 /* at the connection: it may be a new one */
role_fn cache_role;
#endif
