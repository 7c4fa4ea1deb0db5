#include "app/extract/document.h"

#include <inttypes.h>
#include <stdlib.h>

#include "app/extract/document_private.h"
#include "base/err.h"
#include "engine/people/own_id.h"
#include "engine/store/record.h"

#define PARSES_MAX    4   /* PDFs in memory at the same time, on one node */
#define IDS_AT_ONCE   256 /* a power of two */
#define UNFINISHED_S  3600
#define SWEPT_AT_ONCE 20

/* --- rows --- */

#define MS(column) "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"
#define AT(member) .at = offsetof(struct document, member)
static const struct record_column columns[] = {
    {NULL, "id", RECORD_TEXT, AT(id)},
    {NULL, "name", RECORD_TEXT, AT(name)},
    {NULL, "media", RECORD_TEXT, AT(media)},
    {NULL, "number", RECORD_INT, AT(number)},
    {NULL, "bytes", RECORD_INT, AT(bytes)},
    {NULL, "text_bytes", RECORD_INT, AT(text_bytes)},
    {NULL, "text_error", RECORD_TEXT, AT(text_error)},
    {NULL, "text_code", RECORD_TEXT, AT(text_code)},
    {NULL, "pages", RECORD_INT, AT(pages)},
    {NULL, "used", RECORD_INT, AT(used)},
    {NULL, MS("created_at"), RECORD_INT, AT(created_ms)},
    {.type = RECORD_END},
};
static const struct record_kind document_record = {"document", columns, sizeof(struct document)};

#define OFFERED " uid = ? AND deleted IS NULL AND stored_at IS NOT NULL"

struct documents *documents_new(struct node *n)
{
    struct documents *d = check_memory(calloc(1, sizeof *d));
    d->node = n;
    d->parsing = map_new();
    waitq_init(&d->parsed);
    sem_init(&d->parses, PARSES_MAX);
    sem_init(&d->conversions, 1);
    document_texts_init(d);
    return d;
}

void documents_free(struct documents *d)
{
    if (!d)
        return;
    map_free(d->parsing);
    free(d);
}

int document_none(struct task *t)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no such document");
}

struct str document_clip(struct str s, size_t n)
{
    if (s.n <= n)
        return s;
    while (n > 0 && ((unsigned char)s.p[n] & 0xC0) == 0x80)
        n--;
    return str_from(s.p, n);
}

int document_get(struct task *t, struct node *n, int64_t uid, struct str id, struct document *out)
{
    struct sql_rows r;
    if (!own_id_is(id, uid))
        return document_none(t);
    int err = sql_call(t, n->sql, &r,
                       record_select(task_arena(t), &document_record, "WHERE id = ? AND" OFFERED),
                       sql_text(id), sql_int(uid));
    if (err)
        return err;
    if (r.count == 0)
        return document_none(t);
    *out = (struct document){0};
    record_take(&document_record, r.cells, out);
    return 0;
}

/* --- lists --- */

static int count_bytes(struct task *t, struct node *n, int64_t uid, int64_t *out)
{
    struct sql_rows r;
    int err = sql_call(t, n->sql, &r,
                       "SELECT CAST(COALESCE(SUM(bytes), 0) AS SIGNED) FROM document"
                       " WHERE uid = ? AND deleted IS NULL",
                       sql_int(uid));
    *out = err ? 0 : r.cells[0].i;
    return err;
}

int document_page(struct task *t, struct node *n, int64_t uid, int64_t below, int64_t limit,
                  struct document_list *out)
{
    struct sql_rows r;
    *out = (struct document_list){0};
    int err =
        sql_call(t, n->sql, &r,
                 record_select(task_arena(t), &document_record,
                               "WHERE" OFFERED " AND number < ? ORDER BY number DESC LIMIT ?"),
                 sql_int(uid), sql_int(below ? below : INT64_MAX), sql_int(limit + 1));
    if (!err)
        err = count_bytes(t, n, uid, &out->bytes_used);
    if (err)
        return err;
    out->count = r.count > (size_t)limit ? (size_t)limit : r.count;
    out->list = ARENA_ARRAY(task_arena(t), struct document, out->count + 1);
    for (size_t i = 0; i < out->count; i++)
        record_take(&document_record, sql_row(&r, i), &out->list[i]);
    if (r.count > out->count)
        out->next = out->list[out->count - 1].number;
    return 0;
}

/* --- many at once --- */

static int missing(struct task *t, struct str id)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no document %.*s",
                     STR_ARG(document_clip(id, DOCUMENT_ID_CHARS)));
}

static int find_some(struct task *t, struct node *n, int64_t uid, const struct str *ids,
                     size_t count, struct map *found)
{
    struct sql_rows r;
    size_t marks = sql_padded(count);
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, marks + 1);
    v[0] = sql_int(uid);
    for (size_t i = 0; i < marks; i++)
        v[i + 1] = sql_text(ids[i < count ? i : count - 1]);
    const char *statement =
        record_select(task_arena(t), &document_record,
                      sql_marks(task_arena(t), "WHERE" OFFERED " AND id IN", marks, ""));
    int err = sql_argv(t, n->sql, statement, marks + 1, v, &r);
    for (size_t i = 0; !err && i < r.count; i++) {
        struct document *d = ARENA_NEW(task_arena(t), struct document);
        record_take(&document_record, sql_row(&r, i), d);
        map_set(found, d->id, d);
    }
    return err;
}

