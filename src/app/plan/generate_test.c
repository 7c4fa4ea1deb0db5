/* Plans are made, on real stores, by a made-up AI: paid once, whatever dies when. */
#include "app/plan/plan_fixture.h"
#include "engine/jobs/pay.h"
#include "engine/runs/reserve.h"

#define PRICE 100

static struct world world;
static struct world *const w = &world;
static int64_t uid;

/* What the AI does, and has done. */
static int asked, wrongs;     /* so many first answers are wrong */
static int service;           /* error of the service, or 0 */
static bool no_key;           /* the reason of that error */
static int64_t thinks_ms;     /* before it answers */
static bool complained;       /* the last question had a complaint */
static const char *dies_once; /* the step after which the node dies */
static int deaths;

static int made_up_ask(struct task *t, struct plans *p, const struct plan_question *q,
                       struct plan_answer *out)
{
    (void)p;
    asked++;
    complained = q->complaint.p != NULL;
    q->seen(q->arg, 1);
    int err = thinks_ms ? task_sleep(t, thinks_ms) : 0;
    if (err)
        return err;
    out->reason = no_key ? "no_key" : NULL;
    if (service)
        return task_fail(t, service, "the AI service cannot be reached");
    if (wrongs > 0) {
        wrongs--;
        out->complaint = "day 3 is missing";
        return 0;
    }
    shape_of(task_arena(t), &q->frame, &out->shape);
    return 0;
}

/* As a node that is killed, and another that goes on: nothing is told, the job is taken again. */
static int die(struct task *t, const char *after)
{
    if (!dies_once || strcmp(dies_once, after) != 0)
        return 0;
    deaths++;
    dies_once = NULL;
    return task_fail(t, ERR_CANCELED, "the node dies");
}

/* Another node has taken the job over, and pays. */
static int pays_elsewhere(struct task *t)
{
    check(sql_call(t, w->node.sql, NULL, "UPDATE generation_task SET paying = 7") == 0);
    return 0;
}

static int pay_after_refusal(struct task *t, const char *after)
{
    return strcmp(after, "refused") == 0 ? pays_elsewhere(t) : 0;
}

static int pay_while_asked(struct task *t, struct plans *p, const struct plan_question *q,
                           struct plan_answer *out)
{
    return pays_elsewhere(t) ? ERR_INTERNAL : made_up_ask(t, p, q, out);
}

static void begin(struct task *t, int64_t cents)
{
    open_world(t, w);
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    uid = add_user(t, w, cents);
    asked = wrongs = service = deaths = 0;
    thinks_ms = 0;
    no_key = false;
    dies_once = NULL;
    w->plans->ask = made_up_ask;
    w->plans->dies = die;
}

static void fill(struct task *t)
{
    struct role_turn turn = {.locked = false};
    check(jobs_refill_role(t, w->node.jobs, &turn) == 0);
}

static void go(struct task *t)
{
    check(task_go(&w->tasks, "jobs", jobs_task, w->node.jobs) == 0);
    role_in(&w->tasks, jobs_keep_role, w->node.jobs, 50);
    fill(t);
}

static const struct json *variables(struct task *t, const char *text)
{
    const struct json *j;
    check(json_parse(task_arena(t), str_of(text), &j, NULL) == 0);
    return j;
}

static int submit(struct task *t, const char *request, struct str *id)
{
    struct plan_wish wish = {.uid = uid,
                             .kind = PLAN_TRAINING,
                             .variables = variables(t, "{\"goals\":\"strong\"}"),
                             .request_id = str_of(request)};
    bool repeated;
    int err = plan_task_submit(t, w->plans, &wish, id, &repeated);
    if (err)
        printf("# submit: %s %s\n", err_name(err), task_error(t));
    return err;
}

static struct str state_of(struct task *t, struct str id)
{
    return sql_word(t, w, "SELECT state FROM generation_task WHERE id = ?", id);
}

static bool comes_to(struct task *t, struct str id, const char *state)
{
    for (int i = 0; i < 3000 && !str_eq(state_of(t, id), str_of(state)); i++)
        pause_ms(t, 5);
    return str_eq(state_of(t, id), str_of(state));
}

static bool await_asks(struct task *t, int count)
{
    for (int i = 0; i < 3000 && asked < count; i++)
        pause_ms(t, 5);
    return asked >= count;
}

