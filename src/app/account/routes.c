#include "app/account/routes.h"

#include "engine/attempts.h"
#include "engine/config.h"
#include "engine/ledger.h"
#include "engine/password.h"
#include "engine/switches.h"
#include "engine/user.h"

#define NAME_ASKED_MAX 64 /* characters of a name that somebody tries */

/* --- register --- */

static int do_register(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct user_new u = {.username = api_text(c, "username"),
                         .permission = n->config->new_user_permission,
                         .opening_cents = n->config->new_user_balance_cents};
    struct str password = api_text(c, "password");
    if (!switch_on(n->switches, SWITCH_REGISTRATION))
        return task_fail(t, ERR_FORBIDDEN, "registration is closed");
    const char *why = user_name_problem(u.username);
    if (why)
        return api_refuse(t, c, "username", "%s", why);
    why = user_password_problem(password);
    if (why)
        return api_refuse(t, c, "password", "%s", why);
    int64_t uid;
    int err = password_hash(t, n->passwords, password, &u.password_hash);
    if (!err)
        err = user_create(t, n->sql, &u, &uid);
    if (err == ERR_EXISTS)
        return task_fail(t, ERR_EXISTS, "this user name is taken");
    if (err)
        return err;
    c->degraded = !cache_trusts_redis(n->cache);
    jw_put_int(w, "uid", uid);
    return 0;
}

/* --- log in, log out --- */

/* Whoever tries a name that cannot exist is counted under it all the same. */
static struct str attempted_name(struct task *t, struct str name)
{
    return user_name_problem(name) ? name : user_name_folded(task_arena(t), name);
}

static int refuse_attempt(struct task *t, struct api_call *c, int64_t retry_after_s)
{
    http_set_header(c->x, "Retry-After",
                    str_printf(task_arena(t), "%lld", (long long)retry_after_s));
    return task_fail(t, ERR_RATE, "too many failed attempts; try again in %lld s",
                     (long long)retry_after_s);
}

/* Takes as long whether there is such a user or not. */
static int check_password(struct task *t, struct api_call *c, struct str name, struct user *u)
{
    struct node *n = c->node;
    bool right;
    int err = user_find(t, n->sql, name, u);
    if (err && err != ERR_NOT_FOUND)
        return err;
    struct str hash = err ? STR_NULL : u->password;
    err = password_verify(t, n->passwords, api_text(c, "password"), hash, &right);
    if (err)
        return err;
    if (!right)
        return task_fail(t, ERR_UNAUTHENTICATED, "wrong user name or password");
    return u->banned ? task_fail(t, ERR_FORBIDDEN, "this account is banned") : 0;
}

static int log_in(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct str name = api_text(c, "username");
    struct attempt who = {"user", attempted_name(t, name), c->address};
    struct user u;
    int64_t retry_after_s;
    int err = attempts_take(t, n->attempts, &who, &retry_after_s);
    if (err == ERR_RATE)
        return refuse_attempt(t, c, retry_after_s);
    if (!err)
        err = check_password(t, c, name, &u);
    if (err)
        return err;
    attempts_forgive(t, n->attempts, &who);
    struct str agent = http_header(c->x, "User-Agent");
    struct session_start s = {SESSION_USER, u.uid, u.username, c->address,
                              agent.p ? agent : STR("")};
    char token[SESSION_TOKEN_BYTES];
    err = session_begin(t, n->cache, &s, token);
    if (err)
        return err;
    cache_touch(t, n->cache, u.uid);
    c->degraded = !cache_trusts_redis(n->cache);
    api_set_cookie(c, API_COOKIE, token, SESSION_TTL_MS / 1000);
    jw_put_int(w, "uid", u.uid);
    jw_put_str(w, "username", u.username);
    jw_put_str(w, "token", str_of(token));
    return 0;
}

static int log_out(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    int err = session_end(t, c->node->cache, SESSION_USER, c->session.uid, c->session.sid);
    if (err && err != ERR_NOT_FOUND)
        return err;
    api_set_cookie(c, API_COOKIE, "", 0);
    return 0;
}

/* --- who am I --- */

static int show_me(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct user u;
    int64_t cents;
    bool degraded = false;
    int err = user_get(t, n->cache, c->session.uid, &u);
    if (!err)
        err = ledger_balance(t, n->ledger, u.uid, &cents, &degraded);
    if (err)
        return err;
    cache_touch(t, n->cache, u.uid);
    c->degraded = u.degraded || degraded;
    jw_put_int(w, "uid", u.uid);
    jw_put_str(w, "username", u.username);
    jw_put_str(w, "balance", ledger_decimal(task_arena(t), cents));
    jw_put_int(w, "permission", u.permission);
    return 0;
}

/* --- sessions --- */

static int list_sessions(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct session *all;
    size_t count;
    int err = session_list(t, c->node->cache, SESSION_USER, c->session.uid, &all, &count);
    if (err)
        return err;
    c->degraded = !cache_trusts_redis(c->node->cache);
    jw_key(w, STR("sessions"));
    jw_array(w);
    for (size_t i = 0; i < count; i++) {
        jw_object(w);
        jw_put_str(w, "sid", all[i].sid);
        jw_put_bool(w, "current", str_eq(all[i].sid, c->session.sid));
        api_put_time(w, "login_time", all[i].login_ms);
        api_put_time(w, "last_activity", all[i].active_ms);
        jw_put_str(w, "ip_address", all[i].ip_address);
        jw_put_str(w, "user_agent", all[i].user_agent);
        jw_end_object(w);
    }
    jw_end_array(w);
    return 0;
}

