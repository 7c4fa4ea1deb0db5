/* Where the usable items of a group are: batch by batch, from the place on that pool_batch has. */
#include "app/pool/pools_private.h"

#define KNOWN_MS     5000 /* batches that have some are looked for this often, or when the newest */
#define KNOWN_DRY_MS 500  /* batch has changed, or those that are known have no more */

struct finding {
    struct pool *pool;
    size_t wanted, count;
    struct sql_value *cells; /* POOL_USABLE_COLUMNS each */
};

/* --- which batches --- */

static int look_for_batches(struct task *t, struct sql *c, struct pool *x)
{
    struct pool_places *p = &x->places;
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     pool_sql(task_arena(t), x->id.type,
                              "SELECT l.batch_id, l.last_id FROM " POOL_PLACES
                              " ORDER BY l.batch_id DESC LIMIT ?"),
                     POOL_PLACES_VALUES(x->id), sql_int(POOL_PLACES_MAX));
    if (err)
        return err;
    p->count = r.count;
    for (size_t i = 0; i < r.count; i++)
        p->list[i] =
            (struct pool_spot){.batch = sql_row(&r, i)[0].i, .last_id = sql_row(&r, i)[1].i};
    p->found_ms = loop_now_ms(task_loop(t));
    return 0;
}

/* The newest batch and its last id: MariaDB finds them in the index without reading further, which
 * it does for no statement about all batches while its statistics are old. */
static int look_for_newest(struct task *t, struct sql *c, struct pool *x, bool *changed)
{
    struct pool_places *p = &x->places;
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     pool_sql(task_arena(t), x->id.type,
                              "SELECT batch_id, id FROM $table FORCE INDEX (in_order)"
                              " WHERE group_id = ? ORDER BY batch_id DESC, id DESC LIMIT 1"),
                     sql_int(x->id.group));
    if (err)
        return err;
    int64_t batch = r.count ? r.cells[0].i : 0, id = r.count ? r.cells[1].i : 0;
    *changed = p->newest != batch || p->newest_id != id;
    p->newest = batch;
    p->newest_id = id;
    return 0;
}

/* Those that are known, or new ones. */
static int ensure_known(struct task *t, struct sql *c, struct pool *x)
{
    struct pool_places *p = &x->places;
    bool changed;
    int64_t age_ms = loop_now_ms(task_loop(t)) - p->found_ms;
    int err = look_for_newest(t, c, x, &changed);
    if (err || (p->found_ms && !changed && age_ms < (p->count ? KNOWN_MS : KNOWN_DRY_MS)))
        return err;
    err = look_for_batches(t, c, x);
    if (err)
        p->found_ms = 0;
    return err;
}

/* Where they are now: other nodes take items, too. */
static int read_places(struct task *t, struct sql *c, struct pool *x)
{
    struct pool_places *p = &x->places;
    struct sql_rows r;
    if (p->count == 0)
        return 0;
    int err =
        sql_on(t, c, &r,
               "SELECT batch_id, next_id FROM pool_batch WHERE type = ? AND group_id = ?"
               " AND batch_id BETWEEN ? AND ? ORDER BY batch_id DESC",
               POOL_VALUES(x->id), sql_int(p->list[p->count - 1].batch), sql_int(p->list[0].batch));
    for (size_t i = 0, at = 0; !err && i < p->count; i++) {
        while (at < r.count && sql_row(&r, at)[0].i > p->list[i].batch)
            at++;
        bool known = at < r.count && sql_row(&r, at)[0].i == p->list[i].batch;
        p->list[i].next_id = known ? sql_row(&r, at)[1].i : 0;
    }
    return err;
}

/* --- items --- */

