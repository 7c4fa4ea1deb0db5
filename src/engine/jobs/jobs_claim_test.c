/* Jobs that call the AI and workers of runs share the permission of their user, on two nodes with
 * real stores. How they share it is tested in engine/crew/claims_test.c. */
#include "base/map.h"
#include "engine/jobs/jobs_private.h"
#include "engine/money/ledger_fixture.h"

#define WAIT_MS 60000
#define JOBS    40

static struct node node;

static struct {
    size_t done, working, most, asked, in_line;
    int64_t tries_most;
    bool hang;       /* the AI does not answer */
    bool slow_store; /* what it said is not written */
} bench;

static int work(struct task *t, void *arg, const struct job *j)
{
    (void)arg;
    bench.in_line++;
    check(!*j->asks);
    int err = job_ask_begin(t, j);
    bench.in_line--;
    check(*j->asks == !err);
    if (err)
        return err;
    bench.working++;
    bench.most = bench.working > bench.most ? bench.working : bench.most;
    bench.tries_most = j->tries > bench.tries_most ? j->tries : bench.tries_most;
    do
        err = task_sleep(t, 5);
    while (bench.hang && !err);
    bench.working--;
    job_ask_end(j);
    check(!*j->asks);
    bench.asked += !err;
    while (bench.slow_store && !err)
        err = task_sleep(t, 5);
    bench.done += !err;
    return err;
}

static struct job_kind asking = {.name = "asking",
                                 .lease_ms = 600,
                                 .deadline_ms = WAIT_MS,
                                 .tries_max = 2,
                                 .backoff_ms = 20,
                                 .calls_ai = true,
                                 .work = work};

/* One node's jobs. */
struct side {
    struct jobs *jobs;
    struct members members;
    struct group tasks;
};

static struct claimant claimant_of(const struct side *s)
{
    return (struct claimant){.redis = node.redis,
                             .cache = node.cache,
                             .members = &s->members,
                             .incarnation = s->members.incarnation};
}

/* Node number of two that live. */
static void open_side(struct task *t, struct side *s, uint64_t number)
{
    s->members = (struct members){
        .incarnation = number, .list = {{.incarnation = 1}, {.incarnation = 2}}, .count = 2};
    s->jobs = jobs_new(&(struct jobs_options){
        .redis = node.redis, .sql = node.sql, .metrics = metrics, .incarnation = number});
    struct claimant c = claimant_of(s);
    jobs_cap(s->jobs, &c);
    jobs_add(s->jobs, &asking, NULL);
    group_init(&s->tasks, task_loop(t));
}

static void go(struct task *t, struct side *s)
{
    struct role_turn turn = {.locked = false};
    check(jobs_refill_role(t, s->jobs, &turn) == 0);
    check(task_go(&s->tasks, "jobs", jobs_task, s->jobs) == 0);
    role_in(&s->tasks, jobs_keep_role, s->jobs, 20);
}

static void close_side(struct task *t, struct side *s)
{
    group_cancel(&s->tasks);
    check(group_join(t, &s->tasks) == 0);
    jobs_free(s->jobs);
}

static int64_t begin_with(struct task *t, struct side *s, size_t count, int64_t permission,
                          int64_t concurrency)
{
    memset(&bench, 0, sizeof bench);
    asking.concurrency = concurrency;
    open_node(t, &node);
    say(t, &node, STR("FLUSHALL"));
    await_redis(t, &node);
    int64_t uid = add_user(t, &node, 0);
    check(sql_call(t, node.sql, NULL, "UPDATE user_info SET permission = ? WHERE uid = ?",
                   sql_int(permission), sql_int(uid)) == 0);
    for (size_t i = 0; i < count; i++)
        open_side(t, &s[i], i + 1);
    return uid;
}

static int64_t begin(struct task *t, struct side *s, size_t count, int64_t permission)
{
    return begin_with(t, s, count, permission, 8);
}

static void end(struct task *t, struct side *s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close_side(t, &s[i]);
    close_node(t, &node);
}

static void push(struct task *t, struct side *s, int64_t uid, size_t count)
{
    struct job_push list[JOBS];
    for (size_t i = 0; i < count; i++)
        list[i] = (struct job_push){.id = str_printf(task_arena(t), "job%zu", i),
                                    .uid = uid,
                                    .version = 1,
                                    .order = (int64_t)i};
    check(jobs_push(t, s->jobs, "asking", list, count, NULL) == 0);
}

static struct jobs_look look(struct task *t, struct side *s)
{
    struct jobs_look l;
    check(jobs_look(t, s->jobs, 0, &l) == 0);
    return l;
}

