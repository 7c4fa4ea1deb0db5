/* Rows in slices: an array of rows for one prepared row where the server takes that (MariaDB), else
 * one statement with a placeholder per value. Both are cut where the server's largest packet is
 * reached. */
#include <string.h>

#include "wire/sql/sql_conn.h"

#define ARRAY_ROWS_MAX  2500 /* each slice is a round trip */
#define VALUES_ROWS_MAX 256  /* a power of two */
#define PACKET_MARGIN   1024

struct bulk {
    struct task *t;
    struct sql *c;
    const char *into, *tail;
    size_t columns;
    const struct sql_value *cells; /* of the rows that are left */
    size_t rows;
};

static size_t row_bytes(const struct bulk *b, size_t row)
{
    size_t bytes = 0;
    for (size_t i = 0; i < b->columns; i++)
        bytes += 4 + sql_value_bytes(&b->cells[row * b->columns + i]);
    return bytes;
}

/* How many rows fit into one packet, at least one and at most most. */
static size_t rows_that_fit(const struct bulk *b, size_t most)
{
    size_t room = b->c->packet_bytes_max - PACKET_MARGIN - strlen(b->into) - strlen(b->tail);
    size_t n = 0, bytes = 0;
    if (most > b->rows)
        most = b->rows;
    while (n < most) {
        bytes += row_bytes(b, n);
        if (bytes > room && n > 0)
            break;
        n++;
    }
    return n;
}

/* --- arrays --- */

/* An array has one type per column, so a slice ends where a column changes its type. */
static size_t rows_alike(const struct bulk *b, size_t most, enum sql_type *types)
{
    for (size_t i = 0; i < b->columns; i++)
        types[i] = SQL_NULL;
    for (size_t n = 0; n < most; n++) {
        const struct sql_value *row = b->cells + n * b->columns;
        for (size_t i = 0; i < b->columns; i++)
            if (!sql_is_null(&row[i]) && types[i] != SQL_NULL && types[i] != row[i].type)
                return n;
        for (size_t i = 0; i < b->columns; i++)
            if (!sql_is_null(&row[i]))
                types[i] = row[i].type;
    }
    return most;
}

static void bind_column(const struct bulk *b, size_t column, size_t n, enum sql_type type,
                        MYSQL_BIND *out)
{
    struct arena *a = task_arena(b->t);
    int64_t *ints = ARENA_ARRAY(a, int64_t, n);
    unsigned long *lengths = ARENA_ARRAY(a, unsigned long, n);
    char *nulls = ARENA_ARRAY(a, char, n);
    double *reals = (double *)ints; /* the same array, as eight-byte words of another type */
    const char **texts = (const char **)ints;
    for (size_t r = 0; r < n; r++) {
        const struct sql_value *v = &b->cells[r * b->columns + column];
        nulls[r] = sql_is_null(v) ? STMT_INDICATOR_NULL : STMT_INDICATOR_NONE;
        if (sql_is_null(v)) {
            continue;
        } else if (type == SQL_INT) {
            ints[r] = v->i;
        } else if (type == SQL_REAL) {
            reals[r] = v->d;
        } else {
            texts[r] = v->s.p;
            lengths[r] = v->s.n;
        }
    }
    *out = (MYSQL_BIND){.buffer_type = sql_field_types[type],
                        .buffer = ints,
                        .length = lengths,
                        .u.indicator = nulls};
}

static const char *values_text(const struct bulk *b, size_t n);

static int insert_array(const struct bulk *b, size_t *done, uint64_t *affected)
{
    struct arena *a = task_arena(b->t);
    enum sql_type *types = ARENA_ARRAY(a, enum sql_type, b->columns);
    MYSQL_BIND *binds = ARENA_ARRAY(a, MYSQL_BIND, b->columns);
    size_t n = rows_alike(b, rows_that_fit(b, ARRAY_ROWS_MAX), types);
    for (size_t i = 0; i < b->columns; i++)
        bind_column(b, i, n, types[i], &binds[i]);
    struct sql_statement *s;
    int err = sql_prepare(b->t, b->c, values_text(b, 1), &s);
    if (!err)
        err = sql_execute_array(b->t, b->c, s, binds, n);
    if (err)
        return err;
    *done = n;
    *affected += mysql_stmt_affected_rows(s->stmt);
    return 0;
}

/* --- many rows in one statement --- */

static const char *values_text(const struct bulk *b, size_t n)
{
    struct buf row, text;
    buf_init(&row);
    buf_init(&text);
    for (size_t i = 0; i < b->columns; i++)
        buf_add(&row, i ? ",?" : "(?", 2);
    buf_add_char(&row, ')');
    buf_printf(&text, "%s ", b->into);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add_char(&text, ',');
        buf_add_str(&text, buf_str(&row));
    }
    buf_printf(&text, " %s", b->tail);
    const char *z = str_z(task_arena(b->t), buf_str(&text));
    buf_release(&row);
    buf_release(&text);
    return z;
}

/* Powers of two, so that any number of rows makes do with nine prepared statements. */
static size_t power_below(size_t n)
{
    size_t power = 1;
    while (power * 2 <= n)
        power *= 2;
    return power;
}

static int insert_values(const struct bulk *b, size_t *done, uint64_t *affected)
{
    size_t most = SQL_PARAMS_MAX / b->columns;
    if (most > VALUES_ROWS_MAX)
        most = VALUES_ROWS_MAX;
    size_t n = power_below(rows_that_fit(b, most));
    struct sql_statement *s;
    int err = sql_prepare(b->t, b->c, values_text(b, n), &s);
    if (!err)
        err = sql_execute(b->t, b->c, s, n * b->columns, b->cells);
    if (err)
        return err;
    *done = n;
    *affected += mysql_stmt_affected_rows(s->stmt);
    return 0;
}

int sql_bulk(struct task *t, struct sql *c, const char *into, const char *tail, size_t columns,
             size_t rows, const struct sql_value *cells, uint64_t *affected)
{
    check(columns > 0 && columns <= SQL_PARAMS_MAX);
    struct bulk b = {t, c, into, tail, columns, cells, rows};
    uint64_t total = 0;
    while (b.rows > 0) {
        struct arena_mark mark = arena_mark(task_arena(t));
        int64_t old = task_deadline(t, c->pool->statement_ms);
        size_t done = 0;
        int err = c->arrays ? insert_array(&b, &done, &total) : insert_values(&b, &done, &total);
        task_deadline_restore(t, old);
        arena_reset(task_arena(t), mark);
        if (err)
            return sql_pool_count(c->pool, err);
        b.cells += done * columns;
        b.rows -= done;
    }
    if (affected)
        *affected = total;
    return 0;
}
