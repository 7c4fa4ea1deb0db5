/* What is done about plans in the background. All of it can be repeated. */
#include "app/plan/plans_private.h"
#include "base/log.h"
#include "engine/jobs/pay.h"
#include "engine/store/keys.h"

#define TELL_EACH_MS 1000
#define PAGE         200
#define FORGOTTEN    "10 MINUTE" /* more than a Redis that comes back can have lost */

/* --- what Redis was not told: on every node --- */

static int tell_some(struct task *t, struct plans *p, bool *more)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       "SELECT uid, version, training, nutrition FROM plan_user"
                       " WHERE untold = 1 LIMIT ?",
                       sql_int(PAGE));
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        struct plan_owner o = {cell[1].i, {cell[2].s, cell[3].s}};
        err = plan_tell(t, p, cell[0].i, &o, NULL, 0);
        if (!err) /* a change that has come in between keeps its mark */
            err = sql_call(t, p->node->sql, NULL,
                           "UPDATE plan_user SET untold = 0 WHERE uid = ? AND version = ?", cell[0],
                           cell[1]);
    }
    *more = !err && r.count == PAGE;
    return err;
}

static int tell_all(struct task *t, struct plans *p)
{
    uint64_t epoch = redis_epoch(p->node->redis);
    int err = 0;
    for (bool more = true; !err && more;) {
        struct task_scope s = task_scope(t);
        err = tell_some(t, p, &more);
        task_scope_end(t, s);
    }
    if (!err && epoch == redis_epoch(p->node->redis))
        p->told_epoch = epoch;
    return err;
}

int plans_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct plans *p = arg;
    const struct redis *r = p->node->redis;
    int64_t now_ms = loop_now_ms(task_loop(t));
    (void)turn;
    if (!redis_up(r) || (now_ms < p->due_ms && redis_epoch(r) == p->tried_epoch))
        return ROLE_IDLE;
    p->tried_epoch = redis_epoch(r);
    p->due_ms = now_ms + TELL_EACH_MS;
    return tell_all(t, p);
}

/* --- tasks that are too old --- */

struct old {
    struct str id;
    int64_t uid, version;
    bool failed; /* else it has ended, or is being paid, since it was looked at */
};

static int fail_body(struct task *t, struct sql *c, void *arg)
{
    struct old *x = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "UPDATE generation_task SET state = 'failed', version = version + 1,"
                     " error = CONCAT('it was not made within 24 hours', IF(COALESCE(error, waits)"
                     " IS NULL, '', CONCAT(': ', LEFT(COALESCE(error, waits), 900)))),"
                     " error_code = '" PLAN_TOO_OLD "', ended_at = UTC_TIMESTAMP(3), swept = 0"
                     " WHERE id = ? AND version = ? AND state IN ('pending', 'working')"
                     " AND paying = 0",
                     sql_text(x->id), sql_int(x->version));
    x->failed = !err && r.affected > 0;
    return x->failed ? job_free(t, c, PLAN_QUEUE, x->id) : err;
}

static int fail_old(struct task *t, struct plans *p)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       "SELECT id, uid, version, number FROM generation_task"
                       " WHERE state IN ('pending', 'working') AND paying = 0"
                       " AND changed_at < UTC_TIMESTAMP(3) - INTERVAL 24 HOUR LIMIT ?",
                       sql_int(PAGE));
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        struct old x = {.id = cell[0].s, .uid = cell[1].i, .version = cell[2].i};
        struct job_push job = {
            .id = x.id, .uid = x.uid, .version = x.version + 1, .priority = 1, .order = cell[3].i};
        err = sql_tx(t, p->node->sql, fail_body, &x);
        if (!err && x.failed) /* work on it ends */
            err = jobs_push(t, p->node->jobs, PLAN_QUEUE, &job, 1, NULL);
    }
    return err;
}

/* --- ends that Redis has not heard of --- */

static struct plan_task view_of(const struct sql_value *cell)
{
    struct plan_task x = {.id = cell[0].s,
                          .status = cell[3].s,
                          .message = cell[4].s,
                          .reason = cell[7].s,
                          .plan_id = cell[5].s,
                          .created_ms = cell[6].i};
    if (!plan_kind_read(cell[2].s, &x.kind))
        x.kind = PLAN_TRAINING;
    x.progress = x.plan_id.p ? 100 : 0;
    return x;
}

/* The engine does not write ended_at of tasks that fail; tell_again goes by it. */
static int tell_ends(struct task *t, struct plans *p)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       "SELECT id, uid, kind, state, error, plan_id,"
                       " TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) DIV 1000,"
                       " error_code FROM generation_task WHERE swept = 0"
                       " AND state IN ('completed', 'failed', 'cancelled') LIMIT ?",
                       sql_int(PAGE));
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        struct plan_task x = view_of(cell);
        err = plan_task_tell(t, p, &x, cell[1].i);
        if (!err)
            err = sql_call(t, p->node->sql, NULL,
                           "UPDATE generation_task SET swept = 1,"
                           " ended_at = IF(state = 'failed', UTC_TIMESTAMP(3), ended_at)"
                           " WHERE id = ? AND state = ?",
                           cell[0], cell[3]);
    }
    return err;
}

