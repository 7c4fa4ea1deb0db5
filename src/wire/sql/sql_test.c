#include "wire/sql.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "wire/sql/sql_harness.h"

static void must(struct task *t, struct sql_pool *p, const char *statement)
{
    int err = sql_argv(t, p, statement, 0, NULL, NULL);
    if (err)
        printf("# %s: %s\n", statement, task_error(t));
    check(err == 0);
}

static struct str text(struct task *t, struct sql_pool *p, const char *statement)
{
    struct sql_rows r;
    check(sql_argv(t, p, statement, 0, NULL, &r) == 0);
    check(r.count == 1 && r.cells[0].type == SQL_TEXT);
    return r.cells[0].s;
}

static void test_session(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    ok(!p->up, "nothing is known before the first call");
    is_str(text(t, p, "SELECT @@character_set_client"), STR("utf8mb4"), "client's characters");
    is_str(text(t, p, "SELECT @@character_set_results"), STR("utf8mb4"), "characters of results");
    is_str(text(t, p, "SELECT @@collation_connection"), STR("utf8mb4_bin"), "collation");
    is_str(text(t, p, "SELECT @@time_zone"), STR("+00:00"), "time zone");
    is_int(number(t, p, "SELECT @@autocommit"), 1, "autocommit");
    ok(str_find(text(t, p, "SELECT @@sql_mode"), STR("STRICT_TRANS_TABLES")) >= 0, "strict");
    ok(p->up, "up");
    sql_pool_free(p);
}

/* --- values --- */

static struct sql_value echo(struct task *t, struct sql_pool *p, struct sql_value v)
{
    must(t, p, "DELETE FROM v");
    struct sql_rows r;
    check(sql_call(t, p, NULL, "INSERT INTO v (i, d, s, b) VALUES (?, ?, ?, ?)",
                   v.type == SQL_INT ? v : sql_null(), v.type == SQL_REAL ? v : sql_null(),
                   v.type == SQL_TEXT ? v : sql_null(), v.type == SQL_BLOB ? v : sql_null()) == 0);
    check(sql_call(t, p, &r, "SELECT i, d, s, b FROM v") == 0);
    check(r.count == 1 && r.columns == 4);
    for (int i = 0; i < 4; i++)
        if (r.cells[i].type != SQL_NULL)
            return r.cells[i];
    return sql_null();
}

static void echo_bytes(struct task *t, struct sql_pool *p, struct sql_value v, const char *what)
{
    struct sql_value got = echo(t, p, v);
    ok(got.type == v.type && got.s.n == v.s.n && memcmp(got.s.p, v.s.p, v.s.n) == 0 &&
           got.s.p[got.s.n] == '\0',
       "%s", what);
}

static void test_numbers(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    const int64_t ints[] = {0, 1, -1, INT32_MIN, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        struct sql_value got = echo(t, p, sql_int(ints[i]));
        ok(got.type == SQL_INT && got.i == ints[i], "integer %lld", (long long)ints[i]);
    }
    const double reals[] = {0, -0.5, 0.1, 1e-300, DBL_MAX, -DBL_MIN, 1.0 / 3};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        struct sql_value got = echo(t, p, sql_real(reals[i]));
        ok(got.type == SQL_REAL && memcmp(&got.d, &reals[i], sizeof(double)) == 0, "real %g",
           reals[i]);
    }
    is_int(echo(t, p, sql_null()).type, SQL_NULL, "NULL");
    struct sql_rows r;
    check(sql_call(t, p, &r, "SELECT NULL, CAST(NULL AS SIGNED)") == 0);
    ok(!r.cells[0].s.p && r.cells[0].s.n == 0 && r.cells[1].i == 0, "it is no text, and 0");
    is_int(echo(t, p, sql_text(STR_NULL)).type, SQL_NULL, "an absent text is NULL");
    is_int(echo(t, p, sql_blob(STR_NULL)).type, SQL_NULL, "an absent blob is NULL");
    sql_pool_free(p);
}

