#include "app/pool/import.h"

#include "app/pool/pools_private.h"

#define DROPPED_MAX 2000 /* in one transaction */
#define SETTLES_MAX 20   /* while nodes hand out */

struct dropping {
    struct pool *pool;
    struct pool_id id;
    char name[POOL_NAME_BYTES];
    size_t found;
    int64_t dropped;
};

/* What the list has becomes usable first, and is deleted with the rest. */
static int drop_some(struct task *t, struct sql *c, void *arg)
{
    struct dropping *d = arg;
    struct pool_taken taken;
    struct sql_rows r;
    int err = pool_take_back(t, c, d->id, STR_NULL, str_of(d->name), &taken);
    d->pool->places.found_ms = 0;
    if (!err)
        err = pool_find_usable(t, c, d->pool, DROPPED_MAX, &r);
    d->found = err ? 0 : r.count;
    if (err || r.count == 0)
        return err;
    struct pool_runs runs;
    pool_runs_init(t, &runs, r.count);
    for (size_t i = 0; i < r.count; i++)
        pool_runs_add(&runs, (int64_t)i, sql_row(&r, i)[1].i, 1);
    runs.whole = true;
    err = sql_on(t, c, &r, pool_runs_sql(t, d->id, &runs, "DELETE i FROM ", " WHERE i.status = 1"),
                 pool_runs_value(t, &runs));
    d->dropped = err ? 0 : (int64_t)r.affected;
    return err;
}

/* Takes the limit of the list back to what it has handed out. Best effort: nodes that hand out at
 * the same time raise it again. */
static void settle(struct task *t, struct pool *x)
{
    struct pool_look look;
    for (int i = 0; i < SETTLES_MAX && pool_redis(x); i++) {
        if (pool_look(t, x, &look) || look.list.n == 0)
            return;
        pool_note(x, &look);
        if (look.limit < look.first || pool_settle(t, x))
            return;
    }
}

/* What is empty because it was dropped does not run out. */
static int forget_pace(struct task *t, struct sql_pool *sql, struct pool_id id)
{
    return sql_call(t, sql, NULL,
                    "UPDATE pool_group SET since_handed = handed, next_handed = handed,"
                    " since_at = UNIX_TIMESTAMP(), next_at = UNIX_TIMESTAMP()"
                    " WHERE type = ? AND group_id = ?",
                    POOL_VALUES(id));
}

int pool_drop(struct task *t, struct pools *p, struct pool_id id, int64_t *dropped)
{
    struct pool *x = pool_get(p, id);
    struct dropping d = {.pool = x, .id = id};
    *dropped = 0;
    int err = pool_ensure(t, x);
    if (!err && p->options.redis)
        settle(t, x);
    if (!err)
        err = pool_adopt(t, x);
    if (!err)
        do {
            struct task_scope s = task_scope(t);
            d.dropped = 0;
            loop_token(task_loop(t), d.name, sizeof d.name);
            err = sql_tx(t, p->options.sql, drop_some, &d);
            *dropped += d.dropped;
            task_scope_end(t, s);
        } while (!err && d.found);
    if (!err)
        err = forget_pace(t, p->options.sql, id);
    pool_put(x);
    return err;
}
