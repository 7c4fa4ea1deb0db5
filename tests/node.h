/* node.h -- real stores, and what a node has over them, for the tests of applications that have
 * jobs: a fixture adds its application between node_open and node_trust, and frees it between
 * node_end and node_release. */
#ifndef TESTS_NODE_H
#define TESTS_NODE_H

#include <stdio.h>

#include "base/log.h"
#include "engine/jobs/jobs.h"
#include "engine/money/ledger.h"
#include "engine/runs/run.h"
#include "engine/setup/config.h"
#include "engine/setup/node.h"
#include "engine/setup/schema.h"
#include "engine/store/amount.h"
#include "engine/store/cache.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

static struct mariadb server;
static struct store_redis store;
static struct metrics *metrics;
static struct arena forever;
static struct config config;

struct test_node {
    struct node *node;
    struct group *links, *tasks; /* connections; all others */
    struct runs *runs;
};

static inline void pause_ms(struct task *t, int64_t ms)
{
    check(task_sleep(t, ms) == 0);
}

static inline void node_open(struct task *t, const struct test_node *x)
{
    struct node *n = x->node;
    *n = (struct node){.loop = task_loop(t), .metrics = metrics, .config = &config};
    group_init(x->links, task_loop(t));
    group_init(x->tasks, task_loop(t));
    n->group = x->tasks;
    n->redis = redis_open(
        x->links, &(struct redis_options){.url = store.url_unix, .name = "hot", .quiet = true});
    n->sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url, .quiet = true});
    n->cache = cache_new(&(struct cache_options){.redis = n->redis, .sql = n->sql});
    n->ledger = ledger_new(&(struct ledger_options){.redis = n->redis,
                                                    .sql = n->sql,
                                                    .cache = n->cache,
                                                    .metrics = metrics,
                                                    .group = n->group});
    n->jobs = jobs_new(&(struct jobs_options){.redis = n->redis,
                                              .sql = n->sql,
                                              .metrics = metrics,
                                              .incarnation = loop_random(task_loop(t))});
    *x->runs =
        (struct runs){.redis = n->redis, .sql = n->sql, .cache = n->cache, .ledger = n->ledger};
    n->runs = x->runs;
}

/* Until records are read from Redis. */
static inline void node_trust(struct task *t, const struct test_node *x)
{
    role_in(x->tasks, cache_role, x->node->cache, 10);
    while (!cache_trusts_redis(x->node->cache))
        pause_ms(t, 2);
}

static inline void node_end(struct task *t, const struct test_node *x)
{
    group_cancel(x->tasks);
    check(group_join(t, x->tasks) == 0);
    jobs_free(x->node->jobs);
}

static inline void node_release(struct task *t, const struct test_node *x)
{
    struct node *n = x->node;
    ledger_free(n->ledger);
    cache_free(n->cache);
    sql_pool_free(n->sql);
    redis_close(n->redis);
    check(group_join(t, x->links) == 0);
}

/* --- stores --- */

static inline void make_tables(struct task *t, void *arg)
{
    (void)arg;
    struct schema_report r;
    struct sql_pool *sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    check(schema_migrate(t, sql, &r) == 0);
    sql_pool_free(sql);
}

static inline void start_stores(void)
{
    const char *why = "";
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    arena_init(&forever);
    check(config_parse(&forever, "test", STR_NULL, NULL, &config, &why) == 0);
    metrics = metrics_open(-1, 1, 0);
    mariadb_start(&server, NULL);
    store_redis_start(&store, NULL);
    tap_task(make_tables, NULL, true);
}

static inline int stop_stores(void)
{
    store_redis_stop(&store);
    mariadb_release(&server);
    metrics_close(metrics);
    arena_release(&forever);
    return tap_done();
}

/* --- users --- */

static inline int64_t node_user(struct task *t, struct sql_pool *sql, int64_t cents)
{
    static int names;
    struct sql_rows r;
    struct str name = str_printf(task_arena(t), "user%d", names++);
    check(sql_call(t, sql, &r,
                   "INSERT INTO user_info (username, username_folded, password, balance, move_no,"
                   " permission) VALUES (?, ?, '', ?, 1, 5)",
                   sql_text(name), sql_text(name),
                   sql_text(amount_decimal(task_arena(t), cents))) == 0);
    int64_t uid = (int64_t)r.insert_id;
    check(sql_call(t, sql, NULL,
                   "INSERT INTO billing_log (uid, source, number, kind, cents, at)"
                   " VALUES (?, 'mysql', 1, 'opening', ?, UTC_TIMESTAMP(3))",
                   sql_int(uid), sql_int(cents)) == 0);
    return uid;
}
#endif