static void test_bytes(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    echo_bytes(t, p, sql_text(STR("")), "an empty text is not NULL");
    echo_bytes(t, p, sql_blob(STR("")), "nor is an empty blob");
    echo_bytes(t, p, sql_text(STR("naïve 北京 😀 𝄞")), "characters of four bytes");
    echo_bytes(t, p, sql_text(STR("it's; DROP TABLE v -- \\ \"")), "quotation marks");
    echo_bytes(t, p, sql_blob(STR("a\0b\0\0\xff\xfe")), "NUL bytes and no UTF-8");
    size_t n = 1 << 20;
    char *big = malloc(n);
    for (size_t i = 0; i < n; i++)
        big[i] = (char)('a' + i * 7 % 26);
    echo_bytes(t, p, sql_text(str_from(big, n)), "a text of a megabyte");
    for (size_t i = 0; i < n; i++)
        big[i] = (char)(i * 31 >> 3);
    echo_bytes(t, p, sql_blob(str_from(big, n)), "a blob of a megabyte");
    free(big);
    size_t too_much = 17 << 20;
    char *more = calloc(1, too_much);
    is_int(sql_call(t, p, NULL, "SELECT LENGTH(?)", sql_blob(str_from(more, too_much))), ERR_LIMIT,
           "more than the server takes is refused here");
    ok(strstr(task_error(t), "max_allowed_packet is 16777216"), "with words: %s", task_error(t));
    free(more);
    is_int(number(t, p, "SELECT 1"), 1, "and the connection lives");
    is_int((int64_t)p->open, 1, "the same one");
    sql_pool_free(p);
}

static void test_types(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    struct sql_rows r;
    check(sql_call(t, p, &r,
                   "SELECT CAST(12.50 AS DECIMAL(10,2)), TIMESTAMP'2026-01-31 23:59:59.123456',"
                   " DATE'2026-01-31', TIME'-12:34:56', CAST(200 AS UNSIGNED), 7 = 7,"
                   " CAST('{\"a\": 1}' AS CHAR), x'00ff', CAST(1.5 AS FLOAT), YEAR(NOW()) > 2000,"
                   " CAST(9223372036854775807 AS UNSIGNED)") == 0);
    is_str(r.cells[0].s, STR("12.50"), "a decimal is text");
    is_str(r.cells[1].s, STR("2026-01-31 23:59:59.123456"), "so is a time stamp");
    is_str(r.cells[2].s, STR("2026-01-31"), "and a date");
    is_str(r.cells[3].s, STR("-12:34:56"), "and a time");
    ok(r.cells[1].type == SQL_TEXT && r.cells[0].type == SQL_TEXT, "as SQL_TEXT");
    ok(r.cells[4].type == SQL_INT && r.cells[4].i == 200, "an unsigned number");
    ok(r.cells[5].type == SQL_INT && r.cells[5].i == 1, "a truth value");
    is_int(r.cells[6].type, SQL_TEXT, "a text");
    ok(r.cells[7].type == SQL_BLOB && r.cells[7].s.n == 2, "a binary string");
    ok(r.cells[8].type == SQL_REAL && r.cells[8].d == 1.5, "a float");
    ok(r.cells[10].type == SQL_INT && r.cells[10].i == INT64_MAX, "the largest number that fits");

    is_int(sql_call(t, p, &r, "SELECT CAST(9223372036854775808 AS UNSIGNED) AS huge"), ERR_LIMIT,
           "a larger one is an error");
    ok(strstr(task_error(t), "column huge"), "that names the column: %s", task_error(t));
    ok(sql_call(t, p, &r, "SELECT ?, ?", sql_int(3), sql_text(STR("x"))) == 0 &&
           r.cells[0].i == 3 && r.cells[1].s.n == 1,
       "the types of a statement");
    ok(sql_call(t, p, &r, "SELECT ?, ?", sql_text(STR("three")), sql_real(2.5)) == 0 &&
           r.cells[0].type == SQL_TEXT && r.cells[1].type == SQL_REAL && r.cells[1].d == 2.5,
       "may change with its values");
    sql_pool_free(p);
}