/* As the crew of a node does for a run. */
static int64_t claim_workers(struct task *t, const struct side *s, int64_t uid, int64_t has,
                             int64_t wants)
{
    struct claimant c = claimant_of(s);
    struct claim claim = {.what = STR("run"), .has = has, .wants = wants};
    int64_t permission;
    check(claims_make(t, &c, uid, false, &claim, 1, &permission) == 0);
    return claim.granted;
}

static struct str claimed(struct task *t, int64_t uid, const char *field)
{
    struct str text = ask(t, &node, STR("HGET"), key_workers(task_arena(t), uid), str_of(field));
    return text.p ? str_cut(&text, '@') : STR("none");
}

#define await(t, condition)                                                                        \
    ({                                                                                             \
        int64_t await_until_ = loop_now_ms(task_loop(t)) + WAIT_MS;                                \
        while (!(condition) && loop_now_ms(task_loop(t)) < await_until_)                           \
            pause_ms(t, 2);                                                                        \
        (condition);                                                                               \
    })

static void test_cap(struct task *t, void *arg)
{
    (void)arg;
    struct side s[2];
    int64_t uid = begin(t, s, 2, 3);
    push(t, &s[0], uid, JOBS);
    go(t, &s[0]);
    go(t, &s[1]);
    ok(await(t, bench.done == JOBS), "all are done: %zu of %d", bench.done, JOBS);
    is_int((int64_t)bench.most, 3, "at most three at once, on two nodes with room for sixteen");
    is_int(bench.tries_most, 1, "none has lost a try");
    ok(await(t, str_eq(claimed(t, uid, "jobs:0000000000000001"), STR("none")) &&
                    str_eq(claimed(t, uid, "jobs:0000000000000002"), STR("none"))),
       "and nothing is claimed any more");
    is_int((int64_t)map_count(s[0].jobs->claims), 0, "nor remembered");
    end(t, s, 2);
}

static void test_runs(struct task *t, void *arg)
{
    (void)arg;
    struct side s[2];
    int64_t uid = begin(t, s, 2, 3), workers = claim_workers(t, &s[1], uid, 0, 3);
    is_int(workers, 3, "a run has all three");
    push(t, &s[0], uid, 10);
    go(t, &s[0]);
    ok(await(t, look(t, &s[0]).held == 10), "jobs of its user are held: %lld",
       (long long)look(t, &s[0]).held);
    is_int((int64_t)bench.done, 0, "and wait");
    is_int(claim_workers(t, &s[1], uid, workers, 3), 2, "the run is told to end a worker");
    while (bench.done < 10) { /* as the crew does, in every round */
        int64_t now = claim_workers(t, &s[1], uid, 2, 3);
        check(now == 2 || bench.done > 0);
        pause_ms(t, 20);
    }
    is_int((int64_t)bench.most, 1, "its call is for jobs, one at a time");
    is_int(bench.tries_most, 1, "none has lost a try");
    end(t, s, 2);
}

static void test_none(struct task *t, void *arg)
{
    (void)arg;
    struct side s[1];
    int64_t uid = begin(t, s, 1, 0);
    push(t, &s[0], uid, 5);
    go(t, &s[0]);
    ok(await(t, look(t, &s[0]).held == 5), "a permission of 0 holds jobs that call the AI");
    is_int((int64_t)bench.done, 0, "none is worked on");
    check(sql_call(t, node.sql, NULL,
                   "UPDATE user_info SET permission = 2, version = version + 1 WHERE uid = ?",
                   sql_int(uid)) == 0);
    say(t, &node, STR("DEL"), key_user_info(task_arena(t), uid), STR("none"));
    ok(await(t, bench.done == 5), "with permission they are done");
    end(t, s, 1);
}

/* The claims of a node that died go; so do those that Redis has forgotten come back. */
static void test_lost(struct task *t, void *arg)
{
    (void)arg;
    struct side s[2];
    int64_t uid = begin(t, s, 2, 2);
    bench.hang = true;
    push(t, &s[0], uid, 2);
    go(t, &s[0]);
    ok(await(t, str_eq(claimed(t, uid, "jobs:0000000000000001"), STR("2"))), "two are claimed");
    say(t, &node, STR("DEL"), key_workers(task_arena(t), uid), STR("none"));
    ok(await(t, str_eq(claimed(t, uid, "jobs:0000000000000001"), STR("2"))),
       "a Redis that has forgotten is told again");
    is_int(claim_workers(t, &s[1], uid, 0, 2), 0, "so that a run has no room");
    group_cancel(&s[0].tasks); /* killed: nothing is given up */
    check(group_join(t, &s[0].tasks) == 0);
    s[1].members.list[0] = s[1].members.list[1];
    s[1].members.count = 1;
    bench.hang = false;
    go(t, &s[1]);
    ok(await(t, bench.done == 2), "another node takes them, and the claims of the dead one go");
    close_side(t, &s[1]);
    jobs_free(s[0].jobs);
    close_node(t, &node);
}

