#include "engine/watch/overview_private.h"

#include <stdlib.h>

#include "base/log.h"

#define WAIT_MS 10000 /* for a collection, both stores being away */

struct overview *overview_new(struct node *n)
{
    struct overview *o = check_memory(calloc(1, sizeof *o));
    o->node = n;
    arena_init(&o->arena);
    waitq_init(&o->asked);
    waitq_init(&o->fresh);
    o->slow_ms = INT64_MIN / 2;
    o->metrics = overview_metrics_new(n->metrics);
    return o;
}

void overview_free(struct overview *o)
{
    free(o->metrics);
    arena_release(&o->arena);
    free(o);
}

static bool is_fresh(struct task *t, const struct overview *o, uint64_t seen)
{
    return o->now && o->now->number > seen &&
           loop_now_ms(task_loop(t)) - o->taken_ms < OVERVIEW_EACH_MS;
}

int overview_wait(struct task *t, struct overview *o, uint64_t seen,
                  const struct overview_data **out)
{
    int64_t old = task_deadline(t, WAIT_MS);
    int err = 0;
    while (!err && !is_fresh(t, o, seen)) {
        o->wanted = true;
        waitq_wake_all(&o->asked);
        err = waitq_wait(t, &o->fresh);
    }
    task_deadline_restore(t, old);
    if (err == ERR_TIMEOUT)
        return task_fail(t, ERR_UNAVAILABLE, "the overview cannot be collected now");
    if (!err)
        *out = o->now;
    return err;
}

static void collect(struct task *t, struct overview *o)
{
    struct arena a;
    arena_init(&a);
    struct overview_data *d = ARENA_NEW(&a, struct overview_data);
    struct task_scope scope = task_scope(t);
    overview_collect(t, o, &a, d);
    task_scope_end(t, scope);
    if (task_canceled(t)) {
        arena_release(&a);
        return;
    }
    arena_release(&o->arena);
    o->arena = a;
    o->now = d;
    o->taken_ms = loop_now_ms(task_loop(t)); /* a store that hangs takes its time */
    d->number = ++o->count;
    overview_metrics_set(o->metrics, d);
    waitq_wake_all(&o->fresh);
}

/* A second after the last one if a task waits for it, five seconds otherwise. */
static int await_turn(struct task *t, struct overview *o)
{
    int64_t due_ms = o->taken_ms + OVERVIEW_IDLE_EACH_MS;
    int err = 0;
    while (!err) {
        int64_t left_ms =
            (o->wanted ? o->taken_ms + OVERVIEW_EACH_MS : due_ms) - loop_now_ms(task_loop(t));
        if (left_ms <= 0)
            return 0;
        int64_t old = task_deadline(t, left_ms);
        err = waitq_wait(t, &o->asked);
        task_deadline_restore(t, old);
        if (err == ERR_TIMEOUT)
            err = 0;
    }
    return err;
}

void overview_task(struct task *t, void *arg)
{
    struct overview *o = arg;
    int err = 0;
    while (!err && !task_canceled(t)) {
        o->wanted = false;
        collect(t, o);
        err = await_turn(t, o);
    }
}
