/* What admins did and tried, for the audit log. */
#include "base/log.h"
#include "engine/api/api_private.h"

#define NOTE_MS 5000 /* how long a refusal waits for its note */

/* 0: the path names none. */
static int64_t user_of(const struct api_call *c)
{
    int64_t uid;
    return str_to_i64(http_param(c->x, "uid"), &uid) && uid > 0 && uid <= INT32_MAX ? uid : 0;
}

/* The first parameter of the path that is no user. */
static struct str target_of(struct task *t, const struct api_call *c)
{
    struct str rest = str_of(c->route->path);
    while (rest.p) {
        struct str segment = str_cut(&rest, '/');
        if (segment.n > 1 && segment.p[0] == ':' && !str_eq(segment, STR(":uid")))
            return http_param(c->x, str_z(task_arena(t), str_from(segment.p + 1, segment.n - 1)));
    }
    return STR_NULL;
}

struct admin_deed api_deed(const struct api_call *c)
{
    check(c->route->audit && c->admin);
    return (struct admin_deed){.admin_uid = c->session.uid,
                               .admin_name = c->session.username,
                               .address = c->address,
                               .action = c->route->audit,
                               .user_uid = user_of(c)};
}

/* Lists and objects are named only: the audit log is no copy of what was sent. */
static void put_value(struct json_writer *w, const struct json *j)
{
    if (j->type == JSON_STRING)
        jw_str(w, admin_audit_cut(j->s));
    else if (j->type == JSON_NULL || j->type == JSON_ARRAY || j->type == JSON_OBJECT)
        jw_str(w, str_of(json_type_name(j)));
    else
        jw_json(w, j);
}

/* Members of the body that the route knows, whatever is wrong with them; no secrets. */
static struct str asked(struct task *t, const struct api_call *c)
{
    if (!c->body)
        return STR_NULL;
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    for (const struct api_field *f = c->route->body; f && f->name; f++) {
        const struct json *j = f->secret ? NULL : json_get(c->body, f->name);
        if (!j)
            continue;
        jw_key(&w, str_of(f->name));
        put_value(&w, j);
    }
    return jw_finish(&w, task_arena(t));
}

/* Texts of what is not the caller's fault may tell of hosts and statements: they are for the
 * log. */
void api_note_refusal(struct task *t, const struct api_call *c, int err)
{
    if (!c->route->audit || !c->admin)
        return;
    const char *text = arena_strdup(task_arena(t), task_error(t));
    bool refused = http_status_of(err) < 500;
    struct admin_deed d = api_deed(c);
    struct str request_id = json_str(json_get(c->body, "request_id"));
    d.outcome = refused ? ADMIN_REFUSED : ADMIN_FAILED;
    d.error = refused && *text ? str_of(text) : str_of(err_name(err));
    d.target = target_of(t, c);
    d.request_id = request_id.p ? admin_audit_cut(request_id) : STR_NULL;
    d.asked = asked(t, c);
    int64_t old = task_deadline(t, NOTE_MS);
    if (admin_audit_note(t, c->node->sql, &d))
        log_warn("admin", "%s by %.*s was refused (%s), which could not be noted: %s", d.action,
                 STR_ARG(d.admin_name), text, task_error(t));
    task_deadline_restore(t, old);
    (void)task_fail(t, 0, "%s", text);
}
