#include "engine/people/session.h"

#include "base/sha256.h"
#include "engine/people/session_private.h"
#include "engine/people/user.h"
#include "engine/store/scripts.h"

#define RENEW_S             60                           /* in Redis, at most so often */
#define RENEW_ROW_S         3600                         /* in MySQL */
#define RENEW_MS            1000                         /* how long a reply waits for that */
#define FILLS_MAX           3                            /* attempts while its owner is changed */
#define SESSIONS_LISTED_MAX (10 * SESSIONS_PER_USER_MAX) /* log-ins at once may exceed the limit */

#define MS_OF(column) "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"

static const struct record_column columns[] = {
    {NULL, "s.sid", RECORD_TEXT, .at = offsetof(struct session, sid)},
    {"user_id", "s.uid", RECORD_INT, .at = offsetof(struct session, uid)},
    {"username", "i.username", RECORD_TEXT, .at = offsetof(struct session, username)},
    {"login_time", MS_OF("s.login_time"), RECORD_TIME, .at = offsetof(struct session, login_ms)},
    {"last_activity", MS_OF("s.last_activity"), RECORD_TIME,
     .at = offsetof(struct session, active_ms)},
    {"ip_address", "s.ip_address", RECORD_TEXT, .at = offsetof(struct session, ip_address)},
    {"user_agent", "s.user_agent", RECORD_TEXT, .at = offsetof(struct session, user_agent)},
    {.type = RECORD_END},
};
#define FROM(owner)                                                                                \
    "session s JOIN " owner "_info i ON i.uid = s.uid AND s.kind = '" owner "'", columns,          \
        sizeof(struct session)
#define WHERE "WHERE s.sid = ? AND s.last_activity > FROM_UNIXTIME(? / 1000)"
static const struct session_home homes[] = {
    [SESSION_USER] = {&cache_users, {FROM("user")}, SESSION_TTL_MS, WHERE, SESSION_TTL_MS, false},
    [SESSION_ADMIN] =
        {&cache_admins, {FROM("admin")}, SESSION_ADMIN_TTL_MS, WHERE, SESSION_ADMIN_TTL_MS, false},
};

const struct session_home *session_home(enum session_kind kind)
{
    check(kind == SESSION_USER || kind == SESSION_ADMIN);
    return &homes[kind];
}

static int64_t now_of(struct task *t)
{
    return loop_wall_ms(task_loop(t));
}

static int unauthenticated(struct task *t)
{
    return task_fail(t, ERR_UNAUTHENTICATED, "not logged in, or the session has ended");
}

/* --- in Redis --- */

/* What session_fill.lua returns. */
enum fill { FILL_ENDED, FILL_DONE, FILL_OUTDATED };

/* As used now. row_ms: when the row in MySQL was last renewed. */
static int fill(struct task *t, struct cache *c, const struct session_home *h,
                const struct session *s, int64_t row_ms, int64_t *done)
{
    struct arena *a = task_arena(t);
    struct session used = *s;
    used.active_ms = now_of(t);
    if (h->owner == &cache_users)
        cache_touch(t, c, s->uid); /* first: a user that has something in Redis has a deadline */
    return SCRIPT_NUMBER(
        t, cache_redis(c), session_fill, done, .session = h->owner->session(a, s->sid),
        .set = h->owner->sessions(a, s->uid), .owner = h->owner->info(a, s->uid), .sid = s->sid,
        .ms = str_int(a, h->ttl_ms), .row_time = str_int(a, row_ms / 1000),
        .version = h->fenced ? str_int(a, s->version) : STR("none"),
        .fields = record_write(a, &h->record, &used));
}

/* --- in MySQL --- */

static int read_one(struct task *t, struct cache *c, const struct session_home *h, struct str sid,
                    struct session *out)
{
    struct sql_rows r;
    int err = sql_call(t, cache_sql(c), &r, record_select(task_arena(t), &h->record, h->where),
                       sql_text(sid), sql_int(now_of(t) - h->idle_ms));
    if (err)
        return err;
    if (r.count == 0)
        return unauthenticated(t);
    record_take(&h->record, r.cells, out);
    return 0;
}

/* --- renewal: best effort, within RENEW_MS --- */

static int renew_row(struct task *t, struct cache *c, struct str sid)
{
    int64_t now = now_of(t);
    return sql_call(t, cache_sql(c), NULL,
                    "UPDATE session SET last_activity = FROM_UNIXTIME(? / 1000)"
                    " WHERE sid = ? AND last_activity < FROM_UNIXTIME(? / 1000)",
                    sql_int(now), sql_text(sid), sql_int(now));
}

