#include "loop/sync.h"

#include "tests/tap.h"

struct room {
    struct sem sem;
    struct chan chan;
    struct waitq q;
    int inside, most, served, order[64], woken, errs;
};

static void visitor(struct task *t, void *arg)
{
    struct room *r = arg;
    check(sem_get(t, &r->sem) == 0);
    if (++r->inside > r->most)
        r->most = r->inside;
    check(task_sleep(t, 10) == 0);
    r->inside--;
    r->served++;
    sem_put(&r->sem);
}

static void impatient(struct task *t, void *arg)
{
    struct room *r = arg;
    task_deadline(t, 5);
    r->errs += sem_get(t, &r->sem) == ERR_TIMEOUT;
}

static void test_sem(struct task *t, void *arg)
{
    (void)arg;
    struct room r = {.inside = 0};
    sem_init(&r.sem, 3);
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 20; i++)
        check(task_go(&g, "visitor", visitor, &r) == 0);
    for (int i = 0; i < 5; i++)
        check(task_go(&g, "impatient", impatient, &r) == 0);
    check(group_join(t, &g) == 0);
    is_int(r.most, 3, "never more inside than permits");
    is_int(r.served, 20, "every waiter is served");
    is_int(r.errs, 5, "a waiter past its deadline times out");
    is_int((int64_t)r.sem.free, 3, "all permits are back");
    ok(sem_try(&r.sem) && sem_try(&r.sem) && sem_try(&r.sem) && !sem_try(&r.sem), "sem_try");
}

static void holder(struct task *t, void *arg)
{
    struct room *r = arg;
    check(sem_get(t, &r->sem) == 0);
    check(task_sleep(t, 10) == 0);
    sem_put(&r->sem);
}

/* Handed a permit and cancelled in the same turn: the permit must not be lost. */
static void test_sem_race(struct task *t, void *arg)
{
    (void)arg;
    struct room r = {.inside = 0};
    sem_init(&r.sem, 1);
    struct group a, b;
    group_init(&a, task_loop(t));
    group_init(&b, task_loop(t));
    check(sem_try(&r.sem));
    check(task_go(&a, "waiter", holder, &r) == 0);
    check(task_yield(t) == 0);
    /* Two waits at once: sem_put has chosen the waiter, then its deadline machinery cancels it. */
    check(task_go(&b, "impatient", impatient, &r) == 0);
    check(task_sleep(t, 6) == 0);
    sem_put(&r.sem);
    check(group_join(t, &a) == 0 && group_join(t, &b) == 0);
    is_int((int64_t)r.sem.free, 1, "the permit came back");
}

static void producer(struct task *t, void *arg)
{
    struct room *r = arg;
    for (intptr_t i = 1; i <= 50; i++)
        check(chan_send(t, &r->chan, (void *)i) == 0);
    chan_close(&r->chan);
    r->errs = chan_send(t, &r->chan, r) == ERR_CLOSED;
}

static void test_chan(struct task *t, void *arg)
{
    (void)arg;
    struct room r = {.inside = 0};
    chan_init(&r.chan, 4);
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "producer", producer, &r) == 0);
    bool ordered = true;
    void *p;
    int err;
    intptr_t n = 0;
    while ((err = chan_recv(t, &r.chan, &p)) == 0) {
        ordered = ordered && (intptr_t)p == n + 1;
        n++;
        check(r.chan.count <= 4);
    }
    is_int(err, ERR_CLOSED, "a closed and empty channel says so");
    ok(ordered && n == 50, "everything arrives once, in order");
    check(group_join(t, &g) == 0);
    ok(r.errs, "sending into a closed channel fails");
    int64_t old = task_deadline(t, 10);
    struct chan empty;
    chan_init(&empty, 1);
    is_int(chan_recv(t, &empty, &p), ERR_TIMEOUT, "receiving respects the deadline");
    task_deadline_restore(t, old);
    check(chan_send(t, &empty, &r) == 0);
    old = task_deadline(t, 10);
    is_int(chan_send(t, &empty, &r), ERR_TIMEOUT, "a full channel makes the sender wait");
    task_deadline_restore(t, old);
    chan_release(&empty);
    chan_release(&r.chan);
}

static void queuer(struct task *t, void *arg)
{
    struct room *r = arg;
    if (waitq_wait(t, &r->q) == 0)
        r->woken++;
    else
        r->errs++;
}

static void test_waitq(struct task *t, void *arg)
{
    (void)arg;
    struct room r = {.inside = 0};
    waitq_init(&r.q);
    struct group g, doomed;
    group_init(&g, task_loop(t));
    group_init(&doomed, task_loop(t));
    check(task_go(&doomed, "doomed", queuer, &r) == 0);
    for (int i = 0; i < 3; i++)
        check(task_go(&g, "queuer", queuer, &r) == 0);
    check(task_yield(t) == 0);
    group_cancel(&doomed); /* cancelled first, then chosen: passes the wake-up on */
    waitq_wake_one(&r.q);
    check(task_yield(t) == 0 && task_yield(t) == 0);
    is_int(r.woken, 1, "a wake-up meant for a cancelled waiter reaches the next");
    waitq_wake_all(&r.q);
    check(group_join(t, &g) == 0 && group_join(t, &doomed) == 0);
    is_int(r.woken, 3, "wake all");
    is_int(r.errs, 1, "the cancelled one got its error");
}

int main(void)
{
    tap_task(test_sem, NULL, false);
    tap_task(test_sem_race, NULL, false);
    tap_task(test_chan, NULL, false);
    tap_task(test_waitq, NULL, false);
    return tap_done();
}