/* "balance reserved", and how often the log has a payment. */
static struct str money(struct task *t)
{
    struct reserve x;
    struct str key = key_unfinished(task_arena(t), uid);
    check(redis_call(t, w->node.redis, key, NULL, STR("DEL"), key) == 0);
    check(reserve_look(t, &w->runs, uid, &x) == 0 && x.known);
    struct str paid = sql_word(
        t, w, "SELECT COUNT(*) FROM ledger_request WHERE request_id LIKE 'plan:%' AND uid = ?",
        str_int(task_arena(t), uid));
    return str_printf(task_arena(t), "%lld %lld %.*s", (long long)x.balance, (long long)x.reserved,
                      STR_ARG(paid));
}

static struct str plans_of(struct task *t)
{
    return sql_word(t, w, "SELECT COUNT(*) FROM training_plan WHERE uid = ?",
                    str_int(task_arena(t), uid));
}

static void end(struct task *t)
{
    close_world(t, w);
}

/* --- tests --- */

static void test_made(struct task *t, void *arg)
{
    (void)arg;
    struct str id, again;
    struct plan x;
    struct plan_task task;
    begin(t, 250);
    is_int(submit(t, "one", &id), 0, "promised");
    is_str(money(t), STR("250 100 0"), "its price is reserved");
    is_int(submit(t, "one", &again), 0, "promised again");
    is_str(again, id, "it is the same task");
    is_str(money(t), STR("250 100 0"), "and reserved once");
    is_int(submit(t, NULL, &again), 0, "a second one");
    is_int(submit(t, NULL, &again), ERR_FUNDS, "for a third there is no money");
    struct plan_wish other = {.uid = uid, .kind = PLAN_NUTRITION, .request_id = STR("one")};
    is_int(plan_task_repeated(t, w->plans, &other, &again), ERR_CONFLICT,
           "a request id stands for one request");
    go(t);
    ok(comes_to(t, id, "completed"), "made");
    check(plan_task_get(t, w->plans, uid, id, &task) == 0);
    ok(task.progress == 100 && task.plan_id.p && !task.message.p, "the task says so");
    is_int(plan_get(t, w->plans, uid, task.plan_id, &x), 0, "the plan is there");
    is_int(x.weeks, 4, "of four weeks, as the template has it");
    for (int i = 0; i < 1000 && !str_eq(plans_of(t), STR("2")); i++)
        pause_ms(t, 5);
    is_str(money(t), STR("50 0 2"), "both are paid once, nothing is reserved");
    is_int(plan_active(t, w->plans, uid, PLAN_TRAINING, &x), 0, "the one that was first is active");
    is_int(plan_task_cancel(t, w->plans, uid, id, &task), ERR_CONFLICT, "too late to cancel");
    end(t);
}

/* The node dies after a step: nothing that was kept is done again. */
static void test_deaths(struct task *t, void *arg)
{
    (void)arg;
    static const char *const steps[] = {"keep", "pay"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct str id;
        begin(t, 1000);
        check(submit(t, NULL, &id) == 0);
        dies_once = steps[i];
        go(t);
        ok(comes_to(t, id, "completed"), "a node dies after %s: it is completed", steps[i]);
        ok(deaths == 1 && asked == 1, "and was asked once: %d", asked);
        is_str(money(t), STR("900 0 1"), "and paid once");
        is_str(plans_of(t), STR("1"), "there is one plan");
        end(t);
    }
}

static struct str reason_in_redis(struct task *t, struct str id)
{
    return ask_redis(t, w, STR("HGET"), key_generation_task(task_arena(t), id), "reason_code");
}

static void test_wrong(struct task *t, void *arg)
{
    (void)arg;
    struct str id;
    struct plan_task task;
    begin(t, 1000);
    wrongs = 2;
    check(submit(t, NULL, &id) == 0);
    go(t);
    ok(comes_to(t, id, "completed"), "two wrong answers, then a right one");
    ok(asked == 3 && complained, "the complaint was put to it");
    is_str(money(t), STR("900 0 1"), "paid once");
    wrongs = 1000;
    asked = 0;
    check(submit(t, NULL, &id) == 0);
    ok(comes_to(t, id, "failed"), "wrong answers alone: it fails");
    is_int(asked, PLAN_ASKS_MAX, "after so many");
    check(plan_task_get(t, w->plans, uid, id, &task) == 0);
    ok(str_find(task.message, STR("day 3 is missing")) >= 0, "and says what was wrong: %.*s",
       STR_ARG(task.message));
    is_str(task.reason, STR("bad_answer"), "also by a word");
    is_str(money(t), STR("900 0 1"), "it costs nothing, and nothing is reserved");
    end(t);
}

