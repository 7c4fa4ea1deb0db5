/* The roles of pools. */
#include "app/pool/pools_private.h"
#include "base/log.h"
#include "engine/store/generation.h"
#include "engine/store/keys.h"

#define LOOKED_AT_ONCE 500
#define LOOK_COMMANDS  2 /* of a group */

/* --- marks, on every node --- */

/* Those that need something, held. */
static size_t collect(struct pools *p, int64_t now_ms, bool all, struct arena *a,
                      struct pool ***out)
{
    size_t n = 0, most = 0;
    list_each (it, &p->all)
        most++;
    *out = ARENA_ARRAY(a, struct pool *, most + 1);
    list_each (it, &p->all) {
        struct pool *x = list_entry(it, struct pool, link);
        bool rests = x->limit >= x->first && now_ms - x->popped_ms >= p->options.rest_ms;
        if (all || (x->first && (x->unmarked_ms || rests))) {
            x->busy++;
            (*out)[n++] = x;
        }
    }
    return n;
}

static int attend(struct task *t, struct pool *x, bool all)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (all)
        pool_unlock(t, x); /* of a fill that was cancelled */
    int err = x->unmarked_ms ? pool_mark(t, x, x->first) : 0;
    bool rests = all || now_ms - x->popped_ms >= x->pools->options.rest_ms;
    if (!err && rests && x->name[0] && x->limit >= x->first)
        err = pool_settle(t, x);
    return err;
}

static int attend_all(struct task *t, struct pools *p, bool all)
{
    int64_t now_ms = loop_now_ms(task_loop(t)), behind_ms = 0;
    struct pool **list;
    int first_err = 0;
    size_t n = collect(p, now_ms, all, task_arena(t), &list);
    for (size_t i = 0; i < n; i++) {
        int64_t age_ms = list[i]->unmarked_ms ? now_ms - list[i]->unmarked_ms : 0;
        int err = err_is_outage(first_err) ? 0 : attend(t, list[i], all);
        if (err && !first_err)
            first_err = err;
        behind_ms = age_ms > behind_ms ? age_ms : behind_ms;
        pool_put(list[i]);
    }
    metric_set(p->behind, behind_ms * 1000);
    return first_err;
}

int pools_mark_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    pool_low_fades(arg, loop_now_ms(task_loop(t)));
    return attend_all(t, arg, false);
}

void pools_part(struct task *t, struct pools *p)
{
    if (attend_all(t, p, true))
        log_info("pool", "not all of what was handed out could be noted: %s", task_error(t));
}

/* --- filling, on one node --- */

struct round {
    struct pools *pools;
    struct role_turn *turn;
    int64_t bytes; /* of all lists */
    int64_t groups;
};

struct seen {
    int64_t group;
    bool usable, numbered; /* it may have items of this status */
    int64_t last;          /* number that an item got */
};

/* By the index alone, and only its first and last entry of each batch. */
static int find_groups(struct task *t, struct pools *p, const struct pool_type *type,
                       struct seen **out, size_t *count)
{
    struct sql_rows r;
    int err =
        sql_call(t, p->options.sql, &r,
                 pool_sql(task_arena(t), type,
                          "SELECT b.group_id, MAX(p.next_id IS NULL OR p.next_id <= b.last_id)"
                          " FROM (SELECT group_id, batch_id, MAX(id) AS last_id FROM $table"
                          "  FORCE INDEX (in_order) GROUP BY group_id, batch_id) AS b"
                          " LEFT JOIN pool_batch AS p ON p.type = ?"
                          " AND p.group_id = b.group_id AND p.batch_id = b.batch_id"
                          " GROUP BY b.group_id ORDER BY b.group_id"),
                 sql_text(str_of(type->name)));
    if (err)
        return err;
    struct seen *list = ARENA_ARRAY(task_arena(t), struct seen, r.count + 1);
    size_t n = 0;
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        if (row[0].i >= 1 && row[0].i <= POOL_GROUP_MAX)
            list[n++] = (struct seen){.group = row[0].i, .usable = row[1].i != 0};
    }
    *out = list;
    *count = n;
    return 0;
}

