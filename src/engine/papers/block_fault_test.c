/* Blocks that several build at once, and builders that stall, die or lose a store. */
#include "engine/papers/block_fixture.h"
#include "engine/papers/block_private.h"
#include "engine/store/scripts.h"

/* One call on a task of its own. */
struct fetching {
    struct node *node;
    int64_t year, deadline_ms; /* 0: none */
    int64_t papers;
    int err;
    bool ended;
};

static void run_fetch(struct task *t, void *arg)
{
    struct fetching *f = arg;
    struct block b = {0};
    if (f->deadline_ms)
        task_deadline(t, f->deadline_ms);
    f->err = block_fetch(t, f->node->blocks, nature, f->year, &b);
    f->papers = (int64_t)b.count;
    f->ended = true;
}

static void go(struct group *g, struct fetching *f)
{
    check(task_go(g, "fetch", run_fetch, f) == 0);
}

static void pause_ms(struct task *t, int64_t ms)
{
    check(task_sleep(t, ms) == 0);
}

/* Waits until a build has put something aside. */
static bool meet_aside(struct task *t, struct node *n, struct str *key)
{
    for (int i = 0; i < 5000; i++) {
        if (asides(t, n, key))
            return true;
        pause_ms(t, 1);
    }
    return false;
}

/* While this task holds the table lock, builds stop at paperinfo, after they took their lock. */
struct hold {
    struct node *node;
    bool held, release;
};

static int hold_body(struct task *t, struct sql *c, void *arg)
{
    struct hold *h = arg;
    int err = sql_on(t, c, NULL, "LOCK TABLES paperinfo WRITE");
    check(err == 0);
    h->held = true;
    while (!h->release)
        pause_ms(t, 5);
    return sql_on(t, c, NULL, "UNLOCK TABLES");
}

static void hold_papers(struct task *t, void *arg)
{
    struct hold *h = arg;
    check(sql_tx(t, h->node->sql, hold_body, h) == 0);
}

static void begin_hold(struct task *t, struct group *g, struct hold *h)
{
    check(task_go(g, "hold", hold_papers, h) == 0);
    while (!h->held)
        pause_ms(t, 1);
}

static void await_lock(struct task *t, struct node *n, int64_t year)
{
    while (!ask(t, n, "EXISTS", block_lock(t, year)))
        pause_ms(t, 1);
}

static void test_once(struct task *t, void *arg)
{
    (void)arg;
    struct node one, two;
    open_empty(t, &one);
    open_node(t, &two);
    add_many(t, &one, 2020);
    struct fetching f[50];
    struct group g;
    group_init(&g, task_loop(t));
    int64_t before = built(), packed = counted("millrace_block_papers_packed_total");
    for (int i = 0; i < 50; i++) {
        f[i] = (struct fetching){.node = i % 2 ? &one : &two, .year = 2020};
        go(&g, &f[i]);
    }
    check(group_join(t, &g) == 0);
    int whole = 0;
    for (int i = 0; i < 50; i++)
        whole += f[i].err == 0 && f[i].papers == MANY_PAPERS;
    is_int(whole, 50, "fifty tasks of two nodes miss a block and get it");
    is_int(built() - before, 1, "it is built once");
    is_int(counted("millrace_block_papers_packed_total") - packed, MANY_PAPERS,
           "not even begun twice");
    close_node(t, &two);
    close_node(t, &one);
}

static void test_aside(struct task *t, void *arg)
{
    (void)arg;
    struct node one, two;
    open_empty(t, &one);
    open_node(t, &two);
    add_many(t, &one, 2020);
    struct fetching f = {.node = &one, .year = 2020};
    struct group g;
    group_init(&g, task_loop(t));
    go(&g, &f);
    struct str aside;
    ok(meet_aside(t, &two, &aside), "a block is built aside");
    const struct redis_reply *const *replies;
    struct redis_batch b;
    redis_batch_init(&b, t, two.redis);
    redis_batch_add(&b, aside, STR("PTTL"), aside);
    redis_batch_add(&b, aside, STR("EXISTS"), block_key(t, 2020));
    check(redis_batch_run(&b, &replies) == 0);
    ok(replies[0]->integer > 0 && replies[0]->integer <= 600000, "with an end of its own");
    ok(replies[1]->integer == 0 && !f.ended, "and not to be seen before it is whole");
    check(group_join(t, &g) == 0);
    ok(f.err == 0 && f.papers == MANY_PAPERS, "then it is");
    is_int((int64_t)asides(t, &one, NULL), 0, "and nothing is aside");
    close_node(t, &two);
    close_node(t, &one);
}

