/* A binary heap from index 1; a timer knows its place, so clearing one is as cheap as setting. */
#include "loop/timer.h"

#include <stdlib.h>

#include "base/check.h"
#include "loop/loop_private.h"

void timer_init(struct timer *tm, struct loop *l, void (*fn)(void *arg), void *arg)
{
    *tm = (struct timer){.loop = l, .fn = fn, .arg = arg};
}

static void place(struct loop *l, struct timer *tm, size_t pos)
{
    l->timers[pos] = tm;
    tm->pos = pos;
}

static void sift_up(struct loop *l, struct timer *tm, size_t pos)
{
    while (pos > 1 && l->timers[pos / 2]->at_ms > tm->at_ms) {
        place(l, l->timers[pos / 2], pos);
        pos /= 2;
    }
    place(l, tm, pos);
}

static void sift_down(struct loop *l, struct timer *tm, size_t pos)
{
    for (;;) {
        size_t child = 2 * pos;
        if (child > l->timer_count)
            break;
        if (child < l->timer_count && l->timers[child + 1]->at_ms < l->timers[child]->at_ms)
            child++;
        if (l->timers[child]->at_ms >= tm->at_ms)
            break;
        place(l, l->timers[child], pos);
        pos = child;
    }
    place(l, tm, pos);
}

static void settle(struct loop *l, struct timer *tm, size_t pos)
{
    if (pos > 1 && l->timers[pos / 2]->at_ms > tm->at_ms)
        sift_up(l, tm, pos);
    else
        sift_down(l, tm, pos);
}

static void make_room(struct loop *l)
{
    if (l->timer_count + 1 < l->timer_cap)
        return;
    l->timer_cap = l->timer_cap ? 2 * l->timer_cap : 64;
    l->timers = realloc(l->timers, l->timer_cap * sizeof *l->timers);
    if (!l->timers)
        check_no_memory();
}

void timer_set(struct timer *tm, int64_t at_ms)
{
    struct loop *l = tm->loop;
    tm->at_ms = at_ms;
    if (tm->pos == 0) {
        make_room(l);
        tm->pos = ++l->timer_count;
    }
    settle(l, tm, tm->pos);
}

void timer_clear(struct timer *tm)
{
    if (tm->pos == 0)
        return;
    struct loop *l = tm->loop;
    size_t pos = tm->pos;
    struct timer *last = l->timers[l->timer_count--];
    tm->pos = 0;
    if (last != tm)
        settle(l, last, pos);
}

int64_t timer_next_ms(const struct loop *l)
{
    return l->timer_count ? l->timers[1]->at_ms : TIME_NEVER;
}

void timer_fire_due(struct loop *l)
{
    /* A timer that sets itself again for now waits for the next turn, or this would not end. */
    size_t most = l->timer_count;
    while (most-- > 0 && timer_next_ms(l) <= l->now_ms) {
        struct timer *tm = l->timers[1];
        timer_clear(tm);
        tm->fn(tm->arg);
    }
}
