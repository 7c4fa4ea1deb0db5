/* Rows on their way from the server. They are taken off the wire one by one: the library holds one
 * row, and tells the length of a text before it has to be stored. */
#include <stdlib.h>
#include <string.h>

#include "wire/sql/sql_conn.h"

#define BINARY_CHARSET 63
/* A server on this machine fills the socket faster than it is read, so that no wait occurs: yield
 * to other tasks. */
#define ROWS_PER_TURN 256

struct column {
    enum sql_type type;
    bool single; /* FLOAT: a real of four bytes */
    const MYSQL_FIELD *field;
    union {
        int64_t i;
        double d;
        float f;
    };
    unsigned long bytes;
    my_bool is_null;
};

static enum sql_type type_of(const MYSQL_FIELD *f)
{
    switch (f->type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
        return SQL_INT;
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
        return SQL_REAL;
    case MYSQL_TYPE_TINY_BLOB:
    case MYSQL_TYPE_MEDIUM_BLOB:
    case MYSQL_TYPE_LONG_BLOB:
    case MYSQL_TYPE_BLOB:
    case MYSQL_TYPE_VAR_STRING:
    case MYSQL_TYPE_STRING:
    case MYSQL_TYPE_BIT:
    case MYSQL_TYPE_GEOMETRY:
        return f->charsetnr == BINARY_CHARSET ? SQL_BLOB : SQL_TEXT;
    default: /* decimals, dates and times, JSON */
        return SQL_TEXT;
    }
}

static void bind_column(MYSQL_BIND *b, struct column *k)
{
    *b = (MYSQL_BIND){.buffer_type = k->single ? MYSQL_TYPE_FLOAT : sql_field_types[k->type],
                      .length = &k->bytes,
                      .is_null = &k->is_null,
                      .is_unsigned = (k->field->flags & UNSIGNED_FLAG) != 0};
    if (!sql_is_bytes(k->type))
        b->buffer = &k->i; /* of texts only the length is asked for at first */
}

/* The columns may differ from one execution to the next: SELECT ? has the type of the value. */
static struct column *bind_columns(MYSQL_STMT *stmt, size_t count)
{
    struct column *columns = check_memory(calloc(count, sizeof *columns));
    MYSQL_BIND *binds = check_memory(calloc(count, sizeof *binds));
    const MYSQL_FIELD *fields = mariadb_stmt_fetch_fields(stmt);
    for (size_t i = 0; i < count; i++) {
        columns[i].field = &fields[i];
        columns[i].type = type_of(&fields[i]);
        columns[i].single = fields[i].type == MYSQL_TYPE_FLOAT;
        bind_column(&binds[i], &columns[i]);
    }
    check(mysql_stmt_bind_result(stmt, binds) == 0);
    free(binds);
    return columns;
}

static int read_bytes(struct task *t, MYSQL_STMT *stmt, unsigned int at, const struct column *k,
                      struct sql_value *out)
{
    char *p = arena_alloc(task_arena(t), k->bytes + 1);
    unsigned long bytes = 0;
    my_bool is_null = 0, error = 0;
    MYSQL_BIND b = {.buffer_type = sql_field_types[k->type],
                    .buffer = p,
                    .buffer_length = k->bytes + 1,
                    .length = &bytes,
                    .is_null = &is_null,
                    .error = &error};
    if (mysql_stmt_fetch_column(stmt, &b, at, 0) != 0 || bytes != k->bytes)
        return task_fail(t, ERR_PROTO, "column %s cannot be read", k->field->name);
    p[bytes] = '\0';
    *out = (struct sql_value){.type = k->type, .s = str_from(p, bytes)};
    return 0;
}

static int read_cell(struct task *t, MYSQL_STMT *stmt, unsigned int at, const struct column *k,
                     struct sql_value *out)
{
    if (k->is_null) {
        *out = sql_null();
        return 0;
    }
    switch (k->type) {
    case SQL_INT:
        /* Above INT64_MAX: would silently turn negative. */
        if (k->i < 0 && (k->field->flags & UNSIGNED_FLAG))
            return task_fail(t, ERR_LIMIT, "column %s holds a number above 9223372036854775807",
                             k->field->name);
        *out = sql_int(k->i);
        return 0;
    case SQL_REAL:
        *out = sql_real(k->single ? (double)k->f : k->d);
        return 0;
    default:
        return read_bytes(t, stmt, at, k, out);
    }
}

static int read_row(struct task *t, MYSQL_STMT *stmt, const struct column *columns, size_t count,
                    struct sql_value *cells)
{
    int err = 0;
    for (size_t i = 0; i < count && !err; i++)
        err = read_cell(t, stmt, (unsigned int)i, &columns[i], &cells[i]);
    return err;
}

/* 0 with *more; *more is false at the end. */
static int next_row(struct task *t, struct sql *c, struct sql_statement *s, bool *more)
{
    int got = 0;
    SQL_AWAIT(t, c, mysql_stmt_fetch_start(&got, s->stmt),
              mysql_stmt_fetch_cont(&got, s->stmt, ready));
    *more = got == 0 || got == MYSQL_DATA_TRUNCATED;
    if (*more || got == MYSQL_NO_DATA)
        return 0;
    /* The library keeps the reason on the connection only. */
    unsigned int code = mysql_errno(c->db);
    c->broken = c->broken || code == 0;
    return sql_fail(t, c, code, mysql_error(c->db), s->text.p, true);
}

static int let_others_run(struct task *t)
{
    int err = task_yield(t);
    if (!err && task_time_left_ms(t) == 0)
        err = task_fail(t, ERR_TIMEOUT, "the rows did not come in time");
    return err;
}

static int fetch_all(struct task *t, struct sql *c, struct sql_statement *s,
                     const struct column *columns, struct sql_value *cells, sql_row_fn *row,
                     void *arg)
{
    size_t count = mysql_stmt_field_count(s->stmt);
    for (size_t n = 1;; n++) {
        bool more;
        int64_t old = task_deadline(t, c->pool->statement_ms);
        int err = next_row(t, c, s, &more);
        task_deadline_restore(t, old);
        if (err || !more)
            return err;
        err = read_row(t, s->stmt, columns, count, cells);
        if (!err)
            err = row(t, cells, arg);
        if (!err && n % ROWS_PER_TURN == 0)
            err = let_others_run(t);
        if (err) {
            c->broken = true; /* the other rows are still being sent */
            return err;
        }
    }
}

int sql_fetch(struct task *t, struct sql *c, struct sql_statement *s, sql_row_fn *row, void *arg)
{
    size_t count = mysql_stmt_field_count(s->stmt);
    if (count == 0)
        return 0;
    struct column *columns = bind_columns(s->stmt, count);
    struct sql_value *cells = check_memory(calloc(count, sizeof *cells));
    int err = fetch_all(t, c, s, columns, cells, row, arg);
    free(cells);
    free(columns);
    if (!err && mysql_more_results(c->db)) {
        c->broken = true;
        err = task_fail(t, ERR_REFUSED, "more than one result: \"%s\"", s->text.p);
    }
    return err;
}
