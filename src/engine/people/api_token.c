#include "engine/people/api_token.h"

#include <stdlib.h>

#include "base/ascii.h"
#include "base/json.h"
#include "base/map.h"
#include "base/sha256.h"
#include "engine/people/admin_log.h"
#include "engine/people/session_private.h"
#include "engine/store/cluster.h"
#include "loop/gather.h"

#define DAY_MS (24LL * 3600 * 1000)

#define MS_OF(column) "COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000, 0)"
#define LIVES         "revoked IS NULL AND (expires IS NULL OR expires > FROM_UNIXTIME(? / 1000))"

/* What a call needs to know of its token. */
static const struct record_column call_columns[] = {
    {NULL, "s.sha256", RECORD_TEXT, .at = offsetof(struct session, sid)},
    {"user_id", "s.uid", RECORD_INT, .at = offsetof(struct session, uid)},
    {"username", "i.username", RECORD_TEXT, .at = offsetof(struct session, username)},
    {"scopes", "s.scopes", RECORD_TEXT, .at = offsetof(struct session, scopes)},
    {"expires", MS_OF("s.expires"), RECORD_TIME, .at = offsetof(struct session, expires_ms)},
    {NULL, "i.version", RECORD_INT, .at = offsetof(struct session, version)},
    {.type = RECORD_END},
};
static const struct session_home home = {
    .owner = &cache_users,
    .record = {"api_token s JOIN user_info i ON i.uid = s.uid AND i.banned = 0", call_columns,
               sizeof(struct session)},
    .ttl_ms = CACHE_EXP_MS,
    .where = "WHERE s.sha256 = ? AND s." LIVES,
    .fenced = true,
};

/* What people see of it. */
#define AT(member) .at = offsetof(struct api_token, member)
static const struct record_column columns[] = {
    {NULL, "id", RECORD_INT, AT(id)},
    {NULL, "uid", RECORD_INT, AT(uid)},
    {NULL, "name", RECORD_TEXT, AT(name)},
    {NULL, "prefix", RECORD_TEXT, AT(prefix)},
    {NULL, "scopes", RECORD_TEXT, AT(scopes)},
    {NULL, MS_OF("created"), RECORD_TIME, AT(created_ms)},
    {NULL, MS_OF("last_used"), RECORD_TIME, AT(used_ms)},
    {NULL, "last_address", RECORD_TEXT, AT(address)},
    {NULL, MS_OF("expires"), RECORD_TIME, AT(expires_ms)},
    {NULL, MS_OF("revoked"), RECORD_TIME, AT(revoked_ms)},
    {.type = RECORD_END},
};
static const struct record_kind kind = {"api_token", columns, sizeof(struct api_token)};

static int64_t now_of(struct task *t)
{
    return loop_wall_ms(task_loop(t));
}

static int none(struct task *t)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no such API token");
}

/* --- making one --- */

const char *api_token_name_problem(struct str name)
{
    size_t chars = 0;
    for (struct str rest = name; rest.n; chars++) {
        size_t step = str_utf8_step(rest);
        if (step == 0 || (unsigned char)rest.p[0] < ' ' || rest.p[0] == 0x7f)
            return "must not have control characters";
        rest = str_skip(rest, step);
    }
    _Static_assert(API_TOKEN_NAME_CHARS_MAX == 64, "the text says so");
    if (chars < 1 || chars > API_TOKEN_NAME_CHARS_MAX)
        return "must have 1 to 64 characters";
    return str_trim(name).n == name.n ? NULL : "must not begin or end with a blank";
}

struct making {
    const struct api_token_new *token;
    const char *sha256;
    struct str prefix;
    int64_t now_ms, id;
};

/* What has ended longest ago goes, so that a user who makes and revokes all day fills no table. */
static int forget_old(struct task *t, struct sql *c, int64_t uid, int64_t ended)
{
    if (ended <= API_TOKENS_KEPT)
        return 0;
    return sql_on(t, c, NULL,
                  "DELETE FROM api_token WHERE uid = ? AND NOT (" LIVES ") ORDER BY id LIMIT ?",
                  sql_int(uid), sql_int(now_of(t)), sql_int(ended - API_TOKENS_KEPT));
}

/* The lock on the user's row makes the user's calls take turns: no two of them find room for one
 * more. */
