#include "app/account/routes.h"

#include "app/account/ledger.h"
#include "app/account/limits.h"
#include "app/account/tokens.h"
#include "engine/api/login.h"
#include "engine/api/run.h"
#include "engine/people/password.h"
#include "engine/people/switches.h"
#include "engine/people/user.h"
#include "engine/runs/account.h"
#include "engine/setup/config.h"
#include "engine/store/amount.h"

/* --- register --- */

struct registration {
    const struct user_new *user;
    int64_t uid;
};

/* Registration may have been closed while the password was hashed: the switch is read in the same
 * transaction. */
static int register_user(struct task *t, struct sql *c, void *arg)
{
    struct registration *r = arg;
    bool open;
    int err = switch_read(t, c, SWITCH_REGISTRATION, &open);
    if (!err && !open)
        err = task_fail(t, ERR_FORBIDDEN, "registration is closed");
    return err ? err : user_create_on(t, c, r->user, &r->uid);
}

static int refuse_closed(struct task *t, struct node *n)
{
    int err = switches_look(t, n->switches);
    if (!err && !switch_on(n->switches, SWITCH_REGISTRATION))
        err = task_fail(t, ERR_FORBIDDEN, "registration is closed");
    return err;
}

static int refuse_lookalike(struct task *t, struct node *n, struct str name)
{
    bool taken;
    int err = user_name_taken(t, n->sql, name, &taken);
    if (!err && taken)
        err = task_fail(t, ERR_EXISTS, "this user name is taken, or looks like one that is");
    return err;
}

/* The name is looked for before the password is hashed, which takes longer. */
static int create(struct task *t, struct api_call *c, struct user_new *u, int64_t *uid)
{
    struct node *n = c->node;
    struct attempt who;
    struct registration r = {.user = u};
    int err = api_attempt_register(t, c, &who);
    if (!err)
        err = refuse_lookalike(t, n, u->username);
    if (err)
        return err;
    err = password_hash_new(t, n->passwords, api_text(c, "password"), &u->password_hash);
    if (err == ERR_BUSY)
        attempts_return(t, n->registrations, &who); /* it cost nothing, and may be tried again */
    if (!err)
        err = sql_tx(t, n->sql, register_user, &r);
    *uid = r.uid;
    return err == ERR_EXISTS ? task_fail(t, err, "this user name is taken") : err;
}

static int do_register(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct user_new u = {.username = api_text(c, "username"),
                         .permission = n->config->new_user_permission,
                         .opening_cents = n->config->new_user_balance_cents};
    int64_t uid;
    int err = refuse_closed(t, n);
    if (err)
        return err;
    const char *why = user_name_problem(u.username);
    if (why)
        return api_refuse(t, c, "username", "%s", why);
    why = user_password_problem(api_text(c, "password"));
    if (why)
        return api_refuse(t, c, "password", "%s", why);
    err = create(t, c, &u, &uid);
    if (err)
        return err;
    c->degraded = !cache_trusts_redis(n->cache);
    jw_put_int(w, "uid", uid);
    return 0;
}

/* --- before anyone has logged in --- */

static int welcome(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    bool banned = false;
    if (switches_look(t, n->switches)) /* as seen last, then */
        c->degraded = true;
    struct str token = http_cookie(c->x, API_COOKIE);
    int err = token.p ? session_banned(t, n->cache, token, &banned) : 0;
    if (err)
        return err;
    jw_put_bool(w, "registration", switch_on(n->switches, SWITCH_REGISTRATION));
    jw_put_bool(w, "banned", banned);
    jw_put_str(w, "contact", str_of(n->config->contact));
    return 0;
}

/* --- log in --- */

static int log_in(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct api_account a;
    return api_log_in(t, c, SESSION_USER, w, &a);
}

/* --- the account --- */

#define STOPPED_WHY                                                                                \
    "what was spent does not match in both stores; nothing is charged until the operator has "     \
    "looked at it"

