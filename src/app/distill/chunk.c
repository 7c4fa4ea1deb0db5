/* The papers of a distillation, up to a hundred at a time. */
#include "app/distill/distill.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "wire/sql.h"

/* --- names --- */

static bool paper_count(const struct app_run *run, int64_t *out)
{
    return json_int(json_get(run->params, "papers"), out) && *out > 0;
}

/* As frozen at the submission; before that was done, all had a hundred. */
static int64_t chunk_papers(const struct app_run *run)
{
    int64_t n;
    bool known = json_int(json_get(run->params, "chunk"), &n) && n > 0 && n < DISTILL_CHUNK_PAPERS;
    return known ? n : DISTILL_CHUNK_PAPERS;
}

int distill_chunks(struct task *t, const struct app_run *run, struct str **names, size_t *count)
{
    struct arena *a = task_arena(t);
    int64_t papers, each = chunk_papers(run);
    if (!paper_count(run, &papers))
        return task_fail(t, ERR_INVALID, "its papers are not known");
    *count = (size_t)((papers + each - 1) / each);
    *names = ARENA_ARRAY(a, struct str, *count);
    for (size_t i = 0; i < *count; i++)
        (*names)[i] = key_chunk(a, run->id.uid, run->id.qid, (int64_t)i);
    return 0;
}

struct chunk {
    const struct app_run *run;
    struct str key;
    int64_t first; /* number of its first paper */
    size_t papers; /* in it */
};

/* The chunk of a name, by the number at its end. */
static int chunk_of(struct task *t, const struct app_run *run, struct str name, struct chunk *out)
{
    size_t digits = 0;
    int64_t number = -1, papers = 0, each = chunk_papers(run);
    while (digits < name.n && name.p[name.n - digits - 1] != ':')
        digits++;
    struct str tail = str_from(name.p + name.n - digits, digits);
    if (!paper_count(run, &papers) || !str_to_i64(tail, &number) || number < 0 ||
        number > (papers - 1) / each ||
        !str_eq(name, key_chunk(task_arena(t), run->id.uid, run->id.qid, number)))
        return task_fail(t, ERR_PROTO, "%.*s is no unit", STR_ARG(name));
    int64_t first = number * each, left = papers - first;
    *out = (struct chunk){run, name, first, (size_t)(left < each ? left : each)};
    return 0;
}

/* --- papers --- */

static int64_t cents_of(const struct app_run *run, struct str journal)
{
    int64_t price = app_price(run, journal);
    return price < 0 ? -1 : price * DISTILL_CENTS;
}

/* before: the paper in front of it, NULL for the first; most neighbours share a journal. */
static int make_paper(struct task *t, const struct chunk *c, struct str doi, struct str block,
                      const struct app_paper *before, struct app_paper *out)
{
    struct str slice;
    out->doi = doi;
    if (!key_block_read(block, &out->journal, &out->year, &slice))
        return task_fail(t, ERR_PROTO, "%.*s is no block", STR_ARG(block));
    bool same = before && str_eq(before->journal, out->journal);
    out->cents = same ? before->cents : cents_of(c->run, out->journal);
    return out->cents >= 0
               ? 0
               : task_fail(t, ERR_PROTO, "%.*s is not in the run", STR_ARG(out->journal));
}

/* *found is false if Redis does not have all of them. */
static int read_redis(struct task *t, struct redis *redis, const struct chunk *c,
                      struct app_paper *papers, bool *found)
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
    return SCRIPT(t, redis, chunk_put, NULL, .chunk = c->key,
                  .ms = str_int(a, DISTILL_CHUNK_TTL_MS), .papers = {papers, c->papers});
}

static int read_mysql(struct task *t, struct sql_pool *sql, const struct chunk *c,
                      struct app_paper *papers, struct sql_rows *rows)
{
    int err = sql_call(t, sql, rows,
                       "SELECT doi, block_key FROM distill_paper WHERE query_id = ?"
                       " AND number >= ? ORDER BY number LIMIT ?",
                       sql_text(c->run->id.qid), sql_int(c->first), sql_int((int64_t)c->papers));
    if (!err && rows->count != c->papers)
        err = task_fail(t, ERR_PROTO, "distill_paper lacks papers of run %.*s",
                        STR_ARG(c->run->id.qid));
    for (size_t i = 0; !err && i < c->papers; i++) {
        const struct sql_value *cell = sql_row(rows, i);
        err = make_paper(t, c, cell[0].s, cell[1].s, i ? &papers[i - 1] : NULL, &papers[i]);
    }
    return err;
}

int distill_chunk_read(struct task *t, struct redis *redis, struct sql_pool *sql,
                       const struct app_run *run, struct str name, struct app_paper **papers,
                       size_t *count)
{
    struct chunk c = {0};
    struct sql_rows rows;
    bool found;
    int err = chunk_of(t, run, name, &c);
    if (err)
        return err;
    struct app_paper *out = ARENA_ARRAY(task_arena(t), struct app_paper, c.papers);
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