static int find_room(struct task *t, struct sql *c, const struct making *m)
{
    const struct api_token_new *n = m->token;
    struct sql_rows r;
    int err = cluster_turn(t, c, CLUSTER_USER, n->uid);
    if (!err)
        err = sql_on(t, c, &r, "SELECT 1 FROM user_info WHERE uid = ? FOR UPDATE", sql_int(n->uid));
    if (!err && r.count == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no such user");
    if (!err)
        err =
            sql_on(t, c, &r,
                   "SELECT COUNT(IF(x.lives, 1, NULL)), COUNT(IF(x.lives AND x.name = ?, 1, NULL)),"
                   " COUNT(*) FROM (SELECT name, " LIVES " AS lives FROM api_token"
                   " WHERE uid = ?) x",
                   sql_text(n->name), sql_int(m->now_ms), sql_int(n->uid));
    if (err)
        return err;
    if (r.cells[1].i > 0)
        return task_fail(t, ERR_EXISTS, "there is an API token of this name");
    if (r.cells[0].i >= API_TOKENS_PER_USER_MAX)
        return task_fail(t, ERR_CONFLICT,
                         "there are %d API tokens already: revoke one that is not needed",
                         API_TOKENS_PER_USER_MAX);
    return forget_old(t, c, n->uid, r.cells[2].i - r.cells[0].i);
}

static struct str told(struct task *t, struct str name, struct str scopes)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_put_str(&w, "name", name);
    jw_put_str(&w, "scopes", scopes);
    return jw_finish(&w, task_arena(t));
}

static int note_new(struct task *t, struct sql *c, const struct making *m)
{
    const struct api_token_new *n = m->token;
    if (!n->by)
        return 0;
    struct admin_deed d = *n->by;
    d.user_uid = n->uid;
    d.target = str_int(task_arena(t), m->id);
    d.after = told(t, n->name, n->scopes);
    return admin_audit_add(t, c, &d);
}

/* It expires at a whole second, as Redis keeps it. */
static int insert(struct task *t, struct sql *c, void *arg)
{
    struct making *m = arg;
    const struct api_token_new *n = m->token;
    struct sql_rows r;
    int err = find_room(t, c, m);
    if (!err)
        err = sql_on(t, c, &r,
                     "INSERT INTO api_token (uid, name, sha256, prefix, scopes, created, expires)"
                     " VALUES (?, ?, ?, ?, ?, FROM_UNIXTIME(? / 1000),"
                     " FROM_UNIXTIME(? / 1000) + INTERVAL NULLIF(?, 0) DAY)",
                     sql_int(n->uid), sql_text(n->name), sql_text(str_of(m->sha256)),
                     sql_text(m->prefix), sql_text(n->scopes), sql_int(m->now_ms),
                     sql_int(m->now_ms / 1000 * 1000), sql_int(n->days));
    if (err)
        return err;
    m->id = (int64_t)r.insert_id;
    return note_new(t, c, m);
}

int api_token_add(struct task *t, struct cache *c, const struct api_token_new *n,
                  char token[API_TOKEN_BYTES], struct api_token *out)
{
    check(!api_token_name_problem(n->name) && n->days >= 0 && n->days <= API_TOKEN_DAYS_MAX);
    check(n->scopes.n > 0 && n->scopes.n <= API_TOKEN_SCOPES_BYTES_MAX);
    struct arena *a = task_arena(t);
    char fresh[API_TOKEN_BYTES] = API_TOKEN_PREFIX, sha256[SHA256_HEX_BYTES];
    size_t head = sizeof(API_TOKEN_PREFIX) - 1;
    loop_token(task_loop(t), fresh + head, sizeof fresh - head);
    sha256_hex(str_of(fresh), sha256);
    int64_t now = now_of(t);
    struct making m = {.token = n,
                       .sha256 = sha256,
                       .prefix = str_dup(a, str_from(fresh, API_TOKEN_SHOWN)),
                       .now_ms = now};
    int err = sql_tx(t, cache_sql(c), insert, &m);
    if (!err) {
        memcpy(token, fresh, sizeof fresh);
        *out = (struct api_token){.id = m.id,
                                  .uid = n->uid,
                                  .name = n->name,
                                  .prefix = m.prefix,
                                  .scopes = n->scopes,
                                  .created_ms = now,
                                  .expires_ms = n->days ? now / 1000 * 1000 + n->days * DAY_MS : 0};
    }
    explicit_bzero(fresh, sizeof fresh);
    return err;
}

/* --- the list --- */