static void test_service_away(struct task *t, void *arg)
{
    (void)arg;
    struct str id;
    struct plan_task task;
    begin(t, 1000);
    service = ERR_UNAVAILABLE;
    check(submit(t, NULL, &id) == 0);
    go(t);
    ok(await_asks(t, 2), "the service is away: asked again");
    pause_ms(t, 50);
    check(plan_task_get(t, w->plans, uid, id, &task) == 0);
    is_str(task.status, STR("generating"), "it waits");
    ok(str_find(task.message, STR("cannot be reached")) >= 0, "and says so");
    is_str(task.reason, STR("service_down"), "also by a word");
    is_str(reason_in_redis(t, id), STR("service_down"), "and to Redis");
    no_key = true;
    for (int i = 0; i < 1000 && !str_eq(task.reason, STR("no_key")); i++) {
        pause_ms(t, 10);
        check(plan_task_get(t, w->plans, uid, id, &task) == 0);
    }
    is_str(task.reason, STR("no_key"), "and which of both it is");
    service = 0;
    ok(comes_to(t, id, "completed"), "it goes on by itself");
    check(plan_task_get(t, w->plans, uid, id, &task) == 0);
    ok(!task.message.p && !task.reason.p, "with nothing to say");
    is_str(reason_in_redis(t, id), STR(""), "nor to Redis");
    is_str(money(t), STR("900 0 1"), "paid once");
    end(t);
}

/* What the service refuses is not tried again. */
static void test_refusals(struct task *t, void *arg)
{
    static const struct {
        int err;
        const char *reason;
    } cases[] = {{ERR_REFUSED, "refused"}, {ERR_PROTO, "service_down"}, {ERR_INTERNAL, "other"}};
    (void)arg;
    struct str id;
    struct plan_task task;
    begin(t, 1000);
    go(t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        service = cases[i].err;
        check(submit(t, NULL, &id) == 0);
        ok(comes_to(t, id, "failed"), "%s: it fails", err_name(service));
        check(plan_task_get(t, w->plans, uid, id, &task) == 0);
        is_str(task.reason, str_of(cases[i].reason), "and says which it was");
    }
    service = ERR_TIMEOUT;
    check(submit(t, NULL, &id) == 0);
    ok(await_asks(t, 4), "one that takes too long");
    pause_ms(t, 200);
    check(plan_task_get(t, w->plans, uid, id, &task) == 0);
    is_str(task.status, STR("generating"), "is tried again");
    is_str(task.reason, STR("too_slow"), "and says why");
    is_int(plan_task_cancel(t, w->plans, uid, id, &task), 0, "it is cancelled");
    is_str(task.reason, STR("cancelled"), "that it was too slow does not count any more");
    is_str(money(t), STR("1000 0 0"), "nothing was paid");
    end(t);
}

static void test_cancel(struct task *t, void *arg)
{
    (void)arg;
    struct str id;
    struct plan_task task;
    begin(t, 1000);
    thinks_ms = 60000;
    check(submit(t, NULL, &id) == 0);
    is_int(plan_task_get(t, w->plans, uid + 1, id, &task), ERR_NOT_FOUND, "another user's task");
    is_int(plan_task_cancel(t, w->plans, uid + 1, id, &task), ERR_NOT_FOUND, "is not cancelled");
    go(t);
    ok(await_asks(t, 1), "asked");
    pause_ms(t, 300);
    int64_t working = *metric(metrics, METRIC_GAUGE, "millrace_jobs_working", "queue=\"plan\"", "");
    is_int(plan_task_cancel(t, w->plans, uid, id, &task), 0, "cancelled meanwhile");
    is_str(task.status, STR("cancelled"), "it says so");
    is_str(task.reason, STR("cancelled"), "by the same word");
    int64_t began_ms = loop_now_ms(task_loop(t));
    int64_t *hands = metric(metrics, METRIC_GAUGE, "millrace_jobs_working", "queue=\"plan\"", "");
    while (*hands && loop_now_ms(task_loop(t)) - began_ms < 5000)
        pause_ms(t, 5);
    ok(working == 1 && loop_now_ms(task_loop(t)) - began_ms < 1000,
       "work on it ends within a second: %lld ms",
       (long long)(loop_now_ms(task_loop(t)) - began_ms));
    pause_ms(t, 300);
    is_int(asked, 1, "and does not begin again");
    is_str(money(t), STR("1000 0 0"), "it costs nothing");
    is_str(ask_redis(t, w, STR("SCARD"), key_pending_tasks(task_arena(t), uid), NULL), STR("0"),
           "no task is pending");
    end(t);
}

