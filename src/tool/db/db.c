#include "tool/db/db.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/nearest.h"
#include "tool/tool.h"

struct db_command {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *summary;
};

static const struct db_command commands[] = {
    {"migrate", db_migrate_main, "create missing tables, or bring old ones up to date"},
};
#define COUNT (sizeof commands / sizeof *commands)

/* --- which one --- */

static int help(FILE *to)
{
    fprintf(to, "usage: millrace db COMMAND [options]\n\ncommands:\n");
    for (size_t i = 0; i < COUNT; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n\"millrace db COMMAND --help\" tells more about a command.\n");
    return to == stdout ? 0 : 2;
}

static int unknown(const char *name)
{
    struct nearest n = nearest_to(str_of(name));
    for (size_t i = 0; i < COUNT; i++)
        nearest_try(&n, commands[i].name);
    fprintf(stderr, "millrace db: unknown %s \"%s\"", name[0] == '-' ? "option" : "command", name);
    if (nearest_name(&n))
        fprintf(stderr, "; did you mean \"%s\"?", nearest_name(&n));
    fprintf(stderr, "\n\n");
    return help(stderr);
}

int db_main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "millrace db: a command is missing\n\n");
        return help(stderr);
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help(stdout);
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].main(argc - 1, argv + 1);
    return unknown(name);
}

/* --- what they share --- */

static int fail(const char *why)
{
    fprintf(stderr, "millrace: %s\n", why);
    return 1;
}

static int fail_private(const char *why)
{
    fail(why);
    fprintf(stderr, "The private MariaDB runs while \"millrace serve\" does: start that first, or "
                    "set mysql.url.\n");
    return 1;
}

/* A configured MySQL is enough: that a private Redis has never been started is no hindrance. */
static int find_stores(struct db *d, const char **why)
{
    const struct config *c = &d->config;
    int err = stores_find(&d->arena, c, &d->stores, why);
    if (!err || !*c->mysql_url)
        return err;
    d->stores = (struct stores){
        .mysql_url = c->mysql_url,
        .mysql_password = *c->mysql_password ? c->mysql_password : NULL,
    };
    return 0;
}

struct run {
    struct db *db;
    int (*body)(struct task *t, struct db *d);
};

static void run_body(struct task *t, void *arg)
{
    struct run *r = arg;
    r->db->status = r->body(t, r->db);
}

static int run(struct db *d, int64_t statement_ms, int (*body)(struct task *t, struct db *d))
{
    struct loop *l = loop_new(NULL);
    struct sql_options o = {
        .url = d->stores.mysql_url,
        .password = d->stores.mysql_password,
        .connections_max = (size_t)d->config.mysql_connections,
        .statement_ms = statement_ms,
    };
    d->sql = sql_pool_new(l, &o);
    struct run r = {d, body};
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "db", run_body, &r) == 0);
    loop_run(l);
    sql_pool_free(d->sql);
    loop_free(l);
    return d->status;
}

int db_run(const char *file, int64_t statement_ms, int (*body)(struct task *t, struct db *d),
           void *arg)
{
    signal(SIGPIPE, SIG_IGN);
    log_setup(LOG_ERROR, LOG_TEXT, "db");
    struct db d = {.arg = arg};
    arena_init(&d.arena);
    const char *why = NULL;
    int status;
    if (config_load(&d.arena, file ? file : CONFIG_FILE_DEFAULT, !file, environ, &d.config, &why))
        status = fail(why);
    else if (find_stores(&d, &why))
        status = fail_private(why);
    else
        status = run(&d, statement_ms, body);
    arena_release(&d.arena);
    return status;
}

int db_complain(struct task *t, const struct db *d, int err)
{
    const char *why = *task_error(t) ? task_error(t) : err_name(err);
    if (err != ERR_UNAVAILABLE)
        return fail(why);
    if (!*d->config.mysql_url)
        return fail_private(why);
    fprintf(stderr, "millrace: MySQL at %s: %s\n",
            config_mask_url(task_arena(t), d->config.mysql_url), why);
    return 1;
}
