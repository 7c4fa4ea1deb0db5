#include "app/account/routes.h"

#include "app/account/ledger.h"
#include "engine/api/login.h"
#include "engine/money/ledger.h"
#include "engine/people/password.h"
#include "engine/people/switches.h"
#include "engine/people/user.h"
#include "engine/setup/config.h"
#include "engine/store/amount.h"

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
    struct attempt who;
    int64_t uid;
    int err = api_attempt_register(t, c, &who);
    if (err)
        return err;
    err = password_hash_new(t, n->passwords, password, &u.password_hash);
    if (err == ERR_BUSY)
        attempts_forgive(t, n->registrations, &who); /* it cost nothing, and may be tried again */
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

/* See api_session_begin. */
static int look_again(struct task *t, struct api_call *c, const struct user *u,
                      const struct api_visitor *v)
{
    struct user now;
    int err = user_find(t, c->node->sql, u->username, &now);
    if (err && err != ERR_NOT_FOUND)
        return err;
    bool same = !err && !now.banned && str_eq(now.password, u->password);
    return same ? 0 : api_session_turn_away(t, c, v);
}

static int log_in(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct str name = api_text(c, "username");
    struct attempt who;
    struct user u;
    int err = api_attempt(t, c, SESSION_USER, name, &who);
    if (!err)
        err = check_password(t, c, name, &u);
    if (err)
        return err;
    attempts_forgive(t, n->attempts, &who);
    struct api_visitor v = {.kind = SESSION_USER, .uid = u.uid, .username = u.username};
    err = api_session_begin(t, c, &v);
    if (!err)
        err = look_again(t, c, &u, &v);
    if (err)
        return err;
    cache_touch(t, n->cache, u.uid);
    api_session_welcome(c, w, &v);
    return 0;
}

static int log_out(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    return api_session_leave(t, c, SESSION_USER, NULL);
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
    jw_put_str(w, "balance", amount_decimal(task_arena(t), cents));
    jw_put_int(w, "permission", u.permission);
    return 0;
}

/* --- sessions --- */

static int list_sessions(struct task *t, struct api_call *c, struct json_writer *w)
{
    return api_session_list(t, c, w, SESSION_USER);
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
    struct attempt who;
    struct user u;
    bool right;
    const char *why = user_password_problem(password);
    if (why)
        return api_refuse(t, c, "new_password", "%s", why);
    int err = api_attempt(t, c, SESSION_USER, c->session.username, &who);
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
static const struct api_field me_reply[] = {
    {"uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the user"},
    {"username", API_TEXT, .most = USER_NAME_CHARS_MAX, .about = "as registered"},
    {"balance", API_MONEY, .about = "what is left to spend"},
    {"permission", API_INT, .most = PERMISSION_MAX,
     .about = "papers judged at the same time, over all runs"},
    API_END,
};
const struct api_route account_routes[] = {
    {"POST", "/api/register", API_PUBLIC, do_register, "Register", .body = register_body,
     .reply = uid_reply, .status = 201},
    {"POST", "/api/login", API_PUBLIC, log_in, "Log in", .body = api_login_body,
     .reply = api_login_reply},
    {"POST", "/api/logout", API_USER, log_out, "Log out", .status = 200},
    {"GET", "/api/me", API_USER, show_me, "Who am I, and what may I spend", .reply = me_reply},
    {"GET", "/api/sessions", API_USER, list_sessions, "My sessions", .reply = api_sessions_reply},
    {"DELETE", "/api/sessions", API_USER, end_other_sessions, "End all my other sessions",
     .status = 200},
    {"DELETE", "/api/sessions/:sid", API_USER, end_session, "End one of my sessions",
     .status = 200},
    {"POST", "/api/password", API_USER, change_password,
     "Change my password, and end all my other sessions", .body = api_password_body},
    {"GET", "/api/ledger", API_USER, account_ledger, "Every charge and recharge of mine",
     .query = account_ledger_query, .reply = account_ledger_reply},
    {"GET", "/api/ledger.csv", API_USER, account_ledger_csv, "The same as a table",
     .media = "text/csv"},
    {.method = NULL},
};
