#include "engine/jobs/pay.h"

#include "base/log.h"
#include "engine/jobs/jobs_private.h"
#include "engine/money/ledger.h"

#define LATE_PAGE 100

int job_reserve(struct task *t, struct sql *c, const char *queue, struct str id, int64_t uid,
                int64_t cents)
{
    if (cents == 0)
        return 0;
    return sql_on(t, c, NULL,
                  "INSERT INTO job_reserve (queue, id, uid, cents) VALUES (?, ?, ?, ?)"
                  " ON DUPLICATE KEY UPDATE cents = VALUES(cents)",
                  sql_text(str_of(queue)), sql_text(id), sql_int(uid), sql_int(cents));
}

int job_free(struct task *t, struct sql *c, const char *queue, struct str id)
{
    return sql_on(t, c, NULL, "DELETE FROM job_reserve WHERE queue = ? AND id = ?",
                  sql_text(str_of(queue)), sql_text(id));
}

int jobs_reserve(struct task *t, struct sql *c, const char *queue, const struct job_rows *r,
                 int64_t first, int64_t last)
{
    return sql_on(t, c, NULL,
                  arena_printf(task_arena(t),
                               "INSERT INTO job_reserve (queue, id, uid, cents)"
                               " SELECT ?, j.%s, j.%s, j.%s FROM %s j WHERE j.%s BETWEEN ? AND ?"
                               " AND j.%s = '%s' AND j.%s > 0"
                               " ON DUPLICATE KEY UPDATE cents = VALUES(cents)",
                               r->id, r->uid, r->cents, r->table, r->position, r->state, r->pending,
                               r->cents),
                  sql_text(str_of(queue)), sql_int(first), sql_int(last));
}

int jobs_free_ended(struct task *t, struct sql *c, const char *queue, const struct job_rows *r,
                    int64_t first, int64_t last)
{
    return sql_on(t, c, NULL,
                  arena_printf(task_arena(t),
                               "DELETE x FROM %s j JOIN job_reserve x ON x.queue = ?"
                               " AND x.id = j.%s WHERE j.%s BETWEEN ? AND ?"
                               " AND j.%s NOT IN ('%s', '%s')",
                               r->table, r->id, r->position, r->state, r->pending, r->working),
                  sql_text(str_of(queue)), sql_int(first), sql_int(last));
}

static int pay(struct task *t, struct ledger *l, const char *queue, struct str id, int64_t uid,
               int64_t cents)
{
    struct ledger_move m = {.uid = uid,
                            .cents = cents,
                            .request_id = STR_JOIN(task_arena(t), str_of(queue), STR(":"), id)};
    return cents == 0 ? 0 : ledger_pay(t, l, &m);
}

int job_pay(struct task *t, struct ledger *l, const char *queue, const struct job *j, int64_t cents)
{
    int err = pay(t, l, queue, j->id, j->uid, cents);
    if (err == ERR_FUNDS)
        job_reason(j, JOB_NO_MONEY);
    if (!ledger_is_stopped(err))
        return err;
    /* The operator will look at the account: its jobs wait until then, and do not fail. */
    job_reason(j, JOB_STOPPED);
    return ERR_RATE;
}

/* --- what must not be --- */

/* Completed for a minute, and no later than a day ago: what is older was looked at before. */
static const char *late_text(struct task *t, const struct job_kind *k)
{
    const struct job_rows *r = k->rows;
    const char *id = r->paid_as ? r->paid_as : r->id;
    return arena_printf(
        task_arena(t),
        "SELECT j.%s, j.%s, j.%s FROM %s j LEFT JOIN ledger_request q ON q.uid = j.%s"
        " AND q.request_id = CONCAT('%s:', j.%s) WHERE j.%s = '%s' AND j.%s > 0"
        " AND j.%s BETWEEN UTC_TIMESTAMP(3) - INTERVAL 1 DAY"
        " AND UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE AND q.number IS NULL LIMIT %d",
        id, r->uid, r->cents, r->table, r->uid, k->name, id, r->state, r->completed, r->cents,
        r->changed, LATE_PAGE);
}

static int charge_late(struct task *t, struct jobs_paid *p, const struct jobs_queue *q)
{
    struct sql_rows r;
    int err = sql_call(t, p->jobs->options.sql, &r, late_text(t, q->kind));
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        err = pay(t, p->ledger, q->kind->name, cell[0].s, cell[1].i, cell[2].i);
        if (err && !err_is_outage(err)) { /* no money, a stopped account: others are charged */
            log_warn("jobs",
                     "%.*s of queue %s was completed and not paid, and cannot be charged: %s; it "
                     "is tried again in a minute",
                     STR_ARG(cell[0].s), q->kind->name, task_error(t));
            err = 0;
            continue;
        }
        if (!err)
            log_warn("jobs", "%.*s of queue %s was completed and not paid; it is charged now",
                     STR_ARG(cell[0].s), q->kind->name);
        if (!err && p->charged)
            metric_add(p->charged, 1);
    }
    return err;
}

static int free_ended(struct task *t, struct jobs_paid *p, const struct jobs_queue *q)
{
    const struct job_rows *r = q->kind->rows;
    return sql_call(t, p->jobs->options.sql, NULL,
                    arena_printf(task_arena(t),
                                 "DELETE x FROM job_reserve x LEFT JOIN %s j ON j.%s = x.id"
                                 " WHERE x.queue = '%s' AND (j.%s IS NULL"
                                 " OR j.%s NOT IN ('%s', '%s'))",
                                 r->table, r->id, q->kind->name, r->id, r->state, r->pending,
                                 r->working));
}

int jobs_paid_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct jobs_paid *p = arg;
    int err = 0;
    for (size_t i = 0; !err && i < p->jobs->count; i++) {
        const struct jobs_queue *q = p->jobs->queues[i];
        if (!q->kind->rows || !q->kind->rows->cents)
            continue;
        err = charge_late(t, p, q);
        if (!err)
            err = free_ended(t, p, q);
        if (!err)
            err = role_keep(t, turn);
    }
    return err;
}