/* *row_too: the one in MySQL is due as well, and no other node renews it. */
static int renew_hash(struct task *t, struct cache *c, const struct session_home *h,
                      const struct session *s, bool *row_too)
{
    struct arena *a = task_arena(t);
    const struct redis_reply *r;
    int err = SCRIPT(t, cache_redis(c), session_renew, &r, .session = h->owner->session(a, s->sid),
                     .set = h->owner->sessions(a, s->uid), .sid = s->sid,
                     .ms = str_int(a, h->ttl_ms), .now = str_int(a, now_of(t) / 1000),
                     .each = str_int(a, RENEW_S), .row_each = str_int(a, RENEW_ROW_S));
    if (!err)
        *row_too = r->type == REDIS_INT && r->integer == 2;
    return err;
}

/* from_row: it was read from MySQL just now; then it is in Redis as used now, or not at all. */
static void renew(struct task *t, struct cache *c, const struct session_home *h,
                  const struct session *s, bool from_row)
{
    int64_t age_s = (now_of(t) - s->active_ms) / 1000;
    bool row_too = from_row && age_s >= RENEW_ROW_S;
    const char *text = arena_strdup(task_arena(t), task_error(t));
    int64_t old = task_deadline(t, RENEW_MS);
    int err = 0;
    if (!from_row && age_s >= RENEW_S)
        err = renew_hash(t, c, h, s, &row_too);
    if (!err && row_too)
        err = renew_row(t, c, s->sid);
    task_deadline_restore(t, old);
    if (err)
        (void)task_fail(t, 0, "%s", text);
}

/* --- begin --- */

struct str session_clean(struct arena *a, struct str s, size_t bytes_max)
{
    size_t max = s.n < bytes_max ? s.n : bytes_max, n = 0;
    char *p = arena_alloc(a, max + 1);
    while (s.n && n < max) {
        size_t step = str_utf8_step(s);
        if (n + step > max)
            break;
        bool text = step > 1 || (step == 1 && (unsigned char)s.p[0] >= ' ' && s.p[0] != 0x7f);
        step = step ? step : 1;
        if (text)
            memcpy(p + n, s.p, step);
        else
            p[n] = '?';
        n += step;
        s = str_from(s.p + step, s.n - step);
    }
    p[n] = '\0';
    return str_from(p, n);
}

int session_begin(struct task *t, struct cache *c, const struct session_start *start,
                  char token[SESSION_TOKEN_BYTES])
{
    const struct session_home *h = session_home(start->kind);
    struct arena *a = task_arena(t);
    char fresh[SESSION_TOKEN_BYTES], sid[SHA256_HEX_BYTES];
    loop_token(task_loop(t), fresh, sizeof fresh);
    sha256_hex(str_of(fresh), sid);
    int64_t now = now_of(t);
    struct session s = {.sid = str_dup(a, str_of(sid)),
                        .uid = start->uid,
                        .username = start->username,
                        .login_ms = now,
                        .active_ms = now,
                        .ip_address =
                            session_clean(a, start->ip_address, SESSION_ADDRESS_BYTES_MAX),
                        .user_agent = session_clean(a, start->user_agent, SESSION_AGENT_BYTES_MAX)};
    int err = sql_call(t, cache_sql(c), NULL,
                       "INSERT INTO session (sid, kind, uid, login_time, last_activity, ip_address,"
                       " user_agent) VALUES (?, ?, ?, FROM_UNIXTIME(? / 1000),"
                       " FROM_UNIXTIME(? / 1000), ?, ?)",
                       sql_text(s.sid), sql_text(str_of(h->owner->name)), sql_int(s.uid),
                       sql_int(now), sql_int(now), sql_text(s.ip_address), sql_text(s.user_agent));
    int64_t done;
    if (!err && cache_trusts_redis(c)) {
        err = fill(t, c, h, &s, now, &done);
        err = cache_goes_on(t) ? 0 : err; /* where Redis does not answer the row suffices */
    }
    if (!err)
        err = session_end_surplus(t, c, h, s.uid, s.sid);
    if (!err)
        memcpy(token, fresh, sizeof fresh);
    explicit_bzero(fresh, sizeof fresh);
    return err;
}

/* --- get --- */

/* Puts a session into Redis again. It may have ended after its row was read. Then a tombstone
 * refuses it; or, if the node that ended it could not tell Redis, and what was stale was dropped
 * before this fill, the row is gone by now: so it is looked for once more. */
static int refill(struct task *t, struct cache *c, const struct session_home *h, struct session *s)
{
    int64_t done = FILL_OUTDATED;
    int err = 0;
    for (int i = 0; !err && done == FILL_OUTDATED && i < FILLS_MAX; i++) {
        if (i > 0)
            err = read_one(t, c, h, s->sid, s);
        if (err)
            return err;
        err = fill(t, c, h, s, s->active_ms, &done);
    }
    if (err) {
        s->degraded = cache_goes_on(t);
        return s->degraded ? 0 : err;
    }
    if (done == FILL_OUTDATED)
        return 0; /* the row was current when it was read; the next reader fills Redis */
    if (done == FILL_ENDED)
        return unauthenticated(t);
    struct session again;
    err = read_one(t, c, h, s->sid, &again);
    if (err == ERR_UNAUTHENTICATED) {
        (void)!session_doubt(t, c, h, s->uid);
        return unauthenticated(t);
    }
    return err && !cache_goes_on(t) ? err : 0; /* it was there a moment ago */
}

