/* Tasks as users see them: progress is counted from the rows. */
#include "app/extract/task/extract_private.h"
#include "engine/ai/permits.h"
#include "engine/jobs/pay.h"
#include "engine/people/own_id.h"
#include "engine/runs/promise.h"
#include "engine/store/cluster.h"

#define MS(column)   "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"
#define WAITS_LOOKED 50 /* rows that are asked what they wait for */
#define SIMULATED                                                                                  \
    "(SELECT 1 FROM extraction_result r WHERE r.task = k.number AND r.state = 'completed'"         \
    " AND r.simulated = 1 LIMIT 1) IS NOT NULL"
#define COLUMNS(fields)                                                                            \
    "k.number, k.uid, k.id, k.name, k.status, k.project_id, k.query_id, k.template_id,"            \
    " k.template_name, k.template_version, k.total_count, k.cents, k.model, k.webhook, " MS(       \
        "k.created_at") ", " MS("k.completed_at") ", " fields ", " SIMULATED                       \
                                                  " FROM extraction_task k "

static void read_row(const struct sql_value *v, struct extract_task *out)
{
    *out = (struct extract_task){.number = v[0].i,
                                 .uid = v[1].i,
                                 .id = v[2].s,
                                 .name = v[3].s,
                                 .status = v[4].s,
                                 .project_id = v[5].s,
                                 .query_id = v[6].s,
                                 .template_id = v[7].s,
                                 .template_name = v[8].s,
                                 .template_version = v[9].i,
                                 .total = v[10].i,
                                 .cents = v[11].i,
                                 .model = v[12].s,
                                 .webhook = v[13].s,
                                 .created_ms = v[14].i,
                                 .completed_ms = v[15].i,
                                 .fields = v[16].s,
                                 .simulated = v[17].i != 0};
}

int extract_task_find(struct task *t, struct extract *x, int64_t uid, struct str id,
                      struct extract_task *out)
{
    struct sql_rows r;
    if (!own_id_is(id, uid))
        return extract_no_task(t);
    int err =
        sql_call(t, x->node->sql, &r, "SELECT " COLUMNS("k.fields") "WHERE k.id = ? AND k.uid = ?",
                 sql_text(id), sql_int(uid));
    if (!err && r.count == 0)
        err = extract_no_task(t);
    if (!err)
        read_row(r.cells, out);
    return err;
}

/* --- counting --- */

static int64_t *count_of(struct extract_counts *c, struct str state)
{
    return str_eq(state, STR("pending"))      ? &c->pending
           : str_eq(state, STR("extracting")) ? &c->extracting
           : str_eq(state, STR("completed"))  ? &c->completed
           : str_eq(state, STR("error"))      ? &c->errors
                                              : &c->cancelled;
}

/* Of tasks whose numbers are in list, which is not empty; in the order of list. */
static int count_rows(struct task *t, struct extract *x, struct extract_task *list, size_t count)
{
    struct sql_rows r;
    struct sql_value v[EXTRACT_PAGE_MAX];
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "SELECT task, state, COUNT(*) FROM extraction_result WHERE task IN (");
    for (size_t i = 0; i < count; i++) {
        buf_add_str(&b, i ? STR(",?") : STR("?"));
        v[i] = sql_int(list[i].number);
    }
    buf_add_lit(&b, ") GROUP BY task, state");
    const char *statement = str_z(task_arena(t), buf_str(&b));
    buf_release(&b);
    int err = sql_argv(t, x->node->sql, statement, count, v, &r);
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        for (size_t k = 0; k < count; k++)
            if (list[k].number == cell[0].i)
                *count_of(&list[k].counts, cell[1].s) = cell[2].i;
    }
    return err;
}

/* An admin may try rows of a closed task again: then it is worked on. */
static void mend_status(struct extract_task *x)
{
    if (str_eq(x->status, STR("completed")) && x->counts.pending + x->counts.extracting > 0)
        x->status = STR("processing");
}

/* A job that waits for a service stays extracting; one that waits for money is the first of those
 * that are pending. */
static int read_waits(struct task *t, struct extract *x, struct extract_task *out)
{
    struct sql_rows r;
    int err = sql_call(t, x->node->sql, &r,
                       "SELECT COALESCE(error, waits), COALESCE(error_code, waits_code)"
                       " FROM extraction_result WHERE number IN"
                       " (SELECT number FROM (SELECT number FROM extraction_result WHERE task = ?"
                       " AND state IN ('extracting', 'pending') ORDER BY state, number LIMIT ?) o)"
                       " AND (error IS NOT NULL OR waits IS NOT NULL) LIMIT 1",
                       sql_int(out->number), sql_int(WAITS_LOOKED));
    if (!err && r.count) {
        out->waits = r.cells[0].s;
        out->reason = r.cells[1].s;
    } else if (!err && x->node->permits && permits_none(x->node->permits)) {
        out->waits = STR("there is no active key of the AI service"); /* rows are asked about */
        out->reason = STR(EXTRACT_NO_KEY);
    }
    return err;
}

