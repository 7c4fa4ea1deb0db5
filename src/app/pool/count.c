/* What there is: items by status from MySQL, lengths of lists from Redis, paces from pool_group. */
#include <stdlib.h>

#include "app/pool/pools_private.h"
#include "engine/store/keys.h"

#define LOOKED_AT_ONCE 500
#define PACE_S_MIN     10 /* a pace is counted over so long at least */

struct counting {
    struct pools *pools;
    struct pool_level *list;
    size_t count, cap;
};

static struct pool_level *level_of(struct task *t, struct counting *c, struct str type,
                                   int64_t group)
{
    struct pool_level *last = c->count ? &c->list[c->count - 1] : NULL;
    if (last && last->group == group && str_eq(last->type, type))
        return last;
    if (c->count == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 64;
        c->list =
            arena_grow(task_arena(t), c->list, c->cap * sizeof *c->list, cap * sizeof *c->list);
        c->cap = cap;
    }
    c->list[c->count] = (struct pool_level){.type = type, .group = group, .minutes = -1};
    return &c->list[c->count++];
}

/* Items of which some were taken once, and became usable again: their rows are read. */
static int count_back(struct task *t, struct counting *c, const struct pool_type *type,
                      size_t first)
{
    struct sql_rows r;
    int err = sql_call(t, c->pools->options.sql, &r,
                       pool_sql(task_arena(t), type,
                                "SELECT p.group_id, COUNT(*) FROM pool_batch AS p STRAIGHT_JOIN"
                                " $table AS i FORCE INDEX (in_order) ON i.group_id = p.group_id"
                                " AND i.batch_id = p.batch_id AND i.id >= p.next_id"
                                " AND i.id < p.fresh_id WHERE p.type = ?"
                                " AND p.next_id < p.fresh_id AND i.number = 0 AND i.status = 1"
                                " GROUP BY p.group_id ORDER BY p.group_id"),
                       sql_text(str_of(type->name)));
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        while (first < c->count && c->list[first].group < row[0].i)
            first++;
        if (first < c->count && c->list[first].group == row[0].i) {
            c->list[first].usable += row[1].i;
            c->list[first].used -= row[1].i;
        }
    }
    return err;
}

/* By the index alone: those that are not usable are used, but for some of the last ones. */
static int count_items(struct task *t, struct counting *c, const struct pool_type *type)
{
    struct sql_rows r;
    int err = sql_call(t, c->pools->options.sql, &r,
                       pool_sql(task_arena(t), type,
                                "SELECT i.group_id,"
                                " CAST(SUM(i.id >= COALESCE(p.fresh_id, 0)) AS SIGNED), COUNT(*)"
                                " FROM $table AS i FORCE INDEX (in_order) LEFT JOIN pool_batch AS p"
                                " ON p.type = ? AND p.group_id = i.group_id"
                                " AND p.batch_id = i.batch_id GROUP BY i.group_id"
                                " ORDER BY i.group_id"),
                       sql_text(str_of(type->name)));
    size_t first = c->count;
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        struct pool_level *l = level_of(t, c, str_of(type->name), row[0].i);
        l->usable = row[1].i;
        l->used = row[2].i - row[1].i;
    }
    return err ? err : count_back(t, c, type, first);
}

static struct pool_level *find(const struct counting *c, struct str type, int64_t group)
{
    size_t from = 0, to = c->count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        struct pool_level *l = &c->list[middle];
        int order = str_compare(l->type, type);
        if (order == 0 && l->group == group)
            return l;
        if (order < 0 || (order == 0 && l->group < group))
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

/* Of each group the numbers that are not marked yet. */
static int count_numbered(struct task *t, struct counting *c, const struct pool_type *type)
{
    struct sql_rows r;
    int err = sql_call(t, c->pools->options.sql, &r,
                       "SELECT group_id, numbered - marked FROM pool_group"
                       " WHERE type = ? AND numbered > marked",
                       sql_text(str_of(type->name)));
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        struct pool_level *l = find(c, str_of(type->name), row[0].i);
        if (!l)
            continue;
        l->handed_out = row[1].i < l->used ? row[1].i : l->used; /* less those in the list, later */
        l->used -= l->handed_out;
    }
    return err;
}

