/* The client against a real Redis Cluster: slots that move and masters that die under load. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "tests/store_cluster.h"
#include "tests/tap.h"
#include "wire/redis.h"
#include "wire/redis/redis_slot.h"

#define TASKS       64
#define PATIENCE_MS 20000

struct fixture {
    struct store_cluster store;
    struct metrics *metrics;
    struct group group; /* of the handle */
    struct redis *redis;
};

static void open_on(struct task *t, struct fixture *f, const char *url)
{
    group_init(&f->group, task_loop(t));
    f->redis = redis_open(
        &f->group,
        &(struct redis_options){.url = url, .name = "hot", .metrics = f->metrics, .cluster = true});
    check(f->redis);
}

static void open_redis(struct task *t, struct fixture *f)
{
    open_on(t, f, f->store.url);
}

static void close_redis(struct task *t, struct fixture *f)
{
    redis_close(f->redis);
    check(group_join(t, &f->group) == 0);
}

static void await_up(struct task *t, struct fixture *f)
{
    for (int ms = 0; !redis_up(f->redis) && ms < PATIENCE_MS; ms += 10)
        check(task_sleep(t, 10) == 0);
    check(redis_up(f->redis));
}

static int64_t redirected(struct fixture *f, const char *kind)
{
    char labels[64];
    snprintf(labels, sizeof(labels), "name=\"hot\",kind=\"%s\"", kind);
    return *metric(f->metrics, METRIC_COUNTER, "millrace_redis_redirects_total", labels, "");
}

static struct str key_of(struct task *t, int n)
{
    return str_printf(task_arena(t), "key:{%d}:a", n);
}

static struct str other_of(struct task *t, int n)
{
    return str_printf(task_arena(t), "key:{%d}:b", n);
}

/* The master that had the slot at first. */
static int home_of(struct fixture *f, struct str key)
{
    int master = 0;
    while ((int)redis_slot(key) >= REDIS_SLOTS * (master + 1) / f->store.masters)
        master++;
    return master;
}

static const struct redis_script whoami = {
    "whoami",
    STR("local info = redis.call('INFO', 'server')"
        " return {ARGV[2], string.match(info, 'run_id:(%x+)'), ARGV[1]}"),
    true};

static void everywhere(struct task *t, void *arg)
{
    struct fixture *f = arg;
    const struct redis_reply *reply;
    open_redis(t, f);
    ok(!redis_up(f->redis) && redis_is_cluster(f->redis), "down at first");
    int calls = 0, scripts = 0, homes[3] = {0};
    for (int i = 0; i < 100; i++) {
        struct str key = key_of(t, i), argv[] = {key, STR("x")};
        homes[home_of(f, key)]++;
        calls += redis_call(t, f->redis, key, NULL, STR("SET"), key, argv[1]) == 0;
        scripts += redis_script_run(t, f->redis, &whoami, key, 1, 2, argv, &reply) == 0 &&
                   str_eq(reply->items[0]->str, reply->items[1]->str) &&
                   str_eq(reply->items[0]->str, redis_run_id_at(f->redis, key));
    }
    ok(homes[0] && homes[1] && homes[2], "keys of all three masters");
    is_int(calls, 100, "are set");
    is_int(scripts, 100, "scripts run where their key is, and know the server that runs them");
    ok(redis_up(f->redis), "up");
    is_int((int64_t)redis_run_id(f->redis).n, 40, "one generation of all");
    is_int(redirected(f, "moved"), 0, "nothing was sent to the wrong one");

    char answer[64];
    for (int i = 0; i < 3; i++)
        check(store_redis_say(&f->store.nodes[i], "SCRIPT FLUSH", answer, sizeof(answer)));
    scripts = 0;
    for (int i = 0; i < 20; i++) {
        struct str key = key_of(t, i), argv[] = {key, STR("x")};
        scripts += redis_script_run(t, f->redis, &whoami, key, 1, 2, argv, &reply) == 0;
    }
    is_int(scripts, 20, "masters that forgot the script are told again");

    struct str a = STR("{a}"), b = STR("{b}");
    is_int(redis_call(t, f->redis, a, NULL, STR("MSET"), a, a, b, b), ERR_REFUSED,
           "a command about keys of two slots");
    ok(str_starts(str_of(task_error(t)), STR("CROSSSLOT ")), "in the server's words");
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), 0, "a command without a key");
    close_redis(t, f);
    is_int(*metric(f->metrics, METRIC_GAUGE, "millrace_redis_waiting", "name=\"hot\"", ""), 0,
           "nothing waits");
}

