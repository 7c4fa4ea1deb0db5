/* Handed out by MySQL: status 1 to 0, so that no list can have the item (POL-3). All pops that wait
 * on this node go in one transaction, and those of several nodes one after the other: by many at
 * once for the same rows MySQL would give up most of them as deadlocks. */
#include "app/pool/pools_private.h"
#include "base/json.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

struct item {
    int64_t id;
    struct str text;
};

static void write_item(struct json_writer *w, const struct item *i)
{
    jw_object(w);
    jw_put_int(w, "id", i->id);
    jw_put_str(w, "text", i->text);
    jw_end_object(w);
}

/* id_at: the column of their ids; their texts follow. */
static struct item *items_of(struct task *t, const struct sql_rows *r, size_t id_at)
{
    struct item *items = ARENA_ARRAY(task_arena(t), struct item, r->count + 1);
    for (size_t i = 0; i < r->count; i++)
        items[i] = (struct item){sql_row(r, i)[id_at].i, sql_row(r, i)[id_at + 1].s};
    return items;
}

/* As a JSON array. */
static void write_ids(struct buf *b, const struct item *items, size_t count)
{
    buf_add_char(b, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_add_char(b, ',');
        buf_add_int(b, items[i].id);
    }
    buf_add_char(b, ']');
}

static void give(struct pop *w, const struct item *items, size_t count, bool direct)
{
    struct buf b;
    struct json_writer json;
    buf_init(&b);
    jw_init(&json, &b);
    jw_array(&json);
    for (size_t i = 0; i < count; i++)
        write_item(&json, &items[i]);
    jw_end_array(&json);
    pool_pop_done(w, str_dup(task_arena(w->task), buf_str(&b)), (int64_t)count, direct);
    buf_release(&b);
}

/* --- by their ids --- */

void pool_items_of(struct task *t, struct pool *x, struct str ids, struct pop *out)
{
    struct sql_rows r;
    int err = sql_call(t, x->pools->options.sql, &r,
                       pool_sql(task_arena(t), x->id.type,
                                "SELECT i.id, i.$text FROM " POOL_IDS
                                " STRAIGHT_JOIN $table AS i FORCE INDEX (PRIMARY)"
                                " ON i.id = j.id ORDER BY j.place"),
                       sql_text(ids));
    if (!err && r.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "the items of this request have been deleted");
    if (err)
        pool_pop_fail(out, err, task_error(t));
    else
        give(out, items_of(t, &r, 0), r.count, false);
}

/* --- requests that were answered before --- */

#define OF_REQUEST                                                                                 \
    " FROM pool_request WHERE type = ? AND group_id = ? AND uid = ? AND request_id = ?"            \
    " AND at > UNIX_TIMESTAMP() - ?"
#define REQUEST_VALUES(x, w)                                                                       \
    POOL_VALUES((x)->id), sql_int((w)->uid), sql_text((w)->request), sql_int(POOL_REQUEST_MS / 1000)

/* A pop that is served is gone as soon as this task waits: it is forgotten at once. */
static void serve_known(struct task *t, struct pool *x, struct str ids, struct pop **at)
{
    struct pop *w = *at;
    *at = NULL;
    pool_items_of(t, x, ids, w);
}

/* Those that still wait. */
static size_t keep_waiting(struct pop **batch, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (batch[i])
            batch[kept++] = batch[i];
    return kept;
}

int pool_recall(struct task *t, struct pool *x, struct pop **batch, size_t *count)
{
    int err = 0;
    for (size_t i = 0; i < *count && !err; i++) {
        const struct pool_wish *w = batch[i]->wish;
        struct sql_rows r;
        if (!w->request.p)
            continue;
        err = sql_call(t, x->pools->options.sql, &r, "SELECT ids" OF_REQUEST, REQUEST_VALUES(x, w));
        if (!err && r.count)
            serve_known(t, x, r.cells[0].s, &batch[i]);
    }
    *count = keep_waiting(batch, *count);
    return err;
}

/* --- taking --- */

struct drawing {
    struct pool *pool;
    struct pop **batch;
    size_t count;
    struct str *known; /* of each pop: ids that its request was given before; p == NULL: none */
    size_t *given;     /* how many of items are for it */
    struct item *items;
    size_t item_count;
};

