/* Redis dies, forgets, and comes back: no minute may have more than the limit. */
#include "engine/ai/permits_fixture.h"

static int64_t now_us(struct task *t)
{
    return loop_now_us(task_loop(t));
}

static int64_t counted_in_redis(struct task *t, struct node *n)
{
    struct permits_load l;
    check(permits_load(t, n->permits, &l) == 0);
    return l.requests_used;
}

static int64_t next_within(struct task *t, struct node *n, int64_t ms)
{
    struct permit p = {0};
    int64_t old = task_deadline(t, ms);
    int err = permits_take(t, n->permits, PERMITS_RUNS, 1, &p);
    task_deadline_restore(t, old);
    return err ? err : p.key_id;
}

static void restart(struct task *t, struct node *n, const char *const *extra)
{
    uint64_t epoch = redis_epoch(n->redis);
    store_redis_kill(&store);
    store_redis_spawn(&store, extra);
    while (redis_epoch(n->redis) == epoch || !redis_up(n->redis))
        pause_ms(t, 2);
}

/* Everything is forgotten, in the middle of the work of two nodes. */
static void test_forgets_all(struct task *t, void *arg)
{
    (void)arg;
    struct node a, b;
    struct group g;
    empty_stores(t);
    add_key(t, 1, 600, 1000000000);
    open_node(t, &a, SLOT_MS);
    open_node(t, &b, SLOT_MS);
    record.count = 0;
    struct worker on_a = {.node = &a, .record = &record, .tokens = 10, .used = 10}, on_b = on_a;
    on_b.node = &b;
    group_init(&g, task_loop(t));
    start_workers(&g, &on_a, 20);
    start_workers(&g, &on_b, 20);
    pause_ms(t, 140 * SLOT_MS);
    restart(t, &a, NULL);
    int64_t back = now_us(t);
    size_t before = record.count;
    pause_ms(t, 400 * SLOT_MS);
    is_int((int64_t)(record.count - before), 0, "what may have been forgotten counts as used");
    pause_ms(t, 600 * SLOT_MS);
    restart(t, &a, NULL);
    pause_ms(t, 600 * SLOT_MS);
    stop_workers(t, &g);
    int64_t most = most_in_a_minute(&record, SLOT_MS, 0, false);
    ok(most <= 600, "no minute has more than the limit: %lld", (long long)most);
    ok(record.count > before + 500, "and work goes on: %zu then %zu", before, record.count);
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < record.count; i++)
        if (record.sends[i].at_us > back && record.sends[i].at_us < first)
            first = record.sends[i].at_us;
    ok(first - back < (PERMITS_SLOTS + 40) * SLOT_MS * 1000, "after a minute, not later: %lld ms",
       (long long)((first - back) / 1000));
    close_node(t, &a);
    close_node(t, &b);
}

/* What is known leaves room as it gets old; only the rest counts as used. */
static void test_forgets_some(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    empty_stores(t);
    add_key(t, 1, 100, 1000000);
    open_node(t, &n, SLOT_MS);
    for (int i = 0; i < 30; i++)
        check(next_within(t, &n, 1000) == 1);
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("SAVE")) == 0);
    int64_t saved = now_us(t);
    pause_ms(t, 200 * SLOT_MS);
    for (int i = 0; i < 30; i++)
        check(next_within(t, &n, 1000) == 1);
    restart(t, &n, NULL);
    is_int(next_within(t, &n, 40 * SLOT_MS), ERR_TIMEOUT, "first nothing is permitted");
    is_int(counted_in_redis(t, &n), 100, "the minute is full");
    is_int(next_within(t, &n, 400 * SLOT_MS), 1, "then what is known to be old");
    int64_t ms = (now_us(t) - saved) / 1000;
    ok(ms >= PERMITS_MINUTE_SLOTS * SLOT_MS && ms <= 540 * SLOT_MS, "in time: %lld ms",
       (long long)ms);
    close_node(t, &n);
}

/* With an append-only file no more than some seconds can be forgotten. */
static void test_durable(struct task *t, void *arg)
{
    (void)arg;
    static const char *const durable[] = {"--appendonly", "yes", NULL};
    struct node n;
    empty_stores(t);
    add_key(t, 1, 100, 1000000);
    open_node(t, &n, 5);
    restart(t, &n, durable);
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    close_node(t, &n);
    empty_stores(t);
    add_key(t, 1, 100, 1000000);
    open_node(t, &n, 5);
    is_int(next_within(t, &n, 500), 1, "a new system does not wait");
    pause_ms(t, 1500);
    restart(t, &n, durable);
    is_int(next_within(t, &n, 1000), ERR_TIMEOUT, "after a restart one waits");
    close_node(t, &n);
    /* No node ran for a while: nothing can have been sent. */
    pause_ms(t, 7000);
    open_node(t, &n, 5);
    restart(t, &n, durable);
    int64_t from = now_us(t);
    is_int(next_within(t, &n, 5000), 1, "after a long pause");
    int64_t ms = (now_us(t) - from) / 1000;
    ok(ms >= 1500 && ms < 3500, "only until calls are known to be regular: %lld ms", (long long)ms);
    close_node(t, &n);
    store_redis_kill(&store);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
}

