/* Runs as their users see them, on real stores: a change is in MySQL first, then in Redis. */
#include "engine/runs/run.h"

#include "engine/money/ledger_fixture.h"
#include "engine/runs/keeper.h"

static struct catalog catalog;

static struct runs runs_of(struct node *n)
{
    catalog = (struct catalog){n->redis, n->sql, n->cache};
    return (struct runs){.redis = n->redis,
                         .sql = n->sql,
                         .cache = n->cache,
                         .ledger = n->ledger,
                         .catalog = &catalog};
}

/* Every test has the same random numbers, and so the same ids of runs. */
static void forget_runs(struct task *t, struct node *n)
{
    check(sql_call(t, n->sql, NULL, "DELETE FROM query_log") == 0);
    say(t, n, STR("FLUSHALL"));
}

static void fill_catalog(struct task *t, struct node *n)
{
    struct catalog_size size;
    static const char *const rows[] = {
        "REPLACE INTO contentlist (Name, Price) VALUES ('A', 2), ('B \\'x', 3)",
        "REPLACE INTO contentlist_year_number VALUES ('A', '{\"2020\": 10, \"2021\": 5}')",
        "REPLACE INTO contentlist_year_number VALUES ('B \\'x', '{\"2021\": 7}')",
        "UPDATE user_info SET permission = 2",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(sql_call(t, n->sql, NULL, rows[i]) == 0);
    check(catalog_load(t, n->redis, n->sql, &size) == 0);
}

static const struct str journals[] = {{"A", 1}, {"B 'x", 4}};

static struct run_wish wish(int64_t from, int64_t to)
{
    return (struct run_wish){.question = STR("Is it \"wet\"?"), .choice = {journals, 2, from, to}};
}

static int submit(struct task *t, struct node *n, int64_t uid, struct run_wish w, char *qid)
{
    struct runs r = runs_of(n);
    struct str unknown = STR_NULL;
    return run_submit(t, &r, uid, &w, qid, &unknown);
}

static struct str status(struct task *t, struct node *n, struct run_id id, const char *field)
{
    return ask(t, n, STR("HGET"), key_query_status(task_arena(t), id.uid, id.qid), str_of(field));
}

static struct str in_row(struct task *t, struct node *n, struct run_id id)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, "SELECT status FROM query_log WHERE query_id = ?",
                   sql_text(id.qid)) == 0 &&
          r.count == 1);
    return r.cells[0].s;
}

static int control(struct task *t, struct node *n, struct run_id id, enum run_event e,
                   const char *want)
{
    struct runs r = runs_of(n);
    enum run_state state = RUN_FAILED;
    int err = run_control(t, &r, id, e, "", &state);
    return err ? err : strcmp(run_state_name(state), want) == 0 ? 0 : ERR_INTERNAL;
}

static int64_t new_user(struct task *t, struct node *n, int64_t cents)
{
    int64_t uid = add_user(t, n, cents);
    sql_do(t, n, "UPDATE user_info SET permission = 2 WHERE uid = ?", uid);
    return uid;
}

static void test_submit(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES];
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    is_int(submit(t, &n, uid, wish(2020, 2021), qid), 0, "a run is submitted");
    struct run_id id = {uid, str_of(qid)};
    ok(id.qid.n == 32, "its id has 128 bits");
    is_str(in_row(t, &n, id), STR("QUEUED"), "its row");
    is_str(status(t, &n, id, "state"), STR("QUEUED"), "its state in Redis");
    is_str(status(t, &n, id, "papers"), STR("22"), "its papers");
    struct arena *a = task_arena(t);
    ok(ask(t, &n, STR("ZSCORE"), key_queue, str_printf(a, "%lld:%s", (long long)uid, qid)).p !=
           NULL,
       "it waits for its turn");
    ok(ask(t, &n, STR("ZSCORE"), key_history(a, uid), id.qid).p != NULL, "and is in the history");
    check(sql_call(t, n.sql, NULL, "UPDATE contentlist SET Price = 9") == 0);
    struct sql_rows r;
    check(sql_call(t, n.sql, &r,
                   "SELECT JSON_VALUE(search_params, '$.journals[1].price'),"
                   " JSON_VALUE(search_params, '$.question') FROM query_log WHERE query_id = ?",
                   sql_text(id.qid)) == 0);
    is_str(r.cells[0].s, STR("3"), "prices are frozen");
    is_str(r.cells[1].s, STR("Is it \"wet\"?"), "with the question");
    fill_catalog(t, &n);
    struct runs runs = runs_of(&n);
    struct run_view v;
    ok(run_view(t, &runs, id, &v) == 0 && v.state == RUN_QUEUED && v.papers == 22 && !v.degraded,
       "its user sees it");
    is_int(run_view(t, &runs, (struct run_id){uid + 1, id.qid}, &v), ERR_NOT_FOUND,
           "only its user");
    close_node(t, &n);
}

