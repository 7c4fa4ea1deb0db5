#include "engine/search/neighbours.h"

#include <stdlib.h>

#include "base/map.h"
#include "engine/search/collection_private.h"
#include "engine/search/journal.h"

#define ASKED_MAX   1000 /* DOIs of one statement */
#define SPARE_SHARE 4    /* at first, one point more for so many papers */
#define SPARE_LEAST 16
#define WAITING_MAX 16   /* lists that are not begun; more are refused */
#define GROWTH      4    /* of the points, while the list is too short */
#define SOME_YEAR   1000 /* prices are those of all years; papers of one are counted quickest */

/* --- what is asked --- */

struct asking {
    const struct neighbours_from *from;
    const struct neighbours_wish *wish;
    struct map *chosen; /* names of journals; NULL: all */
    struct point_filter filter;
    struct neighbours *out;
};

/* Journals without a number have no points. */
static int make_filter(struct task *t, struct asking *a, struct str *unknown)
{
    static const uint64_t no_owner;
    const struct catalog_choice *c = &a->wish->choice;
    struct catalog_choice names = {c->journals, c->journal_count, SOME_YEAR, SOME_YEAR};
    struct catalog_estimate ignored;
    a->filter =
        (struct point_filter){.year_from = (uint16_t)c->year_from, .year_to = (uint16_t)c->year_to};
    if (!c->journal_count)
        return 0;
    int err = catalog_price(t, a->from->catalog, &names, &ignored, unknown, &a->out->degraded);
    if (err)
        return err;
    uint16_t *numbers = ARENA_ARRAY(task_arena(t), uint16_t, c->journal_count);
    err = journal_numbers(t, a->from->sql, c->journals, c->journal_count, numbers);
    a->chosen = map_new();
    size_t n = 0;
    for (size_t i = 0; !err && i < c->journal_count; i++) {
        (void)map_add(a->chosen, c->journals[i]);
        if (numbers[i])
            numbers[n++] = numbers[i];
    }
    a->filter.journals = numbers;
    a->filter.journal_count = n;
    if (!n)
        a->filter.owners = &no_owner; /* of none: owner_count is 0 */
    return err;
}

static bool is_chosen(const struct asking *a, const struct indexed_paper *p)
{
    const struct catalog_choice *c = &a->wish->choice;
    return p->year >= c->year_from && p->year <= c->year_to &&
           (!a->chosen || map_get(a->chosen, p->journal));
}

/* --- papers --- */

static size_t owners_of(struct task *t, const struct collection_answer *hits, uint64_t **owners)
{
    struct map *seen = map_new();
    size_t n = 0;
    *owners = ARENA_ARRAY(task_arena(t), uint64_t, hits->count + 1);
    for (size_t i = 0; i < hits->count; i++) {
        const uint64_t *owner = &hits->hits[i].point.owner;
        if (map_add(seen, str_from((const char *)owner, sizeof *owner)))
            (*owners)[n++] = *owner;
    }
    map_free(seen);
    return n;
}

/* Journals and years as the corpus has them now: rows by DOI. */
static int read_corpus(struct task *t, struct sql_pool *sql, const struct indexed_paper *papers,
                       size_t count, struct map *rows)
{
    struct arena *a = task_arena(t);
    for (size_t at = 0; at < count; at += ASKED_MAX) {
        struct sql_rows r;
        size_t n = count - at < ASKED_MAX ? count - at : ASKED_MAX, marks = sql_padded(n);
        struct sql_value *v = ARENA_ARRAY(a, struct sql_value, marks);
        for (size_t i = 0; i < marks; i++)
            v[i] = sql_text(papers[at + (i < n ? i : n - 1)].doi);
        int err = sql_argv(
            t, sql,
            sql_marks(a, "SELECT DOI, journal, year FROM paperinfo WHERE DOI IN", marks, ""), marks,
            v, &r);
        if (err)
            return err;
        for (size_t i = 0; i < r.count; i++)
            map_set(rows, sql_row(&r, i)[0].s, (void *)(uintptr_t)sql_row(&r, i));
    }
    return 0;
}

/* Those that are in the corpus, and chosen; *count: how many. */
static int keep_present(struct task *t, const struct asking *a, struct indexed_paper *papers,
                        size_t *count)
{
    struct map *rows = map_new();
    size_t n = 0;
    int err = read_corpus(t, a->from->sql, papers, *count, rows);
    for (size_t i = 0; !err && i < *count; i++) {
        const struct sql_value *row = map_get(rows, papers[i].doi);
        struct indexed_paper p = papers[i];
        if (!row || !row[1].s.p)
            continue;
        p.journal = row[1].s;
        p.year = row[2].i;
        if (is_chosen(a, &p))
            papers[n++] = p;
    }
    map_free(rows);
    *count = n;
    return err;
}

/* --- what they cost --- */

static int by_name(const void *a, const void *b)
{
    return str_compare(*(const struct str *)a, *(const struct str *)b);
}

static size_t journals_of(struct task *t, const struct indexed_paper *papers, size_t count,
                          struct str **names)
{
    struct map *seen = map_new();
    size_t n = 0;
    *names = ARENA_ARRAY(task_arena(t), struct str, count + 1);
    for (size_t i = 0; i < count; i++)
        if (map_add(seen, papers[i].journal))
            (*names)[n++] = papers[i].journal;
    map_free(seen);
    qsort(*names, n, sizeof **names, by_name);
    return n;
}

