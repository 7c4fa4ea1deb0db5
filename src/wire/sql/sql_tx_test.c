#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "wire/sql/sql_harness.h"
#include "wire/sql_snapshot.h"

/* Blocks the loop, and its clock with it; then the backoff passes. */
static void restart(struct task *t)
{
    mariadb_restart(&server);
    check(task_yield(t) == 0 && task_sleep(t, 100) == 0);
}

static int64_t value_of(struct task *t, struct sql_pool *p, int64_t id)
{
    struct sql_rows r;
    check(sql_call(t, p, &r, "SELECT v FROM acc WHERE id = ?", sql_int(id)) == 0 && r.count == 1);
    return r.cells[0].i;
}

static int add(struct task *t, struct sql *c, int64_t id, int64_t n)
{
    return sql_on(t, c, NULL, "UPDATE acc SET v = v + ? WHERE id = ?", sql_int(n), sql_int(id));
}

static int move(struct task *t, struct sql *c, void *arg)
{
    int err = add(t, c, 1, -10);
    if (!err)
        err = add(t, c, 2, 10);
    return err ? err : *(int *)arg;
}

static int add_one_but(struct task *t, struct sql *c, void *arg)
{
    int err = add(t, c, 1, 1);
    (void)arg;
    return err ? err : sql_on(t, c, NULL, "INSERT INTO acc VALUES (?, ?)", sql_int(1), sql_int(0));
}

static void test_outcome(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    int result = 0;
    is_int(sql_tx(t, p, move, &result), 0, "a transaction");
    ok(value_of(t, p, 1) == 90 && value_of(t, p, 2) == 110, "is committed");
    result = ERR_NOT_FOUND;
    is_int(sql_tx(t, p, move, &result), ERR_NOT_FOUND, "a body that fails");
    ok(value_of(t, p, 1) == 90 && value_of(t, p, 2) == 110, "is rolled back");
    is_int((int64_t)p->open, 1, "and the connection kept");
    is_int(sql_tx(t, p, add_one_but, NULL), ERR_EXISTS, "a statement that fails");
    is_int(value_of(t, p, 1), 90, "takes the others along");
    sql_pool_free(p);
}

/* --- deadlocks --- */

struct duel {
    struct sql_pool *p;
    int tries[2], holding, err[2];
    bool ignores; /* goes on as if nothing had happened */
};

struct duelist {
    struct duel *d;
    int me;
};

static int duel_body(struct task *t, struct sql *c, void *arg)
{
    struct duelist *x = arg;
    struct duel *d = x->d;
    int err = add(t, c, x->me + 1, 1);
    if (err)
        return err;
    if (d->tries[x->me]++ == 0) {
        d->holding++;
        while (d->holding < 2)
            check(task_sleep(t, 5) == 0);
    }
    err = add(t, c, 2 - x->me, 1);
    if (d->ignores && err) {
        int after = add(t, c, 2 - x->me, 1000);
        check(after == ERR_CONFLICT);
        return 0;
    }
    return err;
}

static void duel_task(struct task *t, void *arg)
{
    struct duelist *x = arg;
    x->d->err[x->me] = sql_tx(t, x->d->p, duel_body, x);
}

static void test_deadlock(struct task *t, void *arg)
{
    struct sql_pool *p = pool_of(t, 2);
    struct duel d = {.p = p, .ignores = arg != NULL};
    struct duelist x[2] = {{&d, 0}, {&d, 1}};
    int64_t before = value_of(t, p, 1) + value_of(t, p, 2);
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "one", duel_task, &x[0]) == 0 && task_go(&g, "two", duel_task, &x[1]) == 0);
    check(group_join(t, &g) == 0);
    ok(d.err[0] == 0 && d.err[1] == 0, "a deadlock: both are committed in the end");
    is_int(d.tries[0] + d.tries[1], 3, "one of them at the second try");
    is_int(value_of(t, p, 1) + value_of(t, p, 2), before + 4, "each did its work once");
    is_int(*p->errors_total[-ERR_CONFLICT], d.ignores ? 2 : 1, "and the conflict was counted");
    sql_pool_free(p);
}

static int lock_body(struct task *t, struct sql *c, void *arg)
{
    int *tries = arg;
    ++*tries;
    int err = sql_on(t, c, NULL, "SET innodb_lock_wait_timeout = 0");
    return err ? err : add(t, c, 1, 1);
}