static void test_results(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    struct sql_rows r = {.count = 77};
    must(t, p, "CREATE OR REPLACE TABLE n (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    check(sql_call(t, p, &r, "INSERT INTO n (v) VALUES (?), (?), (?)", sql_int(5), sql_int(6),
                   sql_int(7)) == 0);
    ok(r.affected == 3 && r.insert_id == 1 && r.count == 0 && r.columns == 0, "an insert");
    check(sql_call(t, p, &r, "UPDATE n SET v = v + 1 WHERE v > ?", sql_int(5)) == 0);
    is_int((int64_t)r.affected, 2, "an update");
    check(sql_call(t, p, &r, "SELECT id, v FROM n ORDER BY id") == 0);
    ok(r.count == 3 && sql_row(&r, 2)[0].i == 3 && sql_row(&r, 2)[1].i == 8, "row by row");
    check(sql_call(t, p, &r, "SELECT id FROM n WHERE v = ?", sql_int(1000)) == 0);
    ok(r.count == 0 && r.columns == 1, "no row");
    is_int(sql_call(t, p, NULL, "SELECT id, v, REPEAT('x', 100) FROM n"), 0,
           "rows that are dropped");
    check(sql_call(t, p, &r, "SELECT ? + seq FROM seq_1_to_10000", sql_int(1)) == 0);
    ok(r.count == 10000 && sql_row(&r, 9999)[0].i == 10001, "ten thousand rows");
    is_int(sql_call(t, p, &r, "SELECT REPEAT('x', 1000000) FROM seq_1_to_100"), ERR_LIMIT,
           "a result of a hundred megabytes");
    is_int(number(t, p, "SELECT 1"), 1, "and the next call");
    must(t, p, "DROP TABLE n");
    sql_pool_free(p);
}

/* --- errors --- */

static void test_errors(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    must(t, p,
         "CREATE OR REPLACE TABLE e (name VARCHAR(20) NOT NULL, n INT, UNIQUE KEY uk (name))");
    check(sql_call(t, p, NULL, "INSERT INTO e (name) VALUES (?)", sql_text(STR("s3cret"))) == 0);
    struct sql_rows r = {.count = 77};
    is_int(sql_call(t, p, &r, "INSERT INTO e (name) VALUES (?)", sql_text(STR("s3cret"))),
           ERR_EXISTS, "a unique key is taken");
    ok(r.count == 77, "a failed call leaves its argument alone");
    is_str(str_of(task_error(t)), STR("Duplicate entry '…' for key 'uk' (1062)"),
           "the key is named, not the value");
    is_int(sql_call(t, p, NULL, "INSERT INTO e (name, n) VALUES ('a', ?)", sql_text(STR("s3cret"))),
           ERR_REFUSED, "a value of the wrong kind");
    ok(!strstr(task_error(t), "s3cret") && strstr(task_error(t), "`n`"),
       "the column is named, not the value: %s", task_error(t));
    is_int(sql_call(t, p, NULL, "INSERT INTO e (name) VALUES (?)",
                    sql_text(STR("longer than twenty characters"))),
           ERR_REFUSED, "nothing is cut off in silence");

    struct buf log;
    buf_init(&log);
    log_capture(&log);
    is_int(sql_call(t, p, NULL, "SELEC ?", sql_int(1)), ERR_REFUSED, "a statement that is none");
    log_capture(NULL);
    ok(strstr(task_error(t), "syntax"), "says so: %s", task_error(t));
    ok(str_find(buf_str(&log), STR("SELEC ?")) >= 0, "and is logged");
    buf_clear(&log);
    log_capture(&log);
    is_int(sql_call(t, p, NULL, "SELECT ?", sql_int(1), sql_int(2)), ERR_INTERNAL,
           "more values than places");
    log_capture(NULL);
    ok(str_find(buf_str(&log), STR("2 values for the 1")) >= 0, "is logged");
    buf_release(&log);
    is_int((int64_t)p->open, 1, "all over one connection");
    must(t, p, "DROP TABLE e");
    sql_pool_free(p);
}

/* --- prepared statements --- */

static int64_t status(struct task *t, struct sql_pool *p, const char *name)
{
    struct sql_rows r;
    char statement[200];
    snprintf(statement, sizeof statement,
             "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.%s_STATUS"
             " WHERE VARIABLE_NAME = ?",
             name[0] == 'P' ? "GLOBAL" : "SESSION");
    check(sql_call(t, p, &r, statement, sql_text(str_of(name))) == 0 && r.count == 1);
    return r.cells[0].i;
}