static void test_dead_builder(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_block(t, &n, 2020, 5);
    say(t, &n, STR("SET"), block_lock(t, 2020), STR("dead"), STR("PX"), STR("30000"));
    struct fetching f[50];
    struct group g;
    group_init(&g, task_loop(t));
    const char *who = "name=\"hot\"";
    int64_t *commands = metric(metrics, METRIC_COUNTER, "millrace_redis_commands_total", who, "");
    int64_t before = *commands;
    for (int i = 0; i < 50; i++) {
        f[i] = (struct fetching){.node = &n, .year = 2020};
        go(&g, &f[i]);
    }
    pause_ms(t, 500);
    ok(!f[0].ended && !f[49].ended, "a task that finds the lock taken waits");
    /* Two each to see that it is missing; then one of them looks every 25 to 50 ms. */
    ok(*commands - before < 100 + 40, "without asking too often (%lld)",
       (long long)(*commands - before));
    say(t, &n, STR("PEXPIRE"), block_lock(t, 2020), STR("100"));
    check(group_join(t, &g) == 0);
    int whole = 0;
    for (int i = 0; i < 50; i++)
        whole += f[i].err == 0 && f[i].papers == 5;
    is_int(whole, 50, "and takes over when it expires");

    say(t, &n, STR("DEL"), block_key(t, 2020));
    say(t, &n, STR("SET"), block_lock(t, 2020), STR("dead"), STR("PX"), STR("30000"));
    f[0] = (struct fetching){.node = &n, .year = 2020, .deadline_ms = 200};
    go(&g, &f[0]);
    check(group_join(t, &g) == 0);
    is_int(f[0].err, ERR_TIMEOUT, "or until its deadline");
    close_node(t, &n);
}

static void test_stolen_lock(struct task *t, void *arg)
{
    (void)arg;
    struct node one, two;
    open_empty(t, &one);
    open_node(t, &two);
    add_block(t, &one, 2020, 300);
    struct group g;
    group_init(&g, task_loop(t));
    struct hold h = {.node = &two};
    begin_hold(t, &g, &h);
    struct fetching f = {.node = &one, .year = 2020};
    int64_t before = built(), packed = counted("millrace_block_papers_packed_total");
    go(&g, &f);
    await_lock(t, &two, 2020);
    pause_ms(t, 100);
    say(t, &two, STR("SET"), block_lock(t, 2020), STR("thief"), STR("PX"), STR("30000"));
    h.release = true;
    while (counted("millrace_block_papers_packed_total") - packed < 300 || asides(t, &two, NULL))
        pause_ms(t, 5);
    pause_ms(t, 100);
    is_int(counted("millrace_block_papers_packed_total") - packed, 300, "a slow builder goes on");
    ok(built() == before && ask(t, &two, "EXISTS", block_key(t, 2020)) == 0,
       "but without its lock it puts nothing into place");
    is_int((int64_t)asides(t, &two, NULL), 0, "and takes away what it had");
    ok(!f.ended, "it waits for the new holder of the lock");
    say(t, &two, STR("PEXPIRE"), block_lock(t, 2020), STR("50"));
    check(group_join(t, &g) == 0);
    ok(f.err == 0 && f.papers == 300 && built() == before + 1, "and builds when it is free again");
    close_node(t, &two);
    close_node(t, &one);
}

