/* Users: found, shown, changed. */
#include "engine/people/user.h"

#include "app/admin/call.h"
#include "app/admin/routes.h"
#include "engine/api/run.h"
#include "engine/api/tokens.h"
#include "engine/runs/account.h"
#include "engine/watch/admin_acts.h"
#include "engine/setup/config.h"
#include "engine/store/record.h"

/* --- finding --- */

struct account {
    int64_t uid;
    struct str username;
    int64_t cents; /* as MySQL has it: charges of the last seconds may be missing */
    int64_t permission;
    bool banned;
    int64_t created_ms;
};

#define AT(member) .at = offsetof(struct account, member)
static const struct record_column columns[] = {
    {NULL, "uid", RECORD_INT, AT(uid)},
    {NULL, "username", RECORD_TEXT, AT(username)},
    {NULL, "CAST(balance * 100 AS SIGNED)", RECORD_INT, AT(cents)},
    {NULL, "permission", RECORD_INT, AT(permission)},
    {NULL, "banned", RECORD_FLAG, AT(banned)},
    {NULL, "CAST(UNIX_TIMESTAMP(created_at) * 1000 AS SIGNED)", RECORD_TIME, AT(created_ms)},
    {.type = RECORD_END},
};
static const struct record_kind kind = {"user_info", columns, sizeof(struct account)};

#define SHOWN(member) API_AT(struct account, member)
#define USER_FIELDS                                                                                \
    {"uid", API_INT, SHOWN(uid), .least = 1, .most = INT32_MAX, .about = "number of the user"},    \
        {"username", API_TEXT, SHOWN(username), .most = USER_NAME_CHARS_MAX,                       \
         .about = "as registered"},                                                                \
        {"balance", API_MONEY, SHOWN(cents),                                                       \
         .about = "what is left to spend; in lists, charges of the last seconds are missing"},     \
        {"permission", API_INT, SHOWN(permission), .most = PERMISSION_MAX,                         \
         .about = "papers judged at the same time, over all runs"},                                \
        {"banned", API_BOOL, SHOWN(banned), .about = "may not log in"},                            \
    {                                                                                              \
        "created_at", API_TIME, SHOWN(created_ms), .about = "when it was registered"               \
    }
static const struct api_field listed_fields[] = {USER_FIELDS, API_END};

/* Names have '_', which LIKE would take for any character, but no '!'. */
static struct str pattern_of(struct task *t, struct str prefix)
{
    char *p = arena_alloc(task_arena(t), 2 * prefix.n + 2);
    size_t n = 0;
    for (size_t i = 0; i < prefix.n; i++) {
        if (prefix.p[i] == '_')
            p[n++] = '!';
        p[n++] = prefix.p[i];
    }
    p[n++] = '%';
    return str_from(p, n);
}

/* A page begins behind a user: by number, or by name where names are searched. Neither ever
 * changes. */
struct search {
    struct str q;
    int64_t after; /* -1: from the start */
    int64_t limit;
    struct account *found; /* room for limit + 1 */
    size_t count;
};

static void take_rows(struct search *s, const struct sql_rows *r)
{
    for (size_t i = 0; i < r->count; i++)
        record_take(&kind, sql_row(r, i), &s->found[s->count++]);
}

static int find_all(struct task *t, struct sql_pool *sql, struct search *s)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       record_select(task_arena(t), &kind, "WHERE uid > ? ORDER BY uid LIMIT ?"),
                       sql_int(s->after), sql_int(s->limit + 1));
    if (!err)
        take_rows(s, &r);
    return err;
}