int extract_task_get(struct task *t, struct extract *x, int64_t uid, struct str id,
                     struct extract_task *out)
{
    struct extract_task k;
    int err = extract_task_find(t, x, uid, id, &k);
    if (!err)
        err = count_rows(t, x, &k, 1);
    if (!err && k.counts.pending + k.counts.extracting > 0)
        err = read_waits(t, x, &k);
    if (err)
        return err;
    mend_status(&k);
    *out = k;
    return 0;
}

int extract_task_list(struct task *t, struct extract *x, int64_t uid, int64_t below, int64_t limit,
                      struct extract_page *out)
{
    struct sql_rows r;
    check(limit > 0 && limit <= EXTRACT_PAGE_MAX);
    int err = sql_call(t, x->node->sql, &r,
                       "SELECT " COLUMNS("NULL") "WHERE k.uid = ? AND k.number < ?"
                                                 " ORDER BY k.number DESC LIMIT ?",
                       sql_int(uid), sql_int(below), sql_int(limit + 1));
    if (err)
        return err;
    struct extract_page page = {.count = r.count > (size_t)limit ? (size_t)limit : r.count};
    page.list = ARENA_ARRAY(task_arena(t), struct extract_task, page.count + 1);
    for (size_t i = 0; i < page.count; i++)
        read_row(sql_row(&r, i), &page.list[i]);
    page.next = r.count > page.count ? page.list[page.count - 1].number : 0;
    if (page.count)
        err = count_rows(t, x, page.list, page.count);
    for (size_t i = 0; !err && i < page.count; i++)
        mend_status(&page.list[i]);
    if (!err)
        *out = page;
    return err;
}

/* --- cancelling --- */

#define TURN_TASK "task" /* by number: it is cancelled, or tried again */

struct change {
    struct extract_task *task;
    struct job_push *pushed; /* rows in work, in their later version */
    size_t count;
};

/* Work on these ends within a quarter of its lease; jobs that wait find their row cancelled. */
static int read_working(struct task *t, struct sql *c, struct change *x)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT id, uid, version + 1, priority, number FROM extraction_result"
                     " WHERE task = ? AND state = 'extracting' AND paying = 0 LIMIT ?",
                     sql_int(x->task->number), sql_int(JOBS_BATCH));
    if (err)
        return err;
    x->pushed = ARENA_ARRAY(task_arena(t), struct job_push, r.count + 1);
    x->count = r.count;
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *v = sql_row(&r, i);
        x->pushed[i] = (struct job_push){
            .id = v[0].s, .uid = v[1].i, .version = v[2].i, .priority = v[3].i, .order = v[4].i};
    }
    return 0;
}

/* Each row decides between this and a payment (work.c): it has either paying or an end. */
static int cancel_body(struct task *t, struct sql *c, void *arg)
{
    struct change *x = arg;
    int64_t number = x->task->number;
    struct sql_rows r;
    int err = cluster_turn(t, c, TURN_TASK, number);
    if (!err)
        err = sql_on(t, c, &r,
                     "UPDATE extraction_task SET status = 'cancelled',"
                     " completed_at = UTC_TIMESTAMP(3) WHERE number = ? AND status = 'processing'",
                     sql_int(number));
    if (!err && r.affected == 0)
        err = task_fail(t, ERR_CONFLICT, "it is not being worked on");
    if (!err)
        err = read_working(t, c, x);
    if (!err)
        err = sql_on(t, c, NULL,
                     "UPDATE extraction_result SET state = 'cancelled', version = version + 1,"
                     " error = NULL, error_code = NULL, waits = NULL, waits_code = NULL,"
                     " changed_at = UTC_TIMESTAMP(3) WHERE task = ? AND state IN ('pending', "
                     "'extracting') AND paying = 0",
                     sql_int(number));
    return err ? err
               : jobs_free_ended(t, c, EXTRACT_QUEUE, &extract_job_rows, EXTRACT_FIRST(number),
                                 EXTRACT_LAST(number));
}

