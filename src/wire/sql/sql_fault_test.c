/* What happens when the database is slow, away, or dies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "wire/sql/sql_harness.h"

static struct sql_pool *hasty_pool(struct task *t, size_t connections)
{
    return pool_with(t, (struct sql_options){.connections_max = connections, .connect_ms = 300});
}

/* Blocks the loop, and its clock with it. */
static void restart(struct task *t)
{
    mariadb_restart(&server);
    check(task_yield(t) == 0);
}

static void stop(struct task *t)
{
    mariadb_stop(&server);
    check(task_yield(t) == 0);
}

static void freeze(struct task *t)
{
    mariadb_freeze(&server);
    check(task_yield(t) == 0);
}

/* Takes minutes. The server checks the socket during SLEEP, but not during this. */
#define WORK "SELECT BENCHMARK(1000000000, MD5('x'))"
#define RUNNING                                                                                    \
    "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT BENCHMARK%'"

static int64_t still_running(struct task *t, struct sql_pool *p)
{
    int64_t until = now(t) + 3000, count;
    while ((count = number(t, p, RUNNING)) > 0 && now(t) < until)
        check(task_sleep(t, 10) == 0);
    return count;
}

/* --- the server is not there --- */

static void test_down(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = hasty_pool(t, 6);
    stop(t);
    int64_t since = now(t);
    is_int(sql_call(t, p, NULL, "SELECT 1"), ERR_UNAVAILABLE, "no server listens");
    ok(strstr(task_error(t), "Can't connect"), "with the reason: %s", task_error(t));
    for (int i = 0; i < 1000; i++)
        check(sql_call(t, p, NULL, "SELECT 1") == ERR_UNAVAILABLE);
    ok(now(t) - since < 200, "a thousand calls fail in %d ms", (int)(now(t) - since));
    ok(strstr(task_error(t), "the database is down: Can't connect"), "%s", task_error(t));
    ok(!p->up, "down");

    for (int i = 0; i < 20; i++) {
        check(task_sleep(t, 20) == 0);
        check(sql_call(t, p, NULL, "SELECT 1") == ERR_UNAVAILABLE);
    }
    ok(p->backoff_ms > 100 && p->backoff_ms <= 1000, "attempts get rarer: %d ms",
       (int)p->backoff_ms);
    restart(t);
    int err;
    since = now(t);
    while ((err = sql_call(t, p, NULL, "SELECT 1")) != 0 && now(t) - since < 2000)
        check(task_sleep(t, 10) == 0);
    is_int(err, 0, "back %d ms after the server", (int)(now(t) - since));
    ok(p->up && p->backoff_ms == 0, "up");
    sql_pool_free(p);
}

/* Accepts connections and sends nothing. */
static void test_mute(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = hasty_pool(t, 6);
    freeze(t);
    int64_t since = now(t);
    is_int(sql_call(t, p, NULL, "SELECT 1"), ERR_UNAVAILABLE, "no greeting");
    ok(now(t) - since >= 280 && now(t) - since < 450, "is given up after connect_ms");
    is_str(str_of(task_error(t)), STR("no answer within 300 ms"), "with words");
    is_int(sql_call(t, p, NULL, "SELECT 1"), ERR_UNAVAILABLE, "and again");
    ok(now(t) - since < 450, "at once");
    check(task_sleep(t, 60) == 0);
    int64_t old = task_deadline(t, 50);
    since = now(t);
    is_int(sql_call(t, p, NULL, "SELECT 1"), ERR_TIMEOUT, "the task's own deadline");
    task_deadline_restore(t, old);
    ok(now(t) - since < 150, "comes first");
    mariadb_thaw(&server);
    is_int(number(t, p, "SELECT 1"), 1, "goes on");
    sql_pool_free(p);
}

/* --- statements that take too long --- */

