/* What users have in Redis ends after their deadline, and not before MySQL has their money. */
#include "engine/money/sweeper.h"

#include "engine/money/ledger_fixture.h"

static struct sweeper sweeper_of(struct node *n)
{
    return (struct sweeper){
        .redis = n->redis, .cache = n->cache, .ledger = n->ledger, .metrics = metrics};
}

static int64_t deadline(struct task *t, struct node *n, int64_t uid)
{
    return ask_int(t, n, STR("ZSCORE"), key_expiry, str_int(task_arena(t), uid));
}

static void set_deadline(struct task *t, struct node *n, int64_t uid, const char *ms)
{
    say(t, n, STR("ZADD"), key_expiry, str_of(ms), str_int(task_arena(t), uid));
}

static bool in_store(struct task *t, struct node *n, struct str key)
{
    return ask_int(t, n, STR("EXISTS"), key, STR_NULL) == 1;
}

/* A user with all that can be swept. */
static int64_t add_seen_user(struct task *t, struct node *n)
{
    int64_t uid = add_user(t, n, 1000);
    check(balance(t, n, uid) == 1000);
    struct arena *a = task_arena(t);
    say(t, n, STR("HSET"), key_user_info(a, uid), STR("version"), STR("4"), STR("username"),
        STR("ada"));
    struct str sid = str_printf(a, "sid%lld", (long long)uid);
    say(t, n, STR("SADD"), key_user_sessions(a, uid), sid);
    say(t, n, STR("HSET"), key_session(a, sid), STR("user_id"), str_int(a, uid));
    say(t, n, STR("ZADD"), key_history(a, uid), STR("1"), STR("run"));
    return uid;
}

static void test_round(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    say(t, &n, STR("DEL"), key_expiry);
    struct sweeper s = sweeper_of(&n);
    struct arena *a = task_arena(t);
    int64_t early = add_seen_user(t, &n), late = add_seen_user(t, &n), swept = -1;
    int64_t now = loop_wall_ms(task_loop(t));
    int64_t left = deadline(t, &n, early) - now;
    ok(left > CACHE_EXP_MS - 60000 && left <= CACHE_EXP_MS, "a request gives eight hours");
    ok(sweeper_round(t, &s, &swept) == 0 && swept == 0, "before that nothing is swept");
    is_int(in_redis(t, &n, late), 1000, "and nothing is gone");
    set_deadline(t, &n, late, "1000");
    ok(sweeper_round(t, &s, &swept) == 0 && swept == 1, "after that it is");
    is_int(in_redis(t, &n, late), -1, "the balance");
    ok(!in_store(t, &n, key_user_sessions(a, late)), "the sessions");
    struct str sid = str_printf(a, "sid%lld", (long long)late);
    ok(!in_store(t, &n, key_session(a, sid)), "each of them: none could be found any more");
    ok(!in_store(t, &n, key_history(a, late)), "the history");
    is_int(ask_int(t, &n, STR("HLEN"), key_user_info(a, late), STR_NULL), 1,
           "the record, but for its version");
    is_int(deadline(t, &n, late), -1, "and the deadline");
    ok(in_redis(t, &n, early) == 1000 && in_store(t, &n, key_user_info(a, early)),
       "of this user alone");
    is_int(balance(t, &n, late), 1000, "and all of it comes back when it is needed");
    ok(every_cent(t, &n, late), "every cent is there");
    set_deadline(t, &n, 999999, "1000");
    ok(sweeper_round(t, &s, &swept) == 0 && swept == 1, "a user who is not in MySQL goes, too");
    close_node(t, &n);
}

