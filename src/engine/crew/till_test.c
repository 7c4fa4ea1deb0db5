/* Verdicts on their way into the ledger: in batches, while their workers go on, and while stores
 * are unavailable. */
#include "engine/crew/till.h"
#include "engine/money/ledger_fixture.h"

static int64_t judged, failed, worker_count = 1;

struct desk {
    struct node n;
    struct group clerks, workers;
    struct till till;
    int64_t uid;
    struct str qid;
    int next, written, refusals, refusal, errors[-ERR_LAST + 1];
    char words[400]; /* of the last refusal */
};

static void refused(struct task *t, void *arg, int err)
{
    struct desk *d = arg;
    snprintf(d->words, sizeof d->words, "%s", task_error(t));
    d->refusals++;
    d->refusal = err;
}

static void open_desk(struct task *t, struct desk *d, int64_t cents)
{
    *d = (struct desk){.next = 0};
    open_node(t, &d->n);
    group_init(&d->clerks, task_loop(t));
    group_init(&d->workers, task_loop(t));
    judged = failed = 0;
    d->till = (struct till){.group = &d->clerks,
                            .ledger = d->n.ledger,
                            .judged = &judged,
                            .failed = &failed,
                            .workers = &worker_count,
                            .refused = refused,
                            .arg = d};
    till_open(&d->till);
    d->uid = add_user(t, &d->n, cents);
    d->qid = add_run(t, &d->n, d->uid);
}

static void close_desk(struct task *t, struct desk *d)
{
    check(group_join(t, &d->workers) == 0);
    check(group_join(t, &d->clerks) == 0);
    ok(till_idle(&d->till), "no record and no clerk is left at the till");
    close_node(t, &d->n);
}

static int give(struct task *t, struct desk *d, struct till_slip *s, int number, int64_t cents)
{
    struct charge c = paper_of(t, d->uid, d->qid, number, cents);
    int err = till_wait(t, &d->till, s);
    return err ? err : till_give(t, &d->till, s, &c);
}

/* After it the balance is in Redis, and a charge is one script. */
static void give_first(struct task *t, struct desk *d)
{
    struct till_slip s = {0};
    check(give(t, d, &s, 9999, 10) == 0 && till_wait(t, &d->till, &s) == 0);
}

static int64_t scripts_run(struct task *t, struct desk *d)
{
    const struct redis_reply *r;
    int64_t calls = 0;
    check(redis_call(t, d->n.redis, STR_NULL, &r, STR("INFO"), STR("commandstats")) == 0);
    struct str mark = STR("cmdstat_evalsha:calls="), rest = r->str;
    int64_t at = str_find(rest, mark);
    if (at < 0)
        return 0;
    rest = str_from(rest.p + at + (int64_t)mark.n, rest.n - (size_t)at - mark.n);
    check(str_to_i64(str_cut(&rest, ','), &calls));
    return calls;
}

static int64_t results(struct task *t, struct desk *d)
{
    return ask_int(t, &d->n, STR("HLEN"), key_result(task_arena(t), d->uid, d->qid), STR_NULL);
}

/* --- together --- */

static const bool stays = false;

/* A worker with two papers. */
static void two_papers(struct task *t, void *arg)
{
    struct desk *d = arg;
    struct till_slip s = {0};
    int number = 2 * d->next++;
    for (int i = 0; i < 2; i++)
        d->errors[-give(t, d, &s, number + i, 10)]++;
    d->errors[-till_wait(t, &d->till, &s)]++;
    till_leave(t, &d->till, &s, &stays);
}

static void test_together(struct task *t, void *arg)
{
    (void)arg;
    struct desk d;
    open_desk(t, &d, 100000);
    give_first(t, &d);
    int64_t before = scripts_run(t, &d);
    for (int i = 0; i < 50; i++)
        check(task_go(&d.workers, "worker", two_papers, &d) == 0);
    check(group_join(t, &d.workers) == 0);
    is_int(d.errors[0], 150, "50 workers hand in two verdicts each");
    is_int(scripts_run(t, &d) - before, 2, "the first ones go in one call, and the second ones");
    ok(results(t, &d) == 101 && judged == 101 && in_redis(t, &d.n, d.uid) == 100000 - 1010,
       "all are recorded, charged and counted");
    close_desk(t, &d);
}

static void one_paper(struct task *t, void *arg)
{
    struct desk *d = arg;
    struct till_slip s = {0};
    d->errors[-give(t, d, &s, d->next++, 10)]++;
    till_leave(t, &d->till, &s, &stays);
    d->written++;
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct desk d;
    open_desk(t, &d, 100000);
    give_first(t, &d);
    int64_t before = scripts_run(t, &d);
    int workers = 3 * CHARGE_MANY_MAX + 1;
    for (int i = 0; i < workers; i++)
        check(task_go(&d.workers, "worker", one_paper, &d) == 0);
    check(group_join(t, &d.workers) == 0);
    ok(d.written == workers && results(t, &d) == workers + 1, "301 verdicts in one turn");
    is_int(scripts_run(t, &d) - before, 4, "are four calls");
    close_desk(t, &d);
}