static void test_refused(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES];
    struct str unknown = STR_NULL;
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    struct runs r = runs_of(&n);
    int64_t uid = new_user(t, &n, 5000);
    int64_t rows = sql_number(t, &n, "SELECT COUNT(*) FROM query_log WHERE uid >= ?", 0);
    is_int(submit(t, &n, uid, wish(2020, 2021), qid), ERR_FUNDS, "5,100 cents of 5,000");
    is_int(submit(t, &n, uid, wish(1990, 1991), qid), ERR_INVALID, "no papers");
    static const struct str strange[] = {{"A", 1}, {"no", 2}};
    struct run_wish w = {.question = STR("q"), .choice = {strange, 2, 2020, 2021}};
    ok(run_submit(t, &r, uid, &w, qid, &unknown) == ERR_NOT_FOUND && str_eq(unknown, STR("no")),
       "an unknown journal is named");
    sql_do(t, &n, "UPDATE user_info SET permission = 0 WHERE uid = ?", uid);
    is_int(submit(t, &n, uid, wish(2021, 2021), qid), ERR_FORBIDDEN, "permission 0");
    sql_do(t, &n, "UPDATE user_info SET permission = 1, banned = 1 WHERE uid = ?", uid);
    is_int(submit(t, &n, uid, wish(2021, 2021), qid), ERR_FORBIDDEN, "banned");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM query_log WHERE uid >= ?", 0), rows,
           "nothing was written");
    sql_do(t, &n, "UPDATE user_info SET banned = 0 WHERE uid = ?", uid);
    int64_t left;
    check(recharge(t, &n, uid, RUN_QUEUED_MAX * 5100, "r", &left) == 0);
    int err = 0, made = 0;
    while (made < RUN_QUEUED_MAX && !err) {
        err = submit(t, &n, uid, wish(2021, 2021), qid);
        made += !err;
    }
    is_int(made, RUN_QUEUED_MAX, "a hundred may wait");
    is_int(submit(t, &n, uid, wish(2021, 2021), qid), ERR_RATE, "not one more");
    close_node(t, &n);
}

static void test_control(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES];
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    check(submit(t, &n, uid, wish(2020, 2021), qid) == 0);
    struct run_id id = {uid, str_of(qid)};
    struct arena *a = task_arena(t);
    struct str unit = STR("meta:A:2020");
    is_int(control(t, &n, id, RUN_START, "RUNNING"), 0, "start");
    check(units_put(t, n.redis, id, &unit, 1) == 0);
    is_int(control(t, &n, id, RUN_PAUSE, "PAUSED"), 0, "pause");
    ok(str_eq(status(t, &n, id, "state"), STR("PAUSED")) &&
           ask_int(t, &n, STR("EXISTS"), key_pause_signal(a, uid, id.qid), STR_NULL) == 1,
       "Redis knows");
    is_int(control(t, &n, id, RUN_PAUSE, "PAUSED"), 0, "again");
    sql_do(t, &n, "UPDATE user_info SET banned = 1 WHERE uid = ?", uid);
    is_int(control(t, &n, id, RUN_RESUME, ""), ERR_FORBIDDEN, "a banned user cannot resume it");
    sql_do(t, &n, "UPDATE user_info SET banned = 0 WHERE uid = ?", uid);
    is_int(control(t, &n, id, RUN_RESUME, "RUNNING"), 0, "resume");
    is_int(ask_int(t, &n, STR("EXISTS"), key_pause_signal(a, uid, id.qid), STR_NULL), 0,
           "the signal is gone");
    is_int(control(t, &n, id, RUN_RETRY_FAILED, ""), ERR_CONFLICT, "not while it runs");
    is_int(control(t, &n, (struct run_id){uid + 1, id.qid}, RUN_PAUSE, ""), ERR_NOT_FOUND,
           "not another's");
    is_int(control(t, &n, id, RUN_PAUSE, "PAUSED"), 0, "pause");
    is_int(control(t, &n, id, RUN_TERMINATE, "CANCELLED"), 0, "terminate outranks it");
    ok(ask_int(t, &n, STR("EXISTS"), key_terminate_signal(a, uid, id.qid), STR_NULL) == 1 &&
           ask_int(t, &n, STR("EXISTS"), key_pending(a, uid, id.qid), STR_NULL) == 0,
       "the signal is set, the list is empty");
    is_int(control(t, &n, id, RUN_RESUME, ""), ERR_CONFLICT, "it is final");
    is_int(control(t, &n, id, RUN_TERMINATE, "CANCELLED"), 0, "a repeat is harmless");
    close_node(t, &n);
}

