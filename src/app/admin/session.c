/* Logging in and out: as users do, but in a world of their own. */
#include "app/admin/routes.h"
#include "engine/api/login.h"
#include "engine/people/admin.h"
#include "engine/people/password.h"
#include "engine/people/user.h"

/* --- log in, log out --- */

/* Before there is a session. */
static struct admin_deed deed_of(const struct api_call *c, const struct admin *a)
{
    return (struct admin_deed){.admin_uid = a->uid,
                               .admin_name = a->username,
                               .address = c->address,
                               .action = "admin.login"};
}

/* Guesses at names that exist are noted; there are few, they are limited. */
static int refuse(struct task *t, struct api_call *c, const struct admin *a)
{
    struct admin_deed d = deed_of(c, a);
    d.outcome = ADMIN_REFUSED;
    d.error = STR("wrong password");
    int err = a->username.p ? admin_audit_note(t, c->node->sql, &d) : 0;
    return err ? err : task_fail(t, ERR_UNAUTHENTICATED, "wrong user name or password");
}

/* Takes as long whether there is such an admin or not. */
static int check_password(struct task *t, struct api_call *c, struct str name, struct admin *a)
{
    struct node *n = c->node;
    bool right;
    *a = (struct admin){.uid = 0};
    int err = admin_find(t, n->sql, name, a);
    if (err && err != ERR_NOT_FOUND)
        return err;
    err = password_verify(t, n->passwords, api_text(c, "password"), a->password, &right);
    if (err)
        return err;
    return right ? 0 : refuse(t, c, a);
}

/* See api_session_begin. */
static int look_again(struct task *t, struct api_call *c, const struct admin *a,
                      const struct api_visitor *v)
{
    struct admin now;
    int err = admin_find(t, c->node->sql, a->username, &now);
    if (err && err != ERR_NOT_FOUND)
        return err;
    bool same = !err && now.uid == a->uid && str_eq(now.password, a->password);
    return same ? 0 : api_session_turn_away(t, c, v);
}

static int log_in(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str name = api_text(c, "username");
    struct attempt who;
    struct admin a;
    int err = api_attempt(t, c, SESSION_ADMIN, name, &who);
    if (!err)
        err = check_password(t, c, name, &a);
    if (err)
        return err;
    attempts_forgive(t, c->node->attempts, &who);
    struct api_visitor v = {.kind = SESSION_ADMIN, .uid = a.uid, .username = a.username};
    struct admin_deed d = deed_of(c, &a);
    err = api_session_begin(t, c, &v);
    if (!err)
        err = look_again(t, c, &a, &v);
    if (!err)
        err = admin_audit_note(t, c->node->sql, &d);
    if (err)
        return err;
    api_session_welcome(c, w, &v);
    jw_put_str(w, "role", str_of(admin_role(a.super)));
    return 0;
}

static int log_out(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct admin_deed d = api_deed(c);
    return api_session_leave(t, c, SESSION_ADMIN, &d);
}

/* --- the one who is logged in --- */

static int show_me(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin a;
    int err = admin_get(t, c->node->cache, c->session.uid, &a);
    if (err)
        return err;
    jw_put_int(w, "uid", a.uid);
    jw_put_str(w, "username", a.username);
    jw_put_str(w, "role", str_of(admin_role(a.super)));
    return 0;
}

static int list_sessions(struct task *t, struct api_call *c, struct json_writer *w)
{
    return api_session_list(t, c, w, SESSION_ADMIN);
}

static int end_session(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct str sid = http_param(c->x, "sid");
    struct admin_deed d = api_deed(c);
    d.target = sid;
    int err = session_end_by(t, c->node->cache, SESSION_ADMIN, c->session.uid, sid, &d);
    return err == ERR_NOT_FOUND ? task_fail(t, err, "you have no such session") : err;
}

/* The old one is a guess like any other, so it is counted like one. */
static int change_password(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct node *n = c->node;
    struct str password = api_text(c, "new_password"), hash;
    struct attempt who;
    struct admin a;
    bool right;
    const char *why = user_password_problem(password);
    if (why)
        return api_refuse(t, c, "new_password", "%s", why);
    int err = api_attempt(t, c, SESSION_ADMIN, c->session.username, &who);
    if (!err)
        err = admin_find(t, n->sql, c->session.username, &a);
    if (!err)
        err = password_verify(t, n->passwords, api_text(c, "old_password"), a.password, &right);
    if (err)
        return err;
    if (!right)
        return api_refuse(t, c, "old_password", "this is not your password");
    attempts_forgive(t, n->attempts, &who);
    struct admin_deed d = api_deed(c);
    err = password_hash(t, n->passwords, password, &hash);
    return err ? err : admin_set_password(t, n->cache, a.uid, hash, c->session.sid, &d);
}

/* --- the table --- */

#define ROLE                                                                                       \
    {                                                                                              \
        "role", API_TEXT, .choices = "super|admin", .about = "super admins look after admins"      \
    }

static const struct api_field login_reply[] = {
    {"uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the admin"},
    {"username", API_TEXT, .most = USER_NAME_CHARS_MAX, .about = "as it was given"},
    {"token", API_TEXT, .most = SESSION_TOKEN_BYTES,
     .about = "of the session, for Authorization: Bearer; also set as a cookie"},
    ROLE,
    API_END,
};
static const struct api_field me_reply[] = {
    {"uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the admin"},
    {"username", API_TEXT, .most = USER_NAME_CHARS_MAX, .about = "as it was given"},
    ROLE,
    API_END,
};

const struct api_route admin_session_routes[] = {
    {"POST", "/api/admin/login", API_PUBLIC, log_in, "Log in as an admin", .body = api_login_body,
     .reply = login_reply},
    {"POST", "/api/admin/logout", API_ADMIN, log_out, "Log out", .status = 200,
     .audit = "admin.logout"},
    {"GET", "/api/admin/me", API_ADMIN, show_me, "Who am I", .reply = me_reply},
    {"GET", "/api/admin/sessions", API_ADMIN, list_sessions, "My sessions",
     .reply = api_sessions_reply},
    {"DELETE", "/api/admin/sessions/:sid", API_ADMIN, end_session, "End one of my sessions",
     .status = 200, .audit = "admin.end_session"},
    {"POST", "/api/admin/password", API_ADMIN, change_password,
     "Change my password, and end all my other sessions", .body = api_password_body,
     .audit = "admin.password"},
    {.method = NULL},
};
