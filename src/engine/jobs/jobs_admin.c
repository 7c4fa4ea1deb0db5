#include "engine/jobs/jobs_private.h"
#include "engine/people/switches.h"
#include "engine/store/scripts.h"

static int find(struct task *t, struct jobs *j, struct str queue, struct jobs_queue **out)
{
    *out = jobs_find(j, queue);
    return *out ? 0 : task_fail(t, ERR_NOT_FOUND, "there is no queue %.*s", STR_ARG(queue));
}

int jobs_pause(struct task *t, struct jobs *j, struct str queue, bool paused,
               const struct admin_deed *by)
{
    struct jobs_queue *q;
    struct setting_change x = {.value = paused ? STR("true") : STR("false"),
                               .unset = STR("false"),
                               .member = "paused",
                               .deed = *by};
    int err = find(t, j, queue, &q);
    if (err)
        return err;
    x.name = str_printf(task_arena(t), JOBS_PAUSED "%.*s", STR_ARG(queue));
    x.deed.target = queue;
    err = sql_tx(t, j->options.sql, setting_change, &x);
    if (!err)
        err = redis_call(t, j->options.redis, q->keys.state, NULL, STR("HSET"), q->keys.state,
                         STR("paused"), paused ? STR("1") : STR("0"));
    jobs_wake(q);
    return err;
}

/* --- failures --- */

struct failures {
    const char *statement;
    struct admin_deed deed;
    int64_t count;
};

static int failures_body(struct task *t, struct sql *c, void *arg)
{
    struct failures *f = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r, f->statement);
    if (err)
        return err;
    f->count = (int64_t)r.affected;
    f->deed.after = str_printf(task_arena(t), "{\"jobs\":%lld}", (long long)f->count);
    return admin_audit_add(t, c, &f->deed);
}

static int change_failures(struct task *t, struct jobs *j, struct str queue, const char *statement,
                           const struct admin_deed *by, int64_t *count)
{
    struct failures f = {.statement = statement, .deed = *by};
    f.deed.target = queue;
    int err = sql_tx(t, j->options.sql, failures_body, &f);
    if (!err)
        *count = f.count;
    return err;
}

static int find_rows(struct task *t, struct jobs *j, struct str queue, struct jobs_queue **out)
{
    int err = find(t, j, queue, out);
    if (err || (*out)->kind->rows)
        return err;
    return task_fail(t, ERR_NOT_FOUND, "queue %.*s keeps no failures", STR_ARG(queue));
}

/* Jobs that were set aside by now wait again when the next ones are taken (jobs_take.lua). */
static int recall(struct task *t, struct jobs_queue *q, int64_t *count)
{
    const struct jobs_keys *k = &q->keys;
    struct redis *redis = q->jobs->options.redis;
    const struct redis_reply *all, *last;
    int err = redis_call(t, redis, k->aside, &all, STR("ZCARD"), k->aside);
    if (!err)
        err = redis_call(t, redis, k->aside, &last, STR("ZRANGE"), k->aside, STR("-1"), STR("-1"),
                         STR("WITHSCORES"));
    *count = err ? 0 : redis_number(all, 0);
    if (err || last->count != 2)
        return err;
    err = redis_call(t, redis, k->state, NULL, STR("HSET"), k->state, STR("recall"),
                     last->items[1]->str);
    if (!err)
        err = redis_call(t, redis, k->wake, NULL, STR("XADD"), k->wake, STR("MAXLEN"), STR("1"),
                         STR("*"), STR("at"), STR("0"));
    jobs_wake(q);
    return err;
}

int jobs_retry_failed(struct task *t, struct jobs *j, struct str queue, const struct admin_deed *by,
                      int64_t *count)
{
    struct jobs_queue *q;
    int64_t recalled = 0;
    int err = find_rows(t, j, queue, &q);
    if (err)
        return err;
    const struct job_rows *r = q->kind->rows;
    err = change_failures(t, j, queue,
                          arena_printf(task_arena(t),
                                       "UPDATE %s SET %s = '%s', %s = NULL%s,"
                                       " %s = UTC_TIMESTAMP(3) WHERE %s = '%s'"
                                       " ORDER BY %s LIMIT %d",
                                       r->table, r->state, r->pending, r->error,
                                       jobs_set_reason(t, r, NULL), r->changed, r->state, r->failed,
                                       r->position, JOBS_BATCH),
                          by, count);
    if (!err)
        err = recall(t, q, &recalled);
    *count += recalled;
    return err;
}

int jobs_drop_failed(struct task *t, struct jobs *j, struct str queue, const struct admin_deed *by,
                     int64_t *count)
{
    struct jobs_queue *q;
    int err = find_rows(t, j, queue, &q);
    if (err)
        return err;
    const struct job_rows *r = q->kind->rows;
    if (r->kept)
        return task_fail(t, ERR_CONFLICT,
                         "failures of queue %.*s are what users have: they can be retried, and "
                         "not dropped",
                         STR_ARG(queue));
    return change_failures(t, j, queue,
                           arena_printf(task_arena(t),
                                        "DELETE FROM %s WHERE %s = '%s' ORDER BY %s LIMIT %d",
                                        r->table, r->state, r->failed, r->position, JOBS_BATCH),
                           by, count);
}
