#include "engine/people/user.h"

#include "engine/setup/config.h"
#include "engine/store/amount.h"
#include "engine/store/cluster.h"

static const struct record_column columns[] = {
    {NULL, "uid", RECORD_INT, .at = offsetof(struct user, uid)},
    {"username", NULL, RECORD_TEXT, .at = offsetof(struct user, username)},
    {"password", NULL, RECORD_TEXT, .at = offsetof(struct user, password)},
    {"permission", NULL, RECORD_INT, .at = offsetof(struct user, permission)},
    {"banned", NULL, RECORD_FLAG, .at = offsetof(struct user, banned), .words = {"0", "1"}},
    {"version", NULL, RECORD_INT, .at = offsetof(struct user, version)},
    {.type = RECORD_END},
};
static const struct cache_kind kind = {
    .owner = &cache_users,
    .record = {"user_info", columns, sizeof(struct user)},
    .version_at = offsetof(struct user, version),
    .degraded_at = offsetof(struct user, degraded),
};

/* --- reading --- */

int user_get(struct task *t, struct cache *c, int64_t uid, struct user *out)
{
    int err = cache_get(t, c, &kind, uid, out);
    if (!err)
        out->uid = uid;
    return err;
}

int user_find(struct task *t, struct sql_pool *sql, struct str name, struct user *out)
{
    if (user_name_problem(name))
        return cache_none(t, &kind);
    return cache_find(t, sql, &kind, "username_folded",
                      sql_text(user_name_folded(task_arena(t), name)), out);
}

/* --- creating --- */

static int note_new(struct task *t, struct sql *c, const struct user_new *u, int64_t uid)
{
    struct admin_deed deed = *u->by;
    deed.user_uid = uid;
    deed.after =
        str_printf(task_arena(t), "{\"balance\":\"%s\",\"permission\":%lld}",
                   amount_decimal(task_arena(t), u->opening_cents).p, (long long)u->permission);
    return admin_audit_add(t, c, &deed);
}

static int insert(struct task *t, struct sql *c, const struct user_new *u, int64_t *uid)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "INSERT INTO user_info (username, username_folded, password, permission,"
                     " balance, move_no) VALUES (?, ?, ?, ?, ? / 100, ?)",
                     sql_text(u->username), sql_text(user_name_folded(task_arena(t), u->username)),
                     sql_text(u->password_hash), sql_int(u->permission), sql_int(u->opening_cents),
                     sql_int(u->opening_cents > 0));
    if (err)
        return err;
    *uid = (int64_t)r.insert_id;
    err = u->by ? note_new(t, c, u, *uid) : 0;
    if (err || u->opening_cents == 0)
        return err;
    return sql_on(t, c, NULL,
                  "INSERT INTO billing_log (uid, source, number, kind, cents, at)"
                  " VALUES (?, 'mysql', 1, 'opening', ?, UTC_TIMESTAMP(3))",
                  sql_int(*uid), sql_int(u->opening_cents));
}

static const char *permission_problem(int64_t permission)
{
    return permission < 0 || permission > PERMISSION_MAX ? "a permission is from 0 to 1000" : NULL;
}

int user_create_on(struct task *t, struct sql *c, const struct user_new *n, int64_t *uid)
{
    check(n->password_hash.n > 0 && n->opening_cents >= 0);
    const char *problem = user_name_problem(n->username);
    if (!problem)
        problem = permission_problem(n->permission);
    if (problem)
        return task_fail(t, ERR_INVALID, "%s", problem);
    int err = insert(t, c, n, uid);
    return err == ERR_EXISTS ? task_fail(t, ERR_EXISTS, "the user name is taken") : err;
}

struct creation {
    const struct user_new *user;
    int64_t uid;
};

static int create(struct task *t, struct sql *c, void *arg)
{
    struct creation *n = arg;
    return user_create_on(t, c, n->user, &n->uid);
}

int user_create(struct task *t, struct sql_pool *sql, const struct user_new *n, int64_t *uid)
{
    struct creation made = {.user = n};
    int err = sql_tx(t, sql, create, &made);
    if (!err)
        *uid = made.uid;
    return err;
}

/* --- changing --- */

static const char *const parts[] = {
    [USER_PERMISSION] = "permission", [USER_BANNED] = "banned", [USER_PASSWORD] = "password"};

/* Of a password it is only told that there is a new one. */
static struct str state_of(struct task *t, enum user_part part, int64_t number)
{
    struct arena *a = task_arena(t);
    if (part == USER_PASSWORD)
        return STR("{\"password\":\"new\"}");
    struct str value = part == USER_PERMISSION ? str_int(a, number)
                       : number                ? STR("true")
                                               : STR("false");
    return str_printf(a, "{\"%s\":%.*s}", parts[part], STR_ARG(value));
}

static int note(struct task *t, struct sql *c, const struct user_change *ch,
                const struct user *before)
{
    struct admin_deed deed = *ch->by;
    deed.user_uid = ch->uid;
    deed.after = state_of(t, ch->part, ch->number);
    if (ch->part != USER_PASSWORD)
        deed.before = state_of(t, ch->part,
                               ch->part == USER_PERMISSION ? before->permission : before->banned);
    return admin_audit_add(t, c, &deed);
}

int user_change_on(struct task *t, struct sql *c, const struct user_change *ch, int64_t *version)
{
    check(ch->part != USER_PASSWORD || ch->hash.n > 0);
    const char *problem = ch->part == USER_PERMISSION ? permission_problem(ch->number) : NULL;
    if (problem)
        return task_fail(t, ERR_INVALID, "%s", problem);
    struct sql_rows r;
    int err = cluster_turn(t, c, CLUSTER_USER, ch->uid);
    if (!err)
        err =
            sql_on(t, c, &r, record_select(task_arena(t), &kind.record, "WHERE uid = ? FOR UPDATE"),
                   sql_int(ch->uid));
    if (err)
        return err;
    if (r.count == 0)
        return cache_none(t, &kind);
    struct user before;
    record_take(&kind.record, r.cells, &before);
    err = sql_on(t, c, NULL,
                 arena_printf(task_arena(t),
                              "UPDATE user_info SET %s = ?, version = version + 1 WHERE uid = ?",
                              parts[ch->part]),
                 ch->part == USER_PASSWORD ? sql_text(ch->hash) : sql_int(ch->number),
                 sql_int(ch->uid));
    if (!err && ch->by)
        err = note(t, c, ch, &before);
    *version = before.version + 1;
    return err ? err : cache_mark_stale(t, c, &cache_users, ch->uid);
}

struct changing {
    const struct user_change *change;
    int64_t version; /* afterwards */
};

static int apply(struct task *t, struct sql *c, void *arg)
{
    struct changing *x = arg;
    return user_change_on(t, c, x->change, &x->version);
}

int user_change(struct task *t, struct cache *c, const struct user_change *ch)
{
    struct changing x = {.change = ch};
    int err = sql_tx(t, cache_sql(c), apply, &x);
    if (!err)
        cache_changed(t, c, &cache_users, ch->uid, x.version);
    return err;
}
