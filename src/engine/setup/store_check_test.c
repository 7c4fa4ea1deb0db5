#include "engine/setup/store_check.h"

#include <stdio.h>

#include "base/log.h"
#include "tests/mariadb.h"
#include "tests/store.h"
#include "tests/tap.h"

static struct store_redis redis_server;
static struct mariadb mysql_server;

static void say(const char *line)
{
    char answer[64];
    bool done = store_redis_say(&redis_server, line, answer, sizeof answer);
    if (!done)
        printf("# %s: %s\n", line, answer);
    check(done);
}

static struct redis *open_redis(struct group *g, const char *user)
{
    static char url[160];
    snprintf(url, sizeof url, "redis://%s127.0.0.1:%d", user, redis_server.port);
    struct redis *r = redis_open(g, &(struct redis_options){.url = url, .name = "test"});
    check(r);
    return r;
}

/* It has this one finding, and the sentence names the line to write; NULL: it is safe. */
static void finds(const struct store_findings *f, const char *line, const char *name)
{
    is_int((int64_t)f->unsafe_count, line ? 1 : 0, "%s: %s", name, line ? "unsafe" : "safe");
    if (line && f->unsafe_count)
        ok(strstr(f->unsafe[0], line), "%s: what to write: %s", name, f->unsafe[0]);
    is_int((int64_t)f->unread_count, 0, "%s: all could be read", name);
}

static void redis_is(struct task *t, struct redis *r, const char *set, const char *line)
{
    struct store_findings f;
    say(set);
    check(store_check_redis(t, r, &f) == 0);
    finds(&f, line, set);
}

static void test_redis(struct task *t, void *arg)
{
    (void)arg;
    struct group g;
    group_init(&g, task_loop(t));
    struct redis *r = open_redis(&g, "");
    redis_is(t, r, "CONFIG SET appendonly yes", NULL);
    redis_is(t, r, "CONFIG SET maxmemory-policy volatile-lru", NULL);
    redis_is(t, r, "CONFIG SET maxmemory-policy allkeys-lru", "\"maxmemory-policy noeviction\"");
    redis_is(t, r, "CONFIG SET maxmemory-policy allkeys-random", "\"maxmemory-policy noeviction\"");
    redis_is(t, r, "CONFIG SET maxmemory-policy noeviction", NULL);
    redis_is(t, r, "CONFIG SET appendfsync no", "\"appendfsync everysec\"");
    redis_is(t, r, "CONFIG SET appendfsync always", NULL);
    redis_is(t, r, "CONFIG SET appendonly no", "\"appendonly yes\"");
    redis_close(r);
    check(group_join(t, &g) == 0);
}

/* An account as a managed Redis gives it: no CONFIG. */
static void test_unread(struct task *t, void *arg)
{
    (void)arg;
    struct store_findings f;
    struct group g;
    group_init(&g, task_loop(t));
    say("CONFIG SET appendonly yes");
    say("ACL SETUSER tenant on >pw ~* +@all -config");
    struct redis *r = open_redis(&g, "tenant:pw@");
    check(store_check_redis(t, r, &f) == 0);
    ok(f.unsafe_count == 0 && f.unread_count == 1, "one setting cannot be read");
    ok(f.unread_count && strstr(f.unread[0], "appendfsync: make sure that it is everysec"), "%s",
       f.unread_count ? f.unread[0] : "");
    say("CONFIG SET maxmemory-policy allkeys-lfu");
    check(store_check_redis(t, r, &f) == 0);
    ok(f.unsafe_count == 1 && strstr(f.unsafe[0], "allkeys-lfu"), "what INFO shows is judged");
    say("CONFIG SET maxmemory-policy noeviction");
    redis_close(r);
    check(group_join(t, &g) == 0);
}

static void mysql_is(struct task *t, struct sql_pool *p, const char *set, const char *line)
{
    struct store_findings f;
    check(sql_argv(t, p, set, 0, NULL, NULL) == 0);
    check(store_check_mysql(t, p, &f) == 0);
    finds(&f, line, set);
}

static void test_mysql(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = sql_pool_new(task_loop(t), &(struct sql_options){.url = mysql_server.url});
    const char *line = "\"innodb_flush_log_at_trx_commit = 1\"";
    mysql_is(t, p, "SET GLOBAL innodb_flush_log_at_trx_commit = 1", "\"sync_binlog = 1\"");
    mysql_is(t, p, "SET GLOBAL sync_binlog = 1", NULL);
    mysql_is(t, p, "SET GLOBAL innodb_flush_log_at_trx_commit = 3", NULL);
    mysql_is(t, p, "SET GLOBAL innodb_flush_log_at_trx_commit = 2", line);
    mysql_is(t, p, "SET GLOBAL innodb_flush_log_at_trx_commit = 0", line);
    sql_pool_free(p);
}

/* Both at once, over connections of its own. */
static void test_both(struct task *t, void *arg)
{
    (void)arg;
    struct config c = {.redis_url = redis_server.url_unix,
                       .redis_password = "",
                       .mysql_url = "unix:/nowhere.sock?user=x",
                       .mysql_password = ""};
    struct store_report r = {.mysql_known = false};
    say("CONFIG SET appendonly no");
    store_check(t, &c, 1000, &r);
    ok(r.redis_known && r.redis.unsafe_count == 1, "Redis answers, and is unsafe");
    ok(!r.mysql_known && !r.cluster, "MySQL is away, so nothing is known of it");
    c.mysql_url = mysql_server.url;
    c.redis_url = "unix:/nowhere.sock";
    store_check(t, &c, 1000, &r);
    ok(r.mysql_known && r.mysql.unsafe_count == 1, "asked again, it answers");
    ok(r.redis_known && r.redis.unsafe_count == 1, "and Redis need not");
}

int main(void)
{
    static const char *const options[] = {"--log-bin=log", NULL};
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&redis_server, NULL);
    mariadb_start(&mysql_server, &(struct mariadb_options){.args = options});
    tap_task(test_redis, NULL, true);
    tap_task(test_unread, NULL, true);
    tap_task(test_mysql, NULL, true);
    tap_task(test_both, NULL, true);
    mariadb_release(&mysql_server);
    store_redis_stop(&redis_server);
    return tap_done();
}
