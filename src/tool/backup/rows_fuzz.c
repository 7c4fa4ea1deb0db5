/* What is read as a row is written as the same line. */
#include "tool/backup/rows.h"

#define COLUMNS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct sql_value cells[COLUMNS];
    struct str line = str_from((const char *)data, size);
    arena_init(&a);
    if (!memchr(data, '\n', size) && rows_read(&a, line, COLUMNS, cells)) {
        struct buf out;
        buf_init(&out);
        rows_put(&out, cells, COLUMNS);
        check(out.len == size + 1 && memcmp(buf_str(&out).p, line.p, size) == 0);
        buf_release(&out);
    }
    arena_release(&a);
    return 0;
}
