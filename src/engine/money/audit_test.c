/* The audit finds what is off, to the cent, and nothing else. */
#include "engine/money/audit.h"
#include "engine/money/ledger_fixture.h"
#include "tests/role.h"

static struct audit_report audit(struct task *t, struct node *n, struct found *x)
{
    struct audit_report r = {0};
    *x = (struct found){0};
    struct audit a = audit_of(n, x);
    check(audit_run(t, &a, &r) == 0);
    check(r.findings == x->count);
    return r;
}

/* Exactly one finding, and this one. */
static bool only(const struct found *x, int64_t uid, const char *what, int64_t expected,
                 int64_t found)
{
    return x->count == 1 && x->last.uid == uid && strcmp(x->last.what, what) == 0 &&
           x->last.expected == expected && x->last.found == found;
}

static struct str some_papers(struct task *t, struct node *n, int64_t uid, int papers)
{
    struct str qid = add_run(t, n, uid);
    for (int i = 0; i < papers; i++)
        check(pay(t, n, paper_of(t, uid, qid, i, 100)) == CHARGE_DONE);
    return qid;
}

static void test_money(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct found x;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), other = add_user(t, &n, 500), after;
    struct audit_report r = audit(t, &n, &x);
    ok(r.users == 2 && r.open == 0 && r.findings == 0 && r.unsettled == 0, "no user is open yet");
    struct str qid = some_papers(t, &n, uid, 3);
    check(deduct(t, &n, uid, 50, "d1", &after) == 0 &&
          recharge(t, &n, other, 7, "r1", &after) == 0);
    some_papers(t, &n, other, 1);
    struct ledger_move m = move_of(t, uid, 33, "r2");
    struct ledger_row row;
    check(ledger_recharge_make(t, n.ledger, &m, &row) == 0);
    r = audit(t, &n, &x);
    ok(r.users == 2 && r.open == 2 && r.findings == 0, "records and moves under way are in order");

    say(t, &n, STR("INCR"), key_balance(task_arena(t), other));
    r = audit(t, &n, &x);
    ok(only(&x, other, "redis", 407, 408) && r.drift_cents == 1, "a cent too many in Redis");
    say(t, &n, STR("DECR"), key_balance(task_arena(t), other));

    sql_do(t, &n, "UPDATE billing_log SET cents = cents - 2 WHERE uid = ? AND kind = 'deduction'",
           uid);
    r = audit(t, &n, &x);
    ok(only(&x, uid, "log", 685, 683) && r.drift_cents == 2, "two cents too few in the log");
    sql_do(t, &n, "UPDATE billing_log SET cents = cents + 2 WHERE uid = ? AND kind = 'deduction'",
           uid);

    check(ledger_sync(t, n.ledger, other) == 0);
    check(pay(t, &n, paper_of(t, uid, qid, 3, 0)) == CHARGE_DONE); /* free: no cent betrays it */
    say(t, &n, STR("RPOP"), key_billing_queue(task_arena(t), uid));
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "records", 1, 0), "a record that is in no store");
    close_node(t, &n);
}