static int find_known(struct task *t, struct sql *c, struct drawing *d, int64_t *wanted)
{
    int err = 0;
    *wanted = 0;
    for (size_t i = 0; i < d->count && !err; i++) {
        const struct pool_wish *w = d->batch[i]->wish;
        struct sql_rows r = {.count = 0};
        if (w->request.p)
            err =
                sql_on(t, c, &r, "SELECT ids" OF_REQUEST " FOR UPDATE", REQUEST_VALUES(d->pool, w));
        d->known[i] = !err && r.count ? r.cells[0].s : STR_NULL;
        *wanted += d->known[i].p ? 0 : w->count;
    }
    return err;
}

/* By their ids, not again by what they were chosen by: another program may have changed that. */
static int use(struct task *t, struct sql *c, const struct drawing *d)
{
    struct sql_rows r;
    struct buf ids;
    if (d->item_count == 0)
        return 0;
    buf_init(&ids);
    write_ids(&ids, d->items, d->item_count);
    int err = sql_on(t, c, &r,
                     pool_sql(task_arena(t), d->pool->id.type,
                              "UPDATE " POOL_IDS " STRAIGHT_JOIN $table AS i FORCE INDEX (PRIMARY)"
                              " ON i.id = j.id"
                              " SET i.status = 0, i.number = " POOL_UNNUMBERED ","
                              " i.used_at = UNIX_TIMESTAMP() WHERE i.status = 1"),
                     sql_text(buf_str(&ids)));
    buf_release(&ids);
    if (!err && r.affected != d->item_count)
        err = task_fail(t, ERR_CONFLICT, "items of %.*s were changed by another program",
                        STR_ARG(d->pool->key));
    return err;
}

static int note_request(struct task *t, struct sql *c, const struct drawing *d, size_t pop,
                        const struct item *items)
{
    const struct pool_wish *w = d->batch[pop]->wish;
    struct buf b;
    buf_init(&b);
    write_ids(&b, items, d->given[pop]);
    int err = sql_on(t, c, NULL,
                     "REPLACE INTO pool_request (type, group_id, uid, request_id, ids, at)"
                     " VALUES (?, ?, ?, ?, ?, UNIX_TIMESTAMP())",
                     POOL_VALUES(d->pool->id), sql_int(w->uid), sql_text(w->request),
                     sql_text(buf_str(&b)));
    buf_release(&b);
    return err;
}

/* Whose each item is, in the order of both. */
static int share_out(struct task *t, struct sql *c, struct drawing *d)
{
    int err = 0;
    size_t at = 0;
    for (size_t i = 0; i < d->count && !err; i++) {
        const struct pool_wish *w = d->batch[i]->wish;
        size_t wanted = d->known[i].p ? 0 : (size_t)w->count, left = d->item_count - at;
        d->given[i] = wanted < left ? wanted : left;
        if (d->given[i] && w->request.p)
            err = note_request(t, c, d, i, d->items + at);
        at += d->given[i];
    }
    return err;
}

static int draw(struct task *t, struct sql *c, void *arg)
{
    struct drawing *d = arg;
    struct pool *x = d->pool;
    struct sql_rows r = {.count = 0};
    int64_t wanted = 0;
    int err = pool_lock_group(t, c, x->id, NULL);
    if (!err)
        err = find_known(t, c, d, &wanted);
    if (!err)
        err = pool_find_usable(t, c, x, wanted, &r);
    if (err)
        return err;
    d->item_count = r.count;
    d->items = items_of(t, &r, 1);
    err = use(t, c, d);
    if (!err)
        err = share_out(t, c, d);
    if (!err && d->item_count)
        err = pool_note_handed(t, c, x->id, (int64_t)d->item_count);
    return err;
}

/* --- requests that have ids: one store answers, the list or MySQL --- */

/* Keys of the requests that have an id; of[k]: whose the k-th is. */
static size_t request_keys(struct task *t, const struct pool *x, struct pop **batch, size_t count,
                           struct str *keys, size_t *of)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct pool_wish *w = batch[i]->wish;
        if (!w->request.p)
            continue;
        keys[n] =
            key_pool_request(task_arena(t), x->id.type->name, x->id.group, w->uid, w->request);
        of[n++] = i;
    }
    return n;
}