static void test_deadline(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = hasty_pool(t, 2);
    number(t, p, "SELECT 1");
    int64_t since = now(t), old = task_deadline(t, 200);
    is_int(sql_call(t, p, NULL, "SELECT SLEEP(10)"), ERR_TIMEOUT, "SLEEP(10) within 200 ms");
    int64_t took = now(t) - since;
    task_deadline_restore(t, old);
    ok(took >= 195 && took < 300, "comes back after %d", (int)took);
    is_int((int64_t)p->open, 0, "its connection is closed");
    old = task_deadline(t, 200);
    is_int(sql_call(t, p, NULL, WORK), ERR_TIMEOUT, "hard work");
    task_deadline_restore(t, old);
    is_int(still_running(t, p), 0, "is ended on the server");
    sql_pool_free(p);

    p = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url, .statement_ms = 100});
    since = now(t);
    is_int(sql_call(t, p, NULL, "SELECT SLEEP(10)"), ERR_TIMEOUT, "the pool's own limit");
    ok(now(t) - since < 200, "holds without a deadline");
    sql_pool_free(p);
}

/* The connection's id may meanwhile belong to another client. */
static void test_kills_no_other(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = hasty_pool(t, 1);
    int64_t id = number(t, p, "SELECT CONNECTION_ID()");
    sql_server_kill(p->server, 0, (unsigned long)id, "SELECT SLEEP(?)");
    while (atomic_load(&p->server->kills) > 0)
        check(task_sleep(t, 5) == 0);
    check(task_sleep(t, 20) == 0);
    is_int(number(t, p, "SELECT CONNECTION_ID()"), id,
           "a connection that runs something else is spared");
    sql_pool_free(p);
}

static void work_on_server(struct task *t, void *arg)
{
    check(sql_call(t, arg, NULL, WORK) == ERR_CANCELED);
    check(sql_call(t, arg, NULL, "SELECT 1") == ERR_CANCELED);
}

static void test_cancel(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = hasty_pool(t, 3);
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 5; i++) /* two of them wait for a connection */
        check(task_go(&g, "worker", work_on_server, p) == 0);
    check(task_sleep(t, 100) == 0);
    is_int((int64_t)p->lent, 3, "three work");
    is_int((int64_t)p->waiting, 2, "two wait");
    int64_t since = now(t);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    ok(now(t) - since < 50, "all are cancelled at once");
    ok(p->open == 0 && p->lent == 0, "and their connections closed");
    is_int(still_running(t, p), 0, "ended on the server");
    sql_pool_free(p);
}

/* Closing a connection must not wait for a silent server, in any phase. */
static void test_loop_runs_on(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = hasty_pool(t, 2);
    number(t, p, "SELECT 1");
    struct tick k = {0};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "tick", tick_task, &k) == 0);
    check(task_sleep(t, 5) == 0);
    freeze(t);
    size_t n = 8 << 20;
    char *big = calloc(1, n);
    int64_t old = task_deadline(t, 150);
    is_int(sql_call(t, p, NULL, "DO LENGTH(?)", sql_blob(str_from(big, n))), ERR_TIMEOUT,
           "cut off while preparing");
    task_deadline_restore(t, old);
    mariadb_thaw(&server);
    check(sql_call(t, p, NULL, "DO LENGTH(?)", sql_blob(STR("x"))) == 0);
    freeze(t);
    old = task_deadline(t, 150);
    is_int(sql_call(t, p, NULL, "DO LENGTH(?)", sql_blob(str_from(big, n))), ERR_TIMEOUT,
           "cut off while sending 8 MB");
    task_deadline_restore(t, old);
    old = task_deadline(t, 50);
    is_int(sql_call(t, p, NULL, "DO 1"), ERR_TIMEOUT, "cut off while connecting");
    task_deadline_restore(t, old);
    free(big);
    mariadb_thaw(&server);
    number(t, p, "SELECT 1");
    freeze(t);
    sql_pool_free(p); /* an idle connection to a stopped server */
    mariadb_thaw(&server);
    check(task_sleep(t, 5) == 0);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    ok(k.gap_max < 140, "the loop never stood still for longer than %d ms", (int)k.gap_max);
}

