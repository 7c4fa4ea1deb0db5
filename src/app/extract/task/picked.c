/* Which papers of a run a task is about. They are in search_result: the run is archived. */
#include "app/extract/task/extract_private.h"
#include "base/map.h"
#include "engine/runs/row.h"

#define IDS_MAX 256 /* of one statement */

static int settled(struct task *t, struct extract *x, const struct extract_wish *w)
{
    struct run_row row;
    int err = run_row_find(t, x->node->sql, (struct run_id){w->uid, w->query_id}, &row);
    return err ? err : run_row_settled(t, &row, "extracted from");
}

static int check_count(struct task *t, size_t count)
{
    if (count == 0)
        return task_fail(t, ERR_CONFLICT, "none of the papers of this run is relevant");
    if (count > EXTRACT_DOCUMENTS_MAX)
        return task_fail(t, ERR_CONFLICT,
                         "more than %d papers of this run are relevant: pick so many of them",
                         EXTRACT_DOCUMENTS_MAX);
    return 0;
}

/* --- all that are relevant --- */

static int relevant(struct task *t, struct extract *x, struct str query_id,
                    struct extract_paper **out, size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, x->node->sql, &r,
                       "SELECT doi, block_key FROM search_result WHERE query_id = ?"
                       " AND relevant = 1 ORDER BY block_key, doi LIMIT ?",
                       sql_text(query_id), sql_int(EXTRACT_DOCUMENTS_MAX + 1));
    if (!err)
        err = check_count(t, r.count);
    if (err)
        return err;
    *out = ARENA_ARRAY(task_arena(t), struct extract_paper, r.count);
    *count = r.count;
    for (size_t i = 0; i < r.count; i++)
        (*out)[i] = (struct extract_paper){sql_row(&r, i)[0].s, sql_row(&r, i)[1].s};
    return 0;
}

/* --- those that were picked --- */

/* Statements of one length: the last id is repeated. */
static int look_up(struct task *t, struct extract *x, struct str query_id,
                   const struct extract_paper *list, size_t count, struct map *found)
{
    struct arena *a = task_arena(t);
    struct sql_value v[IDS_MAX + 1];
    struct sql_rows r;
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "SELECT doi, block_key FROM search_result WHERE query_id = ? AND doi IN (");
    v[0] = sql_text(query_id);
    for (size_t i = 0; i < IDS_MAX; i++) {
        buf_add_str(&b, i ? STR(",?") : STR("?"));
        v[i + 1] = sql_text(list[i < count ? i : count - 1].doi);
    }
    buf_add_char(&b, ')');
    const char *statement = str_z(a, buf_str(&b));
    buf_release(&b);
    int err = sql_argv(t, x->node->sql, statement, IDS_MAX + 1, v, &r);
    for (size_t i = 0; !err && i < r.count; i++) {
        struct str *key = ARENA_NEW(a, struct str);
        *key = sql_row(&r, i)[1].s;
        map_set(found, sql_row(&r, i)[0].s, key);
    }
    return err;
}

static int fill_keys(struct task *t, struct extract *x, struct str query_id,
                     struct extract_paper *list, size_t count, struct map *found)
{
    int err = 0;
    for (size_t i = 0; !err && i < count; i += IDS_MAX)
        err = look_up(t, x, query_id, list + i, count - i < IDS_MAX ? count - i : IDS_MAX, found);
    for (size_t i = 0; !err && i < count; i++) {
        const struct str *key = map_get(found, list[i].doi);
        if (!key)
            return task_fail(t, ERR_NOT_FOUND, "%.*s is no paper of this run",
                             STR_ARG(list[i].doi));
        list[i].block_key = *key;
    }
    return err;
}

/* Each once, in the order in which they were named. */
static int picked(struct task *t, struct extract *x, const struct extract_wish *w,
                  struct extract_paper **out, size_t *count)
{
    struct map *known = map_new(), *found = map_new();
    struct extract_paper *list = ARENA_ARRAY(task_arena(t), struct extract_paper, w->doi_count);
    size_t n = 0;
    for (size_t i = 0; i < w->doi_count; i++)
        if (map_add(known, w->dois[i]))
            list[n++] = (struct extract_paper){.doi = w->dois[i]};
    int err = fill_keys(t, x, w->query_id, list, n, found);
    map_free(known);
    map_free(found);
    *out = list;
    *count = n;
    return err;
}

int extract_papers(struct task *t, struct extract *x, const struct extract_wish *w,
                   struct extract_paper **out, size_t *count)
{
    int err = settled(t, x, w);
    if (err)
        return err;
    return w->doi_count ? picked(t, x, w, out, count) : relevant(t, x, w->query_id, out, count);
}
