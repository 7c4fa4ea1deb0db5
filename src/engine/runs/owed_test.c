/* Runs while MySQL is away, on real stores: what Redis shows of them, and what their rows are owed
 * (BIL-8). */
#include "engine/runs/owed.h"

#include "engine/runs/live.h"
#include "engine/runs/history.h"
#include "engine/runs/keeper.h"
#include "engine/runs/results_fixture.h"

#define HALT_MS_MAX 1000
#define READ_MS_MAX 2000

static struct runs runs_of(struct node *n)
{
    return (struct runs){n->redis, n->sql, n->cache, n->ledger, NULL, NULL};
}

static int64_t now_ms(struct task *t)
{
    return loop_now_us(task_loop(t)) / 1000;
}

static void open_watched(struct task *t, struct node *n)
{
    open_node(t, n);
    check(task_go(&n->tasks, "sql", sql_pool_watch, n->sql) == 0);
}

static void freeze(struct task *t)
{
    mariadb_freeze(&server);
    check(task_yield(t) == 0);
}

static void thaw(struct task *t, struct node *n)
{
    mariadb_thaw(&server);
    for (int i = 0; i < 500 && sql_call(t, n->sql, NULL, "SELECT 1"); i++)
        pause_ms(t, 10);
}

/* A run of 4 papers as submit leaves it, QUEUED; then with units, RUNNING. */
static struct run_id queued_run(struct task *t, struct node *n, int64_t uid)
{
    static int runs;
    struct arena *a = task_arena(t);
    struct run_id id = {uid, str_printf(a, "%032d", ++runs)};
    struct run_row row;
    struct runs r = runs_of(n);
    check(sql_call(t, n->sql, NULL,
                   "INSERT INTO query_log (query_id, uid, status, search_params, total_papers)"
                   " VALUES (?, ?, 'QUEUED', '{\"question\":\"Is it wet?\",\"journals\":"
                   "[{\"name\":\"Zoo\",\"price\":2,\"papers\":4}]}', 4)",
                   sql_text(id.qid), sql_int(uid)) == 0);
    check(run_row_find(t, n->sql, id, &row) == 0 && run_announce(t, &r, &row) == 0);
    return id;
}

static struct run_id running_run(struct task *t, struct node *n)
{
    struct run_id id = queued_run(t, n, add_user(t, n, MONEY));
    struct runs r = runs_of(n);
    enum run_state state;
    const struct str units[] = {STR("one"), STR("two")};
    check(run_control(t, &r, id, RUN_START, "", &state) == 0);
    check(units_put(t, n->redis, id, units, 2) == 0);
    return id;
}

static struct str status(struct task *t, struct node *n, struct run_id id, const char *field)
{
    return ask(t, n, STR("HGET"), key_query_status(task_arena(t), id.uid, id.qid), str_of(field));
}

static struct str in_row(struct task *t, struct node *n, struct run_id id)
{
    struct run_row row;
    check(run_row_find(t, n->sql, id, &row) == 0);
    return str_of(run_state_name(row.state));
}

static int64_t exists(struct task *t, struct node *n, struct str key)
{
    return ask_int(t, n, STR("EXISTS"), key, STR_NULL);
}

/* As the state in which it leaves the run, or an error. */
static int halted(struct task *t, struct node *n, struct run_id id, enum run_event e)
{
    struct runs r = runs_of(n);
    enum run_state state;
    bool degraded = false;
    int64_t since = now_ms(t);
    int err = run_halt(t, &r, id, e, &state, &degraded);
    check(err || degraded);
    int64_t took = now_ms(t) - since;
    if (took >= HALT_MS_MAX)
        printf("# run_halt took %d ms\n", (int)took);
    return took >= HALT_MS_MAX ? ERR_TIMEOUT : err ? err : (int)state;
}

