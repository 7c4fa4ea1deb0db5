/* pool_fixture.h -- what the tests of pools have in common: a real MariaDB, real Redis servers, and
 * nodes. A node here is what pools need of one. */
#ifndef APP_POOL_POOL_FIXTURE_H
#define APP_POOL_POOL_FIXTURE_H

#include <signal.h>
#include <stdlib.h>

#include "app/pool/pools_private.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "engine/setup/schema.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

static struct mariadb server;
static struct store_redis store;
static struct metrics *metrics;

struct node {
    struct group links, tasks;
    struct redis *redis;
    struct sql_pool *sql;
    struct pools *pools;
};

static inline void open_node_on(struct task *t, struct node *n, const struct store_redis *redis)
{
    group_init(&n->links, task_loop(t));
    group_init(&n->tasks, task_loop(t));
    n->redis = redis_open(
        &n->links, &(struct redis_options){.url = redis->url_unix, .name = "hot", .quiet = true});
    n->sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url, .quiet = true});
    n->pools = pools_new(&(struct pools_options){
        .redis = n->redis, .sql = n->sql, .group = &n->tasks, .metrics = metrics, .rest_ms = 300});
    while (!redis_up(n->redis))
        check(task_sleep(t, 2) == 0);
}

static inline void open_node(struct task *t, struct node *n)
{
    open_node_on(t, n, &store);
}

/* As a node that is killed: nothing is told to anyone. */
static inline void close_node(struct task *t, struct node *n)
{
    group_cancel(&n->tasks);
    check(group_join(t, &n->tasks) == 0);
    pools_free(n->pools);
    sql_pool_free(n->sql);
    redis_close(n->redis);
    check(group_join(t, &n->links) == 0);
}

static inline void empty_mysql(struct task *t, struct node *n)
{
    static const char *const all[] = {"DELETE FROM titles",       "DELETE FROM contents",
                                      "DELETE FROM pool_group",   "DELETE FROM pool_list",
                                      "DELETE FROM pool_request", "DELETE FROM pool_batch",
                                      "DELETE FROM pool_run"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check(sql_call(t, n->sql, NULL, all[i]) == 0);
}

/* With nothing in either store. */
static inline void open_empty(struct task *t, struct node *n)
{
    open_node(t, n);
    check(redis_call(t, n->redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    empty_mysql(t, n);
}

static inline void make_tables(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct schema_report r;
    open_node(t, &n);
    check(schema_migrate(t, n.sql, &r) == 0);
    close_node(t, &n);
}

static inline void start_stores(void)
{
    static const char *const options[] = {"--innodb-buffer-pool-size=128M", NULL};
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    metrics = metrics_open(-1, 1, 0);
    mariadb_start(&server, &(struct mariadb_options){.args = options});
    store_redis_start(&store, NULL);
    tap_task(make_tables, NULL, true);
}

static inline int stop_stores(void)
{
    store_redis_stop(&store);
    mariadb_release(&server);
    metrics_close(metrics);
    return tap_done();
}

/* --- what is in MySQL --- */

/* Titles "<batch>-1" to "<batch>-<count>". */
static inline void add_items(struct task *t, struct node *n, int64_t group, int64_t batch,
                             int64_t count)
{
    check(sql_call(t, n->sql, NULL,
                   "INSERT INTO titles (group_id, batch_id, title)"
                   " SELECT ?, ?, CONCAT(?, '-', seq) FROM seq_1_to_1000000 WHERE seq <= ?",
                   sql_int(group), sql_int(batch), sql_int(batch), sql_int(count)) == 0);
}

static inline int64_t sql_number(struct task *t, struct node *n, const char *statement,
                                 int64_t value)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, statement, sql_int(value)) == 0 && r.count == 1);
    return r.cells[0].i;
}

static inline void sql_do(struct task *t, struct node *n, const char *statement, int64_t value)
{
    check(sql_call(t, n->sql, NULL, statement, sql_int(value)) == 0);
}

static inline int64_t of_status(struct task *t, struct node *n, int64_t status)
{
    return sql_number(t, n, "SELECT COUNT(*) FROM titles WHERE status = ?", status);
}

