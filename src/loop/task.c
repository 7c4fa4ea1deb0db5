/* How a task runs:
 *
 *   task_go        puts a new stack into loop.ready
 *   task_run_ready enters it; the task runs until task_wait leaves its stack
 *   task_wake      puts it into loop.ready again
 *   task_stand_back puts it into loop.stood_back: it runs when all of loop.ready have
 *
 * The timer of a task stays in the heap, however often the task is woken, as long as it is not
 * later than the deadline of the present wait. When it fires too early it is set again. So the
 * idle deadline of a connection, which moves on with every request, touches the heap once a
 * minute, not twice per request. */
#include "loop/task.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/time.h"
#include "loop/loop_private.h"
#include "loop/stack.h"

#define ERROR_BYTES 256 /* of task_error */

#define STOOD_BACK_US 1000 /* of a turn, for tasks that have stood back */

enum task_state { TASK_READY, TASK_RUNNING, TASK_WAITING, TASK_WAITING_ALWAYS };

struct errors {
    bool last;
    char text[2][ERROR_BYTES];
};

struct task {
    struct stack stack; /* must be first: it marks the owner's block */
    struct loop *loop;
    struct group *group;
    struct list link;    /* in loop.ready */
    struct list sibling; /* in group.tasks */
    enum task_state state;
    bool canceled;
    bool ended;
    int result; /* of the wait that ends now */
    int64_t deadline_ms;
    struct timer timer;
    struct arena arena;
    void (*aside)(void *arg); /* run() calls it on the loop's stack; NULL: nothing */
    void *aside_arg;
    task_fn *fn;
    void *arg;
    const char *name; /* for debuggers */
    /* Owned; NULL until a call fails: saves room in the stack's first page. */
    struct errors *errors;
};

struct joiner {
    struct list link;
    struct task *task;
};

void group_init(struct group *g, struct loop *l)
{
    *g = (struct group){.loop = l};
    list_init(&g->tasks);
    list_init(&g->joiners);
}

static void make_ready(struct task *t, int result)
{
    t->result = result;
    t->state = TASK_READY;
    list_push(&t->loop->ready, &t->link);
}

void task_wake(struct task *t)
{
    if (t->state == TASK_WAITING || t->state == TASK_WAITING_ALWAYS)
        make_ready(t, 0);
}

void task_cancel(struct task *t)
{
    t->canceled = true;
    if (t->state == TASK_WAITING)
        make_ready(t, ERR_CANCELED);
}

void group_cancel(struct group *g)
{
    g->canceled = true;
    list_each (it, &g->tasks)
        task_cancel(list_entry(it, struct task, sibling));
}

static void wake_joiners(struct group *g)
{
    list_each (it, &g->joiners)
        task_wake(list_entry(it, struct joiner, link)->task);
}

int group_join(struct task *t, struct group *g)
{
    check(t->group != g);
    struct joiner j = {.task = t};
    list_push(&g->joiners, &j.link);
    int err = 0;
    while (g->count > 0) {
        if (err) {
            task_wait_always(t);
            continue;
        }
        err = task_wait(t);
        if (err)
            group_cancel(g);
    }
    list_del(&j.link);
    return err;
}

static void on_deadline(void *arg)
{
    struct task *t = arg;
    if (t->state != TASK_WAITING)
        return; /* its next wait sets the timer */
    if (t->deadline_ms > t->loop->now_ms)
        timer_set(&t->timer, t->deadline_ms);
    else
        make_ready(t, ERR_TIMEOUT);
}

static void task_main(void *arg)
{
    struct task *t = arg;
    stack_entered(&t->loop->home);
    t->fn(t, t->arg);
    t->ended = true;
    stack_leave_for_good(&t->stack, &t->loop->home);
}

int task_go(struct group *g, const char *name, task_fn *fn, void *arg)
{
    struct loop *l = g->loop;
    struct stack *s = stack_get(&l->stacks, sizeof(struct task));
    if (!s)
        return ERR_LIMIT;
    struct task *t = (struct task *)(void *)s;
    t->loop = l;
    t->group = g;
    t->canceled = g->canceled;
    t->ended = false;
    t->deadline_ms = TIME_NEVER;
    t->aside = NULL;
    t->fn = fn;
    t->arg = arg;
    t->name = name;
    t->errors = NULL;
    timer_init(&t->timer, l, on_deadline, t);
    arena_init(&t->arena);
    stack_prepare(s, task_main, t);
    list_push(&g->tasks, &t->sibling);
    g->count++;
    l->task_count++;
    make_ready(t, 0);
    return 0;
}

static void task_end(struct task *t)
{
    struct loop *l = t->loop;
    struct group *g = t->group;
    timer_clear(&t->timer);
    arena_release(&t->arena);
    free(t->errors);
    list_del(&t->sibling);
    stack_put(&l->stacks, &t->stack);
    l->task_count--;
    if (--g->count == 0)
        wake_joiners(g);
}

/* Until it waits or ends. */
static void run(struct loop *l, struct task *t)
{
    for (;;) {
        l->current = t;
        stack_enter(&l->home, &t->stack);
        l->current = NULL; /* so that what is called aside cannot wait */
        if (!t->aside)
            return;
        t->aside(t->aside_arg);
        t->aside = NULL;
    }
}

