/* sql_harness.h -- for tests: a real database, pools, and a watch on the loop. */
#ifndef WIRE_SQL_HARNESS_H
#define WIRE_SQL_HARNESS_H

#include "tests/mariadb.h"
#include "tests/tap.h"
#include "wire/sql/sql_conn.h"

extern struct mariadb server;

/* Starts the server, runs each test on real time, and returns the program's exit status. */
int run_tests(const struct mariadb_options *o, size_t n, task_fn *const *tests);

/* A pool of the server's; o.url may be another one. */
struct sql_pool *pool_with(struct task *t, struct sql_options o);
struct sql_pool *pool_of(struct task *t, size_t connections);

int64_t now(struct task *t); /* milliseconds, read now */
int64_t number(struct task *t, struct sql_pool *p, const char *statement); /* its only value */

/* The longest time the loop stood still, as seen by tick_task. */
struct tick {
    int64_t last, gap_max;
};
void tick_task(struct task *t, void *tick);
#endif
