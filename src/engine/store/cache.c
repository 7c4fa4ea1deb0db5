#include "engine/store/cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/store/cache_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define LOADS_MAX  3 /* attempts at a row that is changed while it is read */
#define JOINS_MAX  3 /* failed loads of other tasks that a task joins; then it loads by itself */
#define RENEWED_MS (10LL * 60 * 1000)

/* --- the cache itself --- */

struct cache *cache_new(const struct cache_options *o)
{
    struct cache *c = check_memory(calloc(1, sizeof *c));
    c->redis = o->redis;
    c->sql = o->sql;
    c->metrics = o->metrics;
    c->degraded = metric(c->metrics, METRIC_GAUGE, "millrace_cache_degraded", "",
                         "1 while records are read from MySQL instead of Redis.");
    c->flights = map_new();
    cache_note_trust(c);
    return c;
}

void cache_free(struct cache *c)
{
    check(map_count(c->flights) == 0);
    map_free(c->flights);
    free(c);
}

struct redis *cache_redis(const struct cache *c)
{
    return c->redis;
}

struct sql_pool *cache_sql(const struct cache *c)
{
    return c->sql;
}

static int64_t *counter(struct metrics *m, const char *kind, const char *name, const char *help)
{
    char labels[64];
    snprintf(labels, sizeof labels, "kind=\"%s\"", kind);
    return metric(m, METRIC_COUNTER, name, labels, help);
}

struct cache_counts cache_counts_new(struct metrics *m, const char *kind)
{
    return (struct cache_counts){
        .name = kind,
        .hits = counter(m, kind, "millrace_cache_hits_total", "Records that were found in Redis."),
        .misses = counter(m, kind, "millrace_cache_misses_total",
                          "Records that were asked for and missing in Redis."),
        .loads = counter(m, kind, "millrace_cache_loads_total", "Records read from MySQL."),
        .drops = counter(m, kind, "millrace_cache_stale_drops_total",
                         "Records dropped from Redis because MySQL had something newer."),
    };
}

struct cache_counts *cache_counts(struct cache *c, const struct cache_owner *o)
{
    size_t i = 0;
    for (; i < CACHE_KINDS_MAX && c->counts[i].name; i++)
        if (strcmp(c->counts[i].name, o->name) == 0)
            return &c->counts[i];
    check(i < CACHE_KINDS_MAX);
    c->counts[i] = cache_counts_new(c->metrics, o->name);
    return &c->counts[i];
}

bool cache_trusts_redis(const struct cache *c)
{
    return c->drained_epoch && redis_up(c->redis) && c->drained_epoch == redis_epoch(c->redis);
}

void cache_note_trust(struct cache *c)
{
    metric_set(c->degraded, !cache_trusts_redis(c));
}

/* --- deadlines --- */

int cache_renew(struct task *t, struct cache *c, const struct cache_owner *o, int64_t uid)
{
    if (o->ttl_ms)
        return 0;
    struct generation now = generation_at(c->redis, key_expiry);
    if (!str_eq(generation_str(&c->touched_at), generation_str(&now))) {
        memset(c->touched, 0, sizeof c->touched); /* this server may not know the deadlines */
        c->touched_at = now;
    }
    int64_t now_ms = loop_now_ms(task_loop(t));
    size_t at = (size_t)((uint64_t)uid % CACHE_TOUCHED_MAX);
    if (c->touched[at].uid == uid && now_ms - c->touched[at].at_ms < RENEWED_MS)
        return 0;
    struct arena *a = task_arena(t);
    int64_t deadline_ms = loop_wall_ms(task_loop(t)) + CACHE_EXP_MS;
    /* GT: a node whose clock is behind does not shorten it. */
    int err = redis_call(t, c->redis, key_expiry, NULL, STR("ZADD"), key_expiry, STR("GT"),
                         str_int(a, deadline_ms), str_int(a, uid));
    if (!err && generation_lasts_at(c->redis, key_expiry, &c->touched_at)) {
        c->touched[at].uid = uid;
        c->touched[at].at_ms = now_ms;
    }
    return err;
}

void cache_touch(struct task *t, struct cache *c, int64_t uid)
{
    if (!redis_up_at(c->redis, key_expiry))
        return;
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (cache_renew(t, c, &cache_users, uid))
        (void)task_fail(t, 0, "%s", text); /* best effort: the next call tries again */
}

/* --- Redis --- */

int cache_look(struct task *t, struct cache *c, const struct record_kind *k, struct str key,
               enum cache_found *found, void *out)
{
    *found = CACHE_AWAY;
    if (!cache_trusts_redis(c))
        return 0;
    struct redis_batch batch; /* where WRONGTYPE is a reply: what is no hash is no record */
    const struct redis_reply *const *replies;
    redis_batch_init(&batch, t, c->redis);
    redis_batch_add(&batch, key, STR("HGETALL"), key);
    int err = redis_batch_run(&batch, &replies);
    if (err)
        return cache_goes_on(t) ? 0 : err;
    *found = record_value(replies[0], "ended").p ? CACHE_ENDED
             : record_read(k, replies[0], out)   ? CACHE_FOUND
                                                 : CACHE_NOTHING;
    return 0;
}

