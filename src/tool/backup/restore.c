/* millrace restore: brings a backup back. */
#include "tool/backup/restore.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "tool/opt.h"
#include "tool/tool.h"

#define SPACE_BYTES (INT64_C(300) << 20) /* of a new MariaDB */
#define CONNECTIONS 2

static const char about[] =
    "Brings a backup back (\"millrace backup\"): verifies all of it, then puts it into MySQL, and\n"
    "begins with an empty Redis. Stop all servers first, and start them afterwards: runs, plans\n"
    "and extraction that were under way at the time of the backup go on by themselves. A backup\n"
    "of an older millrace is brought up to date.\n"
    "\n"
    "What happened after the backup is lost: charges, recharges, verdicts, plans, documents, new\n"
    "accounts. Items of pools that were handed out after it may be handed out again.\n"
    "\n"
    "It wants an empty database. With --overwrite the data of private stores is moved aside (the\n"
    "output says where to), and that of configured ones is removed: all tables of millrace in\n"
    "the database of mysql.url, and all keys of the database of redis.url.";

/* A file or folder of the private stores that was renamed. */
struct moved {
    const char *from, *to; /* to NULL: there was none */
    bool cleared;          /* what is at `from` now was made by this process */
};

struct job {
    struct restore restore;
    const char *config_file;
    struct arena arena;
    struct group work;
    bool opened; /* the data directory is locked */
    struct moved redis, mysql;
    int (*step)(struct task *t, struct restore *r); /* the one under way, its result and words */
    int err;
    char problem[1024];
    int status;
};

/* --- steps that a signal cancels --- */

static void interrupt(void *arg)
{
    struct job *j = arg;
    group_cancel(&j->work);
    if (j->opened)
        offline_cancel(&j->restore.offline);
}

static void work(struct task *t, void *arg)
{
    struct job *j = arg;
    j->err = j->step(t, &j->restore);
    if (j->err)
        snprintf(j->problem, sizeof j->problem, "%s",
                 j->err == ERR_CANCELED ? "interrupted"
                 : *task_error(t)       ? task_error(t)
                                        : err_name(j->err));
}

/* In a task of its own: the task of the job goes on, and stops the stores. */
static int run_step(struct task *t, struct job *j, int (*step)(struct task *, struct restore *))
{
    j->step = step;
    int err = task_go(&j->work, "restore", work, j);
    if (err)
        return err;
    check(group_join(t, &j->work) == 0);
    return j->err ? task_fail(t, j->err, "%s", j->problem) : 0;
}

static int verify(struct task *t, struct restore *r)
{
    struct progress p;
    progress_init(&p, task_loop(t), "restore: verifying", "rows", 0);
    return backup_verify(t, r->dir, &r->backup, &p);
}

/* Opens what s names, does one thing, and closes it. */
static int with_stores(struct task *t, struct restore *r, const struct stores *s,
                       int (*body)(struct task *, struct restore *))
{
    struct group links;
    group_init(&links, task_loop(t));
    if (*s->mysql_url)
        r->sql =
            sql_pool_new(task_loop(t), &(struct sql_options){.url = s->mysql_url,
                                                             .password = s->mysql_password,
                                                             .connections_max = CONNECTIONS,
                                                             .statement_ms = BACKUP_STATEMENT_MS});
    if (*s->redis_url)
        r->redis = redis_open(&links, &(struct redis_options){.url = s->redis_url,
                                                              .password = s->redis_password,
                                                              .name = "restore"});
    int err = body(t, r);
    if (*s->redis_url)
        redis_close(r->redis);
    if (*s->mysql_url)
        sql_pool_free(r->sql);
    int joined = group_join(t, &links);
    return err ? err : joined;
}

/* Configured stores are looked at before private ones are touched. */
static int check_configured(struct task *t, struct restore *r)
{
    const struct config *c = &r->config;
    const struct stores s = {c->redis_url, *c->redis_password ? c->redis_password : NULL,
                             c->mysql_url, *c->mysql_password ? c->mysql_password : NULL};
    return with_stores(t, r, &s, restore_check);
}

