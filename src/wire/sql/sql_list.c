#include <string.h>

#include "base/buf.h"
#include "loop/task.h"
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

int sql_on_list(struct task *t, struct sql *c, const char *begin, const char *end,
                const struct sql_value *first, size_t first_count, const uint64_t *list,
                size_t count, struct sql_rows *out)
{
    size_t marks = sql_padded(count);
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, first_count + marks);
    check(count > 0);
    if (first_count)
        memcpy(v, first, first_count * sizeof *v);
    for (size_t i = 0; i < marks; i++)
        v[first_count + i] = sql_int((int64_t)list[i < count ? i : count - 1]);
    return sql_on_argv(t, c, sql_marks(task_arena(t), begin, count, end), first_count + marks, v,
                       out);
}
