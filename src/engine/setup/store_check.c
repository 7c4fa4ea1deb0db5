#include "engine/setup/store_check.h"

#include <stdarg.h>

#include "engine/setup/stores.h"

static void PRINTF(3, 4) find(struct task *t, struct store_findings *out, const char *fmt, ...)
{
    check(out->unsafe_count < STORE_FINDINGS_MAX);
    va_list ap;
    va_start(ap, fmt);
    out->unsafe[out->unsafe_count++] = arena_vprintf(task_arena(t), fmt, ap);
    va_end(ap);
}

static void cannot_read(struct task *t, struct store_findings *out, const char *store,
                        const char *setting, const char *safe)
{
    check(out->unread_count < STORE_FINDINGS_MAX);
    out->unread[out->unread_count++] = arena_printf(
        task_arena(t), "%s does not tell this account its setting %s: make sure that it is %s",
        store, setting, safe);
}

/* --- Redis --- */

/* "appendonly" of CONFIG GET is aof_enabled of INFO, which an account must be able to read. */
static struct str info_field(struct str info, struct str name)
{
    while (info.p) {
        struct str value = str_cut(&info, '\n'), field = str_cut(&value, ':');
        if (value.p && str_eq(field, name))
            return str_cut(&value, '\r');
    }
    return STR_NULL;
}

static void judge_redis(struct task *t, struct str info, struct str fsync,
                        struct store_findings *out)
{
    struct str policy = info_field(info, STR("maxmemory_policy"));
    struct str aof = info_field(info, STR("aof_enabled"));
    if (!policy.p)
        cannot_read(t, out, "Redis", "maxmemory-policy", "noeviction");
    else if (!str_eq(policy, STR("noeviction")) && !str_starts(policy, STR("volatile-")))
        find(t, out,
             "Redis has \"maxmemory-policy %.*s\" and may evict charges that MySQL lacks; set "
             "\"maxmemory-policy noeviction\" in redis.conf",
             STR_ARG(policy));
    if (!aof.p)
        cannot_read(t, out, "Redis", "appendonly", "yes");
    else if (!str_eq(aof, STR("1")))
        find(t, out,
             "Redis has \"appendonly no\" and loses charges when it ends; set \"appendonly yes\" "
             "in redis.conf");
    else if (!fsync.p)
        cannot_read(t, out, "Redis", "appendfsync", "everysec or always");
    else if (str_eq(fsync, STR("no")))
        find(t, out,
             "Redis has \"appendfsync no\" and loses charges when its machine fails; set "
             "\"appendfsync everysec\" in redis.conf");
}

int store_check_redis(struct task *t, struct redis *r, struct store_findings *out)
{
    const struct redis_reply *const *replies;
    struct redis_batch b;
    *out = (struct store_findings){0};
    redis_batch_init(&b, t, r);
    redis_batch_add(&b, STR_NULL, STR("INFO"));
    redis_batch_add(&b, STR_NULL, STR("CONFIG"), STR("GET"), STR("appendfsync"));
    int err = redis_batch_run(&b, &replies);
    if (err)
        return err;
    const struct redis_reply *info = replies[0], *pair = replies[1];
    bool told = pair->type == REDIS_ARRAY && pair->count == 2;
    judge_redis(t, info->type == REDIS_STRING ? info->str : STR(""),
                told ? pair->items[1]->str : STR_NULL, out);
    return 0;
}

/* --- MySQL --- */

struct variables {
    struct str flush, binlog, sync_binlog, method;
};

static void judge_mysql(struct task *t, const struct variables *v, struct store_findings *out)
{
    /* 3 is MariaDB's: one flush more than 1. */
    if (!v->flush.p)
        cannot_read(t, out, "MySQL", "innodb_flush_log_at_trx_commit", "1");
    else if (!str_eq(v->flush, STR("1")) && !str_eq(v->flush, STR("3")))
        find(t, out,
             "MySQL has \"innodb_flush_log_at_trx_commit = %.*s\" and can lose commits in a crash; "
             "set \"innodb_flush_log_at_trx_commit = 1\" in my.cnf",
             STR_ARG(v->flush));
    /* After a crash, a commit that is not in the binary log is rolled back. */
    if (str_eq(v->binlog, STR("ON")) && !str_eq(v->sync_binlog, STR("1")))
        find(t, out,
             "MySQL has \"sync_binlog = %.*s\" with a binary log and can lose commits in a crash; "
             "set \"sync_binlog = 1\" in my.cnf",
             STR_ARG(v->sync_binlog));
    if (str_ieq(v->method, STR("nosync")) || str_ieq(v->method, STR("littlesync")))
        find(t, out,
             "MySQL has \"innodb_flush_method = %.*s\" and can lose commits in a crash; set "
             "\"innodb_flush_method = fsync\" in my.cnf",
             STR_ARG(v->method));
}

