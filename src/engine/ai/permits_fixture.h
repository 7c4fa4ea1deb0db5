/* permits_fixture.h -- what the tests of permits have in common: real stores, nodes, workers that
 * send, and the question whether any minute had more than it may.
 *
 * A minute is 480 slots, of which a test may say how long they are. */
#ifndef ENGINE_AI_PERMITS_FIXTURE_H
#define ENGINE_AI_PERMITS_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/log.h"
#include "engine/ai/permits_private.h"
#include "engine/setup/schema.h"
#include "engine/store/keys.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

#define SLOT_MS 12 /* a minute of 5.76 s */
#define SENDS   400000

static struct mariadb server;
static struct store_redis store;
static struct metrics *metrics;

struct node {
    struct group group, tasks;
    struct redis *redis;
    struct sql_pool *sql;
    struct permits *permits;
};

static inline void pause_ms(struct task *t, int64_t ms)
{
    check(task_sleep(t, ms) == 0);
}

/* Its permits are not started yet. */
static inline void make_node(struct task *t, struct node *n, int64_t slot_ms)
{
    group_init(&n->group, task_loop(t));
    group_init(&n->tasks, task_loop(t));
    n->redis = redis_open(&n->group, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    check(n->redis);
    n->sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    n->permits = permits_new(&(struct permits_options){
        .redis = n->redis, .sql = n->sql, .metrics = metrics, .slot_ms = slot_ms});
}

static inline void start_permits(struct node *n, struct permits *k)
{
    check(task_go(&n->tasks, "permits", permits_task, k) == 0);
    role_in(&n->tasks, permits_role, k, 50);
}

static inline void open_node(struct task *t, struct node *n, int64_t slot_ms)
{
    make_node(t, n, slot_ms);
    start_permits(n, n->permits);
    while (!n->permits->begun)
        pause_ms(t, 2);
}

static inline void close_node(struct task *t, struct node *n)
{
    group_cancel(&n->tasks);
    check(group_join(t, &n->tasks) == 0);
    permits_free(n->permits);
    sql_pool_free(n->sql);
    redis_close(n->redis);
    check(group_join(t, &n->group) == 0);
}

static inline void sql_do(struct task *t, struct node *n, const char *statement)
{
    check(sql_call(t, n->sql, NULL, statement) == 0);
}

static inline int64_t sql_number(struct task *t, struct node *n, const char *statement)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, statement) == 0 && r.count == 1);
    return r.cells[0].i;
}

static inline void make_schema(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    struct schema_report report;
    check(schema_migrate(t, sql, &report) == 0);
    sql_pool_free(sql);
}

/* As a new system is: no keys, nothing was ever permitted. */
static inline void empty_stores(struct task *t)
{
    struct node n;
    make_node(t, &n, SLOT_MS);
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    sql_do(t, &n, "DELETE FROM setting WHERE name LIKE 'keyring.begun%'");
    sql_do(t, &n, "TRUNCATE TABLE api_list");
    close_node(t, &n);
}

static inline void add_key(struct task *t, int64_t id, int64_t rpm, int64_t tpm)
{
    struct sql_pool *sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    check(sql_call(t, sql, NULL,
                   "INSERT INTO api_list (api_index, api_key, rpm_limit, tpm_limit)"
                   " VALUES (?, ?, ?, ?)",
                   sql_int(id),
                   sql_text(str_printf(task_arena(t), "sk-secret-key-number-%lld", (long long)id)),
                   sql_int(rpm), sql_int(tpm)) == 0);
    sql_pool_free(sql);
}

static inline int64_t counted(const char *name)
{
    return *metric(metrics, METRIC_COUNTER, name, "", "");
}

/* --- workers, and what they sent --- */

struct send {
    int64_t at_us, key_id, tokens;
};

struct record {
    struct send *sends;
    size_t count;
    int64_t stale; /* permits that were not valid any more */
};

