/* The DOIs of a block as it was at the end of a load (block.h, frozen sets). */
#include "base/log.h"
#include "base/map.h"
#include "engine/papers/block_private.h"
#include "engine/store/keys.h"

#define TRIES_MAX 3 /* of a block that is damaged each time after it was built */

struct dois {
    struct str journal, key;
    int64_t year;
    struct str *v; /* NULL: Redis has no such block */
    size_t count;
    struct block_version version;
};

/* d->v stays as it is if the block is not whole. */
static int ask(struct task *t, struct blocks *b, struct dois *d)
{
    struct arena *a = task_arena(t);
    struct redis_batch batch;
    const struct redis_reply *const *r;
    redis_batch_init(&batch, t, b->redis);
    redis_batch_add(&batch, d->key, STR("HKEYS"), d->key);
    redis_batch_add(&batch, d->key, STR("HGET"), d->key, STR(BLOCK_HEADER));
    redis_batch_add(&batch, d->key, STR("PEXPIRE"), d->key, str_int(a, block_ttl_ms(task_loop(t))));
    int err = redis_batch_run(&batch, &r);
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    if (r[0]->type != REDIS_ARRAY || r[1]->type != REDIS_STRING ||
        !block_header_read(r[1]->str, (int64_t)r[0]->count, &d->version))
        return 0;
    d->v = ARENA_ARRAY(a, struct str, r[0]->count);
    d->count = 0;
    for (size_t i = 0; i < r[0]->count; i++)
        if (!str_eq(r[0]->items[i]->str, STR(BLOCK_HEADER)))
            d->v[d->count++] = r[0]->items[i]->str;
    return 0;
}

/* ERR_NOT_FOUND: it has no papers. */
static int read_now(struct task *t, struct blocks *b, struct dois *d)
{
    d->v = NULL;
    for (int i = 0; i < TRIES_MAX; i++) {
        int err = ask(t, b, d);
        if (!err && i == 0)
            metric_add(d->v ? b->hits : b->misses, 1);
        if (err || d->v)
            return err;
        err = block_refresh(t, b, d->journal, d->year, i > 0, NULL);
        if (err)
            return err;
    }
    return task_fail(t, ERR_UNAVAILABLE, "%.*s was gone %d times, just after it had been built",
                     STR_ARG(d->key), TRIES_MAX);
}

/* d is from before the end of that load, for all its header says. If MySQL has the same papers the
 * header is mended, else the block is built anew. */
static int bring_up_to(struct task *t, struct blocks *b, struct dois *d, int64_t load)
{
    struct block_version now;
    int err = block_read_version(t, b, d->journal, d->year, &now);
    if (err)
        return err;
    if (block_same(d->version, now)) {
        d->version = now;
        return block_confirm(t, b, d->key, now);
    }
    err = block_refresh(t, b, d->journal, d->year, false, NULL);
    if (!err)
        err = read_now(t, b, d);
    if (!err && d->version.as_of < load)
        log_warn("block",
                 "%.*s is wanted as of load %lld, which MySQL does not have any more: was an older "
                 "copy of the database restored? What was loaded since load %lld is taken for new",
                 STR_ARG(d->key), (long long)load, (long long)d->version.as_of);
    return err;
}

/* Takes out what came after that load, and adds what left: the first change of a paper tells. */
static int undo_changes(struct task *t, struct blocks *b, struct dois *d, int64_t load)
{
    struct sql_rows r;
    int err = sql_call(t, b->sql, &r,
                       "SELECT doi, kind = 'added' FROM corpus_change WHERE journal = ?"
                       " AND year = ? AND load_no > ? ORDER BY load_no",
                       sql_text(d->journal), sql_int(d->year), sql_int(load));
    if (err || r.count == 0)
        return err;
    struct map *first = map_new(); /* DOI -> its cell; taken out when it is found to be in d */
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        if (!map_get(first, row[0].s))
            map_set(first, row[0].s, (void *)(uintptr_t)row);
    }
    struct str *was = ARENA_ARRAY(task_arena(t), struct str, d->count + r.count);
    size_t n = 0, at = 0;
    for (size_t i = 0; i < d->count; i++) {
        const struct sql_value *row = map_del(first, d->v[i]);
        if (!row || row[1].i == 0)
            was[n++] = d->v[i];
    }
    struct str doi;
    void *row;
    while (map_next(first, &at, &doi, &row))
        if (((const struct sql_value *)row)[1].i == 0)
            was[n++] = ((const struct sql_value *)row)[0].s;
    map_free(first);
    d->v = was;
    d->count = n;
    return 0;
}

/* A block that is gone is as of now, and everything in it may have left since. */
static int read_then(struct task *t, struct blocks *b, struct dois *d, int64_t load)
{
    int err = read_now(t, b, d);
    if (!err && d->version.as_of < load)
        err = bring_up_to(t, b, d, load);
    if (err == ERR_NOT_FOUND) {
        d->v = NULL;
        d->count = 0;
        d->version.changed = INT64_MAX;
        err = 0;
    }
    return err || d->version.changed <= load ? err : undo_changes(t, b, d, load);
}

int block_dois(struct task *t, struct blocks *b, struct str journal, int64_t year, int64_t load,
               struct str **dois, size_t *count)
{
    struct dois d = {
        .journal = journal, .year = year, .key = key_block(task_arena(t), journal, year)};
    int err = read_then(t, b, &d, load);
    if (err)
        return err;
    *dois = d.v;
    *count = d.count;
    return 0;
}
