/* What jobs cost, on real stores: promised, reserved, paid once, free again. */
#include "engine/jobs/pay.h"

#include "engine/money/ledger_fixture.h"
#include "engine/runs/promise.h"

#define PRICE 300

static struct node node;
static struct jobs *jobs;
static struct group tasks;
static int64_t user; /* of the test under way */
static bool broken;  /* the function ends before it returns, as if its node had died */
static int calls;

static const struct job_rows rows = {.table = "test_pay",
                                     .id = "id",
                                     .uid = "uid",
                                     .position = "n",
                                     .version = "1",
                                     .priority = "1",
                                     .created = "created_at",
                                     .changed = "changed_at",
                                     .state = "state",
                                     .error = "error",
                                     .reason = "reason",
                                     .cents = "cents",
                                     .pending = "pending",
                                     .working = "working",
                                     .completed = "completed",
                                     .failed = "failed"};

static int work(struct task *t, void *arg, const struct job *j)
{
    (void)arg;
    calls++;
    if (str_starts(j->id, STR("bad")))
        return task_fail(t, ERR_INVALID, "it is no document");
    int err = job_pay(t, node.ledger, "paid", j, PRICE);
    if (!err && broken)
        return ERR_CANCELED;
    return err;
}

static const struct job_kind kind = {.name = "paid",
                                     .concurrency = 4,
                                     .lease_ms = 500,
                                     .deadline_ms = 5000,
                                     .tries_max = 3,
                                     .backoff_ms = 20,
                                     .rows = &rows,
                                     .work = work};

/* --- promising --- */

struct wish {
    const char *id;
};

static int write_wish(struct task *t, struct sql *c, void *arg)
{
    struct wish *w = arg;
    int err = sql_on(t, c, NULL,
                     "INSERT INTO test_pay (id, uid, state, cents) VALUES (?, ?, 'pending', ?)",
                     sql_text(str_of(w->id)), sql_int(user), sql_int(PRICE));
    return err ? err : job_reserve(t, c, "paid", str_of(w->id), user, PRICE);
}

static struct runs runs_of(void)
{
    return (struct runs){
        .redis = node.redis, .sql = node.sql, .cache = node.cache, .ledger = node.ledger};
}

static int promise(struct task *t, const char *id)
{
    struct wish w = {id};
    struct runs r = runs_of();
    bool repeated;
    return promise_make(
        t, &r,
        &(struct promise){
            .uid = user, .cents = PRICE, .what = "job", .write = write_wish, .arg = &w},
        &repeated);
}

/* "balance reserved free" */
static struct str seen(struct task *t)
{
    struct runs r = runs_of();
    struct reserve x;
    say(t, &node, STR("DEL"), key_unfinished(task_arena(t), user));
    check(reserve_look(t, &r, user, &x) == 0 && x.known);
    return str_printf(task_arena(t), "%lld %lld %lld", (long long)x.balance, (long long)x.reserved,
                      (long long)x.free);
}

static struct str state_of(struct task *t, const char *id)
{
    struct sql_rows r;
    check(sql_call(t, node.sql, &r, "SELECT state FROM test_pay WHERE id = ?",
                   sql_text(str_of(id))) == 0 &&
          r.count == 1);
    return r.cells[0].s;
}

static bool comes_to(struct task *t, const char *id, const char *state)
{
    for (int i = 0; i < 5000 && !str_eq(state_of(t, id), str_of(state)); i++)
        pause_ms(t, 2);
    return str_eq(state_of(t, id), str_of(state));
}

static void fill(struct task *t)
{
    struct role_turn turn = {.locked = false};
    check(jobs_refill_role(t, jobs, &turn) == 0);
}

static void look_for_unpaid(struct task *t)
{
    struct role_turn turn = {.locked = false};
    struct jobs_paid p = {.jobs = jobs, .ledger = node.ledger};
    int err = jobs_paid_role(t, &p, &turn);
    is_int(err, 0, "a look at what is not paid: %s", err ? task_error(t) : "");
}

