/* millrace admin: adds admins, lists and removes them, resets passwords. */
#include "engine/people/admin.h"

#include <stdio.h>

#include "base/time.h"
#include "tool/account.h"
#include "tool/menu.h"
#include "tool/tool.h"
#include "tool/unlock.h"

static const char add_about[] =
    "Adds an admin, who may log in at /admin/login.html.\n" ACCOUNT_PASSWORD_ABOUT ":\n"
    "\n"
    "  millrace admin add root --super\n"
    "  millrace admin add helper < password.txt\n"
    "\n"
    "Super admins also add and remove admins. The first admin should be one.";
static const char remove_about[] =
    "Ends all their sessions, too. The last super admin cannot be removed: add another one first.";
static const char password_about[] = "Ends all their sessions, too.\n" ACCOUNT_PASSWORD_ABOUT ".";

static int add(struct task *t, struct account *a)
{
    const bool *super = a->arg;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "admin.add"};
    int64_t uid;
    int err = admin_create(t, a->db->sql, str_of(a->name), a->hash, *super, &by, &uid);
    if (!err)
        printf("admin %lld\n", (long long)uid);
    return err;
}

static int list(struct task *t, struct account *a)
{
    struct admin *all;
    size_t count;
    int err = admin_list(t, a->db->sql, &all, &count);
    for (size_t i = 0; !err && i < count; i++) {
        char since[TIME_ISO_BYTES];
        time_iso(all[i].created_ms * 1000, since);
        printf("%lld\t%.*s\t%s\t%s\n", (long long)all[i].uid, STR_ARG(all[i].username),
               admin_role(all[i].super), since);
    }
    return err;
}

/* The uid of the admin that the command names. */
static int find(struct task *t, const struct account *a, int64_t *uid)
{
    struct admin found;
    int err = admin_find(t, a->db->sql, str_of(a->name), &found);
    if (!err)
        *uid = found.uid;
    return err == ERR_NOT_FOUND ? task_fail(t, err, "there is no admin \"%s\"", a->name) : err;
}

static int remove_admin(struct task *t, struct account *a)
{
    struct admin_deed by = {ADMIN_OPERATOR, .action = "admin.remove"};
    int64_t uid;
    int err = find(t, a, &uid);
    return err ? err : admin_remove(t, a->cache, uid, &by);
}

static int set_password(struct task *t, struct account *a)
{
    struct admin_deed by = {ADMIN_OPERATOR, .action = "admin.reset_password"};
    int64_t uid;
    int err = find(t, a, &uid);
    return err ? err : admin_set_password(t, a->cache, uid, a->hash, STR_NULL, &by);
}

/* --- command lines --- */

static int add_main(int argc, char **argv)
{
    bool super = false;
    const struct opt opts[] = {
        {"super", NULL, "may also add and remove admins", .flag = &super},
    };
    return account_main((struct command){"admin add", "NAME", add_about, opts, 1},
                        &(struct account){.sets_password = true,
                                          .mysql_only = true,
                                          .problem = account_name_problem,
                                          .apply = add,
                                          .arg = &super},
                        argc, argv);
}

static int list_main(int argc, char **argv)
{
    static const char about[] = "Shows number, name, role and age of every admin.";
    return account_main((struct command){"admin list", NULL, about, NULL, 0},
                        &(struct account){.mysql_only = true, .apply = list}, argc, argv);
}

static int remove_main(int argc, char **argv)
{
    return account_main((struct command){"admin remove", "NAME", remove_about, NULL, 0},
                        &(struct account){.apply = remove_admin}, argc, argv);
}

static int password_main(int argc, char **argv)
{
    return account_main((struct command){"admin password", "NAME", password_about, NULL, 0},
                        &(struct account){.sets_password = true, .apply = set_password}, argc,
                        argv);
}

static const struct menu_item items[] = {
    {"add", add_main, "add an admin"},
    {"list", list_main, "show all admins"},
    {"password", password_main, "give an admin a new password"},
    {"remove", remove_main, "remove an admin"},
    {"unlock", unlock_admin_main, "let an admin log in again after too many wrong passwords"},
};

int admin_main(int argc, char **argv)
{
    return menu_run(&(struct menu){"millrace admin", items, sizeof items / sizeof *items}, argc,
                    argv);
}
