/* Tasks as users see them: the row says what is promised, Redis how far it is. */
#include "app/plan/plans_private.h"
#include "base/log.h"
#include "engine/jobs/pay.h"
#include "engine/store/cache.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define MS(column) "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"
#define COLUMNS                                                                                    \
    "id, kind, state, COALESCE(error, waits), plan_id, cents, " MS(                                \
        "created_at") ", IF(result IS NULL, 0, 75), COALESCE(error_code, waits_code)"              \
                      " FROM generation_task "

/* --- Redis --- */

int plan_task_tell(struct task *t, struct plans *p, const struct plan_task *x, int64_t uid)
{
    struct arena *a = task_arena(t);
    int64_t told;
    const struct str fields[] = {
        STR("user_id"),       str_int(a, uid),
        STR("type"),          str_of(plan_types[x->kind].plans),
        STR("result_data"),   x->plan_id.p ? x->plan_id : STR(""),
        STR("error_message"), x->message.p ? x->message : STR(""),
        STR("reason_code"),   x->reason.p ? x->reason : STR(""),
        STR("created_at"),    str_int(a, x->created_ms / 1000),
    };
    return SCRIPT_NUMBER(t, p->node->redis, plan_progress, &told,
                         .task = key_generation_task(a, x->id),
                         .pending = key_pending_tasks(a, uid), .id = x->id, .status = x->status,
                         .progress = str_int(a, x->progress), .ms = str_int(a, PLAN_TASK_MS),
                         .fields = {fields, sizeof fields / sizeof *fields});
}

void plan_task_note(struct task *t, struct plans *p, const struct plan_task *x, int64_t uid)
{
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (redis_up(p->node->redis) && plan_task_tell(t, p, x, uid)) {
        log_debug("plan", "Redis is not told how far %.*s is: %s", STR_ARG(x->id), task_error(t));
        (void)task_fail(t, 0, "%s", text);
    }
}

/* What Redis says of it. False: nothing. */
static bool read_hash(const struct redis_reply *r, struct plan_task *out)
{
    struct str kind = record_value(r, "type"), plan = record_value(r, "result_data"),
               message = record_value(r, "error_message"), reason = record_value(r, "reason_code");
    int64_t created_s;
    if (!str_ends(kind, STR("_plan")) ||
        !plan_kind_read(str_from(kind.p, kind.n - strlen("_plan")), &out->kind) ||
        !str_to_i64(record_value(r, "created_at"), &created_s) ||
        !str_to_i64(record_value(r, "progress"), &out->progress))
        return false;
    out->status = record_value(r, "status");
    out->created_ms = created_s * 1000;
    out->plan_id = plan.n ? plan : STR_NULL;
    out->message = message.n ? message : STR_NULL;
    out->reason = reason.n ? reason : STR_NULL;
    out->cents = -1;
    return out->status.p != NULL;
}

static int look(struct task *t, struct plans *p, struct str id, struct plan_task *out, bool *found)
{
    struct str key = key_generation_task(task_arena(t), id);
    const struct redis_reply *r;
    *found = false;
    int err = redis_call(t, p->node->redis, key, &r, STR("HGETALL"), key);
    if (err)
        return cache_goes_on(t) ? 0 : err;
    *out = (struct plan_task){.id = id};
    *found = read_hash(r, out);
    return 0;
}

/* --- MySQL --- */

static struct str status_of(struct str state)
{
    bool open = str_eq(state, STR("pending")) || str_eq(state, STR("working"));
    return open ? STR("generating") : state;
}

static bool is_open(const struct plan_task *x)
{
    return str_eq(x->status, STR("generating"));
}

static int read_row(struct task *t, const struct sql_value *cell, struct plan_task *out)
{
    struct plan_task x = {.id = cell[0].s,
                          .status = status_of(cell[2].s),
                          .message = cell[3].s,
                          .plan_id = cell[4].s,
                          .cents = cell[5].i,
                          .created_ms = cell[6].i,
                          .progress = cell[7].i,
                          .reason = cell[8].s};
    if (!plan_kind_read(cell[1].s, &x.kind))
        return task_fail(t, ERR_INTERNAL, "task %.*s has no known kind", STR_ARG(cell[0].s));
    if (str_eq(x.status, STR("completed")))
        x.progress = 100;
    *out = x;
    return 0;
}