static int load(struct task *t, struct restore *r)
{
    struct stores s;
    const char *why = NULL;
    if (stores_find(task_arena(t), &r->offline.config, &s, &why))
        return task_fail(t, ERR_NOT_FOUND, "%s", why);
    return with_stores(t, r, &s, restore_load);
}

/* --- the data of private stores --- */

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static int move_aside(struct task *t, struct job *j, const char *name, struct moved *m)
{
    struct arena *a = &j->arena;
    m->from = arena_printf(a, "%s/%s", j->restore.offline.dir.path, name);
    (void)rmdir(m->from); /* if it is empty */
    if (!exists(m->from)) {
        m->cleared = true;
        return 0;
    }
    const char *to =
        arena_printf(a, "%s.before-%lld", m->from, (long long)(loop_wall_ms(task_loop(t)) / 1000));
    if (exists(to) || rename(m->from, to) < 0)
        return task_fail(t, ERR_IO, "%s: cannot be moved to %s: %s", m->from, to, strerror(errno));
    m->to = to;
    m->cleared = true;
    return 0;
}

static void move_back(const struct moved *m)
{
    if (m->cleared)
        datadir_remove(m->from);
    if (m->to && rename(m->to, m->from) < 0)
        fprintf(stderr, "millrace restore: %s could not be moved back to %s: %s\n", m->to, m->from,
                strerror(errno));
}

static int refuse_private(struct task *t, struct job *j)
{
    const struct restore *r = &j->restore;
    struct arena *a = task_arena(t);
    const char *data = arena_printf(a, "%s/mariadb/data", r->offline.dir.path), *why = NULL;
    int64_t bytes = SPACE_BYTES;
    if (*r->config.mysql_url)
        return 0;
    if (exists(data) && !r->overwrite)
        return task_fail(t, ERR_EXISTS,
                         "the private MariaDB in %s has a database already; --overwrite moves it "
                         "aside",
                         data);
    for (size_t i = 0; i < r->backup.table_count; i++)
        bytes += 2 * r->backup.tables[i].bytes;
    int err = datadir_space(a, r->offline.dir.path, bytes, "the restored database", &why);
    return err ? task_fail(t, err, "%s", why) : 0;
}

static int clear_private(struct task *t, struct job *j)
{
    struct restore *r = &j->restore;
    const char *redis = arena_printf(&j->arena, "%s/redis", r->offline.dir.path);
    int err = 0;
    offline_clear(t, &r->offline);
    if (!*r->config.redis_url)
        err = move_aside(t, j, "redis", &j->redis);
    if (!err && !*r->config.mysql_url)
        err = move_aside(t, j, "mariadb/data", &j->mysql);
    if (!err && mkdir(redis, 0700) < 0 && errno != EEXIST)
        err = task_fail(t, ERR_IO, "%s: %s", redis, strerror(errno));
    return err;
}

/* --- all of it --- */

static int readable(struct task *t, const struct restore *r)
{
    if (access(r->dir, R_OK | X_OK) == 0)
        return 0;
    return task_fail(t, ERR_IO, "%s: user \"%s\" cannot read it: %s", r->dir, r->offline.user.name,
                     strerror(errno));
}

static int restore(struct task *t, struct job *j)
{
    struct restore *r = &j->restore;
    int err = backup_open(t, r->dir, &r->backup);
    if (!err)
        err = run_step(t, j, verify);
    if (!err)
        err = offline_open(t, &r->config, &j->arena, &r->offline);
    j->opened = !err;
    if (!err)
        err = readable(t, r);
    if (!err)
        err = run_step(t, j, check_configured);
    if (!err)
        err = refuse_private(t, j);
    if (!err)
        err = clear_private(t, j);
    if (!err)
        err = offline_start(t, &r->offline);
    if (!err)
        err = run_step(t, j, load);
    if (j->opened)
        offline_stop(t, &r->offline);
    return err;
}