static int control(struct task *t, struct node *n, struct run_id id, enum run_event e)
{
    struct runs r = runs_of(n);
    enum run_state state;
    int err = run_control(t, &r, id, e, "", &state);
    return err ? err : (int)state;
}

static int settle(struct task *t, struct node *n)
{
    struct runs r = runs_of(n);
    return run_settle_all(t, &r);
}

static int reconcile(struct task *t, struct node *n)
{
    struct runs r = runs_of(n);
    int64_t mended;
    return run_reconcile(t, &r, &mended);
}

static enum unit_found take(struct task *t, struct node *n, struct run_id id, struct unit *u)
{
    static uint64_t number;
    enum unit_found found;
    struct unit_claim claim = {.incarnation = 7, .number = ++number};
    check(unit_take(t, n->redis, id, &claim, &found, u) == 0);
    return found;
}

/* --- pause --- */

static void test_pause(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct unit u;
    struct run_row row;
    struct run_view v;
    open_watched(t, &n);
    struct runs r = runs_of(&n);
    struct run_id id = running_run(t, &n);
    struct arena *a = task_arena(t);
    freeze(t);
    is_int(halted(t, &n, id, RUN_PAUSE), RUN_PAUSED, "paused although MySQL does not answer");
    is_str(status(t, &n, id, "state"), STR("PAUSED"), "in Redis");
    is_int(exists(t, &n, key_pause_signal(a, id.uid, id.qid)), 1, "with the signal");
    ok(!ask(t, &n, STR("ZSCORE"), key_queue, run_name(a, id)).p, "it waits for no workers");
    is_int(take(t, &n, id, &u), UNIT_PAUSED, "no unit is taken");
    is_int(halted(t, &n, id, RUN_PAUSE), RUN_PAUSED, "a repeat changes nothing");
    thaw(t, &n);
    is_str(in_row(t, &n, id), STR("RUNNING"), "its row does not know it yet");
    ok(run_view(t, &r, id, &v) == 0 && v.state == RUN_PAUSED && !v.degraded,
       "but its user sees it");

    ok(reconcile(t, &n) == 0 && str_eq(status(t, &n, id, "state"), STR("PAUSED")),
       "a comparison with the row does not undo it");
    check(run_row_find(t, n.sql, id, &row) == 0);
    row.changed_ms += 5;
    check(run_announce(t, &r, &row) == 0);
    is_str(status(t, &n, id, "state"), STR("PAUSED"), "nor does a later version of the row");
    is_int(exists(t, &n, key_pause_signal(a, id.uid, id.qid)), 1, "nor of its signal");
    is_int(take(t, &n, id, &u), UNIT_PAUSED, "still no unit is taken");

    is_int(settle(t, &n), 0, "the keeper");
    is_str(in_row(t, &n, id), STR("PAUSED"), "writes the row");
    ok(!status(t, &n, id, "owed").p, "which is owed nothing any more");
    is_int(control(t, &n, id, RUN_RESUME), RUN_RUNNING, "and can be resumed");
    is_int(settle(t, &n), 0, "the keeper comes again");
    is_str(in_row(t, &n, id), STR("RUNNING"), "which does not pause it again");
    is_int(take(t, &n, id, &u), UNIT_FOUND, "units are taken");
    close_node(t, &n);
}

/* Paused while it waits: resumed, it waits again. */
static void test_queued(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_watched(t, &n);
    struct run_id id = queued_run(t, &n, add_user(t, &n, MONEY));
    const struct str unit = STR("one");
    freeze(t);
    is_int(halted(t, &n, id, RUN_PAUSE), RUN_PAUSED, "a run that waits is paused");
    is_int(units_put(t, n.redis, id, &unit, 1), ERR_CONFLICT, "and does not start");
    thaw(t, &n);
    check(settle(t, &n) == 0);
    is_int(control(t, &n, id, RUN_RESUME), RUN_QUEUED, "resumed, it waits");
    close_node(t, &n);
}

/* --- a resume meets a note --- */

