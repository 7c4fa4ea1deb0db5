/* Money between two stores that both stand. */
#include "engine/money/ledger_fixture.h"
#include "engine/store/amount.h"
#include "engine/store/scripts.h"
#include "tests/role.h"

/* --- many calls at once --- */

struct call {
    struct node *node;
    bool takes;
    struct ledger_move m;
    int err;
    int64_t after;
};

static void run_call(struct task *t, void *arg)
{
    struct call *c = arg;
    c->err = c->takes ? ledger_deduct(t, c->node->ledger, &c->m, &c->after)
                      : ledger_recharge(t, c->node->ledger, &c->m, &c->after);
}

static void run_calls(struct task *t, struct call *c, size_t count)
{
    struct group g;
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < count; i++)
        check(task_go(&g, "call", run_call, &c[i]) == 0);
    check(group_join(t, &g) == 0);
}

/* Stands for the audit log. */
static int note(struct task *t, struct sql *c, void *arg)
{
    int64_t *uid = arg;
    return sql_on(t, c, NULL,
                  "INSERT INTO admin_audit (at, admin_uid, admin_name, action, target_uid,"
                  " ip_address) VALUES (UTC_TIMESTAMP(3), 1, 'a', 'move', ?, '::1')",
                  sql_int(*uid));
}

static int64_t notes(struct task *t, struct node *n, int64_t uid)
{
    return sql_number(t, n, "SELECT COUNT(*) FROM admin_audit WHERE target_uid = ?", uid);
}

/* --- recharges --- */

static void test_recharge(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 100000), after = 0;
    is_int(balance(t, &n, uid), 100000, "a balance is loaded");
    is_int(in_redis(t, &n, uid), 100000, "into Redis");
    is_int(ask_int(t, &n, STR("PTTL"), key_balance(task_arena(t), uid), STR_NULL), -1,
           "without a native TTL");
    ok(recharge(t, &n, uid, 24005, "r1", &after) == 0 && after == 124005, "a recharge is added");
    ok(in_mysql(t, &n, uid) == 124005 && in_redis(t, &n, uid) == 124005, "in both stores");
    is_int(in_outbox(t, &n, uid), 0, "and nothing is left in the outbox");
    ok(recharge(t, &n, uid, 24005, "r1", &after) == 0 && after == 124005, "once");
    ok(every_cent(t, &n, uid), "every cent is there");

    is_int(recharge(t, &n, uid, 24006, "r1", &after), ERR_CONFLICT, "not for another amount");
    is_int(deduct(t, &n, uid, 24005, "r1", &after), ERR_CONFLICT, "nor to take it");
    is_int(recharge(t, &n, uid + 1000, 5, "r1", &after), ERR_NOT_FOUND, "nor for an unknown user");
    is_int(recharge(t, &n, uid, 0, "r2", &after), ERR_INVALID, "nothing is no amount");
    is_int(recharge(t, &n, uid, -5, "r2", &after), ERR_INVALID, "nor is less than that");
    is_int(recharge(t, &n, uid, AMOUNT_CENTS_MAX + 1, "r2", &after), ERR_INVALID, "nor too much");
    is_int(recharge(t, &n, uid, 5, "", &after), ERR_INVALID, "nor without an id");
    is_int(recharge(t, &n, uid, 5, "a b", &after), ERR_INVALID, "nor with a space in it");
    ok(recharge(t, &n, uid, 1, "r3", &after) == 0 && after == 124006, "one cent is one");
    ok(every_cent(t, &n, uid), "every cent is there");

    sql_do(t, &n, "UPDATE user_info SET balance = 999999999999.00 WHERE uid = ?", uid);
    is_int(recharge(t, &n, uid, 100, "r4", &after), ERR_LIMIT, "a column has its limit");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM ledger_request WHERE uid = ?", uid), 2,
           "and what was refused has left nothing");
    say(t, &n, STR("DEL"), key_balance(task_arena(t), uid));
    ok(recharge(t, &n, uid, 99, "r4", &after) == 0 && after == 99999999999999, "up to it");
    is_int(in_redis(t, &n, uid), 99999999999999, "exact in Redis too");
    is_int(in_mysql(t, &n, uid), 99999999999999, "and in MySQL");
    close_node(t, &n);
}