static void test_deadline(struct task *t, void *arg)
{
    (void)arg;
    struct node one, two;
    open_empty(t, &one);
    open_node(t, &two);
    add_block(t, &one, 2020, 5);
    struct group g;
    group_init(&g, task_loop(t));
    struct hold h = {.node = &two};
    begin_hold(t, &g, &h);
    struct fetching hasty = {.node = &one, .year = 2020, .deadline_ms = 500},
                    patient = {.node = &one, .year = 2020};
    go(&g, &hasty);
    await_lock(t, &two, 2020);
    go(&g, &patient);
    while (!hasty.ended)
        pause_ms(t, 5);
    is_int(hasty.err, ERR_TIMEOUT, "a builder runs out of time");
    h.release = true;
    int64_t since = loop_now_ms(task_loop(t));
    check(group_join(t, &g) == 0);
    ok(patient.err == 0 && patient.papers == 5, "another one goes on");
    ok(loop_now_ms(task_loop(t)) - since < 5000, "without waiting for the lock to expire");
    close_node(t, &two);
    close_node(t, &one);
}

static void test_canceled(struct task *t, void *arg)
{
    (void)arg;
    struct node one, two;
    open_empty(t, &one);
    open_node(t, &two);
    add_block(t, &one, 2020, 5);
    struct group g, unlucky;
    group_init(&g, task_loop(t));
    group_init(&unlucky, task_loop(t));
    struct hold h = {.node = &two};
    begin_hold(t, &g, &h);
    struct fetching f = {.node = &one, .year = 2020}, next = f;
    go(&unlucky, &f);
    await_lock(t, &two, 2020);
    pause_ms(t, 50);
    group_cancel(&unlucky);
    check(group_join(t, &unlucky) == 0);
    is_int(f.err, ERR_CANCELED, "a builder is cancelled");
    h.release = true;
    int64_t since = loop_now_ms(task_loop(t));
    go(&g, &next);
    check(group_join(t, &g) == 0);
    ok(next.err == 0 && next.papers == 5, "the next one of its node builds");
    ok(loop_now_ms(task_loop(t)) - since < 5000, "without waiting for the lock to expire");

    h = (struct hold){.node = &two};
    say(t, &one, STR("DEL"), block_key(t, 2020));
    begin_hold(t, &g, &h);
    group_init(&unlucky, task_loop(t));
    go(&unlucky, &f);
    await_lock(t, &two, 2020);
    group_cancel(&unlucky);
    check(group_join(t, &unlucky) == 0);
    say(t, &one, STR("SET"), block_lock(t, 2020), STR("another"), STR("PX"), STR("1000"));
    h.release = true;
    next.ended = false;
    go(&g, &next);
    pause_ms(t, 500);
    ok(!next.ended, "a lock that another builder holds by now is not released");
    check(group_join(t, &g) == 0);
    is_int(next.err, 0, "but waited for");
    close_node(t, &two);
    close_node(t, &one);
}

static void test_keeps_lock(struct task *t, void *arg)
{
    (void)arg;
    struct node one, two;
    open_empty(t, &one);
    open_node(t, &two);
    add_many(t, &one, 2020);
    struct group g;
    group_init(&g, task_loop(t));
    struct hold h = {.node = &two};
    begin_hold(t, &g, &h);
    struct fetching f = {.node = &one, .year = 2020};
    go(&g, &f);
    await_lock(t, &two, 2020);
    pause_ms(t, BLOCK_KEEP_MS + 100);
    ok(ask(t, &two, "PTTL", block_lock(t, 2020)) <= BLOCK_LOCK_MS - BLOCK_KEEP_MS, "a long build");
    h.release = true;
    ok(meet_aside(t, &two, NULL), "goes on");
    ok(ask(t, &two, "PTTL", block_lock(t, 2020)) > BLOCK_LOCK_MS - BLOCK_KEEP_MS,
       "and makes its lock last");
    check(group_join(t, &g) == 0);
    is_int(f.err, 0, "until it is done");
    close_node(t, &two);
    close_node(t, &one);
}

static int64_t commit(struct task *t, struct node *n, struct str aside, const char *token,
                      const char *fields)
{
    int64_t status;
    check(SCRIPT_NUMBER(t, n->redis, block_commit, &status, .lock = block_lock(t, 2020),
                        .aside = aside, .block = block_key(t, 2020), .token = str_of(token),
                        .fields = str_of(fields), .ms = STR("60000")) == 0);
    return status;
}

