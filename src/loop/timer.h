/* timer.h -- calls on the loop's own stack at a given time. Tasks use task_sleep instead. */
#ifndef LOOP_TIMER_H
#define LOOP_TIMER_H

#include "loop/loop.h"

struct timer {
    struct loop *loop;
    int64_t at_ms;
    size_t pos; /* in the heap, from 1; 0 when not set */
    void (*fn)(void *arg);
    void *arg;
};

void timer_init(struct timer *tm, struct loop *l, void (*fn)(void *arg), void *arg);
void timer_set(struct timer *tm, int64_t at_ms); /* replaces an earlier time */
void timer_clear(struct timer *tm);              /* harmless when not set */
#endif
