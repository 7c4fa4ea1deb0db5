/* The catalog from MySQL, with the answers that Redis would give. What catalog_load leaves out is
 * left out here: tags of no type, and journals that are not in contentlist. */
#include "base/json.h"
#include "base/map.h"
#include "engine/papers/catalog_private.h"

/* One prepared statement for lists of any length: placeholders left over are NULL, which equals
 * nothing. */
#define MARKS_16      "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?"
#define MARKS_64      MARKS_16 "," MARKS_16 "," MARKS_16 "," MARKS_16
#define MARKS_256     MARKS_64 "," MARKS_64 "," MARKS_64 "," MARKS_64
#define NAMES_AT_ONCE 256
#define TRIES_MAX     3 /* while loads end between two statements */

#define JOURNALS                                                                                   \
    "SELECT c.Name, c.FullName, c.DataRange, c.UpdateDate, c.Price, y.YearNumberJson,"             \
    " " CATALOG_LOAD " FROM contentlist c LEFT JOIN contentlist_year_number y ON y.Name = c.Name"

int catalog_mysql_tags(struct task *t, struct sql_pool *sql, struct catalog_tag **out,
                       size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       "SELECT t.Tag, t.TagType, COUNT(c.Name) FROM info_tag t"
                       " LEFT JOIN info_paper_with_tag p ON p.Tag = t.Tag"
                       " LEFT JOIN contentlist c ON c.Name = p.Name GROUP BY t.Tag, t.TagType");
    if (err)
        return err;
    struct catalog_tag *tags = ARENA_ARRAY(task_arena(t), struct catalog_tag, r.count);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        tags[i] = (struct catalog_tag){row[0].s, row[1].s, row[2].i};
    }
    *out = tags;
    *count = r.count;
    return 0;
}

static int read_years(struct task *t, struct sql_value text, struct catalog_journal *j)
{
    const struct json *years;
    if (text.type == SQL_NULL)
        return 0;
    if (json_parse(task_arena(t), text.s, &years, NULL) || years->type != JSON_OBJECT)
        return task_fail(t, ERR_PROTO, "contentlist_year_number of %.*s is no JSON object",
                         STR_ARG(j->name));
    j->years = ARENA_ARRAY(task_arena(t), struct catalog_year, years->count);
    json_each (it, years) {
        int64_t year, papers;
        if (catalog_is_year(it->key, &year) && json_int(it, &papers) && papers >= 0)
            catalog_add_year(j, year, papers);
    }
    return 0;
}

/* One row of JOURNALS. */
static int read_journal(struct task *t, const struct sql_value *row, struct catalog_journal *j)
{
    *j = (struct catalog_journal){.name = row[0].s,
                                  .full_name = row[1].s,
                                  .data_range = row[2].s,
                                  .update_date = row[3].s,
                                  .price = row[4].i};
    return read_years(t, row[5], j);
}

static void put_names(struct sql_value *argv, size_t room, const struct str *names, size_t count)
{
    for (size_t i = 0; i < room; i++)
        argv[i] = i < count ? sql_text(names[i]) : sql_null();
}

/* HAVING COUNT(*) counts a tag once, so each tag may be asked for only once. */
static size_t without_repeats(const struct str *tags, size_t count, struct str *out)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t k = 0; k < n && !seen; k++)
            seen = str_eq(out[k], tags[i]);
        if (!seen)
            out[n++] = tags[i];
    }
    return n;
}

static int rows_of_tags(struct task *t, struct sql_pool *sql, const struct str *tags,
                        size_t tag_count, bool any, struct sql_rows *r)
{
    if (tag_count == 0)
        return sql_call(t, sql, r, JOURNALS);
    struct str different[CATALOG_TAGS_MAX];
    struct sql_value argv[CATALOG_TAGS_MAX + 1];
    size_t n = without_repeats(tags, tag_count, different);
    put_names(argv, CATALOG_TAGS_MAX, different, n);
    argv[CATALOG_TAGS_MAX] = sql_int(any ? 1 : (int64_t)n);
    _Static_assert(CATALOG_TAGS_MAX == 64, "as many marks as tags");
    return sql_argv(t, sql,
                    JOURNALS " WHERE c.Name IN (SELECT p.Name FROM info_paper_with_tag p"
                             " JOIN info_tag t ON t.Tag = p.Tag WHERE p.Tag IN (" MARKS_64 ")"
                             " GROUP BY p.Name HAVING COUNT(*) >= ?)",
                    CATALOG_TAGS_MAX + 1, argv, r);
}

