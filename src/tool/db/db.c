#include "tool/db/db.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tool/menu.h"
#include "tool/tool.h"

#define REDIS_COMMAND_MS 30000 /* Redis may pause while it writes to a busy disk */

static const struct menu_item items[] = {
    {"init", db_init_main, "load a folder of papers into MySQL"},
    {"split", db_split_main, "cut one exported .bib file into a folder per journal"},
    {"warm", db_warm_main, "fill Redis from MySQL"},
    {"migrate", db_migrate_main, "create missing tables, or bring old ones up to date"},
};

int db_main(int argc, char **argv)
{
    return menu_run(&(struct menu){"millrace db", items, sizeof items / sizeof *items}, argc, argv);
}

/* --- shared --- */

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

/* A command without Redis needs only a configured MySQL, even if no private Redis was ever
 * started. */
static int find_stores(struct db *d, enum db_stores which, const char **why)
{
    const struct config *c = &d->config;
    int err = stores_find(&d->arena, c, &d->stores, why);
    if (!err || which == DB_BOTH || !*c->mysql_url)
        return err;
    d->stores = (struct stores){
        .mysql_url = c->mysql_url,
        .mysql_password = *c->mysql_password ? c->mysql_password : NULL,
    };
    return 0;
}

static void run_body(struct task *t, void *arg)
{
    struct db *d = arg;
    /* After a first answer of Redis, redis_up tells db_complain which store failed. */
    int err = d->redis ? redis_call(t, d->redis, STR_NULL, NULL, STR("PING")) : 0;
    d->status = err ? db_complain(t, d, err) : d->body(t, d);
    if (d->redis)
        redis_close(d->redis);
}

static int run(struct db *d, enum db_stores which, int64_t statement_ms)
{
    struct loop *l = loop_new(NULL);
    struct sql_options o = {
        .url = d->stores.mysql_url,
        .password = d->stores.mysql_password,
        .connections_max = (size_t)d->config.mysql_connections,
        .statement_ms = statement_ms,
    };
    d->sql = sql_pool_new(l, &o);
    struct group g, links;
    group_init(&g, l);
    group_init(&links, l);
    if (which == DB_BOTH) {
        d->redis = redis_open(&links, &(struct redis_options){.url = d->stores.redis_url,
                                                              .password = d->stores.redis_password,
                                                              .command_ms = REDIS_COMMAND_MS,
                                                              .name = "db"});
        check(d->redis);
    }
    check(task_go(&g, "db", run_body, d) == 0);
    loop_run(l);
    sql_pool_free(d->sql);
    loop_free(l);
    return d->status;
}

int db_run(const char *file, enum db_stores which, int64_t statement_ms, db_body *body, void *arg)
{
    signal(SIGPIPE, SIG_IGN);
    log_setup(LOG_ERROR, LOG_TEXT, "db");
    struct db d = {.body = body, .arg = arg};
    arena_init(&d.arena);
    const char *why = NULL;
    int status, err;
    if (config_load(&d.arena, file ? file : CONFIG_FILE_DEFAULT, !file, environ, &d.config, &why))
        status = fail(why);
    else if ((err = find_stores(&d, which, &why)))
        status = err == ERR_FORBIDDEN ? fail(why) : fail_private(why);
    else
        status = run(&d, which, statement_ms);
    arena_release(&d.arena);
    return status;
}

int db_complain(struct task *t, const struct db *d, int err)
{
    const char *why = *task_error(t) ? task_error(t) : err_name(err);
    if (err != ERR_UNAVAILABLE)
        return fail(why);
    bool redis_down = d->redis && !redis_up(d->redis);
    const char *url = redis_down ? d->config.redis_url : d->config.mysql_url;
    if (!*url)
        return fail_private(arena_printf(task_arena(t), "the private %s: %s",
                                         redis_down ? "Redis" : "MariaDB", why));
    fprintf(stderr, "millrace: %s at %s: %s\n", redis_down ? "Redis" : "MySQL",
            config_mask_url(task_arena(t), url), why);
    return 1;
}
