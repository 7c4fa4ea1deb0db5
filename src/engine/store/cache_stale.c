/* What Redis was not told. Table cache_stale has a mark for every user and admin of whom Redis may
 * hold something old:
 *
 *   1. whoever changes a row or ends a session raises the mark in the same transaction;
 *   2. to take it away, its number is read, then all that Redis holds of that user is dropped, and
 *      then the mark goes, if its number is still the same. So a change that comes in between
 *      keeps its mark, whoever is at work.
 *
 * A mark begins with a random number: one that went and came again is not taken for the former.
 *
 * And a Redis that was restarted may have lost its last second, with versions whose marks are gone
 * already. So its run id is kept in Redis itself; where it is another one, everybody who has
 * anything in Redis is marked, once, before that Redis is trusted. */
#include "base/log.h"
#include "engine/store/cache_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define ROUND_MS  1000
#define LOOK_MS   100 /* so soon is a new connection noticed */
#define PAGE_ROWS 500 /* as in the statements below */

struct owner {
    const char *kind;
    const char *raise, *marks, *unmark;
    struct str (*info)(struct arena *a, int64_t uid);
    struct str (*sessions)(struct arena *a, int64_t uid);
    struct str (*session)(struct arena *a, struct str sid);
    int64_t ttl_ms; /* of a version alone; 0: the user's deadline ends it */
};

/* The version comes from the same snapshot as the mark: it has every change the mark counts. */
#define OWNER_SQL(kind, table)                                                                     \
    .raise = "INSERT INTO cache_stale (uid, kind, mark) VALUES (?, '" kind "', ?)"                 \
             " ON DUPLICATE KEY UPDATE mark = mark + 1",                                           \
    .marks = "SELECT s.uid, s.mark, i.version FROM cache_stale s"                                  \
             " LEFT JOIN " table " i ON i.uid = s.uid"                                             \
             " WHERE s.kind = '" kind "' AND s.uid BETWEEN ? AND ? ORDER BY s.uid LIMIT 500",      \
    .unmark = "DELETE FROM cache_stale WHERE uid = ? AND kind = '" kind "' AND mark = ?"

static const struct owner users = {
    .kind = "user",
    OWNER_SQL("user", "user_info"),
    .info = key_user_info,
    .sessions = key_user_sessions,
    .session = key_session,
};
static const struct owner admins = {
    .kind = "admin",
    OWNER_SQL("admin", "admin_info"),
    .info = key_admin_info,
    .sessions = key_admin_sessions,
    .session = key_admin_session,
    .ttl_ms = CACHE_EXP_MS,
};

/* --- raising marks --- */

static int64_t first_number(struct task *t)
{
    return (int64_t)(loop_random(task_loop(t)) >> 2);
}

int cache_mark_stale(struct task *t, struct sql *c, int64_t uid)
{
    return sql_on(t, c, NULL, users.raise, sql_int(uid), sql_int(first_number(t)));
}

int cache_mark_stale_admin(struct task *t, struct sql *c, int64_t uid)
{
    return sql_on(t, c, NULL, admins.raise, sql_int(uid), sql_int(first_number(t)));
}

/* --- dropping what is stale --- */

struct stale {
    int64_t uid, mark, version;
};

static int leave_version(struct task *t, struct cache *c, const char *kind, struct str key,
                         int64_t version, int64_t ttl_ms)
{
    struct arena *a = task_arena(t);
    const struct redis_reply *r;
    int err = SCRIPT(t, c->redis, cache_changed, &r, .record = key, .version = str_int(a, version),
                     .ms = str_int(a, ttl_ms));
    if (!err && r->type == REDIS_INT)
        metric_add(cache_counts(c, kind)->drops, r->integer);
    return err;
}

static int forget(struct task *t, struct cache *c, const struct owner *o,
                  const struct redis_reply *sids)
{
    int err = 0;
    for (size_t i = 0; !err && i < sids->count; i++) {
        const struct redis_reply *r;
        err = SCRIPT(t, c->redis, session_forget, &r,
                     .session = o->session(task_arena(t), sids->items[i]->str));
        if (!err && r->type == REDIS_INT)
            metric_add(cache_counts(c, o->kind)->drops, r->integer);
    }
    return err;
}

static int leave_set(struct task *t, struct cache *c, struct str set,
                     const struct redis_reply *sids)
{
    struct str *argv = ARENA_ARRAY(task_arena(t), struct str, 2 + sids->count);
    argv[0] = STR("SREM");
    argv[1] = set;
    for (size_t i = 0; i < sids->count; i++)
        argv[2 + i] = sids->items[i]->str;
    return redis_argv(t, c->redis, set, 2 + sids->count, argv, NULL);
}

