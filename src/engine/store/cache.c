#include "engine/store/cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/store/cache_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define LOADS_MAX  3 /* of a row that is changed again and again while it is read */
#define JOINS_MAX  3 /* loads of others that failed; then everybody loads alone */
#define RENEWED_MS (10LL * 60 * 1000)

/* --- the cache itself --- */

struct cache *cache_new(const struct cache_options *o)
{
    struct cache *c = check_memory(calloc(1, sizeof *c));
    c->redis = o->redis;
    c->sql = o->sql;
    c->metrics = o->metrics;
    c->degraded = c->metrics ? metric(c->metrics, METRIC_GAUGE, "millrace_cache_degraded", "",
                                      "1 while records are read from MySQL instead of Redis.")
                             : &c->unseen;
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

static int64_t *counter(struct cache *c, const char *kind, const char *name, const char *help)
{
    if (!c->metrics)
        return &c->unseen;
    char labels[64];
    snprintf(labels, sizeof labels, "kind=\"%s\"", kind);
    return metric(c->metrics, METRIC_COUNTER, name, labels, help);
}

struct cache_counts *cache_counts(struct cache *c, const char *kind)
{
    size_t i = 0;
    for (; i < CACHE_KINDS_MAX && c->counts[i].kind; i++)
        if (strcmp(c->counts[i].kind, kind) == 0)
            return &c->counts[i];
    check(i < CACHE_KINDS_MAX);
    c->counts[i] = (struct cache_counts){
        .kind = kind,
        .hits = counter(c, kind, "millrace_cache_hits_total", "Records that were found in Redis."),
        .misses = counter(c, kind, "millrace_cache_misses_total",
                          "Records that were asked for and missing in Redis."),
        .loads = counter(c, kind, "millrace_cache_loads_total", "Records read from MySQL."),
        .drops = counter(c, kind, "millrace_cache_stale_drops_total",
                         "Records dropped from Redis because MySQL had something newer."),
    };
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

struct str cache_value(const struct cache_record *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (str_eq(r->fields[i].name, str_of(name)))
            return r->fields[i].value;
    return STR_NULL;
}

/* The task itself can go on; it is only Redis that cannot be asked. */
static bool redis_is_to_blame(struct task *t)
{
    return !task_canceled(t) && task_time_left_ms(t) > 0;
}

/* --- deadlines --- */

int cache_renew(struct task *t, struct cache *c, int64_t uid)
{
    uint64_t epoch = redis_epoch(c->redis);
    if (c->touched_epoch != epoch) { /* another Redis, perhaps, or one that has forgotten */
        memset(c->touched, 0, sizeof c->touched);
        c->touched_epoch = epoch;
    }
    int64_t now_ms = loop_now_ms(task_loop(t));
    size_t at = (size_t)((uint64_t)uid % CACHE_TOUCHED_MAX);
    if (c->touched[at].uid == uid && now_ms - c->touched[at].at_ms < RENEWED_MS)
        return 0;
    struct arena *a = task_arena(t);
    int64_t deadline_ms = loop_wall_ms(task_loop(t)) + CACHE_EXP_MS;
    /* GT: a node whose clock is behind does not shorten it. */
    int err = redis_call(t, c->redis, key_expiry, NULL, STR("ZADD"), key_expiry, STR("GT"),
                         str_printf(a, "%lld", (long long)deadline_ms),
                         str_printf(a, "%lld", (long long)uid));
    if (!err && c->touched_epoch == epoch) {
        c->touched[at].uid = uid;
        c->touched[at].at_ms = now_ms;
    }
    return err;
}

void cache_touch(struct task *t, struct cache *c, int64_t uid)
{
    if (!redis_up(c->redis))
        return;
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (cache_renew(t, c, uid))
        (void)task_fail(t, 0, "%s", text); /* the next one does it, and nobody waits for it */
}

/* --- Redis --- */

/* False: nothing but a version, or no record of ours. */
static bool read_hash(struct arena *a, const struct redis_reply *r, struct cache_record *out)
{
    if (r->type != REDIS_ARRAY || r->count < 4)
        return false;
    struct cache_field *fields = ARENA_ARRAY(a, struct cache_field, r->count / 2);
    struct cache_record found = {.version = -1, .fields = fields};
    for (size_t i = 0; i + 1 < r->count; i += 2) {
        struct str name = r->items[i]->str, value = r->items[i + 1]->str;
        if (!str_eq(name, STR("version")))
            fields[found.count++] = (struct cache_field){name, value};
        else if (!str_to_i64(value, &found.version))
            return false;
    }
    if (found.version < 0)
        return false;
    *out = found;
    return true;
}

static int look(struct task *t, struct cache *c, struct str key, bool *hit,
                struct cache_record *out)
{
    if (!cache_trusts_redis(c))
        return 0;
    struct redis_batch batch; /* where WRONGTYPE is a reply: what is no hash is no record */
    const struct redis_reply *const *replies;
    redis_batch_init(&batch, t, c->redis);
    redis_batch_add(&batch, key, STR("HGETALL"), key);
    int err = redis_batch_run(&batch, &replies);
    if (err)
        return redis_is_to_blame(t) ? 0 : err;
    *hit = read_hash(task_arena(t), replies[0], out);
    return 0;
}

/* *filled stays false: Redis knows of a newer row. */
static int fill(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid,
                const struct cache_record *r, bool *filled)
{
    struct arena *a = task_arena(t);
    /* The deadline first: a record without one would stay for ever. */
    int err = k->of_admin ? 0 : cache_renew(t, c, uid);
    if (err)
        return err;
    struct str *fields = ARENA_ARRAY(a, struct str, 2 * r->count);
    for (size_t i = 0; i < r->count; i++) {
        fields[2 * i] = r->fields[i].name;
        fields[2 * i + 1] = r->fields[i].value;
    }
    const struct redis_reply *reply;
    err =
        SCRIPT(t, c->redis, cache_fill, &reply, .record = k->key(a, uid),
               .version = str_int(a, r->version), .ms = str_int(a, k->of_admin ? CACHE_EXP_MS : 0),
               .fields = {fields, 2 * r->count});
    if (!err)
        *filled = reply->type == REDIS_INT && reply->integer == 1;
    return err;
}

/* --- loads, one at a time per key --- */

struct flight {
    int users; /* who loads, and those who wait for it */
    bool ended;
    int err;
    struct cache_record record;
    struct arena arena; /* of the record: the loader's own may go before all have read it */
    struct waitq ends;
};

static struct cache_record copy(struct arena *a, const struct cache_record *r)
{
    struct cache_record out = *r;
    struct cache_field *fields = ARENA_ARRAY(a, struct cache_field, r->count);
    for (size_t i = 0; i < r->count; i++)
        fields[i] =
            (struct cache_field){str_dup(a, r->fields[i].name), str_dup(a, r->fields[i].value)};
    out.fields = fields;
    return out;
}

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
                       const struct cache_record *r)
{
    if (map_get(c->flights, key) == f) /* else it was outdated */
        map_del(c->flights, key);
    f->ended = true;
    f->err = err;
    if (!err && f->users > 1)
        f->record = copy(&f->arena, r);
    waitq_wake_all(&f->ends);
    flight_leave(f);
}

void cache_outdate(struct cache *c, struct str key)
{
    map_del(c->flights, key);
}

/* *served stays false: the one who loaded has failed, which may be its own affair. */
static int follow(struct task *t, struct flight *f, bool *served, struct cache_record *out)
{
    int err = 0;
    f->users++;
    while (!err && !f->ended)
        err = waitq_wait(t, &f->ends);
    if (!err && (f->err == 0 || f->err == ERR_NOT_FOUND)) {
        *served = true;
        err = f->err;
        if (!err)
            *out = copy(task_arena(t), &f->record);
    }
    flight_leave(f);
    return err;
}

static int load(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid,
                struct cache_record *out)
{
    for (int i = 0; i < LOADS_MAX; i++) {
        bool trusted = cache_trusts_redis(c), filled = false;
        uint64_t epoch = redis_epoch(c->redis);
        metric_add(cache_counts(c, k->name)->loads, 1);
        struct cache_record r = {0};
        int err = k->load(t, c->sql, uid, &r);
        if (err)
            return err;
        /* What was read before Redis went away may be older than what was dropped from it. */
        r.degraded = !trusted || !cache_trusts_redis(c) || epoch != redis_epoch(c->redis);
        if (!r.degraded && (err = fill(t, c, k, uid, &r, &filled))) {
            if (!redis_is_to_blame(t))
                return err;
            r.degraded = true;
        }
        *out = r;
        if (filled || r.degraded)
            return 0;
    }
    return 0; /* right when it was read; Redis waits for the next reader */
}

static int lead(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid,
                struct str key, struct cache_record *out)
{
    struct flight *f = flight_begin(c, key);
    struct cache_record r = {0};
    int err = load(t, c, k, uid, &r);
    flight_end(c, key, f, err, &r);
    if (!err)
        *out = r;
    return err;
}

int cache_get(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid,
              struct cache_record *out)
{
    struct str key = k->key(task_arena(t), uid);
    for (int joins = 0;; joins++) {
        bool hit = false, served = false;
        int err = look(t, c, key, &hit, out);
        if (err)
            return err;
        if (joins == 0)
            metric_add(hit ? cache_counts(c, k->name)->hits : cache_counts(c, k->name)->misses, 1);
        cache_note_trust(c);
        if (hit) {
            if (!k->of_admin)
                cache_touch(t, c, uid);
            return 0;
        }
        struct flight *f = map_get(c->flights, key);
        if (!f || joins == JOINS_MAX)
            return lead(t, c, k, uid, key, out);
        err = follow(t, f, &served, out);
        if (err || served)
            return err;
    }
}