/* It ended in its row, and an older Redis still has a unit of it. */
static void test_ended_units(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES];
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    check(submit(t, &n, uid, wish(2020, 2021), qid) == 0);
    struct run_id id = {uid, str_of(qid)};
    struct str unit = STR("meta:A:2020"), pending = key_pending(task_arena(t), uid, id.qid);
    check(control(t, &n, id, RUN_START, "RUNNING") == 0);
    check(units_put(t, n.redis, id, &unit, 1) == 0);
    check(ask_int(t, &n, STR("EXISTS"), pending, STR_NULL) == 1);
    is_int(control(t, &n, id, RUN_FINISH, "DONE"), 0, "done");
    is_int(ask_int(t, &n, STR("EXISTS"), pending, STR_NULL), 0, "a run that ended has no units");
    close_node(t, &n);
}

/* An admin's deed and its note are one: neither is there without the other. */
static void test_by_admin(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES], too_long[80];
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    check(submit(t, &n, uid, wish(2020, 2021), qid) == 0);
    struct run_id id = {uid, str_of(qid)};
    struct runs r = runs_of(&n);
    enum run_state state = RUN_FAILED;
    struct admin_deed by = {
        .admin_uid = 3, .admin_name = STR("root"), .address = STR("1.2.3.4"), .action = too_long};
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    ok(run_control_by(t, &r, id, RUN_TERMINATE, "why", &by, &state) != 0 &&
           str_eq(in_row(t, &n, id), STR("QUEUED")),
       "what cannot be noted is not done: %s", task_error(t));
    by.action = "run.terminate";
    ok(run_control_by(t, &r, id, RUN_TERMINATE, "why", &by, &state) == 0 && state == RUN_CANCELLED,
       "what can is");
    is_int(sql_number(t, &n,
                      "SELECT COUNT(*) FROM admin_audit WHERE target_uid = ? AND details LIKE"
                      " '%done%QUEUED%CANCELLED%'",
                      uid),
           1, "and noted, with before and after");
    is_int(run_control_by(t, &r, id, RUN_TERMINATE, "why", &by, &state), 0, "again");
    is_int(sql_number(t, &n,
                      "SELECT COUNT(*) FROM admin_audit WHERE target_uid = ? AND details LIKE"
                      " '%repeated%'",
                      uid),
           1, "is noted as that");
    is_int(run_control_by(t, &r, id, RUN_PAUSE, "why", &by, &state), ERR_CONFLICT, "not any more");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM admin_audit WHERE target_uid = ?", uid), 2,
           "what is refused is not noted here");
    close_node(t, &n);
}

/* The last unit is finished in Redis while its user pauses in MySQL: DONE stays DONE. */
static void test_done_meets_pause(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES];
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    check(submit(t, &n, uid, wish(2020, 2021), qid) == 0);
    struct run_id id = {uid, str_of(qid)};
    struct str unit = STR("meta:A:2020");
    struct unit u;
    enum unit_found found;
    bool last = false;
    check(control(t, &n, id, RUN_START, "RUNNING") == 0 &&
          units_put(t, n.redis, id, &unit, 1) == 0);
    check(unit_take(t, n.redis, id, &(struct unit_claim){1, 1, false}, &found, &u) == 0 &&
          unit_finish(t, n.redis, id, &u, &last) == 0 && last);
    is_int(control(t, &n, id, RUN_PAUSE, "PAUSED"), 0, "a pause that comes too late");
    is_str(status(t, &n, id, "state"), STR("DONE"), "does not take it back");
    is_int(control(t, &n, id, RUN_RESUME, "RUNNING"), 0, "nor does a resume");
    is_str(status(t, &n, id, "state"), STR("DONE"), "it is done");
    is_int(control(t, &n, id, RUN_FINISH, "DONE"), 0, "the worker that finished it writes the row");
    is_str(in_row(t, &n, id), STR("DONE"), "which follows");
    is_int(control(t, &n, id, RUN_RETRY_FAILED, "RUNNING"), 0, "and can be opened again");
    is_str(status(t, &n, id, "state"), STR("RUNNING"), "in Redis, too");
    ok(!status(t, &n, id, "total_blocks").p && str_eq(status(t, &n, id, "retry"), STR("1")),
       "to be split anew, for its failed papers");
    close_node(t, &n);
}