struct worker {
    struct node *node;
    struct record *record;
    enum permits_class class;
    int64_t tokens, used; /* reserved and settled */
    int64_t hold_ms;      /* until it is settled */
};

static inline void record_init(struct record *r)
{
    *r = (struct record){.sends = check_memory(calloc(SENDS, sizeof(struct send)))};
}

static inline void send_now(struct task *t, struct record *r, const struct permit *p,
                            int64_t tokens)
{
    check(r->count < SENDS);
    r->sends[r->count++] = (struct send){loop_now_us(task_loop(t)), p->key_id, tokens};
}

/* As a worker is: takes, sends, settles, for ever. */
static inline void work(struct task *t, void *arg)
{
    const struct worker *w = arg;
    struct permits *k = w->node->permits;
    for (int err = 0; !err;) {
        struct task_scope scope = task_scope(t);
        struct permit p;
        err = permits_take(t, k, w->class, w->tokens, &p);
        if (!err && !permit_valid(&p, task_loop(t))) {
            w->record->stale++;
            permits_unused(t, k, &p);
        } else if (!err) {
            send_now(t, w->record, &p, w->used);
            if (w->hold_ms)
                err = task_sleep(t, w->hold_ms);
            permits_settle(t, k, &p, w->used);
        }
        task_scope_end(t, scope);
    }
}

static inline void start_workers(struct group *g, struct worker *w, int count)
{
    for (int i = 0; i < count; i++)
        check(task_go(g, "work", work, w) == 0);
}

static inline void stop_workers(struct task *t, struct group *g)
{
    group_cancel(g);
    check(group_join(t, g) == 0);
}

static inline int by_time(const void *a, const void *b)
{
    const struct send *x = a, *y = b;
    return (x->at_us > y->at_us) - (x->at_us < y->at_us);
}

static inline int64_t weight(const struct send *s, int64_t key_id, bool tokens)
{
    return key_id && s->key_id != key_id ? 0 : tokens ? s->tokens : 1;
}

/* The most in any minute that ends with a send. key_id 0: all. */
static inline int64_t most_in_a_minute(struct record *r, int64_t slot_ms, int64_t key_id,
                                       bool tokens)
{
    int64_t sum = 0, most = 0, minute_us = PERMITS_MINUTE_SLOTS * slot_ms * 1000;
    qsort(r->sends, r->count, sizeof r->sends[0], by_time);
    for (size_t i = 0, old = 0; i < r->count; i++) {
        sum += weight(&r->sends[i], key_id, tokens);
        while (r->sends[old].at_us <= r->sends[i].at_us - minute_us)
            sum -= weight(&r->sends[old++], key_id, tokens);
        most = sum > most ? sum : most;
    }
    return most;
}

/* The fewest in any minute between the two times, by steps of a slot. */
static inline int64_t fewest_in_a_minute(const struct record *r, int64_t slot_ms, int64_t from_us,
                                         int64_t to_us, bool tokens)
{
    int64_t minute_us = PERMITS_MINUTE_SLOTS * slot_ms * 1000, fewest = INT64_MAX;
    for (int64_t at = from_us; at + minute_us <= to_us; at += slot_ms * 1000) {
        int64_t sum = 0;
        for (size_t i = 0; i < r->count; i++)
            if (r->sends[i].at_us >= at && r->sends[i].at_us < at + minute_us)
                sum += weight(&r->sends[i], 0, tokens);
        fewest = sum < fewest ? sum : fewest;
    }
    return fewest;
}

/* --- programs --- */

static struct record record;

static inline void start_stores(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    mariadb_start(&server, NULL);
    metrics = metrics_open(-1, 1, 0);
    record_init(&record);
    tap_task(make_schema, NULL, true);
}

static inline int stop_stores(void)
{
    free(record.sends);
    metrics_close(metrics);
    mariadb_release(&server);
    store_redis_stop(&store);
    return tap_done();
}
#endif
