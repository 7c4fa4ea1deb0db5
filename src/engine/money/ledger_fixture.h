/* ledger_fixture.h -- what the tests of money have in common: a real MariaDB, a real Redis, nodes,
 * and the question whether every cent is where it belongs. */
#ifndef ENGINE_MONEY_LEDGER_FIXTURE_H
#define ENGINE_MONEY_LEDGER_FIXTURE_H

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/money/audit.h"
#include "engine/money/charge.h"
#include "engine/money/ledger_private.h"
#include "engine/setup/schema.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

static struct mariadb server;
static struct store_redis store;
static struct metrics *metrics;

struct node {
    struct group group, tasks;
    struct redis *redis;
    struct sql_pool *sql;
    struct cache *cache;
    struct ledger *ledger;
};

static inline void pause_ms(struct task *t, int64_t ms)
{
    check(task_sleep(t, ms) == 0);
}

static inline void await_redis(struct task *t, struct node *n)
{
    while (!cache_trusts_redis(n->cache))
        pause_ms(t, 2);
}

static inline void open_node(struct task *t, struct node *n)
{
    group_init(&n->group, task_loop(t));
    group_init(&n->tasks, task_loop(t));
    n->redis = redis_open(&n->group, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    check(n->redis);
    n->sql =
        sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url, .connections_max = 12});
    n->cache = cache_new(&(struct cache_options){.redis = n->redis, .sql = n->sql});
    n->ledger = ledger_new(&(struct ledger_options){.redis = n->redis,
                                                    .sql = n->sql,
                                                    .cache = n->cache,
                                                    .metrics = metrics,
                                                    .group = &n->tasks});
    role_in(&n->tasks, cache_role, n->cache, CACHE_LOOK_EACH_MS);
    await_redis(t, n);
}

static inline void close_node(struct task *t, struct node *n)
{
    group_cancel(&n->tasks);
    check(group_join(t, &n->tasks) == 0);
    ledger_free(n->ledger);
    cache_free(n->cache);
    sql_pool_free(n->sql);
    redis_close(n->redis);
    check(group_join(t, &n->group) == 0);
}

static inline int64_t counted(const char *name)
{
    return *metric(metrics, METRIC_COUNTER, name, "", "");
}

static inline int64_t alarms(void)
{
    return counted("millrace_ledger_alarms_total");
}

/* --- what is in MySQL --- */

static inline int64_t sql_number(struct task *t, struct node *n, const char *statement, int64_t uid)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, statement, sql_int(uid)) == 0 && r.count == 1);
    return r.cells[0].type == SQL_NULL ? 0 : r.cells[0].i;
}

static inline void sql_do(struct task *t, struct node *n, const char *statement, int64_t uid)
{
    check(sql_call(t, n->sql, NULL, statement, sql_int(uid)) == 0);
}

/* As user_create makes them. */
static inline int64_t add_user(struct task *t, struct node *n, int64_t cents)
{
    static int names;
    struct sql_rows r;
    struct str name = str_printf(task_arena(t), "user%d", names++);
    check(sql_call(t, n->sql, &r,
                   "INSERT INTO user_info (username, username_folded, password, balance, move_no)"
                   " VALUES (?, ?, '', ?, 1)",
                   sql_text(name), sql_text(name),
                   sql_text(amount_decimal(task_arena(t), cents))) == 0);
    int64_t uid = (int64_t)r.insert_id;
    check(sql_call(t, n->sql, NULL,
                   "INSERT INTO billing_log (uid, source, number, kind, cents, at)"
                   " VALUES (?, 'mysql', 1, 'opening', ?, UTC_TIMESTAMP(3))",
                   sql_int(uid), sql_int(cents)) == 0);
    return uid;
}

static inline int64_t in_mysql(struct task *t, struct node *n, int64_t uid)
{
    struct ledger_row row;
    check(ledger_row_read(t, n->ledger, uid, &row) == 0);
    return row.cents;
}

static inline int64_t of_log(struct task *t, struct node *n, int64_t uid)
{
    return sql_number(t, n,
                      "SELECT CAST(SUM(IF(kind IN ('opening', 'recharge', 'reversal'), cents,"
                      " -cents)) AS SIGNED) FROM billing_log WHERE uid = ?",
                      uid);
}

static inline int64_t in_outbox(struct task *t, struct node *n, int64_t uid)
{
    return sql_number(t, n, "SELECT COUNT(*) FROM ledger_outbox WHERE uid = ?", uid);
}

