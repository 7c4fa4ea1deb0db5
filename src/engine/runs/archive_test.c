/* Runs that have ended go to MySQL: whole, once, whatever dies on the way, and only then leave
 * Redis. */
#include "engine/money/audit.h"
#include "engine/runs/results_fixture.h"
#include "engine/runs/row.h"

#define KINDS "rnfnrfnnr" /* 3 relevant, 4 not, 2 failed: 70 cents */

/* --- what is so --- */

static int64_t of_row(struct task *t, struct node *n, struct run_id id, const char *what)
{
    struct sql_rows r;
    check(
        sql_argv(t, n->sql,
                 arena_printf(task_arena(t),
                              "SELECT CAST(%s AS SIGNED) FROM query_log WHERE query_id = ?", what),
                 1, &sql_text(id.qid), &r) == 0 &&
        r.count == 1);
    return r.cells[0].i;
}

static int64_t in_outbox_of_archive(struct task *t, struct node *n, struct run_id id)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, "SELECT COUNT(*) FROM archive_outbox WHERE query_id = ?",
                   sql_text(id.qid)) == 0);
    return r.cells[0].i;
}

/* Of the run's keys that exist: how many have a TTL, or have none. */
static void count_keys(struct task *t, struct node *n, struct run_id id, int64_t *with,
                       int64_t *without)
{
    struct arena *a = task_arena(t);
    const struct str keys[] = {
        key_query_status(a, id.uid, id.qid),    key_query_info(a, id.uid, id.qid),
        key_result(a, id.uid, id.qid),          key_arrivals(a, id.uid, id.qid),
        key_relevant(a, id.uid, id.qid),        key_failed(a, id.uid, id.qid),
        key_progress(a, id.uid, id.qid),        key_pending(a, id.uid, id.qid),
        key_inflight(a, id.uid, id.qid),        key_pause_signal(a, id.uid, id.qid),
        key_terminate_signal(a, id.uid, id.qid)};
    *with = *without = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t ms = ask_int(t, n, STR("PTTL"), keys[i], STR_NULL); /* -2: no such key */
        *with += ms > ARCHIVE_TTL_MS - 60000 && ms <= ARCHIVE_TTL_MS;
        *without += ms == -1;
    }
}

static bool stays(struct task *t, struct node *n, struct run_id id)
{
    int64_t with, without;
    count_keys(t, n, id, &with, &without);
    return with == 0 && without > 0;
}

/* Its units are gone at once, the rest later. */
static bool leaves(struct task *t, struct node *n, struct run_id id)
{
    int64_t with, without;
    count_keys(t, n, id, &with, &without);
    return with > 0 && without == 0 &&
           ask_int(t, n, STR("EXISTS"), key_pending(task_arena(t), id.uid, id.qid),
                   key_inflight(task_arena(t), id.uid, id.qid)) == 0;
}

/* All keys that a run can have. */
static void add_keys(struct task *t, struct node *n, struct run_id id)
{
    struct arena *a = task_arena(t);
    say(t, n, STR("HSET"), key_query_info(a, id.uid, id.qid), STR("question"), STR("?"));
    say(t, n, STR("RPUSH"), key_pending(a, id.uid, id.qid), STR("x"));
    say(t, n, STR("HSET"), key_inflight(a, id.uid, id.qid), STR("x"), STR("y"));
    say(t, n, STR("SET"), key_pause_signal(a, id.uid, id.qid), STR("1"));
    say(t, n, STR("SET"), key_terminate_signal(a, id.uid, id.qid), STR("1"));
}

static struct run_id ended_run(struct task *t, struct node *n)
{
    struct run_id id = new_run(t, n);
    judge_all(t, n, id, 1, KINDS);
    add_keys(t, n, id);
    set_state(t, n, id, "DONE");
    return id;
}

