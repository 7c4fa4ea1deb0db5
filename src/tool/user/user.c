/* millrace user: adds users, moves their money, bans them, resets passwords and permissions. */
#include "engine/people/user.h"

#include <stdio.h>

#include "base/sha256.h"
#include "engine/money/ledger.h"
#include "engine/people/session.h"
#include "engine/watch/admin_acts.h"
#include "engine/setup/config.h"
#include "engine/store/amount.h"
#include "tool/menu.h"
#include "tool/tool.h"
#include "tool/unlock.h"
#include "tool/user/commands.h"

static const char add_about[] = "Adds a user, who may log in. " ACCOUNT_PASSWORD_ABOUT ":\n"
                                "\n"
                                "  millrace user add asher --balance 100.00 --permission 4\n"
                                "  millrace user add asher < password.txt";
static const char money_about[] =
    "Moves money, at most once for a request id: after an error, repeat it with the same id,\n"
    "and it is done if it was not, and not done twice if it was. Without --request an id is\n"
    "made up and shown.";
static const char ban_about[] =
    "Takes effect on every node at once. A ban ends all sessions, suspends API tokens and pauses\n"
    "all runs; its end lets the user log in again and resume runs, and tokens work again. Both "
    "are\n"
    "in the audit log.";
static const char permission_about[] =
    "How many papers of the user are judged at the same time, over all runs; 0: the user may not\n"
    "submit any. Takes effect on every node at once, also for runs at work.";
static const char password_about[] = "Ends all their sessions, too.\n" ACCOUNT_PASSWORD_ABOUT ".";

struct options {
    const char *balance, *request;
    int64_t permission, cents;
    bool takes, banned;
    char made_up[33]; /* a request id */
};

/* --- what is done --- */

static int add(struct task *t, struct account *a)
{
    const struct options *o = a->arg;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.add"};
    int64_t uid, standard = a->db->config.new_user_permission;
    struct user_new user = {.username = str_of(a->name),
                            .password_hash = a->hash,
                            .permission = o->permission < 0 ? standard : o->permission,
                            .opening_cents = o->cents,
                            .by = &by};
    int err = user_create(t, a->db->sql, &user, &uid);
    if (err == ERR_EXISTS)
        return task_fail(t, err, "this user name is taken");
    if (!err)
        printf("user %lld\n", (long long)uid);
    return err;
}

int user_named(struct task *t, const struct account *a, struct user *out)
{
    int err = user_find(t, a->db->sql, str_of(a->name), out);
    return err == ERR_NOT_FOUND ? task_fail(t, err, "there is no user \"%s\"", a->name) : err;
}

static int move_money(struct task *t, const struct options *o, const struct runs *r,
                      const struct user *u)
{
    struct admin_deed by = {ADMIN_OPERATOR, .action = o->takes ? "user.deduct" : "user.recharge"};
    struct admin_move m = {
        .uid = u->uid, .cents = o->cents, .request_id = str_of(o->request), .takes = o->takes};
    int64_t balance;
    int err = admin_move_money(t, r, &m, &by, &balance);
    if (err == ERR_FUNDS)
        return task_fail(t, err, "the user has less than that; nothing was changed");
    if (!err)
        printf("%.*s has %s\n", STR_ARG(u->username), amount_decimal(task_arena(t), balance).p);
    return err;
}

/* Moves money, bans or lifts a ban. */
static int act(struct task *t, struct account *a)
{
    const struct options *o = a->arg;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.ban"};
    struct ledger_options l = {.redis = a->db->redis, .sql = a->db->sql, .cache = a->cache};
    struct runs runs = {
        .redis = l.redis, .sql = l.sql, .cache = a->cache, .ledger = ledger_new(&l)};
    struct user u;
    int err = user_named(t, a, &u);
    if (!err)
        err = o->request ? move_money(t, o, &runs, &u) : admin_ban(t, &runs, u.uid, o->banned, &by);
    ledger_free(runs.ledger);
    return err;
}

static int set_password(struct task *t, struct account *a)
{
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.password"};
    struct user u = {.uid = 0};
    int err = user_named(t, a, &u);
    struct user_change change = {.uid = u.uid, .part = USER_PASSWORD, .hash = a->hash, .by = &by};
    if (!err)
        err = user_change(t, a->cache, &change);
    return err ? err : session_end_all(t, a->cache, SESSION_USER, u.uid, STR_NULL);
}

