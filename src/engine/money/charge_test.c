/* Papers that are charged: every outcome, together and alone, by one node and by two. */
#include "engine/money/ledger_fixture.h"

static int64_t progress(struct task *t, struct node *n, int64_t uid, struct str qid)
{
    return ask_int(t, n, STR("GET"), key_progress(task_arena(t), uid, qid), STR_NULL);
}

static int64_t failed_papers(struct task *t, struct node *n, int64_t uid, struct str qid)
{
    return ask_int(t, n, STR("SCARD"), key_failed(task_arena(t), uid, qid), STR_NULL);
}

static void set_state(struct task *t, struct node *n, int64_t uid, struct str qid, struct str state)
{
    say(t, n, STR("HSET"), key_query_status(task_arena(t), uid, qid), STR("state"), state);
}

static int64_t charges_of(struct task *t, struct node *n, int64_t uid)
{
    return sql_number(t, n, "SELECT COUNT(*) FROM billing_log WHERE uid = ? AND kind = 'charge'",
                      uid);
}

/* --- outcomes --- */

static void test_outcomes(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 700);
    struct str qid = add_run(t, &n, uid);
    struct charge c = paper_of(t, uid, qid, 2, 300);
    is_int(pay(t, &n, c), CHARGE_DONE, "a paper is charged; its balance was not in Redis");
    is_int(in_redis(t, &n, uid), 400, "with money");
    is_str(result_of(t, &n, &c), c.result, "and a result");
    is_int(pay(t, &n, c), CHARGE_EXISTS, "once");
    ok(in_redis(t, &n, uid) == 400 && queued(t, &n, uid) == 1, "a repeat changes nothing");
    is_int(pay(t, &n, paper_of(t, uid, qid, 3, 401)), CHARGE_FUNDS, "a cent too few");
    ok(in_redis(t, &n, uid) == 400 && queued(t, &n, uid) == 1 && progress(t, &n, uid, qid) == 1,
       "changes nothing");
    is_int(pay(t, &n, paper_of(t, uid, qid, 3, 400)), CHARGE_DONE, "enough, to the last cent");
    is_int(in_redis(t, &n, uid), 0, "nothing is left");
    is_int(pay(t, &n, paper_of(t, uid, qid, 4, 1)), CHARGE_FUNDS, "and no more can be had");
    is_int(pay(t, &n, paper_of(t, uid, qid, 4, 0)), CHARGE_DONE, "but for what is free");
    ok(of_status(t, &n, uid, qid, "finished") == 3 && of_status(t, &n, uid, qid, "relevant") == 2 &&
           of_status(t, &n, uid, qid, "cost") == 700 && progress(t, &n, uid, qid) == 3,
       "all is counted");
    check(ledger_sync(t, n.ledger, uid) == 0);
    ok(in_mysql(t, &n, uid) == 0 && charges_of(t, &n, uid) == 3 && every_cent(t, &n, uid),
       "and comes to MySQL");
    is_int(sql_number(t, &n,
                      "SELECT COUNT(*) FROM billing_log WHERE uid = ? AND kind = 'charge'"
                      " AND qid LIKE 'run%' AND doi LIKE '10.1000/_'"
                      " AND ABS(TIMESTAMPDIFF(SECOND, at, UTC_TIMESTAMP(3))) < 60",
                      uid),
           3, "with run, paper and time");
    close_node(t, &n);
}

struct returning {
    struct node *n;
    int64_t uid;
    struct str qid;
};

static void tell_late(struct task *t, void *arg)
{
    const struct returning *l = arg;
    check(task_sleep(t, 100) == 0);
    set_state(t, l->n, l->uid, l->qid, STR("RUNNING"));
}