static struct archive_run waiting(struct task *t, struct node *n, struct run_id id)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, "SELECT status FROM query_log WHERE query_id = ?",
                   sql_text(id.qid)) == 0);
    return (struct archive_run){.id = id,
                                .state = r.cells[0].s,
                                .changed_ms =
                                    of_row(t, n, id, "UNIX_TIMESTAMP(changed_at) * 1000")};
}

static int64_t round_of(struct task *t, struct node *n)
{
    struct archive a = archive_of(n);
    int64_t archived = -1;
    int err = archive_round(t, &a, &archived);
    if (err)
        printf("# archive_round: %s %s\n", err_name(err), task_error(t));
    return err ? -1 : archived;
}

static const struct str FINAL = {"00001r 00005r 00009r 00007n 00002n 00004n 00008n 00003f 00006f",
                                 62};

/* Everything about an archived run of KINDS. */
static void is_archived(struct task *t, struct node *n, struct run_id id, const char *when)
{
    is_str(walk(t, n, id, RESULTS_ALL, 4), FINAL, "%s: the results, in final order", when);
    ok(of_row(t, n, id, "archived") == 1 && of_row(t, n, id, "finished_papers") == 9 &&
           of_row(t, n, id, "relevant_papers") == 3 && of_row(t, n, id, "failed_papers") == 2 &&
           of_row(t, n, id, "total_cost * 100") == 70,
       "%s: the counts and the cost", when);
    ok(leaves(t, n, id), "%s: all keys have a time to live", when);
}

static bool audited(struct task *t, struct node *n)
{
    struct audit_report r = {0};
    struct audit a = {.redis = n->redis, .sql = n->sql, .ledger = n->ledger, .deep = true};
    return audit_run(t, &a, &r) == 0 && r.users > 0 && r.findings == 0 && r.unsettled == 0;
}

/* --- one run --- */

static void test_archive(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = ended_run(t, &n), running = new_run(t, &n), failed = new_run(t, &n);
    struct str live = walk(t, &n, id, RESULTS_ALL, 500);
    judge_all(t, &n, running, 1, "rn");
    set_state(t, &n, running, "RUNNING");
    set_state(t, &n, failed, "FAILED");
    ok(stays(t, &n, id), "before, no key has a time to live");
    struct archive fresh = archive_of(&n);
    fresh.after_ms = 24 * 3600 * 1000;
    int64_t archived;
    ok(archive_round(t, &fresh, &archived) == 0 && archived == 2,
       "runs that have just ended are archived");
    is_archived(t, &n, id, "a run");
    ok(live.n == FINAL.n, "as many as before");
    ok(of_row(t, &n, running, "archived") == 0 && stays(t, &n, running), "one that runs is not");
    ok(of_row(t, &n, failed, "archived") == 1 && leaves(t, &n, failed), "one that failed is");
    ok(audited(t, &n), "the audit finds nothing");
    ok(archive_round(t, &fresh, &archived) == 0 && in_outbox_of_archive(t, &n, id) == 1,
       "it is remembered until that is on disk");
    pause_ms(t, 5);
    is_int(round_of(t, &n), 0, "there is nothing more to do");
    is_int(in_outbox_of_archive(t, &n, id), 0, "and its outbox row is gone then");
    struct str key = key_result(task_arena(t), id.uid, id.qid);
    say(t, &n, STR("DEL"), key, key_arrivals(task_arena(t), id.uid, id.qid),
        key_query_status(task_arena(t), id.uid, id.qid));
    is_str(walk(t, &n, id, RESULTS_ALL, 2), FINAL, "without Redis' keys: the same");
    close_node(t, &n);
}

/* --- a node dies between two steps --- */

enum { STEPS = 5 };