static void begin(struct task *t, int64_t cents)
{
    open_node(t, &node);
    say(t, &node, STR("FLUSHALL"));
    check(sql_call(t, node.sql, NULL, "DELETE FROM test_pay") == 0);
    user = add_user(t, &node, cents);
    sql_do(t, &node, "UPDATE user_info SET permission = 5 WHERE uid = ?", user);
    broken = false;
    calls = 0;
    jobs = jobs_new(&(struct jobs_options){
        .redis = node.redis, .sql = node.sql, .metrics = metrics, .incarnation = 1});
    jobs_add(jobs, &kind, NULL);
    group_init(&tasks, task_loop(t));
}

static void go(struct task *t)
{
    check(task_go(&tasks, "jobs", jobs_task, jobs) == 0);
    role_in(&tasks, jobs_keep_role, jobs, 20);
    fill(t);
}

static void end(struct task *t)
{
    group_cancel(&tasks);
    check(group_join(t, &tasks) == 0);
    jobs_free(jobs);
    ok(every_cent(t, &node, user), "every cent is where it belongs");
    close_node(t, &node);
}

/* --- tests --- */

static void test_paid(struct task *t, void *arg)
{
    (void)arg;
    begin(t, 1000);
    is_int(promise(t, "a"), 0, "promised");
    is_str(seen(t), STR("1000 300 700"), "its price is reserved");
    is_int(promise(t, "bad"), 0, "another");
    is_int(promise(t, "c"), 0, "and a third");
    is_int(promise(t, "d"), ERR_FUNDS, "for a fourth there is no money");
    is_str(str_of(task_error(t)),
           STR("the job costs 3.00: the balance is 10.00, 9.00 of it reserved for unfinished work,"
               " 1.00 free"),
           "with all amounts");
    go(t);
    ok(comes_to(t, "a", "completed") && comes_to(t, "c", "completed"), "two are completed");
    ok(comes_to(t, "bad", "failed"), "one has failed");
    is_str(seen(t), STR("400 0 400"), "two are paid, nothing is reserved any more");
    end(t);
}

/* Its node dies after the payment: it is worked on again, and not paid again. */
static void test_once(struct task *t, void *arg)
{
    (void)arg;
    begin(t, 1000);
    check(promise(t, "a") == 0);
    broken = true;
    go(t);
    for (int i = 0; i < 2000 && calls < 3; i++)
        pause_ms(t, 2);
    ok(calls >= 3, "worked on again and again");
    is_int(balance(t, &node, user), 700, "and paid once");
    broken = false;
    ok(comes_to(t, "a", "completed"), "completed at last");
    is_str(seen(t), STR("700 0 700"), "for one price");
    end(t);
}

/* An admin takes what was reserved. */
static void test_poor(struct task *t, void *arg)
{
    (void)arg;
    begin(t, 300);
    check(promise(t, "a") == 0 && deduct(t, &node, user, 200, "taken", &(int64_t){0}) == 0);
    go(t);
    for (int i = 0; i < 2000 && calls < 1; i++)
        pause_ms(t, 2);
    pause_ms(t, 100);
    is_str(state_of(t, "a"), STR("pending"), "without money it waits");
    struct sql_rows r;
    check(sql_call(t, node.sql, &r, "SELECT error, reason FROM test_pay WHERE id = 'a'") == 0);
    ok(str_find(r.cells[0].s, STR("is less than 3.00")) >= 0, "and says so: %.*s",
       STR_ARG(r.cells[0].s));
    is_str(r.cells[1].s, STR("no_money"), "also by a word");
    check(recharge(t, &node, user, 500, "more", &(int64_t){0}) == 0);
    say(t, &node, STR("ZADD"), key_jobs_part(task_arena(t), "paid", "probes"), STR("1"),
        str_int(task_arena(t), user));
    ok(comes_to(t, "a", "completed"), "with money it goes on");
    check(sql_call(t, node.sql, &r, "SELECT error, reason FROM test_pay WHERE id = 'a'") == 0);
    ok(r.cells[0].type == SQL_NULL && r.cells[1].type == SQL_NULL, "and has nothing to say");
    is_int(balance(t, &node, user), 300, "and is paid");
    end(t);
}

/* As the ledger sees a MySQL that is older than Redis. */
static void set_stopped(struct task *t, int64_t uid, bool stopped)
{
    struct str key = key_ledger(task_arena(t), uid);
    say(t, &node, STR("DEL"), key_balance(task_arena(t), uid));
    if (stopped)
        say(t, &node, STR("HSET"), key, STR("synced"), STR("9"));
    else
        say(t, &node, STR("HDEL"), key, STR("synced"));
}

