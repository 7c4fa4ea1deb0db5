/* Distillations on real stores: what they cost, what is frozen, and where chunks come from. */
#include "app/distill/distill.h"

#include "engine/crew/chunks.h"
#include "engine/money/ledger_fixture.h"
#include "engine/chosen/frozen.h"
#include "engine/runs/row.h"

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
static void open_empty(struct task *t, struct node *n)
{
    static const char *const tables[] = {"DELETE FROM query_log", "DELETE FROM search_result",
                                         "DELETE FROM distill_paper", "DELETE FROM distillation"};
    open_node(t, n);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        check(sql_call(t, n->sql, NULL, tables[i]) == 0);
    say(t, n, STR("FLUSHALL"));
}

/* --- runs to distil --- */

#define PRICES                                                                                     \
    "{\"question\": \"q\", \"journals\": [{\"name\": \"J1\", \"price\": 1},"                       \
    " {\"name\": \"J: 3\", \"price\": 3}, {\"name\": \"J7\", \"price\": 7}]}"

static struct run_id add_original(struct task *t, struct node *n, int64_t uid, const char *state,
                                  bool archived, const char *params)
{
    static int made;
    struct str qid = str_printf(task_arena(t), "original%d", made++);
    check(sql_call(t, n->sql, NULL,
                   "INSERT INTO query_log (query_id, uid, status, archived, search_params)"
                   " VALUES (?, ?, ?, ?, ?)",
                   sql_text(qid), sql_int(uid), sql_text(str_of(state)), sql_int(archived),
                   sql_text(str_of(params))) == 0);
    return (struct run_id){uid, qid};
}

/* relevant: 1, 0, or -1 for failed ones. Papers are numbered from first on. */
static void add_results(struct task *t, struct node *n, struct run_id id, const char *journal,
                        int first, int count, int relevant)
{
    struct str block = key_block_name(task_arena(t), str_of(journal), 2020);
    check(sql_call(t, n->sql, NULL,
                   "INSERT INTO search_result (uid, query_id, doi, block_key, relevant, ai_result)"
                   " SELECT ?, ?, CONCAT('10.1000/', LPAD(? + seq, 6, '0')), ?, ?, '{}'"
                   " FROM seq_0_to_99999 WHERE seq < ?",
                   sql_int(id.uid), sql_text(id.qid), sql_int(first), sql_text(block),
                   relevant < 0 ? sql_null() : sql_int(relevant), sql_int(count)) == 0);
}

/* 6 relevant papers, at 1, 3 and 7 points: 3 * 10 + 2 * 30 + 70 cents. */
static struct run_id add_usual(struct task *t, struct node *n, int64_t uid)
{
    struct run_id id = add_original(t, n, uid, "DONE", true, PRICES);
    add_results(t, n, id, "J1", 0, 3, 1);
    add_results(t, n, id, "J: 3", 10, 2, 1);
    add_results(t, n, id, "J7", 20, 1, 1);
    add_results(t, n, id, "J7", 30, 9, 0);
    add_results(t, n, id, "J1", 40, 9, -1);
    return id;
}

static int64_t new_user(struct task *t, struct node *n, int64_t cents)
{
    int64_t uid = add_user(t, n, cents);
    sql_do(t, n, "UPDATE user_info SET permission = 1 WHERE uid = ?", uid);
    return uid;
}

static int submit(struct task *t, struct node *n, struct run_id original, struct run_id *out)
{
    struct runs r = runs_of(n);
    char qid[RUN_ID_BYTES];
    int err = distill_submit(t, &r, original, STR("And \"dry\"?"), STR_NULL, qid);
    if (!err)
        *out = (struct run_id){original.uid, str_dup(task_arena(t), str_of(qid))};
    return err;
}

static int64_t cost_of(struct task *t, struct node *n, struct run_id original)
{
    struct runs r = runs_of(n);
    struct distill_estimate e;
    int err = distill_estimate(t, &r, original, &e);
    return err ? err : e.cents;
}

