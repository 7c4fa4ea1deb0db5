/* A task is promised: its row, those of its documents, and the money for them in one transaction;
 * then the jobs. */
#include <stdlib.h>
#include <string.h>

#include "app/extract/document.h"
#include "app/extract/task/extract_private.h"
#include "app/extract/template_store.h"
#include "base/log.h"
#include "base/map.h"
#include "base/sha256.h"
#include "engine/jobs/pay.h"
#include "engine/people/hooks.h"
#include "engine/people/own_id.h"
#include "engine/people/project.h"
#include "engine/runs/promise.h"
#include "engine/setup/config.h"

#define ROW_COLUMNS    14
#define PRIORITY_STEP  100 /* documents of one task that go before the next hundred of all others */
#define PRIORITY_STEPS 100

struct submission {
    struct extract *extract;
    const struct extract_wish *wish;
    char asked[SHA256_HEX_BYTES]; /* digest of the wish: tells a repeat from another one */
    char key[HOOK_KEY_BYTES];     /* of the webhook */
    struct str id, project_id, now;
    int64_t number, cents;
    struct stored_template template;
    const char *model;
    struct extract_paper *papers;
    struct document *documents;
    struct str *document_ids; /* each once */
    size_t count;
    struct extract_submitted first; /* what the same request has submitted */
    bool conflict;
};

/* --- repeats --- */

static void put_texts(struct json_writer *j, const struct str *list, size_t count)
{
    jw_array(j);
    for (size_t i = 0; i < count; i++)
        jw_str(j, list[i]);
    jw_end_array(j);
}

static void digest(const struct extract_wish *w, char out[SHA256_HEX_BYTES])
{
    struct buf b;
    struct json_writer j;
    buf_init(&b);
    jw_init(&j, &b);
    jw_array(&j);
    jw_str(&j, w->template_id);
    jw_str(&j, w->language);
    put_texts(&j, w->document_ids, w->document_count);
    jw_str(&j, w->query_id);
    put_texts(&j, w->dois, w->doi_count);
    jw_str(&j, w->name);
    jw_str(&j, w->project_id);
    jw_str(&j, w->webhook);
    jw_end_array(&j);
    sha256_hex(buf_str(&b), out);
    buf_release(&b);
}

#define REPEATED                                                                                   \
    "SELECT id, asked, total_count, webhook_secret FROM extraction_task"                           \
    " WHERE uid = ? AND request_id = ?"

static void read_repeated(struct task *t, const struct sql_rows *r, struct submission *s)
{
    s->first = (struct extract_submitted){.repeated = r->count > 0};
    if (r->count == 0)
        return;
    s->first.id = r->cells[0].s;
    s->first.total = r->cells[2].i;
    if (r->cells[3].s.p)
        s->first.webhook_secret = hook_secret(task_arena(t), r->cells[3].s);
    s->conflict = !str_eq(r->cells[1].s, str_of(s->asked));
}

static int refuse_request(struct task *t, const struct extract_wish *w)
{
    return task_fail(t, ERR_CONFLICT,
                     "request_id %.*s has submitted another task: template, documents, name or "
                     "webhook differ",
                     STR_ARG(w->request_id));
}

int extract_repeated(struct task *t, struct extract *x, const struct extract_wish *w,
                     struct extract_submitted *out)
{
    struct submission s = {.wish = w};
    struct sql_rows r;
    *out = (struct extract_submitted){.id = STR_NULL};
    if (!w->request_id.p)
        return 0;
    digest(w, s.asked);
    int err = sql_call(t, x->node->sql, &r, REPEATED, sql_int(w->uid), sql_text(w->request_id));
    if (err)
        return err;
    read_repeated(t, &r, &s);
    if (s.conflict)
        return refuse_request(t, w);
    *out = s.first;
    return 0;
}

static int repeats(struct task *t, struct sql *c, void *arg, bool *repeated)
{
    struct submission *s = arg;
    struct sql_rows r;
    *repeated = false;
    if (!s->wish->request_id.p)
        return 0;
    int err = sql_on(t, c, &r, REPEATED, sql_int(s->wish->uid), sql_text(s->wish->request_id));
    if (err)
        return err;
    read_repeated(t, &r, s);
    *repeated = s->first.repeated;
    return s->conflict ? refuse_request(t, s->wish) : 0;
}

/* --- what it is about --- */

