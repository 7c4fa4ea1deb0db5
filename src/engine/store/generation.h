/* generation.h -- which process of Redis data was read from.
 *
 * A Redis that was restarted may have come back older than it was, or empty; so may another server
 * behind the same address. Redis names each of its processes by a random run id: that is the
 * *generation* here ("run" is a query of a user). What was read from one generation says nothing
 * about the next. Code that keeps such a value across a wait keeps the generation with it, and
 * compares before use; scripts compare it themselves (GENERATION, see scripts.py). docs/restart.md
 * describes what happens when it changes.
 *
 * On a cluster each master is a process of its own. generation_at and its like ask about the master
 * that has a key: that is what GENERATION is in a script about this key. Those without a key ask
 * about all masters together: another generation as soon as one of them is another process, and
 * none while one is away. Never compare one kind with the other. */
#ifndef ENGINE_STORE_GENERATION_H
#define ENGINE_STORE_GENERATION_H

#include <string.h>

#include "wire/redis.h"

#define GENERATION_BYTES 41 /* 40 hex digits and a NUL */

struct generation {
    char id[GENERATION_BYTES]; /* "": not known */
};

static inline struct str generation_str(const struct generation *g)
{
    return str_of(g->id);
}

static inline struct generation generation_of(struct str id)
{
    struct generation g = {""};
    if (id.n < GENERATION_BYTES)
        memcpy(g.id, id.p, id.n);
    return g;
}

/* Of the server that r is connected to; "" while it is connected to none. */
static inline struct generation generation_now(const struct redis *r)
{
    return generation_of(redis_run_id(r));
}

static inline struct generation generation_at(const struct redis *r, struct str key)
{
    return generation_of(redis_run_id_at(r, key));
}

/* r is connected to the server that id names. */
static inline bool generation_is(const struct redis *r, struct str id)
{
    return id.n > 0 && str_eq(id, redis_run_id(r));
}

static inline bool generation_is_at(const struct redis *r, struct str key, struct str id)
{
    return id.n > 0 && str_eq(id, redis_run_id_at(r, key));
}

/* r is connected to the server that it was when g was taken. */
static inline bool generation_lasts(const struct redis *r, const struct generation *g)
{
    return generation_is(r, generation_str(g));
}

static inline bool generation_lasts_at(const struct redis *r, struct str key,
                                       const struct generation *g)
{
    return generation_is_at(r, key, generation_str(g));
}
#endif
