/* loop_private.h -- what the files of this room share. */
#ifndef LOOP_PRIVATE_H
#define LOOP_PRIVATE_H

#include <event2/event.h>

#include "base/list.h"
#include "loop/loop.h"
#include "loop/stack.h"
#include "loop/task.h"
#include "loop/timer.h"

struct offload_pool;
struct signal_watch;

struct timer_slot {
    int64_t at_ms; /* the timer's */
    struct timer *timer;
};

struct loop {
    struct event_base *base;
    struct event *tick; /* ends a poll when the next timer is due */
    int64_t now_ms;
    int64_t wall_ahead_ms;
    bool virtual_time;

    struct list ready;         /* tasks, by task.link */
    struct list stood_back[2]; /* likewise; [1]: with what has begun */
    size_t stood_back_count;
    struct task *current;
    size_t task_count;
    struct stack_pool stacks;
    struct stack_home home;

    struct timer_slot *timers; /* heap, from 1 */
    size_t timer_count, timer_cap;

    bool seeded;
    uint64_t random[4];

    struct offload_pool *offload; /* NULL until first used */
    int offload_threads;
    struct signal_watch *signals;
};

/* Those that were ready when called, then some of those that have stood back. */
void task_run_ready(struct loop *l);
bool task_any_ready(const struct loop *l);
void timer_fire_due(struct loop *l);
int64_t timer_next_ms(const struct loop *l); /* TIME_NEVER when there is none */

bool offload_pending(const struct loop *l);
void offload_pool_free(struct offload_pool *p);
#endif
