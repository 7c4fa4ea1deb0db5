/* Records between a real MariaDB and a real Redis, while both of them answer. */
#include <stdio.h>

#include "engine/people/cache_fixture.h"
#include "engine/store/cache_private.h"

static void test_keys(struct task *t, void *arg)
{
    (void)arg;
    struct arena *a = task_arena(t);
    is_str(key_expiry, STR("sys:expiry"), "deadlines");
    is_str(key_cache_run, STR("sys:cache_run"), "run id");
    is_str(key_user_info(a, 42), STR("user:42:info"), "a user");
    is_str(key_user_sessions(a, 42), STR("user:42:session"), "a user's sessions");
    is_str(key_session(a, STR("ab")), STR("session:ab"), "a session");
    is_str(key_admin_info(a, 42), STR("admin:42:info"), "an admin");
    is_str(key_admin_sessions(a, 42), STR("admin:42:session"), "an admin's sessions");
    is_str(key_admin_session(a, STR("ab")), STR("admin:session:ab"), "a session of an admin");
}

static void test_hit_and_miss(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_started(t, &n);
    int64_t hits = counted("millrace_cache_hits_total"),
            misses = counted("millrace_cache_misses_total"),
            loads = counted("millrace_cache_loads_total");
    struct seen s = get(t, &n, 1);
    is_int(s.err, 0, "a miss is loaded");
    is_int(s.permission, 10, "with what MySQL has");
    ok(!s.degraded, "and is not degraded");
    is_str(say(t, &n, STR("HGET"), STR("user:1:info"), STR("permission"))->str, STR("10"),
           "it fills Redis");
    is_str(say(t, &n, STR("HGET"), STR("user:1:info"), STR("version"))->str, STR("0"),
           "with its version");
    is_int(say(t, &n, STR("PTTL"), STR("user:1:info"))->integer, -1, "which has no TTL");
    say(t, &n, STR("HSET"), STR("user:1:info"), STR("permission"), STR("11"));
    s = get(t, &n, 1);
    is_int(s.permission, 11, "a hit comes from Redis");
    is_int(probe.loads, 1, "without another load");
    is_int(counted("millrace_cache_hits_total") - hits, 1, "one hit is counted");
    is_int(counted("millrace_cache_misses_total") - misses, 1, "one miss");
    is_int(counted("millrace_cache_loads_total") - loads, 1, "one load");
    is_int(*metric(metrics, METRIC_GAUGE, "millrace_cache_degraded", "", ""), 0, "not degraded");
    is_int(get(t, &n, 99).err, ERR_NOT_FOUND, "what is nowhere is not found");
    close_node(t, &n);
}

static void test_deadline(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_started(t, &n);
    open_node(t, &other);
    get(t, &n, 1);
    int64_t ms = 0, soon = loop_wall_ms(task_loop(t)) + CACHE_EXP_MS;
    str_to_i64(say(t, &n, STR("ZSCORE"), key_expiry, STR("1"))->str, &ms);
    ok(ms > soon - 60000 && ms <= soon, "a fill has a deadline in eight hours");
    say(t, &n, STR("ZREM"), key_expiry, STR("1"));
    get(t, &n, 1);
    cache_touch(t, n.cache, 1);
    is_int(say(t, &n, STR("ZCARD"), key_expiry)->integer, 0, "it is not renewed at each access");
    cache_touch(t, n.cache, 2);
    is_int(say(t, &n, STR("ZCARD"), key_expiry)->integer, 1, "another user's is");
    check(redis_call(t, other.redis, STR_NULL, NULL, STR("PING")) == 0);
    cache_touch(t, other.cache, 1);
    is_int(say(t, &n, STR("ZCARD"), key_expiry)->integer, 2, "another node renews it, too");
    say(t, &n, STR("ZADD"), key_expiry, STR("9e15"), STR("3"));
    cache_touch(t, n.cache, 3);
    str_to_i64(say(t, &n, STR("ZSCORE"), key_expiry, STR("3"))->str, &ms);
    is_int(ms, 9000000000000000, "a later deadline stays");
    close_node(t, &other);
    close_node(t, &n);
}

#define CROWD 50

static void start_all(struct group *g, struct getter *all, size_t count, struct node *n)
{
    for (size_t i = 0; i < count; i++) {
        all[i] = (struct getter){.node = n, .uid = 1};
        check(task_go(g, "get", get_task, &all[i]) == 0);
    }
}