static void batches(struct task *t, void *arg)
{
    struct fixture *f = arg;
    struct redis_batch b;
    const struct redis_reply *const *replies = NULL;
    open_redis(t, f);
    redis_batch_init(&b, t, f->redis);
    is_int(redis_batch_run(&b, &replies), 0, "an empty batch");
    for (int i = 0; i < 300; i++)
        redis_batch_add(&b, key_of(t, i), STR("SET"), key_of(t, i), str_int(task_arena(t), i));
    redis_batch_add(&b, STR_NULL, STR("PING"));
    is_int(redis_batch_run(&b, &replies), 0, "a batch for three masters");
    is_str(replies[300]->str, STR("PONG"), "and one of them");
    int64_t writes =
        *metric(f->metrics, METRIC_COUNTER, "millrace_redis_writes_total", "name=\"hot\"", "");
    for (int i = 0; i < 300; i++)
        redis_batch_add(&b, key_of(t, i), STR("GET"), key_of(t, i));
    redis_batch_add(&b, key_of(t, 7), STR("INCR"), STR("{7}"), STR("wrong"));
    is_int(redis_batch_run(&b, &replies), 0, "its values");
    int same = 0;
    for (int i = 0; i < 300; i++)
        same += redis_number(replies[i], -1) == i;
    is_int(same, 300, "are in their order");
    is_int(replies[300]->type, REDIS_ERROR, "an error stays in its place");
    is_int(*metric(f->metrics, METRIC_COUNTER, "millrace_redis_writes_total", "name=\"hot\"", "") -
               writes,
           3, "one write for each master");
    close_redis(t, f);
}

/* --- slots move --- */

/* Each task adds to counters of its own slot and of others, in three ways. */
struct adder {
    struct fixture *f;
    int n;
    bool *stop;
    int64_t added, failed;
};

static const struct redis_script add_both = {
    "add_both", STR("redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])"), false};

static int add_by_batch(struct task *t, struct adder *a)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, a->f->redis);
    for (int i = 0; i < 4; i++)
        redis_batch_add(&b, key_of(t, (a->n + i) % TASKS), STR("INCR"),
                        key_of(t, (a->n + i) % TASKS));
    int err = redis_batch_run(&b, &replies);
    for (int i = 0; !err && i < 4; i++)
        err = redis_verdict(t, replies[i], NULL);
    return err;
}

static void add(struct task *t, void *arg)
{
    struct adder *a = arg;
    while (!*a->stop) {
        struct task_scope scope = task_scope(t);
        struct str one = key_of(t, a->n), argv[] = {one, other_of(t, a->n)};
        int64_t way = (int64_t)(loop_random(task_loop(t)) % 3), n = way + 1 + (way == 2);
        int err = way == 0   ? redis_call(t, a->f->redis, one, NULL, STR("INCR"), one)
                  : way == 1 ? redis_script_run(t, a->f->redis, &add_both, one, 2, 2, argv, NULL)
                             : add_by_batch(t, a);
        *(err ? &a->failed : &a->added) += n;
        if (err)
            printf("# %s: %s\n", err_name(err), task_error(t));
        task_scope_end(t, scope);
        check(task_sleep(t, 1) == 0);
    }
}

static int64_t sum_of(struct task *t, struct fixture *f)
{
    int64_t sum = 0;
    const struct redis_reply *reply;
    for (int i = 0; i < TASKS; i++) {
        struct str keys[] = {key_of(t, i), other_of(t, i)};
        for (int k = 0; k < 2; k++) {
            check(redis_call(t, f->redis, keys[k], &reply, STR("GET"), keys[k]) == 0);
            sum += redis_number(reply, 0);
        }
    }
    return sum;
}

