/* Over TCP: addresses and names, passwords, TLS. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "wire/sql/sql_harness.h"

static struct sql_pool *pool_at(struct task *t, const char *url)
{
    return pool_with(t, (struct sql_options){.url = url, .connections_max = 2, .connect_ms = 1000});
}

static const char *url_of(struct task *t, const char *login, const char *host, const char *rest)
{
    return arena_printf(task_arena(t), "mysql://%s@%s:%d/test%s", login, host, server.port, rest);
}

/* The error of one call over a new pool; its text is in the task. */
static int try(struct task *t, const char *url)
{
    struct sql_pool *p = pool_at(t, url);
    struct sql_rows r;
    int err = sql_call(t, p, &r, "SELECT ?", sql_int(7));
    check(err || r.cells[0].i == 7);
    sql_pool_free(p);
    return err;
}

static void set_up(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_at(t, server.url);
    const char *const statements[] = {
        "CREATE USER mill@'%' IDENTIFIED BY 'p@ss:w/rd?%'",
        "GRANT ALL ON test.* TO mill@'%'",
        "CREATE USER safe@'%' IDENTIFIED BY 'x' REQUIRE SSL",
        "GRANT ALL ON test.* TO safe@'%'",
    };
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        check(sql_argv(t, p, statements[i], 0, NULL, NULL) == 0);
    sql_pool_free(p);
}

#define LOGIN "mill:p%40ss%3Aw%2Frd%3F%25"

static void test_login(struct task *t, void *arg)
{
    (void)arg;
    is_int(try(t, url_of(t, LOGIN, "127.0.0.1", "")), 0, "an address and a difficult password");
    is_int(try(t, url_of(t, LOGIN, "localhost", "")), 0, "a name");
    is_int(try(t, url_of(t, "mill:s3cret", "127.0.0.1", "")), ERR_UNAVAILABLE, "a wrong password");
    ok(strstr(task_error(t), "Access denied") && !strstr(task_error(t), "s3cret"), "%s",
       task_error(t));
    is_int(try(t, url_of(t, LOGIN, "no.such.host.invalid", "")), ERR_UNAVAILABLE, "no such name");
    ok(strstr(task_error(t), "cannot find no.such.host.invalid"), "%s", task_error(t));
    is_int(try(t, "mysql://mill@127.0.0.1:1/test"), ERR_UNAVAILABLE, "no server listens there");
    ok(strstr(task_error(t), "127.0.0.1"), "%s", task_error(t));

    const char *with_password =
        arena_printf(task_arena(t), "unix:%s?user=mill&database=test", server.socket);
    struct sql_pool *p = sql_pool_new(
        task_loop(t), &(struct sql_options){.url = with_password, .password = "p@ss:w/rd?%"});
    is_int(sql_call(t, p, NULL, "DO 1"), 0, "a password beside the URL");
    sql_pool_free(p);
}

static void test_tls_checks(struct task *t, void *arg)
{
    (void)arg;
    const char *ca = arena_printf(task_arena(t), "?tls=verify&ca=%s/cert.pem", server.dir);
    is_int(try(t, url_of(t, "safe:x", "127.0.0.1", "")), ERR_UNAVAILABLE, "no TLS, no entry");
    is_int(try(t, url_of(t, "safe:x", "127.0.0.1", "?tls=on")), 0, "TLS");
    is_int(try(t, url_of(t, "safe:x", "localhost", ca)), 0, "a certificate that is known");
    is_int(try(t, url_of(t, "safe:x", "127.0.0.1", ca)), ERR_UNAVAILABLE, "for another host");
    ok(strstr(task_error(t), "certificate"), "%s", task_error(t));
    is_int(try(t, url_of(t, "safe:x", "localhost", "?tls=verify")), ERR_UNAVAILABLE,
           "from an authority that this system does not know");
    ok(strstr(task_error(t), "certificate"), "%s", task_error(t));
}

static void test_tls_waits(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_at(t, url_of(t, "safe:x", "127.0.0.1", "?tls=on"));
    struct tick k = {0};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "tick", tick_task, &k) == 0);
    struct sql_rows r;
    size_t n = 3 << 20;
    char *big = arena_zalloc(task_arena(t), n);
    ok(sql_call(t, p, &r, "SELECT ?, SLEEP(0.2)", sql_blob(str_from(big, n))) == 0 &&
           r.cells[0].s.n == n,
       "3 MB each way");
    for (int i = 0; i < 20; i++)
        check(sql_call(t, p, NULL, "DO 1") == 0);
    is_int((int64_t)p->open, 1, "over one connection");
    int64_t since = now(t), old = task_deadline(t, 100);
    is_int(sql_call(t, p, NULL, "SELECT SLEEP(10)"), ERR_TIMEOUT, "a deadline");
    task_deadline_restore(t, old);
    ok(now(t) - since < 200, "is kept");
    check(task_sleep(t, 300) == 0);
    check(sql_call(t, p, &r,
                   "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
                   " WHERE INFO LIKE '%SLEEP(10)' AND ID <> CONNECTION_ID()") == 0);
    is_int(r.cells[0].i, 0, "and ended on the server");
    check(sql_call(t, p, NULL, "DO 1") == 0);
    mariadb_freeze(&server);
    sql_pool_free(p);
    p = pool_at(t, url_of(t, "safe:x", "127.0.0.1", "?tls=on"));
    is_int(sql_call(t, p, NULL, "DO 1"), ERR_UNAVAILABLE, "a handshake without an answer");
    mariadb_thaw(&server);
    sql_pool_free(p);
    check(task_sleep(t, 5) == 0);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    ok(k.gap_max < 500, "the loop never stood still for longer than %d ms", (int)k.gap_max);
}

/* Connecting with TLS is not cut short, so a pool without an idle connection takes connect_ms. */
static void test_tls_watch(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_at(t, url_of(t, "safe:x", "127.0.0.1", "?tls=on"));
    struct group watch;
    group_init(&watch, task_loop(t));
    check(task_go(&watch, "watch", sql_pool_watch, p) == 0);
    number(t, p, "SELECT 1");
    mariadb_freeze(&server);
    int64_t since = now(t);
    is_int(sql_call(t, p, NULL, "SELECT 1"), ERR_UNAVAILABLE, "a server that hangs, with TLS");
    ok(now(t) - since < 3500, "fails within %d ms", (int)(now(t) - since));
    since = now(t);
    is_int(sql_call(t, p, NULL, "SELECT 1"), ERR_UNAVAILABLE, "then");
    ok(now(t) - since < 100, "at once");
    mariadb_thaw(&server);
    since = now(t);
    while (sql_call(t, p, NULL, "SELECT 1") && now(t) - since < 5000)
        check(task_sleep(t, 10) == 0);
    ok(!sql_pool_away(p), "back after %d ms", (int)(now(t) - since));
    group_cancel(&watch);
    check(group_join(t, &watch) == 0);
    sql_pool_free(p);
}

int main(void)
{
    task_fn *const tests[] = {set_up, test_login, test_tls_checks, test_tls_waits, test_tls_watch};
    return run_tests(&(struct mariadb_options){.tcp = true, .tls = true},
                     sizeof tests / sizeof tests[0], tests);
}
