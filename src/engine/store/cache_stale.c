/* Changes that are not in Redis yet. Table cache_stale is their outbox: it has a mark for every
 * user and admin of which Redis may hold something old:
 *
 *   1. the transaction that changes a row or ends a session raises the mark of its owner;
 *   2. to take a mark away, its number is read, then all that Redis holds of that owner is dropped,
 *      and then the mark goes, if its number is still the same. So a change that comes in between
 *      keeps its mark, also when several nodes drain the table at once.
 *
 * A mark begins with a random number: a mark that was deleted and raised again has another one.
 *
 * And a Redis that was restarted may have lost its last second, with versions whose marks are gone
 * already. So its generation is kept in Redis itself; where it is another one, all users that have
 * anything in Redis and all admins are marked, once, before that Redis is trusted. */
#include "base/log.h"
#include "engine/store/cache_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define DRAIN_EACH_MS 1000
#define PAGE_ROWS     500

const struct cache_owner cache_users = {
    .name = "user",
    .info = key_user_info,
    .sessions = key_user_sessions,
    .session = key_session,
};
const struct cache_owner cache_admins = {
    .name = "admin",
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

int cache_mark_stale(struct task *t, struct sql *c, const struct cache_owner *o, int64_t uid)
{
    return sql_on(t, c, NULL,
                  "INSERT INTO cache_stale (uid, kind, mark) VALUES (?, ?, ?)"
                  " ON DUPLICATE KEY UPDATE mark = mark + 1",
                  sql_int(uid), sql_text(str_of(o->name)), sql_int(first_number(t)));
}

/* --- dropping what is stale --- */

struct stale {
    int64_t uid, mark, version;
};

static int leave_version(struct task *t, struct cache *c, const struct cache_owner *o,
                         const struct stale *s)
{
    struct arena *a = task_arena(t);
    struct str key = o->info(a, s->uid);
    cache_outdate(c, key);
    /* The deadline first: a version without one would never be evicted. */
    int err = cache_renew(t, c, o, s->uid);
    if (err)
        return err;
    const struct redis_reply *r;
    err = SCRIPT(t, c->redis, cache_changed, &r, .record = key, .version = str_int(a, s->version),
                 .ms = str_int(a, o->ttl_ms));
    if (!err && r->type == REDIS_INT)
        metric_add(cache_counts(c, o)->drops, r->integer);
    return err;
}

static int forget(struct task *t, struct cache *c, const struct cache_owner *o,
                  const struct redis_reply *sids)
{
    int err = 0;
    for (size_t i = 0; !err && i < sids->count; i++) {
        const struct redis_reply *r;
        err = SCRIPT(t, c->redis, session_forget, &r,
                     .session = o->session(task_arena(t), sids->items[i]->str));
        if (!err && r->type == REDIS_INT)
            metric_add(cache_counts(c, o)->drops, r->integer);
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

/* A session must never be in Redis without being in its owner's set: it could not be found again. A
 * session that is loaded while the sids are removed from the set is dropped by the second round; if
 * the node dies in between, the sessions that were there before are gone already. */
static int drop_sessions(struct task *t, struct cache *c, const struct cache_owner *o, int64_t uid)
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
    return drop_sessions(t, c, &cache_users, uid);
}

static int drop(struct task *t, struct cache *c, const struct cache_owner *o, const struct stale *s)
{
    struct arena_mark m = arena_mark(task_arena(t));
    int err = leave_version(t, c, o, s);
    if (!err)
        err = drop_sessions(t, c, o, s->uid);
    arena_reset(task_arena(t), m);
    return err;
}

/* --- taking marks away --- */

struct page {
    const struct cache_owner *owner;
    struct stale marks[PAGE_ROWS];
    size_t count;
};

/* The version comes from the same snapshot as the mark: it has every change the mark counts. */
static int read_page(struct task *t, struct cache *c, struct page *p, int64_t first, int64_t last)
{
    const char *owner = p->owner->name;
    struct sql_rows r;
    int err = sql_call(t, c->sql, &r,
                       arena_printf(task_arena(t),
                                    "SELECT s.uid, s.mark, COALESCE(i.version, ?)"
                                    " FROM cache_stale s LEFT JOIN %s_info i ON i.uid = s.uid"
                                    " WHERE s.kind = ? AND s.uid BETWEEN ? AND ?"
                                    " ORDER BY s.uid LIMIT ?",
                                    owner),
                       sql_int(CACHE_VERSION_GONE), sql_text(str_of(owner)), sql_int(first),
                       sql_int(last), sql_int(PAGE_ROWS));
    if (err)
        return err;
    check(r.count <= PAGE_ROWS);
    p->count = r.count;
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        p->marks[i] = (struct stale){.uid = row[0].i, .mark = row[1].i, .version = row[2].i};
    }
    return 0;
}

static int unmark(struct task *t, struct sql *c, void *arg)
{
    const struct page *p = arg;
    int err = 0;
    for (size_t i = 0; !err && i < p->count; i++)
        err = sql_on(t, c, NULL, "DELETE FROM cache_stale WHERE uid = ? AND kind = ? AND mark = ?",
                     sql_int(p->marks[i].uid), sql_text(str_of(p->owner->name)),
                     sql_int(p->marks[i].mark));
    return err;
}

/* Up to PAGE_ROWS of them, from *first on; *first is where the next page begins. */
static int settle_page(struct task *t, struct cache *c, const struct cache_owner *o, int64_t *first,
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

static int settle(struct task *t, struct cache *c, const struct cache_owner *o, int64_t first,
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

int cache_settle(struct task *t, struct cache *c, const struct cache_owner *o, int64_t uid)
{
    return settle(t, c, o, uid, uid);
}

void cache_changed(struct task *t, struct cache *c, const struct cache_owner *o, int64_t uid,
                   int64_t version)
{
    const char *text = arena_strdup(task_arena(t), task_error(t));
    int err = leave_version(t, c, o, &(struct stale){.uid = uid, .version = version});
    if (!err)
        err = cache_settle(t, c, o, uid);
    if (err)
        (void)task_fail(t, 0, "%s", text); /* the change is committed, and its mark stays */
}

/* --- the background role --- */

static int mark_users(struct task *t, struct sql *c, void *arg)
{
    const struct redis_reply *uids = *(const struct redis_reply *const *)arg;
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, 3 * uids->count);
    size_t n = 0;
    for (size_t i = 0; i < uids->count; i++) {
        int64_t uid;
        if (!str_to_i64(uids->items[i]->str, &uid) || uid < 1 || uid > INT32_MAX)
            continue; /* not a uid */
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

/* The sorted set of deadlines lists every user that has a record in Redis: a deadline is written
 * before the record. */
static int mark_all(struct task *t, struct cache *c, const struct generation *now)
{
    const struct redis_reply *r;
    int err =
        redis_call(t, c->redis, key_expiry, &r, STR("ZRANGE"), key_expiry, STR("0"), STR("-1"));
    if (!err)
        err = sql_tx(t, c->sql, mark_users, &r);
    if (err)
        return err;
    log_info("cache",
             "Redis was restarted: the records of %zu users are dropped and read from MySQL again",
             r->count);
    return redis_call(t, c->redis, key_cache_run, NULL, STR("SET"), key_cache_run,
                      generation_str(now));
}

static int vet(struct task *t, struct cache *c)
{
    if (generation_lasts(c->redis, &c->vetted))
        return 0;
    struct generation now = generation_now(c->redis);
    const struct redis_reply *r;
    int err = redis_call(t, c->redis, key_cache_run, &r, STR("GET"), key_cache_run);
    if (!err && !(r->type == REDIS_STRING && str_eq(r->str, generation_str(&now))))
        err = mark_all(t, c, &now);
    if (!err)
        c->vetted = now;
    return err;
}

static int drain(struct task *t, struct cache *c)
{
    uint64_t epoch = redis_epoch(c->redis);
    int err = vet(t, c);
    if (!err)
        err = settle(t, c, &cache_users, 0, INT64_MAX);
    if (!err)
        err = settle(t, c, &cache_admins, 0, INT64_MAX);
    /* After a reconnect the drain is repeated: the server may be another one. */
    if (!err && epoch == redis_epoch(c->redis))
        c->drained_epoch = epoch;
    return err;
}

static void say_trust(struct cache *c)
{
    cache_note_trust(c);
    if (cache_trusts_redis(c) == c->said_trusted)
        return;
    c->said_trusted = !c->said_trusted;
    log_line(c->said_trusted ? LOG_INFO : LOG_WARN, "cache", "records are read from %s",
             c->said_trusted ? "Redis" : "MySQL: Redis does not answer");
}

/* Drains each DRAIN_EACH_MS, and at once on a new connection. */
int cache_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    struct cache *c = arg;
    int64_t now_ms = loop_now_ms(task_loop(t));
    bool due = now_ms >= c->drain_due_ms || redis_epoch(c->redis) != c->tried_epoch;
    int err = ROLE_IDLE;
    if (due && redis_up(c->redis)) {
        c->tried_epoch = redis_epoch(c->redis);
        c->drain_due_ms = now_ms + DRAIN_EACH_MS;
        err = drain(t, c);
    }
    say_trust(c);
    return err;
}