static void test_reconcile(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[2][RUN_ID_BYTES];
    int64_t told;
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    struct runs r = runs_of(&n);
    for (int i = 0; i < 2; i++)
        check(submit(t, &n, uid, wish(2020, 2021), qid[i]) == 0);
    struct run_id one = {uid, str_of(qid[0])}, two = {uid, str_of(qid[1])};
    check(control(t, &n, one, RUN_START, "RUNNING") == 0);
    ok(run_reconcile(t, &r, &told) == 0 && told == 0, "nothing to tell");
    /* Redis loses the second in which the pause came. */
    check(control(t, &n, one, RUN_PAUSE, "PAUSED") == 0);
    say(t, &n, STR("HSET"), key_query_status(task_arena(t), uid, one.qid), STR("state"),
        STR("RUNNING"), STR("changed"), STR("1"));
    say(t, &n, STR("DEL"), key_pause_signal(task_arena(t), uid, one.qid));
    ok(run_reconcile(t, &r, &told) == 0 && told == 1, "a pause that was forgotten is told again");
    is_str(status(t, &n, one, "state"), STR("PAUSED"), "it holds");
    say(t, &n, STR("FLUSHALL"));
    ok(run_reconcile(t, &r, &told) == 0 && told == 2, "all of it, after Redis lost everything");
    is_str(status(t, &n, two, "state"), STR("QUEUED"), "the queued one");
    ok(ask(t, &n, STR("ZSCORE"), key_queue,
           str_printf(task_arena(t), "%lld:%s", (long long)uid, qid[1]))
               .p != NULL,
       "waits again");
    ok(run_reconcile(t, &r, &told) == 0 && told == 0, "and that is all");
    /* An older version of the row that comes late. */
    int64_t changed =
        ask_int(t, &n, STR("HGET"), key_query_status(task_arena(t), uid, one.qid), STR("changed"));
    check(control(t, &n, one, RUN_RESUME, "RUNNING") == 0);
    ok(ask_int(t, &n, STR("HGET"), key_query_status(task_arena(t), uid, one.qid), STR("changed")) >
           changed,
       "promises are numbered");
    close_node(t, &n);
}

static bool lined_up(struct task *t, struct node *n, struct run_id id)
{
    return ask(t, n, STR("ZSCORE"), key_queue, run_name(task_arena(t), id)).p != NULL;
}