static int end_session(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    int err = session_end(t, c->node->cache, SESSION_USER, c->session.uid, http_param(c->x, "sid"));
    return err == ERR_NOT_FOUND ? task_fail(t, err, "you have no such session") : err;
}

static int end_other_sessions(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    return session_end_all(t, c->node->cache, SESSION_USER, c->session.uid, c->session.sid);
}

/* --- the password --- */

/* The old one is a guess like any other, so it is counted like one. */
static int change_password(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct node *n = c->node;
    struct str password = api_text(c, "new_password"), hash;
    struct attempt who = {"user", attempted_name(t, c->session.username), c->address};
    struct user u;
    int64_t retry_after_s;
    bool right;
    const char *why = user_password_problem(password);
    if (why)
        return api_refuse(t, c, "new_password", "%s", why);
    int err = attempts_take(t, n->attempts, &who, &retry_after_s);
    if (err == ERR_RATE)
        return refuse_attempt(t, c, retry_after_s);
    if (!err)
        err = user_find(t, n->sql, c->session.username, &u);
    if (!err)
        err = password_verify(t, n->passwords, api_text(c, "old_password"), u.password, &right);
    if (err)
        return err;
    if (!right)
        return api_refuse(t, c, "old_password", "this is not your password");
    attempts_forgive(t, n->attempts, &who);
    err = password_hash(t, n->passwords, password, &hash);
    if (!err)
        err = user_set_password(t, n->cache, u.uid, hash);
    return err ? err : session_end_all(t, n->cache, SESSION_USER, u.uid, c->session.sid);
}

/* --- the table --- */

static const struct api_field uid_reply[] = {
    {"uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the user"},
    API_END,
};
static const struct api_field register_body[] = {
    {"username", API_TEXT, .least = USER_NAME_CHARS_MIN, .most = USER_NAME_CHARS_MAX,
     .about = "letters, digits, _, - or CJK; capitals make no difference"},
    {"password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX, .about = "8 to 72 bytes"},
    API_END,
};
static const struct api_field login_body[] = {
    {"username", API_TEXT, .least = 1, .most = NAME_ASKED_MAX, .about = "as registered"},
    {"password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX, .about = "the password"},
    API_END,
};
static const struct api_field login_reply[] = {
    {"uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the user"},
    {"username", API_TEXT, .most = USER_NAME_CHARS_MAX, .about = "as registered"},
    {"token", API_TEXT, .most = SESSION_TOKEN_BYTES,
     .about = "of the session, for Authorization: Bearer; also set as a cookie"},
    API_END,
};
static const struct api_field me_reply[] = {
    {"uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the user"},
    {"username", API_TEXT, .most = USER_NAME_CHARS_MAX, .about = "as registered"},
    {"balance", API_MONEY, .about = "what is left to spend"},
    {"permission", API_INT, .most = USER_PERMISSION_MAX,
     .about = "papers judged at the same time, over all runs"},
    API_END,
};
static const struct api_field session_fields[] = {
    {"sid", API_TEXT, .most = 64, .about = "names the session; it cannot be used to log in"},
    {"current", API_BOOL, .about = "the one that asks"},
    {"login_time", API_TIME, .about = "when it began"},
    {"last_activity", API_TIME, .about = "when it was last used, to the minute"},
    {"ip_address", API_TEXT, .most = 45, .about = "where it began"},
    {"user_agent", API_TEXT, .most = SESSION_AGENT_BYTES_MAX, .about = "with which program"},
    API_END,
};
static const struct api_field sessions_reply[] = {
    {"sessions", API_OBJECTS, .about = "newest first", .fields = session_fields},
    API_END,
};
static const struct api_field password_body[] = {
    {"old_password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX,
     .about = "the one that holds now"},
    {"new_password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX,
     .about = "8 to 72 bytes"},
    API_END,
};

const struct api_route account_routes[] = {
    {"POST", "/api/register", API_PUBLIC, do_register, "Register", .body = register_body,
     .reply = uid_reply, .status = 201},
    {"POST", "/api/login", API_PUBLIC, log_in, "Log in", .body = login_body, .reply = login_reply},
    {"POST", "/api/logout", API_USER, log_out, "Log out", .status = 200},
    {"GET", "/api/me", API_USER, show_me, "Who am I, and what may I spend", .reply = me_reply},
    {"GET", "/api/sessions", API_USER, list_sessions, "My sessions", .reply = sessions_reply},
    {"DELETE", "/api/sessions", API_USER, end_other_sessions, "End all my other sessions",
     .status = 200},
    {"DELETE", "/api/sessions/:sid", API_USER, end_session, "End one of my sessions",
     .status = 200},
    {"POST", "/api/password", API_USER, change_password,
     "Change my password, and end all my other sessions", .body = password_body},
    {.method = NULL},
};
