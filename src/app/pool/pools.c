#include <stdlib.h>

#include "app/pool/pools_private.h"
#include "base/map.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "engine/store/cluster.h"

#define REST_MS 5000
#define PACE_S  150

static int64_t *counter(struct metrics *m, const char *name, const char *help)
{
    return metric(m, METRIC_COUNTER, name, "", help);
}

struct pools *pools_new(const struct pools_options *o)
{
    struct pools *p = check_memory(calloc(1, sizeof *p));
    struct metrics *m = o->metrics;
    p->options = *o;
    if (!o->redis_bulk)
        p->options.redis_bulk = o->redis;
    if (!o->rest_ms)
        p->options.rest_ms = REST_MS;
    p->by_key = map_new();
    arena_init(&p->counted);
    waitq_init(&p->count_done);
    list_init(&p->all);
    p->pops = counter(m, "millrace_pool_pops_total", "Pops that were given items.");
    p->items = counter(m, "millrace_pool_items_total", "Items handed out.");
    p->direct = counter(m, "millrace_pool_direct_items_total",
                        "Items handed out by MySQL: a list was empty, or Redis away.");
    p->numbered = counter(m, "millrace_pool_numbered_total", "Items put into lists.");
    p->marks = counter(m, "millrace_pool_marked_total", "Items marked as used.");
    p->unseen = counter(m, "millrace_pool_unseen_total",
                        "Items that count as used because Redis forgot whether they were handed "
                        "out.");
    p->mended = counter(m, "millrace_pool_mended_total", "Lists begun anew.");
    p->behind = metric(m, METRIC_GAUGE_US, "millrace_pool_marks_behind_seconds", "",
                       "Age of the oldest pop of this node whose items are not marked as used.");
    p->low = metric(m, METRIC_GAUGE, "millrace_pool_groups_low", "",
                    "Groups that run out within an hour; shown by the node that fills.");
    p->fill_seconds = histogram_new(m, "millrace_pool_fill_seconds", "Filling a list.");
    return p;
}

/* --- the groups that this node remembers --- */

static void forget(struct pool *x)
{
    list_del(&x->link);
    map_del(x->pools->by_key, x->key);
    arena_release(&x->arena);
    free(x);
}

void pools_free(struct pools *p)
{
    if (!p)
        return;
    while (!list_empty(&p->all)) {
        struct pool *x = list_entry(p->all.next, struct pool, link);
        check(x->busy == 0 && list_empty(&x->waiting));
        forget(x);
    }
    map_free(p->by_key);
    arena_release(&p->counted);
    histogram_free(p->fill_seconds);
    free(p);
}

/* Those that were used longest ago go first; one that is held, or has something to mark, stays. */
static void make_room(struct pools *p)
{
    struct list *it = p->all.next;
    while (map_count(p->by_key) >= POOL_HELD_MAX && it != &p->all) {
        struct pool *x = list_entry(it, struct pool, link);
        it = it->next;
        if (x->busy == 0 && x->unmarked_ms == 0)
            forget(x);
    }
}

struct pool *pool_get(struct pools *p, struct pool_id id)
{
    struct arena a;
    arena_init(&a);
    struct str key = pool_label(&a, id);
    struct pool *x = map_get(p->by_key, key);
    if (x) {
        arena_release(&a);
        list_del(&x->link);
    } else {
        make_room(p);
        x = check_memory(calloc(1, sizeof *x));
        x->pools = p;
        x->id = id;
        x->arena = a;
        x->key = key;
        x->list = key_pool(&x->arena, id.type->name, id.group);
        x->state = key_pool_state(&x->arena, id.type->name, id.group);
        x->filling = key_pool_filling(&x->arena, id.type->name, id.group);
        list_init(&x->waiting);
        waitq_init(&x->filled);
        waitq_init(&x->raised);
        (void)map_set(p->by_key, key, x);
    }
    list_push(&p->all, &x->link);
    x->busy++;
    return x;
}

void pool_put(struct pool *x)
{
    check(x->busy > 0);
    x->busy--;
}

struct str pool_label(struct arena *a, struct pool_id id)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, str_of(id.type->name), STR("/"), str_digits(digits, id.group));
}

int pool_make_rows(struct task *t, struct sql_pool *sql, struct pool_id id)
{
    int err = sql_call(t, sql, NULL, "INSERT IGNORE INTO pool_group (type, group_id) VALUES (?, ?)",
                       POOL_VALUES(id));
    if (!err)
        err = sql_call(t, sql, NULL, "INSERT IGNORE INTO pool_list (type, group_id) VALUES (?, ?)",
                       POOL_VALUES(id));
    return err;
}