/* --- what is in Redis --- */

static inline struct str ask(struct task *t, struct node *n, struct str word, struct str key,
                             struct str field)
{
    const struct str argv[] = {word, key, field};
    const struct redis_reply *r;
    check(redis_argv(t, n->redis, key, field.p ? 3 : 2, argv, &r) == 0);
    if (r->type == REDIS_INT)
        return str_int(task_arena(t), r->integer);
    return r->type == REDIS_STRING ? r->str : STR_NULL;
}

static inline int64_t ask_int(struct task *t, struct node *n, struct str word, struct str key,
                              struct str field)
{
    int64_t v = -1;
    struct str s = ask(t, n, word, key, field);
    return s.p && str_to_i64(s, &v) ? v : -1;
}

static inline int64_t in_redis(struct task *t, struct node *n, int64_t uid) /* -1: none */
{
    return ask_int(t, n, STR("GET"), key_balance(task_arena(t), uid), STR_NULL);
}

static inline int64_t queued(struct task *t, struct node *n, int64_t uid)
{
    return ask_int(t, n, STR("LLEN"), key_billing_queue(task_arena(t), uid), STR_NULL);
}

static inline int64_t of_ledger(struct task *t, struct node *n, int64_t uid, const char *field)
{
    return ask_int(t, n, STR("HGET"), key_ledger(task_arena(t), uid), str_of(field));
}

#define say(t, n, ...) check(redis_call((t), (n)->redis, STR_NULL, NULL, __VA_ARGS__) == 0)

/* Redis dies and comes back as it was at the last snapshot(), or empty. */
static inline void restart_redis(void)
{
    store_redis_kill(&store);
    store_redis_spawn(&store, NULL);
}

static inline void forget_snapshot(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/dump.rdb", store.dir);
    (void)unlink(path);
}

static inline void await_new_redis(struct task *t, struct node *n, uint64_t epoch)
{
    while (redis_epoch(n->redis) == epoch || !cache_trusts_redis(n->cache))
        pause_ms(t, 2);
}

/* --- both --- */

static inline int64_t balance(struct task *t, struct node *n, int64_t uid)
{
    int64_t cents = -1;
    bool degraded;
    int err = ledger_balance(t, n->ledger, uid, &cents, &degraded);
    if (err || degraded)
        printf("# balance: %s %s\n", err_name(err), err ? task_error(t) : "degraded");
    return err || degraded ? -1 : cents;
}

static inline struct ledger_move move_of(struct task *t, int64_t uid, int64_t cents, const char *id)
{
    return (struct ledger_move){
        .uid = uid, .cents = cents, .request_id = str_dup(task_arena(t), str_of(id))};
}

static inline int recharge(struct task *t, struct node *n, int64_t uid, int64_t cents,
                           const char *id, int64_t *after)
{
    struct ledger_move m = move_of(t, uid, cents, id);
    return ledger_recharge(t, n->ledger, &m, after);
}

static inline int deduct(struct task *t, struct node *n, int64_t uid, int64_t cents, const char *id,
                         int64_t *after)
{
    struct ledger_move m = move_of(t, uid, cents, id);
    return ledger_deduct(t, n->ledger, &m, after);
}

/* Steps of one deduction. */
static inline int note_one(struct task *t, struct ledger *l, const struct ledger_move *m,
                           const struct ledger_look *look, struct ledger_request *out)
{
    struct ledger_deduction d = {.m = m, .task = t};
    int err = ledger_deduct_note(t, l, look, &d, 1);
    *out = d.request;
    return err;
}

static inline int take_one(struct task *t, struct ledger *l, const struct ledger_move *m,
                           const struct ledger_look *look, int64_t *status)
{
    struct ledger_deduction d = {.m = m, .task = t};
    int err = ledger_take(t, l, look, &d, 1);
    *status = d.status;
    return err;
}

/* What Redis must have: MySQL's balance without records and moves that are under way. */
static inline int64_t due_in_redis(struct task *t, struct node *n, int64_t uid)
{
    struct ledger_batch b;
    struct ledger_row row;
    check(ledger_row_read(t, n->ledger, uid, &row) == 0);
    check(ledger_batch_read(t, n->ledger, uid, &b) == 0);
    int64_t due = row.cents;
    for (size_t i = 0; i < b.count; i++)
        if (b.records[i].seq > row.billed_seq)
            due -= b.records[i].cents;
    struct sql_rows r;
    check(sql_call(t, n->sql, &r,
                   "SELECT CAST(COALESCE(SUM(cents), 0) AS SIGNED) FROM billing_log"
                   " WHERE uid = ? AND source = 'mysql' AND number > ?",
                   sql_int(uid), sql_int(of_ledger(t, n, uid, "move"))) == 0);
    return due - r.cells[0].i;
}