/* The next ones of a batch. Moves its place behind them, or behind the batch. */
static int find_in(struct task *t, struct sql *c, struct finding *f, struct pool_spot *p)
{
    struct sql_rows r;
    const struct pool *x = f->pool;
    int64_t room = (int64_t)(f->wanted - f->count);
    int err = sql_on(t, c, &r,
                     pool_sql(task_arena(t), x->id.type,
                              "SELECT number, id, $text FROM $table FORCE INDEX (in_order)"
                              " WHERE group_id = ? AND batch_id = ? AND id >= ? AND" POOL_USABLE
                              " ORDER BY id LIMIT ?"),
                     sql_int(x->id.group), sql_int(p->batch), sql_int(p->next_id), sql_int(room));
    if (err)
        return err;
    if (r.count)
        memcpy(f->cells + f->count * POOL_USABLE_COLUMNS, r.cells,
               r.count * POOL_USABLE_COLUMNS * sizeof *f->cells);
    f->count += r.count;
    int64_t last = r.count ? sql_row(&r, r.count - 1)[1].i : 0;
    p->next_id = (int64_t)r.count == room || last > p->last_id ? last + 1 : p->last_id + 1;
    return 0;
}

#define NOTE_PLACES "INSERT INTO pool_batch (type, group_id, batch_id, next_id, fresh_id) VALUES"
enum { PLACE_COLUMNS = 5 };

static int note_places(struct task *t, struct sql *c, struct pool_id id,
                       const struct pool_spot *list, size_t count)
{
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, PLACE_COLUMNS * count);
    for (size_t i = 0; i < count; i++) {
        const struct sql_value row[PLACE_COLUMNS] = {POOL_VALUES(id), sql_int(list[i].batch),
                                                     sql_int(list[i].next_id),
                                                     sql_int(list[i].next_id)};
        memcpy(&cells[PLACE_COLUMNS * i], row, sizeof row);
    }
    return sql_bulk(t, c, NOTE_PLACES,
                    "ON DUPLICATE KEY UPDATE next_id = VALUES(next_id),"
                    " fresh_id = GREATEST(fresh_id, VALUES(fresh_id))",
                    PLACE_COLUMNS, count, cells, NULL);
}

/* From the batches that are known. */
static int find_some(struct task *t, struct sql *c, struct finding *f)
{
    struct pool *x = f->pool;
    struct pool_spot moved[POOL_PLACES_MAX];
    size_t count = 0;
    int err = read_places(t, c, x);
    for (size_t i = 0; !err && i < x->places.count && f->count < f->wanted; i++) {
        struct pool_spot *p = &x->places.list[i];
        if (p->next_id > p->last_id)
            continue;
        err = find_in(t, c, f, p);
        moved[count++] = *p;
    }
    return err || count == 0 ? err : note_places(t, c, x->id, moved, count);
}

int pool_find_usable(struct task *t, struct sql *c, struct pool *x, int64_t wanted,
                     struct sql_rows *out)
{
    struct finding f = {.pool = x, .wanted = (size_t)wanted};
    f.cells = ARENA_ARRAY(task_arena(t), struct sql_value, POOL_USABLE_COLUMNS * (f.wanted + 1));
    int err = ensure_known(t, c, x);
    if (!err)
        err = find_some(t, c, &f);
    while (!err && f.count < f.wanted && x->places.count) { /* there may be further ones */
        err = look_for_batches(t, c, x);
        if (!err)
            err = find_some(t, c, &f);
    }
    *out = (struct sql_rows){
        .count = err ? 0 : f.count, .columns = POOL_USABLE_COLUMNS, .cells = f.cells};
    return err;
}

int pool_places_back(struct task *t, struct sql *c, struct pool_id id, const struct sql_rows *rows)
{
    if (rows->count == 0)
        return 0;
    struct sql_value *cells =
        ARENA_ARRAY(task_arena(t), struct sql_value, PLACE_COLUMNS * rows->count);
    for (size_t i = 0; i < rows->count; i++) {
        const struct sql_value *r = sql_row(rows, i);
        const struct sql_value row[PLACE_COLUMNS] = {POOL_VALUES(id), r[0], r[1], sql_int(0)};
        memcpy(&cells[PLACE_COLUMNS * i], row, sizeof row);
    }
    return sql_bulk(t, c, NOTE_PLACES,
                    "ON DUPLICATE KEY UPDATE next_id = LEAST(next_id, VALUES(next_id))",
                    PLACE_COLUMNS, rows->count, cells, NULL);
}
