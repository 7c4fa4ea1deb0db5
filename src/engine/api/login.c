#include "engine/api/login.h"

#include "base/sha256.h"
#include "engine/people/admin.h"
#include "engine/people/password.h"
#include "engine/people/user.h"

#define NAME_ASKED_MAX 64 /* characters of a name in a guess */
#define KEPT_MS        1000

static const struct {
    const char *realm, *cookie;
    int64_t ttl_ms;
} worlds[] = {
    [SESSION_USER] = {"user", API_COOKIE, SESSION_TTL_MS},
    [SESSION_ADMIN] = {"admin", API_ADMIN_COOKIE, SESSION_ADMIN_TTL_MS},
};

/* --- guesses --- */

/* A name that cannot exist is counted all the same. */
static struct str attempted_name(struct task *t, struct str name)
{
    return user_name_problem(name) ? name : user_name_folded(task_arena(t), name);
}

static int take_attempt(struct task *t, struct api_call *c, struct attempts *a, struct attempt *who)
{
    int64_t retry_after_s;
    int err = attempts_take(t, a, who, &retry_after_s);
    if (err == ERR_RATE)
        http_set_header(c->x, "Retry-After", str_int(task_arena(t), retry_after_s));
    return err;
}

int api_attempt_register(struct task *t, struct api_call *c, struct attempt *who)
{
    *who = (struct attempt){.realm = "registration", .address = c->address};
    return take_attempt(t, c, c->node->registrations, who);
}

static int find_account(struct task *t, struct api_call *c, enum session_kind kind, struct str name,
                        struct api_account *out)
{
    struct user u = {.uid = 0};
    struct admin a = {.uid = 0};
    int err = kind == SESSION_USER ? user_find(t, c->node->sql, name, &u)
                                   : admin_find(t, c->node->sql, name, &a);
    *out = kind == SESSION_USER
               ? (struct api_account){u.uid, u.username, u.password, u.banned, false}
               : (struct api_account){a.uid, a.username, a.password, false, a.super};
    return err;
}

/* A little of the request's time is kept, to take back a guess that did not get its turn. */
static int examine(struct task *t, struct api_call *c, struct str password, struct str hash,
                   bool *right)
{
    int64_t left = task_time_left_ms(t);
    int64_t old = task_deadline(t, left > 2 * KEPT_MS ? left - KEPT_MS : left);
    int err = password_verify(t, c->node->passwords, password, hash, right);
    task_deadline_restore(t, old);
    return err;
}

/* A guess at a password: counted before it is checked, and taken back if it was right. It takes as
 * long whether there is such an account or not. */
static int guess(struct task *t, struct api_call *c, enum session_kind kind, struct str name,
                 struct str password, struct api_account *out, bool *right)
{
    struct attempt who = {
        .realm = worlds[kind].realm, .name = attempted_name(t, name), .address = c->address};
    int err = take_attempt(t, c, c->node->attempts, &who);
    if (err)
        return err;
    err = find_account(t, c, kind, name, out);
    if (!err || err == ERR_NOT_FOUND)
        err = examine(t, c, password, out->password, right);
    if (err)
        attempts_return(t, c->node->attempts, &who); /* not examined: no guess */
    else if (*right && !out->banned)
        attempts_forgive(t, c->node->attempts, &who);
    return err;
}

/* --- logging in --- */

static int wrong_password(struct task *t)
{
    return task_fail(t, ERR_UNAUTHENTICATED, "wrong user name or password");
}

/* Of an account that exists; refusals are few, as guesses are limited. refused: NULL, or why. */
static int note_login(struct task *t, struct api_call *c, enum session_kind kind,
                      const struct api_account *a, const char *refused)
{
    if (kind != SESSION_ADMIN || !a->username.p)
        return 0;
    struct admin_deed d = {.admin_uid = a->uid,
                           .admin_name = a->username,
                           .address = c->address,
                           .action = "admin.login",
                           .outcome = refused ? ADMIN_REFUSED : ADMIN_DONE,
                           .error = str_of(refused)};
    return admin_audit_note(t, c->node->sql, &d);
}

static int check_password(struct task *t, struct api_call *c, enum session_kind kind,
                          struct api_account *out)
{
    bool right;
    int err = guess(t, c, kind, api_text(c, "username"), api_text(c, "password"), out, &right);
    if (err)
        return err;
    if (right)
        return out->banned ? task_fail(t, ERR_FORBIDDEN, "this account is banned") : 0;
    err = note_login(t, c, kind, out, "wrong password");
    return err ? err : wrong_password(t);
}

/* An account that was banned, removed or got another password while the old one was checked may
 * have missed the end of all sessions: so it is read once more after the session has begun. */
static int check_again(struct task *t, struct api_call *c, enum session_kind kind,
                       const struct api_account *a, const char *token)
{
    struct api_account now;
    int err = find_account(t, c, kind, a->username, &now);
    if (err && err != ERR_NOT_FOUND)
        return err;
    if (!err && now.uid == a->uid && !now.banned && str_eq(now.password, a->password))
        return 0;
    char sid[SHA256_HEX_BYTES];
    sha256_hex(str_of(token), sid);
    err = session_end(t, c->node->cache, kind, a->uid, str_of(sid), NULL);
    return err && err != ERR_NOT_FOUND ? err : wrong_password(t);
}

