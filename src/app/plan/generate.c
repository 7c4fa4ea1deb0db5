/* A task is worked on: asked, kept, paid, stored (plans.h). Each step looks at what the row has, so
 * that a node that goes on after another repeats nothing that was kept. */
#include "app/plan/plans_private.h"
#include "base/log.h"
#include "engine/ai/ai.h"
#include "engine/jobs/pay.h"
#include "loop/backoff.h"

#define NOTE_EACH_MS 300 /* while an answer comes in */
#define ASKED        5   /* per cent */
#define FIRST_SEEN   10
#define LAST_SEEN    70
#define CHECKED      75
#define KEPT         95 /* it is being paid, and stored */
#define DONE         100

struct making {
    struct plans *plans;
    const struct job *job;
    struct plan_task view; /* as Redis is told */
    struct plan plan;      /* as it will be stored */
    struct str prompt, model, result, complaint;
    int64_t asks, cents;
    bool swept, final;
    struct plan_shape shape;
    size_t days_seen;
    struct plan_owner owner;
    struct plan_snapshot at;
};

static int after(struct task *t, const struct making *m, const char *step)
{
    return m->plans->dies ? m->plans->dies(t, step) : 0;
}

static void note(struct task *t, struct making *m, int64_t progress)
{
    m->view.progress = progress;
    plan_task_note(t, m->plans, &m->view, m->job->uid);
}

/* --- the row --- */

static bool ended(struct str state)
{
    return !str_eq(state, STR("pending")) && !str_eq(state, STR("working"));
}

static void read_row(struct task *t, const struct sql_value *v, struct making *m)
{
    struct plan *x = &m->plan;
    x->number = v[3].i;
    x->template_id = v[4].i;
    x->template_version = v[5].i;
    x->variables = v[6].s;
    x->start_date = v[7].s;
    x->weeks = v[8].i;
    x->simulated = v[14].i != 0;
    m->prompt = v[9].s;
    m->model = v[10].s;
    m->cents = v[11].i;
    m->asks = v[12].i;
    m->result = v[13].s;
    m->complaint = v[15].s;
    m->swept = v[16].i != 0;
    x->id = plan_id_of_task(task_arena(t), m->job->uid, x->kind, m->job->id);
    m->view = (struct plan_task){.id = m->job->id,
                                 .status = STR("generating"),
                                 .kind = x->kind,
                                 .message = v[18].s,
                                 .reason = v[19].s,
                                 .created_ms = v[17].i};
}

/* m->final: nothing is left to do, or a later version of the row has its own job. */
static int look(struct task *t, struct making *m)
{
    struct plan_frame f;
    struct sql_rows r;
    int err = sql_call(t, m->plans->node->sql, &r,
                       "SELECT state, version, kind, number, template_id, template_version,"
                       " variables, start_date, weeks, prompt, model, cents, asks, result,"
                       " simulated, complaint, swept,"
                       " TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) DIV 1000, waits,"
                       " waits_code"
                       " FROM generation_task WHERE id = ? AND uid = ?",
                       sql_text(m->job->id), sql_int(m->job->uid));
    if (err)
        return err;
    m->final = r.count == 0 || ended(r.cells[0].s) || r.cells[1].i != m->job->version;
    if (m->final)
        return 0;
    m->plan.uid = m->job->uid;
    if (!plan_kind_read(r.cells[2].s, &m->plan.kind) || !own_id_is(m->job->id, m->job->uid))
        return task_fail(t, ERR_INTERNAL, "its row cannot be read");
    read_row(t, r.cells, m);
    f = (struct plan_frame){m->plan.kind, m->plan.start_date, m->plan.weeks};
    m->plan.end_date = plan_date(task_arena(t), &f, f.weeks * 7 - 1);
    return 0;
}

#define OF_THIS " WHERE id = ? AND version = ? AND state IN ('pending', 'working')"

/* Changes the row in the version that is worked on. m->final: there is no such row any more. What
 * was so before is not counted as affected. */
