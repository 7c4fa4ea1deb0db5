/* millrace admin remove, password: what a running server must hear of. */
#include <stdio.h>
#include <string.h>

#include "engine/people/admin.h"
#include "engine/people/password.h"
#include "tool/admin/admin.h"
#include "tool/opt.h"
#include "tool/password_line.h"
#include "tool/with_cache.h"

#define STATEMENT_MS 30000

static const char remove_about[] =
    "Ends all their sessions, too. The last super admin cannot be removed: add another one first.";
static const char password_about[] =
    "Ends all their sessions, too. The password is asked for, or read from the first line of "
    "standard\n"
    "input.";

struct options {
    const char *config, *name;
    int (*apply)(struct task *t, struct cache *c, int64_t uid, struct options *o);
    char password[PASSWORD_LINE_BYTES];
};

static int apply_remove(struct task *t, struct cache *c, int64_t uid, struct options *o)
{
    (void)o;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "admin.remove"};
    return admin_remove(t, c, uid, &by);
}

static int apply_password(struct task *t, struct cache *c, int64_t uid, struct options *o)
{
    struct admin_deed by = {ADMIN_OPERATOR, .action = "admin.reset_password"};
    struct passwords *p = passwords_new();
    struct str hash;
    int err = password_hash(t, p, str_of(o->password), &hash);
    passwords_free(p);
    return err ? err : admin_set_password(t, c, uid, hash, STR_NULL, &by);
}

static int run_with(struct task *t, struct db *d, struct cache *c)
{
    struct options *o = d->arg;
    struct admin a;
    int err = admin_find(t, d->sql, str_of(o->name), &a);
    if (err == ERR_NOT_FOUND)
        (void)task_fail(t, err, "there is no admin \"%s\"", o->name);
    if (!err)
        err = o->apply(t, c, a.uid, o);
    if (err == ERR_CONFLICT || err == ERR_NOT_FOUND)
        return admin_complain(task_error(t));
    return err ? db_complain(t, d, err) : 0;
}

static int run(struct task *t, struct db *d)
{
    return with_cache(t, d, run_with);
}

static int change_main(struct options *o, const char *name, const char *about, int argc,
                       char **argv)
{
    const struct opt opts[] = {
        {"config", "FILE", "settings to use; default: config.json if it exists",
         .text = &o->config},
    };
    struct command c = {name, "NAME", about, opts, sizeof opts / sizeof *opts};
    struct operands words;
    int status = opt_parse(&c, argc, argv, &words);
    if (status >= 0)
        return status;
    if (words.n != 1)
        return admin_mistake("one name is expected");
    o->name = words.v[0];
    const char *why = o->apply == apply_password ? password_line_read(o->password) : NULL;
    status = why ? admin_complain(why) : db_run_redis(o->config, STATEMENT_MS, run, o);
    explicit_bzero(o->password, sizeof o->password);
    return status;
}

int admin_remove_main(int argc, char **argv)
{
    struct options o = {.apply = apply_remove};
    return change_main(&o, "admin remove", remove_about, argc, argv);
}

int admin_password_main(int argc, char **argv)
{
    struct options o = {.apply = apply_password};
    return change_main(&o, "admin password", password_about, argc, argv);
}