/* --- claims at once --- */

#define CLAIMERS 30

struct claimer {
    struct side *side;
    struct job job;
    struct task *task; /* while it runs */
    bool holds;
    int err;
};

static void claimer_task(struct task *t, void *arg)
{
    struct claimer *c = arg;
    c->task = t;
    c->err = jobs_claim(t, c->side->jobs, &c->job);
    c->holds = !c->err;
    if (c->holds && task_canceled(t)) { /* as the end of a job's function */
        jobs_unclaim(c->side->jobs, c->job.uid);
        jobs_claim_settle(t, c->side->jobs, c->job.uid);
        c->holds = false;
    }
    c->task = NULL;
}

/* All in line, and no call is made yet. busy: clerks that are so with something else. */
static void line_up(struct task *t, struct side *s, int64_t uid, struct group *g, struct claimer *c,
                    size_t busy)
{
    s->jobs->group = &s->tasks;
    jobs_claims_open(s->jobs, &s->tasks);
    s->jobs->tellings.clerks = busy;
    group_init(g, task_loop(t));
    for (size_t i = 0; i < CLAIMERS; i++) {
        c[i] = (struct claimer){.side = s, .job = {.uid = uid}};
        check(task_go(g, "claimer", claimer_task, &c[i]) == 0);
    }
    check(task_yield(t) == 0);
}

static int64_t holders(const struct claimer *c, int err)
{
    int64_t n = 0;
    for (size_t i = 0; i < CLAIMERS; i++)
        n += err ? c[i].err == err : c[i].holds;
    return n;
}

static void test_together(struct task *t, void *arg)
{
    (void)arg;
    struct side s[1];
    struct claimer c[CLAIMERS];
    struct group g;
    int64_t uid = begin(t, s, 1, 7);
    line_up(t, &s[0], uid, &g, c, 0);
    check(group_join(t, &g) == 0);
    is_int(holders(c, 0), 7, "of many claims at once the permission's number is granted");
    is_int(holders(c, ERR_RATE), CLAIMERS - 7, "and all others are refused");
    ok(s[0].jobs->claims_told <= 2, "by few calls: %zu", s[0].jobs->claims_told);
    is_str(claimed(t, uid, "jobs:0000000000000001"), STR("7"), "which Redis knows");
    for (int i = 0; i < 7; i++)
        jobs_unclaim(s[0].jobs, uid);
    size_t told = s[0].jobs->claims_told;
    is_str(claimed(t, uid, "jobs:0000000000000001"), STR("7"), "giving them up does not wait");
    for (int i = 0; i < 7; i++)
        jobs_claim_settle(t, s[0].jobs, uid);
    is_str(claimed(t, uid, "jobs:0000000000000001"), STR("none"), "until Redis is told,");
    is_int((int64_t)(s[0].jobs->claims_told - told), 1, "once for all");
    is_int((int64_t)map_count(s[0].jobs->claims), 0, "nothing is remembered");
    end(t, s, 1);
}

static void test_canceled(struct task *t, void *arg)
{
    (void)arg;
    struct side s[1];
    struct claimer c[CLAIMERS];
    struct group g;
    int64_t uid = begin(t, s, 1, CLAIMERS);
    line_up(t, &s[0], uid, &g, c, 0);
    for (size_t i = 0; i < 5; i++) /* the call has begun, or does before they run */
        task_cancel(c[i].task);
    check(group_join(t, &g) == 0);
    is_int(holders(c, 0), CLAIMERS - 5, "a task that is cancelled keeps no claim, nor the others");
    check(jobs_claims_keep(t, s[0].jobs) == 0);
    is_str(claimed(t, uid, "jobs:0000000000000001"), str_int(task_arena(t), CLAIMERS - 5),
           "and Redis knows");
    for (size_t i = 5; i < CLAIMERS; i++)
        jobs_unclaim(s[0].jobs, uid);

    size_t told = s[0].jobs->claims_told, all = s[0].jobs->tellings.options.clerks_max;
    line_up(t, &s[0], uid, &g, c, all);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    is_int(holders(c, ERR_CANCELED), CLAIMERS, "claims that wait are cancelled at once");
    is_int((int64_t)(s[0].jobs->claims_told - told), 0, "without a call");
    s[0].jobs->tellings.clerks = 0;
    check(jobs_claims_keep(t, s[0].jobs) == 0);
    is_str(claimed(t, uid, "jobs:0000000000000001"), STR("none"), "all of them are given up");
    end(t, s, 1);
}