static void run_popped(struct loop *l, struct list *link)
{
    struct task *t = list_entry(link, struct task, link);
    t->state = TASK_RUNNING;
    run(l, t);
    if (t->ended)
        task_end(t);
}

/* At least one of those that have stood back by now; what has begun comes first. */
static void run_stood_back(struct loop *l)
{
    int64_t until_us = time_mono_us() + STOOD_BACK_US;
    struct list *begun = &l->stood_back[1], *link;
    for (size_t left = l->stood_back_count; left > 0; left--) {
        link = list_pop(begun);
        l->stood_back_count--;
        run_popped(l, link ? link : list_pop(&l->stood_back[0]));
        if (!l->virtual_time && time_mono_us() >= until_us)
            break;
    }
}

void task_run_ready(struct loop *l)
{
    struct list now;
    list_init(&now);
    if (!list_empty(&l->ready)) { /* takes the whole list over */
        now = l->ready;
        now.next->prev = now.prev->next = &now;
        list_init(&l->ready);
    }
    struct list *it;
    while ((it = list_pop(&now)))
        run_popped(l, it);
    if (l->stood_back_count > 0)
        run_stood_back(l);
}

bool task_any_ready(const struct loop *l)
{
    return !list_empty(&l->ready) || l->stood_back_count > 0;
}

static int leave(struct task *t)
{
    stack_leave(&t->stack, &t->loop->home);
    return t->result;
}

int task_wait(struct task *t)
{
    check(t == t->loop->current);
    if (t->canceled)
        return ERR_CANCELED;
    if (t->deadline_ms <= t->loop->now_ms)
        return ERR_TIMEOUT;
    if (t->deadline_ms != TIME_NEVER && (t->timer.pos == 0 || t->timer.at_ms > t->deadline_ms))
        timer_set(&t->timer, t->deadline_ms);
    t->state = TASK_WAITING;
    return leave(t);
}

void task_wait_always(struct task *t)
{
    check(t == t->loop->current);
    t->state = TASK_WAITING_ALWAYS;
    (void)leave(t);
}

int task_yield(struct task *t)
{
    check(t == t->loop->current);
    if (t->canceled)
        return ERR_CANCELED;
    make_ready(t, 0);
    (void)leave(t);
    return t->canceled ? ERR_CANCELED : 0;
}

int task_stand_back(struct task *t, bool begun)
{
    check(t == t->loop->current);
    if (t->canceled)
        return ERR_CANCELED;
    t->state = TASK_READY;
    list_push(&t->loop->stood_back[begun], &t->link);
    t->loop->stood_back_count++;
    (void)leave(t);
    if (t->canceled)
        return ERR_CANCELED;
    return t->deadline_ms <= t->loop->now_ms ? ERR_TIMEOUT : 0;
}

void task_aside(struct task *t, void (*fn)(void *arg), void *arg)
{
    check(t == t->loop->current);
    t->aside = fn;
    t->aside_arg = arg;
    stack_leave(&t->stack, &t->loop->home);
}

int task_sleep(struct task *t, int64_t ms)
{
    int64_t until = ms < TIME_NEVER - t->loop->now_ms ? t->loop->now_ms + ms : TIME_NEVER;
    if (ms <= 0)
        return task_yield(t);
    int64_t old = task_deadline(t, ms);
    int err = 0;
    while (err == 0)
        err = task_wait(t);
    task_deadline_restore(t, old);
    return err == ERR_TIMEOUT && until <= old ? 0 : err;
}

struct loop *task_loop(const struct task *t)
{
    return t->loop;
}

struct arena *task_arena(struct task *t)
{
    return &t->arena;
}

bool task_canceled(const struct task *t)
{
    return t->canceled;
}

int64_t task_deadline(struct task *t, int64_t ms)
{
    int64_t old = t->deadline_ms;
    if (ms < TIME_NEVER - t->loop->now_ms && t->loop->now_ms + ms < old)
        t->deadline_ms = t->loop->now_ms + ms;
    return old;
}

void task_deadline_restore(struct task *t, int64_t old)
{
    t->deadline_ms = old;
}

int64_t task_time_left_ms(const struct task *t)
{
    if (t->deadline_ms == TIME_NEVER)
        return TIME_NEVER;
    int64_t left = t->deadline_ms - t->loop->now_ms;
    return left > 0 ? left : 0;
}

struct task_scope task_scope(struct task *t)
{
    return (struct task_scope){arena_mark(&t->arena), t->deadline_ms};
}

void task_scope_end(struct task *t, struct task_scope s)
{
    arena_reset(&t->arena, s.mark);
    t->deadline_ms = s.deadline_ms;
}

int task_fail(struct task *t, int err, const char *fmt, ...)
{
    if (!t->errors)
        t->errors = check_memory(calloc(1, sizeof *t->errors));
    t->errors->last = !t->errors->last; /* the new text may quote the one before */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->errors->text[t->errors->last], ERROR_BYTES, fmt, ap);
    va_end(ap);
    return err;
}

const char *task_error(const struct task *t)
{
    return t->errors ? t->errors->text[t->errors->last] : "";
}