struct holder {
    struct sql_pool *p;
    bool holds, done;
};

static int hold_body(struct task *t, struct sql *c, void *arg)
{
    struct holder *h = arg;
    int err = add(t, c, 1, 5);
    h->holds = true;
    while (!err && !h->done)
        err = task_sleep(t, 5);
    return err;
}

static void hold_task(struct task *t, void *arg)
{
    struct holder *h = arg;
    int err = sql_tx(t, h->p, hold_body, h);
    check(err == (h->done ? 0 : ERR_CANCELED));
}

static void test_lock_wait(struct task *t, void *arg)
{
    (void)arg;
    struct holder h = {.p = pool_of(t, 2)};
    int64_t before = value_of(t, h.p, 1);
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "holder", hold_task, &h) == 0);
    while (!h.holds)
        check(task_sleep(t, 5) == 0);
    int tries = 0;
    is_int(sql_tx(t, h.p, lock_body, &tries), ERR_CONFLICT, "a lock that is not to be had");
    is_int(tries, SQL_TX_TRIES, "is tried for five times");
    is_int(value_of(t, h.p, 1), before, "what is not committed is invisible");

    group_cancel(&g);
    check(group_join(t, &g) == 0);
    check(sql_tx(t, h.p, lock_body, &tries) == 0);
    is_int(value_of(t, h.p, 1), before + 1, "a cancelled transaction is rolled back at once");
    sql_pool_free(h.p);
}

/* --- a server that dies --- */

static int stop_then_commit(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    int err = add(t, c, 1, 1);
    mariadb_freeze(&server);
    return err;
}

static void kill_soon(struct task *t, void *arg)
{
    (void)arg;
    check(task_sleep(t, 150) == 0);
    mariadb_kill(&server);
}

static int kill_in_body(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    int err = add(t, c, 1, 1);
    if (err)
        return err;
    mariadb_kill(&server);
    return add(t, c, 2, 1);
}

static int freeze_in_body(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    int err = add(t, c, 1, 1);
    mariadb_freeze(&server);
    return err ? err : add(t, c, 2, 1);
}

static int pass_over_in_body(struct task *t, struct sql *c, void *arg)
{
    (void)kill_in_body(t, c, arg);
    return 0;
}

static int pass_over_limit(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    struct sql_rows r;
    int err = add(t, c, 1, 1000);
    check(sql_on(t, c, &r, "SELECT CAST(9223372036854775808 AS UNSIGNED)") == ERR_LIMIT);
    return err;
}

static void thaw_soon(struct task *t, void *arg)
{
    (void)arg;
    check(task_sleep(t, 50) == 0);
    mariadb_thaw(&server);
}

static void test_broken(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    int64_t before = value_of(t, p, 1);
    is_int(sql_tx(t, p, pass_over_limit, NULL), ERR_UNAVAILABLE,
           "a connection that is out of step is not asked to commit");
    is_int(value_of(t, p, 1), before, "nothing was done");
    struct sql *idle = list_entry(p->idle.prev, struct sql, link);
    struct group g;
    group_init(&g, task_loop(t));
    mariadb_freeze(&server);
    shutdown(idle->fd, SHUT_WR);
    check(task_go(&g, "thaw", thaw_soon, NULL) == 0);
    int result = 0;
    is_int(sql_tx(t, p, move, &result), 0, "one that cannot be written to is replaced");
    is_int(value_of(t, p, 1), before - 10, "before the body has run");
    check(group_join(t, &g) == 0);
    sql_pool_free(p);
}

static void test_lost(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    int64_t before = value_of(t, p, 1);
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "killer", kill_soon, NULL) == 0);
    is_int(sql_tx(t, p, stop_then_commit, NULL), ERR_UNCERTAIN, "killed during COMMIT");
    check(group_join(t, &g) == 0);
    restart(t);
    int64_t after = value_of(t, p, 1);
    ok(after == before || after == before + 1, "done or not, as a whole");

    is_int(sql_tx(t, p, kill_in_body, NULL), ERR_UNAVAILABLE, "killed before COMMIT");
    restart(t);
    is_int(value_of(t, p, 1), after, "nothing was done");
    check(task_go(&g, "killer", kill_soon, NULL) == 0);
    is_int(sql_tx(t, p, freeze_in_body, NULL), ERR_UNAVAILABLE, "killed in a statement before it");
    check(group_join(t, &g) == 0);
    restart(t);
    is_int(value_of(t, p, 1), after, "nothing was done");
    is_int(sql_tx(t, p, pass_over_in_body, NULL), ERR_UNAVAILABLE,
           "a body that passes over it is not believed");
    restart(t);

    int result = 0;
    value_of(t, p, 1);
    mariadb_stop(&server);
    restart(t);
    is_int(sql_tx(t, p, move, &result), 0, "a restart between two transactions goes unnoticed");
    sql_pool_free(p);
}

