/* What a user can still spend, on real stores (SCR-1). */
#include "engine/runs/reserve.h"

#include "engine/money/ledger_fixture.h"

#define AT_ONCE 6

/* Every test has the same random numbers, and so the same ids of runs. */
static void open_empty(struct task *t, struct node *n)
{
    open_node(t, n);
    check(sql_call(t, n->sql, NULL, "DELETE FROM query_log") == 0);
    say(t, n, STR("FLUSHALL"));
}

static struct runs runs_of(struct node *n)
{
    return (struct runs){.redis = n->redis, .sql = n->sql, .cache = n->cache, .ledger = n->ledger};
}

static int64_t new_user(struct task *t, struct node *n, int64_t cents)
{
    int64_t uid = add_user(t, n, cents);
    sql_do(t, n, "UPDATE user_info SET permission = 2 WHERE uid = ?", uid);
    return uid;
}

static const struct str journals[] = {{"A", 1}, {"B", 1}};
static const struct catalog_choice choice = {journals, 2, 2020, 2021};
/* 10 papers at 1.00 and 10 at 2.00. */
#define PARAMS                                                                                     \
    "{\"question\":\"Wet?\",\"year_from\":2020,\"year_to\":2021,\"journals\":["                    \
    "{\"name\":\"B\",\"price\":1,\"papers\":10},{\"name\":\"A\",\"price\":2,\"papers\":10}]}"

static int enter(struct task *t, struct node *n, const struct run_request *q, char *qid)
{
    struct runs r = runs_of(n);
    struct run_entry e = {.request = q, .papers = 20, .cents = 3000, .params = STR(PARAMS)};
    return run_enter(t, &r, &e, qid);
}

static struct run_request request_of(int64_t uid, const char *id)
{
    return (struct run_request){
        .uid = uid, .id = str_of(id), .question = STR("Wet?"), .choice = &choice};
}

static struct run_id enter_new(struct task *t, struct node *n, int64_t uid)
{
    struct run_request q = request_of(uid, NULL);
    char *qid = arena_alloc(task_arena(t), RUN_ID_BYTES);
    check(enter(t, n, &q, qid) == 0);
    return (struct run_id){uid, str_of(qid)};
}

/* "balance reserved free", in cents, and what is special. */
static struct str seen(struct task *t, struct node *n, int64_t uid)
{
    struct runs r = runs_of(n);
    struct reserve s;
    check(reserve_look(t, &r, uid, &s) == 0);
    struct arena *a = task_arena(t);
    struct str numbers = s.known ? str_printf(a, "%lld %lld %lld", (long long)s.balance,
                                              (long long)s.reserved, (long long)s.free)
                                 : str_printf(a, "%lld ? ?", (long long)s.balance);
    return s.degraded ? STR_JOIN(a, numbers, STR(" degraded")) : numbers;
}

static void control(struct task *t, struct node *n, struct run_id id, enum run_event e)
{
    struct runs r = runs_of(n);
    enum run_state state;
    check(run_control(t, &r, id, e, "", &state) == 0);
}

static void set_status(struct task *t, struct node *n, struct run_id id, struct str field,
                       struct str value)
{
    say(t, n, STR("HSET"), key_query_status(task_arena(t), id.uid, id.qid), field, value);
}

static void test_sum(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 10000), left;
    is_str(seen(t, &n, uid), STR("10000 0 10000"), "nothing is reserved");
    struct run_id one = enter_new(t, &n, uid);
    is_str(seen(t, &n, uid), STR("10000 3000 7000"), "a run that waits");
    struct run_id two = enter_new(t, &n, uid);
    control(t, &n, one, RUN_START);
    struct charge paper = paper_of(t, uid, one.qid, 1, 200);
    check(pay(t, &n, paper) == 0);
    is_str(seen(t, &n, uid), STR("9800 5800 4000"), "a charge leaves as much free as before");
    control(t, &n, one, RUN_PAUSE);
    is_str(seen(t, &n, uid), STR("9800 5800 4000"), "so does a pause");
    control(t, &n, two, RUN_TERMINATE);
    is_str(seen(t, &n, uid), STR("9800 2800 7000"), "a run that is ended frees what it had");
    check(recharge(t, &n, uid, 500, "r", &left) == 0);
    is_str(seen(t, &n, uid), STR("10300 2800 7500"), "a recharge is free");
    check(deduct(t, &n, uid, 9000, "d", &left) == 0);
    is_str(seen(t, &n, uid), STR("1300 2800 0"), "an admin may take what is reserved");
    say(t, &n, STR("DEL"), key_query_status(task_arena(t), uid, one.qid));
    is_str(seen(t, &n, uid), STR("1300 3000 0"), "a status that is lost: nothing was paid");
    set_status(t, &n, one, STR("cost"), STR("3100"));
    is_str(seen(t, &n, uid), STR("1300 0 1300"), "a run that costs more than it may");
    close_node(t, &n);
}

