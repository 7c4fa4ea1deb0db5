#include "engine/search/journal.h"

#include "base/map.h"
#include "wire/sql.h"

#define ASKED_MAX 1000 /* names of one statement */

static size_t at_most(size_t n, size_t most)
{
    return n < most ? n : most;
}

/* Numbers by name, of those that have one. c == NULL: on any connection of the pool. */
static int load(struct task *t, struct sql_pool *sql, struct sql *c, const struct str *names,
                size_t count, struct map *numbers)
{
    static const char begin[] = "SELECT number, name FROM journal_number WHERE name IN";
    struct arena *a = task_arena(t);
    for (size_t at = 0; at < count; at += ASKED_MAX) {
        struct sql_rows r;
        size_t n = at_most(count - at, ASKED_MAX), marks = sql_padded(n);
        struct sql_value *v = ARENA_ARRAY(a, struct sql_value, marks);
        for (size_t i = 0; i < marks; i++)
            v[i] = sql_text(names[at + at_most(i, n - 1)]);
        const char *statement = sql_marks(a, begin, n, "");
        int err = c ? sql_on_argv(t, c, statement, marks, v, &r)
                    : sql_argv(t, sql, statement, marks, v, &r);
        if (err)
            return err;
        for (size_t i = 0; i < r.count; i++)
            map_set_int(numbers, sql_row(&r, i)[1].s, sql_row(&r, i)[0].i);
    }
    return 0;
}

/* Each of those without a number, once; an empty name has none. */
static size_t without(const struct str *names, size_t count, const struct map *numbers,
                      struct str *out)
{
    size_t n = 0;
    struct map *seen = map_new();
    int64_t number;
    for (size_t i = 0; i < count; i++)
        if (names[i].n && !map_get_int(numbers, names[i], &number) && map_add(seen, names[i]))
            out[n++] = names[i];
    map_free(seen);
    return n;
}

static void fill(const struct str *names, size_t count, const struct map *known, uint16_t *numbers)
{
    for (size_t i = 0; i < count; i++) {
        int64_t number = 0;
        (void)map_get_int(known, names[i], &number);
        numbers[i] = (uint16_t)number;
    }
}

int journal_numbers(struct task *t, struct sql_pool *sql, const struct str *names, size_t count,
                    uint16_t *numbers)
{
    struct str *asked = ARENA_ARRAY(task_arena(t), struct str, count + 1);
    struct map *known = map_new();
    int err = load(t, sql, NULL, asked, without(names, count, known, asked), known);
    if (!err)
        fill(names, count, known, numbers);
    map_free(known);
    return err;
}

/* --- giving --- */

struct giving {
    const struct str *names;
    size_t count;
};

static int insert(struct task *t, struct sql *c, const struct str *names, size_t count,
                  int64_t last)
{
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, 2 * count);
    if (last + (int64_t)count > JOURNAL_NUMBERS_MAX)
        return task_fail(t, ERR_LIMIT,
                         "%d journals have numbers: %d more would be more than there can be",
                         (int)last, (int)count);
    for (size_t i = 0; i < count; i++) {
        cells[2 * i] = sql_int(last + 1 + (int64_t)i);
        cells[2 * i + 1] = sql_text(names[i]);
    }
    int err = sql_bulk(t, c, "INSERT INTO journal_number (number, name) VALUES", "", 2, count,
                       cells, NULL);
    return err == ERR_EXISTS ? ERR_CONFLICT : err; /* of another transaction: once more */
}

/* The lock on the end of the table lets one transaction at a time count on. Two that lock it while
 * it is empty are a deadlock, which ends one of them: it is run again. */
static int give(struct task *t, struct sql *c, void *arg)
{
    const struct giving *g = arg;
    struct sql_rows r;
    struct str *left = ARENA_ARRAY(task_arena(t), struct str, g->count);
    int err = sql_on(t, c, &r,
                     "SELECT number FROM journal_number ORDER BY number DESC LIMIT 1 FOR UPDATE");
    int64_t last = !err && r.count ? sql_row(&r, 0)[0].i : 0;
    struct map *known = map_new();
    if (!err)
        err = load(t, NULL, c, g->names, g->count, known);
    size_t n = err ? 0 : without(g->names, g->count, known, left);
    map_free(known);
    return n ? insert(t, c, left, n, last) : err;
}

/* Numbers are never changed: what was read is so for ever. */
int journal_numbers_give(struct task *t, struct sql_pool *sql, const struct str *names,
                         size_t count, uint16_t *numbers)
{
    struct str *asked = ARENA_ARRAY(task_arena(t), struct str, count + 1);
    struct map *known = map_new();
    size_t n = without(names, count, known, asked);
    int err = load(t, sql, NULL, asked, n, known);
    n = without(names, count, known, asked);
    if (!err && n) {
        err = sql_tx(t, sql, give, &(struct giving){asked, n});
        if (!err || err == ERR_UNCERTAIN)
            err = load(t, sql, NULL, asked, n, known);
    }
    if (!err)
        fill(names, count, known, numbers);
    map_free(known);
    return err;
}