int api_token_list(struct task *t, struct sql_pool *sql, int64_t uid, bool all,
                   struct api_token **out, size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       record_select(task_arena(t), &kind,
                                     "WHERE uid = ? AND (revoked IS NULL OR ?) ORDER BY id DESC"),
                       sql_int(uid), sql_int(all));
    if (err)
        return err;
    *out = ARENA_ARRAY(task_arena(t), struct api_token, r.count);
    *count = r.count;
    for (size_t i = 0; i < r.count; i++)
        record_take(&kind, sql_row(&r, i), &(*out)[i]);
    return 0;
}

/* --- revoking --- */

struct revoking {
    int64_t uid, id;
    const struct admin_deed *by;
    struct str sha256; /* p == NULL: there is no such token */
    bool revoked;      /* by this call */
};

static int revoke_row(struct task *t, struct sql *c, struct revoking *v,
                      const struct sql_value *row)
{
    v->revoked = true;
    int err =
        sql_on(t, c, NULL, "UPDATE api_token SET revoked = FROM_UNIXTIME(? / 1000) WHERE id = ?",
               sql_int(now_of(t)), sql_int(v->id));
    if (err || !v->by)
        return err;
    struct admin_deed d = *v->by;
    d.user_uid = v->uid;
    d.target = str_int(task_arena(t), v->id);
    d.before = told(t, row[1].s, row[2].s);
    return admin_audit_add(t, c, &d);
}

/* One that was revoked before is marked, too: after ERR_UNCERTAIN a caller repeats this, and Redis
 * may have it still. */
static int revoke(struct task *t, struct sql *c, void *arg)
{
    struct revoking *v = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT sha256, name, scopes, revoked IS NULL FROM api_token"
                     " WHERE id = ? AND uid = ? FOR UPDATE",
                     sql_int(v->id), sql_int(v->uid));
    if (err)
        return err;
    if (r.count == 0)
        return none(t);
    v->sha256 = r.cells[0].s;
    v->revoked = false;
    if (r.cells[3].i)
        err = revoke_row(t, c, v, r.cells);
    return err ? err : cache_mark_stale(t, c, home.owner, v->uid);
}

int api_token_revoke(struct task *t, struct cache *c, int64_t uid, int64_t id,
                     const struct admin_deed *by)
{
    struct revoking v = {.uid = uid, .id = id, .by = by};
    int err = sql_tx(t, cache_sql(c), revoke, &v);
    if (err)
        return err;
    session_tell(t, c, &home, uid, 1, &v.sha256);
    return v.revoked ? 0 : none(t);
}

/* --- when they were last used --- */

#define LOOKS_MAX    256 /* calls that share one */
#define CLERKS_MAX   16  /* tokens that are looked up; further ones are by each call itself */
#define NOTE_EACH_MS 60000
#define USES_MAX     10000 /* of a minute; further tokens are served, and not noted */
#define NOTED_MAX    100   /* in one round */

struct use {
    char sha256[SHA256_HEX_BYTES];
    char address[SESSION_ADDRESS_BYTES_MAX + 1];
    int64_t at_ms;    /* since 1970 */
    int64_t noted_ms; /* of the loop's clock */
    bool news;        /* since then */
};

struct api_tokens {
    struct cache *cache;
    struct map *uses;    /* SHA-256 -> struct use */
    struct gather looks; /* struct look, by the first digits of its SHA-256 */
};

static gather_fn look_up;

struct api_tokens *api_tokens_new(struct cache *c, struct group *g)
{
    struct api_tokens *x = check_memory(calloc(1, sizeof *x));
    x->cache = c;
    x->uses = map_new();
    gather_init(&x->looks, &(struct gather_options){.group = g,
                                                    .name = "token",
                                                    .fn = look_up,
                                                    .arg = x,
                                                    .items_max = LOOKS_MAX,
                                                    .clerks_max = CLERKS_MAX});
    return x;
}

void api_tokens_free(struct api_tokens *x)
{
    size_t at = 0;
    void *use;
    struct str key;
    while (map_next(x->uses, &at, &key, &use))
        free(use);
    map_free(x->uses);
    free(x);
}

static void note_use(struct task *t, struct api_tokens *x, struct str sha256, struct str address)
{
    struct use *u = map_get(x->uses, sha256);
    if (!u && map_count(x->uses) >= USES_MAX)
        return;
    if (!u) {
        u = check_memory(calloc(1, sizeof *u));
        u->noted_ms = loop_now_ms(task_loop(t)) - NOTE_EACH_MS;
        memcpy(u->sha256, sha256.p, sha256.n);
        map_set(x->uses, sha256, u);
    }
    u->at_ms = now_of(t);
    u->news = true;
    address = session_clean(task_arena(t), address, SESSION_ADDRESS_BYTES_MAX);
    memcpy(u->address, address.p, address.n + 1);
}