/* An answer that comes after the cancellation is neither kept nor paid. */
static void test_late_answer(struct task *t, void *arg)
{
    (void)arg;
    struct str id;
    struct plan_task task;
    begin(t, 1000);
    thinks_ms = 200;
    check(submit(t, NULL, &id) == 0);
    go(t);
    ok(await_asks(t, 1), "asked");
    sql_do(t, w,
           "UPDATE generation_task SET state = 'cancelled', version = version + 1 WHERE id = ?",
           id);
    pause_ms(t, 500);
    check(plan_task_get(t, w->plans, uid, id, &task) == 0);
    is_str(task.status, STR("cancelled"), "it stays cancelled");
    is_str(plans_of(t), STR("0"), "there is no plan");
    is_str(money(t), STR("1000 100 0"), "and nothing was paid");
    end(t);
}

/* What was reserved is taken by something else. */
/* A node that stood still goes on: the row stays as the one that pays has it. */
static void test_late_holder(struct task *t, void *arg)
{
    (void)arg;
    struct str id;
    struct ledger_move all = {.uid = 0, .cents = 1000, .request_id = STR("all")};
    struct plan_task task;
    int64_t left;
    begin(t, 1000);
    service = ERR_UNAVAILABLE;
    w->plans->ask = pay_while_asked;
    check(submit(t, NULL, &id) == 0);
    go(t);
    ok(await_asks(t, 2), "the service is away, while another node pays");
    is_int(plan_task_cancel(t, w->plans, uid, id, &task), ERR_CONFLICT, "it is not cancelled");
    end(t);
    begin(t, 1000);
    w->plans->dies = pay_after_refusal;
    check(submit(t, NULL, &id) == 0);
    all.uid = uid;
    check(ledger_deduct(t, w->node.ledger, &all, &left) == 0);
    go(t);
    for (int i = 0; i < 1000; i++) {
        check(plan_task_get(t, w->plans, uid, id, &task) == 0);
        if (task.message.p)
            break;
        pause_ms(t, 10);
    }
    ok(task.message.p, "there is no money, while another node pays");
    is_int(plan_task_cancel(t, w->plans, uid, id, &task), ERR_CONFLICT, "it is not cancelled");
    end(t);
}

/* As the ledger sees a MySQL that is older than Redis. */
static void set_stopped(struct task *t, bool stopped)
{
    struct redis *r = w->node.redis;
    struct str balance = key_balance(task_arena(t), uid), ledger = key_ledger(task_arena(t), uid);
    check(redis_call(t, r, balance, NULL, STR("DEL"), balance) == 0);
    check(stopped
              ? redis_call(t, r, ledger, NULL, STR("HSET"), ledger, STR("synced"), STR("9")) == 0
              : redis_call(t, r, ledger, NULL, STR("HDEL"), ledger, STR("synced")) == 0);
}

static void test_stopped(struct task *t, void *arg)
{
    (void)arg;
    struct str id;
    begin(t, 500);
    check(submit(t, NULL, &id) == 0);
    set_stopped(t, true);
    go(t);
    ok(await_asks(t, 1), "asked");
    struct str error = STR("");
    for (int i = 0; i < 400 && error.n == 0; i++) {
        pause_ms(t, 5);
        error = sql_word(t, w, "SELECT COALESCE(error, '') FROM generation_task WHERE id = ?", id);
    }
    ok(str_find(error, STR("MySQL is older")) >= 0, "while the account is stopped it waits: %.*s",
       STR_ARG(error));
    is_str(sql_word(t, w, "SELECT error_code FROM generation_task WHERE id = ?", id),
           STR("account_stopped"), "which is a word of its own");
    is_str(reason_in_redis(t, id), STR("account_stopped"), "and in Redis");
    is_str(sql_word(t, w, "SELECT paying FROM generation_task WHERE id = ?", id), STR("0"),
           "and can be cancelled");
    set_stopped(t, false);
    struct str probes = key_jobs_part(task_arena(t), PLAN_QUEUE, "probes");
    check(redis_call(t, w->node.redis, probes, NULL, STR("ZADD"), probes, STR("1"),
                     str_int(task_arena(t), uid)) == 0);
    ok(comes_to(t, id, "completed"), "then it goes on");
    is_int(asked, 1, "and is not asked again");
    is_str(money(t), STR("400 0 1"), "paid once");
    end(t);
}