static void leave_out(struct str *names, size_t *count, struct str name)
{
    size_t n = 0;
    for (size_t i = 0; i < *count; i++)
        if (!str_eq(names[i], name))
            names[n++] = names[i];
    *count = n;
}

/* Rows of journals, without papers yet, in *rows; those that the catalog does not have are left
 * out: it is a moment older than the corpus. */
static int read_prices(struct task *t, struct asking *a, struct str *names, size_t count,
                       struct catalog_estimate_row *rows, size_t *found)
{
    *found = 0;
    for (size_t at = 0; at < count;) {
        size_t n = count - at < CATALOG_JOURNALS_MAX ? count - at : CATALOG_JOURNALS_MAX;
        struct catalog_choice some = {names + at, n, SOME_YEAR, SOME_YEAR};
        struct catalog_estimate e;
        struct str unknown;
        bool degraded = false;
        int err = catalog_price(t, a->from->catalog, &some, &e, &unknown, &degraded);
        a->out->degraded |= degraded;
        if (err == ERR_NOT_FOUND) {
            size_t left = count - at;
            leave_out(names + at, &left, unknown);
            count = at + left;
            continue;
        }
        if (err)
            return err;
        for (size_t i = 0; i < n; i++)
            rows[(*found)++] = (struct catalog_estimate_row){
                .journal = e.rows[i].journal, .price = e.rows[i].price, .bare = -1};
        at += n;
    }
    return 0;
}

/* The first papers whose journals have a price, as many as are wanted. */
static void take_papers(struct asking *a, struct indexed_paper *papers, size_t count,
                        const struct map *rows)
{
    struct neighbours *out = a->out;
    out->papers = papers;
    out->count = 0;
    for (size_t i = 0; i < count && (int64_t)out->count < a->wish->papers; i++) {
        struct catalog_estimate_row *row = map_get(rows, papers[i].journal);
        if (!row)
            continue;
        row->papers++;
        papers[out->count++] = papers[i];
    }
}

static int price_papers(struct task *t, struct asking *a, struct indexed_paper *papers,
                        size_t count)
{
    struct neighbours *out = a->out;
    struct str *names;
    struct map *rows = map_new();
    size_t found, n = journals_of(t, papers, count, &names);
    out->cost = (struct catalog_estimate){
        .bare = -1, .rows = ARENA_ARRAY(task_arena(t), struct catalog_estimate_row, n + 1)};
    out->journal_count = 0;
    int err = read_prices(t, a, names, n, out->cost.rows, &found);
    for (size_t i = 0; !err && i < found; i++)
        map_set(rows, out->cost.rows[i].journal, &out->cost.rows[i]);
    if (!err)
        take_papers(a, papers, count, rows);
    for (size_t i = 0; !err && i < found; i++) {
        struct catalog_estimate_row *row = &out->cost.rows[out->journal_count];
        *row = out->cost.rows[i];
        if (!row->papers)
            continue;
        out->journal_count++;
        err = catalog_add_up(t, &out->cost, row);
    }
    map_free(rows);
    return err;
}

/* --- together --- */

/* The list by so many points; *more: there may be more of them. */
static int find_once(struct task *t, struct asking *a, size_t points, bool *more)
{
    struct points_query q = {.k = points, .filter = &a->filter};
    struct collection_answer hits;
    struct indexed_paper *papers;
    uint64_t *owners;
    size_t count;
    int err =
        collection_search(t, a->from->collections, COLLECTION_PAPERS, a->wish->text, &q, &hits);
    if (err)
        return err;
    a->out->reason = hits.degraded ? hits.reason : NULL;
    *more = hits.count == points;
    size_t owner_count = owners_of(t, &hits, &owners);
    papers = ARENA_ARRAY(task_arena(t), struct indexed_paper, owner_count + 1);
    err = indexed_find(t, a->from->sql, owners, owner_count, papers, &count);
    if (!err)
        err = keep_present(t, a, papers, &count);
    return err ? err : price_papers(t, a, papers, count);
}

static int find(struct task *t, struct asking *a)
{
    size_t wanted = (size_t)a->wish->papers;
    size_t points = wanted + wanted / SPARE_SHARE + SPARE_LEAST;
    for (;;) {
        bool more;
        int err = find_once(t, a, points, &more);
        if (err || !more || a->out->count >= wanted || points == POINTS_HITS_MAX)
            return err;
        points = points * GROWTH < POINTS_HITS_MAX ? points * GROWTH : POINTS_HITS_MAX;
    }
}

static int take_turn(struct task *t, struct collections *c)
{
    if (c->lists_waiting >= WAITING_MAX)
        return task_fail(t, ERR_BUSY, "too many lists of papers are being made");
    c->lists_waiting++;
    int err = sem_get(t, &c->lists);
    c->lists_waiting--;
    return err;
}

int neighbours_find(struct task *t, const struct neighbours_from *from,
                    const struct neighbours_wish *w, struct neighbours *out, struct str *unknown)
{
    struct neighbours list = {.count = 0};
    struct asking a = {.from = from, .wish = w, .out = &list};
    check(w->papers >= 1 && w->papers <= NEIGHBOURS_MAX);
    int err = often_count(t, &from->collections->lists_often, w->uid, NEIGHBOURS_MINUTE_MAX,
                          "lists of the nearest papers", NULL);
    if (!err)
        err = make_filter(t, &a, unknown);
    if (!err)
        err = take_turn(t, from->collections);
    if (!err) {
        err = find(t, &a);
        sem_put(&from->collections->lists);
    }
    map_free(a.chosen);
    if (!err)
        *out = list;
    return err;
}
