/* task.h -- straight-line code that waits.
 *
 * A task is a function on a stack of its own. It runs until it waits; other
 * tasks run meanwhile, so what was read before a wait may be stale after it.
 * A function that takes a struct task first may wait; one without never does.
 *
 * Every task belongs to a group. A group outlives its tasks: group_join()
 * returns only when all of them have ended, so whatever they borrow from the
 * joining frame stays valid. Cancelling makes every wait of a task, the one
 * under way and all later ones, return ERR_CANCELED.
 *
 * The task carries the deadline of everything it waits for, and an arena; both
 * are given back when a scope ends. */
#ifndef LOOP_TASK_H
#define LOOP_TASK_H

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"

struct task;

#define TASK_STACK_BYTES (128 * 1024)

struct group {
    struct loop *loop;
    struct list tasks;
    struct list joiners;
    size_t count;
    bool canceled;
};

typedef void task_fn(struct task *t, void *arg);

void group_init(struct group *g, struct loop *l);
void group_cancel(struct group *g); /* also whatever is started in it later */
/* Waits until the group is empty. If t is cancelled or its deadline passes, the
 * group is cancelled, the wait goes on until it is empty, and the error is returned. */
MUST_CHECK int group_join(struct task *t, struct group *g);

/* Starts a task in g; it first runs in the next turn. name is a constant, for debuggers. The
 * new task has no deadline. ERR_LIMIT when no stack can be had; nothing was started then. */
MUST_CHECK int task_go(struct group *g, const char *name, task_fn *fn, void *arg);

struct loop *task_loop(const struct task *t);
struct arena *task_arena(struct task *t);
bool task_canceled(const struct task *t);
void task_cancel(struct task *t);

MUST_CHECK int task_sleep(struct task *t, int64_t ms);
MUST_CHECK int task_yield(struct task *t); /* lets every other ready task run first */
/* The same before a step of work that thousands of tasks may have at once, each for some tenths of
 * a millisecond: tasks that stand back get 1 ms of each turn of the loop, after the others, first
 * come, first served. So a burst makes the loop late by 2 ms, not by all of its work. begun: a
 * later step of what has begun; these come first, so that work ends before more begins.
 * ERR_TIMEOUT: the deadline has passed. */
MUST_CHECK int task_stand_back(struct task *t, bool begun);
/* Calls fn on the loop's own stack; fn must not wait. For deep calls: pages that a task's stack has
 * touched stay resident, and thousands of tasks wait on theirs. */
void task_aside(struct task *t, void (*fn)(void *arg), void *arg);

/* Narrows the deadline of all waits that follow to ms from now, never widens it. Returns the
 * old one for task_deadline_restore. */
int64_t task_deadline(struct task *t, int64_t ms);
void task_deadline_restore(struct task *t, int64_t old);
int64_t task_time_left_ms(const struct task *t); /* TIME_NEVER when there is no deadline */

/* A scope inside a task: one request of a connection, one paper of a worker. */
struct task_scope {
    struct arena_mark mark;
    int64_t deadline_ms;
};
struct task_scope task_scope(struct task *t);
void task_scope_end(struct task *t, struct task_scope s);

/* Keeps the text with the task and returns err, so that a caller can write
 * `return task_fail(t, ERR_X, "…")`. The last text wins; it may quote the one before. */
int task_fail(struct task *t, int err, const char *fmt, ...) PRINTF(3, 4);
const char *task_error(const struct task *t); /* "" when there is none */

/* The two primitives that wire and sync are made of. task_wait() returns 0 after
 * task_wake(), ERR_TIMEOUT or ERR_CANCELED. It may also return 0 spuriously: test the
 * condition again. Waking a task that does not wait does nothing. */
MUST_CHECK int task_wait(struct task *t);
void task_wake(struct task *t);
/* For the few waits that must not be cut short, because others still use memory of this task. */
void task_wait_always(struct task *t);
#endif