/* While no task works on the user. */
static inline bool every_cent(struct task *t, struct node *n, int64_t uid)
{
    int64_t mysql = in_mysql(t, n, uid), log = of_log(t, n, uid), read = balance(t, n, uid);
    int64_t redis = in_redis(t, n, uid), due = due_in_redis(t, n, uid);
    bool good = mysql == log && redis == due && read == redis && mysql >= 0 && redis >= 0;
    if (!good)
        printf("# user %lld: MySQL %lld, its log %lld, Redis %lld, due there %lld, read %lld\n",
               (long long)uid, (long long)mysql, (long long)log, (long long)redis, (long long)due,
               (long long)read);
    return good;
}

/* --- runs --- */

/* As the dispatcher leaves it when it starts workers. */
static inline struct str add_run(struct task *t, struct node *n, int64_t uid)
{
    static int runs;
    struct arena *a = task_arena(t);
    struct str qid = str_printf(a, "run%d", runs++);
    check(sql_call(t, n->sql, NULL,
                   "INSERT INTO query_log (query_id, uid, status, total_papers)"
                   " VALUES (?, ?, 'RUNNING', 1000000)",
                   sql_text(qid), sql_int(uid)) == 0);
    say(t, n, STR("HSET"), key_query_status(a, uid, qid), STR("state"), STR("RUNNING"));
    return qid;
}

static inline struct charge paper_of(struct task *t, int64_t uid, struct str qid, int number,
                                     int64_t cents)
{
    struct arena *a = task_arena(t);
    struct str result =
        str_printf(a, "{\"ai_result\":{\"relevant\":%s,\"reason\":\"%d\"},\"block_key\":\"%s\"}",
                   number % 2 ? "false" : "true", number, key_block_name(a, STR("J"), 2020).p);
    return (struct charge){.uid = uid,
                           .cents = cents,
                           .qid = qid,
                           .doi = str_printf(a, "10.1000/%d", number),
                           .result = result,
                           .outcome = number % 2 ? OUTCOME_MISS : OUTCOME_HIT};
}

/* -1 for errors, which are shown. */
static inline int pay(struct task *t, struct node *n, struct charge c)
{
    enum charge_outcome out = CHARGE_DONE;
    int err = ledger_charge(t, n->ledger, 1, &c, &out);
    if (err)
        printf("# charge: %s %s\n", err_name(err), task_error(t));
    return err ? -1 : (int)out;
}

static inline int64_t of_status(struct task *t, struct node *n, int64_t uid, struct str qid,
                                const char *field)
{
    return ask_int(t, n, STR("HGET"), key_query_status(task_arena(t), uid, qid), str_of(field));
}

static inline struct str result_of(struct task *t, struct node *n, const struct charge *c)
{
    return ask(t, n, STR("HGET"), key_result(task_arena(t), c->uid, c->qid), c->doi);
}

/* --- the audit --- */

struct found {
    int count;
    struct audit_finding last;
};

static inline void note_finding(void *arg, const struct audit_finding *f)
{
    struct found *x = arg;
    x->count++;
    x->last = *f;
    printf("# user %lld: %s: %s\n", (long long)f->uid, f->what, f->detail);
}

static inline struct audit audit_of(struct node *n, struct found *x)
{
    return (struct audit){.redis = n->redis,
                          .sql = n->sql,
                          .ledger = n->ledger,
                          .deep = true,
                          .found = note_finding,
                          .arg = x,
                          .metrics = metrics};
}

/* --- the whole --- */

static inline void prepare(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    struct schema_report r;
    check(schema_migrate(t, sql, &r) == 0);
    sql_pool_free(sql);
}

static inline void start_stores_with(const char *const *redis_args)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, redis_args);
    mariadb_start(&server, NULL);
    metrics = metrics_open(-1, 1, 0);
    tap_task(prepare, NULL, true);
}

static inline void start_stores(void)
{
    start_stores_with(NULL);
}

static inline int stop_stores(void)
{
    metrics_close(metrics);
    mariadb_release(&server);
    store_redis_stop(&store);
    return tap_done();
}
#endif
