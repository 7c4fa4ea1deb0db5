#include "tool/db/init_report.h"

#include <stdlib.h>

#define ABOUT_BYTES_MAX 200
#define NOTES_MAX       (INIT_PROBLEMS_MAX / 2) /* so that they cannot displace losses */

const char *const init_count_names[INIT_COUNTS] = {"read",      "stored",   "updated", "unchanged",
                                                   "duplicate", "rejected", "made_up", "bare"};

struct init_report *init_report_new(void)
{
    struct init_report *r = check_memory(calloc(1, sizeof *r));
    arena_init(&r->arena);
    r->journals = map_new();
    r->reasons = map_new();
    r->problems = check_memory(malloc(INIT_PROBLEMS_MAX * sizeof *r->problems));
    return r;
}

void init_report_free(struct init_report *r)
{
    if (!r)
        return;
    map_free(r->journals);
    map_free(r->reasons);
    free(r->problems);
    arena_release(&r->arena);
    free(r);
}

/* --- problems --- */

static struct init_reason *reason_of(struct init_report *r, const char *text)
{
    struct init_reason *found = map_get(r->reasons, str_of(text));
    if (!found) {
        found = ARENA_NEW(&r->arena, struct init_reason);
        found->text = text;
        map_set(r->reasons, str_of(text), found);
    }
    return found;
}

/* Cut between characters; what is not UTF-8 is cut anywhere. */
static struct str shortened(struct arena *a, struct str s)
{
    if (s.n <= ABOUT_BYTES_MAX)
        return str_dup(a, s.p ? s : STR(""));
    size_t n = ABOUT_BYTES_MAX;
    while (n > ABOUT_BYTES_MAX - 4 && ((unsigned char)s.p[n] & 0xC0) == 0x80)
        n--;
    return str_printf(a, "%.*s…", (int)n, s.p);
}

void init_report_problem(struct init_report *r, const char *path, int64_t line, bool lost,
                         const char *reason, struct str about)
{
    struct init_reason *counted = reason_of(r, reason);
    counted->lost += lost;
    counted->noted += !lost;
    if (r->problem_count == INIT_PROBLEMS_MAX || (!lost && r->noted_count == NOTES_MAX)) {
        r->left_out++;
        return;
    }
    r->noted_count += !lost;
    r->problems[r->problem_count++] = (struct init_problem){
        .path = str_dup(&r->arena, str_of(path)),
        .about = shortened(&r->arena, about),
        .reason = reason,
        .line = line,
        .lost = lost,
    };
}

/* The values of a map as an array of pointers, in order. In a. */
static void *sorted(struct arena *a, const struct map *m, size_t *count,
                    int (*compare)(const void *, const void *))
{
    size_t n = 0, at = 0;
    void **v = ARENA_ARRAY(a, void *, map_count(m));
    struct str key;
    while (map_next(m, &at, &key, &v[n]))
        n++;
    if (n)
        qsort(v, n, sizeof *v, compare);
    *count = n;
    return v;
}

static int compare_reasons(const void *a, const void *b)
{
    const struct init_reason *x = *(const struct init_reason *const *)a;
    const struct init_reason *y = *(const struct init_reason *const *)b;
    int64_t nx = x->lost + x->noted, ny = y->lost + y->noted;
    return nx != ny ? (nx < ny) - (nx > ny) : strcmp(x->text, y->text);
}

const struct init_reason **init_report_reasons(struct arena *a, const struct init_report *r,
                                               size_t *count)
{
    return sorted(a, r->reasons, count, compare_reasons);
}

/* --- numbers --- */

struct init_counts *init_report_journal(struct init_report *r, struct str journal)
{
    struct init_journal *found = map_get(r->journals, journal);
    if (!found) {
        found = ARENA_NEW(&r->arena, struct init_journal);
        found->name = str_dup(&r->arena, journal);
        map_set(r->journals, journal, found);
    }
    return &found->counts;
}

static int compare_journals(const void *a, const void *b)
{
    const struct init_journal *x = *(const struct init_journal *const *)a;
    const struct init_journal *y = *(const struct init_journal *const *)b;
    return strcmp(x->name.p, y->name.p);
}

struct init_journal **init_report_journals(struct arena *a, const struct init_report *r,
                                           size_t *count)
{
    size_t all, n = 0;
    struct init_journal **v = sorted(a, r->journals, &all, compare_journals);
    for (size_t i = 0; i < all; i++)
        if (v[i]->counts.read)
            v[n++] = v[i];
    *count = n;
    return v;
}

struct init_counts init_report_sum(const struct init_report *r)
{
    struct init_counts sum = {.read = 0};
    size_t at = 0;
    struct str name;
    void *journal;
    while (map_next(r->journals, &at, &name, &journal)) {
        struct init_journal *j = journal;
        for (size_t i = 0; i < INIT_COUNTS; i++)
            *init_count(&sum, i) += *init_count(&j->counts, i);
    }
    return sum;
}
