/* millrace admin add, list: what needs MySQL alone. */
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "engine/people/admin.h"
#include "engine/people/password.h"
#include "tool/admin/admin.h"
#include "tool/db/db.h"
#include "tool/opt.h"
#include "tool/password_line.h"

#define STATEMENT_MS 30000

/* --- add --- */

static const char add_about[] =
    "Adds somebody who may log in at /admin/login.html. The password is asked for, or read from "
    "the\n"
    "first line of standard input:\n"
    "\n"
    "  millrace admin add root --super\n"
    "  millrace admin add helper < password.txt\n"
    "\n"
    "Super admins also add and remove admins. The first admin should be one.";

struct options {
    const char *config, *name;
    bool super;
    char password[PASSWORD_LINE_BYTES];
};

static int add(struct task *t, struct db *d)
{
    struct options *o = d->arg;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "admin.add"};
    struct passwords *p = passwords_new();
    struct str hash;
    int64_t uid;
    int err = password_hash(t, p, str_of(o->password), &hash);
    if (!err)
        err = admin_create(t, d->sql, str_of(o->name), hash, o->super, &by, &uid);
    passwords_free(p);
    if (err == ERR_EXISTS || err == ERR_CONFLICT)
        return admin_complain(task_error(t));
    if (err)
        return db_complain(t, d, err);
    printf("admin %lld\n", (long long)uid);
    return fflush(stdout) == 0 ? 0 : 1;
}

int admin_add_main(int argc, char **argv)
{
    struct options o = {.config = NULL};
    const struct opt opts[] = {
        {"super", NULL, "may also add and remove admins", .flag = &o.super},
        {"config", "FILE", "settings to use; default: config.json if it exists", .text = &o.config},
    };
    struct command c = {"admin add", "NAME", add_about, opts, sizeof opts / sizeof *opts};
    struct operands names;
    int status = opt_parse(&c, argc, argv, &names);
    if (status >= 0)
        return status;
    if (names.n != 1)
        return admin_mistake(names.n ? "more than one name" : "the name is missing");
    o.name = names.v[0];
    const char *why = user_name_problem(str_of(o.name));
    if (why)
        return admin_mistake(why);
    why = password_line_read(o.password);
    status = why ? admin_complain(why) : db_run(o.config, STATEMENT_MS, add, &o);
    explicit_bzero(o.password, sizeof o.password);
    return status;
}

/* --- list --- */

static int list(struct task *t, struct db *d)
{
    struct admin *all;
    size_t count;
    int err = admin_list(t, d->sql, &all, &count);
    if (err)
        return db_complain(t, d, err);
    for (size_t i = 0; i < count; i++) {
        char since[TIME_ISO_BYTES];
        time_iso(all[i].created_ms * 1000, since);
        printf("%lld\t%.*s\t%s\t%s\n", (long long)all[i].uid, STR_ARG(all[i].username),
               admin_role(all[i].super), since);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

int admin_list_main(int argc, char **argv)
{
    const char *config = NULL;
    const struct opt opts[] = {
        {"config", "FILE", "settings to use; default: config.json if it exists", .text = &config},
    };
    struct command c = {"admin list", NULL, "Shows number, name, role and age of every admin.",
                        opts, sizeof opts / sizeof *opts};
    int status = opt_parse(&c, argc, argv, NULL);
    return status >= 0 ? status : db_run(config, STATEMENT_MS, list, NULL);
}
