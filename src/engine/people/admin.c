#include "engine/people/admin.h"

#include "engine/people/session.h"
#include "engine/people/user.h"
#include "engine/store/cluster.h"

const char *admin_role(bool super)
{
    return super ? "super" : "admin";
}

static const struct record_column columns[] = {
    {NULL, "uid", RECORD_INT, .at = offsetof(struct admin, uid)},
    {"username", NULL, RECORD_TEXT, .at = offsetof(struct admin, username)},
    {NULL, "password", RECORD_TEXT, .at = offsetof(struct admin, password)},
    {"role", NULL, RECORD_FLAG, .at = offsetof(struct admin, super), .words = {"admin", "super"}},
    {"version", NULL, RECORD_INT, .at = offsetof(struct admin, version)},
    {NULL, "CAST(UNIX_TIMESTAMP(created_at) * 1000 AS SIGNED)", RECORD_TIME,
     .at = offsetof(struct admin, created_ms)},
    {.type = RECORD_END},
};
static const struct cache_kind kind = {
    .owner = &cache_admins,
    .record = {"admin_info", columns, sizeof(struct admin)},
    .version_at = offsetof(struct admin, version),
    .degraded_at = offsetof(struct admin, degraded),
};

/* --- reading --- */

int admin_get(struct task *t, struct cache *c, int64_t uid, struct admin *out)
{
    int err = cache_get(t, c, &kind, uid, out);
    if (!err)
        out->uid = uid;
    return err;
}

int admin_find(struct task *t, struct sql_pool *sql, struct str name, struct admin *out)
{
    if (user_name_problem(name))
        return cache_none(t, &kind);
    return cache_find(t, sql, &kind, "username_folded",
                      sql_text(user_name_folded(task_arena(t), name)), out);
}

static void take_rows(struct task *t, const struct sql_rows *r, struct admin **out, size_t *count)
{
    *out = ARENA_ARRAY(task_arena(t), struct admin, r->count);
    *count = r->count;
    for (size_t i = 0; i < r->count; i++)
        record_take(&kind.record, sql_row(r, i), &(*out)[i]);
}

int admin_list(struct task *t, struct sql_pool *sql, struct admin **out, size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r, record_select(task_arena(t), &kind.record, "ORDER BY uid"));
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

/* All of them, in one order, so that two transactions wait for each other and do not deadlock. */
static int lock_all(struct task *t, struct sql *c, struct admin **out, size_t *count)
{
    struct sql_rows r;
    int err = cluster_turn(t, c, "admins", 0);
    if (!err)
        err =
            sql_on(t, c, &r, record_select(task_arena(t), &kind.record, "ORDER BY uid FOR UPDATE"));
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
        return cache_none(t, &kind);
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
        err = cache_mark_stale(t, c, &cache_admins, ch->uid);
    if (err)
        return err;
    struct admin_deed deed = *ch->by;
    deed.target = ch->before.username;
    deed.before = ch->secret ? STR_NULL : role_json(t, ch->before.super);
    deed.after = ch->after;
    return admin_audit_add(t, c, &deed);
}

static int change(struct task *t, struct cache *c, struct change *ch)
{
    int err = sql_tx(t, cache_sql(c), apply, ch);
    if (err == ERR_FORBIDDEN && ch->last)
        return task_fail(t, ERR_CONFLICT, "%.*s is the last super admin",
                         STR_ARG(ch->before.username));
    if (err)
        return err;
    cache_changed(t, c, &cache_admins, ch->uid,
                  ch->after.p ? ch->before.version + 1 : CACHE_VERSION_GONE);
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