static void test_repeated(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    open_node(t, &n[0]);
    open_node(t, &n[1]);
    int64_t uid = add_user(t, &n[0], 0);
    struct call c[10];
    for (int i = 0; i < 10; i++) {
        c[i] = (struct call){.node = &n[i % 2], .m = move_of(t, uid, 500, "same")};
        c[i].m.also = note;
        c[i].m.also_arg = &uid;
    }
    run_calls(t, c, 10);
    int good = 0;
    for (int i = 0; i < 10; i++)
        good += c[i].err == 0 && c[i].after == 500;
    is_int(good, 10, "ten times the same recharge on two nodes, ten times the same answer");
    is_int(in_mysql(t, &n[0], uid), 500, "made once");
    is_int(notes(t, &n[0], uid), 1, "noted once");
    ok(every_cent(t, &n[0], uid), "every cent is there");
    for (int i = 0; i < 10; i++) {
        c[i] = (struct call){
            .node = &n[i % 2], .takes = true, .m = move_of(t, uid, 200, "same-deduction")};
        c[i].m.also = note;
        c[i].m.also_arg = &uid;
    }
    run_calls(t, c, 10);
    good = 0;
    for (int i = 0; i < 10; i++)
        good += c[i].err == 0 && c[i].after == 300;
    is_int(good, 10, "ten times the same deduction, ten times the same answer");
    is_int(in_mysql(t, &n[1], uid), 300, "taken once");
    is_int(notes(t, &n[0], uid), 2, "noted once");
    ok(every_cent(t, &n[1], uid), "every cent is there");
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

/* --- deductions --- */

static void test_deduct(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), after = 0;
    ok(deduct(t, &n, uid, 300, "d1", &after) == 0 && after == 700, "a deduction is taken");
    ok(in_mysql(t, &n, uid) == 700 && in_redis(t, &n, uid) == 700, "from both stores");
    ok(queued(t, &n, uid) == 0 && of_ledger(t, &n, uid, "synced") == 1, "and its record is synced");
    is_int(ask_int(t, &n, STR("HLEN"), key_deductions(task_arena(t), uid), STR_NULL), 0,
           "nothing is left of it");
    ok(deduct(t, &n, uid, 300, "d1", &after) == 0 && after == 700, "once");
    struct ledger_move m = move_of(t, uid, 701, "d2");
    m.also = note;
    m.also_arg = &uid;
    is_int(ledger_deduct(t, n.ledger, &m, &after), ERR_FUNDS, "no more than there is");
    is_int(notes(t, &n, uid), 0, "is noted");
    is_int(deduct(t, &n, uid, 301, "d1", &after), ERR_CONFLICT, "nor another amount");
    is_int(deduct(t, &n, uid + 1000, 1, "d1", &after), ERR_NOT_FOUND, "nor from an unknown user");
    is_int(in_mysql(t, &n, uid), 700, "nothing of that was taken");
    ok(deduct(t, &n, uid, 700, "d3", &after) == 0 && after == 0, "the last cent can be taken");
    ok(recharge(t, &n, uid, 701, "r1", &after) == 0, "and when there is more");
    ok(ledger_deduct(t, n.ledger, &m, &after) == 0 && after == 0,
       "the refused one can be repeated");
    is_int(notes(t, &n, uid), 1, "noted now");
    is_int(sql_number(t, &n,
                      "SELECT COUNT(*) FROM billing_log WHERE uid = ? AND source = 'redis'"
                      " AND at BETWEEN UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE AND UTC_TIMESTAMP(3)",
                      uid),
           3, "the log knows when");
    ok(every_cent(t, &n, uid), "every cent is there");
    close_node(t, &n);
}

