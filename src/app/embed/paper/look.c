/* How far it is, by units: counting papers would read them all. */
#include "app/embed/paper/papers_private.h"

static const char units_sums[] =
    "SELECT CAST(COALESCE(SUM(done), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(embedded), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(bare), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(refused), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(state = 'pending'), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(state = 'working'), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(state = 'failed'), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(papers * (state IN ('pending', 'working'))), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(papers * (state NOT IN ('pending', 'working'))), 0) AS SIGNED)"
    " FROM embedding_unit";

int papers_look(struct task *t, struct sql_pool *sql, struct papers_look *out)
{
    struct sql_rows r;
    int err =
        sql_call(t, sql, &r, "SELECT CAST(COALESCE(SUM(papers), 0) AS SIGNED) FROM corpus_block");
    *out = (struct papers_look){.total = err ? 0 : r.cells[0].i};
    if (!err)
        err = sql_call(t, sql, &r, units_sums);
    if (err)
        return err;
    const struct sql_value *v = r.cells;
    out->indexed = v[0].i;
    out->embedded = v[1].i;
    out->bare = v[2].i;
    out->refused = v[3].i;
    out->units_pending = v[4].i;
    out->units_working = v[5].i;
    out->units_failed = v[6].i;
    out->papers_left = v[7].i;
    out->papers_done = v[8].i;
    return 0;
}

/* --- what searches can find --- */

#define YEARS_MAX INT16_MAX

/* sums: a statement up to its condition. Papers without a year are those of any year. */
static int sum_of(struct task *t, struct sql_pool *sql, const char *sums,
                  const struct papers_filter *f, struct sql_rows *out)
{
    struct arena *a = task_arena(t);
    size_t n = f->count ? sql_padded(f->count) : 0;
    struct sql_value *v = ARENA_ARRAY(a, struct sql_value, n + 2);
    bool years = f->year_from || f->year_to;
    v[0] = sql_int(years && !f->year_from ? 1 : f->year_from);
    v[1] = sql_int(f->year_to ? f->year_to : YEARS_MAX);
    for (size_t i = 0; i < n; i++)
        v[2 + i] = sql_text(f->journals[i < f->count ? i : f->count - 1]);
    const char *of_years = arena_printf(a, "%s WHERE year BETWEEN ? AND ?", sums);
    if (n)
        of_years = sql_marks(a, arena_printf(a, "%s AND journal IN", of_years), n, "");
    return sql_argv(t, sql, of_years, n + 2, v, out);
}

int papers_extent(struct task *t, struct sql_pool *sql, const struct papers_filter *f,
                  struct embed_extent *out)
{
    struct sql_rows all, r;
    check(f->count <= PAPERS_JOURNALS_MAX);
    int err = sum_of(t, sql, "SELECT CAST(COALESCE(SUM(papers), 0) AS SIGNED) FROM corpus_block", f,
                     &all);
    if (!err)
        err = sum_of(t, sql,
                     "SELECT CAST(COALESCE(SUM(done), 0) AS SIGNED),"
                     " CAST(COALESCE(SUM(embedded), 0) AS SIGNED),"
                     " CAST(COALESCE(SUM(bare), 0) AS SIGNED) FROM embedding_unit",
                     f, &r);
    if (err)
        return err;
    int64_t most = all.cells[0].i - r.cells[2].i, words = r.cells[0].i;
    *out = (struct embed_extent){most > words ? most : words, words, r.cells[1].i};
    return 0;
}

/* --- journals --- */

/* A text that a name has in it, for LIKE. */
static struct str pattern_of(struct arena *a, struct str q)
{
    char *p = arena_alloc(a, 2 * q.n + 2);
    size_t n = 0;
    p[n++] = '%';
    for (size_t i = 0; i < q.n; i++) {
        if (q.p[i] == '%' || q.p[i] == '_' || q.p[i] == '!')
            p[n++] = '!';
        p[n++] = q.p[i];
    }
    p[n++] = '%';
    return str_from(p, n);
}

