#include "engine/search/indexed.h"

#include <stdlib.h>

#include "loop/task.h"
#include "wire/sql.h"

#define ASKED_MAX 1000 /* owners of one statement */

static int by_owner(const void *a, const void *b)
{
    const struct indexed_paper *x = a, *y = b;
    return (x->owner > y->owner) - (x->owner < y->owner);
}

/* Those of one statement, in the order of their owners. */
static int read_some(struct task *t, struct sql_pool *sql, const uint64_t *owners, size_t count,
                     struct indexed_paper **out, size_t *out_count)
{
    struct arena *a = task_arena(t);
    struct sql_rows r;
    size_t marks = sql_padded(count);
    struct sql_value *v = ARENA_ARRAY(a, struct sql_value, marks);
    for (size_t i = 0; i < marks; i++)
        v[i] = sql_int((int64_t)owners[i < count ? i : count - 1]);
    int err = sql_argv(t, sql,
                       sql_marks(a,
                                 "SELECT owner, doi, journal, year FROM embedding_paper"
                                 " WHERE owner IN",
                                 marks, ""),
                       marks, v, &r);
    if (err)
        return err;
    *out = ARENA_ARRAY(a, struct indexed_paper, r.count + 1);
    *out_count = r.count;
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        (*out)[i] = (struct indexed_paper){(uint64_t)cell[0].i, cell[1].s, cell[2].s, cell[3].i};
    }
    qsort(*out, r.count, sizeof **out, by_owner);
    return 0;
}

int indexed_find(struct task *t, struct sql_pool *sql, const uint64_t *owners, size_t count,
                 struct indexed_paper *papers, size_t *found)
{
    size_t filled = 0;
    for (size_t at = 0; at < count; at += ASKED_MAX) {
        struct indexed_paper *known;
        size_t n = count - at < ASKED_MAX ? count - at : ASKED_MAX, known_count;
        int err = read_some(t, sql, owners + at, n, &known, &known_count);
        if (err)
            return err;
        for (size_t i = at; i < at + n; i++) {
            struct indexed_paper key = {.owner = owners[i]};
            const struct indexed_paper *p = bsearch(&key, known, known_count, sizeof key, by_owner);
            if (p)
                papers[filled++] = *p;
        }
    }
    *found = filled;
    return 0;
}
