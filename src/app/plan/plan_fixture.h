/* plan_fixture.h -- what the tests of plans have in common: real stores, a node, a made-up AI. */
#ifndef APP_PLAN_PLAN_FIXTURE_H
#define APP_PLAN_PLAN_FIXTURE_H

#include <stdio.h>
#include <unistd.h>

#include "app/plan/plans_private.h"
#include "app/plan/template.h"
#include "base/log.h"
#include "engine/money/ledger.h"
#include "engine/runs/run.h"
#include "engine/setup/config.h"
#include "engine/setup/schema.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

#define START "2026-03-02"

static struct mariadb server;
static struct store_redis store;
static struct metrics *metrics;
static struct arena forever;
static struct config config;

struct world {
    struct group links, tasks;
    struct node node;
    struct runs runs;
    struct plans *plans;
};

static inline void pause_ms(struct task *t, int64_t ms)
{
    check(task_sleep(t, ms) == 0);
}

static inline void await_trust(struct task *t, struct world *w)
{
    while (!plans_trust(w->plans) || !cache_trusts_redis(w->node.cache))
        pause_ms(t, 2);
}

static inline void open_world(struct task *t, struct world *w)
{
    *w = (struct world){.node = {.loop = task_loop(t), .metrics = metrics, .config = &config}};
    struct node *n = &w->node;
    group_init(&w->links, task_loop(t));
    group_init(&w->tasks, task_loop(t));
    n->group = &w->tasks;
    n->redis = redis_open(
        &w->links, &(struct redis_options){.url = store.url_unix, .name = "hot", .quiet = true});
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
    n->plan_templates = plan_templates_new(
        &(struct plan_templates_options){.redis = n->redis, .sql = n->sql, .metrics = metrics});
    w->runs =
        (struct runs){.redis = n->redis, .sql = n->sql, .cache = n->cache, .ledger = n->ledger};
    n->runs = &w->runs;
    n->plans = w->plans = plans_new(n);
    w->plans->kind.calls_ai = false; /* what claims do is tested with them */
    role_in(&w->tasks, cache_role, n->cache, 10);
    role_in(&w->tasks, plans_role, w->plans, 10);
    role_in(&w->tasks, plan_templates_role, n->plan_templates, 10);
    await_trust(t, w);
}

static inline void close_world(struct task *t, struct world *w)
{
    struct node *n = &w->node;
    group_cancel(&w->tasks);
    check(group_join(t, &w->tasks) == 0);
    jobs_free(n->jobs);
    plans_free(w->plans);
    plan_templates_free(n->plan_templates);
    ledger_free(n->ledger);
    cache_free(n->cache);
    sql_pool_free(n->sql);
    redis_close(n->redis);
    check(group_join(t, &w->links) == 0);
}

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

static inline int64_t add_user(struct task *t, struct world *w, int64_t cents)
{
    static int names;
    struct sql_rows r;
    struct str name = str_printf(task_arena(t), "user%d", names++);
    check(sql_call(t, w->node.sql, &r,
                   "INSERT INTO user_info (username, username_folded, password, balance, move_no,"
                   " permission) VALUES (?, ?, '', ?, 1, 5)",
                   sql_text(name), sql_text(name),
                   sql_text(amount_decimal(task_arena(t), cents))) == 0);
    int64_t uid = (int64_t)r.insert_id;
    check(sql_call(t, w->node.sql, NULL,
                   "INSERT INTO billing_log (uid, source, number, kind, cents, at)"
                   " VALUES (?, 'mysql', 1, 'opening', ?, UTC_TIMESTAMP(3))",
                   sql_int(uid), sql_int(cents)) == 0);
    return uid;
}

/* --- MySQL, Redis --- */

static inline struct str sql_word(struct task *t, struct world *w, const char *statement,
                                  struct str value)
{
    struct sql_rows r;
    check(sql_call(t, w->node.sql, &r, statement, sql_text(value)) == 0);
    if (r.count == 0)
        return STR("(none)");
    return r.cells[0].type == SQL_INT ? str_int(task_arena(t), r.cells[0].i) : r.cells[0].s;
}

static inline void sql_do(struct task *t, struct world *w, const char *statement, struct str value)
{
    int err = sql_call(t, w->node.sql, NULL, statement, sql_text(value));
    if (err)
        printf("# %s: %s\n", statement, task_error(t));
    check(err == 0);
}

static inline struct str ask_redis(struct task *t, struct world *w, struct str word, struct str key,
                                   const char *field)
{
    const struct redis_reply *r;
    const struct str argv[] = {word, key, str_of(field)};
    check(redis_argv(t, w->node.redis, key, field ? 3 : 2, argv, &r) == 0);
    return r->type == REDIS_INT ? str_int(task_arena(t), r->integer) : r->str;
}

/* --- a made-up AI --- */

/* What is right for the frame. */
static inline struct str made_up(struct arena *a, const struct plan_frame *f)
{
    struct buf b;
    buf_init(&b);
    bool training = f->kind == PLAN_TRAINING;
    buf_add_str(&b, training ? STR("{\"name\":\"Strong\",\"difficulty\":\"medium\",\"days\":[")
                             : STR("{\"name\":\"Lean\",\"daily_calories\":2000,\"macro_ratio\":"
                                   "{\"protein\":0.35,\"carbs\":0.4,\"fat\":0.25},\"days\":["));
    for (int64_t i = 0; i < f->weeks * 7; i++) {
        struct str date = plan_date(a, f, i);
        buf_printf(&b, "%s{\"date\":\"%.*s\",", i ? "," : "", STR_ARG(date));
        if (training)
            buf_printf(&b, "\"day_type\":\"strength\",\"focus_area\":\"lower_body\",\"exercises\":["
                           "{\"name\":\"squat\",\"sets\":4,\"reps\":12,\"weight\":\"70kg\","
                           "\"rest\":\"90s\",\"difficulty\":\"medium\"}],\"duration\":60,"
                           "\"estimated_calories\":350}");
        else
            buf_printf(&b, "\"target_calories\":2000,\"target_protein\":175,\"target_carbs\":200,"
                           "\"target_fat\":56,\"meals\":{\"breakfast\":[{\"name\":\"oats\","
                           "\"calories\":2000,\"protein\":175,\"carbs\":200,\"fat\":56}],"
                           "\"lunch\":[],\"dinner\":[],\"snacks\":[]}}");
    }
    buf_add_str(&b, STR("]}"));
    struct str s = str_dup(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static inline void shape_of(struct arena *a, const struct plan_frame *f, struct plan_shape *out)
{
    const char *complaint = "";
    int err = plan_shape_read(a, f, made_up(a, f), out, &complaint);
    if (err)
        printf("# %s\n", complaint);
    check(err == 0);
}
#endif