/* The last node ends in order, or does not; the next one asks for a permit. */
static int64_t after_the_end(struct task *t, bool in_order)
{
    static const char *const durable[] = {"--appendonly", "yes", NULL};
    struct node n;
    make_node(t, &n, SLOT_MS);
    restart(t, &n, durable);
    close_node(t, &n);
    empty_stores(t);
    add_key(t, 1, 100, 1000000);
    open_node(t, &n, SLOT_MS);
    check(next_within(t, &n, 500) == 1);
    group_cancel(&n.tasks);
    check(group_join(t, &n.tasks) == 0);
    if (in_order)
        permits_close(t, n.permits);
    pause_ms(t, 1200); /* it is on disk */
    restart(t, &n, durable);
    close_node(t, &n);
    open_node(t, &n, SLOT_MS);
    int64_t permit = next_within(t, &n, 3500);
    close_node(t, &n);
    store_redis_kill(&store);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    return permit;
}

/* Far from the limits the bound leaves something at once; a request that is larger than it knows
 * does not. */
static void test_bound(struct task *t, void *arg)
{
    (void)arg;
    static const char *const durable[] = {"--appendonly", "yes", NULL};
    struct permits_load l;
    struct node n;
    make_node(t, &n, 0);
    restart(t, &n, durable);
    close_node(t, &n);
    for (int large = 0; large < 2; large++) {
        empty_stores(t);
        add_key(t, 1, 100000, 10000000);
        open_node(t, &n, 0);
        struct permit p;
        check(next_within(t, &n, 500) == 1);
        if (large)
            check(permits_take(t, n.permits, PERMITS_RUNS, 100000, &p) == 0);
        pause_ms(t, 1500);
        restart(t, &n, durable);
        int64_t permit = next_within(t, &n, 4000);
        check(permits_load(t, n.permits, &l) == 0);
        is_int(permit, large ? ERR_TIMEOUT : 1, large ? "not if one was" : "no minute of waiting");
        ok(l.requests_used > 50000 && l.requests_used < 60000,
           "half of the requests, and 4 s: %lld", (long long)l.requests_used);
        ok(large ? l.tokens_used == 10000000 : l.tokens_used > 5000000 && l.tokens_used < 6000000,
           "and of the tokens: %lld", (long long)l.tokens_used);
        close_node(t, &n);
    }
    store_redis_kill(&store);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
}

static void test_end(struct task *t, void *arg)
{
    (void)arg;
    is_int(after_the_end(t, true), 1, "after an end in order one need not wait for a minute");
    is_int(after_the_end(t, false), ERR_TIMEOUT, "after any other end one must");
}

static void take_one(struct task *t, void *arg)
{
    struct node *n = arg;
    struct permit p;
    if (permits_take(t, n->permits, PERMITS_RUNS, 1, &p))
        return;
    record.count++;
    permits_settle(t, n->permits, &p, 1); /* a key that has rested is tried by one call at a time */
}

static void test_away(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct group g;
    empty_stores(t);
    add_key(t, 1, 1000, 1000000);
    open_node(t, &n, SLOT_MS);
    struct permit p;
    check(permits_take(t, n.permits, PERMITS_RUNS, 1, &p) == 0);
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("SAVE")) == 0);
    store_redis_kill(&store);
    record.count = 0;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 10; i++)
        check(task_go(&g, "take", take_one, &n) == 0);
    pause_ms(t, 500);
    is_int((int64_t)record.count, 0, "without Redis there are no permits");
    permits_settle(t, n.permits, &p, 1);
    permits_cool(t, n.permits, 1, 1000);
    store_redis_spawn(&store, NULL);
    check(group_join(t, &g) == 0);
    is_int((int64_t)record.count, 10, "when it is back all do");
    close_node(t, &n);
}

static void test_without_mysql(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    empty_stores(t);
    add_key(t, 1, 1000, 1000000);
    add_key(t, 2, 10, 1000000);
    open_node(t, &n, SLOT_MS);
    check(next_within(t, &n, 500) == 1);
    mariadb_kill(&server);
    permits_refused(t, n.permits, 1, 401);
    is_int(next_within(t, &n, 500), 2, "a refused key is not used, though MySQL is away");
    mariadb_restart(&server);
    int64_t active = 1;
    for (int i = 0; i < 80 && active; i++) {
        struct sql_rows r;
        pause_ms(t, 100);
        if (sql_call(t, n.sql, &r, "SELECT is_active FROM api_list WHERE api_index = 1") == 0)
            active = r.cells[0].i;
    }
    is_int(active, 0, "it is told when it is back");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_forgets_all, NULL, true);
    tap_task(test_forgets_some, NULL, true);
    tap_task(test_durable, NULL, true);
    tap_task(test_bound, NULL, true);
    tap_task(test_end, NULL, true);
    tap_task(test_away, NULL, true);
    tap_task(test_without_mysql, NULL, true);
    return stop_stores();
}