/* --- meanwhile --- */

static void test_meanwhile(struct task *t, void *arg)
{
    (void)arg;
    struct desk d;
    open_desk(t, &d, 1000);
    struct till_slip s = {0};
    is_int(give(t, &d, &s, 1, 10), 0, "a verdict is handed in");
    is_int(results(t, &d), 0, "and its worker goes on before it is recorded");
    is_int(give(t, &d, &s, 2, 10), 0, "with the next one");
    is_int(results(t, &d), 1, "it waits until the last one is");
    int64_t begun_us = loop_now_us(task_loop(t));
    for (int i = 3; i < 40; i++)
        check(give(t, &d, &s, i, 10) == 0);
    ok(loop_now_us(task_loop(t)) - begun_us < 37 * TILL_PATIENCE_MS * 500,
       "a clerk does not wait for more records while a worker waits for one");
    is_int(till_wait(t, &d.till, &s), 0, "until the last one is recorded");
    ok(results(t, &d) == 39 && judged == 39, "all are there");
    int64_t until_ms = loop_now_ms(task_loop(t)) + 2000;
    check(give(t, &d, &s, 40, 10) == 0);
    while (results(t, &d) < 40 && loop_now_ms(task_loop(t)) < until_ms)
        pause_ms(t, 2);
    is_int(results(t, &d), 40, "one that no worker waits for is recorded, too");
    struct charge c = paper_of(t, d.uid, d.qid, 41, 0);
    c.outcome = OUTCOME_FAILED;
    ok(till_give(t, &d.till, &s, &c) == 0 && till_wait(t, &d.till, &s) == 0 && failed == 1 &&
           judged == 40,
       "and a failure as one");
    c.doi = STR("");
    is_int(till_give(t, &d.till, &s, &c), ERR_INVALID, "what is no charge is not taken");
    ok(d.refusals == 1 && d.refusal == ERR_INVALID, "refused is called");
    is_int(give(t, &d, &s, 42, 10), 0, "and other verdicts are taken");
    till_leave(t, &d.till, &s, &stays);
    is_int(results(t, &d), 42, "a worker that ends waits for its last one");
    close_desk(t, &d);
}

/* --- refused --- */

static void test_funds(struct task *t, void *arg)
{
    (void)arg;
    struct desk d;
    open_desk(t, &d, 15);
    struct till_slip s[3] = {{0}};
    for (int i = 0; i < 3; i++)
        check(give(t, &d, &s[i], i, 10) == 0);
    is_int(till_wait(t, &d.till, &s[0]), 0, "money for one");
    is_int(give(t, &d, &s[1], 4, 0), ERR_FUNDS, "the next one learns it with its next verdict");
    is_int(till_wait(t, &d.till, &s[2]), ERR_FUNDS, "or when it asks");
    ok(d.refusals == 1 && d.refusal == ERR_FUNDS, "refused is called once");
    ok(results(t, &d) == 1 && in_redis(t, &d.n, d.uid) == 5 && judged == 1, "one is charged");
    say(t, &d.n, STR("HSET"), key_query_status(task_arena(t), d.uid, d.qid), STR("state"),
        STR("CANCELLED"));
    is_int(give(t, &d, &s[0], 5, 1), 0, "after a run was terminated");
    is_int(till_wait(t, &d.till, &s[0]), ERR_CLOSED, "nothing is taken");
    ok(results(t, &d) == 1 && d.refusals == 1, "nor is refused called");
    close_desk(t, &d);
}

/* A malformed record: the balance cannot be loaded, and a retry does not help. */
static void test_ledger_broken(struct task *t, void *arg)
{
    (void)arg;
    struct desk d;
    open_desk(t, &d, 1000);
    struct till_slip s[3] = {{0}};
    struct str queue = key_billing_queue(task_arena(t), d.uid);
    say(t, &d.n, STR("RPUSH"), queue, STR("not JSON"), STR_NULL);
    for (int i = 0; i < 3; i++)
        check(give(t, &d, &s[i], i, 10) == 0);
    for (int i = 0; i < 3; i++)
        is_int(till_wait(t, &d.till, &s[i]), ERR_INTERNAL, "a verdict is refused");
    check(group_join(t, &d.clerks) == 0);
    ok(d.refusals == 1 && d.refusal == ERR_INTERNAL && *d.words, "refused is called once, with: %s",
       d.words);
    ok(results(t, &d) == 0 && judged == 0, "nothing is recorded");
    say(t, &d.n, STR("DEL"), queue, STR_NULL, STR_NULL);
    ok(give(t, &d, &s[0], 0, 10) == 0 && till_wait(t, &d.till, &s[0]) == 0 && d.refusals == 1,
       "when the record is gone verdicts are recorded");
    is_int(in_redis(t, &d.n, d.uid), 990, "and charged");
    close_desk(t, &d);
}

