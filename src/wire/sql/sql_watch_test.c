/* A server that hangs, and one that is merely slow. */
#include <string.h>

#include "wire/sql/sql_harness.h"

#define AWAY_MS 1900 /* until a call has failed, on a busy machine; sql.h says 1500 */

struct watched {
    struct sql_pool *pool;
    struct group watch, calls;
};

static void begin(struct task *t, struct watched *w, struct sql_options o)
{
    w->pool = pool_with(t, o);
    group_init(&w->watch, task_loop(t));
    group_init(&w->calls, task_loop(t));
    check(task_go(&w->watch, "watch", sql_pool_watch, w->pool) == 0);
    number(t, w->pool, "SELECT 1");
}

static void end(struct task *t, struct watched *w)
{
    check(group_join(t, &w->calls) == 0);
    group_cancel(&w->watch);
    check(group_join(t, &w->watch) == 0);
    sql_pool_free(w->pool);
}

static void freeze(struct task *t)
{
    mariadb_freeze(&server);
    check(task_yield(t) == 0);
}

/* Until it answers again; how long that took. */
static int64_t back(struct task *t, struct sql_pool *p)
{
    int64_t since = now(t);
    while (sql_call(t, p, NULL, "SELECT 1") && now(t) - since < 5000)
        check(task_sleep(t, 10) == 0);
    return now(t) - since;
}

/* --- it hangs --- */

struct call {
    struct sql_pool *pool;
    const char *statement; /* NULL: a transaction */
    int err;
    int64_t took_ms;
};

static int change(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    int err = sql_on(t, c, NULL, "INSERT INTO watched VALUES (2)");
    if (!err)
        freeze(t);
    return err ? err : sql_on(t, c, NULL, "INSERT INTO watched VALUES (3)");
}

static int change_all(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    int err = sql_on(t, c, NULL, "INSERT INTO watched VALUES (4)");
    freeze(t);
    return err;
}

static void make_call(struct task *t, void *arg)
{
    struct call *x = arg;
    int64_t since = now(t);
    x->err = sql_call(t, x->pool, NULL, x->statement);
    x->took_ms = now(t) - since;
}

static void test_hangs(struct task *t, void *arg)
{
    (void)arg;
    struct watched w;
    struct call calls[6];
    begin(t, &w, (struct sql_options){.connections_max = 3});
    check(sql_call(t, w.pool, NULL, "CREATE TABLE watched (n INT)") == 0);
    freeze(t);
    for (int i = 0; i < 6; i++) { /* three of them wait for a connection */
        calls[i] = (struct call){w.pool, "SELECT 1", 0, 0};
        check(task_go(&w.calls, "call", make_call, &calls[i]) == 0);
    }
    int64_t longest = 0;
    int failed = 0;
    check(group_join(t, &w.calls) == 0);
    for (int i = 0; i < 6; i++) {
        failed += calls[i].err == ERR_UNAVAILABLE;
        longest = calls[i].took_ms > longest ? calls[i].took_ms : longest;
    }
    is_int(failed, 6, "calls that wait for a server that hangs fail");
    ok(longest < AWAY_MS, "within %d ms", (int)longest);
    ok(sql_pool_away(w.pool) && !w.pool->up, "the pool knows");

    int64_t since = now(t), slowest = 0;
    while (now(t) - since < 2500) {
        int64_t one = now(t);
        check(sql_call(t, w.pool, NULL, "SELECT 1") == ERR_UNAVAILABLE);
        slowest = now(t) - one > slowest ? now(t) - one : slowest;
        check(task_sleep(t, 5) == 0);
    }
    ok(slowest < 100, "new calls fail at once: %d ms", (int)slowest);
    ok(strstr(task_error(t), "the database is down"), "%s", task_error(t));
    mariadb_thaw(&server);
    int64_t took = back(t, w.pool);
    ok(took < 4500 && !sql_pool_away(w.pool), "back after %d ms", (int)took);
    end(t, &w);
}

static void test_changes(struct task *t, void *arg)
{
    (void)arg;
    struct watched w;
    begin(t, &w, (struct sql_options){.connections_max = 3});
    int64_t since = now(t);
    is_int(sql_tx(t, w.pool, change, NULL), ERR_UNAVAILABLE, "a transaction in its middle");
    ok(now(t) - since < AWAY_MS, "fails within %d ms", (int)(now(t) - since));
    mariadb_thaw(&server);
    back(t, w.pool);
    is_int(number(t, w.pool, "SELECT COUNT(*) FROM watched WHERE n IN (2, 3)"), 0,
           "and is rolled back");
    is_int(sql_tx(t, w.pool, change_all, NULL), ERR_UNCERTAIN, "COMMIT");
    mariadb_thaw(&server);
    back(t, w.pool);
    check(sql_call(t, w.pool, NULL, "INSERT INTO watched VALUES (5)") == 0); /* prepares it */
    freeze(t);
    is_int(sql_call(t, w.pool, NULL, "INSERT INTO watched VALUES (5)"), ERR_UNCERTAIN,
           "a change without a transaction");
    mariadb_thaw(&server);
    back(t, w.pool);
    end(t, &w);
}

/* --- it is slow --- */

static void test_slow(struct task *t, void *arg)
{
    (void)arg;
    for (size_t connections = 1; connections <= 2; connections++) {
        struct watched w;
        begin(t, &w, (struct sql_options){.connections_max = connections});
        struct call slow = {w.pool, "SELECT SLEEP(3)", 1, 0};
        make_call(t, &slow);
        ok(slow.err == 0 && slow.took_ms >= 2900, "a slow statement is left alone");
        ok(!sql_pool_away(w.pool), "the server is there");
        for (int i = 0; i < 100 && w.pool->open > connections; i++)
            check(task_sleep(t, 10) == 0); /* a question may be under way */
        ok(w.pool->open <= connections, "no connection is left of the question");
        end(t, &w);
    }
}

/* --- it dies --- */

static void test_dies(struct task *t, void *arg)
{
    (void)arg;
    struct watched w;
    begin(t, &w, (struct sql_options){.connections_max = 3});
    mariadb_kill(&server);
    check(task_yield(t) == 0);
    int64_t since = now(t);
    while (now(t) - since < 300) {
        check(sql_call(t, w.pool, NULL, "SELECT 1") == ERR_UNAVAILABLE);
        check(task_sleep(t, 5) == 0);
    }
    mariadb_restart(&server);
    ok(back(t, w.pool) < 2500, "a server that was killed is found again");
    end(t, &w);
}

int main(void)
{
    task_fn *const tests[] = {test_hangs, test_changes, test_slow, test_dies};
    return run_tests(NULL, sizeof tests / sizeof *tests, tests);
}
