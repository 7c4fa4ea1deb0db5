/* redis_harness.h -- for tests: a real server and a handle to it. */
#ifndef WIRE_REDIS_HARNESS_H
#define WIRE_REDIS_HARNESS_H

#include "tests/store.h"
#include "wire/redis.h"

struct fixture {
    struct store_redis store;
    struct metrics *metrics;
    struct group group; /* of the handle */
    struct redis *redis;
};

/* A handle "hot"; over the unix socket unless o has a URL. */
void open_with(struct task *t, struct fixture *f, struct redis_options o);
void close_redis(struct task *t, struct fixture *f);

/* Runs fn with a fixture as arg; extra: arguments of the server, up to NULL, or NULL. */
void with_server(task_fn *fn, const char *const *extra);
#endif