static void test_results(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct found x;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = some_papers(t, &n, uid, 3);
    struct charge c = paper_of(t, uid, qid, 1, 100);
    check(ledger_sync(t, n.ledger, uid) == 0);
    check(audit(t, &n, &x).findings == 1); /* of the test before */
    int64_t old = x.last.uid;
    sql_do(t, &n, "DELETE FROM billing_log WHERE uid = ?", old);
    sql_do(t, &n, "DELETE FROM ledger_outbox WHERE uid = ?", old);
    sql_do(t, &n, "DELETE FROM user_info WHERE uid = ?", old);
    is_int(audit(t, &n, &x).findings, 0, "three papers, three results");
    sql_do(t, &n, "UPDATE search_result SET relevant = NULL WHERE uid = ? AND doi = '10.1000/1'",
           uid);
    struct audit_memory *memory = audit_memory_new();
    struct audit background = audit_of(&n, &x);
    struct audit_report found;
    background.deep = false;
    background.memory = memory;
    x.count = 0;
    ok(audit_run(t, &background, &found) == 0 && only(&x, uid, "result", 100, 0),
       "one without its verdict in MySQL");
    audit_memory_free(memory);
    sql_do(t, &n, "UPDATE search_result SET relevant = 0 WHERE uid = ? AND relevant IS NULL", uid);
    say(t, &n, STR("HDEL"), key_result(task_arena(t), uid, qid), c.doi);
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "result", 100, 0), "one without its result");
    sql_do(t, &n, "INSERT INTO ledger_reversal VALUES (?, 2, 0)", uid);
    is_int(audit(t, &n, &x).findings, 0, "is in order once it is reversed");
    sql_do(t, &n, "DELETE FROM ledger_reversal WHERE uid = ?", uid);
    check(sql_call(t, n.sql, NULL, "DELETE FROM query_log WHERE query_id = ?", sql_text(qid)) == 0);
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "result", 100, 0), "also of a run that does not exist");
    check(sql_call(t, n.sql, NULL,
                   "INSERT INTO query_log (query_id, uid, status, archived, total_papers,"
                   " judged_papers, relevant_papers, total_cost)"
                   " VALUES (?, ?, 'DONE', 1, 3, 3, 2, 3.00)",
                   sql_text(qid), sql_int(uid)) == 0);
    is_int(audit(t, &n, &x).findings, 0, "an archived run has its results in MySQL");
    sql_do(t, &n, "UPDATE search_result SET relevant = NULL WHERE uid = ? AND doi = '10.1000/1'",
           uid);
    sql_do(t, &n, "UPDATE query_log SET judged_papers = 2 WHERE uid = ?", uid);
    is_int(audit(t, &n, &x).findings, 2,
           "all of them: a charge without its verdict, a run with one");
    sql_do(t, &n, "UPDATE search_result SET relevant = 0 WHERE uid = ? AND relevant IS NULL", uid);
    sql_do(t, &n, "UPDATE query_log SET judged_papers = 3 WHERE uid = ?", uid);
    close_node(t, &n);
}

/* What a run says of itself, what it was submitted for, and what is in MySQL. */
static void test_runs(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct found x;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = some_papers(t, &n, uid, 3);
    struct str status = key_query_status(task_arena(t), uid, qid);
    sql_do(t, &n, "UPDATE query_log SET total_papers = 3, ceiling = 300 WHERE uid = ?", uid);
    is_int(audit(t, &n, &x).findings, 0, "costs that are not synced count");
    check(ledger_sync(t, n.ledger, uid) == 0);
    is_int(audit(t, &n, &x).findings, 0, "as do those that are");
    sql_do(t, &n, "UPDATE query_log SET ceiling = 299 WHERE uid = ?", uid);
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "estimate", 299, 300), "a run that costs more than its estimate");
    sql_do(t, &n, "UPDATE query_log SET ceiling = NULL WHERE uid = ?", uid);
    is_int(audit(t, &n, &x).findings, 0, "one without an estimate");
    sql_do(t, &n, "UPDATE query_log SET ceiling = 300, total_papers = 2 WHERE uid = ?", uid);
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "estimate", 2, 3), "a run that has judged more papers");
    sql_do(t, &n, "UPDATE query_log SET total_papers = 3 WHERE uid = ?", uid);

    say(t, &n, STR("HINCRBY"), status, STR("cost"), STR("-10"));
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "reserved", 300, 290),
       "a cost in Redis that is too low: too much is reserved");
    sql_do(t, &n,
           "INSERT INTO query_log (query_id, uid, status, total_papers)"
           " SELECT CONCAT('a', seq), ?, 'PAUSED', 1 FROM seq_1_to_400",
           uid);
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "reserved", 300, 290), "also after hundreds of other runs");
    sql_do(t, &n, "DELETE FROM query_log WHERE uid = ? AND query_id LIKE 'a%'", uid);
    say(t, &n, STR("HINCRBY"), status, STR("cost"), STR("10"));
    sql_do(t, &n, "UPDATE query_log SET status = 'DONE', archived = 1 WHERE uid = ?", uid);
    is_int(audit(t, &n, &x).findings, 0, "and right again");

    sql_do(t, &n,
           "INSERT INTO search_result (uid, query_id, doi, block_key, relevant, outcome)"
           " SELECT uid, query_id, '10.1000/9', 'meta:J:2020', 0, 'irrelevant' FROM query_log"
           " WHERE uid = ?",
           uid);
    sql_do(t, &n, "UPDATE query_log SET judged_papers = 4, total_papers = 4 WHERE uid = ?", uid);
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "verdicts", 3, 4), "a verdict without a charge");
    sql_do(t, &n, "DELETE FROM search_result WHERE uid = ? AND doi = '10.1000/9'", uid);
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "counts", 3, 4), "a count of papers that is off");
    sql_do(t, &n, "UPDATE query_log SET judged_papers = 3, total_cost = 2.99 WHERE uid = ?", uid);
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "counts", 300, 299), "a cost that is off");
    sql_do(t, &n, "UPDATE query_log SET total_cost = 3.00 WHERE uid = ?", uid);
    is_int(audit(t, &n, &x).findings, 0, "all is right");
    close_node(t, &n);
}

