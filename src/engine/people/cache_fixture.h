/* cache_fixture.h -- what the tests of the cache, which run through users, have in common: a real
 * MariaDB, a real Redis with its AOF, nodes, and a kind of record whose loads can be counted,
 * slowed down and made to fail. */
#ifndef ENGINE_PEOPLE_CACHE_FIXTURE_H
#define ENGINE_PEOPLE_CACHE_FIXTURE_H

#include "base/log.h"
#include "engine/people/user.h"
#include "engine/setup/schema.h"
#include "engine/store/cache.h"
#include "engine/store/keys.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

#define PATIENCE_MS 20000
#define COMMAND_MS  1500

static struct mariadb server;
static struct store_redis store;
static struct metrics *metrics;
static const char *const store_args[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

struct node {
    struct group links, tasks;
    struct redis *redis;
    struct sql_pool *sql;
    struct cache *cache;
};

static inline void open_node(struct task *t, struct node *n)
{
    group_init(&n->links, task_loop(t));
    group_init(&n->tasks, task_loop(t));
    n->redis = redis_open(
        &n->links,
        &(struct redis_options){.url = store.url_unix, .name = "hot", .command_ms = COMMAND_MS});
    check(n->redis);
    n->sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    n->cache =
        cache_new(&(struct cache_options){.redis = n->redis, .sql = n->sql, .metrics = metrics});
}

static inline void close_node(struct task *t, struct node *n)
{
    group_cancel(&n->tasks);
    check(group_join(t, &n->tasks) == 0);
    cache_free(n->cache);
    sql_pool_free(n->sql);
    redis_close(n->redis);
    check(group_join(t, &n->links) == 0);
}

static inline bool await_trust(struct task *t, const struct node *n)
{
    for (int ms = 0; ms < PATIENCE_MS && !cache_trusts_redis(n->cache); ms += 5)
        check(task_sleep(t, 5) == 0);
    return cache_trusts_redis(n->cache);
}

static inline void start_node(struct task *t, struct node *n)
{
    role_in(&n->tasks, cache_role, n->cache, CACHE_LOOK_EACH_MS);
    check(await_trust(t, n));
}

/* --- what is in MySQL --- */

static inline void sql_do(struct task *t, struct node *n, const char *statement)
{
    check(sql_call(t, n->sql, NULL, statement) == 0);
}

static inline int64_t sql_number(struct task *t, struct node *n, const char *statement)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, statement) == 0);
    return r.count ? r.cells[0].i : -1;
}

static inline int64_t marks(struct task *t, struct node *n)
{
    return sql_number(t, n, "SELECT COUNT(*) FROM cache_stale");
}

/* Nothing in either store but the users 1 to 9, with version 0 and permission 10 times uid. */
static inline void reset(struct task *t, struct node *n)
{
    check(redis_call(t, n->redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    sql_do(t, n, "DELETE FROM cache_stale");
    sql_do(t, n, "DELETE FROM admin_info");
    sql_do(t, n, "DELETE FROM user_info");
    sql_do(t, n,
           "INSERT INTO user_info (uid, username, username_folded, password, permission)"
           " SELECT seq, CONCAT('User', seq), CONCAT('user', seq), 'hash', seq * 10"
           " FROM seq_1_to_9");
}

static inline void open_started(struct task *t, struct node *n)
{
    open_node(t, n);
    reset(t, n);
    start_node(t, n);
}

static inline int user_set_permission(struct task *t, struct cache *c, int64_t uid, int64_t n)
{
    return user_change(t, c,
                       &(struct user_change){.uid = uid, .part = USER_PERMISSION, .number = n});
}

static inline int user_set_banned(struct task *t, struct cache *c, int64_t uid, bool banned)
{
    return user_change(t, c,
                       &(struct user_change){.uid = uid, .part = USER_BANNED, .number = banned});
}

/* --- what is in Redis --- */

#define say(t, n, ...) said((t), redis_call((t), (n)->redis, STR_NULL, &reply_, __VA_ARGS__))
static const struct redis_reply *reply_;
static inline const struct redis_reply *said(struct task *t, int err)
{
    if (err)
        printf("# Redis: %s\n", task_error(t));
    check(err == 0);
    return reply_;
}

/* --- a kind of record --- */

static struct {
    int64_t loads;
    int64_t slow_ms; /* between reading the row and giving it */
    int fails;       /* so many loads more end with ERR_UNAVAILABLE */
    void (*then)(struct task *t, int64_t uid);
} probe;

struct seen {
    int err;
    int64_t permission, version;
    bool degraded;
};

static inline int probe_load(struct task *t, struct sql_pool *sql, const struct cache_kind *k,
                             int64_t uid, void *out)
{
    struct seen found;
    probe.loads++;
    int err = cache_find(t, sql, k, "uid", sql_int(uid), &found);
    int64_t slow_ms = probe.slow_ms;
    if ((!err || err == ERR_NOT_FOUND) && slow_ms && task_sleep(t, slow_ms))
        return ERR_CANCELED;
    if (!err && probe.fails > 0) {
        probe.fails--;
        err = task_fail(t, ERR_UNAVAILABLE, "made to fail");
    }
    if (err)
        return err;
    if (probe.then)
        probe.then(t, uid);
    *(struct seen *)out = found;
    return 0;
}

static const struct record_column probe_columns[] = {
    {"permission", NULL, RECORD_INT, .at = offsetof(struct seen, permission)},
    {"version", NULL, RECORD_INT, .at = offsetof(struct seen, version)},
    {.type = RECORD_END},
};
static const struct cache_kind probe_kind = {
    .owner = &cache_users,
    .record = {"user_info", probe_columns, sizeof(struct seen)},
    .version_at = offsetof(struct seen, version),
    .degraded_at = offsetof(struct seen, degraded),
    .load = probe_load,
};

static inline struct seen get(struct task *t, struct node *n, int64_t uid)
{
    struct seen s = {.permission = -1, .version = -1};
    int err = cache_get(t, n->cache, &probe_kind, uid, &s);
    s.err = err;
    return s;
}

/* The same in a task of its own. */
struct getter {
    struct node *node;
    struct task *task; /* while it runs */
    int64_t uid;
    bool done;
    struct seen seen;
};
static inline void get_task(struct task *t, void *arg)
{
    struct getter *g = arg;
    g->task = t;
    g->seen = get(t, g->node, g->uid);
    g->task = NULL;
    g->done = true;
}

static inline int64_t counted(const char *name)
{
    return *metric(metrics, METRIC_COUNTER, name, "kind=\"user\"", "");
}

static inline void migrate(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    struct schema_report r;
    check(schema_migrate(t, p, &r) == 0);
    sql_pool_free(p);
}

static inline int run_tests(void (*const *tests)(struct task *t, void *arg), size_t count)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    metrics = metrics_open(-1, 1, 0);
    mariadb_start(&server, NULL);
    store_redis_start(&store, store_args);
    tap_task(migrate, NULL, true);
    for (size_t i = 0; i < count; i++) {
        probe.loads = probe.slow_ms = probe.fails = 0;
        probe.then = NULL;
        tap_task(tests[i], NULL, true);
    }
    store_redis_stop(&store);
    mariadb_release(&server);
    metrics_close(metrics);
    return tap_done();
}
#endif