/* As far as step; what a node does that dies there. */
static void half_way(struct task *t, struct node *n, struct run_id id, int step)
{
    struct archive a = archive_of(n);
    struct archive_run run = waiting(t, n, id);
    bool ready = false, closed = false;
    if (step > 0)
        check(archive_prepare(t, &a, &run, &ready) == 0 && ready);
    if (step > 1)
        check(archive_copy(t, &a, &run) == 0);
    ok(stays(t, n, id), "dead after step %d: nothing leaves Redis", step);
    if (step > 2)
        check(archive_close(t, &a, &run, &closed) == 0 && closed);
    if (step > 2)
        ok(stays(t, n, id), "even when it is archived, not by itself");
    if (step > 3)
        check(archive_expire(t, &a) == 0);
}

static void test_steps(struct task *t, void *arg)
{
    (void)arg;
    for (int step = 0; step < STEPS; step++) {
        struct node n;
        open_node(t, &n);
        struct run_id id = ended_run(t, &n);
        half_way(t, &n, id, step);
        close_node(t, &n);
        open_node(t, &n);
        is_int(round_of(t, &n), step < 3, "the next node goes on");
        is_archived(t, &n, id, "half-way");
        int64_t rows =
            sql_number(t, &n, "SELECT COUNT(*) FROM search_result WHERE uid = ?", id.uid);
        is_int(rows, 9, "no result is there twice");
        close_node(t, &n);
    }
}

/* A run with failures of more than a batch; the archiving node loses the lock after the first. */
static void test_batches(struct task *t, void *arg)
{
    const int papers = *(int *)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = new_run(t, &n);
    for (int first = 0; first < papers; first += 100) {
        struct arena_mark mark = arena_mark(task_arena(t));
        struct charge c[100];
        enum charge_outcome out[100];
        for (int i = 0; i < 100; i++)
            c[i] = verdict_of(t, id, first + i, (first + i) % 7 ? 'f' : 'r');
        check(ledger_charge(t, n.ledger, 100, c, out) == 0);
        arena_reset(task_arena(t), mark);
    }
    set_state(t, &n, id, "DONE");
    struct archive a = archive_of(&n);
    struct role_turn lost = {
        .lock = {.redis = n.redis, .key = key_archive_lock, .token = "lost"},
        .locked = true,
        .ms = 30000,
        .kept_ms = INT32_MIN,
    };
    int64_t archived;
    a.turn = &lost;
    is_int(archive_round(t, &a, &archived), ERR_UNAVAILABLE, "the lock is lost after one batch");
    int64_t rows = sql_number(t, &n, "SELECT COUNT(*) FROM search_result WHERE uid = ?", id.uid);
    ok(rows > 0 && rows < papers && of_row(t, &n, id, "archived") == 0 && stays(t, &n, id),
       "part of it is in MySQL");
    int64_t begun_us = loop_now_us(task_loop(t));
    is_int(round_of(t, &n), 1, "another one does the rest");
    double seconds = (double)(loop_now_us(task_loop(t)) - begun_us) / 1e6;
    printf("# %.0f results per second\n", papers / seconds);
    ok(sql_number(t, &n, "SELECT COUNT(DISTINCT doi) FROM search_result WHERE uid = ?", id.uid) ==
               papers &&
           of_row(t, &n, id, "finished_papers") == papers &&
           of_row(t, &n, id, "relevant_papers") == (papers + 6) / 7 &&
           of_row(t, &n, id, "total_cost * 100") == 10 * ((papers + 6) / 7),
       "all of it");
    close_node(t, &n);
}

/* Charges of a version that did not write verdicts with them. */
static void test_older_version(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = ended_run(t, &n);
    check(ledger_sync(t, n.ledger, id.uid) == 0);
    sql_do(t, &n, "DELETE FROM search_result WHERE uid = ? AND doi < '10.1000/00006'", id.uid);
    sql_do(t, &n,
           "UPDATE query_log SET judged_papers = 3, relevant_papers = 1 WHERE uid = ?"
           " AND judged_papers = 7 AND relevant_papers = 3",
           id.uid);
    is_int(round_of(t, &n), 1, "a run of an older version is archived");
    is_archived(t, &n, id, "older version");
    ok(audited(t, &n), "the audit finds nothing");
    close_node(t, &n);
}