static void test_older(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct found x;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), after;
    struct str qid = some_papers(t, &n, uid, 1);
    check(recharge(t, &n, uid, 70, "r1", &after) == 0 && after == 970);
    check(ledger_sync(t, n.ledger, uid) == 0);
    sql_do(t, &n, "UPDATE user_info SET balance = 9.00, move_no = 1 WHERE uid = ?", uid);
    sql_do(t, &n, "DELETE FROM billing_log WHERE uid = ? AND kind = 'recharge'", uid);
    (void)audit(t, &n, &x);
    ok(only(&x, uid, "older", 2, 1), "a move that MySQL has lost");
    struct charge c = paper_of(t, uid, qid, 5, 10);
    enum charge_outcome out;
    is_int(ledger_charge(t, n.ledger, 1, &c, &out), ERR_INTERNAL, "closes the user");
    sql_do(t, &n, "UPDATE user_info SET move_no = 2 WHERE uid = ?", uid);
    is_int(pay(t, &n, c), CHARGE_DONE, "until it is cleared up");
    is_int(audit(t, &n, &x).findings, 0, "and then all is in order");
    close_node(t, &n);
}

/* --- under load --- */

struct busy {
    struct node *n;
    int64_t uid[3];
    struct str qid[3];
    int next, over;
};

static void work(struct task *t, void *arg)
{
    struct busy *b = arg;
    while (!b->over) {
        struct task_scope scope = task_scope(t);
        int i = b->next++;
        int64_t after;
        check(pay(t, &b->n[i % 2], paper_of(t, b->uid[i % 3], b->qid[i % 3], i, 1)) == CHARGE_DONE);
        if (i % 50 == 0)
            check(recharge(t, &b->n[1], b->uid[i % 3], 5, arena_printf(task_arena(t), "b%d", i),
                           &after) == 0);
        task_scope_end(t, scope);
        pause_ms(t, 5);
    }
}