/* While it is made, Redis knows better how far it is. */
static int add_progress(struct task *t, struct plans *p, struct plan_task *x)
{
    struct plan_task hot;
    bool found = false;
    int err = is_open(x) ? look(t, p, x->id, &hot, &found) : 0;
    if (!err && found && hot.progress > x->progress && hot.progress < 100)
        x->progress = hot.progress;
    x->degraded = !redis_up(p->node->redis);
    return err;
}

static int none(struct task *t)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no such task");
}

int plan_task_get(struct task *t, struct plans *p, int64_t uid, struct str id,
                  struct plan_task *out)
{
    struct sql_rows r;
    struct plan_task x;
    bool found;
    if (!own_id_is(id, uid))
        return none(t);
    int err = sql_call(t, p->node->sql, &r, "SELECT " COLUMNS "WHERE id = ? AND uid = ?",
                       sql_text(id), sql_int(uid));
    if (err_is_outage(err) && cache_goes_on(t)) {
        int away = err;
        err = look(t, p, id, &x, &found);
        if (!err && !found)
            return away;
        x.degraded = true;
    } else if (!err) {
        err = r.count ? read_row(t, r.cells, &x) : none(t);
        if (!err)
            err = add_progress(t, p, &x);
    }
    if (!err)
        *out = x;
    return err;
}

int plan_task_list(struct task *t, struct plans *p, int64_t uid, struct plan_task **out,
                   size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       "SELECT " COLUMNS "WHERE uid = ? AND state IN ('pending', 'working')"
                       " ORDER BY number",
                       sql_int(uid));
    if (err)
        return err;
    struct plan_task *list = ARENA_ARRAY(task_arena(t), struct plan_task, r.count + 1);
    for (size_t i = 0; !err && i < r.count; i++) {
        err = read_row(t, sql_row(&r, i), &list[i]);
        if (!err)
            err = add_progress(t, p, &list[i]);
    }
    *out = list;
    *count = r.count;
    return err;
}

/* --- cancelling --- */

struct cancelling {
    int64_t uid;
    struct str id;
    int64_t version, number;
};

static int refuse_cancel(struct task *t, struct sql *c, const struct cancelling *x)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT state, paying FROM generation_task WHERE id = ? AND uid = ?",
                     sql_text(x->id), sql_int(x->uid));
    if (err)
        return err;
    if (r.count == 0)
        return none(t);
    if (str_eq(status_of(r.cells[0].s), STR("generating")))
        return task_fail(t, ERR_CONFLICT, "the plan is made, and is being paid and stored");
    return task_fail(t, ERR_CONFLICT, "it is %.*s already", STR_ARG(r.cells[0].s));
}

/* The row decides between this and a payment (generate.c): it has either paying or an end. */
static int cancel_body(struct task *t, struct sql *c, void *arg)
{
    struct cancelling *x = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "UPDATE generation_task SET state = 'cancelled', version = version + 1,"
                     " error = NULL, error_code = '" PLAN_CANCELLED "', waits = NULL,"
                     " waits_code = NULL, ended_at = UTC_TIMESTAMP(3), swept = 0"
                     " WHERE id = ? AND uid = ? AND state IN ('pending', 'working')"
                     " AND paying = 0",
                     sql_text(x->id), sql_int(x->uid));
    if (!err && r.affected == 0)
        err = refuse_cancel(t, c, x);
    if (!err)
        err = sql_on(t, c, &r, "SELECT version, number FROM generation_task WHERE id = ?",
                     sql_text(x->id));
    if (err)
        return err;
    x->version = r.cells[0].i;
    x->number = r.cells[1].i;
    return job_free(t, c, PLAN_QUEUE, x->id);
}

/* A later version is pushed, so that work on the earlier one ends within a third of its lease. */
int plan_task_cancel(struct task *t, struct plans *p, int64_t uid, struct str id,
                     struct plan_task *out)
{
    struct cancelling x = {.uid = uid, .id = id};
    if (!own_id_is(id, uid))
        return none(t);
    int err = sql_tx(t, p->node->sql, cancel_body, &x);
    if (err)
        return err;
    struct job_push job = {
        .id = id, .uid = uid, .version = x.version, .priority = 1, .order = x.number};
    if (jobs_push(t, p->node->jobs, PLAN_QUEUE, &job, 1, NULL) == ERR_CANCELED)
        return ERR_CANCELED;
    err = plan_task_get(t, p, uid, id, out);
    if (!err)
        plan_task_note(t, p, out, uid);
    return err;
}