/* --- stores that are unavailable --- */

static void test_redis_away(struct task *t, void *arg)
{
    (void)arg;
    struct desk d;
    open_desk(t, &d, 100000);
    struct till_slip gone = {0};
    give_first(t, &d);
    uint64_t epoch = redis_epoch(d.n.redis);
    store_redis_kill(&store);
    for (int i = 0; i < 30; i++)
        check(task_go(&d.workers, "worker", one_paper, &d) == 0);
    check(give(t, &d, &gone, 100, 10) == 0);
    pause_ms(t, 3 * TILL_PATIENCE_MS);
    is_int(d.errors[0], 30, "without Redis verdicts are taken");
    is_int(d.written, 0, "and kept");
    bool cut_off = true;
    till_leave(t, &d.till, &gone, &cut_off);
    ok(!till_idle(&d.till), "a worker that is cut off does not wait");
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    struct str status = key_query_status(task_arena(t), d.uid, d.qid);
    char answer[8]; /* blocks the loop: clerks do not see the new Redis without the state */
    check(store_redis_say(&store,
                          arena_printf(task_arena(t), "HSET %.*s state RUNNING", STR_ARG(status)),
                          answer, sizeof answer));
    await_new_redis(t, &d.n, epoch);
    check(group_join(t, &d.workers) == 0);
    is_int(d.written, 30, "until it is back");
    ok(results(t, &d) >= 30 && ledger_sync(t, d.n.ledger, d.uid) == 0 && every_cent(t, &d.n, d.uid),
       "each is charged once");
    close_desk(t, &d);
}

static void test_cut_off(struct task *t, void *arg)
{
    (void)arg;
    struct desk d;
    open_desk(t, &d, 1000);
    struct till_slip s = {0}, other = {0};
    check(give(t, &d, &s, 1, 10) == 0 && give(t, &d, &other, 2, 10) == 0);
    bool cut_off = true;
    till_leave(t, &d.till, &s, &cut_off);
    till_leave(t, &d.till, &other, &stays);
    ok(results(t, &d) == 1 && in_redis(t, &d.n, d.uid) == 990,
       "what no clerk has is dropped with its worker, and nothing else");
    close_desk(t, &d);
}

/* Charges are turned away without an error, again and again: as if the run were terminated. */
static void test_lost(struct task *t, void *arg)
{
    (void)arg;
    struct desk d;
    open_desk(t, &d, 100000);
    give_first(t, &d);
    struct str status = key_query_status(task_arena(t), d.uid, d.qid);
    check(redis_call(t, d.n.redis, status, NULL, STR("HSET"), status, STR("state"),
                     STR("CANCELLED")) == 0);
    struct till_slip s = {0};
    worker_count = 12;
    int lost = 0;
    while (d.refusals == 0 && lost < 100) {
        int err = give(t, &d, &s, lost++, 10);
        check(err == 0 && till_wait(t, &d.till, &s) == ERR_CLOSED);
        check(task_sleep(t, 1) == 0);
    }
    is_int(lost, 2 * worker_count, "two verdicts of each worker are lost, and the run is refused");
    ok(str_find(str_of(d.words), STR("none of its last 24 verdicts")) >= 0, "%s", d.words);
    is_int(d.till.lost, 0, "the count begins anew");
    check(give(t, &d, &s, lost, 10) == 0 && till_wait(t, &d.till, &s) == ERR_CLOSED);
    check(redis_call(t, d.n.redis, status, NULL, STR("HSET"), status, STR("state"),
                     STR("RUNNING")) == 0);
    check(d.till.lost == 1 && give(t, &d, &s, 200, 10) == 0 && till_wait(t, &d.till, &s) == 0);
    is_int(d.till.lost, 0, "one that is recorded ends it");
    worker_count = 1;
    close_desk(t, &d);
}

int main(void)
{
    start_stores();
    tap_task(test_together, NULL, true);
    tap_task(test_many, NULL, true);
    tap_task(test_meanwhile, NULL, true);
    tap_task(test_funds, NULL, true);
    tap_task(test_ledger_broken, NULL, true);
    tap_task(test_redis_away, NULL, true);
    tap_task(test_cut_off, NULL, true);
    tap_task(test_lost, NULL, true);
    return stop_stores();
}