static int find_all(struct task *t, struct node *n, int64_t uid, const struct str *ids,
                    size_t count, struct map *found)
{
    int err = 0;
    for (size_t i = 0; !err && i < count; i++)
        if (!own_id_is(ids[i], uid))
            err = missing(t, ids[i]);
    for (size_t i = 0; !err && i < count; i += IDS_AT_ONCE)
        err =
            find_some(t, n, uid, ids + i, count - i < IDS_AT_ONCE ? count - i : IDS_AT_ONCE, found);
    return err;
}

int documents_find(struct task *t, struct node *n, int64_t uid, const struct str *ids, size_t count,
                   struct document *out)
{
    struct map *found = map_new();
    check(count <= DOCUMENTS_AT_ONCE_MAX);
    int err = find_all(t, n, uid, ids, count, found);
    for (size_t i = 0; !err && i < count; i++) {
        const struct document *d = map_get(found, ids[i]);
        if (d)
            out[i] = *d;
        else
            err = missing(t, ids[i]);
    }
    map_free(found);
    return err;
}

/* "begin" for a user, with so many numbers of documents. */
static int on_numbers(struct task *t, struct sql *c, const char *begin, const char *end,
                      int64_t uid, const int64_t *numbers, size_t count, struct sql_rows *out)
{
    struct arena *a = task_arena(t);
    size_t marks = sql_padded(count);
    struct sql_value *v = ARENA_ARRAY(a, struct sql_value, marks + 1);
    v[0] = sql_int(uid);
    for (size_t i = 0; i < marks; i++)
        v[i + 1] = sql_int(numbers[i < count ? i : count - 1]);
    return sql_on_argv(t, c, sql_marks(a, begin, marks, end), marks + 1, v, out);
}

/* Another task may have taken some of them meanwhile: those are counted, and locked. */
static int use_some(struct task *t, struct sql *c, int64_t uid, const int64_t *numbers,
                    size_t count)
{
    struct sql_rows r;
    int err = on_numbers(t, c, "UPDATE document SET used = 1 WHERE" OFFERED " AND number IN", "",
                         uid, numbers, count, &r);
    if (err || r.affected == count)
        return err;
    err = on_numbers(t, c, "SELECT COUNT(*) FROM document WHERE" OFFERED " AND number IN",
                     " FOR UPDATE", uid, numbers, count, &r);
    if (!err && r.cells[0].i != (int64_t)count)
        err = task_fail(t, ERR_NOT_FOUND, "a document was deleted meanwhile");
    return err;
}

int documents_use(struct task *t, struct sql *c, int64_t uid, const struct document *list,
                  size_t count)
{
    int64_t *numbers = ARENA_ARRAY(task_arena(t), int64_t, count + 1);
    size_t n = 0;
    int err = 0;
    for (size_t i = 0; i < count; i++)
        if (!list[i].used)
            numbers[n++] = list[i].number;
    for (size_t i = 0; !err && i < n; i += IDS_AT_ONCE)
        err = use_some(t, c, uid, numbers + i, n - i < IDS_AT_ONCE ? n - i : IDS_AT_ONCE);
    return err;
}

/* --- deleting --- */

int document_delete(struct task *t, struct node *n, int64_t uid, struct str id)
{
    struct sql_rows r;
    if (!own_id_is(id, uid))
        return document_none(t);
    int err = sql_call(t, n->sql, &r,
                       "UPDATE document SET deleted = UTC_TIMESTAMP(3), digest = NULL"
                       " WHERE id = ? AND" OFFERED,
                       sql_text(id), sql_int(uid));
    if (!err && r.affected == 0)
        err = document_none(t);
    return err;
}

int document_drop(struct task *t, struct sql_pool *sql, int64_t number)
{
    int err =
        sql_call(t, sql, NULL, "DELETE FROM document_piece WHERE document = ?", sql_int(number));
    return err ? err
               : sql_call(t, sql, NULL, "DELETE FROM document WHERE number = ?", sql_int(number));
}

/* What a task has keeps its text; the file goes unless it is the text. */
static int sweep_used(struct task *t, struct sql_pool *sql, const struct sql_value *row)
{
    int64_t number = row[0].i;
    int err =
        str_eq(row[2].s, STR(DOCUMENT_FILE))
            ? 0
            : sql_call(t, sql, NULL, "DELETE FROM document_piece WHERE document = ? AND kind = ?",
                       sql_int(number), sql_text(STR(DOCUMENT_FILE)));
    return err ? err
               : sql_call(t, sql, NULL, "UPDATE document SET swept = 1 WHERE number = ?",
                          sql_int(number));
}

/* Removes what was deleted, or was never finished; a PDF that is still to be parsed for its tasks
 * is looked at again. */
int documents_sweep_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct sql_pool *sql = ((struct documents *)arg)->node->sql;
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       "(SELECT number, used, text_from FROM document WHERE swept = 0 AND deleted"
                       " IS NOT NULL AND (used = 0 OR text_from IS NOT NULL OR text_error IS NOT"
                       " NULL) LIMIT ?) UNION ALL (SELECT number, 0, NULL FROM document"
                       " WHERE stored_at IS NULL AND created_at < UTC_TIMESTAMP(3)"
                       " - INTERVAL ? SECOND LIMIT ?)",
                       sql_int(SWEPT_AT_ONCE), sql_int(UNFINISHED_S), sql_int(SWEPT_AT_ONCE));
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        err = row[1].i ? sweep_used(t, sql, row) : document_drop(t, sql, row[0].i);
        if (!err)
            err = role_keep(t, turn);
    }
    return err ? err : r.count >= SWEPT_AT_ONCE ? ROLE_MORE : 0;
}
