/* A 4-ary heap from index 1. The children of a node lie side by side and carry their times, so
 * finding the next timer touches none of ten thousand sleeping ones. A timer knows its position, so
 * clearing is as cheap as setting. */
#include "loop/timer.h"

#include <stdlib.h>

#include "base/check.h"
#include "loop/loop_private.h"

void timer_init(struct timer *tm, struct loop *l, void (*fn)(void *arg), void *arg)
{
    *tm = (struct timer){.loop = l, .fn = fn, .arg = arg};
}

#define CHILDREN 4

static size_t parent_of(size_t pos)
{
    return (pos + CHILDREN - 2) / CHILDREN;
}

static void place(struct loop *l, struct timer_slot slot, size_t pos)
{
    l->timers[pos] = slot;
    slot.timer->pos = pos;
}

static void sift_up(struct loop *l, struct timer_slot slot, size_t pos)
{
    while (pos > 1 && l->timers[parent_of(pos)].at_ms > slot.at_ms) {
        place(l, l->timers[parent_of(pos)], pos);
        pos = parent_of(pos);
    }
    place(l, slot, pos);
}

static void sift_down(struct loop *l, struct timer_slot slot, size_t pos)
{
    for (;;) {
        size_t first = CHILDREN * (pos - 1) + 2, next = first;
        if (first > l->timer_count)
            break;
        for (size_t i = first + 1; i < first + CHILDREN && i <= l->timer_count; i++)
            if (l->timers[i].at_ms < l->timers[next].at_ms)
                next = i;
        if (l->timers[next].at_ms >= slot.at_ms)
            break;
        place(l, l->timers[next], pos);
        pos = next;
    }
    place(l, slot, pos);
}

static void settle(struct loop *l, struct timer_slot slot, size_t pos)
{
    if (pos > 1 && l->timers[parent_of(pos)].at_ms > slot.at_ms)
        sift_up(l, slot, pos);
    else
        sift_down(l, slot, pos);
}

static void make_room(struct loop *l)
{
    if (l->timer_count + 1 < l->timer_cap)
        return;
    l->timer_cap = l->timer_cap ? 2 * l->timer_cap : 64;
    l->timers = check_memory(realloc(l->timers, l->timer_cap * sizeof *l->timers));
}

void timer_set(struct timer *tm, int64_t at_ms)
{
    struct loop *l = tm->loop;
    tm->at_ms = at_ms;
    if (tm->pos == 0) {
        make_room(l);
        tm->pos = ++l->timer_count;
    }
    settle(l, (struct timer_slot){at_ms, tm}, tm->pos);
}

void timer_clear(struct timer *tm)
{
    if (tm->pos == 0)
        return;
    struct loop *l = tm->loop;
    size_t pos = tm->pos;
    struct timer_slot last = l->timers[l->timer_count--];
    tm->pos = 0;
    if (last.timer != tm)
        settle(l, last, pos);
}

int64_t timer_next_ms(const struct loop *l)
{
    return l->timer_count ? l->timers[1].at_ms : TIME_NEVER;
}

void timer_fire_due(struct loop *l)
{
    /* A timer that sets itself again for now waits for the next turn, or this would not end. */
    size_t most = l->timer_count;
    while (most-- > 0 && timer_next_ms(l) <= l->now_ms) {
        struct timer *tm = l->timers[1].timer;
        timer_clear(tm);
        tm->fn(tm->arg);
    }
}