static void test_done(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 10000);
    struct run_id id = enter_new(t, &n, uid);
    control(t, &n, id, RUN_START);
    set_status(t, &n, id, STR("state"), STR("DONE"));
    is_str(seen(t, &n, uid), STR("10000 0 10000"), "DONE in Redis, before its row is");
    set_status(t, &n, id, STR("state"), STR("RUNNING"));
    control(t, &n, id, RUN_FINISH);
    is_str(seen(t, &n, uid), STR("10000 0 10000"), "done");
    control(t, &n, id, RUN_RETRY_FAILED);
    is_str(seen(t, &n, uid), STR("10000 3000 7000"), "a retry is reserved for");
    set_status(t, &n, id, STR("state"), STR("DONE"));
    is_str(seen(t, &n, uid), STR("10000 3000 7000"), "before Redis knows of it, too");
    close_node(t, &n);
}

static void test_old_rows(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 10000);
    (void)enter_new(t, &n, uid);
    sql_do(t, &n, "UPDATE query_log SET ceiling = NULL WHERE uid = ?", uid);
    say(t, &n, STR("DEL"), key_unfinished(task_arena(t), uid));
    is_str(seen(t, &n, uid), STR("10000 3000 7000"), "by the prices that were frozen");
    sql_do(t, &n, "UPDATE query_log SET is_distillation = 1 WHERE uid = ?", uid);
    say(t, &n, STR("DEL"), key_unfinished(task_arena(t), uid));
    is_str(seen(t, &n, uid), STR("10000 300 9700"), "a distillation costs a tenth of them");
    sql_do(t, &n, "UPDATE query_log SET search_params = '{}' WHERE uid = ?", uid);
    say(t, &n, STR("DEL"), key_unfinished(task_arena(t), uid));
    is_str(seen(t, &n, uid), STR("10000 0 10000"), "or nothing is known of it");
    close_node(t, &n);
}

/* --- at once --- */

struct attempt {
    struct node *n;
    struct run_request request;
    int err;
    char qid[RUN_ID_BYTES];
};

static void try_to_enter(struct task *t, void *arg)
{
    struct attempt *x = arg;
    x->err = enter(t, x->n, &x->request, x->qid);
}

static void all_at_once(struct task *t, struct node *n, struct attempt *x, struct run_request q)
{
    struct group group;
    group_init(&group, task_loop(t));
    for (int i = 0; i < AT_ONCE; i++) {
        x[i] = (struct attempt){.n = n, .request = q};
        check(task_go(&group, "attempt", try_to_enter, &x[i]) == 0);
    }
    check(group_join(t, &group) == 0);
}

static void test_at_once(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct attempt x[AT_ONCE];
    int entered = 0, refused = 0;
    char qid[RUN_ID_BYTES];
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 6000);
    all_at_once(t, &n, x, request_of(uid, NULL));
    for (int i = 0; i < AT_ONCE; i++) {
        entered += x[i].err == 0;
        refused += x[i].err == ERR_FUNDS;
    }
    is_int(entered, 2, "of six at once there is money for two");
    is_int(refused, 4, "the others are refused");
    is_str(seen(t, &n, uid), STR("6000 6000 0"), "and all of it is reserved");
    struct run_request q = request_of(uid, NULL);
    is_int(enter(t, &n, &q, qid), ERR_FUNDS, "one more");
    is_str(str_of(task_error(t)),
           STR("the run costs 30.00: the balance is 60.00, 60.00 of it reserved for unfinished "
               "work, 0.00 free"),
           "is told what there is");
    close_node(t, &n);
}

/* Papers that failed, of two runs that are done, and money for those of one. */
static void test_retry(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 6000);
    struct run_id ids[] = {enter_new(t, &n, uid), enter_new(t, &n, uid)};
    struct runs r = runs_of(&n);
    enum run_state state;
    for (int i = 0; i < 2; i++) {
        control(t, &n, ids[i], RUN_START);
        control(t, &n, ids[i], RUN_FINISH);
    }
    sql_do(t, &n, "UPDATE query_log SET failed_papers = 20, archived = 1 WHERE uid = ?", uid);
    check(deduct(t, &n, uid, 1000, "less", &(int64_t){0}) == 0);
    control(t, &n, ids[0], RUN_RETRY_FAILED);
    is_int(run_control(t, &r, ids[1], RUN_RETRY_FAILED, "", &state), ERR_FUNDS,
           "a retry needs money that is free");
    is_str(str_of(task_error(t)),
           STR("the run costs 30.00: the balance is 50.00, 30.00 of it reserved for unfinished "
               "work, 20.00 free"),
           "as a submission does");
    say(t, &n, STR("DEL"), key_balance(task_arena(t), uid));
    sql_do(t, &n, "UPDATE query_log SET failed_papers = 10 WHERE uid = ?", uid);
    is_int(run_control(t, &r, ids[1], RUN_RETRY_FAILED, "", &state), 0,
           "for what failed; the balance is loaded if need be");
    close_node(t, &n);
}

