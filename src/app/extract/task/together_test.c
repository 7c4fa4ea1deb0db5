/* Documents that are worked on at the same time, on real stores: they share statements, and what is
 * wrong with one of them is not the others' fault. */
#include "app/extract/task/extract_fixture.h"

static int asked;
/* What happens while the AI thinks about a part, and what it then says. */
static void (*meanwhile)(struct task *t, struct str part, struct extract_value *v);

static int made_up_ask(struct task *t, struct extract *x, const struct extract_query *q,
                       struct extract_answer *out)
{
    (void)x;
    asked++;
    struct extract_value *v = ARENA_NEW(task_arena(t), struct extract_value);
    v->text = STR("five");
    if (meanwhile)
        meanwhile(t, q->part, v);
    extract_values_init(task_arena(t), q->reading.template, &out->values);
    out->values.fields[0] = (struct extract_found){.items = v, .count = 1};
    out->tokens = 7;
    return 0;
}

static void begin(struct task *t, int64_t cents)
{
    open_user(t, cents);
    w->extract->ask = made_up_ask;
    asked = 0;
    meanwhile = NULL;
}

struct at_work {
    struct job job;
    int result;
    char why[200];
};

static void work_on(struct task *t, void *arg)
{
    struct at_work *x = arg;
    x->result = extract_work(t, w->extract, &x->job);
    snprintf(x->why, sizeof x->why, "%s", x->result < 0 ? task_error(t) : "");
}

/* Rows 1 to count of a task, at the same time, in a group of their own. */
static struct at_work *begin_work(struct task *t, struct group *g, struct str id, size_t count)
{
    struct at_work *list = ARENA_ARRAY(task_arena(t), struct at_work, count);
    group_init(g, task_loop(t));
    for (size_t i = 0; i < count; i++) {
        list[i] = (struct at_work){
            .job = {.id = str_printf(task_arena(t), "%.*s.%zu", STR_ARG(id), i + 1),
                    .uid = w->uid,
                    .version = 1,
                    .tries = 1}};
        check(task_go(g, "work", work_on, &list[i]) == 0);
    }
    return list;
}

static size_t with_result(const struct at_work *list, size_t count, int result)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += list[i].result == result;
    return n;
}

static struct str row_of(struct task *t, const char *column, const struct at_work *x)
{
    return sql_word(
        t, arena_printf(task_arena(t), "SELECT %s FROM extraction_result WHERE id = ?", column),
        sql_text(x->job.id));
}

/* A pool of its own counts what extraction executes, and nothing else. */
static int64_t *count_statements(struct task *t, struct metrics **m)
{
    *m = metrics_open(-1, 1, 0);
    w->node.sql = sql_pool_new(
        task_loop(t), &(struct sql_options){.url = server.url, .quiet = true, .metrics = *m});
    sql_do(t, "SELECT ?", sql_int(1));
    return metric(*m, METRIC_COUNTER, "millrace_sql_statements_total", "", "Statements executed.");
}

static void test_together(struct task *t, void *arg)
{
    (void)arg;
    struct group g;
    struct metrics *m;
    begin(t, 1000);
    struct str id = submit(t, DOCUMENTS_HAD);
    struct sql_pool *sql = w->node.sql;
    int64_t *statements = count_statements(t, &m), before = *statements;
    struct at_work *list = begin_work(t, &g, id, DOCUMENTS_HAD);
    check(group_join(t, &g) == 0);
    int64_t used = *statements - before;
    is_int((int64_t)with_result(list, DOCUMENTS_HAD, 0), DOCUMENTS_HAD, "all are done");
    ok(used <= 8, "by %lld statements: rows, template, texts, locks, values", (long long)used);
    is_int((int64_t)w->extract->frozen_count, 1, "the template was parsed once");
    list = begin_work(t, &g, id, DOCUMENTS_HAD); /* as if no node had heard of it */
    check(group_join(t, &g) == 0);
    is_int(asked, DOCUMENTS_HAD, "each was asked about once");
    sql_pool_free(w->node.sql);
    w->node.sql = sql;
    metrics_close(m);
    is_str(money(t), STR("800 200 20"), "and paid once");
    is_str(row_of(t, "CONCAT_WS(' ', parts, parts_done, tokens, missing, unverified, paying > 0)",
                  &list[DOCUMENTS_HAD - 1]),
           STR("1 1 7 2 1 1"), "the last one is kept as the first");
    close_node(t);
}

static void disturb(struct task *t, struct str part, struct extract_value *v)
{
    if (str_starts(part, STR("Large")))
        v->text = str_from(memset(arena_alloc(task_arena(t), 17 << 20), 'x', 17 << 20), 17 << 20);
    if (str_starts(part, STR("Bad")))
        v->text = STR("\xff\xfe");
    if (str_starts(part, STR("Cancelled")))
        sql_do(t,
               "UPDATE extraction_result SET state = 'cancelled', version = version + 1"
               " WHERE uid = ? AND place = 3",
               sql_int(w->uid));
    if (str_starts(part, STR("Newer")))
        sql_do(t, "UPDATE extraction_result SET version = version + 1 WHERE uid = ? AND place = 4",
               sql_int(w->uid));
}