struct settling {
    struct runs runs;
    struct run_id id;
    int err;
};

static void settle_task(struct task *t, void *arg)
{
    struct settling *s = arg;
    s->err = run_settle(t, &s->runs, s->id);
}

struct holding {
    struct node *node;
    struct run_id id;
    struct group *group;
    struct settling *late;
};

/* While this transaction has the row, a settler has read the note and waits for the row. */
static int hold_row(struct task *t, struct sql *c, void *arg)
{
    struct holding *h = arg;
    struct run_row row;
    struct str note;
    int err = run_row_lock(t, c, h->id, &row);
    if (err)
        return err;
    check(task_go(h->group, "settle", settle_task, h->late) == 0);
    pause_ms(t, 200);
    check(run_owed(t, h->node->redis, h->id, &note) == 0 && note.p);
    return run_owed_drop(t, h->node->redis, h->id, note);
}

static void test_resume_first(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct group g;
    open_watched(t, &n);
    struct runs r = runs_of(&n);
    struct run_id id = running_run(t, &n);
    freeze(t);
    check(halted(t, &n, id, RUN_PAUSE) == RUN_PAUSED);
    thaw(t, &n);
    is_int(control(t, &n, id, RUN_RESUME), RUN_RUNNING, "resumed before the keeper came");
    is_str(status(t, &n, id, "state"), STR("RUNNING"), "Redis knows");
    check(settle(t, &n) == 0);
    is_str(in_row(t, &n, id), STR("RUNNING"), "the keeper leaves it so");

    freeze(t);
    check(halted(t, &n, id, RUN_PAUSE) == RUN_PAUSED);
    thaw(t, &n);
    struct settling late = {r, id, 1};
    struct holding h = {&n, id, &g, &late};
    group_init(&g, task_loop(t));
    check(sql_tx(t, n.sql, hold_row, &h) == 0 && group_join(t, &g) == 0);
    is_int(late.err, 0, "a keeper that has read the note, and comes late");
    is_str(in_row(t, &n, id), STR("RUNNING"), "does not pause it either");
    close_node(t, &n);
}

/* --- terminate --- */

static void test_terminate(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct unit u;
    open_watched(t, &n);
    struct run_id id = running_run(t, &n);
    struct arena *a = task_arena(t);
    check(take(t, &n, id, &u) == UNIT_FOUND);
    judge(t, &n, id, 1, 'r');
    freeze(t);
    check(halted(t, &n, id, RUN_PAUSE) == RUN_PAUSED);
    is_int(halted(t, &n, id, RUN_TERMINATE), RUN_CANCELLED, "terminated after a pause");
    is_int(exists(t, &n, key_terminate_signal(a, id.uid, id.qid)), 1, "with the signal");
    is_int(exists(t, &n, key_pending(a, id.uid, id.qid)) +
               exists(t, &n, key_inflight(a, id.uid, id.qid)),
           0, "its units are gone");
    is_int(pay(t, &n, verdict_of(t, id, 2, 'r')), CHARGE_STOPPED, "nothing is charged any more");
    is_int(halted(t, &n, id, RUN_PAUSE), ERR_CONFLICT, "it stays terminated");
    is_int(halted(t, &n, id, RUN_TERMINATE), RUN_CANCELLED, "also when asked twice");
    thaw(t, &n);
    check(reconcile(t, &n) == 0);
    is_str(status(t, &n, id, "state"), STR("CANCELLED"), "the row does not revive it");
    is_int(control(t, &n, id, RUN_RESUME), ERR_CONFLICT, "nor does its user");
    is_str(in_row(t, &n, id), STR("CANCELLED"), "whose wish makes the row follow");
    ok(settle(t, &n) == 0 && !status(t, &n, id, "owed").p, "and nothing is owed");
    close_node(t, &n);
}

