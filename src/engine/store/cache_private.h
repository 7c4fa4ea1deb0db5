/* cache_private.h -- what the files of the cache share. */
#ifndef ENGINE_STORE_CACHE_PRIVATE_H
#define ENGINE_STORE_CACHE_PRIVATE_H

#include "base/map.h"
#include "engine/store/cache.h"
#include "engine/store/generation.h"
#include "loop/sync.h"

#define CACHE_KINDS_MAX   8
#define CACHE_TOUCHED_MAX 4096

struct cache {
    struct redis *redis;
    struct sql_pool *sql;
    struct metrics *metrics;
    struct cache_counts counts[CACHE_KINDS_MAX];
    int64_t *degraded;
    struct map *flights; /* key -> struct flight: what is being loaded now */

    /* Connection to Redis on which all marks were drained; 0: none. The generation would not do:
     * while this node is cut off, it cannot write changes to the same server. */
    uint64_t drained_epoch, tried_epoch;
    int64_t drain_due_ms;
    bool said_trusted;
    struct generation vetted; /* all of its records are trusted, or marked */

    /* When a user's deadline was last renewed; a user replaces another one with the same index. */
    struct {
        int64_t uid, at_ms;
    } touched[CACHE_TOUCHED_MAX];
    struct generation touched_at;
};

struct cache_counts *cache_counts(struct cache *c, const struct cache_owner *o);
/* Calls that begin after this do not join the load that is under way. */
void cache_outdate(struct cache *c, struct str key);
/* Renews the deadline in Redis, unless the owner has none or that was done within minutes. */
MUST_CHECK int cache_renew(struct task *t, struct cache *c, const struct cache_owner *o,
                           int64_t uid);
void cache_note_trust(struct cache *c); /* in the metrics */
#endif