/* Redis has lost everything, and a verdict comes before the run is told to it again. */
static void test_unknown_run(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct group g;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct returning late = {&n, uid, add_run(t, &n, uid)};
    struct str status = key_query_status(task_arena(t), uid, late.qid);
    check(pay(t, &n, paper_of(t, uid, late.qid, 1, 100)) == CHARGE_DONE);
    say(t, &n, STR("DEL"), status);
    group_init(&g, task_loop(t));
    check(task_go(&g, "late", tell_late, &late) == 0);
    is_int(pay(t, &n, paper_of(t, uid, late.qid, 2, 100)), CHARGE_DONE,
           "a verdict waits until Redis knows its run again");
    check(group_join(t, &g) == 0);
    is_int(in_redis(t, &n, uid), 800, "and is charged");
    close_node(t, &n);
}

static void test_states(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid);
    set_state(t, &n, uid, qid, STR("PAUSED"));
    is_int(pay(t, &n, paper_of(t, uid, qid, 1, 100)), CHARGE_DONE,
           "the paper in hand when the run was paused is charged");
    const struct str closed[] = {STR("QUEUED"), STR("DONE"), STR("CANCELLED"), STR("FAILED")};
    for (size_t i = 0; i < 4; i++) {
        set_state(t, &n, uid, qid, closed[i]);
        is_int(pay(t, &n, paper_of(t, uid, qid, 2, 100)), CHARGE_STOPPED, "not a run that is %s",
               closed[i].p);
    }
    n.ledger->unknown_ms = 100;
    is_int(pay(t, &n, paper_of(t, uid, STR("none"), 2, 100)), CHARGE_STOPPED, "nor one unknown");
    ok(in_redis(t, &n, uid) == 900 && queued(t, &n, uid) == 1, "nothing was charged");
    close_node(t, &n);
}

static void test_failed(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid);
    struct charge verdict = paper_of(t, uid, qid, 2, 100), failure = verdict;
    failure.cents = 0;
    failure.outcome = OUTCOME_FAILED;
    failure.result = STR("{\"ai_result\":null,\"block_key\":\"meta:J:2020\"}");
    is_int(pay(t, &n, failure), CHARGE_DONE, "a failure is kept");
    ok(in_redis(t, &n, uid) == 1000 && queued(t, &n, uid) == 0 &&
           failed_papers(t, &n, uid, qid) == 1,
       "and costs nothing");
    ok(of_status(t, &n, uid, qid, "failed") == 1 && of_status(t, &n, uid, qid, "finished") == 1,
       "it is counted");
    is_int(pay(t, &n, failure), CHARGE_EXISTS, "once");
    is_int(pay(t, &n, verdict), CHARGE_DONE, "a verdict takes its place");
    is_str(result_of(t, &n, &verdict), verdict.result, "as the result");
    ok(of_status(t, &n, uid, qid, "failed") == 0 && of_status(t, &n, uid, qid, "finished") == 1 &&
           of_status(t, &n, uid, qid, "relevant") == 1 && progress(t, &n, uid, qid) == 1 &&
           failed_papers(t, &n, uid, qid) == 0,
       "and in the counts");
    ok(in_redis(t, &n, uid) == 900 && queued(t, &n, uid) == 1, "and is paid for");
    is_int(pay(t, &n, failure), CHARGE_EXISTS, "no failure takes the place of a verdict");
    is_int(pay(t, &n, verdict), CHARGE_EXISTS, "nor a second verdict");
    is_str(result_of(t, &n, &verdict), verdict.result, "which stays");
    close_node(t, &n);
}

static void test_invalid(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid);
    char longer[300];
    memset(longer, 'x', sizeof longer);
    struct charge bad[6];
    for (int i = 0; i < 6; i++)
        bad[i] = paper_of(t, uid, qid, i, 100);
    bad[0].cents = -1;
    bad[1].outcome = OUTCOME_FAILED;
    bad[2].doi = str_from(longer, 256); /* the syncer could never write it */
    bad[3].doi = STR("10.1/\xff");
    bad[4].qid = str_from(longer, 65);
    bad[5].result = STR("");
    for (int i = 0; i < 6; i++) {
        enum charge_outcome out;
        is_int(ledger_charge(t, n.ledger, 1, &bad[i], &out), ERR_INVALID, "%s", task_error(t));
    }
    struct charge odd = paper_of(t, uid, qid, 7, 100);
    odd.doi = STR("10.1000/a\"b\\c\xe4\xb8\xad");
    is_int(pay(t, &n, odd), CHARGE_DONE, "a DOI with quotes and more");
    ok(ledger_sync(t, n.ledger, uid) == 0 && charges_of(t, &n, uid) == 1, "comes to MySQL");
    is_int(sql_number(t, &n,
                      "SELECT COUNT(*) FROM billing_log WHERE uid = ?"
                      " AND doi = '10.1000/a\"b\\\\c\xe4\xb8\xad'",
                      uid),
           1, "as it is");
    close_node(t, &n);
}