/* *filled stays false: Redis has a newer version. */
static int fill(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid,
                const void *record, bool *filled)
{
    struct arena *a = task_arena(t);
    /* The deadline first: a record without one would never be evicted. */
    int err = cache_renew(t, c, k->owner, uid);
    if (err)
        return err;
    const struct redis_reply *reply;
    int64_t version = *(const int64_t *)((const char *)record + k->version_at);
    err = SCRIPT(t, c->redis, cache_fill, &reply, .record = k->owner->info(a, uid),
                 .version = str_int(a, version), .ms = str_int(a, k->owner->ttl_ms),
                 .fields = record_write(a, &k->record, record));
    if (!err)
        *filled = reply->type == REDIS_INT && reply->integer == 1;
    return err;
}

/* --- MySQL --- */

int cache_none(struct task *t, const struct cache_kind *k)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no such %s", k->owner->name);
}

int cache_find(struct task *t, struct sql_pool *sql, const struct cache_kind *k, const char *column,
               struct sql_value id, void *out)
{
    struct arena *a = task_arena(t);
    const char *where = arena_printf(a, "WHERE %s = ?", column);
    struct sql_rows r;
    int err = sql_call(t, sql, &r, record_select(a, &k->record, where), id);
    if (err)
        return err;
    if (r.count == 0)
        return cache_none(t, k);
    memset(out, 0, k->record.size);
    record_take(&k->record, r.cells, out);
    return 0;
}

/* --- singleflight: one load at a time per key --- */

struct flight {
    int users; /* reference count: the loader, and tasks that wait for it */
    bool ended;
    int err;
    void *record; /* in the arena: the loader's own may go before all have read it */
    struct arena arena;
    struct waitq ends;
};

static struct flight *flight_begin(struct cache *c, struct str key)
{
    struct flight *f = check_memory(calloc(1, sizeof *f));
    f->users = 1;
    arena_init(&f->arena);
    waitq_init(&f->ends);
    map_set(c->flights, key, f);
    return f;
}

static void flight_leave(struct flight *f)
{
    if (--f->users > 0)
        return;
    arena_release(&f->arena);
    free(f);
}

static void flight_end(struct cache *c, struct str key, struct flight *f, int err,
                       const struct record_kind *k, const void *record)
{
    if (map_get(c->flights, key) == f) /* else it was outdated */
        map_del(c->flights, key);
    f->ended = true;
    f->err = err;
    if (!err && f->users > 1) {
        f->record = arena_alloc(&f->arena, k->size);
        record_copy(&f->arena, k, record, f->record);
    }
    waitq_wake_all(&f->ends);
    flight_leave(f);
}

void cache_outdate(struct cache *c, struct str key)
{
    map_del(c->flights, key);
}

/* *served stays false: the loader has failed, perhaps for a reason of its own task. */
static int follow(struct task *t, struct flight *f, const struct record_kind *k, bool *served,
                  void *out)
{
    int err = 0;
    f->users++;
    while (!err && !f->ended)
        err = waitq_wait(t, &f->ends);
    if (!err && (f->err == 0 || f->err == ERR_NOT_FOUND)) {
        *served = true;
        err = f->err;
        if (!err)
            record_copy(task_arena(t), k, f->record, out);
    }
    flight_leave(f);
    return err;
}

static int load(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid, void *out)
{
    bool *degraded = (bool *)((char *)out + k->degraded_at);
    for (int i = 0; i < LOADS_MAX; i++) {
        bool trusted = cache_trusts_redis(c), filled = false;
        struct generation before = generation_now(c->redis);
        metric_add(cache_counts(c, k->owner)->loads, 1);
        int err = k->load ? k->load(t, c->sql, k, uid, out)
                          : cache_find(t, c->sql, k, "uid", sql_int(uid), out);
        if (err)
            return err;
        /* A row that was read before Redis was lost may be older than what was dropped there. */
        *degraded = !trusted || !cache_trusts_redis(c) || !generation_lasts(c->redis, &before);
        if (!*degraded && (err = fill(t, c, k, uid, out, &filled))) {
            if (!cache_goes_on(t))
                return err;
            *degraded = true;
        }
        if (filled || *degraded)
            return 0;
    }
    return 0; /* the row was current when it was read; the next reader fills Redis */
}

static int lead(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid,
                struct str key, void *out)
{
    struct flight *f = flight_begin(c, key);
    int err = load(t, c, k, uid, out);
    flight_end(c, key, f, err, &k->record, out);
    return err;
}

/* Into *out, which is undefined after an error. */
static int get(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid, void *out)
{
    struct str key = k->owner->info(task_arena(t), uid);
    for (int joins = 0;; joins++) {
        enum cache_found found;
        bool served = false;
        int err = cache_look(t, c, &k->record, key, &found, out);
        if (err)
            return err;
        struct cache_counts *counts = cache_counts(c, k->owner);
        if (joins == 0)
            metric_add(found == CACHE_FOUND ? counts->hits : counts->misses, 1);
        cache_note_trust(c);
        if (found == CACHE_FOUND) {
            if (!k->owner->ttl_ms)
                cache_touch(t, c, uid);
            return 0;
        }
        struct flight *f = map_get(c->flights, key);
        if (!f || joins == JOINS_MAX)
            return lead(t, c, k, uid, key, out);
        err = follow(t, f, &k->record, &served, out);
        if (err || served)
            return err;
    }
}

int cache_get(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid, void *out)
{
    void *record = arena_zalloc(task_arena(t), k->record.size);
    int err = get(t, c, k, uid, record);
    if (!err)
        memcpy(out, record, k->record.size);
    return err;
}