static void test_commit(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct str aside = key_block_aside(task_arena(t), nature, 2020, STR("mine"));
    struct str key = block_key(t, 2020);
    say(t, &n, STR("HSET"), aside, STR("a"), STR("1"), STR("b"), STR("2"));
    say(t, &n, STR("HSET"), key, STR("old"), STR("1"));
    is_int(commit(t, &n, aside, "mine", "2"), 0, "no lock, no renaming");
    say(t, &n, STR("SET"), block_lock(t, 2020), STR("yours"));
    is_int(commit(t, &n, aside, "mine", "2"), 0, "nor under the lock of another builder");
    is_int(commit(t, &n, aside, "mine", "0"), 0, "nor removing");
    say(t, &n, STR("SET"), block_lock(t, 2020), STR("mine"));
    is_int(commit(t, &n, aside, "mine", "3"), -1, "a field is missing");
    is_int(ask(t, &n, "HLEN", key), 1, "the old block is still there");
    is_int(commit(t, &n, aside, "mine", "2"), 1, "all is well");
    ok(ask(t, &n, "HLEN", key) == 2 && ask(t, &n, "EXISTS", aside) == 0, "it is in place");
    int64_t left = ask(t, &n, "PTTL", key);
    ok(left > 50000 && left <= 60000, "for its time");
    is_int(commit(t, &n, aside, "mine", "2"), -1, "a repeat");
    is_int(ask(t, &n, "HLEN", key), 2, "changes nothing");
    is_int(commit(t, &n, aside, "mine", "0"), 1, "a block without papers");
    is_int(ask(t, &n, "EXISTS", key), 0, "is gone");
    close_node(t, &n);
}

static void test_redis_dies(struct task *t, void *arg)
{
    (void)arg;
    struct node one, two;
    open_empty(t, &one);
    open_node(t, &two);
    add_many(t, &one, 2020);
    struct fetching f = {.node = &one, .year = 2020};
    struct group g;
    group_init(&g, task_loop(t));
    go(&g, &f);
    ok(meet_aside(t, &two, NULL) && !f.ended, "in the middle of a build");
    store_redis_kill(&store);
    check(group_join(t, &g) == 0);
    is_int(f.err, ERR_UNAVAILABLE, "Redis dies");
    struct block b;
    is_int(block_fetch(t, one.blocks, nature, 2020, &b), ERR_UNAVAILABLE, "nothing can be had: %s",
           task_error(t));
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    while (!redis_up(one.redis) || !redis_up(two.redis))
        pause_ms(t, 5);
    is_int(block_fetch(t, one.blocks, nature, 2020, &b), 0, "when it is back, all is well");
    is_int((int64_t)b.count, MANY_PAPERS, "the block is whole");
    close_node(t, &two);
    close_node(t, &one);
}

static void test_mysql_dies(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_many(t, &n, 2020);
    struct fetching f = {.node = &n, .year = 2020};
    struct group g;
    group_init(&g, task_loop(t));
    go(&g, &f);
    ok(meet_aside(t, &n, NULL) && !f.ended, "in the middle of a build");
    mariadb_kill(&server);
    check(group_join(t, &g) == 0);
    bool seen = ask(t, &n, "EXISTS", block_key(t, 2020));
    ok(f.err ? f.err == ERR_UNAVAILABLE && !seen : f.papers == MANY_PAPERS,
       "MySQL dies: half a block is not seen");
    ok(asides(t, &n, NULL) == 0 && ask(t, &n, "EXISTS", block_lock(t, 2020)) == 0,
       "and nothing stays behind");
    mariadb_restart(&server);
    struct block b;
    int err;
    while ((err = block_fetch(t, n.blocks, nature, 2020, &b)) == ERR_UNAVAILABLE)
        pause_ms(t, 50);
    ok(err == 0 && b.count == MANY_PAPERS, "when it is back, all is well");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_once, NULL, true);
    tap_task(test_aside, NULL, true);
    tap_task(test_dead_builder, NULL, true);
    tap_task(test_stolen_lock, NULL, true);
    tap_task(test_deadline, NULL, true);
    tap_task(test_canceled, NULL, true);
    tap_task(test_keeps_lock, NULL, true);
    tap_task(test_commit, NULL, true);
    tap_task(test_redis_dies, NULL, true);
    tap_task(test_mysql_dies, NULL, true);
    return stop_stores();
}