/* --- the pool --- */

struct queue {
    struct sql_pool *p;
    int served[8], count;
};

struct customer {
    struct queue *q;
    int number;
};

static void be_served(struct task *t, void *arg)
{
    struct customer *c = arg;
    check(sql_call(t, c->q->p, NULL, "DO SLEEP(0.02)") == 0);
    c->q->served[c->q->count++] = c->number;
}

static void test_queue(struct task *t, void *arg)
{
    (void)arg;
    struct queue q = {.p = hasty_pool(t, 1)};
    struct customer c[8];
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 8; i++) {
        c[i] = (struct customer){&q, i};
        check(task_go(&g, "customer", be_served, &c[i]) == 0);
    }
    check(task_sleep(t, 10) == 0);
    int64_t old = task_deadline(t, 30), since = now(t);
    is_int(sql_call(t, q.p, NULL, "SELECT 1"), ERR_TIMEOUT, "waiting has a deadline");
    task_deadline_restore(t, old);
    ok(now(t) - since < 100, "which is kept");
    is_str(str_of(task_error(t)), STR("no database connection was free in time"), "with words");
    check(group_join(t, &g) == 0);
    bool in_order = true;
    for (int i = 0; i < 8; i++)
        in_order = in_order && q.served[i] == i;
    ok(in_order, "first come, first served");
    is_int((int64_t)q.p->open, 1, "over one connection");

    q.p->waiting = SQL_WAITERS_MAX;
    check(sem_try(&q.p->permits));
    is_int(sql_call(t, q.p, NULL, "SELECT 1"), ERR_BUSY, "the queue is bounded");
    sem_put(&q.p->permits);
    q.p->waiting = 0;
    sql_pool_free(q.p);
}

static void thaw_soon(struct task *t, void *arg)
{
    (void)arg;
    check(task_sleep(t, 50) == 0);
    mariadb_thaw(&server);
}

static void test_restart(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = hasty_pool(t, 4);
    check(sql_call(t, p, NULL, "CREATE OR REPLACE TABLE r (n INT)") == 0);
    struct group g;
    struct queue q = {.p = p};
    struct customer c[4];
    group_init(&g, task_loop(t));
    for (int i = 0; i < 4; i++) {
        c[i] = (struct customer){&q, i};
        check(task_go(&g, "customer", be_served, &c[i]) == 0);
    }
    check(group_join(t, &g) == 0);
    is_int((int64_t)p->open, 4, "four idle connections");
    stop(t);
    restart(t);
    is_int(sql_call(t, p, NULL, "INSERT INTO r VALUES (?)", sql_int(1)), 0,
           "a restart while they were idle goes unnoticed");
    is_int((int64_t)p->open, 1, "the dead ones are gone");

    /* The same when it cannot be seen before writing. */
    struct sql *idle = list_entry(p->idle.prev, struct sql, link);
    freeze(t);
    shutdown(idle->fd, SHUT_WR);
    check(task_go(&g, "thaw", thaw_soon, NULL) == 0);
    is_int(sql_call(t, p, NULL, "INSERT INTO r VALUES (?)", sql_int(2)), 0,
           "what could not be sent is sent over a new one");
    is_int(number(t, p, "SELECT COUNT(*) FROM r"), 2, "once");
    check(group_join(t, &g) == 0);

    idle = list_entry(p->idle.prev, struct sql, link);
    char statement[40];
    snprintf(statement, sizeof statement, "KILL %lu", mysql_thread_id(idle->db));
    struct sql_pool *other = hasty_pool(t, 1);
    check(sql_argv(t, other, statement, 0, NULL, NULL) == 0);
    check(task_sleep(t, 20) == 0);
    is_int(number(t, p, "SELECT COUNT(*) FROM r"), 2, "a connection that was killed");
    sql_pool_free(other);

    p->ping_after_ms = 0;
    const char *pings = "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM"
                        " information_schema.SESSION_STATUS WHERE VARIABLE_NAME ="
                        " 'COM_ADMIN_COMMANDS'";
    int64_t before = number(t, p, pings);
    is_int(number(t, p, pings) - before, 1, "one that was idle for long is asked first");
    freeze(t);
    int64_t since = now(t);
    is_int(sql_call(t, p, NULL, "SELECT 1"), ERR_UNAVAILABLE, "and not believed in for long");
    ok(now(t) - since < 1500, "%d ms", (int)(now(t) - since));
    mariadb_thaw(&server);
    sql_pool_free(p);
}

