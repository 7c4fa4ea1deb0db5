/* A plan is promised: its row and the money for it in one transaction, then the job. */
#include "app/plan/plans_private.h"
#include "app/plan/template.h"
#include "base/sha256.h"
#include "engine/jobs/pay.h"
#include "engine/runs/promise.h"
#include "engine/setup/config.h"

struct submission {
    const struct plan_wish *wish;
    char asked[SHA256_HEX_BYTES]; /* digest of the wish: tells a repeat from another one */
    struct str id;
    int64_t number, cents;
    struct plan_template template;
    struct str prompt, variables, start_date;
    int64_t weeks;
    const char *model;
    struct str repeated; /* id of the first task */
    bool conflict;
};

const struct job_rows plan_job_rows = {.table = "generation_task",
                                       .id = "id",
                                       .uid = "uid",
                                       .position = "number",
                                       .version = "version",
                                       .priority = "1",
                                       .created = "created_at",
                                       .changed = "changed_at",
                                       .state = "state",
                                       .error = "error",
                                       .reason = "error_code",
                                       .cents = "cents",
                                       .pending = "pending",
                                       .working = "working",
                                       .completed = "completed",
                                       .failed = "failed"};

/* --- repeats --- */

static void digest(const struct plan_wish *w, char out[SHA256_HEX_BYTES])
{
    struct buf b;
    struct json_writer j;
    buf_init(&b);
    jw_init(&j, &b);
    jw_array(&j);
    jw_str(&j, str_of(plan_kind_name(w->kind)));
    jw_int(&j, w->template_id);
    if (w->variables)
        jw_json(&j, w->variables);
    jw_end_array(&j);
    sha256_hex(buf_str(&b), out);
    buf_release(&b);
}

#define REPEATED "SELECT id, asked FROM generation_task WHERE uid = ? AND request_id = ?"

static void read_repeated(const struct sql_rows *r, struct submission *s)
{
    s->repeated = r->count ? r->cells[0].s : STR_NULL;
    s->conflict = r->count && !str_eq(r->cells[1].s, str_of(s->asked));
}

static int refuse_request(struct task *t, const struct plan_wish *w)
{
    return task_fail(t, ERR_CONFLICT,
                     "request_id %.*s has submitted another plan: kind, template or variables "
                     "differ",
                     STR_ARG(w->request_id));
}

int plan_task_repeated(struct task *t, struct plans *p, const struct plan_wish *w, struct str *id)
{
    struct submission s = {.wish = w};
    struct sql_rows r;
    *id = STR_NULL;
    if (!w->request_id.p)
        return 0;
    digest(w, s.asked);
    int err = sql_call(t, p->node->sql, &r, REPEATED, sql_int(w->uid), sql_text(w->request_id));
    if (err)
        return err;
    read_repeated(&r, &s);
    if (s.conflict)
        return refuse_request(t, w);
    *id = s.repeated;
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
    read_repeated(&r, s);
    *repeated = s->repeated.p != NULL;
    return s->conflict ? refuse_request(t, s->wish) : 0;
}

/* --- the row --- */

static int check_room(struct task *t, struct sql *c, int64_t uid)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT (SELECT COUNT(*) FROM generation_task WHERE uid = ?"
                     " AND state IN ('pending', 'working')),"
                     " (SELECT COUNT(*) FROM training_plan WHERE uid = ? AND deleted IS NULL)"
                     " + (SELECT COUNT(*) FROM nutrition_plan WHERE uid = ? AND deleted IS NULL)",
                     sql_int(uid), sql_int(uid), sql_int(uid));
    if (err)
        return err;
    if (r.cells[0].i >= PLAN_TASKS_MAX)
        return task_fail(t, ERR_RATE, "%d of your plans are being made already", PLAN_TASKS_MAX);
    if (r.cells[0].i + r.cells[1].i >= PLANS_MAX)
        return task_fail(t, ERR_CONFLICT, "you have %d plans: delete some of them first",
                         PLANS_MAX);
    return 0;
}