static void test_overdraw(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    open_node(t, &n[0]);
    open_node(t, &n[1]);
    int64_t uid = add_user(t, &n[0], 750);
    struct call c[50];
    char id[50][16];
    for (int i = 0; i < 50; i++) {
        snprintf(id[i], sizeof id[i], "o%d", i);
        c[i] = (struct call){.node = &n[i % 2], .takes = true, .m = move_of(t, uid, 100, id[i])};
    }
    run_calls(t, c, 50);
    int taken = 0, short_of = 0;
    for (int i = 0; i < 50; i++) {
        taken += c[i].err == 0;
        short_of += c[i].err == ERR_FUNDS;
    }
    ok(taken == 7 && short_of == 43, "fifty want what is enough for seven: %d, %d", taken,
       short_of);
    is_int(in_mysql(t, &n[0], uid), 50, "the rest stays");
    ok(every_cent(t, &n[0], uid), "every cent is there");
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

/* --- loaders that are late --- */

static void test_slow_loader(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), after, cents = -1;
    struct generation generation;
    struct ledger_row old, seen;
    bool loaded = false;
    check(ledger_fence(t, n.ledger, &generation) == 0);
    check(ledger_row_read(t, n.ledger, uid, &old) == 0);
    struct ledger_move m = move_of(t, uid, 500, "r1");
    struct ledger_row row;
    check(ledger_recharge_make(t, n.ledger, &m, &row) == 0);
    check(ledger_carry_over(t, n.ledger, uid, row.move_no) == 0);
    is_int(in_redis(t, &n, uid), -1, "a move makes no balance where there is none");
    is_int(of_ledger(t, &n, uid, "move"), 2, "but is remembered");
    check(ledger_load_row(t, n.ledger, uid, &generation, &old, &loaded, &seen, &cents) == 0);
    ok(!loaded && in_redis(t, &n, uid) == -1, "a loader with a row from before it is refused");
    is_int(balance(t, &n, uid), 1500, "and a new row is right");

    check(ledger_row_read(t, n.ledger, uid, &old) == 0);
    ok(deduct(t, &n, uid, 200, "d1", &after) == 0, "something is taken");
    say(t, &n, STR("DEL"), key_balance(task_arena(t), uid));
    check(ledger_load_row(t, n.ledger, uid, &generation, &old, &loaded, &seen, &cents) == 0);
    ok(!loaded && in_redis(t, &n, uid) == -1, "a row from before a sync is refused");
    is_int(balance(t, &n, uid), 1300, "and a new row is right");

    ok(ledger_let_go(t, n.ledger, uid) == 0 && in_redis(t, &n, uid) == -1, "it is let go");
    check(ledger_load_row(t, n.ledger, uid, &generation, &old, &loaded, &seen, &cents) == 0);
    ok(!loaded && in_redis(t, &n, uid) == -1, "even then the old row is refused");
    check(ledger_row_read(t, n.ledger, uid, &row) == 0);
    struct generation other = {"0000000000000000000000000000000000000000"};
    check(ledger_load_row(t, n.ledger, uid, &other, &row, &loaded, &seen, &cents) == 0);
    ok(!loaded, "and a row that was read while Redis was another one");
    ok(every_cent(t, &n, uid), "every cent is there");

    int64_t before = alarms();
    struct buf logged;
    buf_init(&logged);
    log_capture(&logged);
    say(t, &n, STR("DEL"), key_balance(task_arena(t), uid));
    say(t, &n, STR("HSET"), key_ledger(task_arena(t), uid), STR("synced"), STR("9"));
    bool degraded;
    is_int(ledger_balance(t, n.ledger, uid, &cents, &degraded), ERR_INTERNAL,
           "a MySQL that is older than Redis");
    is_int(alarms() - before, 1, "is an alarm");
    log_capture(NULL);
    buf_release(&logged);
    close_node(t, &n);
}

struct reading {
    struct node *node;
    int64_t uid, cents;
};

static void run_reading(struct task *t, void *arg)
{
    struct reading *r = arg;
    r->cents = balance(t, r->node, r->uid);
}

static void test_single_flight(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct reading r[50];
    struct group g;
    group_init(&g, task_loop(t));
    struct generation generation;
    check(ledger_fence(t, n.ledger, &generation) == 0);
    const char *asked = "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM"
                        " information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'COM_SELECT'"
                        " AND ? > 0";
    int64_t before = sql_number(t, &n, asked, 1);
    for (int i = 0; i < 50; i++) {
        r[i] = (struct reading){&n, uid, 0};
        check(task_go(&g, "read", run_reading, &r[i]) == 0);
    }
    check(group_join(t, &g) == 0);
    int good = 0;
    for (int i = 0; i < 50; i++)
        good += r[i].cents == 1000;
    is_int(good, 50, "fifty read a balance that is not loaded");
    int64_t more = sql_number(t, &n, asked, 1) - before;
    ok(more < 20, "which is loaded once (%lld)", (long long)more);
    close_node(t, &n);
}