static void test_request(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct attempt x[AT_ONCE];
    bool same = true;
    char qid[RUN_ID_BYTES];
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 3000);
    all_at_once(t, &n, x, request_of(uid, "~1"));
    for (int i = 0; i < AT_ONCE; i++)
        same = same && x[i].err == 0 && strcmp(x[i].qid, x[0].qid) == 0;
    ok(same && strlen(x[0].qid) == 32, "one request six times: six equal answers");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM query_log WHERE uid = ?", uid), 1, "one run");
    struct run_request q = request_of(uid, "~1"), other = q;
    sql_do(t, &n, "UPDATE user_info SET permission = 0 WHERE uid = ?", uid);
    ok(enter(t, &n, &q, qid) == 0 && strcmp(qid, x[0].qid) == 0,
       "again, without money or permission");
    other.question = STR("Dry?");
    is_int(enter(t, &n, &other, qid), ERR_CONFLICT, "with another question");
    static const struct catalog_choice fewer = {journals, 1, 2020, 2021};
    static const struct catalog_choice later = {journals, 2, 2020, 2022};
    other = q;
    other.choice = &fewer;
    is_int(enter(t, &n, &other, qid), ERR_CONFLICT, "fewer journals");
    other.choice = &later;
    is_int(enter(t, &n, &other, qid), ERR_CONFLICT, "other years");
    other.choice = NULL;
    other.original_query_id = STR("x");
    is_int(enter(t, &n, &other, qid), ERR_CONFLICT, "or as a distillation");
    int64_t uid2 = new_user(t, &n, 3000);
    struct run_request theirs = request_of(uid2, "~1");
    ok(enter(t, &n, &theirs, qid) == 0 && strcmp(qid, x[0].qid) != 0,
       "the same id of another user is another request");
    close_node(t, &n);
}

/* --- stores that are away --- */

static int check_on(struct task *t, struct sql *c, void *arg)
{
    struct attempt *x = arg;
    struct runs r = runs_of(x->n);
    bool loaded = true;
    x->err = reserve_check(t, &r, c, x->request.uid, 3000, "run", &loaded);
    x->qid[0] = loaded ? 'y' : 'n';
    return 0;
}

static void test_away(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    char qid[RUN_ID_BYTES];
    open_empty(t, &n);
    int64_t idle = new_user(t, &n, 3000), uid = new_user(t, &n, 3000);
    struct attempt x = {.n = &n, .request = request_of(uid, "r")};
    check(sql_tx(t, n.sql, check_on, &x) == 0);
    ok(x.err == 0 && x.qid[0] == 'n', "a balance that is not in Redis is not loaded under a lock");
    is_int(enter(t, &n, &x.request, qid), 0, "but before");
    say(t, &n, STR("HSET"), key_ledger(task_arena(t), uid), STR("run"), STR("another"));
    check(sql_tx(t, n.sql, check_on, &x) == 0);
    ok(x.err == 0 && x.qid[0] == 'n', "one of another generation does not count");
    is_str(seen(t, &n, uid), STR("3000 3000 0"), "until it is loaded anew");
    store_redis_kill(&store);
    while (cache_trusts_redis(n.cache))
        pause_ms(t, 2);
    is_str(seen(t, &n, uid), STR("3000 ? ? degraded"), "without Redis the costs are not known");
    is_str(seen(t, &n, idle), STR("3000 0 3000 degraded"), "where there are any");
    check(sql_tx(t, n.sql, check_on, &x) == 0);
    is_int(x.err, ERR_UNAVAILABLE, "nothing can be promised then");
    struct runs r = runs_of(&n);
    char again[RUN_ID_BYTES];
    ok(run_repeated(t, &r, &x.request, again) == 0 && strcmp(again, qid) == 0,
       "a repeat is answered all the same");
    uint64_t epoch = redis_epoch(n.redis);
    store_redis_spawn(&store, NULL);
    await_new_redis(t, &n, epoch);
    is_str(seen(t, &n, uid), STR("3000 3000 0"), "and all is known when it is back");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_sum, NULL, true);
    tap_task(test_done, NULL, true);
    tap_task(test_old_rows, NULL, true);
    tap_task(test_at_once, NULL, true);
    tap_task(test_retry, NULL, true);
    tap_task(test_request, NULL, true);
    tap_task(test_away, NULL, true);
    return stop_stores();
}