/* The last unit is finished at that moment. */
static void test_last_unit(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct unit u[2];
    bool last;
    open_watched(t, &n);
    for (int paused = 0; paused < 2; paused++) {
        struct run_id id = running_run(t, &n);
        for (int i = 0; i < 2; i++)
            check(take(t, &n, id, &u[i]) == UNIT_FOUND);
        check(unit_finish(t, n.redis, id, &u[0], &last) == 0);
        freeze(t);
        if (paused)
            is_int(halted(t, &n, id, RUN_PAUSE), RUN_PAUSED, "paused, with its last unit in hand");
        check(unit_finish(t, n.redis, id, &u[1], &last) == 0 && last);
        is_int(halted(t, &n, id, RUN_TERMINATE), ERR_CONFLICT, "one that is done cannot be ended");
        thaw(t, &n);
        check(settle(t, &n) == 0 && reconcile(t, &n) == 0);
        is_str(in_row(t, &n, id), STR("DONE"), "its row is DONE");
        is_str(status(t, &n, id, "state"), STR("DONE"), "and so it is in Redis");
        ok(!status(t, &n, id, "owed").p, "nothing is owed");
    }
    struct run_id id = running_run(t, &n);
    for (int i = 0; i < 2; i++)
        check(take(t, &n, id, &u[i]) == UNIT_FOUND);
    check(unit_finish(t, n.redis, id, &u[0], &last) == 0);
    freeze(t);
    check(halted(t, &n, id, RUN_TERMINATE) == RUN_CANCELLED);
    is_int(unit_finish(t, n.redis, id, &u[1], &last), ERR_CONFLICT,
           "one that was ended is not done any more");
    thaw(t, &n);
    check(settle(t, &n) == 0 && reconcile(t, &n) == 0);
    is_str(in_row(t, &n, id), STR("CANCELLED"), "in its row");
    close_node(t, &n);
}

/* --- the keeper --- */

static void test_keeper(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_watched(t, &n);
    struct runs r = runs_of(&n);
    struct run_id id[3];
    struct role_turn turn = {.locked = false};
    struct arena *a = task_arena(t);
    say(t, &n, STR("DEL"), key_owed);
    for (int i = 0; i < 3; i++)
        id[i] = running_run(t, &n);
    freeze(t);
    check(halted(t, &n, id[0], RUN_PAUSE) == RUN_PAUSED);
    check(halted(t, &n, id[1], RUN_TERMINATE) == RUN_CANCELLED);
    check(halted(t, &n, id[2], RUN_PAUSE) == RUN_PAUSED);
    ok(err_may_pass(keeper_role(t, &r, &turn)), "a keeper that cannot reach MySQL");
    ok(status(t, &n, id[0], "owed").p != NULL, "keeps the notes");
    thaw(t, &n);
    check(sql_call(t, n.sql, NULL, "DELETE FROM query_log WHERE query_id = ?",
                   sql_text(id[2].qid)) == 0);
    is_int(keeper_role(t, &r, &turn), 0, "once it can");
    is_str(in_row(t, &n, id[0]), STR("PAUSED"), "the row of the paused run follows");
    is_str(in_row(t, &n, id[1]), STR("CANCELLED"), "and that of the terminated one");
    ok(!status(t, &n, id[0], "owed").p && !status(t, &n, id[1], "owed").p, "the notes are gone");
    ok(!status(t, &n, id[2], "owed").p, "also that of a run that is no more");
    is_int(ask_int(t, &n, STR("ZCARD"), key_owed, STR_NULL), 3, "the announcements");
    for (int i = 0; i < 3; i++)
        say(t, &n, STR("ZADD"), key_owed, STR("1"), run_name(a, id[i]));
    is_int(keeper_role(t, &r, &turn), 0, "go");
    is_int(exists(t, &n, key_owed), 0, "later");
    close_node(t, &n);
}

/* --- reading --- */

