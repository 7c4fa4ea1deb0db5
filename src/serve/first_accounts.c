#include "serve/first_accounts.h"

#include <string.h>

#include "engine/people/admin.h"
#include "engine/people/password.h"
#include "engine/people/user.h"

/* Papers judged at the same time: slow enough to watch a run, and it does not take long. */
#define FIRST_USER_PERMISSION 4

/* In table setting: {"user": 1, "user_version": 0, "admin": 1, "admin_version": 0, "shown": 0} */
#define NOTE_NAME      "first_accounts"
#define NUMBER(member) "CAST(JSON_EXTRACT(value, '$." member "') AS SIGNED)"

/* clang-format off */
#define LOOK                                                                                       \
    "SELECT EXISTS (SELECT 1 FROM user_info) OR EXISTS (SELECT 1 FROM admin_info), "               \
    NUMBER("shown") ", " NUMBER("user") ", " NUMBER("user_version") ", " NUMBER("admin") ", "      \
    NUMBER("admin_version") " FROM (SELECT 1) AS one LEFT JOIN setting ON name = '" NOTE_NAME "'"
/* clang-format on */

/* --- which exist --- */

static int check_user(struct task *t, struct sql_pool *sql, struct first_account *a)
{
    struct user u;
    int err = user_find(t, sql, STR(FIRST_USER), &u);
    a->ours = !err && u.uid == a->uid && u.version == a->version;
    return err == ERR_NOT_FOUND ? 0 : err;
}

static int check_admin(struct task *t, struct sql_pool *sql, struct first_account *a)
{
    struct admin found;
    int err = admin_find(t, sql, STR(FIRST_ADMIN), &found);
    a->ours = !err && found.uid == a->uid && found.version == a->version;
    return err == ERR_NOT_FOUND ? 0 : err;
}

int first_accounts_look(struct task *t, struct sql_pool *sql, struct first_accounts *out)
{
    *out = (struct first_accounts){0};
    struct sql_rows r;
    int err = sql_call(t, sql, &r, LOOK);
    if (err)
        return err;
    const struct sql_value *cells = sql_row(&r, 0);
    out->made = cells[1].type == SQL_INT;
    if (!out->made) {
        out->wanted = cells[0].i == 0;
        return 0;
    }
    out->user = (struct first_account){.uid = cells[2].i, .version = cells[3].i};
    out->admin = (struct first_account){.uid = cells[4].i, .version = cells[5].i};
    err = check_user(t, sql, &out->user);
    if (!err)
        err = check_admin(t, sql, &out->admin);
    out->wanted = !err && cells[1].i == 0 && (out->user.ours || out->admin.ours);
    return err;
}

/* --- making them --- */

/* 80 bits, without letters and digits that look like others. */
static void make_up(struct loop *l, char out[FIRST_PASSWORD_BYTES])
{
    static const char letters[] = "abcdefghijkmnpqrstuvwxyz23456789";
    uint8_t bytes[FIRST_PASSWORD_BYTES];
    _Static_assert(sizeof letters - 1 == 32, "five bits each");
    loop_secret(l, bytes, sizeof bytes);
    for (size_t i = 0; i < FIRST_PASSWORD_BYTES - 1; i++)
        out[i] = i % 5 == 4 ? '-' : letters[bytes[i] % 32];
    out[FIRST_PASSWORD_BYTES - 1] = '\0';
    explicit_bzero(bytes, sizeof bytes);
}

static int choose_password(struct task *t, struct passwords *p, struct first_account *a)
{
    make_up(task_loop(t), a->password);
    return password_hash(t, p, str_of(a->password), &a->hash);
}

static int write_note(struct task *t, struct sql *c, const struct first_accounts *f)
{
    return sql_on(t, c, NULL,
                  "REPLACE INTO setting (name, value, changed_at) VALUES ('" NOTE_NAME "',"
                  " JSON_OBJECT('user', ?, 'user_version', ?, 'admin', ?, 'admin_version', ?,"
                  " 'shown', 0), UTC_TIMESTAMP(3))",
                  sql_int(f->user.uid), sql_int(f->user.version), sql_int(f->admin.uid),
                  sql_int(f->admin.version));
}

#define FIRST_START .admin_name = STR("(first start)"), .address = STR("local")

static int create(struct task *t, struct sql *c, void *arg)
{
    struct first_accounts *f = arg;
    const struct admin_deed of_user = {FIRST_START, .action = "user.add"};
    const struct admin_deed of_admin = {FIRST_START, .action = "admin.add"};
    const struct user_new user = {.username = STR(FIRST_USER),
                                  .password_hash = f->user.hash,
                                  .permission = FIRST_USER_PERMISSION,
                                  .opening_cents = FIRST_USER_CENTS,
                                  .by = &of_user};
    const struct admin_new admin = {.username = STR(FIRST_ADMIN),
                                    .password_hash = f->admin.hash,
                                    .super = true,
                                    .by = &of_admin};
    int err = user_create_on(t, c, &user, &f->user.uid);
    if (!err)
        err = admin_create_on(t, c, &admin, &f->admin.uid);
    return err ? err : write_note(t, c, f);
}

static int renew(struct task *t, struct sql *c, void *arg)
{
    struct first_accounts *f = arg;
    const struct admin_deed of_user = {FIRST_START, .action = "user.password"};
    const struct admin_deed of_admin = {FIRST_START, .action = "admin.reset_password"};
    const struct user_change user = {
        .uid = f->user.uid, .part = USER_PASSWORD, .hash = f->user.hash, .by = &of_user};
    int err = f->user.ours ? user_change_on(t, c, &user, &f->user.version) : 0;
    if (!err && f->admin.ours)
        err =
            admin_set_password_on(t, c, f->admin.uid, f->admin.hash, &of_admin, &f->admin.version);
    return err ? err : write_note(t, c, f);
}

int first_accounts_make(struct task *t, struct sql_pool *sql, struct first_accounts *f)
{
    check(f->wanted);
    struct passwords *p = passwords_new();
    int err = !f->made || f->user.ours ? choose_password(t, p, &f->user) : 0;
    if (!err && (!f->made || f->admin.ours))
        err = choose_password(t, p, &f->admin);
    passwords_free(p);
    return err ? err : sql_tx(t, sql, f->made ? renew : create, f);
}

int first_accounts_shown(struct task *t, struct sql_pool *sql)
{
    return sql_call(t, sql, NULL,
                    "UPDATE setting SET value = JSON_SET(value, '$.shown', 1),"
                    " changed_at = UTC_TIMESTAMP(3) WHERE name = '" NOTE_NAME "'");
}
