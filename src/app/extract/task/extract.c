#include "app/extract/task/extract_private.h"

#include <stdlib.h>

#include "corpus/bibtex.h"
#include "engine/setup/config.h"

#define BACKOFF_MS 2000
#define QUEUE_MAX  1000000

const struct job_rows extract_job_rows = {.table = "extraction_result",
                                          .id = "id",
                                          .uid = "uid",
                                          .position = "number",
                                          .version = "version",
                                          .priority = "priority",
                                          .created = "created_at",
                                          .changed = "changed_at",
                                          .state = "state",
                                          .error = "error",
                                          .reason = "error_code",
                                          .cents = "cents",
                                          .pending = "pending",
                                          .working = "extracting",
                                          .completed = "completed",
                                          .failed = "error"};

struct extract *extract_new(struct node *n)
{
    struct extract *x = check_memory(calloc(1, sizeof *x));
    const struct config *c = n->config;
    struct metrics *m = n->metrics;
    x->node = n;
    x->ask = extract_ask;
    x->reader = bibtex_new(NULL, NULL);
    x->completed = metric(m, METRIC_COUNTER, "millrace_extract_documents_total", "",
                          "Documents whose values were extracted and paid.");
    x->asks = metric(m, METRIC_COUNTER, "millrace_extract_replies_total", "",
                     "Replies of the AI about a part of a document.");
    x->wrong = metric(m, METRIC_COUNTER, "millrace_extract_wrong_replies_total", "",
                      "Of them, those that did not fit the template.");
    x->closed = metric(m, METRIC_COUNTER, "millrace_extract_tasks_closed_total", "",
                       "Tasks of extraction that were closed.");
    x->kind = (struct job_kind){.name = EXTRACT_QUEUE,
                                .concurrency = c->extract_concurrency,
                                .lease_ms = c->extract_lease_s * 1000,
                                .deadline_ms = c->extract_deadline_ms,
                                .tries_max = c->extract_tries + 1,
                                .backoff_ms = BACKOFF_MS,
                                .calls_ai = true,
                                .all_max = QUEUE_MAX,
                                .rows = &extract_job_rows,
                                .work = extract_work};
    list_init(&x->frozen);
    extract_rows_init(x);
    extract_source_init(x);
    jobs_add(n->jobs, &x->kind, x);
    return x;
}

void extract_free(struct extract *x)
{
    if (!x)
        return;
    extract_frozen_release(x);
    bibtex_free(x->reader);
    free(x);
}

int extract_no_task(struct task *t)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no such task");
}

int extract_no_row(struct task *t)
{
    return task_fail(t, ERR_NOT_FOUND, "the task has no such row");
}

/* --- pushing --- */

static int push_page(struct task *t, struct extract *x, int64_t last, int64_t *after, bool *more)
{
    struct sql_rows r;
    int err = sql_call(t, x->node->sql, &r,
                       "SELECT id, uid, version, priority, number FROM extraction_result"
                       " WHERE number > ? AND number <= ? AND state = 'pending'"
                       " ORDER BY number LIMIT ?",
                       sql_int(*after), sql_int(last), sql_int(JOBS_BATCH));
    if (err)
        return err;
    struct job_push *list = ARENA_ARRAY(task_arena(t), struct job_push, r.count + 1);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *v = sql_row(&r, i);
        list[i] = (struct job_push){
            .id = v[0].s, .uid = v[1].i, .version = v[2].i, .priority = v[3].i, .order = v[4].i};
        *after = v[4].i;
    }
    *more = r.count == JOBS_BATCH;
    return r.count ? jobs_push(t, x->node->jobs, EXTRACT_QUEUE, list, r.count, NULL) : 0;
}

int extract_push(struct task *t, struct extract *x, int64_t first, int64_t last)
{
    int64_t after = first - 1;
    int err = 0;
    for (bool more = true; !err && more;) {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = push_page(t, x, last, &after, &more);
        arena_reset(task_arena(t), mark);
    }
    return err == ERR_CANCELED ? err : 0;
}