/* A session must never be in Redis and not in its owner's set: nobody would find it again. One that
 * is loaded while we leave the set is dropped by the second round, and if we die in between, what
 * was there before is gone already. */
static int drop_sessions(struct task *t, struct cache *c, const struct owner *o, int64_t uid)
{
    struct str set = o->sessions(task_arena(t), uid);
    const struct redis_reply *const *replies;
    struct redis_batch batch; /* where WRONGTYPE is a reply */
    redis_batch_init(&batch, t, c->redis);
    redis_batch_add(&batch, set, STR("SMEMBERS"), set);
    int err = redis_batch_run(&batch, &replies);
    if (err)
        return err;
    const struct redis_reply *sids = replies[0];
    if (sids->type != REDIS_ARRAY)
        return redis_call(t, c->redis, set, NULL, STR("UNLINK"), set);
    if (sids->count == 0)
        return 0;
    err = forget(t, c, o, sids);
    if (!err)
        err = leave_set(t, c, set, sids);
    return err ? err : forget(t, c, o, sids);
}

int cache_drop_sessions(struct task *t, struct cache *c, int64_t uid)
{
    return drop_sessions(t, c, &users, uid);
}

static int drop(struct task *t, struct cache *c, const struct owner *o, const struct stale *s)
{
    struct arena_mark m = arena_mark(task_arena(t));
    struct str key = o->info(task_arena(t), s->uid);
    cache_outdate(c, key);
    /* The deadline first: a version without one would stay for ever. */
    int err = o == &users ? cache_renew(t, c, s->uid) : 0;
    if (!err)
        err = leave_version(t, c, o->kind, key, s->version, o->ttl_ms);
    if (!err)
        err = drop_sessions(t, c, o, s->uid);
    arena_reset(task_arena(t), m);
    return err;
}

/* --- taking marks away --- */

struct page {
    const struct owner *owner;
    struct stale marks[PAGE_ROWS];
    size_t count;
};

static int read_page(struct task *t, struct cache *c, struct page *p, int64_t first, int64_t last)
{
    struct sql_rows r;
    int err = sql_call(t, c->sql, &r, p->owner->marks, sql_int(first), sql_int(last));
    if (err)
        return err;
    check(r.count <= PAGE_ROWS);
    p->count = r.count;
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        int64_t version = row[2].type == SQL_INT ? row[2].i : CACHE_VERSION_GONE;
        p->marks[i] = (struct stale){row[0].i, row[1].i, version};
    }
    return 0;
}

static int unmark(struct task *t, struct sql *c, void *arg)
{
    const struct page *p = arg;
    int err = 0;
    for (size_t i = 0; !err && i < p->count; i++)
        err = sql_on(t, c, NULL, p->owner->unmark, sql_int(p->marks[i].uid),
                     sql_int(p->marks[i].mark));
    return err;
}

/* Up to PAGE_ROWS of them, from *first on; *first is where the next page begins. */
static int settle_page(struct task *t, struct cache *c, const struct owner *o, int64_t *first,
                       int64_t last, bool *more)
{
    struct page *p = ARENA_NEW(task_arena(t), struct page);
    p->owner = o;
    int err = read_page(t, c, p, *first, last);
    for (size_t i = 0; !err && i < p->count; i++)
        err = drop(t, c, o, &p->marks[i]);
    if (!err && p->count)
        err = sql_tx(t, c->sql, unmark, p);
    *more = p->count == PAGE_ROWS;
    if (p->count)
        *first = p->marks[p->count - 1].uid + 1;
    return err;
}

static int settle(struct task *t, struct cache *c, const struct owner *o, int64_t first,
                  int64_t last)
{
    int err = 0;
    for (bool more = true; !err && more;) {
        struct task_scope s = task_scope(t);
        err = settle_page(t, c, o, &first, last, &more);
        task_scope_end(t, s);
    }
    return err;
}

int cache_settle(struct task *t, struct cache *c, int64_t uid)
{
    return settle(t, c, &users, uid, uid);
}

int cache_settle_admin(struct task *t, struct cache *c, int64_t uid)
{
    return settle(t, c, &admins, uid, uid);
}

