/* Rows, as users, admins and searches see them. */
#include "app/embed/post/posts_private.h"

#include <stdlib.h>

#define MS(column) "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"
#define COLUMNS                                                                                    \
    "number, id, uid, title, hide, version, rag_status, COALESCE(rag_error, waits),"               \
    " COALESCE(reason, waits_code), chunks, chunks_done, " MS("created_at") ", " MS("changed_at")
#define COLUMN_COUNT 13

/* --- for searches --- */

int post_rows(struct task *t, struct sql_pool *sql, const int64_t *ids, size_t count,
              struct post_row *rows, size_t *found)
{
    struct sql_rows r;
    *found = 0;
    if (count == 0)
        return 0;
    size_t n = sql_padded(count);
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, n);
    for (size_t i = 0; i < n; i++)
        v[i] = sql_int(ids[i < count ? i : count - 1]);
    const char *statement =
        sql_marks(task_arena(t),
                  "SELECT id, uid, content_version, title, content, hide, " MS(
                      "changed_at") " FROM tb_post WHERE deleted IS NULL AND id IN",
                  count, " ORDER BY id");
    int err = sql_argv(t, sql, statement, n, v, &r);
    for (size_t i = 0; !err && i < r.count && i < count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        rows[(*found)++] = (struct post_row){.id = cell[0].i,
                                             .uid = cell[1].i,
                                             .version = cell[2].i,
                                             .title = cell[3].s,
                                             .content = cell[4].s,
                                             .hide = cell[5].i != 0,
                                             .changed_ms = cell[6].i};
    }
    return err;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int post_hidden_of(struct task *t, struct sql_pool *sql, int64_t uid, uint64_t **ids, size_t *count)
{
    struct sql_rows r;
    *count = 0;
    int err = sql_call(t, sql, &r,
                       "SELECT id FROM tb_post WHERE uid = ? AND deleted IS NULL AND hide = 1"
                       " ORDER BY number DESC LIMIT ?",
                       sql_int(uid), sql_int(POINTS_OWNERS_MAX));
    if (err)
        return err;
    *ids = ARENA_ARRAY(task_arena(t), uint64_t, r.count + 1);
    for (size_t i = 0; i < r.count; i++)
        (*ids)[i] = (uint64_t)r.cells[i].i;
    *count = r.count;
    qsort(*ids, r.count, sizeof **ids, by_id);
    return 0;
}

/* An empty post is completed without words. Sums are of the key `searched`, or of one user. */
#define EXTENT                                                                                     \
    "COUNT(IF(rag_status <> 'completed' OR worded > 0, 1, NULL)),"                                 \
    " COUNT(IF(worded > 0, 1, NULL)), COUNT(IF(space > 0, 1, NULL)) FROM tb_post"

static struct embed_extent extent_of(const struct sql_value *cell)
{
    return (struct embed_extent){cell[0].i, cell[1].i, cell[2].i};
}

int post_extent(struct task *t, struct sql_pool *sql, struct embed_extent *open,
                struct embed_extent *hidden)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r, "SELECT hide, " EXTENT " WHERE deleted IS NULL GROUP BY hide");
    if (err)
        return err;
    *open = *hidden = (struct embed_extent){.total = 0};
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        *(cell[0].i ? hidden : open) = extent_of(cell + 1);
    }
    return 0;
}

int post_extent_hidden(struct task *t, struct sql_pool *sql, int64_t uid, struct embed_extent *out)
{
    struct sql_rows r;
    int err =
        sql_call(t, sql, &r, "SELECT " EXTENT " WHERE uid = ? AND deleted IS NULL AND hide = 1",
                 sql_int(uid));
    if (!err)
        *out = extent_of(r.cells);
    return err;
}

/* --- one, and many --- */

int post_none(struct task *t)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no such post");
}

static struct post read_row(const struct sql_value *cell, struct post_caller who)
{
    return (struct post){.number = cell[0].i,
                         .id = cell[1].i,
                         .uid = cell[2].i,
                         .title = cell[3].s,
                         .hide = cell[4].i != 0,
                         .version = cell[5].i,
                         .status = cell[6].s,
                         .error = cell[7].s,
                         .reason = cell[8].s,
                         .chunks = cell[9].i,
                         .chunks_done = cell[10].i,
                         .created_ms = cell[11].i,
                         .changed_ms = cell[12].i,
                         .mine = who.uid && cell[2].i == who.uid};
}

