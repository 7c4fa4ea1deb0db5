#include "loop/timer.h"

#include "loop/loop_private.h"
#include "tests/tap.h"

#define TIMERS 500

struct probe {
    struct timer timer;
    int64_t fired_at_ms; /* 0: not yet */
};

static int64_t last_ms;
static bool in_order = true;

static void fire(void *arg)
{
    struct probe *p = arg;
    p->fired_at_ms = loop_now_ms(p->timer.loop);
    if (p->timer.at_ms < last_ms)
        in_order = false;
    last_ms = p->timer.at_ms;
}

static bool heap_is_sound(const struct loop *l)
{
    for (size_t i = 1; i <= l->timer_count; i++) {
        const struct timer_slot *slot = &l->timers[i];
        if (slot->timer->pos != i || slot->timer->at_ms != slot->at_ms)
            return false;
        if (i > 1 && l->timers[(i + 2) / 4].at_ms > slot->at_ms)
            return false;
    }
    return true;
}

static void many_timers(struct task *t, void *arg)
{
    (void)arg;
    struct loop *l = task_loop(t);
    static struct probe probes[TIMERS];
    int64_t start = loop_now_ms(l);
    bool sound = true;
    for (int i = 0; i < TIMERS; i++) {
        timer_init(&probes[i].timer, l, fire, &probes[i]);
        timer_set(&probes[i].timer, start + 1 + (int64_t)(loop_random(l) % 1000));
        sound = sound && heap_is_sound(l);
    }
    ok(sound, "the heap stays sound while timers are set");
    for (int i = 0; i < TIMERS; i += 3)
        timer_clear(&probes[i].timer);
    for (int i = 1; i < TIMERS; i += 3)
        timer_set(&probes[i].timer, start + 1 + (int64_t)(loop_random(l) % 1000));
    ok(heap_is_sound(l), "the heap is sound after clearing and moving");
    ok(task_sleep(t, 2000) == 0, "slept");

    bool cleared = true, exact = true;
    for (int i = 0; i < TIMERS; i++) {
        if (i % 3 == 0)
            cleared = cleared && probes[i].fired_at_ms == 0;
        else
            exact = exact && probes[i].fired_at_ms == probes[i].timer.at_ms;
    }
    ok(cleared, "cleared timers do not fire");
    ok(exact, "every other timer fires at its time");
    ok(in_order, "timers fire in the order of their times");
    timer_clear(&probes[0].timer);
    ok(true, "clearing a timer that is not set is harmless");
}

static int again_count;

static void again(void *arg)
{
    struct probe *p = arg;
    if (++again_count < 1000000)
        timer_set(&p->timer, loop_now_ms(p->timer.loop));
}

static void self_setting(struct task *t, void *arg)
{
    (void)arg;
    struct probe p;
    timer_init(&p.timer, task_loop(t), again, &p);
    timer_set(&p.timer, loop_now_ms(task_loop(t)));
    ok(task_yield(t) == 0 && task_yield(t) == 0, "tasks run between the firings");
    ok(again_count > 0 && again_count < 10, "a timer that sets itself for now fires once a turn");
    timer_clear(&p.timer);
}

int main(void)
{
    tap_task(many_timers, NULL, false);
    tap_task(self_setting, NULL, false);
    return tap_done();
}
