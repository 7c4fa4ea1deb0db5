/* Prepared statements: a bounded cache per connection, and values on their way to the server. */
#include <errmsg.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "wire/sql/sql_conn.h"
#include "wire/sql/sql_error.h"

#define BINDS_ON_STACK 12

static void statement_free(struct sql_statement *s)
{
    free((char *)(uintptr_t)s->text.p);
    free(s);
}

static void forget(struct sql *c, struct sql_statement *s)
{
    list_del(&s->link);
    map_del(c->by_text, s->text);
}

void sql_statements_free(struct sql *c)
{
    struct list *it;
    while ((it = list_pop(&c->statements))) {
        struct sql_statement *s = list_entry(it, struct sql_statement, link);
        mysql_stmt_close(s->stmt); /* frees memory only: it has lost its connection */
        statement_free(s);
    }
}

static int close_oldest(struct task *t, struct sql *c)
{
    struct sql_statement *s = list_entry(c->statements.next, struct sql_statement, link);
    my_bool bad = 0;
    forget(c, s);
    c->running = NULL;
    SQL_AWAIT(t, c, mysql_stmt_close_start(&bad, s->stmt),
              mysql_stmt_close_cont(&bad, s->stmt, ready));
    statement_free(s);
    /* The library has freed the handle and its error with it. */
    return bad ? sql_fail(t, c, CR_SERVER_GONE_ERROR, "the connection was lost", "", false) : 0;
}

static int prepare_new(struct task *t, struct sql *c, struct str text, MYSQL_STMT **out)
{
    MYSQL_STMT *stmt = check_memory(mysql_stmt_init(c->db));
    int bad = 0;
    c->running = text.p;
    SQL_AWAIT(t, c, mysql_stmt_prepare_start(&bad, stmt, text.p, text.n),
              mysql_stmt_prepare_cont(&bad, stmt, ready));
    if (bad) {
        int err = sql_fail(t, c, mysql_stmt_errno(stmt), mysql_stmt_error(stmt), text.p, false);
        mysql_stmt_close(stmt); /* unknown to the server: sends nothing */
        return err;
    }
    *out = stmt;
    return 0;
}

int sql_prepare(struct task *t, struct sql *c, const char *text, struct sql_statement **out)
{
    if (c->doomed)
        return task_fail(t, ERR_CONFLICT, "the transaction has been rolled back");
    if (c->broken)
        return task_fail(t, ERR_UNAVAILABLE, "the connection was lost");
    struct str key = str_of(text);
    struct sql_statement *s = map_get(c->by_text, key);
    if (s) {
        list_del(&s->link);
        list_push(&c->statements, &s->link);
        *out = s;
        return 0;
    }
    int err = map_count(c->by_text) < SQL_STATEMENTS_MAX ? 0 : close_oldest(t, c);
    MYSQL_STMT *stmt = NULL;
    if (!err)
        err = prepare_new(t, c, key, &stmt);
    if (err)
        return err;
    s = check_memory(calloc(1, sizeof *s));
    s->stmt = stmt;
    s->text = str_of(check_memory(strdup(text)));
    map_set(c->by_text, s->text, s);
    list_push(&c->statements, &s->link);
    *out = s;
    return 0;
}

const enum enum_field_types sql_field_types[] = {
    [SQL_NULL] = MYSQL_TYPE_STRING, [SQL_INT] = MYSQL_TYPE_LONGLONG, [SQL_REAL] = MYSQL_TYPE_DOUBLE,
    [SQL_TEXT] = MYSQL_TYPE_STRING, [SQL_BLOB] = MYSQL_TYPE_BLOB,
};

size_t sql_value_bytes(const struct sql_value *v)
{
    return 12 + (sql_is_bytes(v->type) ? v->s.n : 8); /* type, length and value */
}

static void bind(MYSQL_BIND *b, const struct sql_value *v)
{
    bool bytes = sql_is_bytes(v->type);
    const void *at = bytes ? (const void *)v->s.p : &v->i; /* or &v->d, the same place */
    *b = (MYSQL_BIND){.buffer_type = sql_is_null(v) ? MYSQL_TYPE_NULL : sql_field_types[v->type],
                      .buffer = (void *)(uintptr_t)at,
                      .buffer_length = bytes ? v->s.n : 0};
}

/* The statement keeps a copy of the binds, but not of the values. */
static void bind_all(MYSQL_STMT *stmt, size_t argc, const struct sql_value *argv)
{
    MYSQL_BIND few[BINDS_ON_STACK];
    MYSQL_BIND *binds = argc <= BINDS_ON_STACK ? few : check_memory(malloc(argc * sizeof *binds));
    for (size_t i = 0; i < argc; i++)
        bind(&binds[i], &argv[i]);
    check(mysql_stmt_bind_param(stmt, binds) == 0);
    if (binds != few)
        free(binds);
}

static int execute(struct task *t, struct sql *c, struct sql_statement *s, size_t rows)
{
    const unsigned int array_size = (unsigned int)rows;
    mysql_stmt_attr_set(s->stmt, STMT_ATTR_ARRAY_SIZE, &array_size);
    metric_add(c->pool->statements_total, 1);
    int bad = 0;
    c->running = s->text.p;
    SQL_AWAIT(t, c, mysql_stmt_execute_start(&bad, s->stmt),
              mysql_stmt_execute_cont(&bad, s->stmt, ready));
    if (!bad && c->pool->read_only && sql_changes_rows(s->text.p))
        sql_pool_note_read_only(c->pool, false);
    if (!bad)
        return 0;
    return sql_fail(t, c, mysql_stmt_errno(s->stmt), mysql_stmt_error(s->stmt), s->text.p, true);
}

static int check_count(struct task *t, const struct sql_statement *s, size_t argc)
{
    size_t wanted = mysql_stmt_param_count(s->stmt);
    if (argc == wanted)
        return 0;
    log_error("sql", "%zu values for the %zu of \"%s\"", argc, wanted, s->text.p);
    return task_fail(t, ERR_INTERNAL, "%zu values for a statement of %zu", argc, wanted);
}

/* A server that is sent too much closes the connection without a reason. */
static int check_bytes(struct task *t, const struct sql *c, size_t argc,
                       const struct sql_value *argv)
{
    size_t bytes = 64;
    for (size_t i = 0; i < argc; i++)
        bytes += sql_value_bytes(&argv[i]);
    if (bytes <= c->packet_bytes_max)
        return 0;
    return task_fail(t, ERR_LIMIT, "%zu bytes in one statement; max_allowed_packet is %zu", bytes,
                     c->packet_bytes_max);
}

int sql_execute(struct task *t, struct sql *c, struct sql_statement *s, size_t argc,
                const struct sql_value *argv)
{
    int err = check_count(t, s, argc);
    if (!err)
        err = check_bytes(t, c, argc, argv);
    if (err)
        return err;
    if (argc > 0)
        bind_all(s->stmt, argc, argv);
    return execute(t, c, s, 0);
}

int sql_execute_array(struct task *t, struct sql *c, struct sql_statement *s, MYSQL_BIND *binds,
                      size_t rows)
{
    check(mysql_stmt_bind_param(s->stmt, binds) == 0);
    return execute(t, c, s, rows);
}