/* --- what is known of a statement when its connection is lost --- */

static void kill_soon(struct task *t, void *arg)
{
    (void)arg;
    check(task_sleep(t, 100) == 0);
    mariadb_kill(&server);
}

/* The error of a statement whose server is killed in the middle of it. */
static int lose(struct task *t, const char *prepared, const char *statement)
{
    struct sql_pool *p = hasty_pool(t, 1);
    check(!prepared || sql_argv(t, p, prepared, 0, NULL, NULL) == 0);
    struct group g;
    group_init(&g, task_loop(t));
    freeze(t);
    check(task_go(&g, "killer", kill_soon, NULL) == 0);
    int err = sql_argv(t, p, statement, 0, NULL, NULL);
    check(group_join(t, &g) == 0);
    restart(t);
    sql_pool_free(p);
    return err;
}

static void test_lost(struct task *t, void *arg)
{
    (void)arg;
    const char *insert = "INSERT INTO r VALUES (3)";
    is_int(lose(t, insert, insert), ERR_UNCERTAIN, "lost after it was sent: it may be done");
    is_int(lose(t, "SELECT 1", insert), ERR_UNAVAILABLE, "lost while preparing: it is not");
    is_int(lose(t, "SELECT 1", "SELECT 1"), ERR_UNAVAILABLE, "a read is done again or not");
    is_int(lose(t, NULL, insert), ERR_UNAVAILABLE, "lost while connecting");
}

/* --- killed under load --- */

#define WORKERS 64

struct load {
    struct sql_pool *p;
    bool stop;
    int64_t done, failed[-ERR_LAST + 1], finished, uncertain;
    int64_t longest_ms;
};

static int load_tx(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    int err = sql_on(t, c, NULL, "INSERT INTO r VALUES (?)", sql_int(7));
    return err ? err : sql_on(t, c, NULL, "SELECT COUNT(*) FROM r WHERE n = ?", sql_int(1));
}

static void load_task(struct task *t, void *arg)
{
    struct load *l = arg;
    for (int i = 0; !l->stop; i++) {
        struct task_scope scope = task_scope(t);
        int64_t since = now(t);
        int err = i % 3 == 0   ? sql_tx(t, l->p, load_tx, NULL)
                  : i % 3 == 1 ? sql_call(t, l->p, NULL, "INSERT INTO r VALUES (?)", sql_int(7))
                               : sql_call(t, l->p, NULL, "SELECT MAX(n) FROM r");
        if (now(t) - since > l->longest_ms)
            l->longest_ms = now(t) - since;
        if (err)
            l->failed[-err]++;
        else
            l->done++;
        /* A refusal comes without waiting. */
        check(task_sleep(t, err ? 5 : 0) == 0);
        task_scope_end(t, scope);
    }
    l->finished++;
}