/* As the engine has it. */
static struct app_run run_of(struct task *t, struct node *n, struct run_id id)
{
    struct sql_rows r;
    struct app_run run = {.id = id};
    check(sql_call(t, n->sql, &r, "SELECT search_params FROM query_log WHERE query_id = ?",
                   sql_text(id.qid)) == 0 &&
          r.count == 1 && json_parse(task_arena(t), r.cells[0].s, &run.params, NULL) == 0);
    return run;
}

/* "<last digits of the DOI>=<cents> …" of all chunks; "!" and an error. */
static struct str papers_of(struct task *t, struct node *n, struct run_id id)
{
    struct app_run run = run_of(t, n, id);
    struct str *chunks;
    size_t count, papers;
    struct buf b;
    buf_init(&b);
    int err = chunks_split(t, NULL, &run, &chunks, &count);
    for (size_t i = 0; !err && i < count; i++) {
        struct app_paper *p;
        err = chunks_papers(t, n->redis, n->sql, &run, chunks[i], DISTILL_CENTS, &p, &papers);
        buf_printf(&b, "%s", i ? "| " : "");
        for (size_t k = 0; !err && k < papers; k++) {
            check(p[k].year == 2020 && str_starts(p[k].journal, STR("J")));
            buf_printf(&b, "%.*s=%lld ", 2, p[k].doi.p + p[k].doi.n - 2, (long long)p[k].cents);
        }
    }
    if (err)
        buf_printf(&b, "!%s", err_name(err));
    struct str out = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return out;
}

#define USUAL STR("00=10 01=10 02=10 20=70 10=30 11=30 ") /* by block, then DOI */

/* --- the tests --- */

static void test_cost(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct runs r;
    struct distill_estimate e = {.papers = -1};
    struct run_id id, again;
    open_empty(t, &n);
    r = runs_of(&n);
    int64_t uid = new_user(t, &n, 160);
    struct run_id original = add_usual(t, &n, uid);
    ok(distill_estimate(t, &r, original, &e) == 0 && e.papers == 6 && e.cents == 160,
       "a tenth of 1, 3 and 7 points, to the cent");
    is_int(submit(t, &n, original, &id), 0, "the last cent pays for it");
    is_str(papers_of(t, &n, id), USUAL, "its papers, and what each costs");
    struct run_view v;
    ok(run_view(t, &r, id, &v) == 0 && v.state == RUN_QUEUED && v.papers == 6 &&
           v.is_distillation && str_eq(v.original_query_id, original.qid) &&
           str_eq(v.question, STR("And \"dry\"?")),
       "its user sees what it is");
    struct str *ids;
    size_t count = 0;
    ok(run_distillations(t, &r, original, &ids, &count) == 0 && count == 1 &&
           str_eq(ids[0], id.qid),
       "and that the original has it");
    ok(run_distillations(t, &r, (struct run_id){uid + 1, original.qid}, &ids, &count) == 0 &&
           count == 0,
       "but not to another user");
    /* It ends, and is distilled again. */
    check(sql_call(t, n.sql, NULL,
                   "UPDATE query_log SET status = 'CANCELLED', archived = 1 WHERE query_id = ?",
                   sql_text(id.qid)) == 0);
    add_results(t, &n, id, "J: 3", 10, 1, 1);
    add_results(t, &n, id, "J7", 20, 1, 1);
    add_results(t, &n, id, "J1", 0, 1, 0);
    is_int(cost_of(t, &n, id), 100, "a paper costs the same at every level");
    is_int(submit(t, &n, id, &again), 0, "a distillation is distilled");
    is_str(papers_of(t, &n, again), STR("20=70 10=30 "), "those that were relevant twice");
    sql_do(t, &n, "UPDATE user_info SET balance = 1.59 WHERE uid = ?", uid);
    say(t, &n, STR("FLUSHALL"));
    is_int(submit(t, &n, original, &again), ERR_FUNDS, "one cent less does not pay for it");
    close_node(t, &n);
}

