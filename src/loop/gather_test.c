#include "loop/gather.h"

#include <string.h>

#include "loop/sync.h"
#include "tests/tap.h"

enum { MANY = 50, KEYS = 3 };

/* What the function under the clerks sees and does. */
struct office {
    struct group clerks;
    struct gather gather;
    struct waitq open; /* fn waits until `closed` is false */
    bool closed;
    int err, refuse; /* of a whole call; of the items with this number */
    int calls, items, most, under_way, most_under_way, twice[KEYS];
    bool canceled;
};

struct visit {
    struct gather_item item;
    struct office *office;
    struct task *task;
    int64_t key;
    int number, err, answer;
    const char *why;
};

static int answer(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    struct office *o = arg;
    o->calls++;
    o->items += (int)count;
    o->most = (int)count > o->most ? (int)count : o->most;
    o->under_way++;
    o->most_under_way = o->under_way > o->most_under_way ? o->under_way : o->most_under_way;
    int err = o->twice[items[0]->key]++ ? task_fail(t, ERR_INTERNAL, "two at once") : 0;
    while (!err && o->closed)
        err = waitq_wait(t, &o->open);
    if (!err)
        err = task_sleep(t, 1);
    o->canceled |= err == ERR_CANCELED;
    for (size_t i = 0; i < count; i++) {
        struct visit *v = (struct visit *)(void *)items[i];
        check(v->item.key == items[0]->key);
        v->answer = v->number * 2;
        if (o->refuse && v->number == o->refuse)
            gather_fail(items[i], ERR_INVALID, "not this one");
    }
    o->twice[items[0]->key]--;
    o->under_way--;
    if (!err && o->err)
        err = task_fail(t, o->err, "none of %zu", count);
    return err;
}

static void office_open(struct task *t, struct office *o, size_t items_max, size_t clerks_max)
{
    *o = (struct office){.closed = false};
    group_init(&o->clerks, task_loop(t));
    waitq_init(&o->open);
    gather_init(&o->gather,
                &(struct gather_options){&o->clerks, "clerk", answer, o, items_max, clerks_max});
}

static void open_again(struct office *o)
{
    o->closed = false;
    waitq_wake_all(&o->open);
}

static void visit(struct task *t, void *arg)
{
    struct visit *v = arg;
    v->task = t;
    v->err = gather_do(t, &v->office->gather, &v->item, v->key);
    v->why = arena_strdup(task_arena(t), task_error(t));
    v->why = v->err && strstr(v->why, "not this one") ? "not this one"
             : v->err && strstr(v->why, "none of")    ? "none of"
                                                      : "";
    v->task = NULL;
}

static void send(struct group *g, struct office *o, struct visit *v, int count, int64_t keys)
{
    for (int i = 0; i < count; i++) {
        v[i] = (struct visit){.office = o, .number = i + 1, .key = i % keys};
        check(task_go(g, "visit", visit, &v[i]) == 0);
    }
}

static int served(const struct visit *v, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        n += v[i].err == 0 && v[i].answer == v[i].number * 2;
    return n;
}

static void test_together(struct task *t, void *arg)
{
    struct office o;
    struct group g;
    struct visit v[MANY];
    (void)arg;
    office_open(t, &o, MANY, 1);
    group_init(&g, task_loop(t));
    send(&g, &o, v, 1, 1);
    check(group_join(t, &g) == 0);
    ok(o.calls == 1 && served(v, 1) == 1, "one alone goes at once");
    send(&g, &o, v, MANY, 1);
    check(group_join(t, &g) == 0);
    is_int(o.calls, 2, "those of one turn go together");
    is_int(served(v, MANY), MANY, "each gets its own answer");
    check(group_join(t, &o.clerks) == 0);
    is_int((int64_t)o.gather.clerks, 0, "no clerk is left");

    office_open(t, &o, 8, 1);
    send(&g, &o, v, MANY, 1);
    check(group_join(t, &g) == 0 && group_join(t, &o.clerks) == 0);
    is_int(o.most, 8, "a call has no more than its limit");
    is_int(o.calls, (MANY + 7) / 8, "and no fewer while more wait");
    is_int(served(v, MANY), MANY, "all are served");
}