int api_log_in(struct task *t, struct api_call *c, enum session_kind kind, struct json_writer *w,
               struct api_account *out)
{
    char token[SESSION_TOKEN_BYTES];
    int err = check_password(t, c, kind, out);
    if (err)
        return err;
    struct str agent = http_header(c->x, "User-Agent");
    struct session_start s = {kind, out->uid, out->username, c->address, agent.p ? agent : STR("")};
    err = session_begin(t, c->node->cache, &s, token);
    if (!err)
        err = check_again(t, c, kind, out, token);
    if (!err)
        err = note_login(t, c, kind, out, NULL);
    if (err)
        return err;
    c->degraded = !cache_trusts_redis(c->node->cache);
    api_set_cookie(c, worlds[kind].cookie, token, worlds[kind].ttl_ms / 1000);
    jw_put_int(w, "uid", out->uid);
    jw_put_str(w, "username", out->username);
    jw_put_str(w, "token", str_of(token));
    return 0;
}

/* The kind of the session that calls. */
static enum session_kind kind_of(const struct api_call *c)
{
    return c->route->access >= API_ADMIN ? SESSION_ADMIN : SESSION_USER;
}

int api_new_password(struct task *t, struct api_call *c, struct api_account *out, struct str *hash)
{
    struct str password = api_text(c, "new_password");
    bool right;
    const char *why = user_password_problem(password);
    if (why)
        return api_refuse(t, c, "new_password", "%s", why);
    int err =
        guess(t, c, kind_of(c), c->session.username, api_text(c, "old_password"), out, &right);
    if (err)
        return err;
    if (!right)
        return api_refuse(t, c, "old_password", "this is not your password");
    return password_hash(t, c->node->passwords, password, hash);
}

/* --- sessions --- */

#define AT(member) API_AT(struct session, member)
static const struct api_field session_fields[] = {
    {"sid", API_TEXT, AT(sid), .most = 64,
     .about = "names the session; it cannot be used to log in"},
    {"current", API_BOOL, .about = "the one that asks"},
    {"login_time", API_TIME, AT(login_ms), .about = "when it began"},
    {"last_activity", API_TIME, AT(active_ms), .about = "when it was last used, to the minute"},
    {"ip_address", API_TEXT, AT(ip_address), .most = SESSION_ADDRESS_BYTES_MAX,
     .about = "where it began"},
    {"user_agent", API_TEXT, AT(user_agent), .most = SESSION_AGENT_BYTES_MAX,
     .about = "with which program"},
    API_END,
};

int api_session_list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct session *all;
    size_t count;
    int err = session_list(t, c->node->cache, kind_of(c), c->session.uid, &all, &count);
    if (err)
        return err;
    c->degraded = !cache_trusts_redis(c->node->cache);
    jw_put_array(w, "sessions");
    for (size_t i = 0; i < count; i++) {
        jw_object(w);
        api_put_fields(t, w, session_fields, &all[i]);
        jw_put_bool(w, "current", str_eq(all[i].sid, c->session.sid));
        jw_end_object(w);
    }
    jw_end_array(w);
    return 0;
}

static int end(struct task *t, struct api_call *c, struct str sid, struct str target)
{
    struct admin_deed d = {.target = STR_NULL};
    if (c->route->audit)
        d = api_deed(c);
    d.target = target;
    return session_end(t, c->node->cache, kind_of(c), c->session.uid, sid,
                       c->route->audit ? &d : NULL);
}

int api_session_leave(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    int err = end(t, c, c->session.sid, STR_NULL);
    if (err && err != ERR_NOT_FOUND)
        return err;
    api_set_cookie(c, worlds[kind_of(c)].cookie, "", 0);
    return 0;
}

int api_session_end(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct str sid = http_param(c->x, "sid");
    int err = end(t, c, sid, sid);
    return err == ERR_NOT_FOUND ? task_fail(t, err, "you have no such session") : err;
}

/* --- the tables --- */

const struct api_field api_login_body[] = {
    {"username", API_TEXT, .least = 1, .most = NAME_ASKED_MAX, .about = "as registered"},
    {"password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX, .about = "the password",
     .secret = true},
    API_END,
};
const struct api_field api_login_reply[] = {
    {"uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the account"},
    {"username", API_TEXT, .most = USER_NAME_CHARS_MAX, .about = "as registered"},
    {"token", API_TEXT, .most = SESSION_TOKEN_BYTES, .secret = true,
     .about = "of the session, for Authorization: Bearer; also set as a cookie"},
    API_END,
};
const struct api_field api_password_body[] = {
    {"old_password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX,
     .about = "the one that holds now", .secret = true},
    {"new_password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX,
     .about = "8 to 72 bytes", .secret = true},
    API_END,
};
const struct api_field api_sessions_reply[] = {
    {"sessions", API_OBJECTS, .about = "newest first", .fields = session_fields},
    API_END,
};