static int set_permission(struct task *t, struct account *a)
{
    const struct options *o = a->arg;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.permission"};
    struct user u = {.uid = 0};
    int err = user_named(t, a, &u);
    struct user_change change = {
        .uid = u.uid, .part = USER_PERMISSION, .number = o->permission, .by = &by};
    if (!err)
        err = user_change(t, a->cache, &change);
    if (!err)
        printf("%.*s has permission %lld\n", STR_ARG(u.username), (long long)o->permission);
    return err;
}

/* --- command lines --- */

static const char *add_problem(struct account *a, char **operands)
{
    struct options *o = a->arg;
    const char *why = account_name_problem(a, operands);
    if (why)
        return why;
    bool fits = amount_cents(str_of(o->balance), &o->cents);
    return fits ? NULL : "--balance wants an amount like 100.00";
}

static const char *made_up_request(char out[33])
{
    uint8_t bytes[16];
    struct loop *l = loop_new(NULL); /* for its random numbers */
    loop_secret(l, bytes, sizeof bytes);
    loop_free(l);
    hex_write(bytes, sizeof bytes, out);
    fprintf(stderr, "request %s\n", out);
    return out;
}

static const char *money_problem(struct account *a, char **operands)
{
    struct options *o = a->arg;
    if (!amount_cents(str_of(operands[1]), &o->cents) || o->cents == 0)
        return "the amount must be like 100.00";
    if (!o->request)
        o->request = made_up_request(o->made_up);
    bool fits = *o->request && strlen(o->request) <= LEDGER_REQUEST_BYTES_MAX;
    return fits ? NULL : "a request id has 1 to 64 bytes";
}

static int add_main(int argc, char **argv)
{
    struct options o = {.permission = -1, .balance = "0.00"};
    const struct opt opts[] = {
        {"balance", "AMOUNT", "what the user may spend (default 0.00)", .text = &o.balance},
        {"permission", "N", "papers judged at the same time; default: new_user.permission",
         .number = &o.permission, .most = PERMISSION_MAX},
    };
    return account_main((struct command){"user add", "NAME", add_about, opts, 2},
                        &(struct account){.sets_password = true,
                                          .mysql_only = true,
                                          .problem = add_problem,
                                          .apply = add,
                                          .arg = &o},
                        argc, argv);
}

/* recharge and deduct */
static int money_main(int argc, char **argv)
{
    struct options o = {.takes = strcmp(argv[0], "deduct") == 0};
    const struct opt opts[] = {
        {"request", "ID", "what the movement is known by", .text = &o.request},
    };
    const char *name = o.takes ? "user deduct" : "user recharge";
    return account_main((struct command){name, "NAME AMOUNT", money_about, opts, 1},
                        &(struct account){.problem = money_problem, .apply = act, .arg = &o}, argc,
                        argv);
}

/* ban and unban */
static int ban_main(int argc, char **argv)
{
    struct options o = {.banned = strcmp(argv[0], "ban") == 0};
    const char *name = o.banned ? "user ban" : "user unban";
    return account_main((struct command){name, "NAME", ban_about, NULL, 0},
                        &(struct account){.apply = act, .arg = &o}, argc, argv);
}

static const char *permission_problem(struct account *a, char **operands)
{
    struct options *o = a->arg;
    bool fits = str_to_i64(str_of(operands[1]), &o->permission) && o->permission >= 0 &&
                o->permission <= PERMISSION_MAX;
    _Static_assert(PERMISSION_MAX == 1000, "the text says so");
    return fits ? NULL : "the permission must be a number from 0 to 1000";
}

static int permission_main(int argc, char **argv)
{
    struct options o = {.permission = 0};
    return account_main(
        (struct command){"user permission", "NAME N", permission_about, NULL, 0},
        &(struct account){.problem = permission_problem, .apply = set_permission, .arg = &o}, argc,
        argv);
}

static int password_main(int argc, char **argv)
{
    return account_main((struct command){"user password", "NAME", password_about, NULL, 0},
                        &(struct account){.sets_password = true, .apply = set_password}, argc,
                        argv);
}

static const struct menu_item items[] = {
    {"add", add_main, "add a user"},
    {"list", user_list_main, "show users"},
    {"recharge", money_main, "give a user money to spend"},
    {"deduct", money_main, "take money from a user"},
    {"ban", ban_main, "end a user's sessions and refuse new ones"},
    {"unban", ban_main, "let a banned user log in again"},
    {"password", password_main, "give a user a new password"},
    {"unlock", unlock_user_main, "let a user log in again after too many wrong passwords"},
    {"permission", permission_main, "set how much a user may do at the same time"},
    {"release", user_release_main, "let a stopped account work again"},
};

int user_main(int argc, char **argv)
{
    return menu_run(&(struct menu){"millrace user", items, sizeof items / sizeof *items}, argc,
                    argv);
}