static int write_row(struct task *t, struct sql *c, void *arg)
{
    struct submission *s = arg;
    struct sql_rows r;
    int err = check_room(t, c, s->wish->uid);
    if (!err)
        err = sql_on(t, c, &r,
                     "INSERT INTO generation_task (id, uid, kind, state, request_id, asked,"
                     " template_id, template_version, variables, prompt, model, start_date, weeks,"
                     " cents, created_at, changed_at) VALUES (?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?,"
                     " ?, ?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))",
                     sql_text(s->id), sql_int(s->wish->uid),
                     sql_text(str_of(plan_kind_name(s->wish->kind))), sql_text(s->wish->request_id),
                     sql_text(str_of(s->asked)), sql_int(s->template.id),
                     sql_int(s->template.version), sql_text(s->variables), sql_text(s->prompt),
                     sql_text(str_of(s->model)), sql_text(s->start_date), sql_int(s->weeks),
                     sql_int(s->cents));
    if (err)
        return err;
    s->number = (int64_t)r.insert_id;
    return job_reserve(t, c, PLAN_QUEUE, s->id, s->wish->uid, s->cents);
}

/* --- the whole --- */

static int fill_template(struct task *t, struct plans *p, struct submission *s)
{
    const struct plan_wish *w = s->wish;
    const struct json *full;
    int err = plan_template_get(t, p->node, str_of(plan_kind_name(w->kind)), w->template_id,
                                &s->template);
    if (!err)
        err = plan_template_fill(t, &s->template, w->variables, &s->prompt, &s->variables);
    if (err)
        return err;
    check(json_parse(task_arena(t), s->variables, &full, NULL) == 0);
    s->start_date = json_str(json_get(full, PLAN_START_DATE));
    if (!json_int(json_get(full, PLAN_WEEKS), &s->weeks) || !plan_date_is(s->start_date) ||
        s->weeks < 1 || s->weeks > PLAN_WEEKS_MAX)
        return task_fail(t, ERR_INVALID, "start_date: a date and a number of weeks are needed");
    return 0;
}

/* If the push does not reach Redis, jobs_refill_role finds the row. */
static int push(struct task *t, struct plans *p, const struct submission *s)
{
    struct job_push job = {
        .id = s->id, .uid = s->wish->uid, .version = 1, .priority = 1, .order = s->number};
    if (jobs_push(t, p->node->jobs, PLAN_QUEUE, &job, 1, NULL) == ERR_CANCELED)
        return ERR_CANCELED;
    struct plan_task x = {.id = s->id,
                          .status = STR("generating"),
                          .kind = s->wish->kind,
                          .created_ms = loop_wall_ms(task_loop(t))};
    plan_task_note(t, p, &x, s->wish->uid);
    return 0;
}

int64_t plan_price_cents(const struct config *c, enum plan_kind k)
{
    return k == PLAN_TRAINING ? c->plan_training_cents : c->plan_nutrition_cents;
}

int plan_task_submit(struct task *t, struct plans *p, const struct plan_wish *w, struct str *id,
                     bool *repeated)
{
    const struct config *c = p->node->config;
    struct submission s = {.wish = w, .cents = plan_price_cents(c, w->kind), .model = c->ai_model};
    int err = fill_template(t, p, &s);
    if (err)
        return err;
    digest(w, s.asked);
    s.id = own_id_new(t, w->uid);
    struct promise promise = {.uid = w->uid,
                              .cents = s.cents,
                              .what = "plan",
                              .repeats = repeats,
                              .write = write_row,
                              .arg = &s};
    err = promise_make(t, p->node->runs, &promise, repeated);
    if (err)
        return err;
    *id = *repeated ? s.repeated : s.id;
    return *repeated ? 0 : push(t, p, &s);
}
