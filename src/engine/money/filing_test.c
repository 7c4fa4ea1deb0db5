/* Verdicts come to MySQL with their charges, whatever stands between them (BIL-7). */
#include "engine/money/ledger_fixture.h"

/* A line for each row of search_result, by run and DOI. */
static struct str filed(struct task *t, struct node *n, int64_t uid)
{
    struct sql_rows r;
    struct str all = STR("");
    check(sql_call(t, n->sql, &r,
                   "SELECT query_id, doi, block_key, year, relevant, outcome,"
                   " JSON_VALUE(ai_result, '$.reason') FROM search_result WHERE uid = ?"
                   " ORDER BY query_id, doi",
                   sql_int(uid)) == 0);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *c = sql_row(&r, i);
        all = str_printf(task_arena(t), "%.*s%s %s %s %lld %s %s %s\n", STR_ARG(all), c[0].s.p,
                         c[1].s.p, c[2].s.p, (long long)c[3].i,
                         c[4].type == SQL_NULL ? "-" : str_int(task_arena(t), c[4].i).p, c[5].s.p,
                         c[6].s.p ? c[6].s.p : "");
    }
    return all;
}

static bool row_is(struct task *t, struct node *n, struct str qid, int64_t judged, int64_t relevant,
                   int64_t cents)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r,
                   "SELECT judged_papers, relevant_papers, CAST(total_cost * 100 AS SIGNED),"
                   " finished_papers FROM query_log WHERE query_id = ?",
                   sql_text(qid)) == 0 &&
          r.count == 1);
    bool good = r.cells[0].i == judged && r.cells[1].i == relevant && r.cells[2].i == cents &&
                r.cells[3].i >= judged;
    if (!good)
        printf("# run %s: %lld judged, %lld relevant, %lld cents, %lld finished\n", qid.p,
               (long long)r.cells[0].i, (long long)r.cells[1].i, (long long)r.cells[2].i,
               (long long)r.cells[3].i);
    return good;
}

static struct str of_two_runs(struct task *t, const char *fmt, struct str one, struct str two)
{
    return str_printf(task_arena(t), fmt, one.p, one.p, two.p, two.p);
}

/* Papers of two runs in turn, and a deduction between them. */
static void test_together(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), after;
    struct str one = add_run(t, &n, uid), two = add_run(t, &n, uid);
    for (int i = 0; i < 2; i++) {
        check(pay(t, &n, paper_of(t, uid, one, i, 10)) == CHARGE_DONE);
        check(pay(t, &n, paper_of(t, uid, two, 2 + i, 20)) == CHARGE_DONE);
    }
    is_str(filed(t, &n, uid), STR(""), "nothing is in MySQL before the charges are");
    check(deduct(t, &n, uid, 5, "d1", &after) == 0); /* syncs */
    is_str(filed(t, &n, uid),
           of_two_runs(t,
                       "%s 10.1000/0 meta:J:2020 2020 1 relevant 0\n"
                       "%s 10.1000/1 meta:J:2020 2020 0 irrelevant 1\n"
                       "%s 10.1000/2 meta:J:2020 2020 1 relevant 2\n"
                       "%s 10.1000/3 meta:J:2020 2020 0 irrelevant 3\n",
                       one, two),
           "then every verdict is, in its run");
    ok(row_is(t, &n, one, 2, 1, 20) && row_is(t, &n, two, 2, 1, 40), "the runs count them");
    check(ledger_sync(t, n.ledger, uid) == 0);
    ok(row_is(t, &n, one, 2, 1, 20) && every_cent(t, &n, uid), "once");
    close_node(t, &n);
}

/* Written by one node, and again by a slower one that read the same records. */
static void test_twice(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct ledger_batch b;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid);
    for (int i = 0; i < 3; i++)
        check(pay(t, &n, paper_of(t, uid, qid, i, 10)) == CHARGE_DONE);
    check(ledger_batch_read(t, n.ledger, uid, &b) == 0 && b.count == 3);
    check(pay(t, &n, paper_of(t, uid, qid, 3, 10)) == CHARGE_DONE);
    check(ledger_sync(t, n.ledger, uid) == 0);
    ok(ledger_batch_write(t, n.ledger, &b) == 0 && b.new_records == 0 &&
           row_is(t, &n, qid, 4, 2, 40),
       "records that another node has written are not counted again");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM search_result WHERE uid = ?", uid), 4,
           "nor are verdicts");
    close_node(t, &n);
}

/* The run was archived with a failure, and a verdict comes after all. */
static void test_failure_replaced(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid);
    struct charge c = paper_of(t, uid, qid, 7, 0);
    c.result = STR("{\"ai_result\":{\"error\":\"no answer\"},\"block_key\":\"meta:J:2020\"}");
    c.outcome = OUTCOME_FAILED;
    check(pay(t, &n, c) == CHARGE_DONE);
    sql_do(t, &n,
           "INSERT INTO search_result (uid, query_id, doi, block_key, outcome)"
           " SELECT uid, query_id, '10.1000/7', 'meta:J:2019', 'failed' FROM query_log"
           " WHERE uid = ?",
           uid);
    sql_do(t, &n, "UPDATE query_log SET archived = 1 WHERE uid = ?", uid);
    check(pay(t, &n, paper_of(t, uid, qid, 7, 30)) == CHARGE_DONE);
    check(ledger_sync(t, n.ledger, uid) == 0);
    is_str(filed(t, &n, uid),
           str_printf(task_arena(t), "%s 10.1000/7 meta:J:2020 2020 0 irrelevant 7\n", qid.p),
           "the verdict takes the failure's place");
    ok(row_is(t, &n, qid, 1, 0, 30), "and is counted");
    is_int(sql_number(t, &n, "SELECT archived FROM query_log WHERE uid = ?", uid), 0,
           "its run is to be closed again");
    close_node(t, &n);
}