#define ONE                                                                                        \
    "SELECT " COLUMNS ", content FROM tb_post WHERE id = ? AND deleted IS NULL"                    \
    " AND (hide = 0 OR uid = ? OR ?)"

static int take_one(struct task *t, int err, const struct sql_rows *r, struct post_caller who,
                    struct post *out)
{
    if (err)
        return err;
    if (r->count == 0)
        return post_none(t);
    *out = read_row(r->cells, who);
    out->content = r->cells[COLUMN_COUNT].s;
    return 0;
}

int post_get(struct task *t, struct posts *p, struct post_caller who, int64_t id, struct post *out)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r, ONE, sql_int(id), sql_int(who.uid), sql_int(who.admin));
    return take_one(t, err, &r, who, out);
}

int post_get_on(struct task *t, struct sql *c, struct post_caller who, int64_t id, struct post *out)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, ONE, sql_int(id), sql_int(who.uid), sql_int(who.admin));
    return take_one(t, err, &r, who, out);
}

int post_some(struct task *t, struct posts *p, struct post_caller who, const int64_t *ids,
              size_t count, struct post *list, size_t *found)
{
    struct sql_rows r;
    *found = 0;
    if (count == 0)
        return 0;
    size_t n = sql_padded(count);
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, n + 2);
    v[0] = sql_int(who.uid);
    v[1] = sql_int(who.admin);
    for (size_t i = 0; i < n; i++)
        v[i + 2] = sql_int(ids[i < count ? i : count - 1]);
    int err = sql_argv(t, p->node->sql,
                       sql_marks(task_arena(t),
                                 "SELECT " COLUMNS " FROM tb_post WHERE deleted IS NULL"
                                 " AND (hide = 0 OR uid = ? OR ?) AND id IN",
                                 count, ""),
                       n + 2, v, &r);
    for (size_t i = 0; !err && i < r.count && i < count; i++)
        list[(*found)++] = read_row(sql_row(&r, i), who);
    return err;
}

int post_list(struct task *t, struct posts *p, struct post_caller who, bool all, int64_t below,
              int64_t limit, struct post_page *out)
{
    struct sql_rows r;
    struct sql_value uid = sql_int(who.uid), from = sql_int(below), more = sql_int(limit + 1);
    int err = all || who.admin
                  ? sql_call(t, p->node->sql, &r,
                             "SELECT " COLUMNS " FROM tb_post WHERE deleted IS NULL AND number < ?"
                             " AND (hide = 0 OR uid = ? OR ?) ORDER BY number DESC LIMIT ?",
                             from, uid, sql_int(who.admin), more)
                  : sql_call(t, p->node->sql, &r,
                             "SELECT " COLUMNS " FROM tb_post WHERE uid = ? AND deleted IS NULL"
                             " AND number < ? ORDER BY number DESC LIMIT ?",
                             uid, from, more);
    if (err)
        return err;
    size_t count = r.count > (size_t)limit ? (size_t)limit : r.count;
    *out = (struct post_page){.list = ARENA_ARRAY(task_arena(t), struct post, count + 1),
                              .count = count};
    for (size_t i = 0; i < count; i++)
        out->list[i] = read_row(sql_row(&r, i), who);
    out->next = r.count > count ? out->list[count - 1].number : 0;
    return 0;
}

int post_count(struct task *t, struct sql_pool *sql, struct post_counts *out)
{
    struct sql_rows r;
    *out = (struct post_counts){.pending = 0};
    int err = sql_call(t, sql, &r,
                       "SELECT COUNT(IF(rag_status = 'pending', 1, NULL)),"
                       " COUNT(IF(rag_status = 'processing', 1, NULL)),"
                       " COUNT(IF(rag_status = 'completed', 1, NULL)),"
                       " COUNT(IF(rag_status = 'failed', 1, NULL))"
                       " FROM tb_post WHERE deleted IS NULL");
    if (!err)
        *out = (struct post_counts){r.cells[0].i, r.cells[1].i, r.cells[2].i, r.cells[3].i};
    return err;
}