static int change(struct task *t, struct making *m, const char *statement, struct sql_value a,
                  struct sql_value b)
{
    struct sql_pool *sql = m->plans->node->sql;
    struct sql_value id = sql_text(m->job->id), version = sql_int(m->job->version);
    struct sql_rows r;
    int err = sql_call(t, sql, &r, statement, a, b, id, version);
    if (err || r.affected)
        return err;
    err = sql_call(t, sql, &r, "SELECT 1 FROM generation_task" OF_THIS, id, version);
    m->final = !err && r.count == 0;
    return err;
}

/* It may have ended before, and an admin tries it again: how it ends is to be told once more. */
static int begin(struct task *t, struct making *m)
{
    return m->swept ? change(t, m, "UPDATE generation_task SET swept = ?, asks = ?" OF_THIS,
                             sql_int(0), sql_int(0))
                    : 0;
}

/* --- asking --- */

static void days_seen(void *arg, size_t days)
{
    struct making *m = arg;
    m->days_seen = days;
}

/* The answer is read where nothing can wait, so another task tells Redis. */
static void note_task(struct task *t, void *arg)
{
    struct making *m = arg;
    size_t told = 0, all = (size_t)m->plan.weeks * 7;
    while (!backoff_wait(t, &(struct backoff){.ms = NOTE_EACH_MS})) {
        struct task_scope s = task_scope(t);
        size_t seen = m->days_seen < all ? m->days_seen : all;
        if (seen > told)
            note(t, m, FIRST_SEEN + (int64_t)seen * (LAST_SEEN - FIRST_SEEN) / (int64_t)all);
        told = seen > told ? seen : told;
        task_scope_end(t, s);
    }
}

/* What keeps the service from answering is for the user to see while the task waits. */
static int say_it_waits(struct task *t, struct making *m, int err, const char *reason)
{
    struct str why = str_dup(task_arena(t), str_of(task_error(t)));
    m->view.message = why;
    m->view.reason = str_of(reason);
    if (change(t, m, "UPDATE generation_task SET waits = LEFT(?, 1000), waits_code = ?" OF_THIS,
               sql_text(why), sql_text(m->view.reason)) == ERR_CANCELED)
        return ERR_CANCELED;
    note(t, m, m->view.progress);
    return task_fail(t, err, "%.*s", STR_ARG(why));
}

static const char *reason_of(int err, const struct plan_answer *a)
{
    return a->reason                                    ? a->reason
           : err == ERR_UNAVAILABLE || err == ERR_PROTO ? PLAN_SERVICE_DOWN
           : err == ERR_REFUSED                         ? PLAN_REFUSED
           : err == ERR_TIMEOUT                         ? PLAN_TOO_SLOW
                                                        : JOB_OTHER;
}

static int ask(struct task *t, struct making *m, struct plan_answer *out)
{
    struct plans *p = m->plans;
    struct plan_question q = {
        .frame = {m->plan.kind, m->plan.start_date, m->plan.weeks},
        .prompt = m->prompt,
        .model = m->model,
        .complaint = m->complaint,
        .asks = m->job->asks,
        .seen = days_seen,
        .arg = m,
    };
    struct group g;
    group_init(&g, task_loop(t));
    m->days_seen = 0;
    note(t, m, ASKED);
    if (task_go(&g, "plan-note", note_task, m))
        log_debug("plan", "no stack is free: progress of %.*s is not told", STR_ARG(m->job->id));
    int err = p->ask(t, p, &q, out);
    group_cancel(&g);
    int joined = group_join(t, &g);
    return err ? ai_job_error(t, m->plans->node->ai, err) : joined;
}

static void waits_no_more(struct making *m)
{
    m->view.message = m->view.reason = STR_NULL;
}

static int keep(struct task *t, struct making *m, bool simulated)
{
    m->plan.simulated = simulated;
    int err = change(t, m,
                     "UPDATE generation_task SET result = ?, simulated = ?, waits = NULL,"
                     " waits_code = NULL, complaint = NULL, asks = asks + 1" OF_THIS,
                     sql_text(m->result), sql_int(simulated));
    waits_no_more(m);
    if (!err && !m->final)
        note(t, m, CHECKED);
    return err;
}

/* Its complaint is kept, so that the next one to ask knows it. After the last one all begins
 * anew, if an admin tries it again. */