/* Redis is told before MySQL answers, so that no list does meanwhile. Requests that a list has
 * answered are served: returns how many still wait. A Redis that does not answer will be told by
 * the list that begins in it, to ask MySQL first. */
static size_t mark_requests(struct task *t, struct pool *x, struct pop **batch, size_t count)
{
    struct str *keys = ARENA_ARRAY(task_arena(t), struct str, count);
    size_t *of = ARENA_ARRAY(task_arena(t), size_t, count);
    size_t n = request_keys(t, x, batch, count, keys, of);
    const struct redis_reply *r;
    if (n == 0 || !pool_redis(x) ||
        SCRIPT(t, x->pools->options.redis, pool_asked, &r, .state = x->state, .requests = {keys, n},
               .ms = str_int(task_arena(t), POOL_REQUEST_MS)) ||
        r->type != REDIS_ARRAY || r->count != n)
        return count;
    for (size_t i = 0; i < n; i++)
        if (r->items[i]->str.n)
            serve_known(t, x, r->items[i]->str, &batch[of[i]]);
    return keep_waiting(batch, count);
}

/* Those that got nothing: a list may answer them. */
static void unmark_requests(struct task *t, struct pool *x, struct pop **batch, size_t count)
{
    struct str *keys = ARENA_ARRAY(task_arena(t), struct str, count + 1);
    size_t *of = ARENA_ARRAY(task_arena(t), size_t, count + 1);
    size_t n = request_keys(t, x, batch, count, keys, of);
    int64_t removed;
    if (n && pool_redis(x))
        (void)!SCRIPT_NUMBER(t, x->pools->options.redis, pool_unasked, &removed,
                             .requests = {keys, n});
}

/* --- all of it --- */

static int draw_for(struct task *t, struct pool *x, struct pop **batch, size_t *count)
{
    struct arena *a = task_arena(t);
    struct drawing d = {.pool = x,
                        .batch = batch,
                        .count = *count,
                        .known = ARENA_ARRAY(a, struct str, *count),
                        .given = ARENA_ARRAY(a, size_t, *count)};
    int err = sql_tx(t, x->pools->options.sql, draw, &d);
    if (err)
        return err == ERR_CONFLICT ? task_fail(t, ERR_BUSY, "%s", task_error(t)) : err;
    metric_add(x->pools->direct, (int64_t)d.item_count);
    for (size_t i = 0, at = 0; i < *count; i++) {
        if (d.known[i].p) {
            serve_known(t, x, d.known[i], &batch[i]);
        } else if (d.given[i]) {
            give(batch[i], d.items + at, d.given[i], !pool_redis(x));
            batch[i] = NULL;
        }
        at += d.given[i];
    }
    *count = keep_waiting(batch, *count);
    unmark_requests(t, x, batch, *count);
    return 0;
}

int pool_direct(struct task *t, struct pool *x, struct pop **batch, size_t *count)
{
    int err = pool_ensure(t, x);
    if (!err)
        *count = mark_requests(t, x, batch, *count);
    return err || *count == 0 ? err : draw_for(t, x, batch, count);
}

int pool_left(struct task *t, struct pool *x)
{
    struct arena *a = task_arena(t);
    struct sql_rows r;
    /* While the list is not known, what it surely has not handed out counts. */
    int err = sql_call(t, x->pools->options.sql, &r,
                       "SELECT 1 FROM pool_group AS g JOIN pool_list AS l"
                       " ON l.type = g.type AND l.group_id = g.group_id WHERE g.type = ?"
                       " AND g.group_id = ? AND g.numbered > GREATEST(g.marked,"
                       " IF(? > 0, ? - 1, l.handed_limit))",
                       POOL_VALUES(x->id), sql_int(x->first), sql_int(x->first));
    if (err || r.count)
        return err;
    err =
        sql_call(t, x->pools->options.sql, &r,
                 pool_sql(a, x->id.type,
                          "SELECT 1 FROM $table FORCE INDEX (in_order) WHERE group_id = ? LIMIT 1"),
                 sql_int(x->id.group));
    if (err)
        return err;
    if (r.count == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no group %.*s: nothing was ever put into it",
                         STR_ARG(x->key));
    return task_fail(t, ERR_CONFLICT, "nothing is left in %.*s: all of its items are used",
                     STR_ARG(x->key));
}