static void test_reading(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct run_view v, w;
    struct history_page page;
    struct result_row one;
    bool degraded = false;
    open_watched(t, &n);
    say(t, &n, STR("FLUSHDB"));
    struct runs r = runs_of(&n);
    struct history h = {n.redis, n.sql, n.cache};
    struct results with = results_of(&n);
    struct results_page found;
    with.cache = n.cache;
    struct run_id id = running_run(t, &n), other = running_run(t, &n),
                  unknown = {id.uid, STR("00000000000000000000000000000nop")};
    struct arena *a = task_arena(t);
    judge_all(t, &n, id, 1, "rnf");
    check(run_view(t, &r, id, &v) == 0 && history_list(t, &h, id.uid, STR_NULL, 10, &page) == 0);
    freeze(t);
    int64_t since = now_ms(t);
    is_int(run_view(t, &r, id, &w), 0, "a run is shown although MySQL does not answer");
    ok(now_ms(t) - since < READ_MS_MAX, "within %d ms", (int)(now_ms(t) - since));
    ok(w.degraded && w.state == RUN_RUNNING && w.papers == 4 && w.finished == 3 &&
           w.relevant == 1 && w.failed == 1 && w.cents == 20 &&
           str_eq(w.question, STR("Is it wet?")) && w.created_ms == v.created_ms &&
           w.started_ms == v.started_ms && w.started_ms > 0,
       "as its row has it");
    ok(w.ceiling == 800 && v.ceiling == 800, "with what it costs at most");
    since = now_ms(t);
    is_int(history_list(t, &h, id.uid, STR_NULL, 10, &page), 0, "the history");
    ok(page.degraded && page.count == 1 && str_eq(page.runs[0].qid, id.qid) &&
           page.runs[0].finished == 3,
       "has it");
    ok(results_list(t, &with, id, RESULTS_ALL, STR_NULL, 2, &found) == 0 && found.degraded &&
           found.count == 2 && found.next.p && str_eq(found.rows[0].doi, doi_of(t, 1)),
       "so have the results");
    ok(results_list(t, &with, id, RESULTS_ALL, STR("s1.1"), 2, &found) == 0 && found.restarted &&
           found.count == 2,
       "which begin anew where a cursor is of MySQL");
    ok(results_find(t, &with, id, doi_of(t, 2), &one, &degraded) == 0 && degraded, "and one paper");
    is_int(results_find(t, &with, id, doi_of(t, 9), &one, &degraded), ERR_NOT_FOUND, "that it has");

    is_int(run_view(t, &r, unknown, &w), ERR_NOT_FOUND, "no such run");
    is_int(run_view(t, &r, (struct run_id){id.uid, other.qid}, &w), ERR_NOT_FOUND,
           "nor that of another user");
    is_int(run_view(t, &r, (struct run_id){other.uid, id.qid}, &w), ERR_UNAVAILABLE,
           "not known where the history is not whole");
    is_int(results_list(t, &with, unknown, RESULTS_ALL, STR_NULL, 2, &found), ERR_NOT_FOUND,
           "nor its results");
    is_int(halted(t, &n, unknown, RUN_PAUSE), ERR_NOT_FOUND, "nor can it be paused");
    say(t, &n, STR("DEL"), key_arrivals(a, id.uid, id.qid));
    is_int(results_list(t, &with, id, RESULTS_ALL, STR_NULL, 2, &found), ERR_UNAVAILABLE,
           "results that Redis has not any more");
    say(t, &n, STR("DEL"), key_query_info(a, id.uid, id.qid));
    is_int(run_view(t, &r, id, &w), ERR_UNAVAILABLE, "a run that Redis has not any more");
    is_int(history_list(t, &h, id.uid, STR_NULL, 10, &page), ERR_UNAVAILABLE, "nor its history");
    say(t, &n, STR("DEL"), key_query_status(a, id.uid, id.qid));
    is_int(halted(t, &n, id, RUN_PAUSE), ERR_UNAVAILABLE, "nor can it be paused");
    ok(now_ms(t) - since < READ_MS_MAX, "all of them within %d ms", (int)(now_ms(t) - since));
    thaw(t, &n);
    close_node(t, &n);
}