static void test_slow_commit(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    value_of(t, p, 1);
    int64_t old = task_deadline(t, 200);
    is_int(sql_tx(t, p, stop_then_commit, NULL), ERR_UNCERTAIN, "no answer to COMMIT in time");
    task_deadline_restore(t, old);
    mariadb_thaw(&server);
    sql_pool_free(p);
}

/* --- snapshots --- */

struct look {
    struct sql_pool *other;
    int64_t sums[2]; /* seen before and after a change by another connection */
    int times;
};

static int add_up(struct task *t, const struct sql_value *cells, void *arg)
{
    (void)t;
    int64_t *sum = arg;
    *sum += cells[0].i;
    return 0;
}

static int look_twice(struct task *t, struct sql *c, void *arg)
{
    struct look *l = arg;
    int err = 0;
    l->times++;
    check(sql_call(t, l->other, NULL, "UPDATE acc SET v = v + 1000") == 0);
    for (size_t i = 0; !err && i < 2; i++) {
        err = sql_on_each(t, c, "SELECT v FROM acc", 0, NULL, add_up, &l->sums[i]);
        check(sql_call(t, l->other, NULL, "UPDATE acc SET v = v + 1000") == 0);
    }
    return err;
}

static int change(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    return sql_on(t, c, NULL, "UPDATE acc SET v = 0");
}

static int conflict(struct task *t, struct sql *c, void *arg)
{
    (void)t, (void)c;
    ++*(int *)arg;
    return ERR_CONFLICT;
}

static void test_snapshot(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1), *other = pool_of(t, 1);
    /* A server may have another default. */
    check(sql_call(t, p, NULL, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED") == 0);
    int64_t before = value_of(t, other, 1) + value_of(t, other, 2);
    struct look l = {.other = other};
    is_int(sql_snapshot(t, p, look_twice, &l), 0, "a snapshot: %s", task_error(t));
    ok(l.sums[0] == before && l.sums[1] == before, "sees what there was when it began");
    is_int(l.times, 1, "once");
    int64_t after = value_of(t, p, 1) + value_of(t, p, 2);
    is_int(after, before + 6000, "afterwards the connection sees the present");
    ok(sql_snapshot(t, p, change, NULL) == ERR_REFUSED || sql_pool_read_only(p),
       "it changes nothing: %s", task_error(t));
    is_int(value_of(t, other, 1) + value_of(t, other, 2), after, "indeed");
    int times = 0;
    is_int(sql_snapshot(t, p, conflict, &times), ERR_CONFLICT, "a conflict");
    is_int(times, 1, "is not tried again");
    check(sql_call(t, other, NULL, "UPDATE acc SET v = 100") == 0);
    sql_pool_free(p);
    sql_pool_free(other);
}

static void set_up(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t, 1);
    check(sql_call(t, p, NULL, "CREATE TABLE acc (id INT PRIMARY KEY, v INT) ENGINE=InnoDB") == 0);
    check(sql_call(t, p, NULL, "INSERT INTO acc VALUES (1, 100), (2, 100)") == 0);
    sql_pool_free(p);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    mariadb_start(&server, NULL);
    tap_task(set_up, NULL, true);
    tap_task(test_outcome, NULL, true);
    tap_task(test_snapshot, NULL, true);
    tap_task(test_deadlock, NULL, true);
    tap_task(test_deadlock, "ignores", true);
    tap_task(test_lock_wait, NULL, true);
    tap_task(test_broken, NULL, true);
    tap_task(test_lost, NULL, true);
    tap_task(test_slow_commit, NULL, true);
    mariadb_release(&server);
    return tap_done();
}