/* State that is in Redis and not in the row, and the other way round. */
static void test_keeper(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES];
    int64_t told;
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    struct runs r = runs_of(&n);
    check(submit(t, &n, uid, wish(2020, 2021), qid) == 0);
    struct run_id id = {uid, str_of(qid)};
    struct arena *a = task_arena(t);
    struct str name = run_name(a, id), status_key = key_query_status(a, uid, id.qid);
    struct run_id read = {0};
    ok(run_name_read(name, &read) && read.uid == uid && str_eq(read.qid, id.qid) &&
           !run_name_read(STR("x:1"), &read) && !run_name_read(STR("1:"), &read),
       "names of runs");
    say(t, &n, STR("ZREM"), key_queue, name);
    ok(run_reconcile(t, &r, &told) == 0 && told == 1 && lined_up(t, &n, id),
       "a run that fell out of the queue waits again");
    say(t, &n, STR("ZREM"), key_queue, name);
    say(t, &n, STR("HSET"), key_running, name, STR("3"));
    ok(run_reconcile(t, &r, &told) == 0 && told == 0 && !lined_up(t, &n, id),
       "one that has workers does not");
    check(control(t, &n, id, RUN_START, "RUNNING") == 0);
    say(t, &n, STR("HSET"), status_key, STR("state"), STR("DONE"), STR("total_blocks"), STR("2"),
        STR("finished_blocks"), STR("2"));
    ok(run_reconcile(t, &r, &told) == 0 && str_eq(in_row(t, &n, id), STR("DONE")),
       "a run that Redis has finished is DONE in its row");
    ok(run_reconcile(t, &r, &told) == 0 && told == 0, "and stays so");
    /* Redis comes back as it was before its last unit. */
    say(t, &n, STR("HSET"), status_key, STR("state"), STR("RUNNING"), STR("finished_blocks"),
        STR("1"), STR("changed"), STR("1"));
    say(t, &n, STR("HDEL"), key_running, name);
    ok(run_reconcile(t, &r, &told) == 0 && str_eq(in_row(t, &n, id), STR("RUNNING")) &&
           str_eq(status(t, &n, id, "state"), STR("RUNNING")) && lined_up(t, &n, id),
       "a run that was DONE, and lacks a unit, goes on");
    ok(!status(t, &n, id, "total_blocks").p && str_eq(status(t, &n, id, "retry"), STR("1")),
       "over all of its papers, of which those that have a verdict are passed over");
    check(control(t, &n, id, RUN_PAUSE, "PAUSED") == 0);
    say(t, &n, STR("HSET"), status_key, STR("total_blocks"), STR("2"), STR("finished_blocks"),
        STR("1"));
    check(control(t, &n, id, RUN_RESUME, "RUNNING") == 0);
    is_str(status(t, &n, id, "finished_blocks"), STR("1"), "a pause does not make it begin anew");
    /* Redis comes back empty. */
    say(t, &n, STR("HSET"), status_key, STR("state"), STR("DONE"), STR("finished_blocks"),
        STR("2"));
    check(control(t, &n, id, RUN_FINISH, "DONE") == 0);
    say(t, &n, STR("FLUSHALL"));
    ok(run_reconcile(t, &r, &told) == 0 && str_eq(in_row(t, &n, id), STR("RUNNING")) &&
           lined_up(t, &n, id) && !status(t, &n, id, "total_blocks").p,
       "one of which all is lost begins anew");
    int64_t ended;
    check(control(t, &n, id, RUN_PAUSE, "PAUSED") == 0);
    ok(run_sweep(t, &r, &ended) == 0 && ended == 0 && !lined_up(t, &n, id), "a pause may last");
    check(sql_call(t, n.sql, NULL,
                   "UPDATE query_log SET changed_at = changed_at - INTERVAL 169 HOUR") == 0);
    ok(run_sweep(t, &r, &ended) == 0 && ended == 1 && str_eq(in_row(t, &n, id), STR("CANCELLED")),
       "for seven days");
    close_node(t, &n);
}

/* A node whose MySQL is away has the lock, and its round fails: another node goes on at once. */
static void test_keeper_fails(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES];
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    check(submit(t, &n, uid, wish(2020, 2021), qid) == 0);
    struct run_id id = {uid, str_of(qid)};
    struct runs well = runs_of(&n), broken = well;
    broken.sql =
        sql_pool_new(task_loop(t), &(struct sql_options){.url = "mysql://x@127.0.0.1:1/x"});
    bool draining = false;
    struct roles *roles = roles_new(n.redis, &draining);
    struct group g;
    group_init(&g, task_loop(t));
    struct role role = {.name = "keeper",
                        .round = keeper_role,
                        .arg = &broken,
                        .each_ms = 500,
                        .lock = &key_keeper_lock,
                        .lock_ms = 10000,
                        .complaint = "runs are not reconciled with MySQL"};
    say(t, &n, STR("ZREM"), key_queue, run_name(task_arena(t), id));
    roles_go(roles, &g, &role);
    pause_ms(t, 100);
    role.arg = &well;
    roles_go(roles, &g, &role);
    int waited_ms = 0;
    for (; waited_ms < 20000 && !lined_up(t, &n, id); waited_ms += 10)
        pause_ms(t, 10);
    ok(waited_ms < 3000, "a keeper that fails lets another one work: after %d ms", waited_ms);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    roles_free(roles);
    sql_pool_free(broken.sql);
    close_node(t, &n);
}

