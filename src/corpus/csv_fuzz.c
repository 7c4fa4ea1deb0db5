/* Input: a table. What the reader hands out is written, and read back as the same cells. */
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "corpus/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_row(struct csv_writer *w, const struct str *cells, size_t n)
{
    for (size_t i = 0; i < n; i++)
        csv_add(w, cells[i]);
    csv_end_row(w);
}

/* The apostrophe before a formula is the one thing that writing adds. */
static bool came_back(struct str was, struct str now)
{
    if (was.n && memchr("=+-@\t\r", was.p[0], 6))
        now = str_from(now.p + 1, now.n - 1);
    return str_eq(was, now);
}

static void read_back(struct arena *a, const struct str *cells, size_t n)
{
    struct buf b;
    buf_init(&b);
    struct csv_writer w = {.out = &b};
    for (size_t i = 0; i < n; i++)
        csv_add(&w, STR("x"));
    csv_end_row(&w);
    write_row(&w, cells, n);
    struct csv again;
    struct csv_row row;
    check(csv_open(&again, a, buf_str(&b)) == 0 && again.column_count == n);
    check(csv_next(&again, a, &row) == 0);
    for (size_t i = 0; i < n; i++)
        check(came_back(cells[i], row.cells[i]));
    check(csv_next(&again, a, &row) == ERR_NOT_FOUND);
    buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct csv c;
    struct csv_row row;
    int err = csv_open(&c, &a, str_from((const char *)data, size));
    check(!err || c.error);
    int64_t line = 0;
    while (!err) {
        int got = csv_next(&c, &a, &row);
        if (got == ERR_NOT_FOUND)
            break;
        check(got || row.line > line);
        check(!got || (c.error && c.error_line > 0));
        if (!got) {
            line = row.line;
            read_back(&a, row.cells, c.column_count);
        }
    }
    arena_release(&a);
    return 0;
}