static void tell_age(int64_t seconds)
{
    printf("Lost is what happened in the %lld s since then", (long long)seconds);
    if (seconds >= 48 * 3600)
        printf(" (%lld days)", (long long)seconds / 86400);
    else if (seconds >= 3600)
        printf(" (%lld h %lld min)", (long long)seconds / 3600, (long long)seconds % 3600 / 60);
    printf(": charges, recharges, verdicts, runs, plans, documents, new accounts and passwords. "
           "Items of pools that were handed out since may be handed out again.\n");
}

static void tell(struct task *t, const struct job *j)
{
    const struct restore *r = &j->restore;
    int64_t rows = 0;
    for (size_t i = 0; i < r->backup.table_count; i++)
        rows += r->backup.tables[i].rows;
    printf("Restored: %zu tables, %lld rows, as of %.*s.\n", r->backup.table_count, (long long)rows,
           STR_ARG(r->backup.at));
    tell_age((loop_wall_ms(task_loop(t)) - r->backup.at_ms) / 1000);
    if (r->kept.aside)
        printf("%lld records of charges of %lld users could not be read when the backup was made; "
               "they count as written off, and are in " BACKUP_REDIS ".\n",
               (long long)r->kept.aside, (long long)r->kept.users);
    if (j->mysql.to)
        printf("The database from before is in %s: remove it when all is well.\n", j->mysql.to);
    if (j->redis.to)
        printf("What Redis had before is in %s, and counts for nothing.\n", j->redis.to);
    printf("Start the server, then run \"millrace audit\". What was under way goes on.\n");
}

static void complain(struct task *t, struct job *j, int err)
{
    bool touched = *j->restore.config.mysql_url && j->restore.begun;
    fprintf(stderr, "millrace restore: %s\n",
            err == ERR_CANCELED ? "interrupted"
            : *task_error(t)    ? task_error(t)
                                : err_name(err));
    move_back(&j->mysql);
    move_back(&j->redis);
    if (touched)
        fprintf(stderr, "The database is not whole: no server starts on it. Run it again with "
                        "--overwrite.\n");
    else
        fprintf(stderr, "Nothing was changed.\n");
}

static void live(struct task *t, void *arg)
{
    struct job *j = arg;
    group_init(&j->work, task_loop(t));
    loop_on_signal(task_loop(t), SIGINT, interrupt, j);
    loop_on_signal(task_loop(t), SIGTERM, interrupt, j);
    int err = restore(t, j);
    if (err)
        complain(t, j, err);
    else
        tell(t, j);
    j->status = err || fflush(stdout) != 0 ? 1 : 0;
}

static int run(struct job *j)
{
    const char *why = NULL, *file = j->config_file;
    if (config_load(&j->arena, file ? file : CONFIG_FILE_DEFAULT, !file, environ,
                    &j->restore.config, &why)) {
        fprintf(stderr, "millrace restore: %s\n", why);
        return 1;
    }
    struct loop *l = loop_new(NULL);
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "restore", live, j) == 0);
    loop_run(l);
    loop_free(l);
    return j->status;
}

int restore_main(int argc, char **argv)
{
    struct job j = {.status = 1};
    const struct opt opts[] = {
        {"overwrite", NULL, "also if the stores are not empty: replaces what is in them",
         .flag = &j.restore.overwrite},
        OPT_CONFIG(&j.config_file),
    };
    struct command c = {"restore", "DIR", about, opts, sizeof opts / sizeof *opts};
    int status = opt_parse(&c, argc, argv);
    if (status >= 0)
        return status;
    signal(SIGPIPE, SIG_IGN);
    log_setup(LOG_ERROR, LOG_TEXT, "restore");
    j.restore.dir = argv[1];
    arena_init(&j.arena);
    status = run(&j);
    arena_release(&j.arena);
    return status;
}