static int find_documents(struct task *t, struct extract *x, struct submission *s)
{
    const struct extract_wish *w = s->wish;
    struct arena *a = task_arena(t);
    struct map *known = map_new();
    s->document_ids = ARENA_ARRAY(a, struct str, w->document_count);
    for (size_t i = 0; i < w->document_count; i++)
        if (map_add(known, w->document_ids[i]))
            s->document_ids[s->count++] = w->document_ids[i];
    map_free(known);
    s->documents = ARENA_ARRAY(a, struct document, s->count);
    return documents_find(t, x->node, w->uid, s->document_ids, s->count, s->documents);
}

/* Template and documents. */
static int gather(struct task *t, struct extract *x, struct submission *s)
{
    const struct extract_wish *w = s->wish;
    int err =
        template_store_get(t, x->node->sql, w->uid, w->template_id, 0, w->language, &s->template);
    if (!err)
        err = w->query_id.p ? extract_papers(t, x, w, &s->papers, &s->count)
                            : find_documents(t, x, s);
    s->cents = x->node->config->extract_document_cents;
    return err;
}

int extract_estimate(struct task *t, struct extract *x, const struct extract_wish *w,
                     struct extract_offer *out)
{
    struct submission s = {.extract = x, .wish = w};
    int err = gather(t, x, &s);
    if (!err)
        *out = (struct extract_offer){(int64_t)s.count, (int64_t)s.count * s.cents};
    return err;
}

/* --- the rows --- */

/* And the time by which the rows are written. */
static int check_room(struct task *t, struct sql *c, struct submission *s)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT COUNT(*), CAST(UTC_TIMESTAMP(3) AS CHAR) FROM extraction_task"
                     " WHERE uid = ? AND status = 'processing'",
                     sql_int(s->wish->uid));
    if (err)
        return err;
    s->now = r.cells[1].s;
    if (r.cells[0].i < EXTRACT_TASKS_MAX)
        return 0;
    return task_fail(t, ERR_RATE, "%d of your tasks are being worked on already",
                     EXTRACT_TASKS_MAX);
}

static int write_task(struct task *t, struct sql *c, struct submission *s)
{
    const struct extract_wish *w = s->wish;
    struct sql_rows r;
    int err = sql_on(
        t, c, &r,
        "INSERT INTO extraction_task (id, uid, project_id, name, template_id, template_version,"
        " template_name, fields, query_id, total_count, status, cents, model, request_id, asked,"
        " webhook, webhook_secret, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'processing', ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3))",
        sql_text(s->id), sql_int(w->uid), sql_text(s->project_id),
        sql_text(w->name.p ? w->name : STR("")), sql_text(s->template.id),
        sql_int(s->template.version), sql_text(s->template.name), sql_text(s->template.fields),
        sql_text(w->query_id), sql_int((int64_t)s->count), sql_int(s->cents),
        sql_text(str_of(s->model)), sql_text(w->request_id), sql_text(str_of(s->asked)),
        sql_text(w->webhook), sql_text(w->webhook.p ? str_of(s->key) : STR_NULL));
    s->number = err ? 0 : (int64_t)r.insert_id;
    return err;
}

static struct str row_id(struct arena *a, struct str task, size_t place)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, task, STR("."), str_digits(digits, (int64_t)place));
}

/* The first documents of each task go before the later ones of all: a small task need not wait for
 * a large one that was submitted earlier. */
static int64_t priority(size_t place)
{
    size_t step = (place - 1) / PRIORITY_STEP;
    return 1 + (int64_t)(step < PRIORITY_STEPS ? step : PRIORITY_STEPS);
}

static void write_cells(struct task *t, const struct submission *s, size_t i, struct sql_value *v)
{
    const struct extract_paper *paper = s->papers ? &s->papers[i] : NULL;
    size_t place = i + 1;
    v[0] = sql_int(EXTRACT_FIRST(s->number) + (int64_t)place);
    v[1] = sql_text(row_id(task_arena(t), s->id, place));
    v[2] = sql_int(s->number);
    v[3] = sql_int((int64_t)place);
    v[4] = sql_int(s->wish->uid);
    v[5] = sql_text(paper ? STR_NULL : s->documents[i].id);
    v[6] = sql_text(paper ? paper->doi : STR_NULL);
    v[7] = sql_text(paper ? paper->block_key : STR_NULL);
    v[8] = sql_text(paper ? STR_NULL : s->documents[i].name);
    v[9] = sql_text(STR("pending"));
    v[10] = sql_int(priority(place));
    v[11] = sql_int(s->cents);
    v[12] = v[13] = sql_text(s->now);
}