int catalog_mysql_journals(struct task *t, struct sql_pool *sql, const struct str *tags,
                           size_t tag_count, bool any, struct catalog_journal **out, size_t *count)
{
    struct sql_rows r;
    int err = rows_of_tags(t, sql, tags, tag_count, any, &r);
    if (err)
        return err;
    struct catalog_journal *journals = ARENA_ARRAY(task_arena(t), struct catalog_journal, r.count);
    for (size_t i = 0; !err && i < r.count; i++)
        err = read_journal(t, sql_row(&r, i), &journals[i]);
    if (err)
        return err;
    *out = journals;
    *count = r.count;
    return 0;
}

/* Puts the chosen journals into by_name. ERR_CONFLICT: they are not all of one load. */
static int read_chosen(struct task *t, struct sql_pool *sql, const struct catalog_choice *c,
                       struct map *by_name, int64_t *load)
{
    struct sql_value *argv = ARENA_ARRAY(task_arena(t), struct sql_value, NAMES_AT_ONCE);
    *load = -1;
    for (size_t at = 0; at < c->journal_count; at += NAMES_AT_ONCE) {
        struct sql_rows r;
        put_names(argv, NAMES_AT_ONCE, c->journals + at, c->journal_count - at);
        int err =
            sql_argv(t, sql, JOURNALS " WHERE c.Name IN (" MARKS_256 ")", NAMES_AT_ONCE, argv, &r);
        for (size_t i = 0; !err && i < r.count; i++) {
            struct catalog_journal *j = ARENA_NEW(task_arena(t), struct catalog_journal);
            err = read_journal(t, sql_row(&r, i), j);
            map_set(by_name, j->name, j);
        }
        if (err)
            return err;
        int64_t now = r.count ? r.cells[6].i : *load;
        if (*load >= 0 && now != *load)
            return task_fail(t, ERR_CONFLICT, "papers are being loaded: try again");
        *load = now;
    }
    return 0;
}

static int read_one_load(struct task *t, struct sql_pool *sql, const struct catalog_choice *c,
                         struct map *by_name, int64_t *load)
{
    int err = ERR_CONFLICT;
    for (int i = 0; err == ERR_CONFLICT && i < TRIES_MAX; i++)
        err = read_chosen(t, sql, c, by_name, load);
    return err == ERR_CONFLICT ? ERR_UNAVAILABLE : err;
}

static int price_journal(struct task *t, const struct catalog_choice *c,
                         const struct catalog_journal *j, struct catalog_estimate *e,
                         struct catalog_estimate_row *row)
{
    int err = 0;
    row->price = j->price;
    row->bare = -1;
    for (size_t i = 0; !err && i < j->year_count; i++)
        if (j->years[i].year >= c->year_from && j->years[i].year <= c->year_to)
            err = catalog_add_papers(t, &row->papers, j->years[i].papers);
    return err ? err : catalog_add_up(t, e, row);
}

int catalog_mysql_price(struct task *t, struct sql_pool *sql, const struct catalog_choice *c,
                        struct catalog_estimate *out, struct str *unknown)
{
    struct map *by_name = map_new();
    struct catalog_estimate e = {0};
    e.rows = ARENA_ARRAY(task_arena(t), struct catalog_estimate_row, c->journal_count);
    int err = read_one_load(t, sql, c, by_name, &e.load);
    for (size_t i = 0; !err && i < c->journal_count; i++) {
        const struct catalog_journal *j = map_get(by_name, c->journals[i]);
        if (j) {
            e.rows[i].journal = j->name;
            err = price_journal(t, c, j, &e, &e.rows[i]);
        } else {
            *unknown = c->journals[i];
            err = ERR_NOT_FOUND;
        }
    }
    map_free(by_name);
    if (!err)
        *out = e;
    return err;
}
