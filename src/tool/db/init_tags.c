/* Makes info_tag and info_paper_with_tag equal to InfoList.Tag.csv and InfoList.PaperWithTag.csv. A
 * table whose file is missing is left alone, except that pairs of deleted tags are deleted. */
#include "tool/db/init.h"

struct refused {
    const struct init_pair *pair;
    const char *why;
};

struct job {
    const struct init_folder *folder;
    struct map *tags;     /* all, after the step */
    struct map *journals; /* of contentlist */
    struct refused *refused;
    size_t refused_count;
    struct init_totals *totals;
};

int init_read_set(struct task *t, struct sql *c, const char *select, struct map *out)
{
    struct sql_rows r;
    int err = sql_on_argv(t, c, select, 0, NULL, &r);
    for (size_t i = 0; !err && i < r.count; i++)
        map_add(out, r.cells[i].s);
    return err;
}

/* --- deleting --- */

/* The list has a fixed length, so that the statement is prepared once; a shorter one repeats its
 * last value. */
#define EIGHT           "?, ?, ?, ?, ?, ?, ?, ?"
#define LIST            "(" EIGHT ", " EIGHT ", " EIGHT ", " EIGHT ")"
#define DELETED_AT_ONCE 32

static int delete_all(struct task *t, struct sql *c, const char *statement,
                      const struct sql_value *values, size_t count)
{
    int err = 0;
    for (size_t at = 0; !err && at < count; at += DELETED_AT_ONCE) {
        struct sql_value v[DELETED_AT_ONCE];
        for (size_t i = 0; i < DELETED_AT_ONCE; i++)
            v[i] = values[at + i < count ? at + i : count - 1];
        err = sql_on_argv(t, c, statement, DELETED_AT_ONCE, v, NULL);
    }
    return err;
}

/* --- tags --- */

static int delete_tags(struct task *t, struct sql *c, struct job *j, const struct sql_rows *have)
{
    struct sql_value *gone = ARENA_ARRAY(task_arena(t), struct sql_value, have->count);
    size_t n = 0;
    for (size_t i = 0; i < have->count; i++)
        if (!map_get(j->tags, sql_row(have, i)[0].s))
            gone[n++] = sql_row(have, i)[0];
    j->totals->tags_changed += (int64_t)n;
    return delete_all(t, c, "DELETE FROM info_tag WHERE Tag IN " LIST, gone, n);
}

/* New ones, and those of another type. */
static int write_tags(struct task *t, struct sql *c, struct job *j, const struct map *types)
{
    const struct init_folder *f = j->folder;
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, 2 * f->tag_count);
    size_t n = 0;
    for (size_t i = 0; i < f->tag_count; i++) {
        const struct sql_value *type = map_get(types, f->tags[i].first);
        if (type && str_eq(type->s, f->tags[i].second))
            continue;
        cells[2 * n] = sql_text(f->tags[i].first);
        cells[2 * n + 1] = sql_text(f->tags[i].second);
        n++;
    }
    j->totals->tags_changed += (int64_t)n;
    return sql_bulk(t, c, "INSERT INTO info_tag (Tag, TagType) VALUES",
                    "ON DUPLICATE KEY UPDATE TagType = VALUES(TagType)", 2, n, cells, NULL);
}

/* Without a file the tags stay as they are. */
static int sync_tags(struct task *t, struct sql *c, struct job *j)
{
    const struct init_folder *f = j->folder;
    struct sql_rows have;
    int err = sql_on(t, c, &have, "SELECT Tag, TagType FROM info_tag");
    if (err)
        return err;
    struct map *types = map_new();
    for (size_t i = 0; i < have.count; i++) {
        const struct sql_value *row = sql_row(&have, i);
        map_set(types, row[0].s, (void *)(uintptr_t)&row[1]);
        if (!f->has_tags)
            map_add(j->tags, row[0].s);
    }
    for (size_t i = 0; i < f->tag_count; i++)
        map_add(j->tags, f->tags[i].first);
    j->totals->tags = (int64_t)map_count(j->tags);
    err = delete_tags(t, c, j, &have);
    if (!err)
        err = write_tags(t, c, j, types);
    map_free(types);
    return err;
}

/* --- journals with tags --- */

static const char *pair_problem(const struct job *j, const struct init_pair *p)
{
    if (!map_get(j->journals, p->first))
        return "an unknown journal";
    return map_get(j->tags, p->second) ? NULL : "an unknown tag";
}

