/* How common words are: counted in windows of rows that begin at random owners. */
#include "base/log.h"
#include "base/map.h"
#include "engine/search/words_private.h"
#include "wire/sql.h"

#define EACH_MS       (10 * 60 * 1000)
#define AGAIN_MS      (60 * 1000) /* after a failure */
#define WINDOWS       8
#define WINDOW_ROWS   250
#define WINDOW_ROWS_S "250"
#define TEXT_BYTES_S  "20000" /* of one text: the beginning of a long one says enough */

struct taking {
    struct map *counts;
    size_t rows;
    double span; /* of the numbers that the windows cover */
};

/* Copies of a word stand side by side. */
static void count_words(struct taking *k, struct str words)
{
    struct str before = STR("");
    while (words.n) {
        struct str word = str_cut(&words, ' ');
        int64_t n = 0;
        if (!str_eq(word, before)) {
            (void)map_get_int(k->counts, word, &n);
            map_set_int(k->counts, word, n + 1);
        }
        before = word;
    }
}

static int take_window(struct task *t, struct words *w, enum collection which, int64_t from,
                       int64_t last, struct taking *k)
{
    struct task_scope scope = task_scope(t);
    struct sql_rows r;
    int err = sql_call(t, w->sql, &r,
                       arena_printf(task_arena(t),
                                    "SELECT owner, LEFT(words, " TEXT_BYTES_S ") FROM %s"
                                    " WHERE owner >= ? ORDER BY owner LIMIT " WINDOW_ROWS_S,
                                    words_table(which)),
                       sql_int(from));
    for (size_t i = 0; !err && i < r.count; i++)
        count_words(k, sql_row(&r, i)[1].s);
    if (!err) {
        int64_t to = r.count == WINDOW_ROWS ? sql_row(&r, r.count - 1)[0].i : last;
        k->rows += r.count;
        k->span += (double)to - (double)from + 1;
    }
    task_scope_end(t, scope);
    return err;
}

static int take(struct task *t, struct words *w, enum collection which, struct taking *k,
                double *total)
{
    struct sql_rows r;
    int err = sql_call(
        t, w->sql, &r,
        arena_printf(task_arena(t), "SELECT MIN(owner), MAX(owner) FROM %s", words_table(which)));
    if (err || sql_row(&r, 0)[0].type == SQL_NULL)
        return err;
    int64_t first = sql_row(&r, 0)[0].i, last = sql_row(&r, 0)[1].i;
    uint64_t all = (uint64_t)last - (uint64_t)first;
    for (size_t i = 0; !err && i < WINDOWS; i++) {
        /* One in each of so many equal parts. */
        uint64_t part = all / WINDOWS, at = part ? loop_random(task_loop(t)) % part : 0;
        err = take_window(t, w, which, first + (int64_t)(i * part + at), last, k);
    }
    *total = ((double)all + 1) * (double)k->rows / k->span;
    return err;
}

void words_sample_take(struct task *t, struct words *w, enum collection which)
{
    struct words_sample *s = &w->samples[which];
    struct loop *l = task_loop(t);
    if (s->taking || loop_now_ms(l) < s->due_ms)
        return;
    s->taking = true;
    struct taking k = {.counts = map_new()};
    double total = 0;
    int err = take(t, w, which, &k, &total);
    s->taking = false;
    s->due_ms = loop_now_ms(l) + (err ? AGAIN_MS : EACH_MS);
    if (err) {
        map_free(k.counts);
        return;
    }
    map_free(s->counts);
    s->counts = k.counts;
    s->rows = k.rows;
    s->total = total;
}

double words_sample_texts(const struct words_sample *s, struct str word)
{
    int64_t n = 0;
    if (!s->counts || !s->rows)
        return 0;
    (void)map_get_int(s->counts, word, &n);
    return (double)n / (double)s->rows * s->total;
}
