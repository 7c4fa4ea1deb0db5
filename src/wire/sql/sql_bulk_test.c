#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "wire/sql/sql_harness.h"

struct load {
    const char *into, *tail;
    size_t columns, rows;
    const struct sql_value *cells;
    bool arrays;
    uint64_t affected;
    int64_t statements;
};

static int load_body(struct task *t, struct sql *c, void *arg)
{
    struct load *l = arg;
    check(sql_is_mariadb(c) && c->arrays);
    c->arrays = l->arrays;
    int64_t before = *c->pool->statements_total;
    int err = sql_bulk(t, c, l->into, l->tail, l->columns, l->rows, l->cells, &l->affected);
    l->statements = *c->pool->statements_total - before;
    c->arrays = true;
    return err;
}

static struct str digest(struct task *t, struct sql_pool *p, const char *table)
{
    char statement[200];
    snprintf(statement, sizeof statement,
             "SELECT MD5(GROUP_CONCAT(CONCAT_WS('|', id, IFNULL(n, 'null'), IFNULL(d, 'null'),"
             " IFNULL(s, 'null'), IFNULL(HEX(b), 'null')) ORDER BY id)) FROM %s",
             table);
    struct sql_rows r;
    check(sql_argv(t, p, "SET group_concat_max_len = 1000000000", 0, NULL, NULL) == 0);
    check(sql_argv(t, p, statement, 0, NULL, &r) == 0);
    return r.cells[0].type == SQL_NULL ? STR("empty") : r.cells[0].s;
}

#define ROWS    1777
#define COLUMNS 5

/* Every kind of value, NULLs, and a column that changes its kind on the way. */
static struct sql_value *make_rows(struct task *t, int64_t first)
{
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, ROWS * COLUMNS);
    for (int64_t i = 0; i < ROWS; i++) {
        struct sql_value *c = cells + i * COLUMNS;
        char *s = arena_printf(task_arena(t), "row %d: 北京 😀 it's", (int)i);
        c[0] = sql_int(first + i);
        c[1] = i % 3 ? sql_int(i % 2 ? INT64_MAX - i : INT64_MIN + i) : sql_null();
        c[2] = i % 700 == 699 ? sql_int(i) : sql_real((double)i / 4);
        c[3] = i % 5 ? sql_text(str_of(s)) : i % 2 ? sql_text(STR_NULL) : sql_text(STR(""));
        c[4] = i % 4 ? sql_blob(str_from("a\0b\xff", (size_t)i % 5)) : sql_null();
    }
    return cells;
}

static void insert_twice(struct task *t, struct sql_pool *p, const char *tail, int64_t first)
{
    struct sql_value *cells = make_rows(t, first);
    struct load l = {.tail = tail, .columns = COLUMNS, .rows = ROWS, .cells = cells};
    l.into = "INSERT INTO by_array (id, n, d, s, b) VALUES";
    l.arrays = true;
    is_int(sql_tx(t, p, load_body, &l), 0, "an array of rows %s", tail);
    uint64_t affected = l.affected;
    ok(l.statements < 14, "in %d statements", (int)l.statements);
    l.into = "INSERT INTO by_values (id, n, d, s, b) VALUES";
    l.arrays = false;
    is_int(sql_tx(t, p, load_body, &l), 0, "a statement of many rows %s", tail);
    ok(l.statements < 14, "in %d statements", (int)l.statements);
    ok(affected == l.affected && affected >= ROWS, "affect %d rows", (int)affected);
    is_str(digest(t, p, "by_array"), digest(t, p, "by_values"), "the tables are equal");
}

