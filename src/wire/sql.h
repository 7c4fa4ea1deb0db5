/* sql.h -- MySQL 8 or MariaDB: a pool of connections, prepared statements, bound values only.
 *
 * There is no way to paste a value into SQL here: every value is bound. Statements
 * are prepared once per connection and kept. Always true:
 *   - a call waits no longer than its task's deadline and statement_ms, for a connection too
 *     (connecting with TLS is not cut short before connect_ms);
 *   - a deadline or cancellation in mid-statement drops the connection and has the statement ended
 *     on the server; whether a write was done is then unknown, as with ERR_UNCERTAIN;
 *   - a lost connection is replaced. The call under way fails with ERR_UNAVAILABLE if nothing was
 *     done (it could not be sent, only reads, or was in a transaction), else with ERR_UNCERTAIN;
 *   - of several servers one is used at a time; a call that fails because that one is lost or takes
 *     no changes any more, and has done nothing, is repeated once on another;
 *   - on Galera a call sees what was committed on any node before it began;
 *   - while the server is down, calls fail at once with ERR_UNAVAILABLE. In a pool that is watched
 *     a server that hangs counts as down, too, and no call waits for it for more than 1.5 s;
 *   - texts of errors repeat what the server says, but never a bound value or a password. */
#ifndef WIRE_SQL_H
#define WIRE_SQL_H

#include "base/metrics.h"
#include "base/str.h"
#include "loop/task.h"

struct sql_pool;
struct sql; /* one connection, lent by the pool */

struct sql_options {
    /* "unix:/path/to.sock?user=…&database=…" or
     * "mysql://user:password@host[:port][,host[:port]…]/database[?tls=on|verify[&ca=/path.pem]]".
     * The database may be left out; reserved characters are percent-encoded. Of several hosts the
     * first that takes changes is used, until it does not any more (sql/sql_place.c). */
    const char *url;
    const char *password;    /* for unix sockets; NULL: none */
    size_t connections_max;  /* 0: 6 */
    int64_t connect_ms;      /* 0: 3000 */
    int64_t statement_ms;    /* 0: 30000 */
    struct metrics *metrics; /* NULL: not shown */
    bool quiet;              /* that the server is away is not logged */
};

const char *sql_url_problem(struct arena *a, const char *url); /* NULL: fine */

/* Connects when first used. The URL must be without problem. */
struct sql_pool *sql_pool_new(struct loop *l, const struct sql_options *o);
void sql_pool_free(struct sql_pool *p); /* no call may be under way */
/* A task function; its argument is the pool. Finds out when the server stops answering, and when it
 * is back; a statement that is merely slow is left alone. Ends when cancelled. */
void sql_pool_watch(struct task *t, void *pool);
/* The last attempt to reach the server has failed: calls fail at once. */
bool sql_pool_away(const struct sql_pool *p);
/* The last change was refused because the server is read-only: with ERR_UNAVAILABLE, surely not
 * done. Connections are replaced then, for behind the same address another server may be primary
 * by now. The next change that succeeds ends it. Of several servers: none takes changes; in a pool
 * that is watched it ends as soon as one does. */
bool sql_pool_read_only(const struct sql_pool *p);

/* What columns become: integers SQL_INT (an unsigned one above INT64_MAX fails the call with
 * ERR_LIMIT); FLOAT and DOUBLE SQL_REAL; DECIMAL, dates, times and JSON SQL_TEXT; binary strings
 * SQL_BLOB. Texts are UTF-8 and have a NUL behind them. A NULL has 0 for i, and for s p == NULL. */
enum sql_type { SQL_NULL, SQL_INT, SQL_REAL, SQL_TEXT, SQL_BLOB };

struct sql_value {
    enum sql_type type;
    union {
        int64_t i;
        double d;
        struct str s;
    };
};
#define sql_int(v)  ((struct sql_value){.type = SQL_INT, .i = (v)})
#define sql_real(v) ((struct sql_value){.type = SQL_REAL, .d = (v)})
#define sql_text(v) ((struct sql_value){.type = SQL_TEXT, .s = (v)}) /* p == NULL is SQL NULL */
#define sql_blob(v) ((struct sql_value){.type = SQL_BLOB, .s = (v)})
#define sql_null()  ((struct sql_value){.type = SQL_NULL, .s = STR_NULL})