/* The record of a charge is damaged before it is synced. */
static void test_written_off(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    const struct str *list;
    size_t count;
    open_node(t, &n);
    struct run_id id = ended_run(t, &n);
    struct archive a = archive_of(&n);
    struct archive_run run = waiting(t, &n, id);
    bool ready = false;
    say(t, &n, STR("LSET"), key_billing_queue(task_arena(t), id.uid), STR("3"), STR("not JSON"));
    check(archive_prepare(t, &a, &run, &ready) == 0 && ready);
    is_int(archive_copy(t, &a, &run), ERR_CONFLICT, "a record is aside: the run waits");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM search_result WHERE uid = ?", id.uid), 8,
           "and nothing is made of its verdict");
    is_int(round_of(t, &n), 0, "nor in the next round");
    check(ledger_aside(t, n.ledger, id.uid, &list, &count) == 0 && count == 1);
    check(ledger_write_off(t, n.ledger, id.uid, list[0]) == 0);
    is_int(round_of(t, &n), 1, "once it is written off, the run is archived");
    ok(of_row(t, &n, id, "finished_papers") == 9 && of_row(t, &n, id, "failed_papers") == 3 &&
           of_row(t, &n, id, "total_cost * 100") == 60 && leaves(t, &n, id),
       "with all its papers: one more has failed, and cost nothing");
    is_int(balance(t, &n, id.uid), MONEY - 60, "its money is the user's again");
    ok(audited(t, &n), "the audit finds nothing");
    ok(archive_recall(t, &a, id) == 0 &&
           ask_int(t, &n, STR("SCARD"), key_failed(task_arena(t), id.uid, id.qid), STR_NULL) == 3,
       "a retry finds it among those that failed");
    close_node(t, &n);
}

/* --- a run that goes on --- */

static void test_reopened(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = ended_run(t, &n);
    struct archive a = archive_of(&n);
    struct archive_run run = waiting(t, &n, id);
    bool ready = false, closed = true;
    check(archive_prepare(t, &a, &run, &ready) == 0 && archive_copy(t, &a, &run) == 0);
    set_state(t, &n, id, "RUNNING");
    ok(archive_close(t, &a, &run, &closed) == 0 && !closed && of_row(t, &n, id, "archived") == 0,
       "a run that goes on meanwhile is not archived");
    judge_all(t, &n, id, 3, "n");
    set_state(t, &n, id, "DONE");
    ok(archive_close(t, &a, &run, &closed) == 0 && !closed, "nor by a node that late");
    run = waiting(t, &n, id);
    ready = false;
    check(archive_prepare(t, &a, &run, &ready) == 0 && ready && archive_copy(t, &a, &run) == 0 &&
          archive_close(t, &a, &run, &closed) == 0 && closed);
    ok(of_row(t, &n, id, "failed_papers") == 1 && of_row(t, &n, id, "total_cost * 100") == 80,
       "a verdict has replaced a failure");
    set_state(t, &n, id, "RUNNING");
    ok(archive_expire(t, &a) == 0 && stays(t, &n, id) && in_outbox_of_archive(t, &n, id) == 0,
       "one that goes on after it was archived keeps its keys");
    judge_all(t, &n, id, 6, "r");
    say(t, &n, STR("HSET"), key_result(task_arena(t), id.uid, id.qid), doi_of(t, 1),
        verdict_of(t, id, 1, 'f').result);
    set_state(t, &n, id, "DONE");
    is_int(round_of(t, &n), 1, "and is archived again");
    is_str(walk(t, &n, id, RESULTS_ALL, 500),
           STR("00001r 00005r 00009r 00006r 00003n 00007n 00002n 00004n 00008n"),
           "no verdict was replaced by a failure");
    ok(leaves(t, &n, id) && of_row(t, &n, id, "total_cost * 100") == 90, "with its cost");
    close_node(t, &n);
}

