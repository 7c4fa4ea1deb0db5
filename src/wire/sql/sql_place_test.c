/* A list of servers: which of them is used, and when another is. */
#include <string.h>

#include "wire/sql/sql_harness.h"

static struct mariadb other;

static const char *list_of(struct task *t, const char *before)
{
    return arena_printf(task_arena(t), "mysql://plain@%s127.0.0.1:%d,127.0.0.1:%d/test", before,
                        server.port, other.port);
}

static void must(struct task *t, const struct mariadb *m, const char *statement)
{
    struct sql_pool *p = pool_with(t, (struct sql_options){.url = m->url, .connections_max = 1});
    check(sql_call(t, p, NULL, statement) == 0);
    sql_pool_free(p);
}

static int64_t count(struct task *t, const struct mariadb *m, int64_t n)
{
    struct sql_pool *p = pool_with(t, (struct sql_options){.url = m->url, .connections_max = 1});
    int64_t found =
        number(t, p, arena_printf(task_arena(t), "SELECT COUNT(*) FROM l WHERE n = %d", (int)n));
    sql_pool_free(p);
    return found;
}

/* A user that read_only holds for, which it does not for root. */
static void set_up(struct task *t, void *arg)
{
    (void)arg;
    const struct mariadb *both[] = {&server, &other};
    for (int i = 0; i < 2; i++) {
        must(t, both[i], "CREATE USER plain@'127.0.0.1'");
        must(t, both[i], "GRANT ALL ON test.* TO plain@'127.0.0.1'");
        must(t, both[i], "CREATE TABLE l (n INT)");
    }
}

static void be_read_only(struct task *t, const struct mariadb *m, bool on)
{
    must(t, m, on ? "SET GLOBAL read_only = 1" : "SET GLOBAL read_only = 0");
}

static int64_t port_of(struct task *t, struct sql_pool *p)
{
    return number(t, p, "SELECT @@port");
}

struct watched {
    struct sql_pool *pool;
    struct group watch;
};

static struct sql_pool *begin(struct task *t, struct watched *w, const char *before)
{
    w->pool = pool_with(t, (struct sql_options){.url = list_of(t, before), .connections_max = 3});
    group_init(&w->watch, task_loop(t));
    check(task_go(&w->watch, "watch", sql_pool_watch, w->pool) == 0);
    check(task_yield(t) == 0);
    return w->pool;
}

static void end(struct task *t, struct watched *w)
{
    group_cancel(&w->watch);
    check(group_join(t, &w->watch) == 0);
    sql_pool_free(w->pool);
}

/* Until it is so, for at most ms. */
static bool becomes_read_only(struct task *t, const struct sql_pool *p, bool is, int64_t ms)
{
    for (int64_t since = now(t); sql_pool_read_only(p) != is && now(t) - since < ms;)
        check(task_sleep(t, 10) == 0);
    return sql_pool_read_only(p) == is;
}

static void test_order(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_with(t, (struct sql_options){.url = list_of(t, "")});
    is_int(port_of(t, p), server.port, "the first host is used");
    sql_pool_free(p);
    p = pool_with(t, (struct sql_options){.url = list_of(t, "127.0.0.1:1,")});
    int64_t since = now(t);
    is_int(port_of(t, p), server.port, "where nothing listens there, the next");
    ok(now(t) - since < 1000 && !sql_pool_away(p), "at once: %d ms", (int)(now(t) - since));
    sql_pool_free(p);
    const char *unreachable = "mysql://plain@127.0.0.1:1,127.0.0.1:2/test";
    p = pool_with(t, (struct sql_options){.url = unreachable});
    is_int(sql_call(t, p, NULL, "SELECT 1"), ERR_UNAVAILABLE, "no host answers");
    ok(strstr(task_error(t), "127.0.0.1:1: ") && strstr(task_error(t), "; 127.0.0.1:2: "),
       "each is named: %s", task_error(t));
    sql_pool_free(p);
}

static int insert(struct task *t, struct sql *c, void *n)
{
    return sql_on(t, c, NULL, "INSERT INTO l VALUES (?)", sql_int(*(int *)n));
}

