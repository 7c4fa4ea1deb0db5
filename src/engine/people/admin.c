#include "engine/people/admin.h"

#include "engine/people/session.h"
#include "engine/people/user.h"
#include "engine/store/keys.h"

#define COLUMNS                                                                                    \
    "uid, username, password, role, version, CAST(UNIX_TIMESTAMP(created_at) * 1000 AS SIGNED)"

const char *admin_role(bool super)
{
    return super ? "super" : "admin";
}

static struct admin from_row(const struct sql_value *row)
{
    return (struct admin){
        .uid = row[0].i,
        .username = row[1].s,
        .password = row[2].s,
        .super = str_eq(row[3].s, str_of(admin_role(true))),
        .version = row[4].i,
        .created_ms = row[5].i,
    };
}

static int nobody(struct task *t)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no such admin");
}

/* --- reading --- */

static int load(struct task *t, struct sql_pool *sql, int64_t uid, struct admin *out)
{
    struct sql_rows r;
    int err =
        sql_call(t, sql, &r, "SELECT " COLUMNS " FROM admin_info WHERE uid = ?", sql_int(uid));
    if (err)
        return err;
    if (r.count == 0)
        return nobody(t);
    *out = from_row(r.cells);
    return 0;
}

static int load_record(struct task *t, struct sql_pool *sql, int64_t uid, struct cache_record *out)
{
    struct admin a;
    int err = load(t, sql, uid, &a);
    if (err)
        return err;
    struct cache_field *fields = ARENA_ARRAY(task_arena(t), struct cache_field, 2);
    fields[0] = (struct cache_field){STR("username"), a.username};
    fields[1] = (struct cache_field){STR("role"), str_of(admin_role(a.super))};
    *out = (struct cache_record){.version = a.version, .count = 2, .fields = fields};
    return 0;
}

static const struct cache_kind admin_kind = {
    .name = "admin", .key = key_admin_info, .load = load_record, .of_admin = true};

int admin_get(struct task *t, struct cache *c, int64_t uid, struct admin *out)
{
    struct cache_record r;
    int err = cache_get(t, c, &admin_kind, uid, &r);
    if (err)
        return err;
    struct str name = cache_value(&r, "username"), role = cache_value(&r, "role");
    bool super = str_eq(role, STR("super"));
    if (!name.p ||
        !(super || str_eq(role, STR("admin")))) /* somebody has put something else there */
        return load(t, cache_sql(c), uid, out);
    *out = (struct admin){
        .uid = uid, .username = name, .super = super, .version = r.version, .degraded = r.degraded};
    return 0;
}

int admin_find(struct task *t, struct sql_pool *sql, struct str name, struct admin *out)
{
    struct sql_rows r = {0};
    int err =
        user_name_problem(name)
            ? 0
            : sql_call(t, sql, &r, "SELECT " COLUMNS " FROM admin_info WHERE username_folded = ?",
                       sql_text(user_name_folded(task_arena(t), name)));
    if (err)
        return err;
    if (r.count == 0)
        return nobody(t);
    *out = from_row(r.cells);
    return 0;
}

static void take_rows(struct task *t, const struct sql_rows *r, struct admin **out, size_t *count)
{
    *out = ARENA_ARRAY(task_arena(t), struct admin, r->count);
    *count = r->count;
    for (size_t i = 0; i < r->count; i++)
        (*out)[i] = from_row(sql_row(r, i));
}

int admin_list(struct task *t, struct sql_pool *sql, struct admin **out, size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r, "SELECT " COLUMNS " FROM admin_info ORDER BY uid");
    if (!err)
        take_rows(t, &r, out, count);
    return err;
}

/* --- changing --- */

struct change {
    int64_t uid;
    const char *statement; /* a value and the uid, or the uid alone */
    struct sql_value value;
    bool has_value, keeps_super;
    bool secret; /* what was before is not told */
    const struct admin_deed *by;
    struct str after; /* what it is then, as JSON; p == NULL: gone */
    struct admin before;
    bool last; /* refused: it is the last super admin */
};

static struct str role_json(struct task *t, bool super)
{
    return str_printf(task_arena(t), "{\"role\":\"%s\"}", admin_role(super));
}

/* All of them, in one order, so that two who do this wait for each other. */
static int lock_all(struct task *t, struct sql *c, struct admin **out, size_t *count)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT " COLUMNS " FROM admin_info ORDER BY uid FOR UPDATE");
    if (!err)
        take_rows(t, &r, out, count);
    return err;
}

static int find_locked(struct task *t, struct sql *c, struct change *ch)
{
    struct admin *all;
    size_t count, supers = 0;
    bool found = false;
    int err = lock_all(t, c, &all, &count);
    for (size_t i = 0; !err && i < count; i++) {
        supers += all[i].super;
        if (all[i].uid == ch->uid) {
            ch->before = all[i];
            found = true;
        }
    }
    if (err)
        return err;
    if (!found)
        return nobody(t);
    ch->last = ch->before.super && !ch->keeps_super && supers == 1;
    /* Not ERR_CONFLICT, for which a transaction is tried again. */
    return ch->last ? ERR_FORBIDDEN : 0;
}