static void test_one_load(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct group g;
    struct getter all[CROWD];
    open_started(t, &n);
    group_init(&g, task_loop(t));
    probe.slow_ms = 100;
    start_all(&g, all, CROWD, &n);
    check(group_join(t, &g) == 0);
    int right = 0;
    for (size_t i = 0; i < CROWD; i++)
        right += all[i].seen.err == 0 && all[i].seen.permission == 10;
    is_int(right, CROWD, "fifty tasks at once get their record");
    is_int(probe.loads, 1, "from one load");
    close_node(t, &n);
}

static void test_loader_fails(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct group g;
    struct getter all[10];
    open_started(t, &n);
    group_init(&g, task_loop(t));
    probe.slow_ms = 50;
    probe.fails = 1;
    start_all(&g, all, 10, &n);
    check(group_join(t, &g) == 0);
    int right = 0, failed = 0;
    for (size_t i = 0; i < 10; i++) {
        right += all[i].seen.err == 0 && all[i].seen.permission == 10;
        failed += all[i].seen.err == ERR_UNAVAILABLE;
    }
    is_int(failed, 1, "only the one whose load failed hears of it");
    is_int(right, 9, "the others try themselves");
    is_int(probe.loads, 2, "one at a time");
    close_node(t, &n);
}

static void test_loader_canceled(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct group g;
    struct getter all[10];
    open_started(t, &n);
    group_init(&g, task_loop(t));
    probe.slow_ms = 200;
    start_all(&g, all, 10, &n);
    while (probe.loads == 0)
        check(task_sleep(t, 5) == 0);
    check(task_sleep(t, 50) == 0);
    task_cancel(all[0].task); /* it came first */
    check(group_join(t, &g) == 0);
    int right = 0;
    for (size_t i = 1; i < 10; i++)
        right += all[i].seen.err == 0 && all[i].seen.permission == 10;
    is_int(all[0].seen.err, ERR_CANCELED, "who loads is cancelled");
    is_int(right, 9, "the others get their record all the same");
    close_node(t, &n);
}

/* A loader has read the row and is slow to bring it; the row changes on another node. */
static void slow_loader(struct task *t, bool present)
{
    struct node n, other;
    struct group g;
    struct getter one = {.node = &n, .uid = 1};
    open_started(t, &n);
    open_node(t, &other);
    check(redis_call(t, other.redis, STR_NULL, NULL, STR("PING")) == 0);
    group_init(&g, task_loop(t));
    probe.slow_ms = 300;
    check(task_go(&g, "get", get_task, &one) == 0);
    while (probe.loads == 0)
        check(task_sleep(t, 5) == 0);
    check(task_sleep(t, 100) == 0);
    probe.slow_ms = 0;
    if (present) /* somebody else was faster with the same row */
        check(get(t, &other, 1).err == 0);
    check(user_set_permission(t, other.cache, 1, 77) == 0);
    is_str(say(t, &n, STR("HGET"), STR("user:1:info"), STR("version"))->str, STR("1"),
           "the writer leaves its version (%s)", present ? "present" : "absent");
    is_int(say(t, &n, STR("HLEN"), STR("user:1:info"))->integer, 1, "and nothing else");
    check(group_join(t, &g) == 0);
    is_int(one.seen.permission, 77, "the slow loader has to read again");
    struct seen s = get(t, &n, 1);
    is_int(s.permission, 77, "Redis has the new row");
    is_int(s.version, 1, "with the new version");
    is_int(marks(t, &n), 0, "no mark is left");
    close_node(t, &other);
    close_node(t, &n);
}

static void test_slow_loader(struct task *t, void *arg)
{
    (void)arg;
    slow_loader(t, false);
    probe.loads = 0;
    slow_loader(t, true);
}

static struct node *bumping;
static void bump(struct task *t, int64_t uid)
{
    check(uid == 1);
    say(t, bumping, STR("HINCRBY"), STR("user:1:info"), STR("version"), STR("1"));
}