static void test_equal(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 0);
    insert_twice(t, p, "", 0);
    ok(!str_eq(digest(t, p, "by_array"), STR("empty")), "and full");
    insert_twice(t, p, "ON DUPLICATE KEY UPDATE s = VALUES(s), n = 1", 1000);
    struct load l = {"INSERT INTO by_array (id) VALUES", "", 1, 0, NULL, true, 99, 0};
    is_int(sql_tx(t, p, load_body, &l), 0, "no rows");
    ok(l.affected == 0 && l.statements == 0, "are no statement");
    struct sql_value three[] = {sql_int(-1), sql_int(-2), sql_int(5)};
    for (int arrays = 0; arrays < 2; arrays++) {
        l = (struct load){"INSERT INTO by_array (id) VALUES", "", 1, 3, three, arrays == 1, 0, 0};
        is_int(sql_tx(t, p, load_body, &l), ERR_EXISTS, "a key that is taken");
    }
    struct sql_rows r;
    check(sql_call(t, p, &r, "SELECT COUNT(*) FROM by_array WHERE id < 0") == 0);
    is_int(r.cells[0].i, 0, "rolls the others back");
    sql_pool_free(p);
}

/* Forty rows of 600 KB do not fit into one packet of four. */
static void test_packets(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 0);
    size_t n = 600000;
    char *big = calloc(1, n);
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, 80);
    for (int64_t i = 0; i < 40; i++) {
        cells[2 * i] = sql_int(100000 + i);
        cells[2 * i + 1] = sql_blob(str_from(big, n));
    }
    for (int arrays = 0; arrays < 2; arrays++) {
        struct load l = {"REPLACE INTO by_array (id, b) VALUES", "", 2, 40, cells, arrays, 0, 0};
        is_int(sql_tx(t, p, load_body, &l), 0, "24 MB, at most 4 at a time");
        is_int(l.statements, arrays ? 7 : 10, "by six rows, or by four");
    }
    struct sql_rows r;
    check(sql_call(t, p, &r,
                   "SELECT COUNT(*), SUM(LENGTH(b)) = 24000000 FROM by_array"
                   " WHERE id >= 100000") == 0);
    ok(r.cells[0].i == 40 && r.cells[1].i == 1, "all is there");
    free(big);
    sql_pool_free(p);
}

#define SPEED_ROWS 20000

static void test_speed(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 0);
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, SPEED_ROWS * 3);
    static char bib[1000];
    memset(bib, 'b', sizeof bib);
    for (int64_t i = 0; i < SPEED_ROWS; i++) {
        cells[3 * i] = sql_int(i);
        cells[3 * i + 1] = sql_int(i * i);
        cells[3 * i + 2] = sql_text(str_from(bib, sizeof bib));
    }
    for (int arrays = 1; arrays >= 0; arrays--) {
        check(sql_call(t, p, NULL, "TRUNCATE by_values") == 0);
        struct load l = {
            "INSERT INTO by_values (id, n, s) VALUES", "", 3, SPEED_ROWS, cells, arrays, 0, 0};
        int64_t since = loop_now_us(task_loop(t));
        check(sql_tx(t, p, load_body, &l) == 0 && l.affected == SPEED_ROWS);
        int64_t us = loop_now_us(task_loop(t)) - since;
        ok(us > 0, "rows of 1 KB, %s: %d rows/s", arrays ? "array" : "values",
           (int)(SPEED_ROWS * 1000000ll / us));
    }
    sql_pool_free(p);
}

static void set_up(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 0);
    check(sql_call(t, p, NULL,
                   "CREATE TABLE by_array (id BIGINT PRIMARY KEY, n BIGINT, d DOUBLE,"
                   " s TEXT CHARACTER SET utf8mb4, b LONGBLOB)") == 0);
    check(sql_call(t, p, NULL, "CREATE TABLE by_values LIKE by_array") == 0);
    sql_pool_free(p);
}

int main(void)
{
    const char *const args[] = {"--max-allowed-packet=4M", NULL};
    task_fn *const tests[] = {set_up, test_equal, test_packets, test_speed};
    return run_tests(&(struct mariadb_options){.args = args}, sizeof tests / sizeof tests[0],
                     tests);
}
