#include "corpus/csv.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "tests/tap.h"

struct table {
    struct arena a;
    struct csv csv;
    struct csv_row row;
};

static int open_table(struct table *t, struct str text)
{
    arena_init(&t->a);
    return csv_open(&t->csv, &t->a, text);
}

static int next(struct table *t)
{
    return csv_next(&t->csv, &t->a, &t->row);
}

static void close_table(struct table *t)
{
    arena_release(&t->a);
}

/* The rows as "a|b;c|d", broken ones as "!line". */
static void shows(struct str text, const char *want, const char *what)
{
    struct table t;
    struct buf b;
    buf_init(&b);
    if (open_table(&t, text)) {
        buf_add_lit(&b, "no header");
    } else {
        int err;
        bool first = true;
        while ((err = next(&t)) != ERR_NOT_FOUND) {
            if (!first)
                buf_add_char(&b, ';');
            first = false;
            if (err) {
                buf_printf(&b, "!%d", (int)t.csv.error_line);
                continue;
            }
            for (size_t i = 0; i < t.csv.column_count; i++)
                buf_printf(&b, "%s%.*s", i ? "|" : "", STR_ARG(t.row.cells[i]));
        }
    }
    is_str(buf_str(&b), str_of(want), "%s", what);
    buf_release(&b);
    close_table(&t);
}

/* The same, in pieces of so many bytes and more: what is left of one is put before the next. */
static void shows_in_pieces(struct str text, size_t bytes, const char *want)
{
    struct table t;
    struct buf b;
    size_t at = 0, end = text.n < bytes ? text.n : bytes;
    buf_init(&b);
    check(open_table(&t, str_from(text.p, end)) == 0);
    size_t columns = t.csv.column_count;
    for (bool opened = true;; opened = false) {
        if (!opened)
            csv_go_on(&t.csv, str_from(text.p + at, end - at), columns, t.csv.line);
        t.csv.more = end < text.n;
        int err;
        while ((err = next(&t)) != ERR_NOT_FOUND) {
            buf_printf(&b, "%s%.*s@%d", b.len ? ";" : "", err ? 1 : (int)t.row.cells[0].n,
                       err ? "!" : t.row.cells[0].p, (int)(err ? t.csv.error_line : t.row.line));
        }
        at += t.csv.at;
        if (end == text.n)
            break;
        end = text.n - end < bytes ? text.n : end + bytes;
    }
    is_str(buf_str(&b), str_of(want), "in pieces of %zu bytes", bytes);
    buf_release(&b);
    close_table(&t);
}

static void test_pieces(void)
{
    struct str text = STR("a,b\r\n1,2\n\"3\n\"\"x\"\"\",4\r\n\n5,6\n7\n\"8,9\n10,11\n12,13");
    const char *want = "1@2;3\n\"x\"@3;5@6;!@7;!@8;10@9;12@10";
    for (size_t bytes = 6; bytes <= text.n; bytes++)
        shows_in_pieces(text, bytes, want);
}

static void test_rows(void)
{
    shows(STR("a,b\n1,2\n3,4\n"), "1|2;3|4", "two rows");
    shows(STR("a,b\r\n1,2\r\n3,4\r\n"), "1|2;3|4", "CRLF");
    shows(STR("a,b\n1,2"), "1|2", "no newline at the end");
    shows(STR("\xef\xbb\xbf\"a\",b\n1,2\n"), "1|2", "a byte order mark before a quoted name");
    shows(STR("a,b\n\n\r\n1,2\n\n\n"), "1|2", "empty lines are skipped");
    shows(STR("a,b\n,\n"), "|", "a row of empty cells is a row");
    shows(STR("a,b\n1,\n"), "1|", "the last cell is empty");
    shows(STR("a,b\n1,"), "1|", "the last cell is empty and the text ends");
    shows(STR("a,b\n 1 ,2\n"), " 1 |2", "blanks belong to the cell");
    shows(STR("a\n\xe5\x8c\xbb\xe5\xad\xa6\n"), "\xe5\x8c\xbb\xe5\xad\xa6", "Chinese");
    shows(STR("a,b\nx\ry,2\n"), "x\ry|2", "a CR alone ends no row");
}