/* --- many at once --- */

struct many {
    struct node *n;
    int64_t uid;
    struct str qid;
    int papers, next;
    int outcomes[4], errors;
};

static void charge_next(struct task *t, void *arg)
{
    struct many *m = arg;
    int i = m->next++;
    int out = pay(t, &m->n[i % 2], paper_of(t, m->uid, m->qid, i / 2 % m->papers, 10));
    if (out < 0)
        m->errors++;
    else
        m->outcomes[out]++;
}

static void test_together(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    open_node(t, &n[0]);
    open_node(t, &n[1]);
    struct many m = {.n = n, .uid = add_user(t, n, 1000), .papers = 300};
    m.qid = add_run(t, n, m.uid);
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 1200; i++) /* each paper twice by each node */
        check(task_go(&g, "charge", charge_next, &m) == 0);
    check(group_join(t, &g) == 0);
    is_int(m.errors, 0, "1,200 tasks of two nodes charge 300 papers, money for 100");
    is_int(m.outcomes[CHARGE_DONE], 100, "100 are charged");
    is_int(in_redis(t, n, m.uid), 0, "no cent is left");
    is_int(ask_int(t, n, STR("HLEN"), key_result(task_arena(t), m.uid, m.qid), STR_NULL), 100,
           "100 have results");
    ok(ledger_sync(t, n[0].ledger, m.uid) == 0 && charges_of(t, n, m.uid) == 100 &&
           every_cent(t, n, m.uid),
       "and come to MySQL");
    ok(m.outcomes[CHARGE_EXISTS] + m.outcomes[CHARGE_FUNDS] == 1100, "the other calls return that");
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

static bool same_list(struct task *t, struct node *n, struct str a, struct str b, int64_t count)
{
    const struct redis_reply *x, *y;
    check(redis_call(t, n->redis, a, &x, STR("LRANGE"), a, STR("0"), STR("-1")) == 0);
    check(redis_call(t, n->redis, b, &y, STR("LRANGE"), b, STR("0"), STR("-1")) == 0);
    bool same = x->count == y->count && (int64_t)x->count == count;
    for (size_t i = 0; same && i < x->count; i++) {
        same = str_eq(x->items[i]->str, y->items[i]->str);
        for (size_t k = 0; same && k < i; k++)
            same = !str_eq(x->items[i]->str, x->items[k]->str);
    }
    return same;
}

