/* Changes of plans: MySQL first, then Redis is told. */
#include "app/plan/plans_private.h"
#include "engine/store/cache.h"

/* A change of one plan, in a transaction that has locked its owner. */
struct change {
    struct plan plan; /* kind, id and uid; the rest is read */
    struct plan_owner owner;
    struct plan_date date; /* of a day that is put: all but the version */
    int64_t version;       /* that it had */
    struct str was;        /* the plan that was active */
    bool none;             /* nothing had to be done: rolled back */
    struct plan_snapshot at;
};

/* *x is filled, but for its days. */
static int read_row(struct task *t, struct sql *c, struct plan *x)
{
    const struct record_kind *k = &plan_types[x->kind].record;
    struct sql_rows r;
    int err = sql_on(
        t, c, &r,
        record_select(task_arena(t), k, "WHERE x.id = ? AND x.uid = ? AND x.deleted IS NULL"),
        sql_text(x->id), sql_int(x->uid));
    if (err || r.count == 0)
        return err ? err : plan_none(t);
    record_take(k, r.cells, x);
    return 0;
}

static int begin(struct task *t, struct sql *c, struct change *x)
{
    x->none = false;
    int err = plan_owner_lock(t, c, x->plan.uid, &x->owner);
    if (!err)
        err = read_row(t, c, &x->plan);
    x->at.version = x->owner.version;
    return err;
}

/* After the commit. If Redis does not hear of it now, it does by plans_role. */
static int told(struct task *t, struct plans *p, const struct change *x)
{
    int err = plan_tell(t, p, x->plan.uid, &x->owner, NULL, 0);
    return err && !cache_goes_on(t) ? err : 0;
}

static int open_change(struct task *t, const struct plans *p, int64_t uid, struct str id,
                       struct change *out)
{
    *out = (struct change){.plan = {.id = id, .uid = uid}};
    out->at.generation = plan_generation(t, p, uid);
    return plan_id_is(id, uid, &out->plan.kind) ? 0 : plan_none(t);
}

/* --- a day --- */

static int stale(struct task *t, struct sql *c, const struct change *x, const struct plan_type *y)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     arena_printf(task_arena(t),
                                  "SELECT version FROM %s WHERE plan_id = ? AND date = ?", y->days),
                     sql_text(x->plan.id), sql_text(x->date.day.date));
    if (err)
        return err;
    if (r.count == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no such plan, or no such day");
    return task_fail(t, ERR_CONFLICT,
                     "the day was changed meanwhile: it has version %lld, not %lld",
                     (long long)r.cells[0].i, (long long)x->version);
}

static int put_body(struct task *t, struct sql *c, void *arg)
{
    struct change *x = arg;
    const struct plan_type *y = &plan_types[x->plan.kind];
    struct sql_rows r;
    int err = begin(t, c, x);
    if (!err)
        err = sql_on(t, c, &r,
                     arena_printf(task_arena(t),
                                  "UPDATE %s SET day = ?, version = version + 1"
                                  " WHERE plan_id = ? AND date = ? AND version = ?",
                                  y->days),
                     sql_text(x->date.day.json), sql_text(x->plan.id), sql_text(x->date.day.date),
                     sql_int(x->version));
    if (!err && r.affected == 0)
        err = stale(t, c, x, y);
    return err ? err
               : sql_on(t, c, NULL,
                        arena_printf(task_arena(t),
                                     "UPDATE %s SET version = version + 1,"
                                     " changed_at = UTC_TIMESTAMP(3) WHERE id = ?",
                                     y->plans),
                        sql_text(x->plan.id));
}

/* The date in the path counts; one in the day must be the same. */
static int read_day(struct task *t, const struct plan *x, struct str date, const struct json *day,
                    struct plan_day *out, const char **complaint)
{
    struct plan_frame f = {x->kind, x->start_date, x->weeks};
    if (!plan_frame_has(&f, date))
        return task_fail(t, ERR_NOT_FOUND, "there is no such plan, or no such day");
    int err = plan_day_read(task_arena(t), &f, day, out, complaint);
    if (!err && !str_eq(out->date, date)) {
        *complaint = "its date must be that of the address";
        err = ERR_INVALID;
    }
    return err;
}

int plan_date_put(struct task *t, struct plans *p, int64_t uid, struct str id, struct str date,
                  int64_t version, const struct json *day, struct plan_date *out,
                  const char **complaint)
{
    struct change x;
    struct plan seen = {.id = id};
    struct plan_snapshot at;
    *complaint = NULL;
    int err = open_change(t, p, uid, id, &x);
    seen.kind = x.plan.kind;
    if (!err)
        err = plan_load(t, p, uid, &seen, &at);
    if (!err)
        err = read_day(t, &seen, date, day, &x.date.day, complaint);
    if (err)
        return err;
    x.date.kind = x.plan.kind;
    x.date.plan_id = id;
    x.date.version = version + 1;
    x.version = version;
    err = sql_tx(t, p->node->sql, put_body, &x);
    if (err)
        return err;
    err = told(t, p, &x);
    if (!err && (x.date.kind == PLAN_TRAINING || x.plan.active)) {
        struct plan_entry e = plan_date_entry(task_arena(t), uid, &x.date);
        err = plan_fill(t, p, uid, &x.at, &e, 1);
    }
    if (!err)
        *out = x.date;
    return err;
}

/* --- which one is active --- */

#define NOTHING_TO_DO ERR_EXISTS /* of a body: the count must not move */

static int activate_body(struct task *t, struct sql *c, void *arg)
{
    struct change *x = arg;
    int err = begin(t, c, x);
    if (!err && x->plan.active) {
        x->none = true;
        return NOTHING_TO_DO;
    }
    x->was = x->owner.active[x->plan.kind];
    return err ? err : plan_owner_activate(t, c, x->plan.uid, x->plan.kind, x->plan.id, &x->owner);
}

int plan_activate(struct task *t, struct plans *p, int64_t uid, struct str id, struct str *was)
{
    struct change x;
    int err = open_change(t, p, uid, id, &x);
    if (!err)
        err = sql_tx(t, p->node->sql, activate_body, &x);
    if (err && !x.none)
        return err;
    *was = x.none ? x.plan.id : x.was;
    return x.none ? 0 : told(t, p, &x);
}

/* --- deletion --- */

static int delete_body(struct task *t, struct sql *c, void *arg)
{
    struct change *x = arg;
    int err = begin(t, c, x);
    if (!err)
        err = sql_on(t, c, NULL,
                     arena_printf(task_arena(t),
                                  "UPDATE %s SET deleted = UTC_TIMESTAMP(3) WHERE id = ?",
                                  plan_types[x->plan.kind].plans),
                     sql_text(x->plan.id));
    if (!err && x->plan.active)
        err = plan_owner_activate(t, c, x->plan.uid, x->plan.kind, STR_NULL, &x->owner);
    return err;
}

/* Rows and keys go in the background (sweep.c). */
int plan_delete(struct task *t, struct plans *p, int64_t uid, struct str id)
{
    struct change x;
    int err = open_change(t, p, uid, id, &x);
    if (!err)
        err = sql_tx(t, p->node->sql, delete_body, &x);
    return err ? err : told(t, p, &x);
}