static void test_ever_changing(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_started(t, &n);
    bumping = &n;
    probe.then = bump;
    struct seen s = get(t, &n, 1);
    is_int(s.permission, 10, "a row that is always older than Redis knows is given");
    is_int(probe.loads, 3, "after three loads");
    is_int(say(t, &n, STR("HLEN"), STR("user:1:info"))->integer, 1, "and not filled");
    close_node(t, &n);
}

static void test_what_is_no_record(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_started(t, &n);
    say(t, &n, STR("SET"), STR("user:1:info"), STR("a string"));
    is_int(get(t, &n, 1).permission, 10, "a key of another type is a miss");
    is_str(say(t, &n, STR("HGET"), STR("user:1:info"), STR("permission"))->str, STR("10"),
           "and is replaced");
    say(t, &n, STR("HSET"), STR("user:2:info"), STR("permission"), STR("5"));
    is_int(get(t, &n, 2).permission, 20, "so is a hash without a version");
    say(t, &n, STR("HSET"), STR("user:3:info"), STR("permission"), STR("5"), STR("version"),
        STR("x"));
    is_int(get(t, &n, 3).permission, 30, "and one whose version is no number");
    say(t, &n, STR("HSET"), STR("user:4:info"), STR("version"), STR("0"));
    is_int(get(t, &n, 4).permission, 40, "a version alone is a miss");
    say(t, &n, STR("SET"), STR("user:5:info"), STR("a string"));
    check(user_set_permission(t, n.cache, 5, 1) == 0);
    is_str(say(t, &n, STR("HGET"), STR("user:5:info"), STR("version"))->str, STR("1"),
           "a change replaces another type, too");
    is_int(get(t, &n, 5).permission, 1, "and the new row is read");
    close_node(t, &n);
}

static void test_not_drained_yet(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    reset(t, &n);
    ok(!cache_trusts_redis(n.cache), "Redis is not trusted before the first drain");
    struct seen s = get(t, &n, 1);
    is_int(s.permission, 10, "records come from MySQL");
    ok(s.degraded, "marked degraded");
    is_int(say(t, &n, STR("EXISTS"), STR("user:1:info"))->integer, 0, "and fill nothing");
    is_int(*metric(metrics, METRIC_GAUGE, "millrace_cache_degraded", "", ""), 1, "metrics say so");
    close_node(t, &n);
}

/* --- marks --- */

static int raise_mark(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    return cache_mark_stale(t, c, &cache_users, 1);
}

static void settle_task(struct task *t, void *arg)
{
    struct node *n = arg;
    check(cache_settle(t, n->cache, &cache_users, 1) == 0);
}

static void test_mark_raised_meanwhile(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct group g;
    open_node(t, &n);
    reset(t, &n);
    group_init(&g, task_loop(t));
    check(sql_tx(t, n.sql, raise_mark, NULL) == 0);
    say(t, &n, STR("CLIENT"), STR("PAUSE"), STR("400"), STR("WRITE"));
    check(task_go(&g, "settle", settle_task, &n) == 0);
    check(task_sleep(t, 150) == 0); /* it has read the mark, and waits for Redis */
    check(sql_tx(t, n.sql, raise_mark, NULL) == 0);
    check(group_join(t, &g) == 0);
    is_int(marks(t, &n), 1, "a mark that was raised meanwhile stays");
    check(cache_settle(t, n.cache, &cache_users, 1) == 0);
    is_int(marks(t, &n), 0, "and goes when it is settled");
    check(sql_tx(t, n.sql, raise_mark, NULL) == 0);
    int64_t first = sql_number(t, &n, "SELECT mark FROM cache_stale");
    check(cache_settle(t, n.cache, &cache_users, 1) == 0 &&
          sql_tx(t, n.sql, raise_mark, NULL) == 0);
    ok(sql_number(t, &n, "SELECT mark FROM cache_stale") != first,
       "a mark that went and came again has another number");
    close_node(t, &n);
}

static void add_session(struct task *t, struct node *n, const char *key, const char *set,
                        const char *sid)
{
    say(t, n, STR("HSET"), str_of(key), STR("user_id"), STR("1"), STR("username"), STR("x"));
    say(t, n, STR("SADD"), str_of(set), str_of(sid));
}

static bool exists(struct task *t, struct node *n, const char *key)
{
    return say(t, n, STR("EXISTS"), str_of(key))->integer == 1;
}