static int wrong(struct task *t, struct making *m, const char *complaint)
{
    m->asks++;
    m->complaint = str_of(complaint);
    waits_no_more(m);
    int err = change(t, m,
                     "UPDATE generation_task SET asks = ?, complaint = LEFT(?, 1000),"
                     " waits = NULL, waits_code = NULL" OF_THIS,
                     sql_int(m->asks < PLAN_ASKS_MAX ? m->asks : 0), sql_text(str_of(complaint)));
    if (err || m->final || m->asks < PLAN_ASKS_MAX)
        return err;
    job_reason(m->job, PLAN_BAD_ANSWER);
    return task_fail(t, ERR_INVALID, "the AI gave no plan that can be used: %s", complaint);
}

static struct str result_of(struct task *t, const struct plan_shape *s)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_put_str(&w, "name", s->name);
    if (s->difficulty.p)
        jw_put_str(&w, "difficulty", s->difficulty);
    if (s->macro_ratio.p) {
        jw_put_int(&w, "daily_calories", s->daily_calories);
        jw_key(&w, STR("macro_ratio"));
        jw_raw(&w, s->macro_ratio);
    }
    jw_put_array(&w, "days");
    for (size_t i = 0; i < s->day_count; i++)
        jw_raw(&w, s->days[i].json);
    jw_end_array(&w);
    return jw_finish(&w, task_arena(t));
}

/* Until m->result is there and kept. */
static int obtain(struct task *t, struct making *m)
{
    int err = m->result.p ? 0 : job_ask_begin(t, m->job);
    m->asks = m->asks < PLAN_ASKS_MAX ? m->asks : 0;
    while (!err && !m->final && !m->result.p) {
        struct plan_answer answer = {.complaint = NULL};
        err = ask(t, m, &answer);
        if (err)
            job_reason(m->job, reason_of(err, &answer));
        if (err == ERR_UNAVAILABLE)
            err = say_it_waits(t, m, err, reason_of(err, &answer));
        if (err)
            return err;
        metric_add(m->plans->asks, 1);
        metric_add(m->plans->wrong, answer.complaint != NULL);
        if (answer.complaint) {
            err = wrong(t, m, answer.complaint);
            continue;
        }
        job_ask_end(m->job);
        m->shape = answer.shape;
        m->result = result_of(t, &answer.shape);
        err = keep(t, m, answer.simulated);
        if (!err && !m->final)
            err = after(t, m, "keep");
    }
    return err;
}

/* --- paying --- */

/* Without money, or while the account is stopped, it waits, and can be cancelled: unless a node
 * that took the job over, because this one stood still, is paying meanwhile. */
static int refused(struct task *t, struct making *m, int64_t token, int held)
{
    const char *why = arena_strdup(task_arena(t), task_error(t));
    int err = after(t, m, "refused");
    if (!err)
        err = change(
            t, m,
            "UPDATE generation_task SET waits_code = ?, paying = IF(paying = ?, 0, paying)" OF_THIS,
            sql_null(), sql_int(token));
    if (err) {
        job_reason(m->job, NULL);
        return err;
    }
    m->view.message = str_of(why);
    m->view.reason = held == ERR_FUNDS ? STR(JOB_NO_MONEY) : STR(JOB_STOPPED);
    note(t, m, KEPT);
    return task_fail(t, held, "%s", why);
}

/* From here on it cannot be cancelled. */
static int pay(struct task *t, struct making *m)
{
    int64_t token = (int64_t)(loop_random(task_loop(t)) >> 1 | 1);
    int err =
        change(t, m, "UPDATE generation_task SET paying = ?, waits = NULL, waits_code = ?" OF_THIS,
               sql_int(token), sql_null());
    if (err || m->final)
        return err;
    waits_no_more(m);
    note(t, m, KEPT);
    err = job_pay(t, m->plans->node->ledger, PLAN_QUEUE, m->job, m->cents);
    if (err == ERR_FUNDS || err == ERR_RATE)
        return refused(t, m, token, err);
    return err ? err : after(t, m, "pay");
}

/* --- storing --- */