static void test_cache(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    (void)status(t, p, "COM_STMT_PREPARE");
    int64_t before = status(t, p, "COM_STMT_PREPARE");
    for (int64_t i = 0; i < 50; i++) {
        struct sql_rows r;
        char copy[] = "SELECT ? + 1";
        check(sql_call(t, p, &r, copy, sql_int(i)) == 0 && r.cells[0].i == i + 1);
    }
    is_int(status(t, p, "COM_STMT_PREPARE") - before, 1, "fifty runs, prepared once, by text");

    before = status(t, p, "COM_STMT_PREPARE");
    for (int i = 0; i < 3 * SQL_STATEMENTS_MAX; i++) {
        char statement[40];
        struct sql_rows r;
        snprintf(statement, sizeof statement, "SELECT ? * 1 + %d", i);
        check(sql_call(t, p, &r, statement, sql_int(1)) == 0 && r.cells[0].i == i + 1);
        if (i % 40 == 0)
            (void)status(t, p, "COM_STMT_PREPARE"); /* stays in use */
    }
    is_int(status(t, p, "COM_STMT_PREPARE") - before, 3 * SQL_STATEMENTS_MAX,
           "what is used stays prepared");
    int64_t kept = status(t, p, "PREPARED_STMT_COUNT");
    ok(kept <= SQL_STATEMENTS_MAX && kept > SQL_STATEMENTS_MAX - 5, "%lld are kept on the server",
       (long long)kept);

    must(t, p, "CREATE OR REPLACE TABLE alt (a INT)");
    must(t, p, "INSERT INTO alt VALUES (1)");
    struct sql_rows r;
    check(sql_call(t, p, &r, "SELECT * FROM alt") == 0 && r.columns == 1);
    must(t, p, "ALTER TABLE alt ADD b INT DEFAULT 2");
    ok(sql_call(t, p, &r, "SELECT * FROM alt") == 0 && r.columns == 2 && r.cells[1].i == 2,
       "a table that has changed meanwhile");
    must(t, p, "DROP TABLE alt");
    sql_pool_free(p);
}

/* --- row by row --- */

struct walk {
    struct sql_pool *p;
    int64_t rows, sum, stop_at;
    long pages_start, pages_most;
    int ticks;
};

static long pages(void)
{
    long size, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    check(f && fscanf(f, "%ld %ld", &size, &resident) == 2);
    fclose(f);
    return resident;
}

static int walk_row(struct task *t, const struct sql_value *cells, void *arg)
{
    struct walk *w = arg;
    check(cells[1].s.n == 1000);
    w->sum += cells[0].i;
    if (++w->rows == 1)
        w->pages_start = pages();
    if (w->rows % 1000 == 0 && pages() > w->pages_most)
        w->pages_most = pages();
    if (w->rows % 25000 == 0) { /* other calls in between, over the same pool too */
        check(task_sleep(t, 20) == 0);
        check(number(t, w->p, "SELECT 1") == 1);
    }
    arena_alloc(task_arena(t), 500);
    if (w->rows == w->stop_at)
        return task_fail(t, ERR_NOT_FOUND, "enough");
    return 0;
}

static void tick(struct task *t, void *arg)
{
    struct walk *w = arg;
    while (task_sleep(t, 1) == 0)
        w->ticks++;
}