static int show_me(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct user u;
    struct account_state a;
    int err = user_get(t, n->cache, c->session.uid, &u);
    if (!err)
        err = account_look(t, n->runs, u.uid, &a);
    if (err)
        return err;
    cache_touch(t, n->cache, u.uid);
    c->degraded = u.degraded || a.money.degraded;
    jw_put_int(w, "uid", u.uid);
    jw_put_str(w, "username", u.username);
    jw_put_str(w, "balance", amount_decimal(task_arena(t), a.money.balance));
    api_put_reserve(t, w, &a.money);
    jw_put_int(w, "permission", u.permission);
    jw_put_str(w, "account", a.stopped ? STR("stopped") : STR("active"));
    jw_put_str(w, "account_why", a.stopped ? STR(STOPPED_WHY) : STR_NULL);
    api_put_time(w, "account_since", a.since_ms);
    return 0;
}

/* --- sessions --- */

static int end_other_sessions(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    return session_end_all(t, c->node->cache, SESSION_USER, c->session.uid, c->session.sid);
}

/* --- the password --- */

static int change_password(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct api_account a;
    struct user_change ch = {.part = USER_PASSWORD};
    int err = api_new_password(t, c, &a, &ch.hash);
    if (err)
        return err;
    ch.uid = a.uid;
    err = user_change(t, c->node->cache, &ch);
    return err ? err : session_end_all(t, c->node->cache, SESSION_USER, a.uid, c->session.sid);
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
    {"balance", API_MONEY, .about = "what is left of the money"},
    API_RESERVE_FIELDS,
    {"permission", API_INT, .most = PERMISSION_MAX,
     .about = "AI calls at the same time: papers of all runs, and jobs"},
    {"account", API_TEXT, .choices = ACCOUNT_STATES,
     .about = "stopped: it cannot be charged, and its runs are paused, until the operator has "
              "looked at it; balance may lack the last charges"},
    {"account_why", API_TEXT, .optional = true, .about = "why it is stopped; null: it is not"},
    {"account_since", API_TIME, .optional = true,
     .about = "when its first run was paused for that; null: none was"},
    API_END,
};
static const struct api_field welcome_reply[] = {
    {"registration", API_BOOL, .about = "new accounts can be made"},
    {"banned", API_BOOL, .about = "the session of this browser ended because of a ban"},
    {"contact", API_TEXT, .most = 4096, .about = "whom users may ask; empty: not said"},
    API_END,
};
const struct api_route account_routes[] = {
    {"GET", "/api/welcome", API_PUBLIC, welcome, "What the log-in page needs to know",
     .reply = welcome_reply},
    {"POST", "/api/register", API_PUBLIC, do_register, "Register", .body = register_body,
     .reply = uid_reply, .status = 201},
    {"POST", "/api/login", API_PUBLIC, log_in, "Log in", .body = api_login_body,
     .reply = api_login_reply},
    {"POST", "/api/logout", API_PERSON, api_session_leave, "Log out", .status = 200},
    {"GET", "/api/me", API_USER, show_me, "Who am I, and what may I spend", .reply = me_reply},
    {"GET", "/api/sessions", API_PERSON, api_session_list, "My sessions",
     .reply = api_sessions_reply},
    {"DELETE", "/api/sessions", API_PERSON, end_other_sessions, "End all my other sessions",
     .status = 200},
    {"DELETE", "/api/sessions/:sid", API_PERSON, api_session_end, "End one of my sessions",
     .status = 200},
    {"POST", "/api/password", API_PERSON, change_password,
     "Change my password, and end all my other sessions", .body = api_password_body},
    {"GET", "/api/tokens", API_PERSON, account_tokens, "My API tokens, and what they can be for",
     .reply = account_tokens_reply},
    {"POST", "/api/tokens", API_PERSON, account_token_add, "Make an API token",
     .body = account_token_body, .reply = account_token_reply, .status = 201},
    {"DELETE", "/api/tokens/:token_id", API_PERSON, account_token_revoke,
     "Revoke one of my API tokens", .status = 200},
    {"GET", "/api/limits", API_USER, account_limits, "What I may start, and have started",
     .reply = account_limits_reply},
    {"GET", "/api/ledger", API_USER, account_ledger, "Every charge and recharge of mine",
     .query = account_ledger_query, .reply = account_ledger_reply},
    {"GET", "/api/ledger.csv", API_USER, account_ledger_csv, "The same as a table",
     .media = "text/csv"},
    {.method = NULL},
};
