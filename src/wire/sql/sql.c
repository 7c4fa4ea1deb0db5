/* The calls of sql.h on a connection, and on any connection of the pool. */
#include "wire/sql.h"

#include "base/buf.h"
#include "loop/backoff.h"
#include "wire/sql/sql_conn.h"
#include "wire/sql_snapshot.h"

struct collector {
    struct buf cells; /* of all rows so far */
    size_t columns, rows, bytes;
    struct arena_mark mark;
};

static int collect(struct task *t, const struct sql_value *cells, void *arg)
{
    struct collector *k = arg;
    for (size_t i = 0; i < k->columns; i++)
        k->bytes += sql_value_bytes(&cells[i]);
    if (k->bytes > SQL_RESULT_BYTES_MAX)
        return task_fail(t, ERR_LIMIT, "a result of more than %d MB",
                         SQL_RESULT_BYTES_MAX / 1024 / 1024);
    buf_add(&k->cells, cells, k->columns * sizeof *cells);
    k->rows++;
    return 0;
}

static int ignore(struct task *t, const struct sql_value *cells, void *arg)
{
    (void)cells;
    struct collector *k = arg;
    arena_reset(task_arena(t), k->mark);
    return 0;
}

static int collect_all(struct task *t, struct sql *c, struct sql_statement *s, struct sql_rows *out)
{
    struct collector k = {.columns = mysql_stmt_field_count(s->stmt),
                          .mark = arena_mark(task_arena(t))};
    buf_init(&k.cells);
    int err = sql_fetch(t, c, s, out ? collect : ignore, &k);
    if (!err && out) {
        struct str bytes = buf_str(&k.cells);
        void *cells = arena_alloc(task_arena(t), bytes.n);
        memcpy(cells, bytes.p, bytes.n);
        *out = (struct sql_rows){.count = k.rows, .columns = k.columns, .cells = cells};
        if (k.columns == 0) {
            out->affected = mysql_stmt_affected_rows(s->stmt);
            out->insert_id = mysql_stmt_insert_id(s->stmt);
        }
    }
    buf_release(&k.cells);
    return err;
}

static int run(struct task *t, struct sql *c, const char *statement, size_t argc,
               const struct sql_value *argv, struct sql_rows *out)
{
    struct sql_statement *s;
    int err = sql_prepare(t, c, statement, &s);
    if (!err)
        err = sql_execute(t, c, s, argc, argv);
    return err ? err : collect_all(t, c, s, out);
}

int sql_on_argv(struct task *t, struct sql *c, const char *statement, size_t argc,
                const struct sql_value *argv, struct sql_rows *out)
{
    int64_t old = task_deadline(t, c->pool->statement_ms);
    int err = run(t, c, statement, argc, argv, out);
    task_deadline_restore(t, old);
    return sql_pool_count(c->pool, err);
}

/* A pooled connection may have died unnoticed. If nothing has been done over it, the call is
 * repeated on a new one. */
static bool try_fresh(const struct sql *c, int err)
{
    return err == ERR_UNAVAILABLE && c->broken && !c->fresh;
}

/* Nothing was done, and another transaction is out of the way by now. */
static bool try_later(const struct sql *c, int err, int tries)
{
    return err == ERR_CONFLICT && c->deadlock && tries < SQL_TX_TRIES;
}

static int run_on_any(struct task *t, struct sql_pool *p, const char *statement, size_t argc,
                      const struct sql_value *argv, struct sql_rows *out)
{
    struct backoff b = {.ms = SQL_RETRY_MS, .ms_max = SQL_RETRY_MS << SQL_TX_TRIES};
    bool fresh = false, later = false;
    int err, tries = 0;
    do {
        if (later && (err = backoff_wait(t, &b)) != 0)
            return err;
        struct sql *c;
        err = sql_pool_get(t, p, fresh, &c);
        if (err)
            return err;
        err = sql_on_argv(t, c, statement, argc, argv, out);
        fresh = try_fresh(c, err);
        later = try_later(c, err, ++tries);
        sql_pool_put(c);
    } while (fresh || later);
    return err;
}

int sql_argv(struct task *t, struct sql_pool *p, const char *statement, size_t argc,
             const struct sql_value *argv, struct sql_rows *out)
{
    int64_t old = task_deadline(t, p->statement_ms);
    int err = run_on_any(t, p, statement, argc, argv, out);
    task_deadline_restore(t, old);
    return err;
}

struct each {
    sql_row_fn *row;
    void *arg;
    struct arena_mark mark;
    bool started;
    bool refused; /* by row */
};

static int each_row(struct task *t, const struct sql_value *cells, void *arg)
{
    struct each *e = arg;
    e->started = true;
    int err = e->row(t, cells, e->arg);
    arena_reset(task_arena(t), e->mark);
    e->refused = err != 0;
    return err;
}

static int run_each(struct task *t, struct sql *c, const char *statement, size_t argc,
                    const struct sql_value *argv, struct each *e)
{
    struct sql_statement *s;
    int64_t old = task_deadline(t, c->pool->statement_ms);
    int err = sql_prepare(t, c, statement, &s);
    if (!err)
        err = sql_execute(t, c, s, argc, argv);
    task_deadline_restore(t, old);
    e->mark = arena_mark(task_arena(t));
    return err ? err : sql_fetch(t, c, s, each_row, e);
}

int sql_each(struct task *t, struct sql_pool *p, const char *statement, size_t argc,
             const struct sql_value *argv,
             int (*row)(struct task *t, const struct sql_value *cells, void *arg), void *arg)
{
    struct each e = {.row = row, .arg = arg};
    int err;
    bool again = false;
    do {
        struct sql *c;
        err = sql_pool_get(t, p, again, &c);
        if (err)
            return err;
        err = run_each(t, c, statement, argc, argv, &e);
        sql_pool_count(p, e.refused ? 0 : err);
        again = try_fresh(c, err) && !e.started;
        sql_pool_put(c);
    } while (again);
    return err;
}

int sql_on_each(struct task *t, struct sql *c, const char *statement, size_t argc,
                const struct sql_value *argv,
                int (*row)(struct task *t, const struct sql_value *cells, void *arg), void *arg)
{
    struct each e = {.row = row, .arg = arg};
    int err = run_each(t, c, statement, argc, argv, &e);
    sql_pool_count(c->pool, e.refused ? 0 : err);
    return err;
}
