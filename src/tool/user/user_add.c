#include "tool/user/user.h"

#include <stdio.h>
#include <string.h>

#include "engine/money/ledger.h"
#include "engine/people/password.h"
#include "engine/people/user.h"
#include "engine/setup/config.h"
#include "engine/store/amount.h"
#include "tool/db/db.h"
#include "tool/opt.h"
#include "tool/password_line.h"

#define STATEMENT_MS 30000

static const char about[] = "Adds somebody who may log in. The password is asked for, or read from "
                            "the first line of standard\n"
                            "input:\n"
                            "\n"
                            "  millrace user add asher --balance 100.00 --permission 4\n"
                            "  millrace user add asher < password.txt";

struct options {
    const char *config, *balance;
    int64_t permission;
    struct user_new user;
    char password[PASSWORD_LINE_BYTES];
};

static int add(struct task *t, struct db *d)
{
    struct options *o = d->arg;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.add"};
    struct passwords *p = passwords_new();
    int64_t uid;
    o->user.by = &by;
    if (o->permission < 0)
        o->user.permission = d->config.new_user_permission;
    int err = password_hash(t, p, str_of(o->password), &o->user.password_hash);
    if (!err)
        err = user_create(t, d->sql, &o->user, &uid);
    passwords_free(p);
    if (err == ERR_EXISTS)
        return user_complain("this user name is taken");
    if (err)
        return db_complain(t, d, err);
    printf("user %lld\n", (long long)uid);
    return fflush(stdout) == 0 ? 0 : 1;
}

int user_add_main(int argc, char **argv)
{
    struct options o = {.permission = -1, .balance = "0.00"};
    const struct opt opts[] = {
        {"balance", "AMOUNT", "what the user may spend (default 0.00)", .text = &o.balance},
        {"permission", "N", "papers judged at the same time; default: new_user.permission",
         .number = &o.permission, .most = PERMISSION_MAX},
        {"config", "FILE", "settings to use; default: config.json if it exists", .text = &o.config},
    };
    struct command c = {"user add", "NAME", about, opts, sizeof opts / sizeof *opts};
    struct operands names;
    int status = opt_parse(&c, argc, argv, &names);
    if (status >= 0)
        return status;
    if (names.n != 1)
        return user_mistake(names.n ? "more than one name" : "the name is missing");
    o.user = (struct user_new){.username = str_of(names.v[0]), .permission = o.permission};
    const char *why = user_name_problem(o.user.username);
    if (why)
        return user_mistake(why);
    if (!amount_cents(str_of(o.balance), &o.user.opening_cents))
        return user_mistake("--balance wants an amount like 100.00");
    why = password_line_read(o.password);
    status = why ? user_complain(why) : db_run(o.config, STATEMENT_MS, add, &o);
    explicit_bzero(o.password, sizeof o.password);
    return status;
}