struct sql_rows {
    size_t count, columns;
    const struct sql_value *cells; /* row by row, in the task's arena */
    uint64_t affected;             /* changed by INSERT, UPDATE, DELETE */
    uint64_t insert_id;
};
static inline const struct sql_value *sql_row(const struct sql_rows *r, size_t row)
{
    return r->cells + row * r->columns;
}

/* Runs one statement on any connection of the pool. out may be NULL. ERR_EXISTS: a unique key is
 * taken, or there is an index of that name. ERR_CONFLICT: lock wait (1205), or a deadlock or a
 * change that another server of a cluster committed first (1213), at SQL_TX_TRIES tries.
 * ERR_LIMIT: rows of more than 64 MB, or more values than max_allowed_packet. ERR_BUSY: too many
 * calls wait already. ERR_REFUSED: any other error of the server, with its text. */
MUST_CHECK int sql_argv(struct task *t, struct sql_pool *p, const char *statement, size_t argc,
                        const struct sql_value *argv, struct sql_rows *out);
/* sql_call(t, p, &rows, "SELECT uid FROM user_info WHERE username = ?", sql_text(name)) */
#define SQL_ARGS_(...) ((const struct sql_value[]){{.type = SQL_NULL}, ##__VA_ARGS__})
#define sql_call(t, p, out, statement, ...)                                                        \
    sql_argv((t), (p), (statement), sizeof(SQL_ARGS_(__VA_ARGS__)) / sizeof(struct sql_value) - 1, \
             SQL_ARGS_(__VA_ARGS__) + 1, (out))

/* For lists of any length in few prepared statements: a list has sql_padded(count) values, a power
 * of two, where the last one is repeated. sql_marks: "begin (?,?,…)end" with that many marks. */
size_t sql_padded(size_t count);
const char *sql_marks(struct arena *a, const char *begin, size_t count, const char *end);

/* A transaction. body runs between BEGIN and COMMIT on one connection; other than 0 rolls back and
 * is returned. On ERR_CONFLICT it is rolled back and run again, at most SQL_TX_TRIES times, so body
 * must be repeatable in memory as well. body uses c only: tasks that hold one connection and wait
 * for a second can deadlock the pool. ERR_UNCERTAIN: COMMIT was sent and not confirmed. */
#define SQL_TX_TRIES 5
MUST_CHECK int sql_tx(struct task *t, struct sql_pool *p,
                      int (*body)(struct task *t, struct sql *c, void *arg), void *arg);
MUST_CHECK int sql_on_argv(struct task *t, struct sql *c, const char *statement, size_t argc,
                           const struct sql_value *argv, struct sql_rows *out);
#define sql_on(t, c, out, statement, ...)                                                          \
    sql_on_argv((t), (c), (statement),                                                             \
                sizeof(SQL_ARGS_(__VA_ARGS__)) / sizeof(struct sql_value) - 1,                     \
                SQL_ARGS_(__VA_ARGS__) + 1, (out))

/* A statement that ends with "IN (…)" and `end`, where … are the numbers of a list that is not
 * empty: "begin (?,?,…)end", with the values of first[] before the list's. */
MUST_CHECK int sql_on_list(struct task *t, struct sql *c, const char *begin, const char *end,
                           const struct sql_value *first, size_t first_count, const uint64_t *list,
                           size_t count, struct sql_rows *out);

/* Many rows: `into` is "INSERT INTO t (a, b) VALUES", tail "" or "ON DUPLICATE KEY UPDATE …".
 * One prepared array on MariaDB, multi-row inserts elsewhere. */
MUST_CHECK int sql_bulk(struct task *t, struct sql *c, const char *into, const char *tail,
                        size_t columns, size_t rows, const struct sql_value *cells,
                        uint64_t *affected);

/* Rows one by one, without holding them all. cells are borrowed, and the task's arena is reset
 * after each row. row may wait, for at most ten minutes: then the server closes the connection.
 * Other than 0 ends it, and the connection with it. */
MUST_CHECK int sql_each(struct task *t, struct sql_pool *p, const char *statement, size_t argc,
                        const struct sql_value *argv,
                        int (*row)(struct task *t, const struct sql_value *cells, void *arg),
                        void *arg);

bool sql_is_mariadb(const struct sql *c);
bool sql_is_galera(const struct sql *c);
#endif