/* --- records that do not fit --- */

static void push(struct task *t, struct node *n, int64_t uid, const char *record)
{
    struct str key = key_billing_queue(task_arena(t), uid);
    say(t, n, STR("RPUSH"), key, str_of(record));
}

static void test_alarms(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct buf logged;
    buf_init(&logged);
    log_capture(&logged);
    int64_t uid = add_user(t, &n, 1000), before = alarms(), after;
    check(deduct(t, &n, uid, 100, "d1", &after) == 0);
    push(t, &n, uid, "{\"seq\":3,\"timestamp\":1,\"kind\":\"charge\",\"cost\":1,\"qid\":\"q\"}");
    is_int(ledger_sync(t, n.ledger, uid), ERR_INTERNAL, "a hole among the records");
    is_int(alarms() - before, 1, "is an alarm");
    ok(str_find(buf_str(&logged), STR("record 3 where 2 is due")) >= 0, "that says where");
    ok(in_mysql(t, &n, uid) == 900 && queued(t, &n, uid) == 1, "and nothing is changed");
    is_int(ledger_let_go(t, n.ledger, uid), ERR_INTERNAL, "such a user is not let go");
    say(t, &n, STR("DEL"), key_billing_queue(task_arena(t), uid));

    uid = add_user(t, &n, 1000);
    push(t, &n, uid, "{\"seq\":1,\"timestamp\":1,\"kind\":\"charge\",\"cost\":1001}");
    is_int(ledger_sync(t, n.ledger, uid), ERR_INTERNAL, "a record of more than there is");
    ok(in_mysql(t, &n, uid) == 1000 && queued(t, &n, uid) == 1, "changes nothing either");
    bool degraded;
    is_int(ledger_balance(t, n.ledger, uid, &after, &degraded), ERR_INTERNAL, "cannot be loaded");
    is_int(in_redis(t, &n, uid), -1, "below zero");
    is_int(alarms() - before, 4, "all of these are alarms");

    uid = add_user(t, &n, 1000);
    check(balance(t, &n, uid) == 1000);
    say(t, &n, STR("SET"), key_balance(task_arena(t), uid), STR("1007"));
    is_int(ledger_let_go(t, n.ledger, uid), ERR_CONFLICT, "a balance that is off is not let go");
    is_int(*metric(metrics, METRIC_GAUGE, "millrace_ledger_drift_cents", "", ""), 7,
           "the drift is shown");
    ok(str_find(buf_str(&logged), STR("has 10.07 in Redis and 10.00 in MySQL")) >= 0, "and logged");
    log_capture(NULL);
    buf_release(&logged);
    close_node(t, &n);
}

/* --- what the syncer is made for --- */

static void charge(struct task *t, struct node *n, int64_t uid, int64_t seq)
{
    struct arena *a = task_arena(t);
    push(t, n, uid,
         str_printf(a,
                    "{\"seq\":%lld,\"timestamp\":1700000000123,\"kind\":\"charge\","
                    "\"qid\":\"q1\",\"doi\":\"10.1/%lld\",\"cost\":2}",
                    (long long)seq, (long long)seq)
             .p);
    say(t, n, STR("HSET"), key_result(a, uid, STR("q1")),
        str_printf(a, "10.1/%lld", (long long)seq),
        STR("{\"ai_result\":{\"relevant\":true,\"reason\":\"\"},\"block_key\":\"meta:J:2020\"}"));
    say(t, n, STR("DECRBY"), key_balance(a, uid), STR("2"));
    say(t, n, STR("HINCRBY"), key_ledger(a, uid), STR("seq"), STR("1"));
}

struct syncing {
    struct node *n;
    int64_t uid, left; /* when it is over */
};

static void sync_all(struct task *t, void *arg)
{
    struct syncing *s = arg;
    check(ledger_sync(t, s->n->ledger, s->uid) == 0);
    s->left = queued(t, s->n, s->uid);
}