/* run_tell of a reopened run removes the TTL in the same step. */
static void test_told(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = ended_run(t, &n);
    struct archive a = archive_of(&n);
    struct sql_rows r;
    struct run_row row;
    bool told = false;
    check(round_of(t, &n) == 1);
    ok(leaves(t, &n, id), "a run is archived");
    check(sql_call(t, n.sql, NULL,
                   "UPDATE query_log SET status = 'RUNNING', archived = 0, end_time = changed_at,"
                   " changed_at = changed_at + INTERVAL 1 SECOND WHERE query_id = ?",
                   sql_text(id.qid)) == 0);
    check(sql_call(t, n.sql, &r, "SELECT " RUN_ROW_COLUMNS " FROM query_log WHERE query_id = ?",
                   sql_text(id.qid)) == 0 &&
          run_row_read(t, r.cells, &row) == 0);
    ok(run_row_tell(t, n.redis, &row, &told) == 0 && told && stays(t, &n, id),
       "it goes on, and keeps its keys");
    pause_ms(t, 5);
    ok(archive_expire(t, &a) == 0 && stays(t, &n, id) && in_outbox_of_archive(t, &n, id) == 0,
       "a node that is late with that gives them none");
    close_node(t, &n);
}

static void test_recall(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = ended_run(t, &n), none = {id.uid, STR("none")};
    struct archive a = archive_of(&n);
    set_state(t, &n, id, "PAUSED");
    is_int(archive_recall(t, &a, id), 0, "a run that has not ended is left as it is");
    is_int(in_outbox_of_archive(t, &n, id), 0, "really");
    is_int(archive_recall(t, &a, none), ERR_NOT_FOUND, "one that is none");
    set_state(t, &n, id, "DONE");
    struct str status = key_query_status(task_arena(t), id.uid, id.qid);
    say(t, &n, STR("HSET"), status, STR("state"), STR("RUNNING"));
    is_int(archive_recall(t, &a, id), ERR_CONFLICT,
           "one that Redis has not ended cannot be closed");
    say(t, &n, STR("HSET"), status, STR("state"), STR("DONE"));
    ok(archive_recall(t, &a, id) == 0 && of_row(t, &n, id, "archived") == 1 &&
           sql_number(t, &n, "SELECT COUNT(*) FROM search_result WHERE uid = ?", id.uid) == 9,
       "one that is DONE is archived first");
    int64_t begun_ms = loop_now_ms(task_loop(t));
    is_int(archive_recall(t, &a, id), 0, "one that is whole in Redis");
    ok(loop_now_ms(task_loop(t)) - begun_ms < 1000 && !leaves(t, &n, id), "stays there");
    struct arena *m = task_arena(t);
    const struct str gone[] = {key_failed(m, id.uid, id.qid), key_query_status(m, id.uid, id.qid)};
    for (size_t i = 0; i < 2; i++) {
        say(t, &n, STR("DEL"), gone[i]);
        is_int(archive_recall(t, &a, id), 0, "one that is not whole is brought back");
        check(sql_call(t, n.sql, NULL, "UPDATE query_log SET archived = 0 WHERE query_id = ?",
                       sql_text(id.qid)) == 0);
        is_str(walk(t, &n, id, RESULTS_ALL, 4), FINAL, "all of it");
        is_str(walk(t, &n, id, RESULTS_HIT, 4), STR("00001r 00005r 00009r"),
               "with what is relevant");
        ok(ask_int(t, &n, STR("SCARD"), gone[0], STR_NULL) == 2 &&
               of_status(t, &n, id.uid, id.qid, "finished") == 9 &&
               of_status(t, &n, id.uid, id.qid, "failed") == 2 &&
               of_status(t, &n, id.uid, id.qid, "cost") == 70,
           "its failures and its counts");
        check(sql_call(t, n.sql, NULL, "UPDATE query_log SET archived = 1 WHERE query_id = ?",
                       sql_text(id.qid)) == 0);
    }
    check(archive_expire(t, &a) == 0);
    ok(leaves(t, &n, id), "if it does not go on, it leaves again");
    say(t, &n, STR("HSET"), gone[1], STR("changed"), STR("9999999999999"));
    say(t, &n, STR("DEL"), gone[0]);
    is_int(archive_recall(t, &a, id), ERR_CONFLICT, "one that goes on already is left alone");
    is_int(ask_int(t, &n, STR("HLEN"), key_result(m, id.uid, id.qid), STR_NULL), 9, "whole");
    close_node(t, &n);
}