struct late {
    int64_t uid;
    struct filing_paper paper;
};

static int file_late(struct task *t, struct sql *c, void *arg)
{
    struct late *l = arg;
    return filing_write(t, c, l->uid, &l->paper, 1);
}

/* A node that read a failure before the paper was tried again, and files it afterwards. */
static void test_verdict_stays(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct late l = {.uid = add_user(t, &n, 1000)};
    struct str qid = add_run(t, &n, l.uid);
    check(pay(t, &n, paper_of(t, l.uid, qid, 6, 30)) == CHARGE_DONE);
    check(ledger_sync(t, n.ledger, l.uid) == 0);
    l.paper = (struct filing_paper){.qid = qid, .doi = STR("10.1000/6")};
    check(filing_read(t, n.redis, l.uid, &l.paper, 1) == 0 && l.paper.readable);
    l.paper.result.outcome = OUTCOME_FAILED;
    l.paper.verdict = STR("{\"error\":\"no answer\"}");
    check(sql_tx(t, n.sql, file_late, &l) == 0);
    is_str(filed(t, &n, l.uid),
           str_printf(task_arena(t), "%s 10.1000/6 meta:J:2020 2020 1 relevant 6\n", qid.p),
           "a failure does not take the place of a verdict");
    close_node(t, &n);
}

/* Money does not wait for a result that is gone. */
static void test_resultless(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), before = alarms();
    struct str qid = add_run(t, &n, uid);
    struct str key = key_result(task_arena(t), uid, qid);
    for (int i = 0; i < 4; i++)
        check(pay(t, &n, paper_of(t, uid, qid, i, 10)) == CHARGE_DONE);
    say(t, &n, STR("HDEL"), key, STR("10.1000/1"));
    say(t, &n, STR("HSET"), key, STR("10.1000/2"), STR("{"));
    is_int(ledger_sync(t, n.ledger, uid), 0, "charges without a readable result are synced");
    is_int(in_mysql(t, &n, uid), 1000 - 40, "to the cent");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM search_result WHERE uid = ?", uid), 2,
           "with the results that are there");
    is_int(alarms() - before, 1, "and an alarm");
    ok(row_is(t, &n, qid, 2, 1, 40), "the run counts verdicts, and all cents");
    close_node(t, &n);
}

/* All in one transaction: a Redis of another generation writes none of it. */
static void test_fenced(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct ledger_batch b;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid);
    check(pay(t, &n, paper_of(t, uid, qid, 0, 10)) == CHARGE_DONE);
    check(ledger_batch_read(t, n.ledger, uid, &b) == 0 && b.papers[0].readable);
    uint64_t epoch = redis_epoch(n.redis);
    forget_snapshot();
    restart_redis();
    await_new_redis(t, &n, epoch);
    is_int(balance(t, &n, uid), 1000, "a charge that Redis has lost never happened");
    ok(ledger_batch_write(t, n.ledger, &b) == 0 && !b.fenced,
       "what was read before is thrown away");
    ok(filed(t, &n, uid).n == 0 && row_is(t, &n, qid, 0, 0, 0), "the verdict, too");
    close_node(t, &n);
}

static void test_text(struct task *t, void *arg)
{
    (void)arg;
    struct result r;
    struct arena *a = task_arena(t);
    struct str json =
        STR("{\"ai_result\":{\"relevant\":true,\"reason\":\"a,\\\"block_key\\\":\\\"b\","
            "\"score\":7},\"block_key\":\"meta:J:2020\"}");
    check(result_read(a, json, &r) == 0);
    is_str(result_verdict_text(a, json, &r),
           STR("{\"relevant\":true,\"reason\":\"a,\\\"block_key\\\":\\\"b\",\"score\":7}"),
           "a verdict is filed as it stands in Redis");
    struct str other = STR("{\"block_key\":\"meta:J:2020\",\"ai_result\":{\"error\":\"x\"}}");
    check(result_read(a, other, &r) == 0);
    is_str(result_verdict_text(a, other, &r), STR("{\"error\":\"x\"}"), "or is written anew");
}

int main(void)
{
    start_stores();
    tap_task(test_together, NULL, true);
    tap_task(test_twice, NULL, true);
    tap_task(test_failure_replaced, NULL, true);
    tap_task(test_verdict_stays, NULL, true);
    tap_task(test_resultless, NULL, true);
    tap_task(test_fenced, NULL, true);
    tap_task(test_text, NULL, true);
    return stop_stores();
}