/* The one of that number comes first, on the first page. */
static int find_some(struct task *t, struct sql_pool *sql, struct search *s)
{
    struct sql_rows r;
    struct str prefix;
    int64_t uid = 0;
    int err = 0;
    if (str_to_i64(s->q, &uid) && s->after < 0) {
        err = sql_call(t, sql, &r, record_select(task_arena(t), &kind, "WHERE uid = ?"),
                       sql_int(uid));
        if (!err)
            take_rows(s, &r);
    }
    if (err || !user_name_prefix(task_arena(t), s->q, &prefix))
        return err;
    err = sql_call(
        t, sql, &r,
        record_select(task_arena(t), &kind,
                      "WHERE username_folded LIKE ? ESCAPE '!' AND uid <> ? AND username_folded >"
                      " COALESCE((SELECT username_folded FROM user_info WHERE uid = ?), '')"
                      " ORDER BY username_folded LIMIT ?"),
        sql_text(pattern_of(t, prefix)), sql_int(uid), sql_int(s->after),
        sql_int(s->limit + 1 - (int64_t)s->count));
    if (!err)
        take_rows(s, &r);
    return err;
}

/* The last one of a page that was found by its number, not by its name, is no place among names:
 * then the next page begins with the first name. */
static struct str next_of(struct task *t, const struct search *s)
{
    if ((int64_t)s->count <= s->limit)
        return STR_NULL;
    int64_t uid, last = s->found[s->limit - 1].uid;
    bool by_number =
        s->limit == 1 && s->after < 0 && s->q.p && str_to_i64(s->q, &uid) && uid == last;
    return str_int(task_arena(t), by_number ? 0 : last);
}

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct search s = {.q = api_text(c, "q"), .after = -1, .limit = admin_limit(c)};
    int err = admin_cursor(t, c, &s.after);
    if (err)
        return err;
    s.found = ARENA_ARRAY(task_arena(t), struct account, s.limit + 2);
    err = s.q.n ? find_some(t, c->node->sql, &s) : find_all(t, c->node->sql, &s);
    if (err)
        return err;
    size_t shown = (int64_t)s.count < s.limit ? s.count : (size_t)s.limit;
    api_put_list(t, w, "users", listed_fields, s.found, shown);
    jw_put_str(w, "next", next_of(t, &s));
    return 0;
}

/* --- one of them --- */

static int show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct sql_rows r, runs;
    struct account_state state;
    int64_t uid;
    int err = admin_path_number(t, c, "uid", "user", &uid);
    if (!err)
        err = sql_call(t, n->sql, &r, record_select(task_arena(t), &kind, "WHERE uid = ?"),
                       sql_int(uid));
    if (!err && r.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "there is no user %lld", (long long)uid);
    if (!err)
        err = sql_call(t, n->sql, &runs,
                       "SELECT COUNT(*), CAST(COALESCE(SUM(status IN ('QUEUED', 'RUNNING')), 0)"
                       " AS SIGNED) FROM query_log WHERE uid = ?",
                       sql_int(uid));
    if (err)
        return err;
    struct account a;
    record_take(&kind, r.cells, &a);
    err = account_look(t, n->runs, uid, &state);
    if (err)
        return err;
    a.cents = state.money.balance;
    c->degraded = c->degraded || state.money.degraded;
    api_put_fields(t, w, listed_fields, &a);
    api_put_reserve(t, w, &state.money);
    jw_put_int(w, "runs", runs.cells[0].i);
    jw_put_int(w, "runs_active", runs.cells[1].i);
    jw_put_str(w, "account", state.stopped ? STR("stopped") : STR("active"));
    jw_put_str(w, "account_why", state.why);
    api_put_time(w, "account_since", state.since_ms);
    return 0;
}

static int set_permission(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed d = admin_deed_of(c);
    struct user_change ch = {.part = USER_PERMISSION, .by = &d};
    check(api_int(c, "permission", &ch.number));
    int err = admin_path_number(t, c, "uid", "user", &ch.uid);
    if (!err)
        err = user_change(t, c->node->cache, &ch);
    return err ? err : show(t, c, w);
}

static int set_password(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct node *n = c->node;
    struct admin_deed d = admin_deed_of(c);
    struct user_change ch = {.part = USER_PASSWORD, .by = &d};
    int err = admin_path_number(t, c, "uid", "user", &ch.uid);
    if (!err)
        err = admin_hash(t, c, &ch.hash);
    if (!err)
        err = user_change(t, n->cache, &ch);
    return err ? err : session_end_all(t, n->cache, SESSION_USER, ch.uid, STR_NULL);
}