/* First the names of the page, then what is known of them: LIMIT counts journals. */
static int read_names(struct task *t, struct sql_pool *sql, struct str q, struct str after,
                      int64_t limit, struct sql_rows *r)
{
    return sql_call(t, sql, r,
                    "SELECT n.journal, CAST(SUM(b.papers) AS SIGNED) FROM"
                    " (SELECT journal FROM corpus_block WHERE papers > 0 AND journal > ?"
                    " AND LOWER(journal) LIKE LOWER(?) ESCAPE '!'"
                    " GROUP BY journal ORDER BY journal LIMIT ?) n"
                    " JOIN corpus_block b ON b.journal = n.journal"
                    " GROUP BY n.journal ORDER BY n.journal",
                    sql_text(after), sql_text(pattern_of(task_arena(t), q)), sql_int(limit));
}

static const char journal_sums[] =
    "SELECT CAST(COALESCE(SUM(u.done), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(u.embedded), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(u.refused), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(u.state IN ('pending', 'working')), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(u.state = 'failed'), 0) AS SIGNED),"
    " CAST(COALESCE(SUM(u.state NOT IN ('pending', 'working')"
    " AND (u.digest IS NULL OR u.digest <> b.digest)), 0) AS SIGNED), COUNT(*)"
    " FROM embedding_unit u LEFT JOIN corpus_block b ON b.journal = u.journal"
    " AND b.year = u.year WHERE u.journal = ?";

static int read_years_without(struct task *t, struct sql_pool *sql, struct paper_journal *j)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       "SELECT 1 FROM corpus_block b WHERE b.journal = ? AND b.papers > 0 AND NOT"
                       " EXISTS (SELECT 1 FROM embedding_unit u WHERE u.journal = b.journal"
                       " AND u.year = b.year) LIMIT 1",
                       sql_text(j->journal));
    j->changed |= !err && r.count > 0;
    return err;
}

static int read_error(struct task *t, struct sql_pool *sql, struct paper_journal *j)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       "SELECT COALESCE(error, waits), COALESCE(error_code, waits_code)"
                       " FROM embedding_unit WHERE journal = ?"
                       " AND COALESCE(error, waits) IS NOT NULL ORDER BY state = 'failed' DESC, "
                       "year, slice LIMIT 1",
                       sql_text(j->journal));
    if (!err && r.count) {
        j->error = r.cells[0].s;
        j->reason = r.cells[1].s;
    }
    return err;
}

/* One that was never asked for has not changed. */
static int read_units(struct task *t, struct sql_pool *sql, struct paper_journal *j)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r, journal_sums, sql_text(j->journal));
    if (err || r.cells[6].i == 0)
        return err;
    j->indexed = r.cells[0].i;
    j->embedded = r.cells[1].i;
    j->refused = r.cells[2].i;
    j->units_waiting = r.cells[3].i;
    j->units_failed = r.cells[4].i;
    j->changed = r.cells[5].i > 0;
    err = read_years_without(t, sql, j);
    return err ? err : read_error(t, sql, j);
}

int papers_journals(struct task *t, struct sql_pool *sql, struct str q, struct str after,
                    int64_t limit, struct paper_journal **out, size_t *count)
{
    struct sql_rows r;
    *count = 0;
    int err = read_names(t, sql, q, after, limit, &r);
    if (err)
        return err;
    *out = ARENA_ARRAY(task_arena(t), struct paper_journal, r.count + 1);
    for (size_t i = 0; i < r.count && !err; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        struct paper_journal *j = &(*out)[(*count)++];
        *j = (struct paper_journal){
            .journal = cell[0].s, .papers = cell[1].i, .error = STR_NULL, .reason = STR_NULL};
        err = read_units(t, sql, j);
    }
    return err;
}