static void test_many_records(struct task *t, void *arg)
{
    (void)arg;
    enum { RECORDS = 2 * LEDGER_BATCH + 345, CENTS = 100000 };
    struct node n[2];
    open_node(t, &n[0]);
    open_node(t, &n[1]);
    int64_t uid = add_user(t, &n[0], CENTS);
    check(balance(t, &n[0], uid) == CENTS);
    for (int64_t seq = 1; seq <= RECORDS; seq++) {
        struct arena_mark mark = arena_mark(task_arena(t));
        charge(t, &n[0], uid, seq);
        arena_reset(task_arena(t), mark);
    }
    say(t, &n[0], STR("ZADD"), key_billing, STR("1"), str_int(task_arena(t), uid));
    is_int(due_in_redis(t, &n[0], uid), CENTS - 2 * LEDGER_BATCH, "as many are seen at once");
    int64_t waiting = 0;
    check(ledger_backlog(t, n[0].ledger, &waiting) == 0);
    is_int(waiting, RECORDS, "all of them wait");
    struct group g;
    group_init(&g, task_loop(t));
    struct syncing both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = (struct syncing){&n[i], uid, -1};
        check(task_go(&g, "sync", sync_all, &both[i]) == 0);
    }
    check(group_join(t, &g) == 0);
    ok(both[0].left == 0 && both[1].left == 0,
       "two nodes sync them, and each goes on until none is left: %lld, %lld",
       (long long)both[0].left, (long long)both[1].left);
    check(ledger_backlog(t, n[0].ledger, &waiting) == 0);
    is_int(waiting, 0, "none waits any more");
    is_int(in_mysql(t, &n[0], uid), CENTS - 2 * RECORDS, "each once");
    is_int(sql_number(t, &n[0],
                      "SELECT COUNT(*) FROM billing_log WHERE uid = ? AND qid = 'q1'"
                      " AND doi = CONCAT('10.1/', number) AND at = '2023-11-14 22:13:20.123'",
                      uid),
           RECORDS, "with all that they say");
    ok(every_cent(t, &n[0], uid), "every cent is there");
    check(ledger_round(t, n[0].ledger) == 0);
    is_int(ask_int(t, &n[0], STR("ZSCORE"), key_billing, str_int(task_arena(t), uid)), -1,
           "an old announcement is taken away when nothing waits");
    int64_t after;
    check(deduct(t, &n[0], uid, 10, "d1", &after) == 0 && ledger_round(t, n[0].ledger) == 0);
    ok(ask_int(t, &n[0], STR("ZSCORE"), key_billing, str_int(task_arena(t), uid)) > 0,
       "a young one stays");
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

/* --- dropping records by seq, whether they are found by their place or must be read --- */

static void check_trim(struct task *t, struct node *n, int64_t uid, int64_t billed, int64_t left)
{
    check(ledger_trim(t, n->ledger, uid, billed) == 0);
    is_int(queued(t, n, uid), left, "up to %lld", (long long)billed);
}

static void test_trim(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid), ledger = key_ledger(task_arena(t), uid);
    for (int i = 0; i < 6; i++)
        check(pay(t, &n, paper_of(t, uid, qid, i, 1)) == CHARGE_DONE);
    check_trim(t, &n, uid, 0, 6);
    check_trim(t, &n, uid, 1, 5);
    check_trim(t, &n, uid, 4, 2);
    check_trim(t, &n, uid, 4, 2);
    check_trim(t, &n, uid, 2, 2);
    is_int(of_ledger(t, &n, uid, "synced"), 4, "a late trim takes nothing back");
    say(t, &n, STR("HINCRBY"), ledger, STR("seq"), STR("3"));
    for (int i = 6; i < 8; i++)
        check(pay(t, &n, paper_of(t, uid, qid, i, 1)) == CHARGE_DONE); /* 5, 6, 10, 11 */
    check_trim(t, &n, uid, 7, 2);                                      /* has no record */
    check_trim(t, &n, uid, 10, 1);
    check_trim(t, &n, uid, 99, 0);
    check_trim(t, &n, uid, 99, 0);
    close_node(t, &n);
}

/* Not yet in MySQL. */
static void take_only(struct task *t, struct node *n, int64_t uid, const char *id)
{
    struct ledger_move m = move_of(t, uid, 5, id);
    struct ledger_look look;
    int64_t status = 0;
    check(ledger_look(t, n->ledger, uid, &look) == 0);
    check(take_one(t, n->ledger, &m, &look, &status) == 0 && status == LEDGER_TAKEN);
}