/* The row is written first: Redis may allow charges for a while. */
static void test_not_told(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = ended_run(t, &n), stuck = ended_run(t, &n);
    struct str status = key_query_status(task_arena(t), id.uid, id.qid);
    set_state(t, &n, id, "CANCELLED");
    say(t, &n, STR("HSET"), status, STR("state"), STR("RUNNING"));
    say(t, &n, STR("HSET"), key_result(task_arena(t), stuck.uid, stuck.qid), doi_of(t, 1),
        STR("{"));
    struct run_id good = ended_run(t, &n), part = ended_run(t, &n);
    say(t, &n, STR("HSET"), key_query_status(task_arena(t), part.uid, part.qid),
        STR("finished_blocks"), STR("1"));
    is_int(round_of(t, &n), 1, "a run that Redis has not ended waits, so does one that is damaged");
    is_archived(t, &n, good, "another one");
    ok(of_row(t, &n, id, "archived") == 0 && stays(t, &n, id) &&
           of_row(t, &n, stuck, "archived") == 0 && stays(t, &n, stuck),
       "they stay as they are");
    is_int(*metric(metrics, METRIC_GAUGE, "millrace_archive_stuck", "", ""), 1, "and are shown");
    is_int(*metric(metrics, METRIC_GAUGE, "millrace_archive_waiting", "", ""), 3, "all");
    ok(of_row(t, &n, part, "archived") == 0, "so does one of which units are lost");
    set_state(t, &n, part, "DONE");
    judge_all(t, &n, id, 20, "r");
    say(t, &n, STR("HSET"), status, STR("state"), STR("CANCELLED"));
    say(t, &n, STR("HSET"), key_result(task_arena(t), stuck.uid, stuck.qid), doi_of(t, 1),
        verdict_of(t, stuck, 1, 'r').result);
    is_int(round_of(t, &n), 3, "until it knows");
    ok(of_row(t, &n, id, "finished_papers") == 10 && of_row(t, &n, id, "total_cost * 100") == 80,
       "with what was charged meanwhile");
    close_node(t, &n);
}

/* --- Redis dies and comes back empty --- */

static void lose_redis(struct task *t, struct node *n)
{
    uint64_t epoch = redis_epoch(n->redis);
    restart_redis();
    await_new_redis(t, n, epoch);
}

static void test_redis_lost(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = ended_run(t, &n);
    set_state(t, &n, id, "CANCELLED");
    struct archive a = archive_of(&n);
    struct archive_run run = waiting(t, &n, id);
    bool ready = false, closed = false;
    check(archive_prepare(t, &a, &run, &ready) == 0 && ready);
    lose_redis(t, &n);
    is_int(archive_copy(t, &a, &run), ERR_UNAVAILABLE,
           "Redis was lost before the results were read");
    is_int(balance(t, &n, id.uid), MONEY - 70, "what was charged is in MySQL");
    is_int(round_of(t, &n), 1, "the run is archived");
    ok(of_row(t, &n, id, "finished_papers") == 7 && of_row(t, &n, id, "total_cost * 100") == 70,
       "with the verdicts; failures that Redis has lost are not known any more");
    ok(audited(t, &n), "the audit finds nothing");

    id = ended_run(t, &n);
    run = waiting(t, &n, id);
    ready = false;
    check(archive_prepare(t, &a, &run, &ready) == 0 && ready && archive_copy(t, &a, &run) == 0);
    lose_redis(t, &n);
    is_int(balance(t, &n, id.uid), MONEY - 70, "what is in search_result stays paid for");
    is_int(archive_close(t, &a, &run, &closed), ERR_UNAVAILABLE, "Redis was lost before the row");
    is_int(round_of(t, &n), 0, "a run that Redis does not have whole is left to the keeper");
    set_state(t, &n, id, "RUNNING");
    judge_all(t, &n, id, 3, "f");
    set_state(t, &n, id, "DONE");
    is_int(round_of(t, &n), 1, "when it has ended again it is archived");
    is_archived(t, &n, id, "Redis lost");
    ok(every_cent(t, &n, id.uid) && audited(t, &n), "every cent is where it belongs");
    close_node(t, &n);
}

