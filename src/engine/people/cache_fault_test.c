/* Records while Redis or MariaDB is killed, hangs, or comes back older than it was. */
#include <signal.h>
#include <stdio.h>

#include "engine/people/cache_fixture.h"

static bool await_up(struct task *t, const struct node *n, bool up)
{
    for (int ms = 0; ms < PATIENCE_MS && redis_up(n->redis) != up; ms += 5)
        check(task_sleep(t, 5) == 0);
    return redis_up(n->redis) == up;
}

static void open_two(struct task *t, struct node n[2])
{
    open_node(t, &n[0]);
    reset(t, &n[0]);
    start_node(t, &n[0]);
    open_node(t, &n[1]);
    start_node(t, &n[1]);
}

static void close_two(struct task *t, struct node n[2])
{
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

/* Reads all the time what must not be old. */
struct reader {
    struct node *node;
    int64_t want;
    int64_t reads, wrong, degraded;
    bool stop;
};

static void read_task(struct task *t, void *arg)
{
    struct reader *r = arg;
    while (!r->stop) {
        struct task_scope s = task_scope(t);
        struct seen seen = get(t, r->node, 1);
        r->reads++;
        r->wrong += seen.err || seen.permission != r->want;
        r->degraded += seen.degraded;
        task_scope_end(t, s);
        if (task_sleep(t, 1))
            break;
    }
}

static void start_readers(struct task *t, struct group *g, struct reader r[2], struct node n[2],
                          int64_t want)
{
    group_init(g, task_loop(t));
    for (int i = 0; i < 2; i++) {
        r[i] = (struct reader){.node = &n[i], .want = want};
        check(task_go(g, "reader", read_task, &r[i]) == 0);
    }
}

static void end_readers(struct task *t, struct group *g, struct reader r[2])
{
    r[0].stop = r[1].stop = true;
    check(group_join(t, g) == 0);
    ok(r[0].reads > 10 && r[1].reads > 10, "both nodes have read meanwhile");
    is_int(r[0].wrong, 0, "and the node that changed it never saw the old row");
    is_int(r[1].wrong, 0, "nor did the other one");
}

static void test_change_while_down(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    struct reader r[2];
    struct group g;
    open_two(t, n);
    check(get(t, &n[0], 1).permission == 10 && get(t, &n[1], 1).permission == 10);
    int64_t loads = probe.loads;
    store_redis_kill(&store);
    check(await_up(t, &n[0], false) && await_up(t, &n[1], false));
    ok(!cache_trusts_redis(n[0].cache), "a Redis that is away is not trusted");
    struct seen s = get(t, &n[0], 1);
    ok(s.err == 0 && s.degraded, "reads go to MySQL, marked degraded");
    is_int(user_set_permission(t, n[0].cache, 1, 77), 0, "a change needs no Redis");
    is_int(marks(t, &n[0]), 1, "it leaves a mark");
    start_readers(t, &g, r, n, 77);
    check(task_sleep(t, 50) == 0);
    store_redis_spawn(&store, store_args); /* its AOF has the old row */
    ok(await_trust(t, &n[0]) && await_trust(t, &n[1]), "Redis is trusted again");
    check(task_sleep(t, 200) == 0);
    end_readers(t, &g, r);
    ok(r[0].degraded > 0 && r[0].degraded < r[0].reads, "degraded at first, then not");
    is_int(marks(t, &n[0]), 0, "the mark is gone");
    ok(probe.loads > loads, "MySQL was asked");
    loads = probe.loads;
    s = get(t, &n[1], 1);
    ok(s.permission == 77 && !s.degraded && probe.loads == loads, "Redis has the new row now");
    close_two(t, n);
}

/* The version that a change left was in the second that the AOF lost, and the mark is gone. */
static void test_redis_comes_back_older(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    struct reader r[2];
    struct group g;
    open_two(t, n);
    check(get(t, &n[0], 1).permission == 10);
    check(user_set_permission(t, n[0].cache, 1, 77) == 0);
    check(marks(t, &n[0]) == 0);
    say(t, &n[0], STR("HSET"), STR("user:1:info"), STR("permission"), STR("10"), STR("version"),
        STR("0"));
    store_redis_kill(&store);
    check(await_up(t, &n[0], false) && await_up(t, &n[1], false));
    start_readers(t, &g, r, n, 77);
    store_redis_spawn(&store, store_args);
    ok(await_trust(t, &n[0]) && await_trust(t, &n[1]), "a Redis that is older is trusted");
    check(task_sleep(t, 200) == 0);
    end_readers(t, &g, r);
    is_int(marks(t, &n[0]), 0, "no marks are left");
    close_two(t, n);
}

/* Only the connection is lost: what is there is as it was, and stays. */
static void test_connection_lost(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_started(t, &n);
    check(get(t, &n, 1).permission == 10);
    uint64_t epoch = redis_epoch(n.redis);
    store_redis_say(&store, "CLIENT KILL TYPE normal", NULL, 0);
    for (int ms = 0; ms < PATIENCE_MS && redis_epoch(n.redis) == epoch; ms++)
        check(task_sleep(t, 1) == 0);
    ok(!cache_trusts_redis(n.cache), "a new connection is not trusted at once");
    ok(await_trust(t, &n), "but soon");
    int64_t loads = probe.loads;
    ok(get(t, &n, 1).permission == 10 && probe.loads == loads, "records are still there");
    close_node(t, &n);
}

static void test_killed_during_load(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    struct group g;
    struct getter one = {.node = &n[0], .uid = 1};
    open_two(t, n);
    group_init(&g, task_loop(t));
    probe.slow_ms = 1500;
    check(task_go(&g, "get", get_task, &one) == 0);
    while (probe.loads == 0)
        check(task_sleep(t, 5) == 0);
    check(task_sleep(t, 50) == 0);
    probe.slow_ms = 0;
    store_redis_kill(&store);
    check(await_up(t, &n[0], false) && await_up(t, &n[1], false));
    check(user_set_permission(t, n[1].cache, 1, 77) == 0);
    store_redis_spawn(&store, store_args);
    ok(await_trust(t, &n[0]) && await_trust(t, &n[1]), "Redis is back");
    ok(!one.done, "while a loader still has the old row in hand");
    is_int(get(t, &n[1], 1).permission, 77, "the other node reads the new one");
    check(group_join(t, &g) == 0);
    is_int(one.seen.err, 0, "the loader ends well");
    ok(one.seen.degraded, "and knows that Redis was away");
    is_int(get(t, &n[0], 1).permission, 77, "it has not brought the old row back");
    is_int(get(t, &n[1], 1).permission, 77, "nor for the other node");
    close_two(t, n);
}

/* Without Redis a slow loader is not told: a read after the change must not wait for it. */
static void test_change_during_degraded_load(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct group g;
    struct getter one = {.node = &n, .uid = 1};
    open_started(t, &n);
    store_redis_kill(&store);
    check(await_up(t, &n, false));
    group_init(&g, task_loop(t));
    probe.slow_ms = 500;
    check(task_go(&g, "get", get_task, &one) == 0);
    while (probe.loads == 0)
        check(task_sleep(t, 5) == 0);
    check(task_sleep(t, 100) == 0);
    probe.slow_ms = 0;
    check(user_set_permission(t, n.cache, 1, 77) == 0);
    is_int(get(t, &n, 1).permission, 77, "who changes a row reads the new one");
    check(group_join(t, &g) == 0);
    is_int(one.seen.permission, 10, "though an older load was under way");
    store_redis_spawn(&store, store_args);
    check(await_trust(t, &n));
    is_int(get(t, &n, 1).permission, 77, "and so does everybody after it");
    close_node(t, &n);
}

static void test_redis_hangs(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_started(t, &n);
    check(get(t, &n, 1).permission == 10);
    kill(store.pid, SIGSTOP);
    int64_t since = loop_now_ms(task_loop(t));
    struct seen s = get(t, &n, 1);
    ok(s.err == 0 && s.permission == 10 && s.degraded, "a Redis that hangs is gone round");
    ok(loop_now_ms(task_loop(t)) - since < 4 * COMMAND_MS, "after the time of a few commands");
    check(await_up(t, &n, false));
    is_int(user_set_permission(t, n.cache, 1, 77), 0, "a change goes on");
    int64_t old = task_deadline(t, 30);
    s = get(t, &n, 1);
    ok(s.err == 0 && s.permission == 77, "reads are quick then");
    task_deadline_restore(t, old);
    kill(store.pid, SIGCONT);
    ok(await_trust(t, &n), "when it goes on it is trusted again");
    is_int(get(t, &n, 1).permission, 77, "and has nothing old");
    close_node(t, &n);
}

static void test_redis_refuses_writes(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_started(t, &n);
    say(t, &n, STR("CONFIG"), STR("SET"), STR("maxmemory"), STR("1"));
    struct seen s = get(t, &n, 1);
    ok(s.err == 0 && s.permission == 10 && s.degraded, "a Redis that is full is gone round");
    is_int(user_set_permission(t, n.cache, 1, 77), 0, "a change goes on");
    is_int(marks(t, &n), 1, "and keeps its mark");
    say(t, &n, STR("CONFIG"), STR("SET"), STR("maxmemory"), STR("0"));
    for (int ms = 0; ms < PATIENCE_MS && marks(t, &n) > 0; ms += 20)
        check(task_sleep(t, 20) == 0);
    is_int(get(t, &n, 1).permission, 77, "the new row is read");
    ok(!get(t, &n, 1).degraded, "and filled");
    close_node(t, &n);
}

static void test_mysql_down(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_started(t, &n);
    check(get(t, &n, 1).permission == 10);
    mariadb_kill(&server);
    check(task_sleep(t, 1500) == 0); /* a drain has failed */
    ok(cache_trusts_redis(n.cache), "Redis is trusted all the same");
    is_int(get(t, &n, 1).permission, 10, "hits need no MySQL");
    struct seen s = get(t, &n, 2);
    ok(s.err == ERR_UNAVAILABLE, "misses fail: %s", err_name(s.err));
    ok(user_set_permission(t, n.cache, 1, 77), "and so do changes");
    mariadb_restart(&server);
    for (int ms = 0; ms < PATIENCE_MS && get(t, &n, 2).err; ms += 20)
        check(task_sleep(t, 20) == 0);
    is_int(get(t, &n, 2).permission, 20, "until it is back");
    close_node(t, &n);
}

int main(void)
{
    static void (*const tests[])(struct task *, void *) = {
        test_change_while_down,
        test_redis_comes_back_older,
        test_connection_lost,
        test_killed_during_load,
        test_change_during_degraded_load,
        test_redis_hangs,
        test_redis_refuses_writes,
        test_mysql_down,
    };
    return run_tests(tests, sizeof tests / sizeof *tests);
}