/* Key by key, while all goes on. */
static void move(struct task *t, struct fixture *f, int slot, int from, int to)
{
    store_cluster_move_begin(&f->store, slot, from, to);
    check(task_sleep(t, 5) == 0);
    while (store_cluster_move_keys(&f->store, slot, from, to, 1) > 0)
        check(task_sleep(t, 10) == 0);
    store_cluster_move_end(&f->store, slot, to);
}

static void resharding(struct task *t, void *arg)
{
    struct fixture *f = arg;
    struct adder adders[TASKS];
    struct group g;
    bool stop = false;
    for (int i = 0; i < 3; i++)
        check(store_redis_say(&f->store.nodes[i], "FLUSHALL", NULL, 0));
    open_redis(t, f);
    group_init(&g, task_loop(t));
    for (int i = 0; i < TASKS; i++) {
        adders[i] = (struct adder){.f = f, .n = i, .stop = &stop};
        check(task_go(&g, "add", add, &adders[i]) == 0);
    }
    check(task_sleep(t, 200) == 0);
    struct str stays = key_of(t, 63), moves = key_of(t, 0);
    char before[41], whole[41];
    snprintf(before, sizeof(before), "%.*s", STR_ARG(redis_run_id_at(f->redis, moves)));
    snprintf(whole, sizeof(whole), "%.*s", STR_ARG(redis_run_id(f->redis)));
    uint64_t epoch = redis_epoch_at(f->redis, stays);
    for (int i = 0; i < 40; i++) {
        struct str key = key_of(t, i);
        int home = home_of(f, key);
        move(t, f, (int)redis_slot(key), home, (home + 1) % 3);
    }
    check(task_sleep(t, 200) == 0);
    stop = true;
    check(group_join(t, &g) == 0);
    int64_t added = 0, failed = 0;
    for (int i = 0; i < TASKS; i++) {
        added += adders[i].added;
        failed += adders[i].failed;
    }
    is_int(failed, 0, "40 slots moved under 64 tasks, and no call failed");
    is_int(sum_of(t, f), added, "%lld increments are the sum", (long long)added);
    printf("# moved %lld, ask %lld, later %lld\n", (long long)redirected(f, "moved"),
           (long long)redirected(f, "ask"), (long long)redirected(f, "later"));
    ok(redirected(f, "moved") > 0, "MOVED was seen");
    ok(redirected(f, "ask") > 0, "and ASK");
    ok(redirected(f, "later") > 0, "and TRYAGAIN");
    ok(!str_eq(redis_run_id_at(f->redis, moves), str_of(before)),
       "a key that moved is of another generation");
    is_str(redis_run_id(f->redis), str_of(whole), "all servers together are the same");
    ok(redis_epoch_at(f->redis, stays) == epoch, "a key that stayed is over the same connection");

    /* The map is learned, not only followed. */
    int64_t moved = redirected(f, "moved");
    close_redis(t, f);
    open_redis(t, f);
    is_int(sum_of(t, f), added, "another handle finds all");
    is_int(redirected(f, "moved"), moved, "at once");
    close_redis(t, f);
}

/* For good: what is half moved must be found at once, not once all has moved. */
static void half_moved(struct task *t, void *arg)
{
    struct fixture *f = arg;
    const struct redis_reply *reply;
    struct str one = key_of(t, 1000), two = other_of(t, 1000), both[] = {one, two};
    int slot = (int)redis_slot(one), home = home_of(f, one), to = (home + 1) % 3;
    open_redis(t, f);
    check(redis_call(t, f->redis, one, NULL, STR("SET"), one, STR("1")) == 0);
    check(redis_call(t, f->redis, two, NULL, STR("SET"), two, STR("1")) == 0);
    store_cluster_move_begin(&f->store, slot, home, to);
    is_int(store_cluster_move_keys(&f->store, slot, home, to, 1), 1, "one of two keys is moved");
    for (int i = 0; i < 2; i++) {
        is_int(redis_call(t, f->redis, both[i], &reply, STR("GET"), both[i]), 0, "key %d", i);
        is_int(redis_number(reply, 0), 1, "is found");
    }
    is_int(redirected(f, "ask"), 1, "one of them by ASK");
    int64_t old = task_deadline(t, 300), before_ms = loop_now_ms(task_loop(t));
    is_int(redis_script_run(t, f->redis, &add_both, one, 2, 2, both, NULL), ERR_UNAVAILABLE,
           "a script about both: surely not done");
    ok(str_find(str_of(task_error(t)), STR("TRYAGAIN")) >= 0, "in the server's words");
    ok(loop_now_ms(task_loop(t)) - before_ms >= 290, "not before the deadline");
    task_deadline_restore(t, old);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, f->redis);
    redis_batch_add(&b, one, STR("INCR"), one);
    redis_batch_add(&b, two, STR("INCR"), two);
    is_int(redis_batch_run(&b, &replies), 0, "a batch about both");
    ok(redis_number(replies[0], 0) == 2 && redis_number(replies[1], 0) == 2, "is done");
    store_cluster_move_keys(&f->store, slot, home, to, 1);
    is_int(redis_script_run(t, f->redis, &add_both, one, 2, 2, both, &reply), 0,
           "both are moved: the script runs there");
    is_int(reply->integer, 3, "once");
    store_cluster_move_end(&f->store, slot, to);
    close_redis(t, f);
}

