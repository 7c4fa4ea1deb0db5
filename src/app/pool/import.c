#include "app/pool/import.h"

#include "app/pool/pools_private.h"
#include "base/map.h"
#include "base/sha256.h"

#define ROWS_MAX     2000 /* in one transaction: pops of the group may wait for it */
#define BYTES_MAX    (2 << 20)
#define DIGEST_BYTES 16
#define COLUMNS      4

/* Some rows of a piece, that are stored together. */
struct chunk {
    struct pool_import *import;
    size_t count, bytes;
    struct str texts[ROWS_MAX];
    uint8_t digests[ROWS_MAX][DIGEST_BYTES];
    bool known[ROWS_MAX]; /* the group has it already */
    struct map *seen;     /* digests of this piece */
    int64_t in_group, in_file, stored, batch;
};

struct digesting {
    struct pool_id id;
    int64_t added;
};

static struct str digest_of(const struct chunk *c, size_t i)
{
    return str_from((const char *)c->digests[i], DIGEST_BYTES);
}

/* --- one transaction --- */

/* By the index alone; a second for some millions of items. */
static int find_batch(struct task *t, struct sql *c, struct pool_id id, int64_t *out)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     pool_sql(task_arena(t), id.type,
                              "SELECT COALESCE(MAX(batch_id), 0) FROM $table"
                              " FORCE INDEX (in_order) WHERE group_id = ?"),
                     sql_int(id.group));
    *out = err ? 0 : r.cells[0].i + 1;
    return err;
}

/* Rows that other programs added have none yet. */
static int add_digests(struct task *t, struct sql *c, void *arg)
{
    struct digesting *d = arg;
    struct sql_rows r;
    int err = pool_lock_group(t, c, d->id, NULL);
    if (!err)
        err = sql_on(t, c, &r,
                     pool_sql(task_arena(t), d->id.type,
                              "UPDATE $table FORCE INDEX (alike)"
                              " SET digest = UNHEX(LEFT(SHA2($text, 256), 32))"
                              " WHERE group_id = ? AND digest IS NULL LIMIT ?"),
                     sql_int(d->id.group), sql_int(ROWS_MAX));
    d->added = err ? 0 : (int64_t)r.affected;
    return err;
}

static int digest_all(struct task *t, struct sql_pool *sql, struct pool_id id)
{
    struct digesting d = {.id = id};
    int err;
    do
        err = sql_tx(t, sql, add_digests, &d);
    while (!err && d.added == ROWS_MAX);
    return err;
}

static int find_known(struct task *t, struct sql *c, struct chunk *x)
{
    const struct pool_id id = x->import->pool;
    char hex[2 * DIGEST_BYTES + 1];
    struct buf list;
    struct sql_rows r;
    buf_init(&list);
    for (size_t i = 0; i < x->count; i++) {
        hex_write(x->digests[i], DIGEST_BYTES, hex);
        buf_printf(&list, "%s\"%s\"", i ? "," : "[", hex);
    }
    buf_add_char(&list, ']');
    int err = sql_on(t, c, &r,
                     pool_sql(task_arena(t), id.type,
                              "SELECT j.place, MIN(i.batch_id <> ?) FROM JSON_TABLE(?, '$[*]'"
                              " COLUMNS (place FOR ORDINALITY, digest CHAR(32) PATH '$')) AS j"
                              " STRAIGHT_JOIN $table AS i FORCE INDEX (alike)"
                              " ON i.group_id = ? AND i.digest = UNHEX(j.digest) GROUP BY j.place"),
                     sql_int(x->batch), sql_text(buf_str(&list)), sql_int(id.group));
    buf_release(&list);
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        x->known[row[0].i - 1] = true;
        x->in_group += row[1].i;
        x->in_file += !row[1].i;
    }
    return err;
}

