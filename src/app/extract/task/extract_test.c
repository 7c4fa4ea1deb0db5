/* Documents are worked on, on real stores, by a made-up AI: paid once, whatever dies when. */
#include "app/extract/task/extract_fixture.h"

/* What the AI does, and has done. */
static int asked, wrongs;     /* so many first answers are wrong */
static int service;           /* error of the service, or 0 */
static int64_t thinks_ms;     /* before it answers */
static bool complained;       /* the last question had a complaint */
static const char *dies_once; /* the step after which the node dies */
static int deaths;

static int made_up_ask(struct task *t, struct extract *x, const struct extract_query *q,
                       struct extract_answer *out)
{
    (void)x;
    asked++;
    complained = q->complaint.p != NULL;
    int err = thinks_ms ? task_sleep(t, thinks_ms) : 0;
    if (err)
        return err;
    if (service)
        return task_fail(t, service, "the AI service cannot be reached");
    if (wrongs > 0) {
        wrongs--;
        out->complaint = "dose: must be a number";
        return 0;
    }
    struct extract_value *v = ARENA_NEW(task_arena(t), struct extract_value);
    v->text = str_printf(task_arena(t), "of part %zu", q->reading.part);
    v->quote = str_dup(task_arena(t), str_from(q->part.p, 4));
    v->part = q->reading.part;
    extract_values_init(task_arena(t), q->reading.template, &out->values);
    out->values.fields[q->reading.part % 2] = (struct extract_found){.items = v, .count = 1};
    out->tokens = 7;
    return 0;
}

/* As a node that is killed, and another that goes on: nothing is told, the job is taken again. */
static int die(struct task *t, const char *after)
{
    if (!dies_once || strcmp(dies_once, after) != 0)
        return 0;
    deaths++;
    dies_once = NULL;
    if (strcmp(after, "part") != 0) /* values that are kept need no text any more */
        sql_do(t, "DELETE FROM document_piece WHERE kind = ?", sql_text(STR("file")));
    return task_fail(t, ERR_CANCELED, "the node dies");
}

