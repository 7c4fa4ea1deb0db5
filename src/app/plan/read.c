/* Reading plans: Redis, then MySQL, then Redis is filled. */
#include "app/plan/plans_private.h"

/* Several requests that miss the same thing at once read it each: by a primary key. */
static int read_plan(struct task *t, struct plans *p, int64_t uid, struct plan *x)
{
    struct plan_snapshot at;
    bool found, away;
    int err = plan_look(t, p, uid, x, &found, &away);
    if (err || found)
        return err;
    metric_add(p->plan[x->kind].loads, 1);
    err = plan_load(t, p, uid, x, &at);
    if (err)
        return err;
    x->degraded = away;
    struct plan_entry e[2] = {plan_entry_of(task_arena(t), x)};
    if (x->active)
        e[1] = plan_active_entry(task_arena(t), uid, x->kind, x->id);
    return plan_fill(t, p, uid, &at, e, x->active ? 2 : 1);
}

int plan_get(struct task *t, struct plans *p, int64_t uid, struct str id, struct plan *out)
{
    struct plan x = {.id = id};
    if (!plan_id_is(id, uid, &x.kind))
        return plan_none(t);
    int err = read_plan(t, p, uid, &x);
    if (!err)
        *out = x;
    return err;
}

static int none_active(struct task *t, enum plan_kind kind)
{
    return task_fail(t, ERR_NOT_FOUND, "no %s plan is active", plan_kind_name(kind));
}

/* The plan may have been deleted, or another one activated, since its id was read. */
int plan_active(struct task *t, struct plans *p, int64_t uid, enum plan_kind kind, struct plan *out)
{
    struct plan x = {.kind = kind};
    struct plan_snapshot at;
    bool found, away;
    int err = plan_active_look(t, p, uid, kind, &x.id, &found, &away);
    if (!err && !found) {
        metric_add(p->active.loads, 1);
        err = plan_active_load(t, p, uid, kind, &x.id, &at);
    }
    if (!err && !x.id.p)
        err = none_active(t, kind);
    if (!err)
        err = read_plan(t, p, uid, &x);
    if (err == ERR_NOT_FOUND)
        err = none_active(t, kind);
    if (!err)
        *out = x;
    return err;
}

int plan_date_get(struct task *t, struct plans *p, int64_t uid, struct str id, struct str date,
                  struct plan_date *out)
{
    struct plan_date d = {.plan_id = id, .day.date = date};
    struct plan_snapshot at;
    bool found, away, active;
    if (!plan_id_is(id, uid, &d.kind) || !plan_date_is(date))
        return task_fail(t, ERR_NOT_FOUND, "there is no such plan, or no such day");
    int err = plan_date_look(t, p, uid, &d, &found, &away);
    if (!err && !found) {
        metric_add(p->day[d.kind].loads, 1);
        err = plan_date_load(t, p, uid, &d, &active, &at);
        d.degraded = away;
        /* Redis has days of trainings by plan, and those of the active nutrition by user. */
        if (!err && (d.kind == PLAN_TRAINING || active)) {
            struct plan_entry e = plan_date_entry(task_arena(t), uid, &d);
            err = plan_fill(t, p, uid, &at, &e, 1);
        }
    }
    if (!err)
        *out = d;
    return err;
}