static void test_quotes(void)
{
    shows(STR("a,b\n\"x,y\",2\n"), "x,y|2", "a comma in quotes");
    shows(STR("a,b\n\"x\ny\r\nz\",2\n"), "x\ny\r\nz|2", "newlines in quotes");
    shows(STR("a,b\n\"say \"\"hi\"\"\",\"\"\n"), "say \"hi\"|", "doubled quotes, an empty cell");
    shows(STR("a,b\n\"\"\"\",2\n"), "\"|2", "nothing but a quote");
    shows(STR("a,b\n5\" disk,2\n"), "5\" disk|2", "a quote inside a plain cell is a quote");
    shows(STR("a,b\n1,\"2\""), "1|2", "the text ends in a quoted cell");
}

static void test_broken_rows(void)
{
    shows(STR("a,b\n1\n2,3\n"), "!2;2|3", "too few cells");
    shows(STR("a,b\n1,2,3\n4,5\n"), "!2;4|5", "too many cells");
    shows(STR("a,b\n1,2,, \n4,5\n"), "1|2;4|5", "too many cells that are empty");
    shows(STR("a,b\n\"1\"x,2\n3,4\n"), "!2;3|4", "text behind a closing quote");
    shows(STR("a,b\n1,2\n\"3,4\n5,6\n7,8\n"), "1|2;!3;5|6;7|8",
          "a quote that never closes costs one row");
    shows(STR("a,b\n\"x\ny\",2\n3\n"), "x\ny|2;!4", "lines inside cells are counted");
    shows(STR(""), "no header", "nothing at all");
    shows(STR("\n\n"), "no header", "only empty lines");
    shows(STR("\xff\xfe"
              "a"),
          "no header", "UTF-16");
}

static void test_words(void)
{
    struct table t;
    is_int(open_table(&t, STR("a,b\n1\n")), 0, "opens");
    is_int(next(&t), ERR_INVALID, "too few cells");
    is_str(str_of(t.csv.error), STR("1 cells, the header has 2"), "says why");
    is_int(next(&t), ERR_NOT_FOUND, "the end");
    is_int(next(&t), ERR_NOT_FOUND, "and again");
    close_table(&t);
}

static void test_columns(void)
{
    struct table t;
    is_int(open_table(&t, STR("\n Name ,FullName,name,,\nx,y,z\n")), 0, "a header");
    is_int((int64_t)t.csv.column_count, 3, "empty names at the end are dropped");
    is_int(csv_column(&t.csv, STR("fullname")), 1, "found, case ignored");
    is_int(csv_column(&t.csv, STR("Name")), 0, "trimmed; the first of two");
    is_int(csv_column(&t.csv, STR("Price")), -1, "there is no such column");
    is_int(next(&t), 0, "a row");
    is_int(t.row.line, 3, "its line");
    close_table(&t);
    is_int(open_table(&t, STR("\xef\xbb\xbfName,Tag\n")), 0, "a byte order mark");
    is_int(csv_column(&t.csv, STR("Name")), 0, "is no part of the first name");
    close_table(&t);
}

static struct str large(size_t n, const char *before, const char *after)
{
    size_t b = strlen(before), e = strlen(after);
    char *p = check_memory(malloc(b + n + e));
    memcpy(p, before, b);
    memset(p + b, 'x', n);
    memcpy(p + b + n, after, e);
    return str_from(p, b + n + e);
}

static void limit_case(size_t n, const char *before, const char *after, int want, const char *what)
{
    struct str text = large(n, before, after);
    struct table t;
    is_int(open_table(&t, text), 0, "opens");
    is_int(next(&t), want, "%s", what);
    is_int(next(&t), 0, "%s: the row behind it", what);
    close_table(&t);
    free((void *)(uintptr_t)text.p);
}

