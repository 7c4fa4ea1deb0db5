#include "tool/db/db.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/nearest.h"
#include "tool/tool.h"

#define REDIS_COMMAND_MS 30000 /* a server that writes its log to a busy disk may pause */

struct db_command {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *summary;
};

static const struct db_command commands[] = {
    {"init", db_init_main, "load a folder of papers into MySQL"},
    {"warm", db_warm_main, "fill Redis from MySQL"},
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
    fprintf(stderr, "The private stores run while \"millrace serve\" does: start that first, or "
                    "set mysql.url and redis.url.\n");
    return 1;
}

/* Who needs no Redis is content with a configured MySQL: that a private Redis has never been
 * started is no hindrance. */
static int find_stores(struct db *d, bool redis, const char **why)
{
    const struct config *c = &d->config;
    int err = stores_find(&d->arena, c, &d->stores, why);
    if (!err || redis || !*c->mysql_url)
        return err;
    d->stores = (struct stores){
        .mysql_url = c->mysql_url,
        .mysql_password = *c->mysql_password ? c->mysql_password : NULL,
    };
    return 0;
}

struct run {
    struct db *db;
    struct group links; /* the task of the connection to Redis */
    bool redis;
    int64_t statement_ms;
    int (*body)(struct task *t, struct db *d);
};

static void run_body(struct task *t, void *arg)
{
    struct run *r = arg;
    r->db->status = r->body(t, r->db);
    if (r->redis)
        redis_close(r->db->redis);
}

static int run(struct run *r)
{
    struct db *d = r->db;
    struct loop *l = loop_new(NULL);
    struct sql_options o = {
        .url = d->stores.mysql_url,
        .password = d->stores.mysql_password,
        .connections_max = (size_t)d->config.mysql_connections,
        .statement_ms = r->statement_ms,
    };
    d->sql = sql_pool_new(l, &o);
    struct group g;
    group_init(&g, l);
    group_init(&r->links, l);
    if (r->redis) {
        d->redis =
            redis_open(&r->links, &(struct redis_options){.url = d->stores.redis_url,
                                                          .password = d->stores.redis_password,
                                                          .command_ms = REDIS_COMMAND_MS,
                                                          .name = "db"});
        check(d->redis);
    }
    check(task_go(&g, "db", run_body, r) == 0);
    loop_run(l);
    sql_pool_free(d->sql);
    loop_free(l);
    return d->status;
}

static int load_and_run(const char *file, struct run *r, void *arg)
{
    signal(SIGPIPE, SIG_IGN);
    log_setup(LOG_ERROR, LOG_TEXT, "db");
    struct db d = {.arg = arg};
    r->db = &d;
    arena_init(&d.arena);
    const char *why = NULL;
    int status;
    if (config_load(&d.arena, file ? file : CONFIG_FILE_DEFAULT, !file, environ, &d.config, &why))
        status = fail(why);
    else if (find_stores(&d, r->redis, &why))
        status = fail_private(why);
    else
        status = run(r);
    arena_release(&d.arena);
    return status;
}

int db_run(const char *file, int64_t statement_ms, int (*body)(struct task *t, struct db *d),
           void *arg)
{
    return load_and_run(file, &(struct run){.statement_ms = statement_ms, .body = body}, arg);
}

int db_run_redis(const char *file, int64_t statement_ms, int (*body)(struct task *t, struct db *d),
                 void *arg)
{
    return load_and_run(
        file, &(struct run){.statement_ms = statement_ms, .body = body, .redis = true}, arg);
}

int db_complain(struct task *t, const struct db *d, int err)
{
    const char *why = *task_error(t) ? task_error(t) : err_name(err);
    if (err != ERR_UNAVAILABLE)
        return fail(why);
    bool redis_down = d->redis && !redis_up(d->redis);
    const char *url = redis_down ? d->config.redis_url : d->config.mysql_url;
    if (!*url)
        return fail_private(why);
    fprintf(stderr, "millrace: %s at %s: %s\n", redis_down ? "Redis" : "MySQL",
            config_mask_url(task_arena(t), url), why);
    return 1;
}
