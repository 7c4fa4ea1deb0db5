#include "app/admin/call.h"

#include "engine/people/user.h"

int admin_path_number(struct task *t, const struct api_call *c, const char *name, const char *what,
                      int64_t *out)
{
    struct str text = http_param(c->x, name);
    int64_t v;
    if (!str_to_i64(text, &v) || v < 1 || v > INT32_MAX)
        return task_fail(t, ERR_NOT_FOUND, "there is no %s %.*s", what, STR_ARG(text));
    *out = v;
    return 0;
}

int admin_path_user(struct task *t, const struct api_call *c, int64_t *uid)
{
    struct sql_rows r;
    int err = admin_path_number(t, c, "uid", "user", uid);
    if (!err)
        err = sql_call(t, c->node->sql, &r, "SELECT 1 FROM user_info WHERE uid = ?", sql_int(*uid));
    if (!err && r.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "there is no user %lld", (long long)*uid);
    return err;
}

int admin_hash(struct task *t, struct api_call *c, struct str *hash)
{
    struct str password = api_text(c, "password");
    const char *why = user_password_problem(password);
    return why ? api_refuse(t, c, "password", "%s", why)
               : password_hash(t, c->node->passwords, password, hash);
}

int64_t admin_limit(const struct api_call *c)
{
    int64_t limit = ADMIN_LIMIT_DEFAULT;
    api_int(c, "limit", &limit);
    return limit;
}

int admin_cursor_refused(struct task *t, struct api_call *c)
{
    return api_refuse(t, c, "cursor", "not a cursor that we gave");
}

int admin_cursor(struct task *t, struct api_call *c, int64_t *out)
{
    struct str cursor = api_text(c, "cursor");
    int64_t v;
    if (!cursor.p)
        return 0;
    if (!str_to_i64(cursor, &v) || v < 0)
        return admin_cursor_refused(t, c);
    *out = v;
    return 0;
}

struct admin_deed admin_deed_of(const struct api_call *c)
{
    struct admin_deed d = api_deed(c);
    d.reason = api_text(c, "reason");
    return d;
}
