#include "engine/jobs/jobs_private.h"

#define IDS_MAX 256 /* of one statement */

/* Statements are made of the constants in struct job_rows; values are bound. */

/* A statement that ends with "IN": with placeholders, run with first and the ids. */
static int on_ids(struct task *t, struct sql *c, const char *begin, struct sql_value first,
                  const struct str *ids, size_t count)
{
    size_t n = sql_padded(count);
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, n + 1);
    v[0] = first;
    for (size_t i = 0; i < n; i++)
        v[i + 1] = sql_text(ids[i < count ? i : count - 1]);
    return sql_on_argv(t, c, sql_marks(task_arena(t), begin, count, ""), n + 1, v, NULL);
}

struct write {
    struct jobs_queue *queue;
    struct jobs_hand **begun, **ended;
    size_t begun_count, ended_count;
};

const char *jobs_set_reason(struct task *t, const struct job_rows *r, const char *word)
{
    const char *quote = word ? "'" : "";
    return r->reason ? arena_printf(task_arena(t), ", %s = %s%s%s", r->reason, quote,
                                    word ? word : "NULL", quote)
                     : "";
}

/* Rows of one version to one state. */
static int write_ids(struct task *t, struct sql *c, const struct job_rows *r, const char *word,
                     int64_t version, const struct str *ids, size_t count)
{
    const char *begin =
        arena_printf(task_arena(t),
                     "UPDATE %s SET %s = '%s', %s = NULL%s WHERE %s IN ('%s', '%s') AND %s = ? AND"
                     " %s IN",
                     r->table, r->state, word, r->error, jobs_set_reason(t, r, NULL), r->state,
                     r->pending, r->working, r->version, r->id);
    return on_ids(t, c, begin, sql_int(version), ids, count);
}

static int write_state(struct task *t, struct sql *c, const struct job_rows *r, const char *word,
                       struct jobs_hand **hands, size_t count)
{
    struct str *ids = ARENA_ARRAY(task_arena(t), struct str, count);
    bool *told = ARENA_ARRAY(task_arena(t), bool, count);
    int err = 0;
    for (size_t i = 0; i < count; i++)
        told[i] = false;
    for (size_t first = 0; !err && first < count; first++) {
        size_t n = 0;
        for (size_t i = first; i < count && n < IDS_MAX; i++)
            if (!told[i] && hands[i]->job.version == hands[first]->job.version) {
                ids[n++] = hands[i]->job.id;
                told[i] = true;
            }
        if (n)
            err = write_ids(t, c, r, word, hands[first]->job.version, ids, n);
    }
    return err;
}

/* One that failed, or that waits for something: with the reason. */
static int write_reason(struct task *t, struct sql *c, const struct job_rows *r,
                        const struct jobs_hand *h)
{
    const char *word = h->outcome == JOBS_FAILED ? r->failed : r->pending;
    const char *statement = arena_printf(
        task_arena(t),
        "UPDATE %s SET %s = '%s', %s = ?%s WHERE %s IN ('%s', '%s') AND %s = ? AND %s = ?",
        r->table, r->state, word, r->error,
        jobs_set_reason(t, r, h->reason ? h->reason : JOB_OTHER), r->state, r->pending, r->working,
        r->version, r->id);
    return sql_on(t, c, NULL, statement, sql_text(str_of(h->error)), sql_int(h->job.version),
                  sql_text(h->job.id));
}

static size_t of_outcome(struct task *t, const struct write *w, enum jobs_outcome outcome,
                         struct jobs_hand ***out)
{
    size_t n = 0;
    *out = ARENA_ARRAY(task_arena(t), struct jobs_hand *, w->ended_count + 1);
    for (size_t i = 0; i < w->ended_count; i++)
        if (w->ended[i]->outcome == outcome)
            (*out)[n++] = w->ended[i];
    return n;
}

/* What was reserved for jobs that are final now. A row in a later version is not. */
static int release_ended(struct task *t, struct sql *c, const struct write *w)
{
    const struct job_rows *r = w->queue->kind->rows;
    struct str *ids = ARENA_ARRAY(task_arena(t), struct str, w->ended_count + 1);
    size_t n = 0;
    for (size_t i = 0; i < w->ended_count; i++)
        if (w->ended[i]->outcome == JOBS_COMPLETED || w->ended[i]->outcome == JOBS_FAILED)
            ids[n++] = w->ended[i]->job.id;
    if (!r->cents || n == 0)
        return 0;
    const char *begin = arena_printf(
        task_arena(t),
        "DELETE x FROM job_reserve x JOIN %s j ON j.%s = x.id AND j.%s NOT IN ('%s', '%s')"
        " WHERE x.queue = ? AND x.id IN",
        r->table, r->id, r->state, r->pending, r->working);
    return on_ids(t, c, begin, sql_text(str_of(w->queue->kind->name)), ids, n);
}