static void test_stopped(struct task *t, void *arg)
{
    struct sql_rows r;
    (void)arg;
    begin(t, 1000);
    check(promise(t, "a") == 0);
    set_stopped(t, user, true);
    go(t);
    for (int i = 0; i < 2000 && calls < 1; i++)
        pause_ms(t, 2);
    pause_ms(t, 100);
    is_str(state_of(t, "a"), STR("pending"), "while the account is stopped it waits");
    check(sql_call(t, node.sql, &r, "SELECT error, reason FROM test_pay WHERE id = 'a'") == 0);
    ok(r.cells[0].s.n > 0, "and says so: %.*s", STR_ARG(r.cells[0].s));
    is_str(r.cells[1].s, STR("account_stopped"), "also by a word");
    set_stopped(t, user, false);
    say(t, &node, STR("ZADD"), key_jobs_part(task_arena(t), "paid", "probes"), STR("1"),
        str_int(task_arena(t), user));
    ok(comes_to(t, "a", "completed"), "then it goes on");
    is_int(balance(t, &node, user), 700, "and is paid");
    end(t);
}

/* One account cannot be charged: that of others is. */
static void test_beside(struct task *t, void *arg)
{
    (void)arg;
    begin(t, 1000);
    int64_t other = add_user(t, &node, 1000);
    for (int i = 0; i < 2; i++)
        check(sql_call(t, node.sql, NULL,
                       "INSERT INTO test_pay (id, uid, state, cents, changed_at) VALUES"
                       " (?, ?, 'completed', 300, UTC_TIMESTAMP(3) - INTERVAL 2 MINUTE)",
                       sql_text(i ? STR("b") : STR("a")), sql_int(i ? user : other)) == 0);
    set_stopped(t, other, true);
    look_for_unpaid(t);
    is_int(balance(t, &node, user), 700, "charged beside one that is stopped");
    set_stopped(t, other, false);
    look_for_unpaid(t);
    is_int(balance(t, &node, other), 700, "which is charged when it goes on");
    is_int(balance(t, &node, user), 700, "the first one not again");
    end(t);
}

/* What contradicts the rules: a database that was restored. */
static void test_mended(struct task *t, void *arg)
{
    (void)arg;
    begin(t, 1000);
    check(promise(t, "a") == 0 && promise(t, "b") == 0);
    check(sql_call(t, node.sql, NULL,
                   "UPDATE test_pay SET state = 'completed',"
                   " changed_at = UTC_TIMESTAMP(3) - INTERVAL 2 MINUTE WHERE id = 'a'") == 0);
    check(sql_call(t, node.sql, NULL, "DELETE FROM test_pay WHERE id = 'b'") == 0);
    check(sql_call(t, node.sql, NULL,
                   "INSERT INTO test_pay (id, uid, state, cents) VALUES ('c', ?, 'completed', 300)",
                   sql_int(user)) == 0);
    look_for_unpaid(t);
    is_str(seen(t), STR("700 0 700"), "completed and not paid: charged; gone: not reserved");
    look_for_unpaid(t);
    is_int(balance(t, &node, user), 700, "once; and a row of this minute is left alone");
    end(t);
}

static void make_table(struct task *t, void *arg)
{
    (void)arg;
    open_node(t, &node);
    check(sql_call(
              t, node.sql, NULL,
              "CREATE TABLE test_pay (n BIGINT PRIMARY KEY AUTO_INCREMENT,"
              " id VARCHAR(64) COLLATE utf8mb4_nopad_bin NOT NULL UNIQUE, uid INT NOT NULL,"
              " state VARCHAR(16) NOT NULL, error TEXT, reason VARCHAR(16), cents BIGINT NOT NULL,"
              " created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),"
              " changed_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),"
              " KEY (state, n), KEY (state, changed_at)) ENGINE=InnoDB") == 0);
    close_node(t, &node);
}

int main(void)
{
    static void (*const tests[])(struct task * t, void *arg) = {
        make_table, test_paid, test_once, test_poor, test_stopped, test_beside, test_mended};
    start_stores();
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tap_task(tests[i], NULL, true);
    return stop_stores();
}
