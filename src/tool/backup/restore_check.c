/* Whether configured stores are free and empty, and what empties them. */
#include "engine/crew/members.h"
#include "engine/setup/schema.h"
#include "engine/store/keys.h"
#include "tool/backup/restore.h"

/* --- Redis --- */

/* Heartbeats are on Redis' clock. */
static int refuse_nodes(struct task *t, struct restore *r)
{
    const struct redis_reply *now, *beats;
    int64_t seconds = 0, last_ms = 0;
    int err = redis_call(t, r->redis, STR_NULL, &now, STR("TIME"));
    if (!err)
        err = redis_call(t, r->redis, key_nodes, &beats, STR("ZREVRANGE"), key_nodes, STR("0"),
                         STR("0"), STR("WITHSCORES"));
    if (err || beats->count < 2)
        return err;
    if (now->count > 0)
        (void)str_to_i64(now->items[0]->str, &seconds);
    (void)str_to_i64(beats->items[1]->str, &last_ms);
    int64_t ago = seconds * 1000 - last_ms;
    if (ago > MEMBER_SILENT_MS)
        return 0;
    return task_fail(t, ERR_BUSY,
                     "a node of millrace is running on this Redis (its last heartbeat is less than "
                     "%d s old): stop all servers first",
                     MEMBER_SILENT_MS / 1000 + 1);
}

static int check_redis(struct task *t, struct restore *r)
{
    const struct redis_reply *size;
    int err = refuse_nodes(t, r);
    if (!err)
        err = redis_call(t, r->redis, STR_NULL, &size, STR("DBSIZE"));
    if (err || redis_number(size, 0) == 0)
        return err;
    r->flush = true;
    if (r->overwrite)
        return 0;
    return task_fail(t, ERR_EXISTS,
                     "Redis at %s is not empty: it has %lld keys; --overwrite removes all of this "
                     "database of Redis",
                     config_mask_url(task_arena(t), r->config.redis_url),
                     (long long)redis_number(size, 0));
}

/* --- MySQL --- */

static int count_tables(struct task *t, struct restore *r, int64_t *ours, bool *known)
{
    struct sql_rows x;
    size_t count;
    const struct str *names = schema_tables(task_arena(t), &count);
    int err = sql_call(t, r->sql, &x,
                       "SELECT table_name FROM information_schema.tables"
                       " WHERE table_schema = DATABASE()");
    for (size_t i = 0; !err && i < x.count; i++) {
        *known |= str_eq(x.cells[i].s, STR("schema_migration")) ||
                  str_eq(x.cells[i].s, STR(SCHEMA_RESTORING));
        for (size_t k = 0; k < count; k++)
            *ours += str_eq(x.cells[i].s, names[k]);
    }
    return err;
}

static int check_mysql(struct task *t, struct restore *r)
{
    int64_t ours = 0;
    bool known = false;
    int err = count_tables(t, r, &ours, &known);
    if (err || (!ours && !known))
        return err;
    const char *url = config_mask_url(task_arena(t), r->config.mysql_url);
    if (!known)
        return task_fail(t, ERR_EXISTS,
                         "MySQL at %s has %lld tables with names of millrace's that millrace did "
                         "not make: name another database",
                         url, (long long)ours);
    r->drop = true;
    if (r->overwrite)
        return 0;
    return task_fail(t, ERR_EXISTS,
                     "MySQL at %s has tables of millrace already: name an empty database, or "
                     "replace all that is in them by --overwrite",
                     url);
}

/* With the address, so that the reader knows which of the two is away. */
static int name_store(struct task *t, int err, const char *store, const char *url)
{
    if (err != ERR_UNAVAILABLE && err != ERR_TIMEOUT && err != ERR_UNCERTAIN)
        return err;
    const char *why = arena_strdup(task_arena(t), *task_error(t) ? task_error(t) : err_name(err));
    return task_fail(t, err, "%s at %s: %s", store, config_mask_url(task_arena(t), url), why);
}

int restore_check(struct task *t, struct restore *r)
{
    const struct config *c = &r->config;
    int err = *c->redis_url ? name_store(t, check_redis(t, r), "Redis", c->redis_url) : 0;
    return err || !*c->mysql_url ? err : name_store(t, check_mysql(t, r), "MySQL", c->mysql_url);
}

/* --- emptying --- */

static int drop_tables(struct task *t, struct restore *r)
{
    size_t count;
    const struct str *names = schema_tables(task_arena(t), &count);
    int err = 0;
    for (size_t i = 0; !err && i < count; i++)
        err =
            sql_argv(t, r->sql,
                     arena_printf(task_arena(t), "DROP TABLE IF EXISTS `%.*s`", STR_ARG(names[i])),
                     0, NULL, NULL);
    return err ? err : sql_call(t, r->sql, NULL, "DROP TABLE IF EXISTS schema_migration");
}

int restore_empty(struct task *t, struct restore *r)
{
    int err = r->drop ? drop_tables(t, r) : 0;
    if (!err && r->flush)
        err = redis_call(t, r->redis, STR_NULL, NULL, STR("FLUSHDB"));
    return err;
}