/* The plan as it was kept; a node that goes on has only that. */
static int read_result(struct task *t, struct making *m)
{
    struct plan_frame f = {m->plan.kind, m->plan.start_date, m->plan.weeks};
    const char *complaint;
    if (!m->shape.days && plan_shape_read(task_arena(t), &f, m->result, &m->shape, &complaint))
        return task_fail(t, ERR_INTERNAL, "the plan that was kept cannot be read: %s", complaint);
    m->plan.name = m->shape.name;
    m->plan.difficulty = m->shape.difficulty;
    m->plan.daily_calories = m->shape.daily_calories;
    m->plan.macro_ratio = m->shape.macro_ratio;
    m->plan.version = 1;
    m->plan.created_ms = m->plan.changed_ms = loop_wall_ms(task_loop(t));
    return 0;
}

static int store_body(struct task *t, struct sql *c, void *arg)
{
    struct making *m = arg;
    struct sql_rows r;
    const struct job *j = m->job;
    int err = plan_owner_lock(t, c, j->uid, &m->owner);
    if (!err)
        err = sql_on(t, c, &r,
                     "UPDATE generation_task SET state = 'completed', error = NULL,"
                     " error_code = NULL, plan_id = ?, result = NULL, swept = 0, ended_at = "
                     "UTC_TIMESTAMP(3),"
                     " changed_at = UTC_TIMESTAMP(3)" OF_THIS,
                     sql_text(m->plan.id), sql_text(j->id), sql_int(j->version));
    m->final = !err && r.affected == 0;
    if (m->final)
        err = task_fail(t, ERR_EXISTS, "another node has stored it");
    if (!err)
        err = plan_insert(t, c, &m->plan, &m->shape);
    m->plan.active = !m->owner.active[m->plan.kind].p;
    if (!err && m->plan.active)
        err = plan_owner_activate(t, c, j->uid, m->plan.kind, m->plan.id, &m->owner);
    return err ? err : job_free(t, c, PLAN_QUEUE, j->id);
}

/* All of it in one call. What is filled counts as read when it was stored: a later change of a day
 * refuses it. */
static int fill_caches(struct task *t, struct making *m)
{
    struct arena *a = task_arena(t);
    bool training = m->plan.kind == PLAN_TRAINING;
    size_t n = 0;
    struct plan_entry *e = ARENA_ARRAY(a, struct plan_entry, m->shape.day_count + 1);
    m->plan.days = plan_days_json(a, &m->shape);
    e[n++] = plan_entry_of(a, &m->plan);
    for (size_t i = 0; (training || m->plan.active) && i < m->shape.day_count; i++) {
        struct plan_date d = {m->plan.kind, m->plan.id, m->shape.days[i], 1, false};
        e[n++] = plan_date_entry(a, m->job->uid, &d);
    }
    m->at.version = m->owner.version;
    m->at.owner = &m->owner;
    return plan_fill(t, m->plans, m->job->uid, &m->at, e, n);
}

static int store(struct task *t, struct making *m)
{
    int64_t began_us = loop_now_us(task_loop(t));
    int err = read_result(t, m);
    m->at.generation = plan_generation(t, m->plans, m->job->uid);
    if (!err)
        err = sql_tx(t, m->plans->node->sql, store_body, m);
    if (err)
        return m->final ? JOB_WRITTEN : err;
    metric_add(m->plans->completed, 1);
    err = fill_caches(t, m);
    histogram_add_us(m->plans->store_seconds, loop_now_us(task_loop(t)) - began_us);
    m->view.status = STR("completed");
    m->view.plan_id = m->plan.id;
    note(t, m, DONE);
    return err == ERR_CANCELED ? err : JOB_WRITTEN;
}

int plan_work(struct task *t, void *arg, const struct job *j)
{
    struct making m = {.plans = arg, .job = j};
    int err = look(t, &m);
    if (!err && !m.final)
        err = begin(t, &m);
    if (!err && !m.final)
        err = obtain(t, &m);
    if (!err && !m.final)
        err = pay(t, &m);
    if (err || m.final)
        return err ? err : JOB_WRITTEN;
    return store(t, &m);
}
