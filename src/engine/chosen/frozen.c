#include "engine/chosen/frozen.h"

#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "wire/sql.h"

#define COLUMNS 4

/* --- at the submission --- */

int frozen_chunk_size(struct task *t, struct sql_pool *sql, int64_t uid, int64_t papers,
                      int64_t *out)
{
    struct sql_rows rows;
    int err =
        sql_call(t, sql, &rows, "SELECT permission FROM user_info WHERE uid = ?", sql_int(uid));
    int64_t workers = !err && rows.count && rows.cells[0].i > 0 ? rows.cells[0].i : 1;
    int64_t n = papers / workers;
    *out = n < 1 ? 1 : n < FROZEN_CHUNK_PAPERS ? n : FROZEN_CHUNK_PAPERS;
    return err;
}

void frozen_put(struct json_writer *j, int64_t papers, int64_t chunk)
{
    jw_put_int(j, "papers", papers);
    jw_put_int(j, "chunk", chunk);
}

int frozen_write(struct task *t, struct sql *c, struct str qid, const struct frozen_paper *papers,
                 size_t count)
{
    struct arena *a = task_arena(t);
    struct sql_value *cells = ARENA_ARRAY(a, struct sql_value, count * COLUMNS + 1);
    for (size_t i = 0; i < count; i++) {
        struct sql_value *row = cells + i * COLUMNS;
        row[0] = sql_text(qid);
        row[1] = sql_int((int64_t)i);
        row[2] = sql_text(papers[i].doi);
        row[3] = sql_text(key_block_name(a, papers[i].journal, papers[i].year));
    }
    return sql_bulk(t, c, "INSERT INTO distill_paper (query_id, number, doi, block_key) VALUES", "",
                    COLUMNS, count, cells, NULL);
}

/* --- names --- */

int frozen_open(struct task *t, struct run_id id, const struct json *params, struct frozen *out)
{
    int64_t papers, n;
    if (!json_int(json_get(params, "papers"), &papers) || papers <= 0)
        return task_fail(t, ERR_INVALID, "its papers are not known");
    /* Before it was frozen, all had a hundred. */
    bool known = json_int(json_get(params, "chunk"), &n) && n > 0 && n < FROZEN_CHUNK_PAPERS;
    *out = (struct frozen){id, params, papers, known ? n : FROZEN_CHUNK_PAPERS};
    return 0;
}

void frozen_units(struct task *t, const struct frozen *f, struct str **names, size_t *count)
{
    struct arena *a = task_arena(t);
    *count = (size_t)((f->papers + f->chunk - 1) / f->chunk);
    *names = ARENA_ARRAY(a, struct str, *count);
    for (size_t i = 0; i < *count; i++)
        (*names)[i] = key_chunk(a, f->id.uid, f->id.qid, (int64_t)i);
}

struct chunk {
    const struct frozen *of;
    struct str key;
    int64_t first; /* number of its first paper */
    size_t papers; /* in it */
};

/* The chunk of a name, by the number at its end. */
static int chunk_of(struct task *t, const struct frozen *f, struct str name, struct chunk *out)
{
    size_t digits = 0;
    int64_t number = -1;
    while (digits < name.n && name.p[name.n - digits - 1] != ':')
        digits++;
    struct str tail = str_from(name.p + name.n - digits, digits);
    if (!str_to_i64(tail, &number) || number < 0 || number > (f->papers - 1) / f->chunk ||
        !str_eq(name, key_chunk(task_arena(t), f->id.uid, f->id.qid, number)))
        return task_fail(t, ERR_PROTO, "%.*s is no unit", STR_ARG(name));
    int64_t first = number * f->chunk, left = f->papers - first;
    *out = (struct chunk){f, name, first, (size_t)(left < f->chunk ? left : f->chunk)};
    return 0;
}

/* --- papers --- */

/* before: the paper in front of it, NULL for the first; most neighbours share a journal. */
static int make_paper(struct task *t, const struct chunk *c, struct str doi, struct str block,
                      const struct frozen_paper *before, struct frozen_paper *out)
{
    struct str slice;
    out->doi = doi;
    if (!key_block_read(block, &out->journal, &out->year, &slice))
        return task_fail(t, ERR_PROTO, "%.*s is no block", STR_ARG(block));
    bool same = before && str_eq(before->journal, out->journal);
    out->price = same ? before->price : run_price(c->of->params, out->journal);
    return out->price >= 0
               ? 0
               : task_fail(t, ERR_PROTO, "%.*s is not in the run", STR_ARG(out->journal));
}

/* *found is false if Redis does not have all of them. */
static int read_redis(struct task *t, struct redis *redis, const struct chunk *c,
                      struct frozen_paper *papers, bool *found)
{
    const struct redis_reply *r;
    *found = false;
    int err = redis_call(t, redis, c->key, &r, STR("LRANGE"), c->key, STR("0"), STR("-1"));
    if (err || r->type != REDIS_ARRAY || r->count != c->papers)
        return err;
    for (size_t i = 0; i < r->count && !err; i++) {
        struct str block = r->items[i]->str, doi = str_cut(&block, ' ');
        err = make_paper(t, c, doi, block, i ? &papers[i - 1] : NULL, &papers[i]);
    }
    *found = !err;
    return 0;
}

static int write_redis(struct task *t, struct redis *redis, const struct chunk *c,
                       const struct sql_rows *rows)
{
    struct arena *a = task_arena(t);
    struct str *papers = ARENA_ARRAY(a, struct str, c->papers);
    for (size_t i = 0; i < c->papers; i++) {
        const struct sql_value *cell = sql_row(rows, i);
        papers[i] = str_printf(a, "%.*s %.*s", STR_ARG(cell[0].s), STR_ARG(cell[1].s));
    }
    return SCRIPT(t, redis, chunk_put, NULL, .chunk = c->key, .ms = str_int(a, FROZEN_CHUNK_TTL_MS),
                  .papers = {papers, c->papers});
}

static int read_mysql(struct task *t, struct sql_pool *sql, const struct chunk *c,
                      struct frozen_paper *papers, struct sql_rows *rows)
{
    int err = sql_call(t, sql, rows,
                       "SELECT doi, block_key FROM distill_paper WHERE query_id = ?"
                       " AND number >= ? ORDER BY number LIMIT ?",
                       sql_text(c->of->id.qid), sql_int(c->first), sql_int((int64_t)c->papers));
    if (!err && rows->count != c->papers)
        err = task_fail(t, ERR_PROTO, "distill_paper lacks papers of run %.*s",
                        STR_ARG(c->of->id.qid));
    for (size_t i = 0; !err && i < c->papers; i++) {
        const struct sql_value *cell = sql_row(rows, i);
        err = make_paper(t, c, cell[0].s, cell[1].s, i ? &papers[i - 1] : NULL, &papers[i]);
    }
    return err;
}

int frozen_read(struct task *t, struct redis *redis, struct sql_pool *sql, const struct frozen *f,
                struct str name, struct frozen_paper **papers, size_t *count)
{
    struct chunk c = {.papers = 0};
    struct sql_rows rows;
    bool found;
    int err = chunk_of(t, f, name, &c);
    if (err)
        return err;
    struct frozen_paper *out = ARENA_ARRAY(task_arena(t), struct frozen_paper, c.papers);
    err = read_redis(t, redis, &c, out, &found);
    if (!err && !found)
        err = read_mysql(t, sql, &c, out, &rows);
    if (!err && !found)
        err = write_redis(t, redis, &c, &rows);
    if (err)
        return err;
    *papers = out;
    *count = c.papers;
    return 0;
}