/* One of many is not the others' fault. */
static void test_one_alone(struct task *t, void *arg)
{
    (void)arg;
    static const char *const texts[] = {"Large", "Bad", "Cancelled", "Newer"};
    struct group g;
    begin(t, 1000);
    for (int i = 0; i < 4; i++)
        w->documents[i] = add_document(t, w->uid, 2000 + i, str_of(texts[i]));
    meanwhile = disturb;
    struct str id = submit(t, DOCUMENTS_HAD);
    struct at_work *list = begin_work(t, &g, id, DOCUMENTS_HAD);
    list[4].job.version = 2; /* of a retry that is not there */
    list[5].job.uid = w->uid + 1;
    check(group_join(t, &g) == 0);
    is_int(list[0].result, ERR_LIMIT, "a row that is too large fails: %s", list[0].why);
    ok(list[1].result < 0 && !err_may_pass(list[1].result), "one with bad bytes, too: %s",
       list[1].why);
    for (size_t i = 0; i < 2; i++)
        is_str(row_of(t, "CONCAT_WS(' ', state, result, paying)", &list[i]), STR("pending 0"),
               "and keeps nothing");
    is_int(list[2].result, JOB_WRITTEN, "a cancelled one");
    is_str(row_of(t, "CONCAT_WS(' ', state, result, paying)", &list[2]), STR("cancelled 0"),
           "stays as it is");
    is_int(list[3].result, JOB_WRITTEN, "one in a newer version");
    is_str(row_of(t, "CONCAT_WS(' ', state, result, paying)", &list[3]), STR("pending 0"),
           "stays as it is");
    ok(list[4].result == JOB_WRITTEN && list[5].result == JOB_WRITTEN,
       "a row in another version, or of another user, is not worked on");
    is_int((int64_t)with_result(list, DOCUMENTS_HAD, 0), DOCUMENTS_HAD - 6, "the others are done");
    is_int(asked, DOCUMENTS_HAD - 2, "after one question each");
    struct str paid =
        sql_word(t, "SELECT COUNT(*) FROM ledger_request WHERE uid = ? AND number IS NOT NULL",
                 sql_int(w->uid));
    is_str(paid, str_int(task_arena(t), DOCUMENTS_HAD - 6), "and only they are paid");
    close_node(t);
}

struct holding {
    struct str id;
    bool holds, done;
};

static int hold_row(struct task *t, struct sql *c, void *arg)
{
    struct holding *h = arg;
    int err = sql_on(t, c, NULL, "SELECT 1 FROM extraction_result WHERE id = ? FOR UPDATE",
                     sql_text(h->id));
    h->holds = !err;
    while (!err && !h->done)
        err = task_sleep(t, 5);
    return err;
}

static void hold(struct task *t, void *arg)
{
    check(sql_tx(t, w->node.sql, hold_row, arg) == 0);
}

/* The node ends while a statement about many rows waits for a lock. */
static void test_clerk_cancelled(struct task *t, void *arg)
{
    (void)arg;
    struct group g, other;
    begin(t, 1000);
    struct str id = submit(t, DOCUMENTS_HAD);
    struct holding h = {.id = str_printf(task_arena(t), "%.*s.7", STR_ARG(id))};
    group_init(&other, task_loop(t));
    check(task_go(&other, "hold", hold, &h) == 0);
    while (!h.holds)
        pause_ms(t, 2);
    struct at_work *list = begin_work(t, &g, id, DOCUMENTS_HAD);
    while (asked < DOCUMENTS_HAD)
        pause_ms(t, 2);
    while (list_empty(&w->extract->keeps.working))
        pause_ms(t, 2);
    is_int((int64_t)g.count, DOCUMENTS_HAD,
           "all are asked about, and wait for their values to be kept");
    group_cancel(&w->tasks);
    check(group_join(t, &g) == 0);
    is_int((int64_t)with_result(list, DOCUMENTS_HAD, ERR_CANCELED), DOCUMENTS_HAD,
           "the clerk is cancelled, and all with it");
    h.done = true;
    check(group_join(t, &other) == 0);
    is_str(sql_word(t,
                    "SELECT COUNT(*) FROM extraction_result WHERE uid = ? AND state = 'pending'"
                    " AND result IS NULL AND paying = 0",
                    sql_int(w->uid)),
           STR("20"), "nothing was kept");
    is_str(sql_word(t, "SELECT COUNT(*) FROM ledger_request WHERE uid = ?", sql_int(w->uid)),
           STR("0"), "nor paid");
    close_node(t);
}

#define TASKS_HAD 80 /* more than are remembered */

static void test_templates(struct task *t, void *arg)
{
    (void)arg;
    struct group groups[TASKS_HAD];
    struct at_work *list[TASKS_HAD];
    begin(t, 10000);
    struct str broken = STR_NULL;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < TASKS_HAD; i++) {
            struct str id = submit(t, 1);
            if (round == 0 && i == 40) {
                broken = id;
                sql_do(t, "UPDATE extraction_task SET fields = '[' WHERE id = ?", sql_text(id));
            }
            list[i] = begin_work(t, &groups[i], id, 1);
        }
        size_t done = 0;
        for (size_t i = 0; i < TASKS_HAD; i++) {
            check(group_join(t, &groups[i]) == 0);
            done += list[i]->result == 0;
        }
        is_int((int64_t)done, TASKS_HAD - !round, "documents of eighty tasks are done");
        if (round == 0)
            is_int(list[40]->result, ERR_INTERNAL, "one has a template that cannot be read: %s",
                   list[40]->why);
        sql_do(t, "UPDATE extraction_task SET status = 'completed' WHERE uid = ?", sql_int(w->uid));
    }
    ok(broken.p && w->extract->frozen_count <= 64 + TASKS_HAD, "what was last used is remembered");
    list_each (it, &w->extract->frozen)
        check(list_entry(it, struct extract_frozen, link)->users == 0);
    close_node(t);
}

int main(void)
{
    start_stores();
    tap_task(test_together, NULL, true);
    tap_task(test_one_alone, NULL, true);
    tap_task(test_clerk_cancelled, NULL, true);
    tap_task(test_templates, NULL, true);
    return stop_stores();
}