/* A call was sent with a count that is not true any more when its reply comes; or the node ends
 * while Redis is asked, and the reply is lost. */
static void test_wrong(struct task *t, void *arg)
{
    (void)arg;
    struct side s[1];
    struct claimer c[CLAIMERS];
    struct group g, after;
    int64_t uid = begin(t, s, 1, 2 * CLAIMERS);
    line_up(t, &s[0], uid, &g, c, 0);
    check(group_join(t, &g) == 0);
    check(jobs_claims_keep(t, s[0].jobs) == 0); /* it tells all of them once a connection */
    size_t told = s[0].jobs->claims_told;
    line_up(t, &s[0], uid, &g, c, 0);
    while (s[0].jobs->claims_told == told) /* the call has not begun */
        check(task_yield(t) == 0);
    for (int i = 0; i < 5; i++)
        jobs_unclaim(s[0].jobs, uid);
    check(group_join(t, &g) == 0);
    check(jobs_claims_keep(t, s[0].jobs) == 0);
    is_str(claimed(t, uid, "jobs:0000000000000001"), str_int(task_arena(t), 2 * CLAIMERS - 5),
           "what is given up during a call is told");

    for (int i = 0; i < 2 * CLAIMERS - 5; i++)
        jobs_unclaim(s[0].jobs, uid);
    line_up(t, &s[0], uid, &g, c, 0);
    group_cancel(&s[0].tasks);
    check(group_join(t, &s[0].tasks) == 0 && group_join(t, &g) == 0);
    is_int(holders(c, ERR_CANCELED), CLAIMERS, "all claims of a call that is cancelled are");
    group_init(&after, task_loop(t));
    s[0].jobs->group = &after;
    jobs_claims_open(s[0].jobs, &after);
    check(jobs_claims_keep(t, s[0].jobs) == 0);
    is_str(claimed(t, uid, "jobs:0000000000000001"), STR("none"), "and Redis is set right");
    is_int((int64_t)map_count(s[0].jobs->claims), 0, "nothing is remembered");
    check(group_join(t, &after) == 0);
    end(t, s, 1);
}

/* --- slots --- */

static void test_asked(struct task *t, void *arg)
{
    (void)arg;
    struct side s[1];
    int64_t uid = begin_with(t, s, 1, 1, 1);
    bench.slow_store = true;
    push(t, &s[0], uid, 10);
    go(t, &s[0]);
    ok(await(t, bench.asked == 3), "a job that has asked lets the next one ask: %zu", bench.asked);
    pause_ms(t, 300);
    is_int((int64_t)bench.asked, 3, "while two times the concurrency besides is in hand, no more");
    ok(s[0].jobs->queues[0]->count <= 3, "are taken: %zu", s[0].jobs->queues[0]->count);
    bench.slow_store = false;
    ok(await(t, bench.done == 10), "all are done");
    is_int((int64_t)bench.most, 1, "one asks at a time");
    is_int(bench.tries_most, 1, "none has lost a try");
    end(t, s, 1);
}

static void test_ahead(struct task *t, void *arg)
{
    (void)arg;
    struct side s[1];
    int64_t uid = begin_with(t, s, 1, 100, 4);
    struct jobs_queue *q = s[0].jobs->queues[0];
    q->ahead = 4; /* answers came soon */
    bench.hang = true;
    push(t, &s[0], uid, 20);
    go(t, &s[0]);
    ok(await(t, bench.working == 4 && bench.in_line == 4), "some are taken ahead");
    is_int((int64_t)q->count, 8, "and no more");
    ok(await(t, bench.in_line == 0 && look(t, &s[0]).waiting == 16),
       "when answers are late these are given back");
    is_int((int64_t)bench.most, 4, "they never asked beside the others");
    is_int(q->ahead, 0, "and none is taken ahead");
    bench.hang = false;
    ok(await(t, bench.done == 20), "all are done");
    is_int(bench.tries_most, 1, "none has lost a try");
    is_int((int64_t)bench.most, 4, "four at a time");
    end(t, s, 1);
}

int main(void)
{
    start_stores();
    tap_task(test_cap, NULL, true);
    tap_task(test_runs, NULL, true);
    tap_task(test_none, NULL, true);
    tap_task(test_lost, NULL, true);
    tap_task(test_together, NULL, true);
    tap_task(test_canceled, NULL, true);
    tap_task(test_wrong, NULL, true);
    tap_task(test_asked, NULL, true);
    tap_task(test_ahead, NULL, true);
    return stop_stores();
}