static void test_killed_under_load(struct task *t, void *arg)
{
    (void)arg;
    struct load l = {.p = hasty_pool(t, 6)};
    check(sql_call(t, l.p, NULL, "CREATE OR REPLACE TABLE r (n INT, KEY (n))") == 0);
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < WORKERS; i++)
        check(task_go(&g, "worker", load_task, &l) == 0);
    for (int round = 0; round < 3; round++) {
        check(task_sleep(t, 300) == 0);
        int64_t before = l.done;
        mariadb_kill(&server);
        check(task_yield(t) == 0);
        check(task_sleep(t, 200) == 0);
        int64_t during = l.done;
        mariadb_spawn(&server);
        int64_t since = now(t);
        while (l.done < during + 100 && now(t) - since < 10000)
            check(task_sleep(t, 10) == 0);
        ok(l.done >= during + 100, "killed after %d calls, back %d ms after the start", (int)before,
           (int)(now(t) - since));
    }
    l.stop = true;
    check(group_join(t, &g) == 0);
    is_int(l.finished, WORKERS, "no worker hangs");
    ok(l.longest_ms < 1500, "no call waited for longer than %d ms", (int)l.longest_ms);
    int64_t expected = l.failed[-ERR_UNAVAILABLE] + l.failed[-ERR_UNCERTAIN], all = 0;
    for (int i = 0; i <= -ERR_LAST; i++)
        all += l.failed[i];
    ok(expected > 0 && expected == all, "%d unavailable, %d uncertain, nothing else",
       (int)l.failed[-ERR_UNAVAILABLE], (int)l.failed[-ERR_UNCERTAIN]);
    ok(l.p->lent == 0 && l.p->open <= 6, "all connections are back");
    sql_pool_free(l.p);
}

/* --- it takes no changes --- */

static int change_in_tx(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    return sql_on(t, c, NULL, "INSERT INTO ro (n) VALUES (1)");
}

static void test_read_only(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *root = hasty_pool(t, 1);
    check(sql_call(t, root, NULL, "CREATE OR REPLACE TABLE ro (n INT)") == 0);
    check(sql_call(t, root, NULL, "CREATE OR REPLACE USER plain@localhost") == 0);
    check(sql_call(t, root, NULL, "GRANT ALL ON test.* TO plain@localhost") == 0);
    const char *url =
        arena_printf(task_arena(t), "unix:%s?user=plain&database=test", server.socket);
    struct sql_pool *p = pool_with(t, (struct sql_options){.url = url, .connections_max = 2});
    check(sql_call(t, p, NULL, "INSERT INTO ro (n) VALUES (1)") == 0);
    ok(!sql_pool_read_only(p), "writable");

    check(sql_call(t, root, NULL, "SET GLOBAL read_only = 1") == 0);
    is_int(sql_call(t, p, NULL, "DELETE FROM ro WHERE 1 = 0"), ERR_UNAVAILABLE,
           "a change is refused, even one of no row: %s", task_error(t));
    ok(sql_pool_read_only(p), "noted");
    is_int(sql_tx(t, p, change_in_tx, NULL), ERR_UNAVAILABLE, "in a transaction, too");
    is_int(sql_call(t, p, NULL, "SELECT n FROM ro"), 0, "reads go on");
    ok(sql_pool_read_only(p) && p->up, "they do not end it");
    is_int((int64_t)p->open, 1, "a young connection is kept");
    struct sql *c = list_entry(p->idle.next, struct sql, link);
    unsigned long id = mysql_thread_id(c->db);
    c->opened_ms -= 60000;
    is_int(sql_call(t, p, NULL, "DELETE FROM ro WHERE 1 = 0"), ERR_UNAVAILABLE, "still");
    c = list_entry(p->idle.next, struct sql, link);
    ok(p->open == 1 && mysql_thread_id(c->db) != id, "an old one is replaced");

    check(sql_call(t, root, NULL, "SET GLOBAL read_only = 0") == 0);
    is_int(sql_tx(t, p, change_in_tx, NULL), 0, "writable again");
    ok(!sql_pool_read_only(p), "noted");
    is_int(number(t, p, "SELECT COUNT(*) FROM ro"), 2, "nothing that was refused was done");
    sql_pool_free(p);
    sql_pool_free(root);
}

int main(void)
{
    task_fn *const tests[] = {test_down,
                              test_mute,
                              test_deadline,
                              test_kills_no_other,
                              test_cancel,
                              test_loop_runs_on,
                              test_queue,
                              test_restart,
                              test_lost,
                              test_read_only,
                              test_killed_under_load};
    return run_tests(NULL, sizeof tests / sizeof tests[0], tests);
}
