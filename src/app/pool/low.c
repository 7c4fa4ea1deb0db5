/* Groups that run out at their present pace.
 *
 * Only groups that hand out are looked at, and of each only as many usable items are counted as it
 * would hand out in POOL_WELL_MINUTES: an index is read, but never all of it. The node that fills
 * does so and notes what it found in Redis, where the node that watches for alerts reads it. */
#include <stdlib.h>

#include "app/pool/pools_private.h"
#include "base/json.h"
#include "engine/store/keys.h"

#define STEADY_S  60   /* a pace that was counted over less is that of a burst */
#define QUIET_S   3600 /* a group that has items and handed out none for so long does not run out */
#define LOW_SHARE 20   /* it is looked for as rarely as this times what it took */
#define SHOWN_MS  60000
#define FIELD_LOW STR("low")

struct low {
    struct pool_id id;
    int64_t left, per_hour, minutes;
};

struct looking {
    struct pools *pools;
    struct low *list;
    size_t count;
};

/* --- looking for them --- */

static int length_of(struct task *t, struct pools *p, struct pool_id id, int64_t *out)
{
    struct str key = key_pool(task_arena(t), id.type->name, id.group);
    const struct redis_reply *r;
    int err = redis_call(t, p->options.redis, key, &r, STR("LLEN"), key);
    if (!err)
        *out = redis_number(r, 0);
    return err;
}

static int look_at(struct task *t, struct looking *l, struct pool_id id, int64_t per_hour,
                   bool quiet)
{
    struct sql_rows r;
    int64_t most = per_hour * POOL_WELL_MINUTES / 60 + 1, length = 0;
    int err = length_of(t, l->pools, id, &length);
    if (err || length >= most)
        return err;
    err = sql_call(t, l->pools->options.sql, &r,
                   pool_sql(task_arena(t), id.type,
                            "SELECT COUNT(*) FROM (SELECT 1 FROM " POOL_PLACES " STRAIGHT_JOIN"
                            " $table AS i FORCE INDEX (in_order) ON i.group_id = ?"
                            " AND i.batch_id = l.batch_id AND i.id >= l.next_id LIMIT ?) AS near"),
                   POOL_PLACES_VALUES(id), sql_int(id.group), sql_int(most - length));
    if (err)
        return err;
    int64_t left = length + r.cells[0].i, minutes = left * 60 / per_hour;
    if (minutes < POOL_WELL_MINUTES && !(quiet && left))
        l->list[l->count++] = (struct low){id, left, per_hour, minutes};
    return 0;
}

/* A group that is empty stays one that ran out, also when programs have given up asking: until
 * items are imported, or it is dropped. */
static int look_for(struct task *t, struct looking *l)
{
    struct sql_rows r;
    int err = sql_call(t, l->pools->options.sql, &r,
                       "SELECT type, group_id,"
                       " (handed - since_handed) * 3600 DIV (UNIX_TIMESTAMP() - since_at) AS pace,"
                       " next_at < UNIX_TIMESTAMP() - ? FROM pool_group"
                       " WHERE since_at <= UNIX_TIMESTAMP() - ? HAVING pace > 0",
                       sql_int(QUIET_S), sql_int(STEADY_S));
    if (err)
        return err;
    l->list = ARENA_ARRAY(task_arena(t), struct low, r.count + 1);
    for (size_t i = 0; i < r.count && !err; i++) {
        const struct sql_value *row = sql_row(&r, i);
        struct pool_id id = {pool_type_find(row[0].s), row[1].i};
        if (id.type)
            err = look_at(t, l, id, row[2].i, row[3].i);
    }
    return err;
}

/* Those first that are low, and of these the ones that run out first. */
static int by_end(const void *a, const void *b)
{
    const struct low *x = a, *y = b;
    return (x->minutes > y->minutes) - (x->minutes < y->minutes);
}

static struct str json_of(struct task *t, const struct looking *l)
{
    struct buf b;
    struct json_writer w;
    size_t count = l->count < ALERTS_FACTS_MAX ? l->count : ALERTS_FACTS_MAX;
    jw_begin(&w, &b);
    jw_put_array(&w, "groups");
    for (size_t i = 0; i < count; i++) {
        const struct low *x = &l->list[i];
        jw_object(&w);
        jw_put_str(&w, "type", str_of(x->id.type->name));
        jw_put_int(&w, "group", x->id.group);
        jw_put_int(&w, "left", x->left);
        jw_put_int(&w, "per_hour", x->per_hour);
        jw_put_int(&w, "minutes", x->minutes);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    return jw_finish(&w, task_arena(t));
}

int pool_find_low(struct task *t, struct pools *p)
{
    struct looking l = {.pools = p};
    int64_t begun_ms = loop_now_ms(task_loop(t)), low = 0;
    p->round_ms = begun_ms;
    if (p->low_ms && begun_ms - p->low_ms < LOW_SHARE * p->low_took_ms)
        return 0;
    int err = look_for(t, &l);
    if (err)
        return err;
    if (l.count)
        qsort(l.list, l.count, sizeof *l.list, by_end);
    while ((size_t)low < l.count && l.list[low].minutes < POOL_LOW_MINUTES)
        low++;
    metric_set(p->low, low);
    p->low_ms = loop_now_ms(task_loop(t));
    p->low_took_ms = p->low_ms - begun_ms;
    return redis_call(t, p->options.redis, key_pools, NULL, STR("HSET"), key_pools, FIELD_LOW,
                      json_of(t, &l));
}

void pool_low_fades(struct pools *p, int64_t now_ms)
{
    if (!p->round_ms || now_ms - p->round_ms < SHOWN_MS)
        return;
    metric_set(p->low, 0);
    p->round_ms = 0;
}

/* --- for the alerts --- */

static int64_t member(const struct json *j, const char *name)
{
    int64_t n = 0;
    (void)json_int(json_get(j, name), &n);
    return n;
}

static struct alerts_fact fact_of(struct arena *a, const struct json *j)
{
    struct str type = json_str(json_get(j, "type"));
    int64_t group = member(j, "group"), left = member(j, "left"), per_hour = member(j, "per_hour");
    struct alerts_fact f = {.name =
                                str_printf(a, "pool:%.*s/%lld", STR_ARG(type), (long long)group),
                            .lasts = member(j, "minutes") >= POOL_LOW_MINUTES};
    if (left)
        f.text = str_printf(a,
                            "pool %.*s/%lld runs out within an hour: %lld items are left, and %lld "
                            "an hour are handed out; import more, or drop the group",
                            STR_ARG(type), (long long)group, (long long)left, (long long)per_hour);
    else
        f.text = str_printf(a, "pool %.*s/%lld is empty; import more items, or drop the group",
                            STR_ARG(type), (long long)group);
    return f;
}

int pools_low_look(struct task *t, void *arg, struct alerts_fact **out, size_t *count)
{
    struct pools *p = arg;
    struct arena *a = task_arena(t);
    const struct redis_reply *r;
    const struct json *j;
    int err = redis_call(t, p->options.redis, key_pools, &r, STR("HGET"), key_pools, FIELD_LOW);
    if (err)
        return err;
    if (r->type != REDIS_STRING || json_parse(a, r->str, &j, NULL))
        return task_fail(t, ERR_NOT_FOUND, "groups that are low are not known yet");
    *count = 0;
    *out = ARENA_ARRAY(a, struct alerts_fact, ALERTS_FACTS_MAX);
    json_each (group, json_get(j, "groups"))
        if (*count < ALERTS_FACTS_MAX)
            (*out)[(*count)++] = fact_of(a, group);
    return 0;
}