/* Both are in the order of groups. */
static int find_last(struct task *t, struct pools *p, const struct pool_type *type,
                     struct seen *list, size_t count)
{
    struct sql_rows r;
    int err = sql_call(t, p->options.sql, &r,
                       "SELECT group_id, numbered, marked FROM pool_group WHERE type = ?"
                       " ORDER BY group_id",
                       sql_text(str_of(type->name)));
    for (size_t i = 0, at = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        while (at < count && list[at].group < row[0].i)
            at++;
        if (at < count && list[at].group == row[0].i) {
            list[at].last = row[1].i;
            list[at].numbered = row[1].i > row[2].i;
        }
    }
    return err;
}

/* Those in which nothing can be done are left out: all of their items are used. */
static size_t keep_live(struct seen *list, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i].usable || list[i].numbered)
            list[n++] = list[i];
    return n;
}

/* What Redis has of some groups: two replies each. */
static int look_at(struct task *t, struct pools *p, const struct pool_type *type,
                   const struct seen *list, size_t count, const struct redis_reply *const **replies)
{
    struct arena *a = task_arena(t);
    struct redis_batch b;
    redis_batch_init(&b, t, p->options.redis);
    for (size_t i = 0; i < count; i++) {
        struct str state = key_pool_state(a, type->name, list[i].group);
        struct str key = key_pool(a, type->name, list[i].group);
        redis_batch_add(&b, state, STR("HMGET"), state, STR("generation"), STR("first"),
                        STR("marked"), STR("pushed"), STR("pushed_bytes"));
        redis_batch_add(&b, key, STR("LLEN"), key);
    }
    return redis_batch_run(&b, replies);
}

static int tend(struct task *t, struct round *r, struct pool_id id, const struct seen *s,
                const struct redis_reply *const *replies)
{
    if (replies[0]->type != REDIS_ARRAY || replies[0]->count != 5)
        return 0;
    const struct redis_reply *const *f = replies[0]->items;
    int64_t length = redis_number(replies[1], 0), first = redis_number(f[1], 0);
    int64_t pushed = redis_number(f[3], 0);
    r->bytes += length * (redis_number(f[4], 0) / (pushed ? pushed : 1));
    r->groups++;
    struct pool *x = pool_get(r->pools, id);
    bool counts = f[0]->type == REDIS_STRING &&
                  generation_is_at(r->pools->options.redis, x->state, f[0]->str);
    int err = 0;
    if (s->numbered && counts && first - 1 > redis_number(f[2], 0))
        err = pool_mark(t, x, first);
    /* A filler that died has left numbers behind the list's last: in no list they would count as
     * handed out. */
    bool left = s->numbered && s->last >= first + length;
    if (!err && (!counts || left || (s->usable && length < POOL_LOW_ITEMS)))
        err = pool_fill(t, x, POOL_LOW_ITEMS);
    if (!err)
        err = role_keep(t, r->turn);
    pool_put(x);
    return err == ERR_BUSY ? 0 : err;
}

static int tend_type(struct task *t, struct round *r, const struct pool_type *type)
{
    struct seen *list;
    size_t count = 0;
    int err = find_groups(t, r->pools, type, &list, &count);
    if (!err)
        err = find_last(t, r->pools, type, list, count);
    if (!err)
        count = keep_live(list, count);
    for (size_t at = 0; at < count && !err; at += LOOKED_AT_ONCE) {
        struct arena_mark mark = arena_mark(task_arena(t));
        const struct redis_reply *const *replies;
        size_t n = count - at < LOOKED_AT_ONCE ? count - at : LOOKED_AT_ONCE;
        err = look_at(t, r->pools, type, list + at, n, &replies);
        for (size_t i = 0; i < n && !err; i++)
            err = tend(t, r, (struct pool_id){type, list[at + i].group}, &list[at + i],
                       replies + LOOK_COMMANDS * i);
        arena_reset(task_arena(t), mark);
    }
    return err;
}

int pools_fill_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct round r = {.pools = arg, .turn = turn};
    int err = 0;
    for (size_t i = 0; i < pool_type_count && !err; i++)
        err = tend_type(t, &r, &pool_types[i]);
    int low = pool_find_low(t, r.pools); /* whatever cannot be filled */
    err = err ? err : low;
    if (!err)
        err = redis_call(t, r.pools->options.redis, key_pools, NULL, STR("HSET"), key_pools,
                         STR("bytes"), str_int(task_arena(t), r.bytes));
    if (!err)
        err = sql_call(t, r.pools->options.sql, NULL,
                       "DELETE FROM pool_request WHERE at < UNIX_TIMESTAMP() - ?",
                       sql_int(POOL_REQUEST_MS / 1000));
    return err;
}
