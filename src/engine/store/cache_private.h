/* cache_private.h -- what the files of the cache share. */
#ifndef ENGINE_STORE_CACHE_PRIVATE_H
#define ENGINE_STORE_CACHE_PRIVATE_H

#include "base/map.h"
#include "engine/store/cache.h"
#include "loop/sync.h"

/* A row that was deleted; no row has so many changes, and Lua's numbers are exact up to here. */
#define CACHE_VERSION_GONE (1LL << 53)
#define CACHE_KINDS_MAX    8
#define CACHE_TOUCHED_MAX  4096

struct cache_counts {
    const char *kind;
    int64_t *hits, *misses, *loads, *drops;
};

struct cache {
    struct redis *redis;
    struct sql_pool *sql;
    struct metrics *metrics;
    struct cache_counts counts[CACHE_KINDS_MAX];
    int64_t *degraded;
    int64_t unseen;      /* counts what nobody asks for */
    struct map *flights; /* key -> struct flight: what is being loaded now */

    uint64_t drained_epoch; /* connection to Redis on which all marks were drained; 0: none */
    uint64_t vetted_epoch;  /* connection whose server has been looked at */

    /* Whose deadline was renewed when; a newer user takes the place of an older one. */
    struct {
        int64_t uid, at_ms;
    } touched[CACHE_TOUCHED_MAX];
    uint64_t touched_epoch;
};

struct cache_counts *cache_counts(struct cache *c, const char *kind);
/* Whoever asks from now on does not get what is being loaded at this moment. */
void cache_outdate(struct cache *c, struct str key);
/* Renews the deadline in Redis, if it was not done within the last minutes. */
MUST_CHECK int cache_renew(struct task *t, struct cache *c, int64_t uid);
void cache_note_trust(struct cache *c); /* in the metrics */
#endif