/* The server was killed between the ban and the pauses that belong to it. */
static void test_banned(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[2][RUN_ID_BYTES];
    int64_t changed;
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 100000), other = new_user(t, &n, 100000);
    struct runs r = runs_of(&n);
    check(submit(t, &n, uid, wish(2020, 2021), qid[0]) == 0);
    check(submit(t, &n, other, wish(2020, 2021), qid[1]) == 0);
    struct run_id theirs = {uid, str_of(qid[0])}, free = {other, str_of(qid[1])};
    ok(run_sweep(t, &r, &changed) == 0 && changed == 0, "nothing to sweep");
    sql_do(t, &n, "UPDATE user_info SET banned = 1 WHERE uid = ?", uid);
    ok(run_sweep(t, &r, &changed) == 0 && changed == 1, "a ban that was cut short");
    is_str(in_row(t, &n, theirs), STR("PAUSED"), "pauses all the same");
    is_str(in_row(t, &n, free), STR("QUEUED"), "the user's runs and no other");
    close_node(t, &n);
}

static void test_without_redis(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES], none[RUN_ID_BYTES];
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 100000), told;
    check(submit(t, &n, uid, wish(2020, 2021), qid) == 0);
    struct run_id id = {uid, str_of(qid)};
    check(control(t, &n, id, RUN_START, "RUNNING") == 0);
    uint64_t epoch = redis_epoch(n.redis);
    store_redis_kill(&store);
    while (cache_trusts_redis(n.cache))
        pause_ms(t, 2);
    is_int(submit(t, &n, uid, wish(2020, 2021), none), ERR_UNAVAILABLE, "nothing is submitted");
    is_int(control(t, &n, id, RUN_TERMINATE, "CANCELLED"), 0, "but a run can be ended");
    store_redis_spawn(&store, NULL);
    await_new_redis(t, &n, epoch);
    struct runs r = runs_of(&n);
    struct run_view v;
    ok(run_view(t, &r, id, &v) == 0 && v.state == RUN_CANCELLED, "and stays so");
    check(run_reconcile(t, &r, &told) == 0);
    is_str(status(t, &n, id, "state"), STR("CANCELLED"), "Redis gets it when it is back");
    is_int(
        ask_int(t, &n, STR("EXISTS"), key_terminate_signal(task_arena(t), uid, id.qid), STR_NULL),
        1, "with the signal");
    close_node(t, &n);
}

static void hold_runs(struct task *t, struct node *n, bool held)
{
    check(sql_call(t, n->sql, NULL, "DELETE FROM setting") == 0);
    if (held)
        check(sql_call(t, n->sql, NULL,
                       "INSERT INTO setting (name, value, changed_at)"
                       " VALUES ('new_runs', 'false', UTC_TIMESTAMP(3))") == 0);
}

/* A run that was never started waits again after a pause, and has not begun. */
static void test_requeue(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES];
    struct run_view v;
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    struct runs r = runs_of(&n);
    int64_t uid = new_user(t, &n, 100000);
    check(submit(t, &n, uid, wish(2020, 2021), qid) == 0);
    struct run_id id = {uid, str_of(qid)};
    is_int(control(t, &n, id, RUN_PAUSE, "PAUSED"), 0, "paused while it waits");
    is_int(control(t, &n, id, RUN_RESUME, "QUEUED"), 0, "resumed, it waits again");
    is_int(control(t, &n, id, RUN_RESUME, "QUEUED"), 0, "also when asked twice");
    check(run_view(t, &r, id, &v) == 0);
    ok(v.state == RUN_QUEUED && v.started_ms == 0, "and has no start");
    hold_runs(t, &n, true);
    is_int(control(t, &n, id, RUN_START, ""), ERR_CLOSED, "none starts while new runs are off");
    hold_runs(t, &n, false);
    is_int(control(t, &n, id, RUN_START, "RUNNING"), 0, "and then it does");
    hold_runs(t, &n, true);
    check(control(t, &n, id, RUN_PAUSE, "PAUSED") == 0);
    is_int(control(t, &n, id, RUN_RESUME, "RUNNING"), 0, "one that was started is no new one");
    hold_runs(t, &n, false);
    close_node(t, &n);
}

/* With so many cents. */
static int check_funds(struct task *t, struct node *n, struct run_id id, int64_t cents,
                       enum run_event e)
{
    struct runs r = runs_of(n);
    say(t, n, STR("SET"), key_balance(task_arena(t), id.uid), str_int(task_arena(t), cents));
    return run_check_funds(t, &r, id, e);
}