/* A Redis that came back older has forgotten the last ends that it was told of. */
static int tell_again(struct task *t, struct plans *p)
{
    struct generation now = generation_now(p->node->redis);
    if (generation_lasts(p->node->redis, &p->swept))
        return 0;
    int err = sql_call(t, p->node->sql, NULL,
                       "UPDATE generation_task SET swept = 0 WHERE swept = 1"
                       " AND state IN ('completed', 'failed', 'cancelled')"
                       " AND ended_at > UTC_TIMESTAMP(3) - INTERVAL " FORGOTTEN);
    if (!err)
        p->swept = now;
    return err;
}

/* --- plans that were deleted --- */

static int remove_plan(struct task *t, struct plans *p, const struct plan *x)
{
    const struct plan_type *y = &plan_types[x->kind];
    struct plan_owner o;
    struct str *keys;
    size_t count = plan_keys(task_arena(t), x, &keys);
    int err = plan_owner_read(t, p, x->uid, &o);
    if (!err)
        err = plan_tell(t, p, x->uid, &o, keys, count);
    if (!err)
        err = sql_call(t, p->node->sql, NULL,
                       arena_printf(task_arena(t), "DELETE FROM %s WHERE plan_id = ?", y->days),
                       sql_text(x->id));
    return err ? err
               : sql_call(t, p->node->sql, NULL,
                          arena_printf(task_arena(t), "DELETE FROM %s WHERE id = ?", y->plans),
                          sql_text(x->id));
}

static int remove_deleted(struct task *t, struct plans *p, enum plan_kind kind,
                          struct role_turn *turn)
{
    const struct record_kind *k = &plan_types[kind].record;
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       record_select(task_arena(t), k, "WHERE x.deleted IS NOT NULL LIMIT ?"),
                       sql_int(PAGE));
    for (size_t i = 0; !err && i < r.count; i++) {
        struct plan x = {.kind = kind};
        record_take(k, sql_row(&r, i), &x);
        err = remove_plan(t, p, &x);
        if (!err)
            err = role_keep(t, turn);
    }
    return err;
}

int plans_sweep_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct plans *p = arg;
    int err = fail_old(t, p);
    if (!err)
        err = tell_again(t, p);
    if (!err)
        err = tell_ends(t, p);
    for (size_t i = 0; !err && i < PLAN_KIND_COUNT; i++)
        err = remove_deleted(t, p, (enum plan_kind)i, turn);
    return err;
}

/* --- warm-up: active plans and today's rows of users who were here lately --- */

#define SEEN_LATELY                                                                                \
    "SELECT u.uid, u.training, u.nutrition FROM plan_user u WHERE u.uid > ? AND (EXISTS"           \
    " (SELECT 1 FROM session s WHERE s.kind = 'user' AND s.uid = u.uid"                            \
    " AND s.last_activity > UTC_TIMESTAMP(3) - INTERVAL ? DAY) OR EXISTS"                          \
    " (SELECT 1 FROM api_token k WHERE k.uid = u.uid"                                              \
    " AND k.last_used > UTC_TIMESTAMP(3) - INTERVAL ? DAY)) ORDER BY u.uid LIMIT ?"

/* By reading them, as their user would. */
static int warm_user(struct task *t, struct plans *p, const struct sql_value *cell, int64_t *count)
{
    struct str today = plan_today(t);
    int err = 0;
    for (size_t i = 0; !err && i < PLAN_KIND_COUNT; i++) {
        struct plan x;
        struct plan_date d;
        struct str id = cell[1 + i].s;
        if (!id.p)
            continue;
        err = plan_active(t, p, cell[0].i, (enum plan_kind)i, &x);
        if (!err)
            err = plan_date_get(t, p, cell[0].i, id, today, &d);
        *count += !err;
        if (err == ERR_NOT_FOUND) /* today is not in it */
            err = 0;
    }
    return err;
}

static int warm_all(struct task *t, struct plans *p, struct role_turn *turn, int64_t *count)
{
    int64_t after = 0;
    for (bool more = true; more;) {
        struct task_scope s = task_scope(t);
        struct sql_rows r;
        int err = sql_call(t, p->node->sql, &r, SEEN_LATELY, sql_int(after),
                           sql_int(PLAN_SEEN_DAYS), sql_int(PLAN_SEEN_DAYS), sql_int(PAGE));
        for (size_t i = 0; !err && i < r.count; i++) {
            struct task_scope one = task_scope(t);
            after = sql_row(&r, i)[0].i;
            err = warm_user(t, p, sql_row(&r, i), count);
            task_scope_end(t, one);
            if (!err)
                err = role_keep(t, turn);
        }
        more = !err && r.count == PAGE;
        task_scope_end(t, s);
        if (err)
            return err;
    }
    return 0;
}

/* Once a day, and once for each process of Redis. */
int plans_warm_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct plans *p = arg;
    struct redis *r = p->node->redis;
    struct generation now = generation_now(r);
    struct str mark = STR_JOIN(task_arena(t), generation_str(&now), STR(" "), plan_today(t));
    const struct redis_reply *known;
    int64_t count = 0;
    if (!plans_trust(p))
        return 0;
    int err = redis_call(t, r, key_plans_warmed, &known, STR("GET"), key_plans_warmed);
    if (err || (known->type == REDIS_STRING && str_eq(known->str, mark)))
        return err;
    err = warm_all(t, p, turn, &count);
    if (!err)
        err = redis_call(t, r, key_plans_warmed, NULL, STR("SET"), key_plans_warmed, mark);
    if (!err && count)
        log_info("plan", "%lld days of active plans are in Redis", (long long)count);
    return err;
}