static void test_refused(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct run_id id;
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 100000), other = new_user(t, &n, 100000);
    static const char *const states[] = {"QUEUED", "RUNNING", "PAUSED", "FAILED"};
    for (size_t i = 0; i < 4; i++) {
        struct run_id not_yet = add_original(t, &n, uid, states[i], true, PRICES);
        add_results(t, &n, not_yet, "J1", 0, 3, 1);
        is_int(cost_of(t, &n, not_yet), ERR_CONFLICT, "no estimate: %s", states[i]);
        is_int(submit(t, &n, not_yet, &id), ERR_CONFLICT, "no distillation: %s", states[i]);
    }
    struct run_id early = add_original(t, &n, uid, "DONE", false, PRICES);
    add_results(t, &n, early, "J1", 0, 3, 1);
    is_int(cost_of(t, &n, early), ERR_CONFLICT, "not archived");
    is_int(submit(t, &n, early, &id), ERR_CONFLICT, "likewise");
    struct run_id usual = add_usual(t, &n, uid), theirs = {other, usual.qid};
    is_int(cost_of(t, &n, theirs), ERR_NOT_FOUND, "another's run");
    is_int(submit(t, &n, theirs, &id), ERR_NOT_FOUND, "likewise");
    struct run_id none = add_original(t, &n, uid, "DONE", true, PRICES);
    add_results(t, &n, none, "J1", 0, 3, 0);
    is_int(cost_of(t, &n, none), 0, "nothing relevant costs nothing");
    is_int(submit(t, &n, none, &id), ERR_CONFLICT, "and cannot be distilled");
    sql_do(t, &n, "UPDATE user_info SET permission = 0 WHERE uid = ?", uid);
    is_int(submit(t, &n, usual, &id), ERR_FORBIDDEN, "permission 0");
    sql_do(t, &n, "UPDATE user_info SET permission = 1, banned = 1 WHERE uid = ?", uid);
    is_int(submit(t, &n, usual, &id), ERR_FORBIDDEN, "banned");
    sql_do(t, &n, "UPDATE user_info SET banned = 0 WHERE uid = ?", uid);
    is_int(sql_number(t, &n,
                      "SELECT (SELECT COUNT(*) FROM distill_paper) + (SELECT COUNT(*) FROM"
                      " distillation) + (SELECT COUNT(*) FROM query_log WHERE is_distillation = ?)",
                      1),
           0, "nothing was written");
    for (int i = 0; i < RUN_QUEUED_MAX - 1; i++)
        (void)add_original(t, &n, uid, "QUEUED", false, PRICES);
    is_int(submit(t, &n, usual, &id), ERR_RATE, "a hundred wait, with the one above");
    close_node(t, &n);
}

/* A run of another system says nothing of prices. */
static void test_price_of_today(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct catalog_size size;
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    check(sql_call(t, n.sql, NULL, "REPLACE INTO contentlist (Name, Price) VALUES ('J1', 4)") ==
              0 &&
          catalog_load(t, n.redis, n.sql, &size) == 0);
    struct run_id old = add_original(t, &n, uid, "DONE", true, "{\"query\": \"old\"}");
    add_results(t, &n, old, "J1", 0, 3, 1);
    is_int(cost_of(t, &n, old), 120, "then it is the price of today");
    add_results(t, &n, old, "J9", 10, 1, 1);
    is_int(cost_of(t, &n, old), ERR_CONFLICT, "a journal that is gone has none");
    struct run_id priced = add_usual(t, &n, uid);
    is_int(cost_of(t, &n, priced), 160, "what was frozen does not follow");
    close_node(t, &n);
}