static void test_funds(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES];
    open_node(t, &n);
    forget_runs(t, &n);
    fill_catalog(t, &n);
    int64_t uid = new_user(t, &n, 5100);
    check(submit(t, &n, uid, wish(2020, 2021), qid) == 0);
    struct run_id id = {uid, str_of(qid)};
    struct str progress = key_query_status(task_arena(t), uid, id.qid);
    is_int(check_funds(t, &n, id, 299, RUN_RESUME), 0, "only of a run that is paused");
    check(control(t, &n, id, RUN_PAUSE, "PAUSED") == 0);
    is_int(check_funds(t, &n, id, 5100, RUN_RESUME), 0, "there is enough");
    is_int(check_funds(t, &n, id, 299, RUN_RESUME), ERR_FUNDS, "less than its dearest paper costs");
    is_str(str_of(task_error(t)),
           STR("the balance is 2.99, the next paper may cost 3.00 and all that is left 51.00: at "
               "least 0.01 is missing, 48.01 for all of it"),
           "it says what is missing");
    is_int(check_funds(t, &n, id, 300, RUN_RESUME), 0, "enough for one more paper");
    say(t, &n, STR("HSET"), progress, STR("cost"), STR("4900"));
    ok(check_funds(t, &n, id, 199, RUN_RESUME) == ERR_FUNDS &&
           check_funds(t, &n, id, 200, RUN_RESUME) == 0,
       "enough for all that is left");
    say(t, &n, STR("HSET"), progress, STR("cost"), STR("0"));
    sql_do(t, &n, "UPDATE query_log SET is_distillation = 1 WHERE uid = ?", uid);
    ok(check_funds(t, &n, id, 29, RUN_RESUME) == ERR_FUNDS &&
           check_funds(t, &n, id, 30, RUN_RESUME) == 0,
       "a distillation costs a tenth");
    sql_do(t, &n, "UPDATE query_log SET is_distillation = 0 WHERE uid = ?", uid);
    is_int(check_funds(t, &n, id, 199, RUN_RETRY_FAILED), 0, "to try again: of a run that is done");
    check(control(t, &n, id, RUN_FINISH, "DONE") == 0);
    say(t, &n, STR("HSET"), progress, STR("failed"), STR("2"));
    is_int(check_funds(t, &n, id, 599, RUN_RETRY_FAILED), ERR_FUNDS,
           "less than the papers that failed may cost");
    is_str(str_of(task_error(t)),
           STR("the balance is 5.99, 0.00 of it reserved for unfinished work, 5.99 free, and the "
               "papers that failed may cost 6.00: 0.01 is missing"),
           "two papers have failed");
    is_int(check_funds(t, &n, id, 600, RUN_RETRY_FAILED), 0, "enough for that");
    close_node(t, &n);
}

static void test_question(void)
{
    is_str(run_question(STR(" \n\u3000Is it\nwet?\u00a0\r\n\t")), STR("Is it\nwet?"),
           "a question without what is around it");
    is_int((int64_t)run_question(STR("\n\u3000 \n")).n, 0, "nothing is asked");
    is_str(run_question(STR("\xe3\x80")), STR("\xe3\x80"), "half a character stays");
    is_int((int64_t)run_question(STR("\u200b")).n, 0, "nor by what cannot be seen");
    is_int((int64_t)run_question(STR("\u2060 \ufeff\u00ad\u2003\u3164\u2800\u202e")).n, 0,
           "of any kind");
    is_str(run_question(STR("\u200bwet?")), STR("\u200bwet?"), "beside what can it does no harm");
}

int main(void)
{
    test_question();
    start_stores();
    tap_task(test_submit, NULL, true);
    tap_task(test_refused, NULL, true);
    tap_task(test_control, NULL, true);
    tap_task(test_requeue, NULL, true);
    tap_task(test_funds, NULL, true);
    tap_task(test_ended_units, NULL, true);
    tap_task(test_by_admin, NULL, true);
    tap_task(test_done_meets_pause, NULL, true);
    tap_task(test_reconcile, NULL, true);
    tap_task(test_keeper, NULL, true);
    tap_task(test_keeper_fails, NULL, true);
    tap_task(test_banned, NULL, true);
    tap_task(test_without_redis, NULL, true);
    return stop_stores();
}