static void nap(struct task *t, void *pool)
{
    check(sql_call(t, pool, NULL, "SELECT SLEEP(0.2)") == 0);
}

static void open_three(struct task *t, struct sql_pool *p)
{
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 3; i++)
        check(task_go(&g, "nap", nap, p) == 0);
    check(group_join(t, &g) == 0 && p->open == 3);
}

/* A primary that moves. */
static void test_read_only(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p =
        pool_with(t, (struct sql_options){.url = list_of(t, ""), .connections_max = 3});
    is_int(sql_call(t, p, NULL, "INSERT INTO l VALUES (1)"), 0, "a change");
    open_three(t, p);
    be_read_only(t, &server, true);
    is_int(sql_call(t, p, NULL, "INSERT INTO l VALUES (2)"), 0,
           "where it is refused, it is made on the next server");
    ok(count(t, &server, 2) == 0 && count(t, &other, 2) == 1, "there alone, and once");
    ok(!sql_pool_read_only(p), "that is not read-only");
    is_int(port_of(t, p), other.port, "and is used from then on");
    is_int((int64_t)p->open, 1, "connections to the former one are closed");

    be_read_only(t, &other, true);
    be_read_only(t, &server, false);
    is_int(sql_tx(t, p, insert, &(int){3}), 0, "a transaction that is refused");
    ok(count(t, &server, 3) == 1 && count(t, &other, 3) == 0, "is made on the next server");
    is_int(port_of(t, p), server.port, "which is used from then on");
    be_read_only(t, &other, false);
    sql_pool_free(p);

    be_read_only(t, &server, true);
    p = pool_with(t, (struct sql_options){.url = list_of(t, "")});
    is_int(port_of(t, p), other.port, "one that is read-only from the beginning is passed over");
    sql_pool_free(p);
    be_read_only(t, &server, false);
}

static void test_none_writable(struct task *t, void *arg)
{
    (void)arg;
    struct watched w;
    struct sql_pool *p = begin(t, &w, "");
    check(sql_call(t, p, NULL, "INSERT INTO l VALUES (4)") == 0);
    be_read_only(t, &server, true);
    be_read_only(t, &other, true);
    is_int(sql_call(t, p, NULL, "INSERT INTO l VALUES (5)"), ERR_UNAVAILABLE,
           "no server takes changes: %s", task_error(t));
    ok(sql_pool_read_only(p) && !sql_pool_away(p), "noted");
    is_int(sql_tx(t, p, insert, &(int){5}), ERR_UNAVAILABLE, "in a transaction, too");
    is_int(number(t, p, "SELECT 1"), 1, "reads go on");
    check(task_sleep(t, 2500) == 0);
    ok(sql_pool_read_only(p) && p->open <= 3, "it stays so; %d connections", (int)p->open);
    be_read_only(t, &other, false);
    ok(becomes_read_only(t, p, false, 4000), "the watch finds the one that takes changes again");
    is_int(port_of(t, p), other.port, "which is used");
    is_int(sql_tx(t, p, insert, &(int){5}), 0, "it takes changes");
    ok(count(t, &server, 5) == 0 && count(t, &other, 5) == 1, "what was refused was not done");
    be_read_only(t, &server, false);
    end(t, &w);
}

/* --- the server in use goes --- */

struct lose {
    int runs;
};

static int lose(struct task *t, struct sql *c, void *arg)
{
    struct lose *x = arg;
    int err = sql_on(t, c, NULL, "INSERT INTO l VALUES (6)");
    if (!err && x->runs++ == 0)
        mariadb_kill(&server);
    return err ? err : sql_on(t, c, NULL, "INSERT INTO l VALUES (7)");
}

static int lose_at_commit(struct task *t, struct sql *c, void *arg)
{
    struct lose *x = arg;
    int err = sql_on(t, c, NULL, "INSERT INTO l VALUES (8)");
    if (!err && x->runs++ == 0)
        mariadb_kill(&other);
    return err;
}