/* A batch must do what the same charges do one by one. */
static void test_batch_is_single(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid[2] = {add_user(t, &n, 1500), add_user(t, &n, 1500)};
    struct str qid[2] = {add_run(t, &n, uid[0]), add_run(t, &n, uid[1])};
    struct charge many[CHARGE_MANY_MAX];
    enum charge_outcome out[CHARGE_MANY_MAX];
    uint64_t seed = loop_random(task_loop(t)), x = seed;
    int differ = 0;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < CHARGE_MANY_MAX; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            many[i] = paper_of(t, uid[0], qid[0], (int)(x >> 33) % 60, (int64_t)(x >> 40) % 70);
            if ((x >> 50) % 4 == 0) {
                many[i].cents = 0;
                many[i].outcome = OUTCOME_FAILED;
            }
        }
        check(ledger_charge(t, n.ledger, CHARGE_MANY_MAX, many, out) == 0);
        for (int i = 0; i < CHARGE_MANY_MAX; i++) {
            many[i].uid = uid[1];
            many[i].qid = qid[1];
            differ += pay(t, &n, many[i]) != (int)out[i];
        }
    }
    is_int(differ, 0, "a batch has the outcomes of its papers (seed %llu)",
           (unsigned long long)seed);
    const char *const fields[] = {"finished", "relevant", "failed", "cost"};
    for (int i = 0; i < 4; i++)
        is_int(of_status(t, &n, uid[0], qid[0], fields[i]),
               of_status(t, &n, uid[1], qid[1], fields[i]), "and counts %s alike", fields[i]);
    ok(in_redis(t, &n, uid[0]) == in_redis(t, &n, uid[1]) &&
           queued(t, &n, uid[0]) == queued(t, &n, uid[1]) &&
           failed_papers(t, &n, uid[0], qid[0]) == failed_papers(t, &n, uid[1], qid[1]),
       "with the same money, records and failures");
    struct arena *a = task_arena(t);
    ok(same_list(t, &n, key_arrivals(a, uid[0], qid[0]), key_arrivals(a, uid[1], qid[1]),
                 of_status(t, &n, uid[0], qid[0], "finished")) &&
           same_list(t, &n, key_relevant(a, uid[0], qid[0]), key_relevant(a, uid[1], qid[1]),
                     of_status(t, &n, uid[0], qid[0], "relevant")),
       "and the same papers in the same order, each once");
    check(ledger_sync(t, n.ledger, uid[0]) == 0);
    ok(every_cent(t, &n, uid[0]) && every_cent(t, &n, uid[1]), "every cent is there");
    close_node(t, &n);
}

/* --- calls that are not plain: what must not be written as it came --- */

static struct charge failure_of(struct charge c)
{
    c.cents = 0;
    c.outcome = OUTCOME_FAILED;
    c.result = STR("{\"ai_result\":null,\"block_key\":\"\"}");
    return c;
}

/* The outcomes, a letter each. */
static const char *pay_many(struct task *t, struct node *n, size_t count, const struct charge *c)
{
    static char letters[CHARGE_MANY_MAX + 1];
    enum charge_outcome out[CHARGE_MANY_MAX];
    int err = ledger_charge(t, n->ledger, count, c, out);
    for (size_t i = 0; i < count; i++)
        letters[i] = err ? '!' : "DEFS"[out[i]]; /* done, exists, funds, stopped */
    letters[count] = '\0';
    return letters;
}

static void test_twice_in_a_call(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 100);
    struct str qid = add_run(t, &n, uid), arrivals = key_arrivals(task_arena(t), uid, qid);
    struct charge c[4];
    for (int i = 0; i < 4; i++)
        c[i] = paper_of(t, uid, qid, i, 10);
    c[2] = c[0];
    c[2].result = STR("{\"ai_result\":{\"n\":9},\"block_key\":\"\"}");
    is_str(str_of(pay_many(t, &n, 4, c)), STR("DDED"), "a paper that comes twice is charged once");
    is_str(result_of(t, &n, &c[0]), c[0].result, "its first result stays");
    ok(in_redis(t, &n, uid) == 70 && queued(t, &n, uid) == 3 && progress(t, &n, uid, qid) == 3 &&
           of_status(t, &n, uid, qid, "finished") == 3 &&
           of_status(t, &n, uid, qid, "relevant") == 1 && of_status(t, &n, uid, qid, "cost") == 30,
       "and counts once");
    is_int(ask_int(t, &n, STR("LLEN"), arrivals, STR_NULL), 3, "and has arrived once");
    check(ledger_sync(t, n.ledger, uid) == 0);
    ok(charges_of(t, &n, uid) == 3 && every_cent(t, &n, uid), "every cent is there");
    close_node(t, &n);
}