static void test_trim_deductions(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid), deductions = key_deductions(task_arena(t), uid);
    check(balance(t, &n, uid) == 1000);
    take_only(t, &n, uid, "d1");
    check(pay(t, &n, paper_of(t, uid, qid, 1, 1)) == CHARGE_DONE);
    take_only(t, &n, uid, "d3");
    check(pay(t, &n, paper_of(t, uid, qid, 2, 1)) == CHARGE_DONE);
    check_trim(t, &n, uid, 2, 2);
    ok(!ask(t, &n, STR("HGET"), deductions, STR("d1")).p &&
           ask_int(t, &n, STR("HGET"), deductions, STR("d3")) == 3,
       "a deduction is dropped with its record, and no other");
    check_trim(t, &n, uid, 3, 1);
    is_int(ask_int(t, &n, STR("EXISTS"), deductions, STR_NULL), 0, "none is left");
    check_trim(t, &n, uid, 4, 0);
    close_node(t, &n);
}

/* A user that fails does not delay the others. */
static void test_troubled(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct buf logged;
    buf_init(&logged);
    log_capture(&logged);
    int64_t bad = add_user(t, &n, 1000), good = add_user(t, &n, 1000), before = alarms();
    push(t, &n, bad, "{\"seq\":7,\"timestamp\":1,\"kind\":\"charge\",\"cost\":1}");
    say(t, &n, STR("ZADD"), key_billing, STR("1"), str_int(task_arena(t), bad));
    check(balance(t, &n, good) == 1000);
    charge(t, &n, good, 1);
    say(t, &n, STR("ZADD"), key_billing, STR("2"), str_int(task_arena(t), good));
    is_int(ledger_round(t, n.ledger), 0, "a round goes on");
    is_int(queued(t, &n, good), 0, "past a user that fails");
    is_int(ledger_round(t, n.ledger), 0, "and the next one");
    is_int(alarms() - before, 1, "leaves that one alone for a while");
    say(t, &n, STR("DEL"), key_billing_queue(task_arena(t), bad));
    log_capture(NULL);
    buf_release(&logged);
    close_node(t, &n);
}

/* --- the end of a balance in Redis --- */

static void test_let_go(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), after;
    check(balance(t, &n, uid) == 1000);
    struct ledger_look look;
    struct ledger_request request;
    struct ledger_move m = move_of(t, uid, 100, "d1");
    struct ledger_row row;
    int64_t status = 0;
    check(ledger_look(t, n.ledger, uid, &look) == 0);
    check(note_one(t, n.ledger, &m, &look, &request) == 0);
    check(ledger_row_read(t, n.ledger, uid, &row) == 0);
    check(take_one(t, n.ledger, &m, &look, &status) == 0 && status == LEDGER_TAKEN);
    mariadb_freeze(&server);
    int64_t old = task_deadline(t, 300);
    ok(ledger_let_go(t, n.ledger, uid) != 0, "with a record in the queue and no MySQL");
    task_deadline_restore(t, old);
    mariadb_thaw(&server);
    is_int(in_redis(t, &n, uid), 900, "a balance stays");
    is_int(ledger_let_go(t, n.ledger, uid), 0, "it goes when MySQL has the record");
    ok(in_redis(t, &n, uid) == -1 && in_mysql(t, &n, uid) == 900, "and the same amount");
    is_int(balance(t, &n, uid), 900, "and is right when it is read again");

    /* A move that is not applied to Redis. */
    struct ledger_move up = move_of(t, uid, 50, "r1");
    check(ledger_recharge_make(t, n.ledger, &up, &row) == 0);
    is_int(ledger_let_go(t, n.ledger, uid), ERR_CONFLICT, "with a move under way it stays");
    check(ledger_round(t, n.ledger) == 0);
    ok(in_redis(t, &n, uid) == 950 && in_outbox(t, &n, uid) == 0, "the outbox is applied to Redis");
    ok(ledger_let_go(t, n.ledger, uid) == 0 && in_redis(t, &n, uid) == -1, "then it can go");
    is_int(ledger_let_go(t, n.ledger, uid), 0, "again: is gone");
    ok(deduct(t, &n, uid, 50, "d2", &after) == 0 && after == 900, "and comes back when needed");
    ok(every_cent(t, &n, uid), "every cent is there");
    close_node(t, &n);
}