static void test_busy(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    struct found x;
    open_node(t, &n[0]);
    open_node(t, &n[1]);
    struct busy b = {.n = n};
    for (int i = 0; i < 3; i++) {
        b.uid[i] = add_user(t, n, 1000000);
        b.qid[i] = add_run(t, n, b.uid[i]);
    }
    struct group g, roles;
    group_init(&g, task_loop(t));
    group_init(&roles, task_loop(t));
    for (int i = 0; i < 2; i++)
        role_in(&roles, ledger_role, n[i].ledger, 200);
    for (int i = 0; i < 8; i++)
        check(task_go(&g, "work", work, &b) == 0);
    int64_t findings = 0, unsettled = 0;
    for (int i = 0; i < 40; i++) {
        struct task_scope scope = task_scope(t);
        struct audit_report r = audit(t, n, &x);
        findings += r.findings;
        unsettled += r.unsettled;
        task_scope_end(t, scope);
        pause_ms(t, 20);
    }
    b.over = 1;
    check(group_join(t, &g) == 0);
    group_cancel(&roles);
    check(group_join(t, &roles) == 0);
    ok(findings == 0 && unsettled == 0, "40 audits while %d papers are charged find nothing",
       b.next);
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

/* --- in the background --- */

static int64_t gauge(const char *name)
{
    return *metric(metrics, METRIC_GAUGE, name, "", "");
}

static void test_background(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct found x = {0};
    open_node(t, &n);
    struct audit a = audit_of(&n, &x);
    a.each_ms = 50;
    int64_t uid = add_user(t, &n, 1000), users = counted("millrace_audit_users_total");
    check(balance(t, &n, uid) == 1000);
    say(t, &n, STR("SET"), key_audit_lock, STR("another"), STR("PX"), STR("400"));
    bool draining = false;
    struct roles *roles = roles_new(n.redis, &draining);
    struct group g;
    group_init(&g, task_loop(t));
    roles_go(roles, &g,
             &(struct role){.name = "audit",
                            .round = audit_role,
                            .arg = &a,
                            .each_ms = 20,
                            .lock = &key_audit_lock,
                            .lock_ms = 10000,
                            .complaint = "money is not audited",
                            .elsewhere = audit_elsewhere});
    role_in(&g, audit_age_role, &a, 20);
    pause_ms(t, 200);
    is_int(counted("millrace_audit_users_total"), users, "one node at a time");
    for (int i = 0; i < 3000 && counted("millrace_audit_users_total") == users; i++)
        pause_ms(t, 10);
    ok(counted("millrace_audit_users_total") > users && gauge("millrace_ledger_drift_cents") == 0,
       "then it is our turn: users are counted, no drift");
    say(t, &n, STR("INCRBY"), key_balance(task_arena(t), uid), STR("9"));
    for (int i = 0; i < 3000 && gauge("millrace_ledger_drift_cents") != 9; i++)
        pause_ms(t, 10);
    is_int(gauge("millrace_ledger_drift_cents"), 9, "the drift is a metric");
    say(t, &n, STR("DECRBY"), key_balance(task_arena(t), uid), STR("9"));
    for (int i = 0; i < 3000 && gauge("millrace_ledger_drift_cents") != 0; i++)
        pause_ms(t, 10);
    is_int(gauge("millrace_ledger_drift_cents"), 0, "that goes when it is gone");
    ok(gauge("millrace_audit_age_seconds") < 5, "and so is its age");
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    roles_free(roles);
    close_node(t, &n);
}

/* The background check reads what is new. */
static void test_memory(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct found x = {0};
    struct audit_report r;
    open_node(t, &n);
    sql_do(t, &n, "DELETE FROM user_info WHERE uid > ?", 0);
    int64_t uid = add_user(t, &n, 10000);
    struct audit a = audit_of(&n, &x);
    a.deep = false;
    a.memory = audit_memory_new();
    struct str qid = some_papers(t, &n, uid, 3);
    check(ledger_sync(t, n.ledger, uid) == 0);
    ok(audit_run(t, &a, &r) == 0 && r.findings == 0, "a user is right");
    struct charge old = paper_of(t, uid, qid, 0, 100), later = paper_of(t, uid, qid, 7, 100);
    check(pay(t, &n, later) == CHARGE_DONE && ledger_sync(t, n.ledger, uid) == 0);
    ok(audit_run(t, &a, &r) == 0 && r.findings == 0, "and still is, with what was added");
    struct str results = key_result(task_arena(t), uid, qid);
    say(t, &n, STR("HDEL"), results, old.doi);
    ok(audit_run(t, &a, &r) == 0 && r.findings == 0, "what was checked is not read again");
    check(pay(t, &n, paper_of(t, uid, qid, 8, 100)) == CHARGE_DONE &&
          ledger_sync(t, n.ledger, uid) == 0);
    say(t, &n, STR("HDEL"), results, paper_of(t, uid, qid, 8, 100).doi);
    ok(audit_run(t, &a, &r) == 0 && r.findings == 1, "what is new is");
    sql_do(t, &n, "UPDATE user_info SET balance = balance + 1 WHERE uid = ?", uid);
    ok(audit_run(t, &a, &r) == 0 && r.findings > 1, "money that was changed by hand is found");
    sql_do(t, &n, "UPDATE user_info SET balance = balance - 1 WHERE uid = ?", uid);
    sql_do(t, &n,
           "INSERT INTO billing_log (uid, source, number, kind, cents, at)"
           " VALUES (?, 'mysql', 99, 'recharge', 5, UTC_TIMESTAMP(3))",
           uid);
    sql_do(t, &n, "UPDATE user_info SET move_no = 99 WHERE uid = ?", uid);
    ok(audit_run(t, &a, &r) == 0 && r.findings > 1, "and a row that does not belong there");
    audit_memory_free(a.memory);
    a.memory = NULL;
    x.count = 0;
    ok(audit_run(t, &a, &r) == 0 && r.findings >= 3, "an audit without memory reads all of it");
    close_node(t, &n);
}

/* Redis has lost results that MySQL has charges of: nothing to find before the repair, nor after,
 * but for what MySQL itself lacks. */
static void test_lost(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct found x;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    some_papers(t, &n, uid, 3);
    check(ledger_sync(t, n.ledger, uid) == 0);
    forget_snapshot();
    uint64_t epoch = redis_epoch(n.redis);
    restart_redis();
    await_new_redis(t, &n, epoch);
    sql_do(t, &n, "DELETE FROM user_info WHERE uid <> ?", uid);
    is_int(audit(t, &n, &x).findings, 0, "what waits for its repair is not off");
    sql_do(t, &n, "UPDATE search_result SET relevant = NULL WHERE uid = ? AND doi = '10.1000/1'",
           uid);
    sql_do(t, &n, "UPDATE query_log SET judged_papers = 2 WHERE uid = ?", uid);
    is_int(audit(t, &n, &x).findings, 2,
           "a verdict that MySQL has lost is: of its charge, and of its run");
    sql_do(t, &n, "UPDATE search_result SET relevant = 0 WHERE uid = ? AND relevant IS NULL", uid);
    sql_do(t, &n, "UPDATE query_log SET judged_papers = 3 WHERE uid = ?", uid);
    check(balance(t, &n, uid) == 700);
    struct audit_report r = audit(t, &n, &x);
    ok(r.findings == 0 && r.open == 1, "nor what is repaired");
    close_node(t, &n);
}

/* Holds query_log: an audit stops after it has looked at the money, before it looks for results. */
struct hold {
    struct node *node;
    bool held, release;
};

static int hold_body(struct task *t, struct sql *c, void *arg)
{
    struct hold *h = arg;
    check(sql_on(t, c, NULL, "LOCK TABLES query_log WRITE") == 0);
    h->held = true;
    while (!h->release)
        pause_ms(t, 5);
    return sql_on(t, c, NULL, "UNLOCK TABLES");
}

static void hold_runs(struct task *t, void *arg)
{
    struct hold *h = arg;
    check(sql_tx(t, h->node->sql, hold_body, h) == 0);
}

struct auditing {
    struct node *node;
    struct audit_report report;
};

static void run_audit(struct task *t, void *arg)
{
    struct auditing *x = arg;
    struct found found;
    x->report = audit(t, x->node, &found);
}

/* Redis is lost in the middle of an audit: its money was looked at in another generation. */
static void test_lost_between(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_node(t, &n);
    open_node(t, &other);
    int64_t uid = add_user(t, &n, 1000);
    some_papers(t, &n, uid, 3);
    check(ledger_sync(t, n.ledger, uid) == 0);
    sql_do(t, &n, "DELETE FROM user_info WHERE uid <> ?", uid);
    forget_snapshot();
    struct hold h = {.node = &other};
    struct auditing a = {.node = &n};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "hold", hold_runs, &h) == 0);
    while (!h.held)
        pause_ms(t, 1);
    check(task_go(&g, "audit", run_audit, &a) == 0);
    pause_ms(t, 300);
    uint64_t epoch = redis_epoch(n.redis);
    restart_redis();
    await_new_redis(t, &n, epoch);
    h.release = true;
    check(group_join(t, &g) == 0);
    ok(a.report.users == 1 && a.report.findings == 0, "what a new Redis lacks is no finding");
    is_int(a.report.unsettled, 1, "the user did not stand still");
    close_node(t, &other);
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_money, NULL, true);
    tap_task(test_results, NULL, true);
    tap_task(test_runs, NULL, true);
    tap_task(test_older, NULL, true);
    tap_task(test_busy, NULL, true);
    tap_task(test_background, NULL, true);
    tap_task(test_lost, NULL, true);
    tap_task(test_lost_between, NULL, true);
    tap_task(test_memory, NULL, true);
    return stop_stores();
}