int pool_ensure(struct task *t, struct pool *x)
{
    int err = x->has_rows ? 0 : pool_make_rows(t, x->pools->options.sql, x->id);
    x->has_rows = !err;
    return err;
}

int pool_lock_group(struct task *t, struct sql *c, struct pool_id id, struct pool_numbers *out)
{
    struct sql_rows r;
    int err = cluster_turn(t, c, id.type->name, id.group);
    if (!err)
        err = sql_on(t, c, &r,
                     "SELECT numbered, marked FROM pool_group WHERE type = ? AND group_id = ?"
                     " FOR UPDATE",
                     POOL_VALUES(id));
    if (!err && r.count == 0)
        err = task_fail(t, ERR_BUSY, "the rows of %s are gone", pool_label(task_arena(t), id).p);
    if (!err && out)
        *out = (struct pool_numbers){r.cells[0].i, r.cells[1].i};
    return err;
}

/* The pace is counted over the last minutes: from a mark that is PACE_S to 2 * PACE_S old while
 * items are handed out. Assignments are made from left to right. */
#define NOTE_HANDED                                                                                \
    "UPDATE pool_group SET"                                                                        \
    " since_handed = IF(next_at < UNIX_TIMESTAMP() - 2 * ?, handed,"                               \
    "  IF(next_at < UNIX_TIMESTAMP() - ?, next_handed, since_handed)),"                            \
    " since_at = IF(next_at < UNIX_TIMESTAMP() - 2 * ?, UNIX_TIMESTAMP(),"                         \
    "  IF(next_at < UNIX_TIMESTAMP() - ?, next_at, since_at)),"                                    \
    " next_handed = IF(next_at < UNIX_TIMESTAMP() - ?, handed, next_handed),"                      \
    " next_at = IF(next_at < UNIX_TIMESTAMP() - ?, UNIX_TIMESTAMP(), next_at),"                    \
    " handed = handed + ?"
#define NOTE_VALUES(items)                                                                         \
    sql_int(PACE_S), sql_int(PACE_S), sql_int(PACE_S), sql_int(PACE_S), sql_int(PACE_S),           \
        sql_int(PACE_S), sql_int(items)

int pool_note_handed(struct task *t, struct sql *c, struct pool_id id, int64_t items)
{
    return sql_on(t, c, NULL, NOTE_HANDED " WHERE type = ? AND group_id = ?", NOTE_VALUES(items),
                  POOL_VALUES(id));
}

int pool_note_marked(struct task *t, struct sql_pool *sql, struct pool_id id, int64_t last,
                     int64_t items)
{
    return sql_call(t, sql, NULL,
                    NOTE_HANDED ", marked = GREATEST(marked, ?) WHERE type = ? AND group_id = ?",
                    NOTE_VALUES(items), sql_int(last), POOL_VALUES(id));
}

bool pool_redis(const struct pool *x)
{
    const struct pools_options *o = &x->pools->options;
    return o->redis && redis_up(o->redis) && loop_now_ms(o->group->loop) >= x->pools->distrust_ms;
}

int pool_look(struct task *t, struct pool *x, struct pool_look *out)
{
    const struct redis_reply *r;
    int err = SCRIPT(t, x->pools->options.redis, pool_look, &r, .list = x->list, .state = x->state);
    if (err)
        return err;
    if (r->type != REDIS_ARRAY || r->count != 8)
        return task_fail(t, ERR_PROTO, "script pool_look returned something else");
    *out = (struct pool_look){.list = r->items[0]->str,
                              .first = redis_number(r->items[1], 0),
                              .limit = redis_number(r->items[2], 0),
                              .marked = redis_number(r->items[3], 0),
                              .length = redis_number(r->items[4], 0),
                              .bytes = redis_number(r->items[5], 0),
                              .stored = r->items[6]->str,
                              .was = r->items[7]->str};
    return 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void pool_note(struct pool *x, const struct pool_look *look)
{
    check(look->list.n < sizeof x->name);
    if (!str_eq(look->list, str_of(x->name))) {
        memcpy(x->name, look->list.p, look->list.n);
        x->name[look->list.n] = '\0';
        x->first = x->limit = x->marked = 0;
    }
    if (look->first >= x->first)
        x->length = look->length;
    x->first = larger(x->first, look->first);
    x->limit = larger(x->limit, look->limit);
    x->marked = larger(x->marked, look->marked);
}