static void test_limits(void)
{
    limit_case(CSV_CELL_BYTES_MAX, "a\n", "\n1\n", 0, "a cell of the largest size");
    limit_case(CSV_CELL_BYTES_MAX + 1, "a\n", "\n1\n", ERR_LIMIT, "a cell too long");
    limit_case(CSV_CELL_BYTES_MAX + 1, "a\n\"", "\"\n1\n", ERR_LIMIT, "a quoted cell too long");
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "a\n");
    for (int i = 0; i < CSV_COLUMNS_MAX; i++)
        buf_add_char(&b, ',');
    struct table t;
    is_int(open_table(&t, buf_str(&b)), 0, "opens");
    is_int(next(&t), ERR_LIMIT, "too many columns");
    close_table(&t);
    buf_release(&b);
}

/* Each line, read by itself, opens a quote; read inside a cell, it closes one and opens the next.
 * So every row runs on until the columns are too many, and going back each time would read
 * everything 256 times. */
static void test_linear(void)
{
    int lines = 20000;
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "a\n");
    for (int i = 0; i < lines; i++)
        buf_add_lit(&b, "xxxxxxxxxxxxxxxxxxxx\",\"\n");
    struct table t;
    is_int(open_table(&t, buf_str(&b)), 0, "opens");
    int calls = 0;
    while (next(&t) != ERR_NOT_FOUND)
        calls++;
    ok(calls > lines / CSV_COLUMNS_MAX && calls < 3 * lines / CSV_COLUMNS_MAX,
       "%d rows reported, so few bytes were read twice", calls);
    close_table(&t);
    buf_release(&b);
}

static void writes(struct str cell, struct str want, const char *what)
{
    struct buf b;
    buf_init(&b);
    struct csv_writer w = {.out = &b};
    csv_add(&w, STR("k"));
    csv_add(&w, cell);
    csv_end_row(&w);
    struct str got = buf_str(&b);
    is_str(str_from(got.p + 2, got.n - 4), want, "%s", what);
    buf_release(&b);
}

static void test_writer(void)
{
    writes(STR("plain"), STR("plain"), "a plain cell");
    writes(STR(""), STR(""), "an empty cell");
    writes(STR("a,b"), STR("\"a,b\""), "a comma");
    writes(STR("say \"hi\""), STR("\"say \"\"hi\"\"\""), "quotes");
    writes(STR("a\nb"), STR("\"a\nb\""), "a newline");
    writes(STR(" a"), STR("\" a\""), "a blank in front");
    writes(STR("=1+2"), STR("'=1+2"), "a formula");
    writes(STR("+1"), STR("'+1"), "plus");
    writes(STR("-1"), STR("'-1"), "minus");
    writes(STR("@x"), STR("'@x"), "at");
    writes(STR("\tx"), STR("\"'\tx\""), "tab");
    writes(STR("\rx"), STR("\"'\rx\""), "CR");
    writes(STR("=a,\"b\""), STR("\"'=a,\"\"b\"\"\""), "a formula with a comma and quotes");
    writes(STR("a=b"), STR("a=b"), "a sign inside does no harm");
}

static void test_writer_rows(void)
{
    struct buf b;
    buf_init(&b);
    struct csv_writer w = {.out = &b};
    csv_add(&w, STR("a"));
    csv_end_row(&w);
    csv_add(&w, STR(""));
    csv_end_row(&w);
    csv_add_int(&w, -5);
    csv_end_row(&w);
    csv_add_number(&w, STR("-1e-09"));
    csv_end_row(&w);
    is_str(buf_str(&b), STR("a\r\n\"\"\r\n-5\r\n-1e-09\r\n"),
           "rows; a number below zero is not a formula");
    shows(buf_str(&b), ";-5;-1e-09", "and the reader sees all of them");
    buf_release(&b);
}

int main(void)
{
    test_rows();
    test_pieces();
    test_quotes();
    test_broken_rows();
    test_words();
    test_columns();
    test_limits();
    test_linear();
    test_writer();
    test_writer_rows();
    return tap_done();
}