static inline int64_t limit_of(struct task *t, struct node *n, int64_t group)
{
    return sql_number(t, n, "SELECT handed_limit FROM pool_list WHERE group_id = ?", group);
}

/* --- what is in Redis --- */

static inline int64_t list_length(struct task *t, struct node *n, int64_t group)
{
    const struct redis_reply *r;
    struct str key = key_pool(task_arena(t), "titles", group);
    check(redis_call(t, n->redis, key, &r, STR("LLEN"), key) == 0);
    return r->integer;
}

static inline int64_t state_of(struct task *t, struct node *n, int64_t group, const char *field)
{
    const struct redis_reply *r;
    struct str key = key_pool_state(task_arena(t), "titles", group);
    check(redis_call(t, n->redis, key, &r, STR("HGET"), key, str_of(field)) == 0);
    return redis_number(r, -1);
}

static inline void await_redis(struct task *t, struct node *n)
{
    while (!redis_up(n->redis))
        check(task_sleep(t, 2) == 0);
}

/* Comes back as it was when it last wrote its file; without one, empty. */
static inline void kill_redis(struct task *t, struct node *n)
{
    store_redis_kill(&store);
    while (redis_up(n->redis))
        check(task_sleep(t, 2) == 0);
}

static inline void revive_redis(struct task *t, struct node *n)
{
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    await_redis(t, n);
}

/* --- popping --- */

static inline struct pool_id titles(int64_t group)
{
    return (struct pool_id){&pool_types[0], group};
}

static inline int pop_as(struct task *t, struct node *n, int64_t group, int64_t count, int64_t uid,
                         const char *request, struct pool_items *out)
{
    struct pool_wish w = {
        .pool = titles(group), .count = count, .uid = uid, .request = str_of(request)};
    return pool_pop(t, n->pools, &w, out);
}

static inline int pop(struct task *t, struct node *n, int64_t group, int64_t count,
                      struct pool_items *out)
{
    return pop_as(t, n, group, count, 1, NULL, out);
}

/* The texts, with spaces between. */
static inline struct str texts(struct task *t, const struct pool_items *items)
{
    const struct json *list;
    struct buf b;
    buf_init(&b);
    check(json_parse(task_arena(t), items->json, &list, NULL) == 0);
    json_each (it, list) {
        if (b.len)
            buf_add_char(&b, ' ');
        buf_add_str(&b, json_str(json_get(it, "text")));
    }
    struct str s = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return s;
}

static inline struct str pop_texts(struct task *t, struct node *n, int64_t group, int64_t count)
{
    struct pool_items items;
    int err = pop(t, n, group, count, &items);
    return err ? str_of(err_name(err)) : texts(t, &items);
}

/* Ids that were handed out, each once; twice is counted. */
struct tally {
    struct map *ids;
    int64_t items, twice, failed;
};

static inline void tally_items(struct task *t, struct tally *y, const struct pool_items *items)
{
    const struct json *list;
    check(json_parse(task_arena(t), items->json, &list, NULL) == 0);
    json_each (it, list) {
        int64_t id = 0;
        check(json_int(json_get(it, "id"), &id));
        y->items++;
        y->twice += !map_add(y->ids, str_int(task_arena(t), id));
    }
}

/* One client: pops until the group is empty, or until told to stop. */
struct client {
    struct node *node;
    struct tally *tally;
    int64_t group, count;
    const bool *stop;
};

static inline void client_task(struct task *t, void *arg)
{
    const struct client *c = arg;
    int err = 0;
    while (err != ERR_CONFLICT && !(c->stop && *c->stop) && !task_canceled(t)) {
        struct task_scope s = task_scope(t);
        struct pool_items items;
        err = pop(t, c->node, c->group, c->count, &items);
        if (!err)
            tally_items(t, c->tally, &items);
        else if (err != ERR_CONFLICT)
            c->tally->failed++;
        if (err && err != ERR_CONFLICT)
            check(task_sleep(t, 5) == 0 || task_canceled(t));
        task_scope_end(t, s);
    }
}
#endif