static void test_poor(struct task *t, void *arg)
{
    (void)arg;
    struct str id;
    struct plan_task task;
    int64_t left;
    begin(t, 100);
    check(submit(t, NULL, &id) == 0);
    struct ledger_move m = {.uid = uid, .cents = 50, .request_id = STR("taken")};
    check(ledger_deduct(t, w->node.ledger, &m, &left) == 0);
    go(t);
    ok(await_asks(t, 1), "asked");
    for (int i = 0; i < 400; i++) {
        pause_ms(t, 5);
        check(plan_task_get(t, w->plans, uid, id, &task) == 0);
        if (task.message.p)
            break;
    }
    is_str(task.status, STR("generating"), "without money it waits");
    ok(task.message.p && str_find(task.message, STR("is less than 1.00")) >= 0, "and says so");
    is_str(task.reason, STR("no_money"), "also by a word");
    is_str(reason_in_redis(t, id), STR("no_money"), "and to Redis");
    is_str(sql_word(t, w, "SELECT paying FROM generation_task WHERE id = ?", id), STR("0"),
           "it can be cancelled");
    m = (struct ledger_move){.uid = uid, .cents = 500, .request_id = STR("more")};
    check(ledger_recharge(t, w->node.ledger, &m, &left) == 0);
    struct str probes = key_jobs_part(task_arena(t), PLAN_QUEUE, "probes");
    check(redis_call(t, w->node.redis, probes, NULL, STR("ZADD"), probes, STR("1"),
                     str_int(task_arena(t), uid)) == 0);
    ok(comes_to(t, id, "completed"), "with money it goes on");
    is_int(asked, 1, "and is not asked again");
    is_str(money(t), STR("450 0 1"), "paid once");
    end(t);
}

static void test_old(struct task *t, void *arg)
{
    (void)arg;
    struct str id, paid;
    struct plan_task task;
    struct role_turn turn = {.locked = false};
    begin(t, 1000);
    check(submit(t, NULL, &id) == 0 && submit(t, NULL, &paid) == 0);
    sql_do(t, w,
           "UPDATE generation_task SET changed_at = changed_at - INTERVAL 25 HOUR,"
           " paying = (id = ?) WHERE state = 'pending'",
           paid);
    is_int(plans_sweep_role(t, w->plans, &turn), 0, "a day later");
    check(plan_task_get(t, w->plans, uid, id, &task) == 0);
    is_str(task.status, STR("failed"), "a task that has not ended fails");
    ok(str_find(task.message, STR("24 hours")) >= 0, "and says so");
    is_str(task.reason, STR("too_old"), "also by a word");
    is_str(state_of(t, paid), STR("pending"), "unless its payment has begun");
    is_str(money(t), STR("1000 100 0"), "nothing is reserved for it any more");
    is_int(plans_sweep_role(t, w->plans, &turn), 0, "then");
    is_str(ask_redis(t, w, STR("HGET"), key_generation_task(task_arena(t), id), "status"),
           STR("failed"), "Redis has heard of it");
    is_str(reason_in_redis(t, id), STR("too_old"), "and why");
    is_str(ask_redis(t, w, STR("SCARD"), key_pending_tasks(task_arena(t), uid), NULL), STR("1"),
           "one is pending still");
    go(t);
    ok(comes_to(t, paid, "completed"), "and completed in the end");
    is_int(asked, 1, "the other was not asked");
    end(t);
}

/* It comes back as it was before the task ended. Failed tasks are ended by the engine. */
static void check_older_redis(struct task *t, const char *end_state)
{
    struct str id, key;
    struct role_turn turn = {.locked = false};
    begin(t, 1000);
    wrongs = strcmp(end_state, "failed") == 0 ? 1000 : 0;
    check(submit(t, NULL, &id) == 0);
    key = key_generation_task(task_arena(t), id);
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("SAVE")) == 0);
    go(t);
    ok(comes_to(t, id, end_state), "a task ends: %s", end_state);
    check(plans_sweep_role(t, w->plans, &turn) == 0);
    is_str(ask_redis(t, w, STR("HGET"), key, "status"), str_of(end_state), "Redis has heard of it");
    store_redis_kill(&store);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    while (redis_up(w->node.redis) && plans_trust(w->plans))
        pause_ms(t, 2);
    await_trust(t, w);
    is_str(ask_redis(t, w, STR("HGET"), key, "status"), STR("generating"), "and forgotten it");
    check(plans_sweep_role(t, w->plans, &turn) == 0);
    is_str(ask_redis(t, w, STR("HGET"), key, "status"), str_of(end_state), "it is told again");
    is_str(ask_redis(t, w, STR("SCARD"), key_pending_tasks(task_arena(t), uid), NULL), STR("0"),
           "and nothing is pending");
    end(t);
}

