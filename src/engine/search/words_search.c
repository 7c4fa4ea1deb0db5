/* Searching: one statement for each try, with what it filters. */
#include <stdlib.h>

#include "corpus/prose/words.h"
#include "engine/search/words_private.h"
#include "wire/sql.h"

#define ASKED_MAX   24      /* different words of a question */
#define ALL_MAX     8       /* of a question of which texts must have all */
#define ENOUGH      10      /* hits that have all words: others are not looked for */
#define ALL_TEXTS   2500000 /* that have the words together, where all are wanted: a second or so */
#define ANY_TEXTS   150000  /* the same, where any will do: each is read */
#define FETCHED_MAX 10000   /* rows of a search whose lists are too long for a statement */
#define FILTERS_MAX 8

struct question {
    struct arena *arena;
    struct str words[ASKED_MAX];
    double texts[ASKED_MAX]; /* that have the word; ascending */
    size_t count;
};

static bool take_word(void *arg, struct str word, size_t begin, size_t end)
{
    (void)begin, (void)end;
    struct question *q = arg;
    for (size_t i = 0; i < q->count; i++)
        if (str_eq(q->words[i], word))
            return true;
    q->words[q->count++] = str_dup(q->arena, word);
    return q->count < ASKED_MAX;
}

/* Rare ones first, those alike in their order. */
static void sort_words(struct question *q, const struct words_sample *sample)
{
    for (size_t i = 0; i < q->count; i++) {
        struct str word = q->words[i];
        double texts = words_sample_texts(sample, word);
        size_t at = i;
        for (; at > 0 && q->texts[at - 1] > texts; at--) {
            q->texts[at] = q->texts[at - 1];
            q->words[at] = q->words[at - 1];
        }
        q->texts[at] = texts;
        q->words[at] = word;
    }
}

/* How many of the words so many texts have together. */
static size_t within(const struct question *q, double most)
{
    size_t n = 0;
    for (double sum = 0; n < q->count && (sum += q->texts[n]) <= most;)
        n++;
    return n;
}

/* For AGAINST: "+solar +cell", or "solar cell". */
static struct str wanted(const struct question *q, size_t count, bool all)
{
    struct str s = STR("");
    for (size_t i = 0; i < count; i++)
        s = STR_JOIN(q->arena, s, i ? STR(" ") : STR(""), all ? STR("+") : STR(""), q->words[i]);
    return s;
}

/* --- filters --- */

/* Numbers, ascending; sorted is NULL if the statement has them. */
struct numbers {
    const uint64_t *sorted;
    size_t count;
};

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct numbers numbers_of(struct arena *a, const uint64_t *numbers, size_t count)
{
    uint64_t *copy = ARENA_ARRAY(a, uint64_t, count + 1);
    if (count)
        memcpy(copy, numbers, count * sizeof *copy);
    qsort(copy, count, sizeof *copy, by_number);
    return (struct numbers){copy, count};
}

static bool has(const struct numbers *l, uint64_t number)
{
    return bsearch(&number, l->sorted, l->count, sizeof number, by_number) != NULL;
}

/* A statement that is being written, and what is left to be filtered of its rows. */
struct statement {
    struct arena *arena;
    const struct point_filter *filter;
    struct str text;
    struct sql_value *values;
    size_t count;
    struct numbers unless, owners, journals;
    bool later; /* rows are filtered */
};

static void add(struct statement *s, const char *text)
{
    s->text = STR_JOIN(s->arena, s->text, str_of(text));
}

static void add_int(struct statement *s, const char *text, int64_t v)
{
    add(s, text);
    s->values[s->count++] = sql_int(v);
}

static void add_list(struct statement *s, const char *text, const struct numbers *l)
{
    add(s, sql_marks(s->arena, text, l->count, ""));
    for (size_t i = 0; i < sql_padded(l->count); i++)
        s->values[s->count++] = sql_int((int64_t)l->sorted[i < l->count ? i : l->count - 1]);
}

static bool fits(struct statement *s, const struct numbers *l)
{
    bool does = l->count <= WORDS_LIST_MAX;
    s->later |= !does;
    return does;
}

static void add_filter(struct statement *s)
{
    const struct point_filter *f = s->filter;
    if (f->year_from)
        add_int(s, " AND year >= ?", f->year_from);
    if (f->year_to)
        add_int(s, " AND year <= ?", f->year_to);
    if (s->journals.count && fits(s, &s->journals))
        add_list(s, " AND journal IN", &s->journals);
    if (f->owners && fits(s, &s->owners))
        add_list(s, " AND owner IN", &s->owners);
    if (f->without && fits(s, &s->unless)) {
        add_int(s, " AND ((flags & ?) = 0", f->without);
        if (s->unless.count)
            add_list(s, " OR owner IN", &s->unless);
        add(s, ")");
    }
}