static void await_no_marks(struct task *t, struct node *n)
{
    for (int ms = 0; ms < PATIENCE_MS && marks(t, n) > 0; ms += 20)
        check(task_sleep(t, 20) == 0);
}

/* Somebody changed user 1 and could not tell Redis. */
static void test_drain(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_started(t, &n);
    check(get(t, &n, 1).err == 0 && get(t, &n, 2).err == 0);
    add_session(t, &n, "session:aa", "user:1:session", "aa");
    add_session(t, &n, "session:bb", "user:2:session", "bb");
    say(t, &n, STR("HSET"), STR("session:cc"), STR("ended"), STR("1"));
    say(t, &n, STR("SADD"), STR("user:1:session"), STR("cc"));
    int64_t drops = counted("millrace_cache_stale_drops_total");
    sql_do(t, &n, "UPDATE user_info SET permission = 5, version = version + 1 WHERE uid = 1");
    check(sql_tx(t, n.sql, raise_mark, NULL) == 0);
    await_no_marks(t, &n);
    is_int(marks(t, &n), 0, "a mark is drained within seconds");
    is_int(get(t, &n, 1).permission, 5, "the new row is read");
    ok(!exists(t, &n, "session:aa"), "the user's sessions are gone from Redis");
    ok(!exists(t, &n, "user:1:session"), "and their set");
    ok(exists(t, &n, "session:cc"), "what an ended one left behind stays");
    ok(exists(t, &n, "session:bb"), "another user's session stays");
    is_int(counted("millrace_cache_stale_drops_total") - drops, 2, "two drops are counted");
    say(t, &n, STR("SET"), STR("user:1:session"), STR("no set"));
    check(sql_tx(t, n.sql, raise_mark, NULL) == 0);
    await_no_marks(t, &n);
    ok(!exists(t, &n, "user:1:session"), "a set of the wrong type is dropped");
    close_node(t, &n);
}

/* The mark of a change stands for an ended session, too, whose end Redis has not heard of. */
static void test_change_settles_all(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    reset(t, &n);
    add_session(t, &n, "session:aa", "user:1:session", "aa");
    check(sql_tx(t, n.sql, raise_mark, NULL) == 0);
    check(user_set_banned(t, n.cache, 1, true) == 0);
    is_int(marks(t, &n), 0, "a change takes the mark away");
    ok(!exists(t, &n, "session:aa"), "after all it stands for was dropped");
    close_node(t, &n);
}

static int raise_admin(struct task *t, struct sql *c, void *arg)
{
    return cache_mark_stale(t, c, &cache_admins, *(int64_t *)arg);
}

static void test_admins(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    reset(t, &n);
    sql_do(t, &n,
           "INSERT INTO admin_info (uid, username, username_folded, password, version)"
           " VALUES (1, 'Root', 'root', 'hash', 4)");
    add_session(t, &n, "admin:session:aa", "admin:1:session", "aa");
    add_session(t, &n, "session:bb", "user:1:session", "bb");
    say(t, &n, STR("HSET"), STR("admin:1:info"), STR("role"), STR("super"), STR("version"),
        STR("3"));
    for (int64_t uid = 1; uid <= 2; uid++) {
        check(sql_tx(t, n.sql, raise_admin, &uid) == 0);
        check(cache_settle(t, n.cache, &cache_admins, uid) == 0);
    }
    is_int(marks(t, &n), 0, "admins are settled");
    is_str(say(t, &n, STR("HGET"), STR("admin:1:info"), STR("version"))->str, STR("4"),
           "the version of the row stays");
    ok(say(t, &n, STR("PTTL"), STR("admin:1:info"))->integer > 0, "for a time");
    is_int(say(t, &n, STR("HLEN"), STR("admin:1:info"))->integer, 1, "alone");
    ok(!exists(t, &n, "admin:session:aa"), "their sessions are gone");
    ok(exists(t, &n, "session:bb"), "the session of the user with that number stays");
    is_str(say(t, &n, STR("HGET"), STR("admin:2:info"), STR("version"))->str,
           STR("9007199254740992"), "an admin who was removed cannot be filled again");
    is_int(say(t, &n, STR("ZCARD"), key_expiry)->integer, 0, "admins have no deadlines");
    close_node(t, &n);
}

/* --- everything at once --- */

#define STORM_CHANGES 40