static int write_use(struct task *t, struct api_tokens *x, struct use *u)
{
    u->news = false; /* before the wait: it may be used meanwhile */
    int64_t at_ms = u->at_ms;
    int err = sql_call(t, cache_sql(x->cache), NULL,
                       "UPDATE api_token SET last_used = FROM_UNIXTIME(? / 1000), last_address = ?"
                       " WHERE sha256 = ?"
                       " AND (last_used IS NULL OR last_used < FROM_UNIXTIME(? / 1000))",
                       sql_int(at_ms), sql_text(str_dup(task_arena(t), str_of(u->address))),
                       sql_text(str_of(u->sha256)), sql_int(at_ms));
    if (err)
        u->news = true;
    else
        u->noted_ms = loop_now_ms(task_loop(t));
    return err;
}

int api_tokens_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    struct api_tokens *x = arg;
    struct use *due[NOTED_MAX];
    size_t count = 0, at = 0;
    struct str key;
    void *value;
    int64_t before = loop_now_ms(task_loop(t)) - NOTE_EACH_MS;
    while (count < NOTED_MAX && map_next(x->uses, &at, &key, &value))
        if (((struct use *)value)->noted_ms <= before)
            due[count++] = value;
    int err = 0;
    for (size_t i = 0; !err && i < count; i++)
        if (due[i]->news) {
            err = write_use(t, x, due[i]);
        } else {
            map_del(x->uses, str_of(due[i]->sha256));
            free(due[i]);
        }
    return err ? err : count == NOTED_MAX ? ROLE_MORE : 0;
}

/* --- a call --- */

struct look {
    struct gather_item item; /* must be first */
    struct str sha256;
    struct session *out;
};

static int64_t time_of_all(struct gather_item **items, size_t count)
{
    int64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t left = task_time_left_ms(items[i]->task);
        most = left > most ? left : most;
    }
    return most;
}

/* Mostly of one token. Others whose SHA-256 begins alike are looked up one after the other. */
static int look_up(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    const struct api_tokens *x = arg;
    struct str known = STR_NULL;
    struct session s;
    bool from_row;
    int err = 0;
    (void)task_deadline(t, time_of_all(items, count));
    for (size_t i = 0; i < count; i++) {
        struct look *l = (struct look *)(void *)items[i];
        if (!known.p || !str_eq(known, l->sha256))
            err = session_load(t, x->cache, &home, l->sha256, &s, &from_row);
        known = l->sha256;
        if (err)
            gather_fail(items[i], err, task_error(t));
        else
            record_copy(task_arena(items[i]->task), &home.record, &s, l->out);
    }
    return 0;
}

static int load(struct task *t, struct api_tokens *x, struct str sha256, struct session *out)
{
    struct look l = {.sha256 = sha256, .out = out};
    uint64_t key = 0;
    bool from_row;
    for (size_t i = 0; i < 2 * sizeof key; i++)
        key = key << 4 | (uint64_t)ascii_hex(sha256.p[i]);
    if (x->looks.clerks == CLERKS_MAX)
        return session_load(t, x->cache, &home, sha256, out, &from_row);
    return gather_do(t, &x->looks, &l.item, (int64_t)key);
}

int api_token_get(struct task *t, struct api_tokens *x, struct str token, struct str address,
                  struct session *out)
{
    char sha256[SHA256_HEX_BYTES];
    struct session s;
    size_t head = sizeof(API_TOKEN_PREFIX) - 1;
    int err = ERR_UNAUTHENTICATED;
    if (api_token_is(token) && hex_is(str_skip(token, head), API_TOKEN_BYTES - 1 - head)) {
        sha256_hex(token, sha256);
        err = load(t, x, str_of(sha256), &s);
    }
    if (!err && s.expires_ms && s.expires_ms <= now_of(t))
        err = ERR_UNAUTHENTICATED;
    if (err == ERR_UNAUTHENTICATED)
        return task_fail(t, err, "no such API token, or it was revoked, or it has expired");
    if (err)
        return err;
    note_use(t, x, s.sid, address);
    *out = s;
    return 0;
}