static int apply_third(struct task *t, struct node *n, int64_t uid, int64_t out[4])
{
    const struct str move[] = {STR("3"), STR("300")};
    return SCRIPT_NUMBERS(t, n->redis, ledger_apply, 4, out,
                          .balance = key_balance(task_arena(t), uid),
                          .ledger = key_ledger(task_arena(t), uid), .moves = {move, 2});
}

/* Moves come in the order of their numbers, whichever node brings them. */
static void test_order(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), out[4];
    check(balance(t, &n, uid) == 1000);
    struct ledger_move two = move_of(t, uid, 20, "r2"), three = move_of(t, uid, 300, "r3");
    struct ledger_row row;
    check(ledger_recharge_make(t, n.ledger, &two, &row) == 0);
    check(ledger_recharge_make(t, n.ledger, &three, &row) == 0 && row.move_no == 3);
    check(apply_third(t, &n, uid, out) == 0);
    ok(out[2] == 1 && out[3] == 0 && in_redis(t, &n, uid) == 1000,
       "the third waits for the second");
    check(ledger_carry_over(t, n.ledger, uid, 2) == 0);
    ok(in_redis(t, &n, uid) == 1320 && in_outbox(t, &n, uid) == 0, "and comes with it");
    check(apply_third(t, &n, uid, out) == 0);
    ok(out[2] == 3 && out[3] == 0 && in_redis(t, &n, uid) == 1320, "once");
    check(ledger_recharge_make(
              t, n.ledger,
              &(struct ledger_move){.uid = uid, .cents = 4000, .request_id = STR("r4")},
              &row) == 0);
    check(ledger_carry_over(t, n.ledger, uid, 3) == 0);
    is_int(in_outbox(t, &n, uid), 1, "a node that carried the third keeps the fourth there");
    check(ledger_round(t, n.ledger) == 0);
    ok(in_redis(t, &n, uid) == 5320 && every_cent(t, &n, uid), "every cent is there");
    close_node(t, &n);
}

/* MySQL was asked before the record of the same request was synced and trimmed. */
static void test_late_repeat(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), after, status = 0;
    check(balance(t, &n, uid) == 1000);
    struct ledger_look look;
    struct ledger_request request;
    struct ledger_move m = move_of(t, uid, 100, "d1");
    check(ledger_look(t, n.ledger, uid, &look) == 0);
    check(note_one(t, n.ledger, &m, &look, &request) == 0 && !request.done);
    check(ledger_deduct(t, n.ledger, &m, &after) == 0 && after == 900);
    check(take_one(t, n.ledger, &m, &look, &status) == 0);
    is_int(status, LEDGER_AGAIN, "a late node must look again");
    is_int(in_redis(t, &n, uid), 900, "and takes nothing");
    ok(every_cent(t, &n, uid), "every cent is there");
    close_node(t, &n);
}

/* A batch of the caller's. */
static void test_ask(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1234), cents = 0;
    struct redis_batch b;
    const struct redis_reply *const *r;
    for (int i = 0; i < 2; i++) {
        redis_batch_init(&b, t, n.redis);
        redis_batch_add(&b, STR_NULL, STR("PING"));
        ledger_ask(&b, uid);
        check(b.count == 1 + LEDGER_ASK_COMMANDS && redis_batch_run(&b, &r) == 0);
        ok(ledger_answer(t, n.ledger, uid, r + 1, &cents) == 0 && cents == 1234,
           "a balance in a batch, %s", i ? "from Redis" : "loaded");
    }
    ok(ask_int(t, &n, STR("ZSCORE"), key_expiry, str_int(task_arena(t), uid)) > 0,
       "has a deadline");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_recharge, NULL, true);
    tap_task(test_repeated, NULL, true);
    tap_task(test_deduct, NULL, true);
    tap_task(test_overdraw, NULL, true);
    tap_task(test_slow_loader, NULL, true);
    tap_task(test_single_flight, NULL, true);
    tap_task(test_alarms, NULL, true);
    tap_task(test_many_records, NULL, true);
    tap_task(test_trim, NULL, true);
    tap_task(test_trim_deductions, NULL, true);
    tap_task(test_troubled, NULL, true);
    tap_task(test_let_go, NULL, true);
    tap_task(test_order, NULL, true);
    tap_task(test_late_repeat, NULL, true);
    tap_task(test_ask, NULL, true);
    return stop_stores();
}