static void test_older_redis(struct task *t, void *arg)
{
    (void)arg;
    check_older_redis(t, "completed");
    check_older_redis(t, "failed");
}

/* Redis is emptied: rows refill the queue, plans are read from MySQL. */
static void test_empty_redis(struct task *t, void *arg)
{
    (void)arg;
    struct str id;
    struct plan_task task;
    struct plan x;
    begin(t, 1000);
    check(submit(t, NULL, &id) == 0);
    store_redis_kill(&store);
    char path[128];
    snprintf(path, sizeof path, "%s/dump.rdb", store.dir);
    (void)unlink(path);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    while (redis_up(w->node.redis) && plans_trust(w->plans))
        pause_ms(t, 2);
    await_trust(t, w);
    go(t);
    ok(comes_to(t, id, "completed"), "the row has put the task into the queue again");
    check(plan_task_get(t, w->plans, uid, id, &task) == 0);
    is_int(plan_get(t, w->plans, uid, task.plan_id, &x), 0, "the plan is there");
    is_str(money(t), STR("900 0 1"), "paid once");
    end(t);
}

/* How long storing and caching twelve weeks takes. */
static void test_speed(struct task *t, void *arg)
{
    (void)arg;
    struct str id = STR_NULL;
    begin(t, 100000);
    const struct json *twelve = variables(t, "{\"weeks\":12,\"goals\":\"strong\"}");
    go(t);
    int64_t least_us = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        struct plan_wish wish = {.uid = uid, .kind = PLAN_TRAINING, .variables = twelve};
        bool repeated;
        check(plan_task_submit(t, w->plans, &wish, &id, &repeated) == 0);
        check(comes_to(t, id, "completed"));
        struct str us = sql_word(t, w,
                                 "SELECT TIMESTAMPDIFF(MICROSECOND, created_at, ended_at)"
                                 " FROM generation_task WHERE id = ?",
                                 id);
        int64_t v = 0;
        check(str_to_i64(us, &v));
        least_us = v < least_us ? v : least_us;
    }
    struct plan_task task;
    struct plan_date d;
    check(plan_task_get(t, w->plans, uid, id, &task) == 0);
    struct str key = key_generation_task(task_arena(t), id);
    while (!str_eq(ask_redis(t, w, STR("HGET"), key, "status"), STR("completed")))
        pause_ms(t, 2); /* the caches are filled before */
    struct str day = sql_word(t, w, "SELECT CAST(end_date AS CHAR) FROM training_plan WHERE id = ?",
                              task.plan_id);
    int64_t loads = *w->plans->day[PLAN_TRAINING].loads;
    check(plan_date_get(t, w->plans, uid, task.plan_id, day, &d) == 0);
    is_int(*w->plans->day[PLAN_TRAINING].loads, loads, "all days are in Redis at once");
    struct plan x, row = {.kind = PLAN_TRAINING, .id = task.plan_id};
    struct plan_snapshot at;
    check(plan_get(t, w->plans, uid, task.plan_id, &x) == 0);
    check(plan_load(t, w->plans, uid, &row, &at) == 0);
    ok(str_eq(x.days, row.days) && x.created_ms / 1000 == row.created_ms / 1000 &&
           x.active == row.active && x.version == row.version,
       "and the plan, as MySQL has it");
    printf("# 12 weeks, submitted to stored: %lld us\n", (long long)least_us);
    end(t);
}

int main(void)
{
    static void (*const tests[])(struct task * t, void *arg) = {
        test_made,   test_deaths,      test_wrong,       test_service_away, test_refusals,
        test_cancel, test_late_answer, test_late_holder, test_poor,         test_stopped,
        test_old,    test_older_redis, test_empty_redis, test_speed};
    start_stores();
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tap_task(tests[i], NULL, true);
    return stop_stores();
}
