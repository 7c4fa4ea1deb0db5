/* Logging in and out: as users do, with sessions of their own. */
#include "app/admin/routes.h"
#include "engine/api/login.h"
#include "engine/people/admin.h"
#include "engine/people/user.h"

/* --- log in --- */

static int log_in(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct api_account a;
    int err = api_log_in(t, c, SESSION_ADMIN, w, &a);
    if (!err)
        jw_put_str(w, "role", str_of(admin_role(a.super)));
    return err;
}

/* --- the account that is logged in --- */

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

static int change_password(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct admin_deed d = api_deed(c);
    struct api_account a;
    struct str hash;
    int err = api_new_password(t, c, &a, &hash);
    return err ? err : admin_set_password(t, c->node->cache, a.uid, hash, c->session.sid, &d);
}

/* --- the table --- */

#define ROLE "role", API_TEXT, .choices = "super|admin", .about = "super admins look after admins"

static const struct api_field login_reply[] = {
    {"uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the admin"},
    {"username", API_TEXT, .most = USER_NAME_CHARS_MAX, .about = "as it was given"},
    {"token", API_TEXT, .most = SESSION_TOKEN_BYTES, .secret = true,
     .about = "of the session, for Authorization: Bearer; also set as a cookie"},
    {ROLE},
    API_END,
};
static const struct api_field me_reply[] = {
    {"uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the admin"},
    {"username", API_TEXT, .most = USER_NAME_CHARS_MAX, .about = "as it was given"},
    {ROLE},
    API_END,
};

const struct api_route admin_session_routes[] = {
    {"POST", "/api/admin/login", API_PUBLIC, log_in, "Log in as an admin", .body = api_login_body,
     .reply = login_reply},
    {"POST", "/api/admin/logout", API_ADMIN, api_session_leave, "Log out", .status = 200,
     .audit = "admin.logout"},
    {"GET", "/api/admin/me", API_ADMIN, show_me, "Who am I", .reply = me_reply},
    {"GET", "/api/admin/sessions", API_ADMIN, api_session_list, "My sessions",
     .reply = api_sessions_reply},
    {"DELETE", "/api/admin/sessions/:sid", API_ADMIN, api_session_end, "End one of my sessions",
     .status = 200, .audit = "admin.end_session"},
    {"POST", "/api/admin/password", API_ADMIN, change_password,
     "Change my password, and end all my other sessions", .body = api_password_body,
     .audit = "admin.password"},
    {.method = NULL},
};
