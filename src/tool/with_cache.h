/* with_cache.h -- for commands that change what a running server keeps in Redis. */
#ifndef TOOL_WITH_CACHE_H
#define TOOL_WITH_CACHE_H

#include "engine/store/cache.h"
#include "tool/db/db.h"

/* Runs body with a cache on the stores of d (db_run_redis) that has settled, or has given that up:
 * Redis is told then by a server. The result is body's. */
int with_cache(struct task *t, struct db *d,
               int (*body)(struct task *t, struct db *d, struct cache *c));
#endif