int cache_changed(struct task *t, struct cache *c, const struct cache_kind *k, int64_t uid,
                  int64_t version)
{
    const struct owner *o = k->of_admin ? &admins : &users;
    struct str key = k->key(task_arena(t), uid);
    cache_outdate(c, key);
    int err = k->of_admin ? 0 : cache_renew(t, c, uid);
    if (!err)
        err = leave_version(t, c, k->name, key, version, o->ttl_ms);
    return err ? err : settle(t, c, o, uid, uid);
}

/* --- all the time --- */

static int mark_users(struct task *t, struct sql *c, void *arg)
{
    const struct redis_reply *uids = *(const struct redis_reply *const *)arg;
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, 3 * uids->count);
    size_t n = 0;
    for (size_t i = 0; i < uids->count; i++) {
        int64_t uid;
        if (!str_to_i64(uids->items[i]->str, &uid) || uid < 1 || uid > INT32_MAX)
            continue; /* nobody's */
        cells[n++] = sql_int(uid);
        cells[n++] = sql_text(STR("user"));
        cells[n++] = sql_int(first_number(t));
    }
    int err = n ? sql_bulk(t, c, "INSERT INTO cache_stale (uid, kind, mark) VALUES",
                           "ON DUPLICATE KEY UPDATE mark = mark + 1", 3, n / 3, cells, NULL)
                : 0;
    return err ? err
               : sql_on(t, c, NULL,
                        "INSERT INTO cache_stale (uid, kind, mark) SELECT uid, 'admin', ?"
                        " FROM admin_info ON DUPLICATE KEY UPDATE mark = cache_stale.mark + 1",
                        sql_int(first_number(t)));
}

/* Whoever has a record in Redis has a deadline there, which was written before. */
static int mark_everybody(struct task *t, struct cache *c, struct str run_id)
{
    const struct redis_reply *r;
    int err =
        redis_call(t, c->redis, key_expiry, &r, STR("ZRANGE"), key_expiry, STR("0"), STR("-1"));
    if (!err)
        err = sql_tx(t, c->sql, mark_users, &r);
    if (err)
        return err;
    log_info("cache", "Redis was restarted: %zu users are read from MySQL again", r->count);
    return redis_call(t, c->redis, key_cache_run, NULL, STR("SET"), key_cache_run, run_id);
}

static int vet(struct task *t, struct cache *c)
{
    uint64_t epoch = redis_epoch(c->redis);
    if (c->vetted_epoch == epoch)
        return 0;
    struct str run_id = str_dup(task_arena(t), redis_run_id(c->redis));
    const struct redis_reply *r;
    int err = redis_call(t, c->redis, key_cache_run, &r, STR("GET"), key_cache_run);
    if (!err && !(r->type == REDIS_STRING && str_eq(r->str, run_id)))
        err = mark_everybody(t, c, run_id);
    if (!err)
        c->vetted_epoch = epoch;
    return err;
}

static int drain(struct task *t, struct cache *c)
{
    uint64_t epoch = redis_epoch(c->redis);
    int err = vet(t, c);
    if (!err)
        err = settle(t, c, &users, 0, INT64_MAX);
    if (!err)
        err = settle(t, c, &admins, 0, INT64_MAX);
    /* Whatever was done on an earlier connection does not count: Redis may be another one now. */
    if (!err && epoch == redis_epoch(c->redis))
        c->drained_epoch = epoch;
    return err;
}

/* Until the next round is due, or Redis is back. */
static int wait_round(struct task *t, struct cache *c, uint64_t tried_epoch)
{
    for (int64_t waited = 0; waited < ROUND_MS; waited += LOOK_MS) {
        int err = task_sleep(t, LOOK_MS);
        if (err)
            return err;
        cache_note_trust(c);
        if (redis_up(c->redis) && redis_epoch(c->redis) != tried_epoch)
            return 0;
    }
    return 0;
}

void cache_task(struct task *t, void *arg)
{
    struct cache *c = arg;
    uint64_t tried_epoch;
    bool trusted = false, failed = false;
    do {
        struct task_scope s = task_scope(t);
        tried_epoch = redis_epoch(c->redis);
        int err = redis_up(c->redis) ? drain(t, c) : 0;
        if (err && !failed && !task_canceled(t))
            log_warn("cache", "cannot drop what is stale in Redis: %s", task_error(t));
        failed = err != 0;
        task_scope_end(t, s);
        cache_note_trust(c);
        if (cache_trusts_redis(c) != trusted) {
            trusted = !trusted;
            log_line(trusted ? LOG_INFO : LOG_WARN, "cache", "records are read from %s",
                     trusted ? "Redis" : "MySQL: Redis does not answer");
        }
    } while (wait_round(t, c, tried_epoch) == 0);
}