/* --- masters die --- */

static bool sets(struct task *t, struct fixture *f, struct str key)
{
    return redis_call(t, f->redis, key, NULL, STR("SET"), key, STR("x")) == 0;
}

static void await_key(struct task *t, struct fixture *f, struct str key)
{
    for (int ms = 0; !sets(t, f, key) && ms < PATIENCE_MS; ms += 10)
        check(task_sleep(t, 10) == 0);
}

static int64_t homed(struct task *t, struct fixture *f, int home)
{
    int n = 0;
    while (home_of(f, key_of(t, n)) != home)
        n++;
    return n;
}

static void failover(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_redis(t, f);
    struct str keys[3];
    char ids[3][41], whole[41];
    uint64_t epochs[3];
    for (int i = 0; i < 3; i++) {
        keys[i] = key_of(t, (int)homed(t, f, i));
        check(sets(t, f, keys[i]));
        snprintf(ids[i], sizeof(ids[i]), "%.*s", STR_ARG(redis_run_id_at(f->redis, keys[i])));
        epochs[i] = redis_epoch_at(f->redis, keys[i]);
    }
    await_up(t, f);
    snprintf(whole, sizeof(whole), "%.*s", STR_ARG(redis_run_id(f->redis)));
    store_redis_kill(&f->store.nodes[1]);
    check(task_sleep(t, 50) == 0);
    int64_t before_ms = loop_now_ms(task_loop(t));
    is_int(redis_call(t, f->redis, keys[1], NULL, STR("GET"), keys[1]), ERR_UNAVAILABLE,
           "a master is killed: surely not done");
    ok(loop_now_ms(task_loop(t)) - before_ms < 100, "at once");
    ok(!redis_up_at(f->redis, keys[1]) && redis_up_at(f->redis, keys[0]), "its keys are away");
    ok(!redis_up(f->redis), "so the cluster is not whole");
    is_str(redis_run_id_at(f->redis, keys[1]), STR(""), "its keys are of no generation");
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, f->redis);
    redis_batch_add(&b, keys[0], STR("SET"), keys[0], STR("never"));
    redis_batch_add(&b, keys[1], STR("SET"), keys[1], STR("never"));
    is_int(redis_batch_run(&b, &replies), ERR_UNAVAILABLE, "a batch that it has a part of");
    const struct redis_reply *reply;
    check(redis_call(t, f->redis, keys[0], &reply, STR("GET"), keys[0]) == 0);
    is_str(reply->str, STR("x"), "is not begun");

    await_key(t, f, keys[1]);
    await_up(t, f);
    printf("# after %lld ms\n", (long long)(loop_now_ms(task_loop(t)) - before_ms));
    ok(!str_eq(redis_run_id_at(f->redis, keys[1]), str_of(ids[1])) &&
           redis_run_id_at(f->redis, keys[1]).n == 40,
       "its replica has its keys, in another generation");
    ok(redis_epoch_at(f->redis, keys[1]) != epochs[1], "over another connection");
    for (int i = 0; i < 3; i += 2) {
        is_str(redis_run_id_at(f->redis, keys[i]), str_of(ids[i]), "keys of others: the same one");
        ok(redis_epoch_at(f->redis, keys[i]) == epochs[i], "over the same connection");
    }
    ok(!str_eq(redis_run_id(f->redis), str_of(whole)), "the whole is another one");

    store_cluster_spawn(&f->store, 1);
    check(task_sleep(t, 3000) == 0);
    int fine = 0;
    for (int i = 0; i < 200; i++)
        fine += sets(t, f, key_of(t, i));
    is_int(fine, 200, "the old master came back as a replica, and nothing fails");
    close_redis(t, f);
}