static void test_frozen(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct run_id id;
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    struct run_id original = add_usual(t, &n, uid);
    check(submit(t, &n, original, &id) == 0);
    /* The original goes on, and has other results and prices after that. */
    add_results(t, &n, original, "J7", 50, 5, 1);
    check(sql_call(t, n.sql, NULL,
                   "UPDATE search_result SET relevant = 0 WHERE query_id = ? AND block_key LIKE"
                   " '%J1%'",
                   sql_text(original.qid)) == 0 &&
          sql_call(t, n.sql, NULL,
                   "UPDATE query_log SET status = 'RUNNING', archived = 0, search_params ="
                   " REPLACE(search_params, '7', '9') WHERE query_id = ?",
                   sql_text(original.qid)) == 0);
    is_str(papers_of(t, &n, id), USUAL, "the distillation is as it was submitted");
    say(t, &n, STR("FLUSHALL"));
    is_str(papers_of(t, &n, id), USUAL, "also for a Redis that has lost everything");
    struct str key = key_chunk(task_arena(t), uid, id.qid, 0);
    ok(ask_int(t, &n, STR("PTTL"), key, STR_NULL) > FROZEN_CHUNK_TTL_MS - 60000,
       "what is in Redis ends by itself");
    static const char *const damages[] = {"", "x", "10.1000/000010", "10.1000/000010 meta:K:2020"};
    for (size_t i = 0; i < 4; i++) {
        say(t, &n, STR("LSET"), key, STR("0"), str_of(damages[i]));
        is_str(papers_of(t, &n, id), USUAL, "a damaged chunk is made anew: '%s'", damages[i]);
    }
    say(t, &n, STR("RPOP"), key);
    is_str(papers_of(t, &n, id), USUAL, "and one that lacks a paper");
    check(sql_call(t, n.sql, NULL, "DELETE FROM distill_paper WHERE query_id = ?",
                   sql_text(id.qid)) == 0);
    is_str(papers_of(t, &n, id), USUAL, "a whole one is enough");
    say(t, &n, STR("DEL"), key);
    is_str(papers_of(t, &n, id), STR("!proto"), "there is nowhere else that they could be");
    close_node(t, &n);
}

static void test_chunks(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct run_id id;
    struct str *names;
    struct app_paper *papers;
    size_t count = 0, size = 0, sum = 0;
    int64_t cents = 0;
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 100000000);
    struct run_id original = add_original(t, &n, uid, "DONE", true, PRICES);
    add_results(t, &n, original, "J1", 0, 150, 1);
    add_results(t, &n, original, "J7", 1000, 151, 1);
    check(submit(t, &n, original, &id) == 0);
    struct app_run run = run_of(t, &n, id);
    is_int(chunks_split(t, NULL, &run, &names, &count), 0, "301 papers");
    is_int((int64_t)count, 4, "are four chunks");
    for (size_t i = 0; i < count; i++) {
        check(chunks_papers(t, n.redis, n.sql, &run, names[i], DISTILL_CENTS, &papers, &size) == 0);
        sum += size;
        check(size == (i < 3 ? 100 : 1));
        for (size_t k = 0; k < size; k++)
            cents += papers[k].cents;
    }
    is_int((int64_t)sum, 301, "all of them, a hundred at most in each");
    is_int(cents, 150 * 10 + 151 * 70, "for what was estimated");
    is_int(cost_of(t, &n, original), cents, "exactly");
    struct arena *a = task_arena(t);
    const struct str strange[] = {key_block_name(a, STR("J1"), 2020),
                                  key_chunk(a, uid, id.qid, 4),
                                  key_chunk(a, uid, id.qid, -1),
                                  key_chunk(a, uid, original.qid, 0),
                                  key_chunk(a, uid + 1, id.qid, 0),
                                  str_printf(a, "%.*s0", STR_ARG(names[0])),
                                  STR(""),
                                  STR(":")};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        is_int(chunks_papers(t, n.redis, n.sql, &run, strange[i], DISTILL_CENTS, &papers, &size),
               ERR_PROTO, "'%.*s' is no unit of it", STR_ARG(strange[i]));
    sql_do(t, &n, "UPDATE user_info SET permission = 40 WHERE uid = ?", uid);
    check(submit(t, &n, original, &id) == 0);
    run = run_of(t, &n, id);
    check(chunks_split(t, NULL, &run, &names, &count) == 0);
    check(chunks_papers(t, n.redis, n.sql, &run, names[count - 1], DISTILL_CENTS, &papers, &size) ==
          0);
    ok(count == 43 && size == 7, "forty workers have chunks of seven");
    sql_do(t, &n, "UPDATE user_info SET permission = 1000 WHERE uid = ?", uid);
    run = run_of(t, &n, id);
    check(chunks_split(t, NULL, &run, &names, &count) == 0);
    is_int((int64_t)count, 43, "which stay as they are");
    check(submit(t, &n, original, &id) == 0);
    run = run_of(t, &n, id);
    check(chunks_split(t, NULL, &run, &names, &count) == 0);
    is_int((int64_t)count, 301, "a thousand have one paper each");
    struct app_run screening = run_of(t, &n, original);
    is_int(chunks_split(t, NULL, &screening, &names, &count), ERR_INVALID,
           "a run without papers of its own has none");
    close_node(t, &n);
}

