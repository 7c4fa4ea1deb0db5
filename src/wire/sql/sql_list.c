#include "base/buf.h"
#include "wire/sql.h"

size_t sql_padded(size_t count)
{
    size_t n = 1;
    while (n < count)
        n *= 2;
    return n;
}

const char *sql_marks(struct arena *a, const char *begin, size_t count, const char *end)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < sql_padded(count); i++)
        buf_add_str(&b, i ? STR(",?") : STR("?"));
    const char *text = arena_printf(a, "%s (%.*s)%s", begin, STR_ARG(buf_str(&b)), end);
    buf_release(&b);
    return text;
}