static int ban(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed d = admin_deed_of(c);
    bool banned = false;
    int64_t uid;
    check(api_bool(c, "banned", &banned));
    int err = admin_path_number(t, c, "uid", "user", &uid);
    if (!err)
        err = admin_ban(t, c->node->runs, uid, banned, &d);
    return err ? err : show(t, c, w);
}

/* --- API tokens --- */

static int list_tokens(struct task *t, struct api_call *c, struct json_writer *w)
{
    int64_t uid;
    int err = admin_path_user(t, c, &uid);
    return err ? err : api_put_tokens(t, c, w, uid, true);
}

static int revoke_token(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    int64_t uid;
    int err = admin_path_number(t, c, "uid", "user", &uid);
    return err ? err : api_revoke_token(t, c, uid);
}

/* --- the table --- */

static const struct api_field list_query[] = {
    {"q", API_TEXT, .optional = true, .most = USER_NAME_CHARS_MAX,
     .about = "how the name begins, or the number; all if absent or empty"},
    {ADMIN_LIMIT_FIELD},
    {ADMIN_CURSOR_FIELD},
    API_END,
};
static const struct api_field list_reply[] = {
    {"users", API_OBJECTS, .about = "by number, or by name if asked for", .fields = listed_fields},
    {ADMIN_NEXT_FIELD},
    API_END,
};
static const struct api_field user_reply[] = {
    USER_FIELDS,
    API_RESERVE_FIELDS,
    {"runs", API_INT, .most = INT32_MAX, .about = "ever submitted"},
    {"runs_active", API_INT, .most = INT32_MAX, .about = "QUEUED or RUNNING"},
    {"account", API_TEXT, .choices = ACCOUNT_STATES,
     .about = "stopped: it cannot be charged; see millrace user release"},
    {"account_why", API_TEXT, .optional = true,
     .about = "what the stores contradict each other about; null: nothing"},
    {"account_since", API_TIME, .optional = true,
     .about = "when its first run was paused for that; null: none was"},
    API_END,
};
static const struct api_field permission_body[] = {
    {"permission", API_INT, .least = 0, .most = PERMISSION_MAX,
     .about = "papers judged at the same time, over all runs; 0: may not submit"},
    {ADMIN_REASON_FIELD},
    API_END,
};
static const struct api_field ban_body[] = {
    {"banned", API_BOOL, .about = "true ends sessions and pauses runs; false lets in again"},
    {ADMIN_REASON_FIELD},
    API_END,
};
static const struct api_field password_body[] = {
    {"password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX, .about = "8 to 72 bytes",
     .secret = true},
    {ADMIN_REASON_FIELD},
    API_END,
};
static const struct api_field tokens_reply[] = {
    {API_TOKENS_FIELD},
    API_END,
};

const struct api_route admin_users_routes[] = {
    {"GET", "/api/admin/users", API_ADMIN, list, "Users", .query = list_query, .reply = list_reply},
    {"GET", "/api/admin/users/:uid", API_ADMIN, show, "One user", .reply = user_reply},
    {"POST", "/api/admin/users/:uid/permission", API_ADMIN, set_permission,
     "How much a user may do at the same time", .body = permission_body, .reply = user_reply,
     .audit = "user.permission"},
    {"POST", "/api/admin/users/:uid/ban", API_ADMIN, ban, "Ban a user, or end the ban",
     .body = ban_body, .reply = user_reply, .audit = "user.ban"},
    {"POST", "/api/admin/users/:uid/password", API_ADMIN, set_password,
     "Give a user a new password, and end all sessions of theirs", .body = password_body,
     .audit = "user.password"},
    {"GET", "/api/admin/users/:uid/tokens", API_ADMIN, list_tokens, "API tokens of a user",
     .reply = tokens_reply},
    {"DELETE", "/api/admin/users/:uid/tokens/:token_id", API_ADMIN, revoke_token,
     "Revoke an API token of a user", .status = 200, .audit = "user.revoke_token"},
    {.method = NULL},
};