static void test_killed(struct task *t, void *arg)
{
    (void)arg;
    struct watched w;
    struct sql_pool *p = begin(t, &w, "");
    check(port_of(t, p) == server.port);
    struct lose x = {0};
    is_int(sql_tx(t, p, lose, &x), 0, "the server is killed in a transaction");
    is_int(x.runs, 2, "which is run again");
    ok(count(t, &other, 6) == 1 && count(t, &other, 7) == 1, "on the other server");
    is_int(port_of(t, p), other.port, "which is used from then on");
    mariadb_restart(&server);
    is_int(count(t, &server, 6), 0, "nothing is left on the first");
    is_int(port_of(t, p), other.port, "and it is not gone back to");
    x.runs = 0;
    is_int(sql_tx(t, p, lose_at_commit, &x), ERR_UNCERTAIN,
           "killed at the COMMIT: the outcome is unknown, and it is not repeated");
    is_int(x.runs, 1, "it ran once");
    is_int(port_of(t, p), server.port, "the next call finds the first one");
    mariadb_restart(&other);
    end(t, &w);
}

static void test_hangs(struct task *t, void *arg)
{
    (void)arg;
    struct watched w;
    struct sql_pool *p = begin(t, &w, "");
    check(port_of(t, p) == server.port);
    mariadb_freeze(&server);
    int64_t since = now(t), port = 0;
    struct sql_rows r;
    while (now(t) - since < 10000 && port != other.port) {
        port = sql_call(t, p, &r, "SELECT @@port") ? 0 : r.cells[0].i;
        check(task_sleep(t, 20) == 0);
    }
    ok(port == other.port && now(t) - since < 2800, "one that hangs is passed over in %d ms",
       (int)(now(t) - since));
    mariadb_thaw(&server);
    is_int(port_of(t, p), other.port, "and not gone back to");
    end(t, &w);
}

/* --- deadlocks --- */

struct rival {
    struct sql_pool *pool;
    struct sem locked;
    int err;
};

static int hold_and_want(struct task *t, struct sql *c, void *arg)
{
    struct rival *x = arg;
    int err = sql_on(t, c, NULL, "UPDATE d SET n = n + 1 WHERE id >= 2");
    sem_put(&x->locked);
    if (!err)
        err = task_sleep(t, 300);
    return err ? err : sql_on(t, c, NULL, "UPDATE d SET n = n + 1 WHERE id = 1");
}

static void rival_task(struct task *t, void *arg)
{
    struct rival *x = arg;
    x->err = sql_tx(t, x->pool, hold_and_want, x);
}

/* One statement by itself locks row 1, then wants row 2; the transaction does the opposite, and has
 * changed more rows, so the server rolls the statement back. */
static void test_deadlock(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 2);
    check(sql_call(t, p, NULL, "CREATE TABLE d (id INT PRIMARY KEY, n INT)") == 0);
    check(sql_call(t, p, NULL, "INSERT INTO d SELECT seq, 0 FROM seq_1_to_50") == 0);
    struct rival x = {.pool = p};
    struct group g;
    group_init(&g, task_loop(t));
    sem_init(&x.locked, 0);
    check(task_go(&g, "rival", rival_task, &x) == 0);
    check(sem_get(t, &x.locked) == 0);
    is_int(sql_call(t, p, NULL, "UPDATE d SET n = n + 10 WHERE id <= 2 ORDER BY id"), 0,
           "a statement that a deadlock has rolled back is repeated");
    check(group_join(t, &g) == 0);
    is_int(x.err, 0, "the transaction is done");
    is_int(number(t, p, "SELECT CAST(SUM(n) AS INT) FROM d WHERE id <= 2"), 22,
           "each of them once");
    is_int(*p->errors_total[-ERR_CONFLICT], 1, "there was a deadlock");
    sql_pool_free(p);
}

int main(void)
{
    task_fn *const tests[] = {set_up,      test_order, test_read_only, test_none_writable,
                              test_killed, test_hangs, test_deadlock};
    mariadb_start(&other, &(struct mariadb_options){.tcp = true});
    int status =
        run_tests(&(struct mariadb_options){.tcp = true}, sizeof tests / sizeof tests[0], tests);
    mariadb_release(&other);
    return status;
}