static int read_paces(struct task *t, struct counting *c)
{
    struct sql_rows r;
    int err = sql_call(t, c->pools->options.sql, &r,
                       "SELECT type, group_id, unseen, handed - since_handed,"
                       " UNIX_TIMESTAMP() - since_at FROM pool_group");
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        struct pool_level *l = find(c, row[0].s, row[1].i);
        if (!l)
            continue;
        int64_t seconds = row[4].i > PACE_S_MIN ? row[4].i : PACE_S_MIN;
        l->unseen = row[2].i;
        l->per_hour = row[3].i * 3600 / seconds;
    }
    return err;
}

/* *degraded: Redis does not answer. */
static void read_lists(struct task *t, struct counting *c, bool *degraded)
{
    int err = c->pools->options.redis ? 0 : ERR_UNAVAILABLE;
    for (size_t at = 0; at < c->count && !err; at += LOOKED_AT_ONCE) {
        struct arena_mark mark = arena_mark(task_arena(t));
        size_t n = c->count - at < LOOKED_AT_ONCE ? c->count - at : LOOKED_AT_ONCE;
        struct redis_batch b;
        const struct redis_reply *const *replies;
        redis_batch_init(&b, t, c->pools->options.redis);
        for (size_t i = 0; i < n; i++) {
            struct str key = key_pool(task_arena(t), c->list[at + i].type.p, c->list[at + i].group);
            redis_batch_add(&b, key, STR("LLEN"), key);
        }
        err = redis_batch_run(&b, &replies);
        for (size_t i = 0; !err && i < n; i++) {
            struct pool_level *l = &c->list[at + i];
            int64_t length = redis_number(replies[i], 0);
            l->in_list = length < l->handed_out ? length : l->handed_out;
            l->handed_out -= l->in_list;
        }
        arena_reset(task_arena(t), mark);
    }
    *degraded = err != 0;
}

static void tell_ends(struct counting *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct pool_level *l = &c->list[i];
        if (l->per_hour > 0)
            l->minutes = (l->usable + l->in_list) * 60 / l->per_hour;
    }
}

static int by_type(const void *a, const void *b)
{
    const struct pool_level *x = a, *y = b;
    int order = str_compare(x->type, y->type);
    return order ? order : (x->group > y->group) - (x->group < y->group);
}

static int count(struct task *t, struct pools *p)
{
    struct counting c = {.pools = p};
    int64_t begun_ms = loop_now_ms(task_loop(t));
    bool degraded;
    int err = 0;
    for (size_t i = 0; i < pool_type_count && !err; i++)
        err = count_items(t, &c, &pool_types[i]);
    if (c.count)
        qsort(c.list, c.count, sizeof *c.list, by_type);
    for (size_t i = 0; i < pool_type_count && !err; i++)
        err = count_numbered(t, &c, &pool_types[i]);
    if (!err)
        err = read_paces(t, &c);
    if (err)
        return err;
    read_lists(t, &c, &degraded);
    tell_ends(&c);
    arena_release(&p->counted);
    arena_init(&p->counted);
    struct pool_level *kept = ARENA_ARRAY(&p->counted, struct pool_level, c.count + 1);
    if (c.count)
        memcpy(kept, c.list, c.count * sizeof *kept);
    p->levels = (struct pool_levels){.list = kept,
                                     .count = c.count,
                                     .counted_ms = loop_wall_ms(task_loop(t)),
                                     .degraded = degraded};
    p->counted_ms = loop_now_ms(task_loop(t));
    p->count_ms = p->counted_ms - begun_ms;
    return 0;
}

static bool is_fresh(struct task *t, const struct pools *p)
{
    int64_t age_ms = loop_now_ms(task_loop(t)) - p->counted_ms;
    return p->counted_ms && age_ms < POOL_COUNT_MS + POOL_COUNT_SHARE * p->count_ms;
}

/* Singleflight: one task counts, others wait. */
int pools_count(struct task *t, struct pools *p, struct pool_levels *out)
{
    int err = 0;
    while (p->counting && !err)
        err = waitq_wait(t, &p->count_done);
    if (!err && !is_fresh(t, p)) {
        struct task_scope s = task_scope(t);
        p->counting = true;
        err = count(t, p);
        p->counting = false;
        waitq_wake_all(&p->count_done);
        task_scope_end(t, s);
    }
    if (err)
        return err;
    struct pool_level *list = ARENA_ARRAY(task_arena(t), struct pool_level, p->levels.count + 1);
    memcpy(list, p->levels.list, p->levels.count * sizeof *list);
    *out = p->levels;
    out->list = list;
    return 0;
}
