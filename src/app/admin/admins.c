/* Super admins look after admins. */
#include "engine/people/admin.h"

#include "app/admin/call.h"
#include "app/admin/routes.h"
#include "engine/people/user.h"

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin *all;
    size_t count;
    int err = admin_list(t, c->node->sql, &all, &count);
    if (err)
        return err;
    jw_put_array(w, "admins");
    for (size_t i = 0; i < count; i++) {
        jw_object(w);
        jw_put_int(w, "uid", all[i].uid);
        jw_put_str(w, "username", all[i].username);
        jw_put_str(w, "role", str_of(admin_role(all[i].super)));
        api_put_time(w, "created_at", all[i].created_ms);
        jw_end_object(w);
    }
    jw_end_array(w);
    return 0;
}

static int add(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str name = api_text(c, "username"), hash;
    struct admin_deed d = api_deed(c);
    bool super = str_eq(api_text(c, "role"), STR("super"));
    int64_t uid;
    const char *why = user_name_problem(name);
    if (why)
        return api_refuse(t, c, "username", "%s", why);
    int err = admin_hash(t, c, &hash);
    if (!err)
        err = admin_create(t, c->node->sql, name, hash, super, &d, &uid);
    if (err)
        return err;
    jw_put_int(w, "uid", uid);
    return 0;
}

static int remove_one(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct admin_deed d = api_deed(c);
    int64_t uid;
    int err = admin_path_number(t, c, "admin", "admin", &uid);
    return err ? err : admin_remove(t, c->node->cache, uid, &d);
}

static int set_role(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed d = api_deed(c);
    struct str role = api_text(c, "role");
    int64_t uid;
    int err = admin_path_number(t, c, "admin", "admin", &uid);
    if (!err)
        err = admin_set_role(t, c->node->cache, uid, str_eq(role, STR("super")), &d);
    if (err)
        return err;
    jw_put_int(w, "uid", uid);
    jw_put_str(w, "role", role);
    return 0;
}

static int set_password(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct admin_deed d = api_deed(c);
    struct str hash;
    int64_t uid;
    int err = admin_path_number(t, c, "admin", "admin", &uid);
    if (!err)
        err = admin_hash(t, c, &hash);
    return err ? err : admin_set_password(t, c->node->cache, uid, hash, STR_NULL, &d);
}

/* --- the table --- */

#define UID  "uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the admin"
#define ROLE "role", API_TEXT, .choices = "super|admin"
#define PASSWORD                                                                                   \
    "password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX, .about = "8 to 72 bytes",   \
                          .secret = true

static const struct api_field admin_fields[] = {
    {UID},
    {"username", API_TEXT, .most = USER_NAME_CHARS_MAX, .about = "as it was given"},
    {ROLE, .about = "super admins look after admins"},
    {"created_at", API_TIME, .about = "when it was added"},
    API_END,
};
static const struct api_field list_reply[] = {
    {"admins", API_OBJECTS, .about = "all of them, by number", .fields = admin_fields},
    API_END,
};
static const struct api_field add_body[] = {
    {"username", API_TEXT, .least = USER_NAME_CHARS_MIN, .most = USER_NAME_CHARS_MAX,
     .about = "letters, digits, _, - or CJK; capitals make no difference"},
    {PASSWORD},
    {ROLE, .optional = true, .about = "admin if absent"},
    API_END,
};
static const struct api_field uid_reply[] = {{UID}, API_END};
static const struct api_field role_body[] = {{ROLE, .about = "from now on"}, API_END};
static const struct api_field role_reply[] = {{UID}, {ROLE, .about = "from now on"}, API_END};
static const struct api_field password_body[] = {{PASSWORD}, API_END};

const struct api_route admin_admins_routes[] = {
    {"GET", "/api/admin/admins", API_SUPER, list, "All admins", .reply = list_reply},
    {"POST", "/api/admin/admins", API_SUPER, add, "Add an admin", .body = add_body,
     .reply = uid_reply, .status = 201, .audit = "admin.add"},
    {"DELETE", "/api/admin/admins/:admin", API_SUPER, remove_one,
     "Remove an admin, and end all sessions of theirs", .status = 200, .audit = "admin.remove"},
    {"POST", "/api/admin/admins/:admin/role", API_SUPER, set_role, "Promote or demote an admin",
     .body = role_body, .reply = role_reply, .audit = "admin.role"},
    {"POST", "/api/admin/admins/:admin/password", API_SUPER, set_password,
     "Give an admin a new password, and end all sessions of theirs", .body = password_body,
     .audit = "admin.reset_password"},
    {.method = NULL},
};