static void begin(struct statement *s, struct arena *a, enum collection which,
                  const struct point_filter *f)
{
    static const struct point_filter none;
    *s = (struct statement){.arena = a, .filter = f ? f : &none};
    f = s->filter;
    s->unless = numbers_of(a, f->unless, f->unless_count);
    s->owners = numbers_of(a, f->owners, f->owner_count);
    uint64_t *journals = ARENA_ARRAY(a, uint64_t, f->journal_count + 1);
    for (size_t i = 0; i < f->journal_count; i++)
        journals[i] = f->journals[i];
    s->journals = numbers_of(a, journals, f->journal_count);
    s->values = ARENA_ARRAY(a, struct sql_value, 3 * 2 * WORDS_LIST_MAX + FILTERS_MAX);
    s->text = str_printf(a,
                         "SELECT owner, MATCH (words) AGAINST (? IN BOOLEAN MODE) AS score, flags,"
                         " journal, year FROM %s WHERE MATCH (words) AGAINST (? IN BOOLEAN MODE)",
                         words_table(which));
    s->count = 2;
    add_filter(s);
    add(s, " ORDER BY score DESC LIMIT ?");
    s->count++;
}

/* What lists that are too long for a statement leave of a row. */
static bool passes(const struct statement *s, const struct sql_value *row)
{
    const struct point_filter *f = s->filter;
    uint64_t owner = (uint64_t)row[0].i;
    return (!f->without || !(row[2].i & f->without) || has(&s->unless, owner)) &&
           (!f->owners || has(&s->owners, owner)) &&
           (!s->journals.count || has(&s->journals, (uint64_t)row[3].i));
}

/* --- tries --- */

struct found {
    struct words_hit *hits;
    size_t count, limit;
};

static bool is_found(const struct found *f, size_t count, uint64_t owner)
{
    for (size_t i = 0; i < count; i++)
        if (f->hits[i].owner == owner)
            return true;
    return false;
}

/* Those that are alike in the order of their owners. */
static int better_first(const void *a, const void *b)
{
    const struct words_hit *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1)
                                : (x->owner > y->owner) - (x->owner < y->owner);
}

/* Adds what it finds behind what was found before. */
static int try(struct task *t, struct sql_pool *sql, struct statement *s, struct str words,
               struct found *f)
{
    struct sql_rows r;
    size_t before = f->count;
    s->values[0] = s->values[1] = sql_text(words);
    s->values[s->count - 1] = sql_int(s->later ? FETCHED_MAX : (int64_t)f->limit);
    int err = sql_argv(t, sql, str_z(s->arena, s->text), s->count, s->values, &r);
    if (err)
        return err;
    for (size_t i = 0; i < r.count && f->count < f->limit; i++) {
        const struct sql_value *row = sql_row(&r, i);
        uint64_t owner = (uint64_t)row[0].i;
        if (passes(s, row) && !is_found(f, before, owner))
            f->hits[f->count++] = (struct words_hit){owner, row[1].d};
    }
    qsort(f->hits + before, f->count - before, sizeof *f->hits, better_first);
    return 0;
}

static int search(struct task *t, struct sql_pool *sql, struct statement *s,
                  const struct question *q, struct found *f)
{
    int err = 0;
    size_t all = within(q, ALL_TEXTS), any = within(q, ANY_TEXTS);
    if (q->count <= ALL_MAX && all > 1)
        err = try(t, sql, s, wanted(q, all, true), f);
    if (err || any == 0 || f->count >= (ENOUGH < f->limit ? ENOUGH : f->limit))
        return err;
    err = try(t, sql, s, wanted(q, any, false), f);
    /* Those with all words are an answer. */
    return err == ERR_TIMEOUT && f->count ? 0 : err;
}

int words_search(struct task *t, struct words *w, enum collection which, struct str question,
                 const struct point_filter *filter, size_t limit, struct words_hit **hits,
                 size_t *count)
{
    struct question q = {.arena = task_arena(t)};
    struct found f = {ARENA_ARRAY(task_arena(t), struct words_hit, limit + 1), 0, limit};
    bool nothing = filter && filter->owners && filter->owner_count == 0;
    int err = 0;
    words_each(question, take_word, &q);
    if (q.count && limit && !nothing) {
        struct statement s;
        int64_t old = task_deadline(t, WORDS_MS);
        words_sample_take(t, w, which);
        sort_words(&q, &w->samples[which]);
        begin(&s, task_arena(t), which, filter);
        err = search(t, w->sql, &s, &q, &f);
        task_deadline_restore(t, old);
    }
    *hits = f.hits;
    *count = err ? 0 : f.count;
    return err;
}