static void begin(struct task *t, int64_t cents)
{
    open_user(t, cents);
    asked = wrongs = service = deaths = 0;
    thinks_ms = 0;
    dies_once = NULL;
    config.extract_part_tokens = 24000;
    w->extract->ask = made_up_ask;
    w->extract->dies = die;
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

static struct extract_task view(struct task *t, struct str id)
{
    struct extract_task x;
    check(extract_task_get(t, w->extract, w->uid, id, &x) == 0);
    return x;
}

/* "pending extracting completed errors cancelled" */
static struct str counts(struct task *t, struct str id)
{
    struct extract_counts n = view(t, id).counts;
    return str_printf(task_arena(t), "%lld %lld %lld %lld %lld", (long long)n.pending,
                      (long long)n.extracting, (long long)n.completed, (long long)n.errors,
                      (long long)n.cancelled);
}

static bool comes_to(struct task *t, struct str id, const char *want)
{
    for (int i = 0; i < 3000 && !str_eq(counts(t, id), str_of(want)); i++)
        pause_ms(t, 5);
    bool is = str_eq(counts(t, id), str_of(want));
    if (!is)
        printf("# it is %.*s\n", STR_ARG(counts(t, id)));
    return is;
}

static bool await_asks(struct task *t, int count)
{
    for (int i = 0; i < 3000 && asked < count; i++)
        pause_ms(t, 5);
    return asked >= count;
}

/* As many rounds as it takes to look at all. */
static int close_tasks(struct task *t)
{
    struct role_turn turn = {.locked = false};
    int err = 0;
    do
        err = extract_close_role(t, w->extract, &turn);
    while (!err && w->extract->look.after);
    return err;
}

static struct str first_row(struct task *t, const char *column, struct str id)
{
    return sql_word(t,
                    arena_printf(task_arena(t),
                                 "SELECT %s FROM extraction_result WHERE id = CONCAT(?, '.1')",
                                 column),
                    sql_text(id));
}

/* --- tests --- */

static void test_done(struct task *t, void *arg)
{
    (void)arg;
    struct extract_wish wish = wish_of(3), other;
    struct extract_submitted first, again;
    begin(t, 100);
    wish = wish_of(3);
    wish.request_id = STR("one");
    wish.webhook = STR("https://example.org/hook");
    is_int(extract_submit(t, w->extract, &wish, &first), 0, "promised");
    is_str(money(t), STR("100 30 0"), "three documents are reserved");
    is_int(extract_submit(t, w->extract, &wish, &again), 0, "promised again");
    is_str(again.id, first.id, "it is the same task");
    ok(again.repeated && str_eq(again.webhook_secret, first.webhook_secret),
       "and says the same secret");
    is_str(money(t), STR("100 30 0"), "reserved once");
    other = wish;
    other.document_count = 2;
    is_int(extract_repeated(t, w->extract, &other, &again), ERR_CONFLICT,
           "a request id stands for one request");
    check(close_tasks(t) == 0);
    is_str(view(t, first.id).status, STR("processing"), "it is not closed before its end");
    go(t);
    ok(comes_to(t, first.id, "0 0 3 0 0"), "all are completed");
    is_str(money(t), STR("70 0 3"), "each is paid once, nothing is reserved");
    is_int(asked, 3, "and was asked about once");
    is_str(first_row(t, "missing", first.id), STR("2"), "the second field was not found");
    is_str(first_row(t, "unverified", first.id), STR("1"), "the first is not verified");
    is_str(first_row(t, "tokens", first.id), STR("7"), "and the tokens");
    check(close_tasks(t) == 0 && close_tasks(t) == 0);
    is_str(view(t, first.id).status, STR("completed"), "closed");
    is_str(sql_word(t, "SELECT CAST(COUNT(*) AS SIGNED) FROM webhook_delivery WHERE uid = ?",
                    sql_int(w->uid)),
           STR("1"), "its webhook is told once");
    close_node(t);
}

/* The node dies after a step: nothing that was kept is done again. */
static void test_deaths(struct task *t, void *arg)
{
    (void)arg;
    static const char *const steps[] = {"part", "keep", "pay"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        begin(t, 1000);
        struct buf b;
        buf_init(&b);
        for (int k = 0; k < 60; k++)
            buf_add_lit(&b, "The dose was five milligrams a day.\n\n");
        w->documents[0] = add_document(t, w->uid, 1000 + (int)i, buf_str(&b));
        buf_release(&b);
        config.extract_part_tokens = 400;
        struct str id = submit(t, 1);
        dies_once = steps[i];
        go(t);
        ok(comes_to(t, id, "0 0 1 0 0"), "a node dies after %s: it is completed", steps[i]);
        int64_t parts = 0;
        check(str_to_i64(first_row(t, "parts", id), &parts));
        ok(parts > 1 && deaths == 1 && asked == parts, "%lld parts were asked about once: %d",
           (long long)parts, asked);
        is_str(first_row(t, "missing", id), STR("0"), "with the values of all of them");
        is_str(money(t), STR("990 0 1"), "and paid once");
        close_node(t);
    }
}

static void test_wrong(struct task *t, void *arg)
{
    (void)arg;
    begin(t, 1000);
    wrongs = 2;
    struct str id = submit(t, 1);
    go(t);
    ok(comes_to(t, id, "0 0 1 0 0"), "two wrong answers, then a right one");
    ok(asked == 3 && complained, "the complaint was put to it");
    wrongs = 1000;
    asked = 0;
    id = submit(t, 1);
    ok(comes_to(t, id, "0 0 0 1 0"), "wrong answers alone: an error");
    is_int(asked, EXTRACT_ASKS_MAX, "after so many");
    ok(str_find(first_row(t, "error", id), STR("must be a number")) >= 0, "that says why");
    is_str(money(t), STR("990 0 1"), "it costs nothing, and nothing is reserved");
    check(close_tasks(t) == 0);
    is_str(view(t, id).status, STR("completed"), "a task whose documents failed is closed");
    wrongs = 0;
    struct extract_task x;
    is_int(extract_task_retry(t, w->extract, w->uid, id, &x), 0, "tried again");
    is_str(x.status, STR("processing"), "it is open");
    ok(comes_to(t, id, "0 0 1 0 0"), "completed");
    is_str(money(t), STR("980 0 2"), "and paid");
    check(close_tasks(t) == 0);
    is_str(sql_word(t, "SELECT closed FROM extraction_task WHERE id = ?", sql_text(id)), STR("2"),
           "closed once more");
    is_int(extract_task_retry(t, w->extract, w->uid, id, &x), ERR_CONFLICT,
           "nothing is left to be tried");
    close_node(t);
}

static void test_service(struct task *t, void *arg)
{
    (void)arg;
    begin(t, 1000);
    service = ERR_UNAVAILABLE;
    struct str id = submit(t, 1);
    go(t);
    ok(await_asks(t, 8), "the service is away: asked more often than tries count");
    pause_ms(t, 50);
    struct extract_task x = view(t, id);
    ok(str_eq(x.status, STR("processing")) && str_find(x.waits, STR("cannot be reached")) >= 0,
       "it waits, and says so: %.*s", STR_ARG(x.waits));
    service = 0;
    ok(comes_to(t, id, "0 0 1 0 0"), "it goes on by itself");
    service = ERR_TIMEOUT;
    asked = 0;
    id = submit(t, 1);
    ok(comes_to(t, id, "0 0 0 1 0"), "an error that may pass, and does not: an error");
    is_int(asked, 4, "after three retries");
    service = ERR_REFUSED;
    asked = 0;
    id = submit(t, 1);
    ok(comes_to(t, id, "0 0 0 1 0"), "a request that is refused: an error");
    is_int(asked, 1, "at once");
    is_str(money(t), STR("990 0 1"), "only the first was paid");
    close_node(t);
}

static void test_cancel(struct task *t, void *arg)
{
    (void)arg;
    struct extract_task x;
    begin(t, 1000);
    thinks_ms = 300;
    w->extract->kind.concurrency = 2;
    struct str id = submit(t, 5);
    is_int(extract_task_cancel(t, w->extract, w->uid + 1, id, &x), ERR_NOT_FOUND,
           "another user's task is not cancelled");
    go(t);
    ok(await_asks(t, 2), "two are asked about");
    pause_ms(t, 100);
    sql_do(t, "UPDATE extraction_result SET paying = 7 WHERE id = CONCAT(?, '.1')", sql_text(id));
    is_int(extract_task_cancel(t, w->extract, w->uid, id, &x), 0, "cancelled");
    is_str(x.status, STR("cancelled"), "it says so");
    is_str(money(t), STR("1000 10 0"), "the money of four is free");
    ok(comes_to(t, id, "0 0 1 0 4"), "one whose payment had begun is finished");
    pause_ms(t, 500);
    is_int(asked, 2, "the others are not asked about");
    is_str(money(t), STR("990 0 1"), "and not paid");
    is_int(extract_task_cancel(t, w->extract, w->uid, id, &x), ERR_CONFLICT, "it has ended");
    is_int(extract_task_retry(t, w->extract, w->uid, id, &x), ERR_CONFLICT, "for good");
    check(close_tasks(t) == 0);
    is_str(view(t, id).status, STR("cancelled"), "and is not closed");
    close_node(t);
}

/* Another node has completed it while this one stood still: its answer changes nothing. */
static void test_late_answer(struct task *t, void *arg)
{
    (void)arg;
    begin(t, 1000);
    thinks_ms = 300;
    struct str id = submit(t, 1);
    go(t);
    ok(await_asks(t, 1), "asked");
    pause_ms(t, 100);
    sql_do(t,
           "UPDATE extraction_result SET state = 'completed', result = '{}'"
           " WHERE id = CONCAT(?, '.1')",
           sql_text(id));
    pause_ms(t, 600);
    is_str(first_row(t, "result", id), STR("{}"), "a late answer is not kept");
    is_str(money(t), STR("1000 10 0"), "nor paid");
    close_node(t);
}

/* What was reserved is taken by something else. */
static void test_funds(struct task *t, void *arg)
{
    (void)arg;
    struct ledger_move all = {.cents = 20, .request_id = STR("all")};
    struct extract_wish wish;
    struct extract_submitted none;
    struct extract_task x;
    int64_t left;
    begin(t, 20);
    wish = wish_of(3);
    is_int(extract_submit(t, w->extract, &wish, &none), ERR_FUNDS, "three cost too much");
    is_str(sql_word(t, "SELECT COUNT(*) FROM extraction_task WHERE uid = ?", sql_int(w->uid)),
           STR("0"), "nothing was written");
    struct str id = submit(t, 2);
    all.uid = w->uid;
    check(ledger_deduct(t, w->node.ledger, &all, &left) == 0);
    go(t);
    for (int i = 0; i < 2000 && !view(t, id).waits.p; i++)
        pause_ms(t, 5);
    x = view(t, id);
    ok(x.waits.p && x.counts.errors == 0, "without money it waits, and says so: %.*s",
       STR_ARG(x.waits));
    all = (struct ledger_move){.uid = w->uid, .cents = 100, .request_id = STR("more")};
    check(ledger_recharge(t, w->node.ledger, &all, &left) == 0);
    ok(comes_to(t, id, "0 0 2 0 0"), "with money it goes on");
    is_int(asked, 2, "each was asked about once");
    is_str(money(t), STR("80 0 2"), "and paid once");
    close_node(t);
}

/* Redis forgets all of it. */
static void test_redis_empty(struct task *t, void *arg)
{
    (void)arg;
    begin(t, 1000);
    struct str id = submit(t, 5);
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    go(t);
    ok(comes_to(t, id, "0 0 5 0 0"), "rows that Redis has forgotten are found");
    is_str(money(t), STR("950 0 5"), "and paid once");
    close_node(t);
}

static void test_refusals(struct task *t, void *arg)
{
    (void)arg;
    struct extract_wish wish;
    struct extract_submitted none;
    struct extract_offer offer;
    struct extract_task x;
    begin(t, 100000);
    wish = wish_of(2);
    wish.uid = w->uid + 1;
    is_int(extract_submit(t, w->extract, &wish, &none), ERR_NOT_FOUND, "another user's template");
    wish.template_id = STR("pico");
    is_int(extract_submit(t, w->extract, &wish, &none), ERR_NOT_FOUND, "another user's documents");
    wish = wish_of(2);
    w->documents[1] = w->documents[0];
    is_int(extract_estimate(t, w->extract, &wish, &offer), 0, "estimated");
    ok(offer.documents == 1 && offer.cents == PRICE, "a document that is named twice counts once");
    wish.query_id = STR("00000000000000000000000000000000");
    is_int(extract_estimate(t, w->extract, &wish, &offer), ERR_NOT_FOUND, "no such run");
    sql_do(t, "UPDATE user_info SET permission = 0 WHERE uid = ?", sql_int(w->uid));
    wish = wish_of(1);
    is_int(extract_submit(t, w->extract, &wish, &none), ERR_FORBIDDEN, "permission 0");
    sql_do(t, "UPDATE user_info SET permission = 5 WHERE uid = ?", sql_int(w->uid));
    struct str id = STR_NULL;
    for (int i = 0; i < EXTRACT_TASKS_MAX; i++)
        id = submit(t, 1);
    is_int(extract_submit(t, w->extract, &wish, &none), ERR_RATE, "too many are open");
    is_int(extract_task_get(t, w->extract, w->uid + 1, id, &x), ERR_NOT_FOUND,
           "another user's task");
    is_int(extract_task_retry(t, w->extract, w->uid + 1, id, &x), ERR_NOT_FOUND, "likewise");
    struct extract_page page;
    check(extract_task_list(t, w->extract, w->uid, INT64_MAX, 30, &page) == 0);
    ok(page.count == 30 && page.next && str_eq(page.list[0].id, id), "a page, the newest first");
    close_node(t);
}

/* A thousand open tasks of twenty rows each: the aggregator looks at each, and closes one. */
static void test_many_open(struct task *t, void *arg)
{
    (void)arg;
    begin(t, 1000);
    sql_do(t,
           "INSERT INTO extraction_task (id, uid, template_id, template_version, template_name,"
           " fields, total_count, status, cents, model, asked, created_at)"
           " SELECT CONCAT(?, '-many-', seq), 1, 'x', 1, 'x', '[]', 20, 'processing', 0, '', '',"
           " UTC_TIMESTAMP(3) FROM seq_1_to_1000",
           sql_int(w->uid));
    sql_do(t,
           "INSERT INTO extraction_result (number, id, task, place, uid, state, priority, cents,"
           " created_at, changed_at) SELECT k.number * 16384 + seq, CONCAT(k.id, '.', seq),"
           " k.number, seq, 1, IF(seq = 20, 'pending', 'completed'), 1, 0, UTC_TIMESTAMP(3),"
           " UTC_TIMESTAMP(3) FROM extraction_task k JOIN seq_1_to_20"
           " WHERE k.id LIKE CONCAT(?, '-many-%')",
           sql_int(w->uid));
    struct role_turn turn = {.locked = false};
    check(close_tasks(t) == 0);
    int rounds = 0;
    do
        check(extract_close_role(t, w->extract, &turn) == 0);
    while (++rounds < 100 && w->extract->look.after);
    ok(rounds <= EXTRACT_CLOSE_ROUNDS, "all are looked at in %d rounds", rounds);
    int64_t best_us = INT64_MAX;
    for (int i = 0; i < 40; i++) {
        int64_t began_us = loop_now_us(task_loop(t));
        check(extract_close_role(t, w->extract, &turn) == 0);
        int64_t us = loop_now_us(task_loop(t)) - began_us;
        best_us = us < best_us ? us : best_us;
    }
    printf("# a round with 1,000 open tasks takes %lld us\n", (long long)best_us);
    ok(best_us < 20000, "a round is quick");
    sql_do(t, "UPDATE extraction_result SET state = 'error' WHERE id LIKE CONCAT(?, '-many-77.%')",
           sql_int(w->uid));
    check(close_tasks(t) == 0);
    is_str(sql_word(t,
                    "SELECT GROUP_CONCAT(id) FROM extraction_task WHERE status = 'completed'"
                    " AND id LIKE CONCAT(?, '-many-%')",
                    sql_int(w->uid)),
           str_printf(task_arena(t), "%lld-many-77", (long long)w->uid),
           "the one whose rows have ended is closed");
    sql_do(t, "DELETE FROM extraction_task WHERE id LIKE CONCAT(?, '-many-%')", sql_int(w->uid));
    sql_do(t, "DELETE FROM extraction_result WHERE id LIKE CONCAT(?, '-many-%')", sql_int(w->uid));
    close_node(t);
}

int main(void)
{
    start_stores();
    tap_task(test_done, NULL, true);
    tap_task(test_deaths, NULL, true);
    tap_task(test_wrong, NULL, true);
    tap_task(test_service, NULL, true);
    tap_task(test_cancel, NULL, true);
    tap_task(test_late_answer, NULL, true);
    tap_task(test_funds, NULL, true);
    tap_task(test_redis_empty, NULL, true);
    tap_task(test_many_open, NULL, true);
    tap_task(test_refusals, NULL, true);
    return stop_stores();
}
