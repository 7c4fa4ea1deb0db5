#include "app/pool/rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "tests/tap.h"

/* "line:text" of each row, "line!why" of each that is no good; in pieces of so many bytes. */
static void shows(enum pool_format format, struct str text, size_t bytes, const char *want)
{
    struct arena a;
    struct buf b;
    struct pool_rows *r = check_memory(malloc(sizeof *r));
    struct pool_place place = {.line = 0};
    size_t at = 0, end = 0;
    int err = 0;
    arena_init(&a);
    buf_init(&b);
    do {
        end = text.n - end < bytes ? text.n : end + bytes;
        err = pool_rows_open(r, &a, &pool_types[0], format, &place, str_from(text.p + at, end - at),
                             end == text.n);
        if (err)
            buf_printf(&b, "%s", r->error);
        while (!err) {
            struct str got;
            int64_t line = 0;
            int e = pool_rows_next(r, &a, &got, &line);
            if (e == ERR_NOT_FOUND)
                break;
            buf_printf(&b, "%s%d%s%.*s", b.len ? "; " : "", (int)line, e ? "!" : ":",
                       e ? (int)strlen(r->error) : (int)got.n, e ? r->error : got.p);
        }
        at += r->at;
        place = r->place;
    } while (!err && end < text.n);
    is_str(buf_str(&b), str_of(want), "in pieces of %zu", bytes);
    buf_release(&b);
    arena_release(&a);
    free(r);
}

static void test_csv(void)
{
    struct str text = STR("\xef\xbb\xbfid,Text\r\n1,one\n2,\"two, \"\"quoted\"\"\nlines\"\n3,\n4\n"
                          "5,\xff\n6,标题\n");
    const char *want = "2:one; 3:two, \"quoted\"\nlines; 5!no text; 6!1 cells, the header has 2; "
                       "7!not UTF-8; save the file as UTF-8; 8:标题";
    for (size_t bytes = 12; bytes < text.n + 2; bytes++)
        shows(POOL_CSV, text, bytes, want);
    shows(POOL_CSV, STR("title\na\n"), 99, "2:a");
    shows(POOL_CSV, STR("title,text\na,b\n"), 99, "2:b");
    shows(POOL_CSV, STR("words\na\n"), 99, "the first row names no column \"text\" or \"title\"");
    shows(POOL_CSV, STR(""), 99, "no header row");
}

static void test_jsonl(void)
{
    struct str text =
        STR("\xef\xbb\xbf{\"text\": \"one\", \"x\": 1}\r\n\n\"two\"\n{\"title\":\"thr\\n"
            "ee\"}\n[]\n{\"text\":3}\nnot\n{\"text\":\"  \"}\n\"标题\"");
    const char *no = "neither a string nor an object with a string \"text\" or \"title\"";
    char want[600];
    snprintf(want, sizeof want,
             "1:one; 3:two; 4:thr\nee; 5!%s; 6!%s; 7!no JSON, column 1: expected a value; "
             "8!no text; 9:标题",
             no, no);
    for (size_t bytes = 1; bytes < text.n + 2; bytes++)
        shows(POOL_JSONL, text, bytes, want);
}

static void test_limits(void)
{
    struct buf b;
    buf_init(&b);
    buf_add_char(&b, '"');
    for (int i = 0; i < 1000; i++)
        buf_add_lit(&b, "题");
    buf_add_lit(&b, "\"\n");
    struct arena a;
    struct pool_rows r;
    struct str got;
    int64_t line;
    const struct pool_place first = {.line = 0};
    arena_init(&a);
    check(pool_rows_open(&r, &a, &pool_types[0], POOL_JSONL, &first, buf_str(&b), true) == 0);
    is_int(pool_rows_next(&r, &a, &got, &line), 0, "a thousand characters fit");
    buf_clear(&b);
    buf_add_char(&b, '"');
    for (int i = 0; i < 1001; i++)
        buf_add_lit(&b, "x");
    buf_add_lit(&b, "\"\n\"a\\u0000b\"\n");
    check(pool_rows_open(&r, &a, &pool_types[0], POOL_JSONL, &first, buf_str(&b), true) == 0);
    is_int(pool_rows_next(&r, &a, &got, &line), ERR_INVALID, "one more does not: %s", r.error);
    is_int(pool_rows_next(&r, &a, &got, &line), ERR_INVALID, "nor does a NUL: %s", r.error);
    arena_release(&a);
    buf_release(&b);
}

int main(void)
{
    test_csv();
    test_jsonl();
    test_limits();
    return tap_done();
}