static int read_variables(struct task *t, struct sql_pool *p, struct variables *v)
{
    const struct {
        struct str name, *to;
    } wanted[] = {{STR("innodb_flush_log_at_trx_commit"), &v->flush},
                  {STR("log_bin"), &v->binlog},
                  {STR("sync_binlog"), &v->sync_binlog},
                  {STR("innodb_flush_method"), &v->method}};
    struct sql_rows r;
    int err = sql_call(t, p, &r,
                       "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
                       " ('innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog',"
                       " 'innodb_flush_method')");
    for (size_t i = 0; !err && i < r.count; i++)
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
            if (str_ieq(sql_row(&r, i)[0].s, wanted[k].name))
                *wanted[k].to = sql_row(&r, i)[1].s;
    return err;
}

/* MySQL 8 can be told to write no redo log at all: ALTER INSTANCE DISABLE INNODB REDO_LOG. */
static int read_redo_log(struct task *t, struct sql_pool *p, bool *off)
{
    struct sql_rows r;
    int err = sql_call(t, p, &r, "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'");
    *off = !err && r.count && str_ieq(sql_row(&r, 0)[1].s, STR("OFF"));
    return err;
}

int store_check_mysql(struct task *t, struct sql_pool *p, struct store_findings *out)
{
    struct variables v = {.binlog = STR("OFF"), .method = STR("")};
    bool off = false;
    *out = (struct store_findings){0};
    int err = read_variables(t, p, &v);
    if (!err)
        err = read_redo_log(t, p, &off);
    if (err)
        return err;
    judge_mysql(t, &v, out);
    if (off)
        find(t, out,
             "MySQL writes no redo log and loses commits in a crash; run ALTER INSTANCE ENABLE "
             "INNODB REDO_LOG");
    return 0;
}

int store_check_writable(struct task *t, struct sql_pool *p)
{
    return sql_call(t, p, NULL, "DELETE FROM setting WHERE 1 = 0");
}

/* --- both --- */

static void ask_redis(struct task *t, const struct stores *s, struct store_report *out)
{
    struct group g;
    group_init(&g, task_loop(t));
    struct redis *r = redis_open(&g, &(struct redis_options){.url = s->redis_url,
                                                             .password = s->redis_password,
                                                             .name = "check",
                                                             .quiet = true});
    check(r);
    out->redis_known = !store_check_redis(t, r, &out->redis);
    out->cluster = redis_is_cluster(r);
    redis_close(r);
    int joined = group_join(t, &g);
    (void)joined; /* out of time or not, the handle has ended */
}

static void ask_mysql(struct task *t, const struct stores *s, struct store_report *out)
{
    struct sql_pool *p =
        sql_pool_new(task_loop(t), &(struct sql_options){.url = s->mysql_url,
                                                         .password = s->mysql_password,
                                                         .connections_max = 1,
                                                         .quiet = true});
    out->mysql_known = !store_check_mysql(t, p, &out->mysql);
    sql_pool_free(p);
}

void store_check(struct task *t, const struct config *c, int64_t ms, struct store_report *r)
{
    struct stores s;
    const char *why = NULL;
    r->redis_known |= !*c->redis_url && !config_persists(c);
    if (stores_find(task_arena(t), c, &s, &why))
        return;
    int64_t old = task_deadline(t, ms);
    if (!r->redis_known)
        ask_redis(t, &s, r);
    task_deadline_restore(t, old);
    old = task_deadline(t, ms);
    if (!r->mysql_known)
        ask_mysql(t, &s, r);
    task_deadline_restore(t, old);
}