static int write_body(struct task *t, struct sql *c, void *arg)
{
    const struct write *w = arg;
    const struct job_rows *r = w->queue->kind->rows;
    struct jobs_hand **some;
    int err = 0;
    if (w->begun_count)
        err = write_state(t, c, r, r->working, w->begun, w->begun_count);
    size_t n = of_outcome(t, w, JOBS_COMPLETED, &some);
    if (!err && n)
        err = write_state(t, c, r, r->completed, some, n);
    for (size_t i = 0; !err && i < w->ended_count; i++) {
        const struct jobs_hand *h = w->ended[i];
        if (h->outcome == JOBS_FAILED || h->outcome == JOBS_HELD ||
            (h->outcome == JOBS_AGAIN && h->tried))
            err = write_reason(t, c, r, h);
    }
    return err ? err : release_ended(t, c, w);
}

int jobs_rows_write(struct task *t, struct jobs_queue *q, struct jobs_hand **begun,
                    size_t begun_count, struct jobs_hand **ended, size_t ended_count)
{
    struct write w = {q, begun, ended, begun_count, ended_count};
    bool any = begun_count > 0;
    for (size_t i = 0; i < ended_count; i++)
        any |= ended[i]->outcome != JOBS_GONE && ended[i]->outcome != JOBS_LOST &&
               (ended[i]->outcome != JOBS_AGAIN || ended[i]->tried);
    return any ? sql_tx(t, q->jobs->options.sql, write_body, &w) : 0;
}

/* --- rows that are not final --- */

int jobs_rows_open(struct task *t, const struct jobs_queue *q, bool working, struct str since,
                   int64_t *after, struct job_push **out, size_t *count)
{
    const struct job_rows *r = q->kind->rows;
    struct arena *a = task_arena(t);
    struct sql_rows rows;
    const char *statement = arena_printf(
        a,
        "SELECT %s, %s, %s, %s, %s, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %s) DIV 1000 FROM %s"
        " WHERE %s = '%s' AND %s > ?%s%s%s ORDER BY %s LIMIT %d",
        r->id, r->uid, r->version, r->priority, r->position, r->created, r->table, r->state,
        working ? r->working : r->pending, r->position, since.p ? " AND " : "",
        since.p ? r->changed : "", since.p ? " >= ?" : "", r->position, JOBS_BATCH);
    int err = since.p ? sql_call(t, q->jobs->options.sql, &rows, statement, sql_int(*after),
                                 sql_text(since))
                      : sql_call(t, q->jobs->options.sql, &rows, statement, sql_int(*after));
    if (err)
        return err;
    struct job_push *list = ARENA_ARRAY(a, struct job_push, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++) {
        const struct sql_value *cell = sql_row(&rows, i);
        list[i] = (struct job_push){.id = cell[0].s,
                                    .uid = cell[1].i,
                                    .version = cell[2].i,
                                    .priority = cell[3].i,
                                    .order = cell[4].i,
                                    .since_ms = cell[5].i};
        *after = cell[4].i;
    }
    *out = list;
    *count = rows.count;
    return 0;
}

int jobs_failures(struct task *t, struct jobs *j, size_t n, int64_t *count)
{
    check(n < j->count);
    const struct job_rows *r = j->queues[n]->kind->rows;
    struct sql_rows rows;
    *count = 0;
    if (!r)
        return 0;
    int err = sql_call(t, j->options.sql, &rows,
                       arena_printf(task_arena(t), "SELECT COUNT(*) FROM %s WHERE %s = '%s'",
                                    r->table, r->state, r->failed));
    const struct redis_reply *aside;
    if (!err)
        err = redis_call(t, j->options.redis, j->queues[n]->keys.aside, &aside, STR("ZCARD"),
                         j->queues[n]->keys.aside);
    if (!err)
        *count = rows.cells[0].i + redis_number(aside, 0);
    return err;
}