static void test_each(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 2);
    struct walk w = {.p = p};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "tick", tick, &w) == 0);
    const char *statement = "SELECT seq, REPEAT(?, 1000) FROM seq_1_to_100000";
    struct sql_value x = sql_text(STR("x"));
    int64_t since = loop_now_us(task_loop(t));
    is_int(sql_each(t, p, statement, 1, &x, walk_row, &w), 0, "a hundred thousand rows");
    int64_t ms = (loop_now_us(task_loop(t)) - since) / 1000;
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    ok(w.rows == 100000 && w.sum == 5000050000, "all of them");
    long kb = (w.pages_most - w.pages_start) * (sysconf(_SC_PAGESIZE) / 1024);
    ok(kb < 16 * 1024, "100 MB of rows took %ld KB of memory", kb);
    ok(w.ticks > ms / 10, "others ran meanwhile: %d turns in %lld ms", w.ticks, (long long)ms);

    w = (struct walk){.p = p, .stop_at = 10};
    is_int(sql_each(t, p, statement, 1, &x, walk_row, &w), ERR_NOT_FOUND, "ends when told to");
    is_int(w.rows, 10, "at once");
    is_int(number(t, p, "SELECT 1"), 1, "and the next call");
    sql_pool_free(p);
    p = pool_of(t, 1);
    w = (struct walk){.p = p, .stop_at = 10};
    const char *write = "INSERT INTO v (i) VALUES (1)";
    must(t, p, write);
    check(sql_each(t, p, statement, 1, &x, walk_row, &w) == ERR_NOT_FOUND);
    is_int(sql_argv(t, p, write, 0, NULL, NULL), 0, "even if it is prepared");
    is_int(sql_each(t, p, "SELECT 1 FROM nope", 0, NULL, walk_row, &w), ERR_REFUSED, "no table");
    sql_pool_free(p);
}

struct hurry {
    int rows, turns;
};

static int hurry_row(struct task *t, const struct sql_value *cells, void *arg)
{
    (void)cells;
    struct hurry *h = arg;
    if (h->rows++ == 0) {
        check(task_sleep(t, 100) == 0); /* until all rows are here */
        h->turns = 0;
    }
    return 0;
}

static void count_turns(struct task *t, void *arg)
{
    struct hurry *h = arg;
    while (task_yield(t) == 0)
        h->turns++;
}

/* Rows that have arrived already need no waiting; other tasks must still run in between. */
static void test_turns(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    struct hurry h = {0};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "turns", count_turns, &h) == 0);
    check(sql_each(t, p, "SELECT seq FROM seq_1_to_3000", 0, NULL, hurry_row, &h) == 0);
    int turns = h.turns;
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    ok(h.rows == 3000 && turns >= 10, "%d turns of others during three thousand rows", turns);
    sql_pool_free(p);
}

static void test_metrics(struct task *t, void *arg)
{
    (void)arg;
    struct metrics *m = metrics_open(-1, 1, 0);
    struct sql_pool *p = pool_with(t, (struct sql_options){.metrics = m});
    for (int i = 0; i < 3; i++)
        must(t, p, "DO 1");
    check(sql_call(t, p, NULL, "SELECT nope") == ERR_REFUSED);
    struct buf out;
    buf_init(&out);
    metrics_render(m, &out);
    const char *wanted[] = {
        "millrace_sql_up{node=\"0\"} 1\n",
        "millrace_sql_connections{node=\"0\"} 1\n",
        "millrace_sql_statements_total{node=\"0\"} 5\n", /* two more at connecting */
        "error=\"refused\"",
        "millrace_sql_pool_wait_seconds_count{node=\"0\"} 4\n",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        ok(str_find(buf_str(&out), str_of(wanted[i])) >= 0, "%.*s", (int)strcspn(wanted[i], "\n"),
           wanted[i]);
    is_int(*p->statements_total, 5, "statements");
    is_int(*p->errors_total[-ERR_REFUSED], 1, "an error is counted");
    sql_pool_free(p);
    metrics_render(m, &out);
    ok(str_find(buf_str(&out), STR("millrace_sql_connections{node=\"0\"} 0\n")) >= 0,
       "closed connections are not");
    buf_release(&out);
    metrics_close(m);
}

static void set_up(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    must(t, p, "CREATE TABLE v (i BIGINT, d DOUBLE, s LONGTEXT CHARACTER SET utf8mb4, b LONGBLOB)");
    sql_pool_free(p);
}

int main(void)
{
    task_fn *const tests[] = {set_up,     test_session, test_numbers, test_bytes,
                              test_types, test_results, test_errors,  test_cache,
                              test_each,  test_turns,   test_metrics};
    return run_tests(NULL, sizeof tests / sizeof tests[0], tests);
}