static void test_mixed(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 100);
    struct str qid = add_run(t, &n, uid);
    struct charge c[8];
    for (int i = 0; i < 8; i++)
        c[i] = paper_of(t, uid, qid, i, 10);
    const struct charge before[] = {c[0], failure_of(c[1]), failure_of(c[2])};
    is_str(str_of(pay_many(t, &n, 3, before)), STR("DDD"), "a verdict and two failures");
    is_int(in_redis(t, &n, uid), 90, "of which one is paid for");
    c[2] = failure_of(c[2]);
    c[3].cents = 60;
    c[4].cents = 21; /* 20 are left by now */
    c[5] = failure_of(c[5]);
    c[6].cents = 15;
    c[7].cents = 6; /* 5 */
    is_str(str_of(pay_many(t, &n, 8, c)), STR("EDEDFDDF"),
           "each of a mixed call has what it would have alone");
    ok(in_redis(t, &n, uid) == 5 && queued(t, &n, uid) == 4 && progress(t, &n, uid, qid) == 6 &&
           of_status(t, &n, uid, qid, "finished") == 6 &&
           of_status(t, &n, uid, qid, "failed") == 2 && failed_papers(t, &n, uid, qid) == 2 &&
           of_status(t, &n, uid, qid, "relevant") == 2 && of_status(t, &n, uid, qid, "cost") == 95,
       "and is counted so");
    is_str(result_of(t, &n, &c[1]), c[1].result, "a verdict takes the place of a failure");
    ok(!result_of(t, &n, &c[4]).p && !result_of(t, &n, &c[7]).p, "what is not paid is not there");
    for (int i = 0; i < 3; i++)
        c[i] = paper_of(t, uid, qid, 10 + i, 2);
    is_str(str_of(pay_many(t, &n, 3, c)), STR("DDF"), "money for two of three");
    is_int(in_redis(t, &n, uid), 1, "two are taken");
    check(ledger_sync(t, n.ledger, uid) == 0);
    ok(charges_of(t, &n, uid) == 6 && every_cent(t, &n, uid), "every cent is there");
    close_node(t, &n);
}

/* That they are right is seen when they are read. */
static bool all_have_sums(struct task *t, struct node *n, int64_t uid)
{
    struct str key = key_billing_queue(task_arena(t), uid);
    const struct redis_reply *r;
    check(redis_call(t, n->redis, key, &r, STR("LRANGE"), key, STR("0"), STR("-1")) == 0);
    size_t with = 0;
    for (size_t i = 0; i < r->count; i++)
        with += str_find(r->items[i]->str, STR(",\"sum\":\"")) > 0;
    return r->count > 0 && with == r->count;
}

static void test_records(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000000);
    struct str qid = add_run(t, &n, uid);
    struct charge c[36];
    for (int i = 0; i < 36; i++)
        c[i] = paper_of(t, uid, qid, i, i < 24 ? 7 : 100 + i / 2);
    c[17].doi = STR("10.1000/\"\\\n\xe4\xb8\xad");
    c[30].doi = STR("10.1000/\x01");
    const size_t calls[] = {4, 8, 12, 12}; /* across tens; odd DOIs; prices */
    for (size_t i = 0, at = 0; i < 4; at += calls[i++])
        check(strspn(pay_many(t, &n, calls[i], c + at), "D") == calls[i]);
    struct ledger_batch b;
    check(ledger_batch_read(t, n.ledger, uid, &b) == 0);
    bool right = b.count == 36;
    for (size_t i = 0; right && i < b.count; i++) {
        const struct ledger_record *r = &b.records[i];
        right = r->seq == (int64_t)i + 1 && r->cents == c[i].cents && str_eq(r->doi, c[i].doi) &&
                str_eq(r->qid, qid) && loop_wall_ms(task_loop(t)) - r->at_ms < 60000;
    }
    ok(right, "records have their numbers, papers, runs, prices and times");
    ok(all_have_sums(t, &n, uid), "and checksums, which are right");
    ok(ledger_sync(t, n.ledger, uid) == 0 && every_cent(t, &n, uid), "and come to MySQL");
    const struct str big = STR("4503599627370497"); /* more than %.14g could tell */
    say(t, &n, STR("HSET"), key_ledger(task_arena(t), uid), STR("seq"), big);
    struct charge more = paper_of(t, uid, qid, 50, 1);
    check(pay(t, &n, more) == CHARGE_DONE && ledger_batch_read(t, n.ledger, uid, &b) == 0);
    is_int(b.records[0].seq, 4503599627370498, "however large the number is");
    ok(all_have_sums(t, &n, uid), "its checksum is right, too");
    close_node(t, &n);
}