/* A batch that was read from a Redis that MySQL has replaced, which this node has not noticed yet,
 * is not written after the repair. */
static void test_fence(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = ended_run(t, &n);
    struct archive a = archive_of(&n);
    struct archive_run run = waiting(t, &n, id);
    bool ready = false, closed = false;
    check(archive_prepare(t, &a, &run, &ready) == 0 && ready);
    sql_do(t, &n,
           "UPDATE setting SET value = '\"another\"' WHERE name = 'ledger.redis_run' AND ? > 0",
           id.uid);
    is_int(archive_copy(t, &a, &run), ERR_UNAVAILABLE, "results of another generation");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM search_result WHERE uid = ?", id.uid), 7,
           "are not written, but for what was charged");
    is_int(archive_close(t, &a, &run, &closed), ERR_UNAVAILABLE, "nor is the row");
    ok(!closed && of_row(t, &n, id, "archived") == 0, "it waits");
    close_node(t, &n);
}

/* --- in the background --- */

static void test_task(struct task *t, void *arg)
{
    (void)arg;
    struct node n, m;
    open_node(t, &n);
    open_node(t, &m);
    struct run_id id = ended_run(t, &n);
    struct archive one = archive_of(&n), two = archive_of(&m);
    int64_t before = counted("millrace_archive_runs_total");
    bool draining = false;
    struct roles *roles[] = {roles_new(n.redis, &draining), roles_new(m.redis, &draining)};
    struct role role = {.name = "archive",
                        .round = archive_role,
                        .each_ms = 100,
                        .lock = &key_archive_lock,
                        .lock_ms = 30000,
                        .complaint = "nothing is archived",
                        .elsewhere = archive_elsewhere};
    role.arg = &one;
    roles_go(roles[0], &n.tasks, &role);
    role.arg = &two;
    roles_go(roles[1], &m.tasks, &role);
    for (int i = 0; i < 1000 && !leaves(t, &n, id); i++)
        pause_ms(t, 10);
    is_archived(t, &n, id, "two nodes");
    is_int(counted("millrace_archive_runs_total") - before, 2,
           "once; one was left by the last test");
    close_node(t, &n);
    close_node(t, &m);
    roles_free(roles[0]);
    roles_free(roles[1]);
}

/* How many papers the large run has: more tell how fast it goes. */
int main(int argc, char **argv)
{
    int64_t papers = 5000;
    if (argc > 1)
        check(str_to_i64(str_of(argv[1]), &papers));
    start_stores();
    tap_task(test_archive, NULL, true);
    tap_task(test_steps, NULL, true);
    tap_task(test_batches, &(int){(int)papers}, true);
    tap_task(test_older_version, NULL, true);
    tap_task(test_written_off, NULL, true);
    tap_task(test_reopened, NULL, true);
    tap_task(test_told, NULL, true);
    tap_task(test_recall, NULL, true);
    tap_task(test_not_told, NULL, true);
    tap_task(test_redis_lost, NULL, true);
    tap_task(test_fence, NULL, true);
    tap_task(test_task, NULL, true);
    return stop_stores();
}