int session_load(struct task *t, struct cache *c, const struct session_home *h, struct str sid,
                 struct session *out, bool *from_row)
{
    struct session s = {.sid = str_dup(task_arena(t), sid)};
    enum cache_found found;
    struct str key = h->owner->session(task_arena(t), s.sid);
    int err = cache_look(t, c, &h->record, key, &found, &s);
    if (err)
        return err;
    if (found == CACHE_ENDED)
        return unauthenticated(t);
    if (found != CACHE_FOUND) {
        err = read_one(t, c, h, s.sid, &s);
        if (err)
            return err;
        s.degraded = found == CACHE_AWAY || !cache_trusts_redis(c);
        if (!s.degraded)
            err = refill(t, c, h, &s);
    } else if (h->owner == &cache_users) {
        cache_touch(t, c, s.uid);
    }
    if (err)
        return err;
    *from_row = found != CACHE_FOUND;
    *out = s;
    return 0;
}

int session_get(struct task *t, struct cache *c, enum session_kind kind, struct str token,
                struct session *out)
{
    const struct session_home *h = session_home(kind);
    if (!hex_is(token, SESSION_TOKEN_BYTES - 1))
        return unauthenticated(t);
    char sid[SHA256_HEX_BYTES];
    bool from_row;
    sha256_hex(token, sid);
    int err = session_load(t, c, h, str_of(sid), out, &from_row);
    if (!err)
        renew(t, c, h, out, from_row);
    return err;
}

int session_banned(struct task *t, struct cache *c, struct str token, bool *banned)
{
    char sid[SHA256_HEX_BYTES];
    const struct redis_reply *r;
    struct user u;
    int64_t uid;
    *banned = false;
    if (!hex_is(token, SESSION_TOKEN_BYTES - 1) || !cache_trusts_redis(c))
        return 0;
    sha256_hex(token, sid);
    struct str key = session_home(SESSION_USER)->owner->session(task_arena(t), str_of(sid));
    int err = redis_call(t, cache_redis(c), key, &r, STR("HMGET"), key, STR("ended"), STR("uid"));
    if (err)
        return err == ERR_CANCELED ? err : 0;
    if (r->type != REDIS_ARRAY || r->items[0]->type != REDIS_STRING ||
        r->items[1]->type != REDIS_STRING || !str_to_i64(r->items[1]->str, &uid))
        return 0;
    err = user_get(t, c, uid, &u);
    *banned = !err && u.banned;
    return err == ERR_NOT_FOUND ? 0 : err;
}

/* --- list --- */

/* Redis knows better when they were last used. */
static int ask_when_used(struct task *t, struct cache *c, const struct session_home *h,
                         struct session *all, size_t count)
{
    struct redis_batch batch;
    const struct redis_reply *const *replies;
    redis_batch_init(&batch, t, cache_redis(c));
    for (size_t i = 0; i < count; i++) {
        struct str key = h->owner->session(task_arena(t), all[i].sid);
        redis_batch_add(&batch, key, STR("HGET"), key, STR("last_activity"));
    }
    int err = redis_batch_run(&batch, &replies);
    for (size_t i = 0; !err && i < count; i++) {
        int64_t s;
        if (replies[i]->type == REDIS_STRING && str_to_i64(replies[i]->str, &s) &&
            s * 1000 > all[i].active_ms)
            all[i].active_ms = s * 1000;
    }
    return err;
}

int session_list(struct task *t, struct cache *c, enum session_kind kind, int64_t uid,
                 struct session **out, size_t *count)
{
    const struct session_home *h = session_home(kind);
    struct sql_rows r;
    int err = sql_call(t, cache_sql(c), &r,
                       record_select(task_arena(t), &h->record,
                                     "WHERE s.uid = ? AND s.last_activity > FROM_UNIXTIME(? / 1000)"
                                     " ORDER BY s.login_time DESC, s.sid LIMIT ?"),
                       sql_int(uid), sql_int(now_of(t) - h->ttl_ms), sql_int(SESSIONS_LISTED_MAX));
    if (err)
        return err;
    bool degraded = !cache_trusts_redis(c);
    struct session *all = ARENA_ARRAY(task_arena(t), struct session, r.count);
    for (size_t i = 0; i < r.count; i++)
        record_take(&h->record, sql_row(&r, i), &all[i]);
    if (!degraded && r.count && (err = ask_when_used(t, c, h, all, r.count))) {
        if (!cache_goes_on(t))
            return err;
        degraded = true;
    }
    for (size_t i = 0; i < r.count; i++)
        all[i].degraded = degraded;
    *out = all;
    *count = r.count;
    return 0;
}