/* --- cut short --- */

/* Redis dies during a charge: the repeated charge is idempotent. */
static void charge_until_done(struct task *t, void *arg)
{
    struct many *m = arg;
    int i = m->next++;
    for (int tries = 0; tries < 500; tries++) {
        enum charge_outcome out;
        struct charge c = paper_of(t, m->uid, m->qid, i, 1);
        int err = ledger_charge(t, m->n->ledger, 1, &c, &out);
        if (!err) {
            m->outcomes[out]++;
            return;
        }
        pause_ms(t, 10);
    }
    m->errors++;
}

static void test_terminate(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct many m = {.n = &n, .uid = add_user(t, &n, 100000)};
    m.qid = add_run(t, &n, m.uid);
    struct group g;
    group_init(&g, task_loop(t));
    check(pay(t, &n, paper_of(t, m.uid, m.qid, 5000, 0)) == CHARGE_DONE); /* all is prepared */
    for (int i = 0; i < 2000; i++) {
        check(task_go(&g, "charge", charge_until_done, &m) == 0);
        if (i % 500 == 499 && i < 1500)
            check(task_yield(t) == 0 && task_yield(t) == 0); /* these are on their way */
    }
    set_state(t, &n, m.uid, m.qid, STR("CANCELLED"));
    int64_t left = in_redis(t, &n, m.uid);
    check(group_join(t, &g) == 0);
    is_int(in_redis(t, &n, m.uid), left, "nothing is charged once a run is terminated");
    ok(m.outcomes[CHARGE_STOPPED] > 0 && m.outcomes[CHARGE_DONE] > 0 &&
           m.outcomes[CHARGE_DONE] + m.outcomes[CHARGE_STOPPED] == 2000,
       "%d papers were stopped, %d charged", m.outcomes[CHARGE_STOPPED], m.outcomes[CHARGE_DONE]);
    is_int(left, 100000 - m.outcomes[CHARGE_DONE], "and paid for");
    close_node(t, &n);
}

/* --- what MySQL no longer has --- */

static void test_mysql_older(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid);
    for (int i = 0; i < 3; i++)
        check(pay(t, &n, paper_of(t, uid, qid, i, 100)) == CHARGE_DONE);
    check(ledger_sync(t, n.ledger, uid) == 0);
    sql_do(t, &n, "UPDATE user_info SET balance = 9.00, billed_seq = 1 WHERE uid = ?", uid);
    sql_do(t, &n, "DELETE FROM billing_log WHERE uid = ? AND source = 'redis' AND number > 1", uid);
    check(pay(t, &n, paper_of(t, uid, qid, 3, 100)) == CHARGE_DONE); /* no node has noticed yet */
    int64_t before = alarms();
    is_int(ledger_sync(t, n.ledger, uid), ERR_INTERNAL, "the syncer sees that MySQL is older");
    is_int(alarms() - before, 1, "an alarm");
    enum charge_outcome out;
    struct charge c = paper_of(t, uid, qid, 4, 100);
    is_int(ledger_charge(t, n.ledger, 1, &c, &out), ERR_INTERNAL, "and nothing more is charged");
    ok(in_mysql(t, &n, uid) == 900 && queued(t, &n, uid) == 1, "nor written");
    sql_do(t, &n, "UPDATE user_info SET balance = 7.00, billed_seq = 3 WHERE uid = ?", uid);
    is_int(pay(t, &n, c), CHARGE_DONE, "until MySQL has all of it again");
    ok(ledger_sync(t, n.ledger, uid) == 0 && in_mysql(t, &n, uid) == 500 &&
           in_redis(t, &n, uid) == 500,
       "and goes on");
    close_node(t, &n);
}

/* --- how fast --- */

#define FAST_TASKS 16
static int fast_left;