static int write_rows(struct task *t, struct sql *c, struct submission *s)
{
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, s->count * ROW_COLUMNS);
    for (size_t i = 0; i < s->count; i++)
        write_cells(t, s, i, cells + i * ROW_COLUMNS);
    return sql_bulk(t, c,
                    "INSERT INTO extraction_result (number, id, task, place, uid, document_id, doi,"
                    " block_key, title, state, priority, cents, created_at, changed_at) VALUES",
                    "", ROW_COLUMNS, s->count, cells, NULL);
}

static int write_all(struct task *t, struct sql *c, void *arg)
{
    struct submission *s = arg;
    int err = check_room(t, c, s);
    if (!err)
        err = write_task(t, c, s);
    if (!err && s->documents)
        err = documents_use(t, c, s->wish->uid, s->documents, s->count);
    if (!err)
        err = write_rows(t, c, s);
    return err ? err
               : jobs_reserve(t, c, EXTRACT_QUEUE, &extract_job_rows, EXTRACT_FIRST(s->number),
                              EXTRACT_LAST(s->number));
}

/* --- the whole --- */

/* What is pushed after the request was answered. */
struct pushing {
    struct jobs *jobs;
    int64_t uid, number;
    size_t count;
    char id[OWN_ID_CHARS + 1]; /* of the task */
};

static void push_task(struct task *t, void *arg)
{
    const struct pushing *p = arg;
    struct job_push *list = ARENA_ARRAY(task_arena(t), struct job_push, p->count);
    for (size_t i = 0; i < p->count; i++)
        list[i] = (struct job_push){.id = row_id(task_arena(t), str_of(p->id), i + 1),
                                    .uid = p->uid,
                                    .version = 1,
                                    .priority = priority(i + 1),
                                    .order = EXTRACT_FIRST(p->number) + (int64_t)i + 1};
    if (jobs_push(t, p->jobs, EXTRACT_QUEUE, list, p->count, NULL))
        log_info("extract", "task %s is not in its queue yet: %s; it is found by the next refill",
                 p->id, task_error(t));
    free(arg);
}

/* The rows are the promise: jobs_refill_role finds those that Redis has not heard of, because the
 * node died, or the push did not reach Redis. */
static void push(const struct submission *s)
{
    struct node *n = s->extract->node;
    struct pushing *p = check_memory(calloc(1, sizeof *p));
    *p = (struct pushing){
        .jobs = n->jobs, .uid = s->wish->uid, .number = s->number, .count = s->count};
    check(s->id.n < sizeof p->id);
    memcpy(p->id, s->id.p, s->id.n);
    if (task_go(n->group, "extract push", push_task, p))
        free(p);
}

static int prepare(struct task *t, struct extract *x, struct submission *s)
{
    const struct extract_wish *w = s->wish;
    struct project project;
    int err = gather(t, x, s);
    if (!err)
        err = project_get(t, x->node->sql, w->uid, w->project_id, &project);
    if (err)
        return err;
    s->project_id = project.id;
    s->model = x->node->config->ai_model;
    s->id = own_id_new(t, w->uid);
    hook_key_new(t, s->key);
    digest(w, s->asked);
    return 0;
}

int extract_submit(struct task *t, struct extract *x, const struct extract_wish *w,
                   struct extract_submitted *out)
{
    struct submission s = {.extract = x, .wish = w};
    bool repeated = false;
    int err = prepare(t, x, &s);
    if (err)
        return err;
    struct promise promise = {.uid = w->uid,
                              .cents = s.cents * (int64_t)s.count,
                              .what = "task",
                              .repeats = repeats,
                              .write = write_all,
                              .arg = &s};
    err = promise_make(t, x->node->runs, &promise, &repeated);
    if (err)
        return err;
    if (repeated) {
        *out = s.first;
        return 0;
    }
    *out = (struct extract_submitted){.id = s.id, .total = (int64_t)s.count};
    if (w->webhook.p)
        out->webhook_secret = hook_secret(task_arena(t), str_of(s.key));
    push(&s);
    return 0;
}