/* --- the original goes on at the very moment --- */

struct race {
    struct node *node;
    struct group group;
    struct run_id original;
    bool archived; /* again, when the distillation comes to look */
    int err;
};

static void submit_task(struct task *t, void *arg)
{
    struct race *r = arg;
    struct run_id id;
    r->err = submit(t, r->node, r->original, &id);
}

/* The submit has counted the papers, and waits for the lock of the row. */
static int go_on(struct task *t, struct sql *c, void *arg)
{
    struct race *r = arg;
    struct run_row row;
    struct sql_rows waits;
    check(run_row_lock(t, c, r->original, &row) == 0);
    check(task_go(&r->group, "submit", submit_task, r) == 0);
    do {
        pause_ms(t, 5);
        check(sql_call(t, r->node->sql, &waits,
                       "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.global_status"
                       " WHERE VARIABLE_NAME = 'Innodb_row_lock_current_waits'") == 0);
    } while (waits.cells[0].i == 0);
    return sql_on(t, c, NULL,
                  "UPDATE query_log SET changed_at = changed_at + INTERVAL 1 SECOND, archived = ?"
                  " WHERE query_id = ?",
                  sql_int(r->archived), sql_text(r->original.qid));
}

static void test_race(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    for (int i = 0; i < 2; i++) {
        struct race r = {.node = &n, .original = add_usual(t, &n, uid), .archived = i == 1};
        group_init(&r.group, task_loop(t));
        check(sql_tx(t, n.sql, go_on, &r) == 0 && group_join(t, &r.group) == 0);
        is_int(r.err, ERR_CONFLICT, "the original went on%s", i ? ", and ended again" : "");
    }
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM query_log WHERE is_distillation = 1 AND uid = ?",
                      uid),
           0, "nothing was written");
    close_node(t, &n);
}

static void test_without_redis(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct run_id id;
    open_empty(t, &n);
    int64_t uid = new_user(t, &n, 100000);
    struct run_id original = add_usual(t, &n, uid);
    uint64_t epoch = redis_epoch(n.redis);
    store_redis_kill(&store);
    while (cache_trusts_redis(n.cache))
        pause_ms(t, 2);
    is_int(cost_of(t, &n, original), 160, "what it costs can be told");
    is_int(submit(t, &n, original, &id), ERR_UNAVAILABLE, "but nothing is submitted");
    store_redis_spawn(&store, NULL);
    await_new_redis(t, &n, epoch);
    is_int(submit(t, &n, original, &id), 0, "until Redis is back");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_cost, NULL, true);
    tap_task(test_refused, NULL, true);
    tap_task(test_price_of_today, NULL, true);
    tap_task(test_frozen, NULL, true);
    tap_task(test_chunks, NULL, true);
    tap_task(test_race, NULL, true);
    tap_task(test_without_redis, NULL, true);
    return stop_stores();
}