/* A cluster that names other addresses than those that were given. */
static void one_address(struct task *t, void *arg)
{
    struct fixture *f = arg;
    char url[96];
    int dead = store_free_port();
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d,localhost:%d", dead, f->store.nodes[2].port);
    open_on(t, f, url);
    int fine = 0;
    for (int i = 0; i < 100; i++)
        fine += sets(t, f, key_of(t, i));
    is_int(fine, 100, "one address of two answers: enough");
    close_redis(t, f);
}

static void no_cluster(struct task *t, void *arg)
{
    struct fixture *f = arg;
    struct store_redis single;
    struct buf lines;
    buf_init(&lines);
    store_redis_start(&single, NULL);
    log_capture(&lines);
    open_on(t, f, single.url_tcp);
    is_int(redis_call(t, f->redis, STR("k"), NULL, STR("GET"), STR("k")), ERR_UNAVAILABLE,
           "a handle for a cluster, and a single Redis");
    log_capture(NULL);
    ok(str_find(buf_str(&lines), STR("it is a single Redis, and no part of a cluster")) >= 0,
       "is said");
    close_redis(t, f);
    store_redis_stop(&single);

    buf_clear(&lines);
    log_capture(&lines);
    group_init(&f->group, task_loop(t));
    f->redis = redis_open(&f->group, &(struct redis_options){.url = f->store.url, .name = "hot"});
    is_int(redis_call(t, f->redis, STR("k"), NULL, STR("GET"), STR("k")), ERR_UNAVAILABLE,
           "a cluster, and a handle that is not for one");
    log_capture(NULL);
    ok(redis_is_cluster(f->redis) &&
           str_find(buf_str(&lines), STR("a Redis Cluster, which millrace cannot use yet")) >= 0,
       "is said, too");
    close_redis(t, f);
    buf_release(&lines);
}

struct call {
    struct redis *redis;
    int err;
};

static void call(struct task *t, void *arg)
{
    struct call *c = arg;
    c->err = redis_call(t, c->redis, STR("k"), NULL, STR("GET"), STR("k"));
}

/* Closed, or its group cancelled, at any moment of its life. */
static void closing(struct task *t, void *arg)
{
    struct fixture *f = arg;
    for (int ms = 0; ms < 60; ms += 3) {
        struct call c = {.err = 1};
        struct group g;
        group_init(&g, task_loop(t));
        open_redis(t, f);
        c.redis = f->redis;
        check(task_go(&g, "call", call, &c) == 0);
        check(task_sleep(t, ms) == 0);
        if (ms % 2)
            group_cancel(&f->group);
        close_redis(t, f);
        check(group_join(t, &g) == 0);
        check(c.err <= 0);
    }
    ok(true, "a handle ends whenever it is closed");
}

static void with_cluster(task_fn *fn, struct fixture *f)
{
    f->metrics = metrics_open(-1, 1, 0);
    tap_task(fn, f, true);
    metrics_close(f->metrics);
}

int main(void)
{
    struct fixture f;
    store_cluster_start(&f.store, 3, 3);
    with_cluster(everywhere, &f);
    with_cluster(batches, &f);
    with_cluster(one_address, &f);
    with_cluster(no_cluster, &f);
    with_cluster(closing, &f);
    with_cluster(half_moved, &f);
    with_cluster(resharding, &f);
    store_cluster_stop(&f.store);

    store_cluster_start(&f.store, 3, 3);
    with_cluster(failover, &f);
    store_cluster_stop(&f.store);
    return tap_done();
}
