#include "loop/backoff.h"
#include "wire/sql/sql_conn.h"
#include "wire/sql_snapshot.h"

struct tx {
    int (*body)(struct task *t, struct sql *c, void *arg);
    void *arg;
    bool snapshot;
    bool begun; /* body has run */
};

/* Rolls back. If that fails the connection is closed, which has the same effect. */
static void undo(struct task *t, struct sql *c)
{
    c->in_tx = false;
    if (c->broken || task_canceled(t) || task_time_left_ms(t) == 0 ||
        sql_command(t, c, "ROLLBACK") != 0)
        c->broken = true;
}

/* From here on a lost connection, a deadline and a cancellation all mean ERR_UNCERTAIN. */
static int commit(struct task *t, struct sql *c)
{
    c->in_tx = false;
    int err = sql_command(t, c, "COMMIT");
    if (c->stopped)
        err = task_fail(t, ERR_UNCERTAIN, "the database did not confirm the COMMIT");
    return err;
}

static int begin(struct task *t, struct sql *c, bool snapshot)
{
    c->in_tx = true;
    c->doomed = false;
    int64_t old = task_deadline(t, c->pool->statement_ms);
    /* Of the next transaction only; a server may have another default. */
    int err = snapshot ? sql_command(t, c, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ") : 0;
    if (!err)
        err = sql_command(t, c,
                          snapshot ? "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
                                   : "START TRANSACTION");
    task_deadline_restore(t, old);
    return sql_pool_count(c->pool, err);
}

static int run_body(struct task *t, struct sql *c, struct tx *x)
{
    x->begun = true;
    int err = x->body(t, c, x->arg);
    if (err)
        return err;
    /* A body that ignores a failed statement must not have the rest of its work committed. */
    if (c->doomed)
        return task_fail(t, ERR_CONFLICT, "the transaction has been rolled back");
    if (c->broken)
        return task_fail(t, ERR_UNAVAILABLE, "the connection was lost");
    return task_canceled(t) ? ERR_CANCELED : 0;
}

static int run_once(struct task *t, struct sql *c, struct tx *x)
{
    int err = begin(t, c, x->snapshot);
    if (!err)
        err = run_body(t, c, x);
    int64_t old = task_deadline(t, c->pool->statement_ms);
    if (err)
        undo(t, c);
    else
        err = sql_pool_count(c->pool, commit(t, c));
    task_deadline_restore(t, old);
    c->doomed = false;
    return err;
}

static int run(struct task *t, struct sql *c, struct tx *x)
{
    struct backoff b = {.ms = SQL_RETRY_MS, .ms_max = SQL_RETRY_MS << SQL_TX_TRIES};
    for (int tries = 1;; tries++) {
        int err = run_once(t, c, x);
        if (err != ERR_CONFLICT || tries == SQL_TX_TRIES || c->broken || x->snapshot)
            return err;
        int waited = backoff_wait(t, &b);
        if (waited)
            return waited;
    }
}

/* Nothing was done, for the connection was lost. Of a list another server may do it. */
static bool try_again(const struct sql *c, const struct tx *x, int err)
{
    return err == ERR_UNAVAILABLE && !c->fresh &&
           (!x->begun || (c->broken && !x->snapshot && sql_place_is_list(c->pool)));
}

static int run_on_any(struct task *t, struct sql_pool *p, struct tx *x)
{
    int err;
    bool again = false;
    do {
        struct sql *c;
        err = sql_pool_get(t, p, again, &c);
        if (err)
            return err;
        err = run(t, c, x);
        again = try_again(c, x, err);
        sql_pool_put(c);
    } while (again);
    return err;
}

int sql_tx(struct task *t, struct sql_pool *p,
           int (*body)(struct task *t, struct sql *c, void *arg), void *arg)
{
    return run_on_any(t, p, &(struct tx){.body = body, .arg = arg});
}

int sql_snapshot(struct task *t, struct sql_pool *p,
                 int (*body)(struct task *t, struct sql *c, void *arg), void *arg)
{
    return run_on_any(t, p, &(struct tx){.body = body, .arg = arg, .snapshot = true});
}