static void test_kept(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    say(t, &n, STR("DEL"), key_expiry);
    struct sweeper s = sweeper_of(&n);
    int64_t uid = add_seen_user(t, &n), other = add_seen_user(t, &n), swept = -1;
    struct ledger_move m = move_of(t, uid, 50, "r1");
    struct ledger_row row;
    check(ledger_recharge_make(t, n.ledger, &m, &row) == 0); /* not applied to Redis */
    set_deadline(t, &n, uid, "1000");
    set_deadline(t, &n, other, "1001");
    int64_t before = counted("millrace_sweeper_kept_total");
    ok(sweeper_round(t, &s, &swept) == 0 && swept == 1, "a round goes on past a user that stays");
    ok(in_redis(t, &n, uid) == 1000 && in_store(t, &n, key_user_info(task_arena(t), uid)),
       "which keeps all");
    is_int(counted("millrace_sweeper_kept_total") - before, 1, "is counted");
    int64_t again = deadline(t, &n, uid) - loop_wall_ms(task_loop(t));
    ok(again > 0 && again <= SWEEPER_RETRY_MS, "and tried again soon");
    check(ledger_round(t, n.ledger) == 0);
    set_deadline(t, &n, uid, "1000");
    ok(sweeper_round(t, &s, &swept) == 0 && swept == 1, "with success, once Redis has the move");
    ok(in_redis(t, &n, uid) == -1 && balance(t, &n, uid) == 1050, "and the money is right");
    ok(every_cent(t, &n, uid), "every cent is there");
    close_node(t, &n);
}

static void test_record_in_queue(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    say(t, &n, STR("DEL"), key_expiry);
    struct sweeper s = sweeper_of(&n);
    int64_t uid = add_seen_user(t, &n), swept = -1, status;
    struct ledger_move m = move_of(t, uid, 100, "d1");
    struct ledger_look look;
    struct ledger_request request;
    check(ledger_look(t, n.ledger, uid, &look) == 0);
    check(note_one(t, n.ledger, &m, &look, &request) == 0);
    check(take_one(t, n.ledger, &m, &look, &status) == 0 && status == LEDGER_TAKEN);
    say(t, &n, STR("DEL"), key_billing); /* an announcement that was lost */
    set_deadline(t, &n, uid, "1000");
    ok(sweeper_round(t, &s, &swept) == 0 && swept == 1, "a record is written first");
    is_int(in_mysql(t, &n, uid), 900, "even one that was not announced");
    ok(balance(t, &n, uid) == 900 && every_cent(t, &n, uid), "every cent is there");

    set_deadline(t, &n, uid, "1000");
    store_redis_kill(&store);
    ok(sweeper_round(t, &s, &swept) != 0, "without Redis nothing is swept");
    store_redis_spawn(&store, NULL);
    close_node(t, &n);
}

struct renewal {
    struct node *node;
    int64_t uid;
    bool held, release;
};

static int hold_body(struct task *t, struct sql *c, void *arg)
{
    struct renewal *r = arg;
    struct ledger_row row;
    check(ledger_row_lock(t, c, r->uid, &row) == 0);
    check(sql_on(t, c, NULL, "LOCK TABLES user_info WRITE") == 0);
    r->held = true;
    while (!r->release)
        pause_ms(t, 2);
    return sql_on(t, c, NULL, "UNLOCK TABLES");
}

static void hold(struct task *t, void *arg)
{
    struct renewal *r = arg;
    check(sql_tx(t, r->node->sql, hold_body, r) == 0);
}

static void sweep_once(struct task *t, void *arg)
{
    struct sweeper *s = arg;
    int64_t swept;
    check(sweeper_round(t, s, &swept) == 0);
    is_int(swept, 0, "a request during the sweep keeps its deadline");
}

static void test_renewed(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    await_redis(t, &n);
    say(t, &n, STR("DEL"), key_expiry);
    struct sweeper s = sweeper_of(&n);
    int64_t uid = add_seen_user(t, &n);
    set_deadline(t, &n, uid, "1000");
    struct renewal r = {.node = &n, .uid = uid};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "hold", hold, &r) == 0);
    while (!r.held)
        pause_ms(t, 2);
    check(task_go(&g, "sweep", sweep_once, &s) == 0);
    pause_ms(t, 100); /* it waits for the row */
    set_deadline(t, &n, uid, "99999999999999");
    r.release = true;
    check(group_join(t, &g) == 0);
    is_int(deadline(t, &n, uid), 99999999999999, "which stays");
    is_int(balance(t, &n, uid), 1000, "and the balance is loaded again");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_round, NULL, true);
    tap_task(test_kept, NULL, true);
    tap_task(test_record_in_queue, NULL, true);
    tap_task(test_renewed, NULL, true);
    return stop_stores();
}