static void test_keys(struct task *t, void *arg)
{
    struct office o;
    struct group g;
    struct visit v[MANY];
    (void)arg;
    for (size_t clerks = 1; clerks <= KEYS + 1; clerks++) {
        office_open(t, &o, 4, clerks);
        group_init(&g, task_loop(t));
        send(&g, &o, v, MANY, KEYS);
        check(group_join(t, &g) == 0 && group_join(t, &o.clerks) == 0);
        is_int(served(v, MANY), MANY, "%zu clerks: all are served, a key by one at a time", clerks);
        is_int(o.most_under_way, (int64_t)(clerks < KEYS ? clerks : KEYS),
               "as many calls at once as there are clerks and keys");
    }
}

static void test_errors(struct task *t, void *arg)
{
    struct office o;
    struct group g;
    struct visit v[MANY];
    int none = 0;
    (void)arg;
    office_open(t, &o, MANY, 1);
    group_init(&g, task_loop(t));
    o.refuse = 7;
    send(&g, &o, v, MANY, 1);
    check(group_join(t, &g) == 0);
    is_int(served(v, MANY), MANY - 1, "one that is refused does not keep the others");
    ok(v[6].err == ERR_INVALID && !strcmp(v[6].why, "not this one"), "and knows why");
    o.refuse = 0;
    o.err = ERR_UNAVAILABLE;
    send(&g, &o, v, MANY, 1);
    check(group_join(t, &g) == 0 && group_join(t, &o.clerks) == 0);
    for (int i = 0; i < MANY; i++)
        none += v[i].err == ERR_UNAVAILABLE && !strcmp(v[i].why, "none of");
    is_int(none, MANY, "an error of the call is that of all, with its words");
}

/* The first is in a call, the others wait in line. */
static void test_canceled(struct task *t, void *arg)
{
    struct office o;
    struct group g;
    struct visit v[4];
    (void)arg;
    office_open(t, &o, MANY, 1);
    group_init(&g, task_loop(t));
    o.closed = true;
    send(&g, &o, v, 1, 1);
    while (o.calls == 0)
        check(task_yield(t) == 0);
    send(&g, &o, v + 1, 3, 1);
    check(task_sleep(t, 1) == 0);
    task_cancel(v[0].task);
    task_cancel(v[2].task);
    check(task_sleep(t, 1) == 0);
    ok(v[2].task == NULL && v[2].err == ERR_CANCELED, "one in line leaves at once");
    ok(v[0].task != NULL, "one that a clerk has waits for the clerk");
    open_again(&o);
    check(group_join(t, &g) == 0 && group_join(t, &o.clerks) == 0);
    ok(v[0].err == 0 && v[0].answer == 2, "and gets its answer");
    ok(v[1].err == 0 && v[3].err == 0 && o.items == 3, "the others are served without it");
}

static void test_clerk_canceled(struct task *t, void *arg)
{
    struct office o;
    struct group g;
    struct visit v[3];
    (void)arg;
    office_open(t, &o, 1, 1);
    group_init(&g, task_loop(t));
    o.closed = true;
    send(&g, &o, v, 3, 1);
    while (o.calls == 0)
        check(task_yield(t) == 0);
    group_cancel(&o.clerks);
    check(group_join(t, &g) == 0 && group_join(t, &o.clerks) == 0);
    ok(o.canceled && v[0].err == ERR_CANCELED && v[1].err == ERR_CANCELED &&
           v[2].err == ERR_CANCELED,
       "when clerks are cancelled, no task waits for ever");
    send(&g, &o, v, 1, 1);
    check(group_join(t, &g) == 0);
    is_int(v[0].err, ERR_CANCELED, "nor does one that comes later");
}

static void test_deadline(struct task *t, void *arg)
{
    struct office o;
    struct group g;
    struct visit v, late = {.office = &o, .number = 1};
    (void)arg;
    office_open(t, &o, 1, 1);
    group_init(&g, task_loop(t));
    o.closed = true;
    send(&g, &o, &v, 1, 1);
    while (o.calls == 0)
        check(task_yield(t) == 0);
    int64_t old = task_deadline(t, 2);
    is_int(gather_do(t, &o.gather, &late.item, 0), ERR_TIMEOUT, "a deadline passes in line");
    task_deadline_restore(t, old);
    open_again(&o);
    check(group_join(t, &g) == 0 && group_join(t, &o.clerks) == 0);
    ok(v.err == 0 && o.items == 1, "what left the line is not done");
}

int main(void)
{
    tap_task(test_together, NULL, false);
    tap_task(test_keys, NULL, false);
    tap_task(test_errors, NULL, false);
    tap_task(test_canceled, NULL, false);
    tap_task(test_clerk_canceled, NULL, false);
    tap_task(test_deadline, NULL, false);
    return tap_done();
}
