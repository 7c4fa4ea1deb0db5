/* Step 3, the end: contentlist_year_number is derived from corpus_block, and the load ends. */
#include "base/json.h"
#include "tool/db/init.h"

struct years {
    int64_t load;
    struct map *old;     /* journal -> YearNumberJson */
    struct sql_value *v; /* rows to write: name, JSON */
    size_t n;
};

/* One journal: rows first to end - 1 of corpus_block. */
static struct str numbers(struct arena *a, const struct sql_rows *r, size_t first, size_t end)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    for (size_t i = first; i < end; i++) {
        jw_key(&w, str_int(a, sql_row(r, i)[1].i));
        jw_int(&w, sql_row(r, i)[2].i);
    }
    jw_end_object(&w);
    struct str text = str_dup(a, buf_str(&b));
    buf_release(&b);
    return text;
}

/* Compared as objects: MySQL 8 changes blanks and order. */
static bool same_numbers(struct arena *a, struct str x, struct str y)
{
    const struct json *jx, *jy;
    if (json_parse(a, x, &jx, NULL) || json_parse(a, y, &jy, NULL) || jx->type != JSON_OBJECT ||
        jy->type != JSON_OBJECT || jx->count != jy->count)
        return false;
    json_each (it, jx) {
        int64_t m, n;
        if (!json_int(it, &m) || !json_int(json_get(jy, str_z(a, it->key)), &n) || m != n)
            return false;
    }
    return true;
}

static int read_old(struct task *t, struct sql *c, struct years *y)
{
    struct sql_rows r;
    int err =
        sql_on(t, c, &r, "SELECT Name, YearNumberJson FROM contentlist_year_number FOR UPDATE");
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        map_set(y->old, row[0].s, (void *)(uintptr_t)&row[1]);
    }
    return err;
}

static int compare(struct task *t, struct sql *c, struct years *y)
{
    struct arena *a = task_arena(t);
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT journal, year, papers FROM corpus_block WHERE papers > 0"
                     " ORDER BY journal, year");
    if (err)
        return err;
    y->v = ARENA_ARRAY(a, struct sql_value, r.count * 2 + 1);
    y->n = 0;
    for (size_t i = 0, end; i < r.count; i = end) {
        struct str journal = sql_row(&r, i)[0].s;
        for (end = i; end < r.count && str_eq(sql_row(&r, end)[0].s, journal);)
            end++;
        struct str text = numbers(a, &r, i, end);
        const struct sql_value *old = map_del(y->old, journal);
        if (old && same_numbers(a, old->s, text))
            continue;
        y->v[y->n * 2] = sql_text(journal);
        y->v[y->n * 2 + 1] = sql_text(text);
        y->n++;
    }
    return 0;
}

/* Rows that are left in old belong to journals without papers. */
static int remove_rest(struct task *t, struct sql *c, const struct years *y)
{
    size_t at = 0;
    struct str journal;
    void *v;
    int err = 0;
    while (!err && map_next(y->old, &at, &journal, &v))
        err = sql_on(t, c, NULL, "DELETE FROM contentlist_year_number WHERE Name = ?",
                     sql_text(journal));
    return err;
}

static int update(struct task *t, struct sql *c, void *arg)
{
    struct years *y = arg;
    map_free(y->old);
    y->old = map_new();
    int err = init_load_end(t, c, y->load);
    if (!err)
        err = read_old(t, c, y);
    if (!err)
        err = compare(t, c, y);
    if (!err)
        err = sql_bulk(t, c, "INSERT INTO contentlist_year_number (Name, YearNumberJson) VALUES",
                       "ON DUPLICATE KEY UPDATE YearNumberJson = VALUES(YearNumberJson)", 2, y->n,
                       y->v, NULL);
    return err ? err : remove_rest(t, c, y);
}

int init_years(struct task *t, struct init *in)
{
    struct years y = {.load = in->load, .old = map_new()};
    struct task_scope s = task_scope(t);
    int err = sql_tx(t, in->db->sql, update, &y);
    if (!err)
        in->report->totals.years_changed = (int64_t)(y.n + map_count(y.old));
    task_scope_end(t, s);
    map_free(y.old);
    return err;
}