int extract_task_cancel(struct task *t, struct extract *x, int64_t uid, struct str id,
                        struct extract_task *out)
{
    struct extract_task k;
    struct change change = {.task = &k};
    int err = extract_task_find(t, x, uid, id, &k);
    if (!err)
        err = sql_tx(t, x->node->sql, cancel_body, &change);
    if (err)
        return err;
    if (change.count && jobs_push(t, x->node->jobs, EXTRACT_QUEUE, change.pushed, change.count,
                                  NULL) == ERR_CANCELED)
        return ERR_CANCELED;
    return extract_task_get(t, x, uid, id, out);
}

/* --- trying again --- */

struct retrial {
    struct extract_task *task;
    int64_t first, last; /* numbers of rows */
    int64_t rows;        /* of them in error, when their cost was worked out */
};

/* A payment that may have been made stays so, with its values: it is not made twice. */
static int retry_body(struct task *t, struct sql *c, void *arg)
{
    struct retrial *x = arg;
    int64_t number = x->task->number;
    struct sql_rows r;
    int err = cluster_turn(t, c, TURN_TASK, number);
    if (!err)
        err = sql_on(t, c, &r, "SELECT status FROM extraction_task WHERE number = ? FOR UPDATE",
                     sql_int(number));
    if (!err && (r.count == 0 || str_eq(r.cells[0].s, STR("cancelled"))))
        return task_fail(t, ERR_CONFLICT, "the task was cancelled");
    if (!err)
        err = sql_on(t, c, NULL,
                     "UPDATE extraction_task SET status = 'processing', completed_at = NULL"
                     " WHERE number = ?",
                     sql_int(number));
    if (!err)
        err = sql_on(t, c, &r,
                     "UPDATE extraction_result SET state = 'pending', version = version + 1,"
                     " error = NULL, error_code = NULL, waits = NULL, waits_code = NULL, asks = 0,"
                     " complaint = NULL,"
                     " result = IF(paying = 0, NULL, result), parts = IF(paying = 0, 0, parts),"
                     " parts_done = IF(paying = 0, 0, parts_done), changed_at = UTC_TIMESTAMP(3)"
                     " WHERE number BETWEEN ? AND ? AND state = 'error'",
                     sql_int(x->first), sql_int(x->last));
    if (!err && (int64_t)r.affected != x->rows)
        err = task_fail(t, ERR_CONFLICT, "the task has changed meanwhile: try again");
    return err ? err : jobs_reserve(t, c, EXTRACT_QUEUE, &extract_job_rows, x->first, x->last);
}

/* sql_tx repeats a body that returns ERR_CONFLICT: the answer is the same each time. */
static int try_again(struct task *t, struct extract *x, struct retrial *r, struct extract_task *out)
{
    bool repeated;
    const struct extract_task *k = r->task;
    struct promise promise = {
        .uid = k->uid, .cents = r->rows * k->cents, .what = "task", .write = retry_body, .arg = r};
    int err = promise_make(t, x->node->runs, &promise, &repeated);
    if (!err)
        err = extract_push(t, x, r->first, r->last);
    return err ? err : extract_task_get(t, x, k->uid, k->id, out);
}

int extract_task_retry(struct task *t, struct extract *x, int64_t uid, struct str id,
                       struct extract_task *out)
{
    struct extract_task k;
    int err = extract_task_get(t, x, uid, id, &k);
    if (err)
        return err;
    if (str_eq(k.status, STR("cancelled")))
        return task_fail(t, ERR_CONFLICT, "the task was cancelled");
    if (k.counts.errors == 0)
        return task_fail(t, ERR_CONFLICT, "none of its documents has failed");
    struct retrial retrial = {&k, EXTRACT_FIRST(k.number), EXTRACT_LAST(k.number), k.counts.errors};
    return try_again(t, x, &retrial, out);
}

int extract_row_retry(struct task *t, struct extract *x, int64_t uid, struct str id, int64_t place,
                      struct extract_task *out)
{
    struct extract_task k;
    struct sql_rows r;
    int err = extract_task_find(t, x, uid, id, &k);
    if (err)
        return err;
    int64_t number = EXTRACT_FIRST(k.number) + place;
    err = sql_call(t, x->node->sql, &r,
                   "SELECT state FROM extraction_result WHERE task = ? AND number = ?",
                   sql_int(k.number), sql_int(number));
    if (err)
        return err;
    if (r.count == 0)
        return extract_no_row(t);
    if (str_eq(k.status, STR("cancelled")))
        return task_fail(t, ERR_CONFLICT, "the task was cancelled");
    if (!str_eq(r.cells[0].s, STR("error")))
        return task_fail(t, ERR_CONFLICT, "the row is not in error: there is nothing to try again");
    struct retrial retrial = {&k, number, number, 1};
    return try_again(t, x, &retrial, out);
}