/* The pairs that should be there, in the order of the file. */
static size_t choose_pairs(struct task *t, struct job *j, const struct init_pair **chosen,
                           struct map *wanted)
{
    const struct init_folder *f = j->folder;
    size_t n = 0;
    for (size_t i = 0; i < f->pair_count; i++) {
        const struct init_pair *p = &f->pairs[i];
        const char *why = pair_problem(j, p);
        if (why) {
            j->refused[j->refused_count++] = (struct refused){p, why};
            continue;
        }
        chosen[n++] = p;
        map_add(wanted, init_pair_key(task_arena(t), p->first, p->second));
    }
    return n;
}

/* Fills kept with the pairs that stay. */
static int delete_pairs(struct task *t, struct sql *c, struct job *j, const struct map *wanted,
                        struct map *kept)
{
    struct sql_rows have;
    int err = sql_on(t, c, &have, "SELECT id, Name, Tag FROM info_paper_with_tag");
    if (err)
        return err;
    struct sql_value *gone = ARENA_ARRAY(task_arena(t), struct sql_value, have.count);
    size_t n = 0;
    for (size_t i = 0; i < have.count; i++) {
        const struct sql_value *row = sql_row(&have, i);
        struct str key = init_pair_key(task_arena(t), row[1].s, row[2].s);
        if (j->folder->has_pairs ? map_get(wanted, key) : map_get(j->tags, row[2].s))
            map_add(kept, key);
        else
            gone[n++] = row[0];
    }
    j->totals->pairs_changed += (int64_t)n;
    return delete_all(t, c, "DELETE FROM info_paper_with_tag WHERE id IN " LIST, gone, n);
}

/* Inserts only missing pairs: a row refused as a duplicate would use up an id. */
static int add_pairs(struct task *t, struct sql *c, struct job *j,
                     const struct init_pair *const *chosen, size_t count, const struct map *kept)
{
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, 2 * count);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct init_pair *p = chosen[i];
        if (map_get(kept, init_pair_key(task_arena(t), p->first, p->second)))
            continue;
        cells[2 * n] = sql_text(p->first);
        cells[2 * n + 1] = sql_text(p->second);
        n++;
    }
    j->totals->pairs_changed += (int64_t)n;
    j->totals->pairs = (int64_t)(map_count(kept) + n);
    return sql_bulk(t, c, "INSERT INTO info_paper_with_tag (Name, Tag) VALUES", "", 2, n, cells,
                    NULL);
}

static int sync_pairs(struct task *t, struct sql *c, struct job *j)
{
    size_t most = j->folder->pair_count;
    const struct init_pair **chosen = ARENA_ARRAY(task_arena(t), const struct init_pair *, most);
    j->refused = ARENA_ARRAY(task_arena(t), struct refused, most);
    struct map *wanted = map_new(), *kept = map_new();
    size_t count = choose_pairs(t, j, chosen, wanted);
    int err = delete_pairs(t, c, j, wanted, kept);
    if (!err)
        err = add_pairs(t, c, j, chosen, count, kept);
    map_free(wanted);
    map_free(kept);
    return err;
}

/* --- both --- */

static int run(struct task *t, struct sql *c, void *arg)
{
    struct job *j = arg;
    *j = (struct job){
        .folder = j->folder, .totals = j->totals, .tags = map_new(), .journals = map_new()};
    j->totals->tags_changed = j->totals->pairs_changed = 0;
    int err = sync_tags(t, c, j);
    if (!err)
        err = init_read_set(t, c, "SELECT Name FROM contentlist", j->journals);
    if (!err)
        err = sync_pairs(t, c, j);
    map_free(j->tags);
    map_free(j->journals);
    return err;
}

int init_tags(struct task *t, struct init *in)
{
    struct job j = {.folder = &in->folder, .totals = &in->report->totals};
    if (!j.folder->has_tags && !j.folder->has_pairs)
        return 0;
    int err = sql_tx(t, in->db->sql, run, &j);
    if (err)
        return err;
    for (size_t i = 0; i < j.refused_count; i++) {
        const struct init_pair *p = j.refused[i].pair;
        init_report_problem(
            in->report, "PaperAndTagInfo/InfoList.PaperWithTag.csv", p->line, true,
            j.refused[i].why,
            str_printf(task_arena(t), "%.*s, %.*s", STR_ARG(p->first), STR_ARG(p->second)));
    }
    return 0;
}