static void charge_fast(struct task *t, void *arg)
{
    struct many *m = arg;
    while (fast_left > 0) {
        struct task_scope scope = task_scope(t);
        struct charge c[CHARGE_MANY_MAX];
        enum charge_outcome out[CHARGE_MANY_MAX];
        size_t count = 0;
        while (count < CHARGE_MANY_MAX && fast_left > 0)
            c[count++] = paper_of(t, m->uid, m->qid, fast_left--, 3);
        int err = ledger_charge(t, m->n->ledger, count, c, out);
        for (size_t i = 0; i < count; i++)
            m->errors += err || out[i] != CHARGE_DONE;
        task_scope_end(t, scope);
    }
}

static void test_rate(struct task *t, void *arg)
{
    struct node n;
    open_node(t, &n);
    int count = fast_left = *(int *)arg;
    struct many m = {.n = &n, .uid = add_user(t, &n, 1000000000)};
    m.qid = add_run(t, &n, m.uid);
    struct group g;
    group_init(&g, task_loop(t));
    int64_t begun_us = loop_now_us(task_loop(t));
    for (int i = 0; i < FAST_TASKS; i++)
        check(task_go(&g, "charge", charge_fast, &m) == 0);
    check(group_join(t, &g) == 0);
    double seconds = (double)(loop_now_us(task_loop(t)) - begun_us) / 1e6;
    is_int(m.errors, 0, "%d papers by %d tasks", count, FAST_TASKS);
    printf("# %.0f charges per second\n", count / seconds);
    is_int(in_redis(t, &n, m.uid), 1000000000 - 3 * (int64_t)count, "each paid for");
    close_node(t, &n);
}

/* --- MySQL is slower than the AI --- */

struct late {
    struct node *n;
    struct charge c;
    bool charged;
};

static void charge_late(struct task *t, void *arg)
{
    struct late *x = arg;
    x->charged = pay(t, x->n, x->c) == CHARGE_DONE;
}

static void test_back_pressure(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    say(t, &n, STR("DEL"), key_billing); /* users of other tests */
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid);
    struct ledger_pace *p = &n.ledger->pace;
    for (int i = 0; i < 3; i++)
        check(pay(t, &n, paper_of(t, uid, qid, i, 1)) == CHARGE_DONE);
    is_int(p->waiting, 3, "charges count as records that wait");
    check(ledger_round(t, n.ledger) == 0);
    is_int(p->waiting, 0, "until they are in MySQL");
    *p = (struct ledger_pace){
        .waiting = 1000000, .record_ns = 10000, .at_ms = loop_now_ms(task_loop(t))};
    struct late x = {.n = &n, .c = paper_of(t, uid, qid, 3, 1)};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "late", charge_late, &x) == 0);
    pause_ms(t, 200);
    ok(!x.charged && queued(t, &n, uid) == 0, "ten seconds of records hold up a charge");
    p->waiting = 100000;
    check(group_join(t, &g) == 0);
    ok(x.charged && queued(t, &n, uid) == 1, "one second does not");
    *p = (struct ledger_pace){
        .waiting = 1000000, .record_ns = 10000, .at_ms = loop_now_ms(task_loop(t)) - 5001};
    is_int(pay(t, &n, paper_of(t, uid, qid, 4, 1)), CHARGE_DONE, "nor do any while MySQL is away");
    check(ledger_round(t, n.ledger) == 0);
    is_int(p->waiting, 0, "a round counts anew");
    close_node(t, &n);
}

int main(int argc, char **argv)
{
    int64_t fast = 20000;
    if (argc > 1)
        check(str_to_i64(str_of(argv[1]), &fast));
    start_stores();
    tap_task(test_outcomes, NULL, true);
    tap_task(test_states, NULL, true);
    tap_task(test_unknown_run, NULL, true);
    tap_task(test_failed, NULL, true);
    tap_task(test_invalid, NULL, true);
    tap_task(test_together, NULL, true);
    tap_task(test_batch_is_single, NULL, true);
    tap_task(test_twice_in_a_call, NULL, true);
    tap_task(test_mixed, NULL, true);
    tap_task(test_records, NULL, true);
    tap_task(test_terminate, NULL, true);
    tap_task(test_mysql_older, NULL, true);
    tap_task(test_rate, &(int){(int)fast}, true);
    tap_task(test_back_pressure, NULL, true);
    return stop_stores();
}