/* There may be a note: what cannot be asked is not taken for no. The last test: Redis is gone. */
static void test_without_redis(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = running_run(t, &n);
    struct runs r = runs_of(&n);
    check(control(t, &n, id, RUN_PAUSE) == RUN_PAUSED);
    store_redis_kill(&store);
    while (cache_trusts_redis(n.cache))
        pause_ms(t, 2);
    is_int(run_settle(t, &r, id), ERR_UNAVAILABLE,
           "a note that Redis does not tell is not settled");
    is_int(control(t, &n, id, RUN_RESUME), ERR_UNAVAILABLE, "nothing goes on before it is known");
    ok(str_eq(in_row(t, &n, id), STR("PAUSED")), "nor is the row changed");
    is_int(control(t, &n, id, RUN_TERMINATE), RUN_CANCELLED, "an end does not wait for that");
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    close_node(t, &n);
}

/* Papers of a run that had left the corpus, written as a charge would. */
static void withdraw(struct task *t, struct node *n, struct run_id id, int64_t count)
{
    struct arena *a = task_arena(t);
    struct str results = key_result(a, id.uid, id.qid), failed = key_failed(a, id.uid, id.qid);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    struct buf json;
    buf_init(&json);
    result_write(&json, &(struct result){.block_key = STR("meta:Zoo:2000"),
                                         .outcome = OUTCOME_FAILED,
                                         .withdrawn = true,
                                         .reason = STR("it has left")});
    redis_batch_init(&b, t, n->redis);
    for (int i = 0; i < count; i++) {
        redis_batch_add(&b, results, STR("HSET"), results, doi_of(t, i), buf_str(&json));
        redis_batch_add(&b, failed, STR("SADD"), failed, doi_of(t, i));
    }
    check(redis_batch_run(&b, &replies) == 0);
    buf_release(&json);
    say(t, n, STR("HSET"), key_query_status(a, id.uid, id.qid), STR("failed"), str_int(a, count));
}

/* Which runs are archived is not known then. */
static void test_withdrawn(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct history_page page;
    open_watched(t, &n);
    struct history h = {n.redis, n.sql, n.cache};
    int64_t uid = add_user(t, &n, MONEY);
    struct run_id id[4];
    static const int64_t failed[] = {3, 501, 500, 501}, counted[] = {3, 0, 500, 501};
    for (int i = 0; i < 4; i++) {
        id[i] = queued_run(t, &n, uid);
        if (i < 3)
            check(control(t, &n, id[i], RUN_TERMINATE) == RUN_CANCELLED);
        withdraw(t, &n, id[i], failed[i]);
    }
    ok(history_list(t, &h, uid, STR_NULL, 10, &page) == 0 && !page.degraded, "a history");
    freeze(t);
    ok(history_list(t, &h, uid, STR_NULL, 10, &page) == 0 && page.degraded && page.count == 4,
       "which is asked for while MySQL does not answer");
    for (size_t i = 0; i < page.count; i++)
        for (int k = 0; k < 4; k++)
            if (str_eq(page.runs[i].qid, id[k].qid))
                is_int(page.runs[i].unjudged.withdrawn, counted[k], "of %d papers of a run that %s",
                       (int)failed[k], k < 3 ? "has ended" : "goes on");
    thaw(t, &n);
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_pause, NULL, true);
    tap_task(test_queued, NULL, true);
    tap_task(test_resume_first, NULL, true);
    tap_task(test_terminate, NULL, true);
    tap_task(test_last_unit, NULL, true);
    tap_task(test_keeper, NULL, true);
    tap_task(test_reading, NULL, true);
    tap_task(test_withdrawn, NULL, true);
    tap_task(test_without_redis, NULL, true);
    return stop_stores();
}