static int apply(struct task *t, struct sql *c, void *arg)
{
    struct change *ch = arg;
    int err = find_locked(t, c, ch);
    if (err)
        return err;
    const struct sql_value argv[] = {ch->value, sql_int(ch->uid)};
    err = sql_on_argv(t, c, ch->statement, ch->has_value ? 2 : 1, argv + (ch->has_value ? 0 : 1),
                      NULL);
    if (!err)
        err = cache_mark_stale_admin(t, c, ch->uid);
    if (err)
        return err;
    struct admin_deed deed = *ch->by;
    deed.target = ch->before.username;
    deed.before = ch->secret ? STR_NULL : role_json(t, ch->before.super);
    deed.after = ch->after;
    return admin_audit_add(t, c, &deed);
}

/* The mark that apply leaves has Redis told later if it cannot be told now. */
static int change(struct task *t, struct cache *c, struct change *ch)
{
    int err = sql_tx(t, cache_sql(c), apply, ch);
    if (err == ERR_FORBIDDEN && ch->last)
        return task_fail(t, ERR_CONFLICT, "%.*s is the last super admin",
                         STR_ARG(ch->before.username));
    if (err)
        return err;
    const char *text = arena_strdup(task_arena(t), task_error(t));
    err = ch->after.p ? cache_changed(t, c, &admin_kind, ch->uid, ch->before.version + 1)
                      : cache_settle_admin(t, c, ch->uid);
    if (err)
        (void)task_fail(t, 0, "%s", text);
    return 0;
}

int admin_remove(struct task *t, struct cache *c, int64_t uid, const struct admin_deed *by)
{
    struct change ch = {.uid = uid, .statement = "DELETE FROM admin_info WHERE uid = ?", .by = by};
    int err = change(t, c, &ch);
    return err ? err : session_end_all(t, c, SESSION_ADMIN, uid, STR_NULL);
}

int admin_set_role(struct task *t, struct cache *c, int64_t uid, bool super,
                   const struct admin_deed *by)
{
    struct change ch = {.uid = uid,
                        .statement = "UPDATE admin_info SET role = ?, version = version + 1"
                                     " WHERE uid = ?",
                        .has_value = true,
                        .value = sql_text(str_of(admin_role(super))),
                        .keeps_super = super,
                        .after = role_json(t, super),
                        .by = by};
    return change(t, c, &ch);
}

static struct change password_change(int64_t uid, struct str hash, const struct admin_deed *by)
{
    check(hash.n > 0);
    return (struct change){.uid = uid,
                           .statement = "UPDATE admin_info SET password = ?, version = version + 1"
                                        " WHERE uid = ?",
                           .has_value = true,
                           .value = sql_text(hash),
                           .keeps_super = true,
                           .secret = true,
                           .after = STR("{\"password\":\"new\"}"),
                           .by = by};
}

int admin_set_password_on(struct task *t, struct sql *c, int64_t uid, struct str hash,
                          const struct admin_deed *by, int64_t *version)
{
    struct change ch = password_change(uid, hash, by);
    int err = apply(t, c, &ch);
    if (!err)
        *version = ch.before.version + 1;
    return err;
}

int admin_set_password(struct task *t, struct cache *c, int64_t uid, struct str hash,
                       struct str but_sid, const struct admin_deed *by)
{
    struct change ch = password_change(uid, hash, by);
    int err = change(t, c, &ch);
    return err ? err : session_end_all(t, c, SESSION_ADMIN, uid, but_sid);
}

/* --- creating --- */

int admin_create_on(struct task *t, struct sql *c, const struct admin_new *n, int64_t *uid)
{
    check(n->password_hash.n > 0);
    struct admin *all;
    size_t count;
    struct sql_rows r;
    const char *problem = user_name_problem(n->username);
    if (problem)
        return task_fail(t, ERR_INVALID, "%s", problem);
    int err = lock_all(t, c, &all, &count);
    if (!err && count >= ADMINS_MAX) /* not ERR_CONFLICT, for which a transaction is tried again */
        return task_fail(t, ERR_FORBIDDEN, "there are %d admins already", ADMINS_MAX);
    if (!err)
        err = sql_on(t, c, &r,
                     "INSERT INTO admin_info (username, username_folded, password, role)"
                     " VALUES (?, ?, ?, ?)",
                     sql_text(n->username), sql_text(user_name_folded(task_arena(t), n->username)),
                     sql_text(n->password_hash), sql_text(str_of(admin_role(n->super))));
    if (err)
        return err == ERR_EXISTS ? task_fail(t, err, "there is an admin of this name") : err;
    *uid = (int64_t)r.insert_id;
    struct admin_deed deed = *n->by;
    deed.target = n->username;
    deed.after = role_json(t, n->super);
    return admin_audit_add(t, c, &deed);
}

struct creation {
    const struct admin_new *admin;
    int64_t uid;
};

static int create(struct task *t, struct sql *c, void *arg)
{
    struct creation *n = arg;
    return admin_create_on(t, c, n->admin, &n->uid);
}

int admin_create(struct task *t, struct sql_pool *sql, struct str name, struct str hash, bool super,
                 const struct admin_deed *by, int64_t *uid)
{
    struct creation made = {&(struct admin_new){name, hash, super, by}, 0};
    int err = sql_tx(t, sql, create, &made);
    if (!err)
        *uid = made.uid;
    return err == ERR_FORBIDDEN ? ERR_CONFLICT : err;
}