struct storm {
    struct node *nodes; /* two */
    int64_t uid;
    int64_t wrong, failed;
    bool over;
};

/* Whoever was told that a change is made reads it, on each node. */
static void change_task(struct task *t, void *arg)
{
    struct storm *s = arg;
    for (int64_t i = 1; i <= STORM_CHANGES; i++) {
        struct task_scope scope = task_scope(t);
        s->failed += user_set_permission(t, s->nodes[i % 2].cache, s->uid, i) != 0;
        for (int k = 0; k < 2; k++)
            s->wrong += get(t, &s->nodes[k], s->uid).permission != i;
        task_scope_end(t, scope);
    }
    s->over = true;
}

static int raise_his(struct task *t, struct sql *c, void *arg)
{
    const struct storm *s = arg;
    return cache_mark_stale(t, c, &cache_users, s->uid);
}

/* Ends sessions and reads, meanwhile. */
static void disturb_task(struct task *t, void *arg)
{
    struct storm *s = arg;
    for (int i = 0; !s->over; i++) {
        struct task_scope scope = task_scope(t);
        s->failed += sql_tx(t, s->nodes[0].sql, raise_his, s) != 0;
        s->failed += cache_settle(t, s->nodes[i % 2].cache, &cache_users, s->uid) != 0;
        s->failed += get(t, &s->nodes[i % 2], s->uid).err != 0;
        task_scope_end(t, scope);
    }
}

static void test_storm(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    struct storm storms[3];
    struct group g;
    open_started(t, &n[0]);
    open_node(t, &n[1]);
    start_node(t, &n[1]);
    group_init(&g, task_loop(t));
    for (int i = 0; i < 3; i++) {
        storms[i] = (struct storm){.nodes = n, .uid = i + 1};
        check(task_go(&g, "change", change_task, &storms[i]) == 0);
        check(task_go(&g, "disturb", disturb_task, &storms[i]) == 0);
        check(task_go(&g, "disturb", disturb_task, &storms[i]) == 0);
    }
    check(group_join(t, &g) == 0);
    int64_t wrong = 0, failed = 0;
    for (int i = 0; i < 3; i++) {
        wrong += storms[i].wrong;
        failed += storms[i].failed;
    }
    is_int(wrong, 0, "in a storm of changes and marks nobody reads what was before his change");
    is_int(failed, 0, "and nothing fails");
    await_no_marks(t, &n[0]);
    is_int(marks(t, &n[0]), 0, "no mark is left in the end");
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

/* More than are read at once, and none may be passed over before Redis is trusted. */
static void test_many_marks(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    reset(t, &n);
    sql_do(t, &n, "UPDATE user_info SET uid = 1200, permission = 1, version = 1 WHERE uid = 9");
    say(t, &n, STR("HSET"), STR("user:1200:info"), STR("permission"), STR("90"), STR("version"),
        STR("0"));
    sql_do(t, &n,
           "INSERT INTO cache_stale (uid, kind, mark) SELECT seq, 'user', 7 FROM seq_1_to_1200");
    start_node(t, &n);
    is_int(get(t, &n, 1200).permission, 1, "all pages of marks are drained before trust");
    is_int(marks(t, &n), 0, "and none is left");
    close_node(t, &n);
}

static void test_drop_sessions(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_started(t, &n);
    check(get(t, &n, 1).err == 0);
    add_session(t, &n, "session:aa", "user:1:session", "aa");
    is_int(cache_drop_sessions(t, n.cache, 1), 0, "sessions are dropped");
    ok(!exists(t, &n, "session:aa") && !exists(t, &n, "user:1:session"), "they and their set");
    is_int(say(t, &n, STR("HLEN"), STR("user:1:info"))->integer, 2, "the record stays");
    close_node(t, &n);
}

int main(void)
{
    static void (*const tests[])(struct task *, void *) = {
        test_keys,
        test_hit_and_miss,
        test_deadline,
        test_one_load,
        test_loader_fails,
        test_loader_canceled,
        test_slow_loader,
        test_ever_changing,
        test_what_is_no_record,
        test_not_drained_yet,
        test_mark_raised_meanwhile,
        test_drain,
        test_change_settles_all,
        test_admins,
        test_many_marks,
        test_drop_sessions,
        test_storm,
    };
    return run_tests(tests, sizeof tests / sizeof *tests);
}