static int store(struct task *t, struct sql *c, void *arg)
{
    struct chunk *x = arg;
    const struct pool_import *m = x->import;
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, COLUMNS * x->count);
    size_t n = 0;
    x->in_group = x->in_file = 0;
    x->batch = m->batch;
    memset(x->known, 0, sizeof x->known);
    int err = pool_lock_group(t, c, m->pool, NULL);
    if (!err && !m->batch)
        err = find_batch(t, c, m->pool, &x->batch);
    if (!err)
        err = find_known(t, c, x);
    if (err)
        return err;
    for (size_t i = 0; i < x->count; i++) {
        if (x->known[i])
            continue;
        const struct sql_value row[COLUMNS] = {sql_int(m->pool.group), sql_int(x->batch),
                                               sql_text(x->texts[i]), sql_blob(digest_of(x, i))};
        memcpy(&cells[COLUMNS * n++], row, sizeof row);
    }
    x->stored = (int64_t)n;
    return n ? sql_bulk(t, c,
                        pool_sql(task_arena(t), m->pool.type,
                                 "INSERT INTO $table (group_id, batch_id, $text, digest) VALUES"),
                        "", COLUMNS, n, cells, NULL)
             : 0;
}

static int flush(struct task *t, struct sql_pool *sql, struct chunk *x)
{
    struct pool_import *m = x->import;
    if (x->count == 0)
        return 0;
    struct arena_mark mark = arena_mark(task_arena(t));
    int err = sql_tx(t, sql, store, x);
    arena_reset(task_arena(t), mark);
    if (err)
        return err;
    m->batch = x->batch;
    m->imported += x->stored;
    m->in_file += x->in_file;
    m->in_group += x->in_group;
    x->count = x->bytes = 0;
    return 0;
}

/* --- a piece --- */

static void note_problem(struct task *t, struct pool_import *m, int64_t line, const char *why)
{
    m->rejected++;
    if (m->problem_count < POOL_PROBLEMS_MAX)
        m->problems[m->problem_count++] =
            (struct pool_problem){line, str_printf(task_arena(t), "%.*s", POOL_PROBLEM_CHARS, why)};
}

static int add(struct task *t, struct sql_pool *sql, struct chunk *x, struct str text)
{
    uint8_t whole[SHA256_BYTES];
    sha256(text, whole);
    memcpy(x->digests[x->count], whole, DIGEST_BYTES);
    if (!map_add(x->seen, digest_of(x, x->count))) {
        x->import->in_file++;
        return 0;
    }
    x->texts[x->count++] = text;
    x->bytes += text.n;
    return x->count == ROWS_MAX || x->bytes >= BYTES_MAX ? flush(t, sql, x) : 0;
}

static int import_rows(struct task *t, struct sql_pool *sql, struct chunk *x, struct pool_rows *r)
{
    struct str text;
    int64_t line = 0;
    int err = 0;
    while (!err) {
        int got = pool_rows_next(r, task_arena(t), &text, &line);
        if (got == ERR_NOT_FOUND)
            break;
        if (got)
            note_problem(t, x->import, line, r->error);
        else
            err = add(t, sql, x, text);
    }
    return err ? err : flush(t, sql, x);
}

int pool_import(struct task *t, struct sql_pool *sql, struct pool_import *m, struct str piece,
                bool last)
{
    struct arena *a = task_arena(t);
    struct pool_rows *r = ARENA_NEW(a, struct pool_rows);
    struct chunk *x = ARENA_NEW(a, struct chunk);
    m->imported = m->in_file = m->in_group = m->rejected = 0;
    m->problem_count = m->read = 0;
    if (pool_rows_open(r, a, m->pool.type, m->format, &m->place, piece, last))
        return task_fail(t, ERR_INVALID, "%s", r->error);
    int err = pool_make_rows(t, sql, m->pool);
    if (!err)
        err = digest_all(t, sql, m->pool);
    x->import = m;
    x->seen = map_new();
    if (!err)
        err = import_rows(t, sql, x, r);
    map_free(x->seen);
    m->read = r->at;
    m->place = r->place;
    return err;
}
