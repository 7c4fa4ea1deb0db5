#include "loop/loop.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/sha256.h"
#include "base/time.h"
#include "loop/loop_private.h"

#define VIRTUAL_START_MS 1000000
#define VIRTUAL_WALL_MS  1767225600000 /* 2026-01-01 */

struct signal_watch {
    struct event *ev;
    void (*fn)(void *arg);
    void *arg;
    struct signal_watch *next;
};

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void kernel_random(void *out, size_t n)
{
    char *p = out;
    while (n > 0) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0)
            continue; /* a signal came in between */
        p += got;
        n -= (size_t)got;
    }
}

static void seed_random(struct loop *l, uint64_t seed)
{
    l->seeded = seed != 0;
    if (!l->seeded)
        kernel_random(&seed, sizeof seed);
    for (int i = 0; i < 4; i++)
        l->random[i] = splitmix(&seed);
}

static uint64_t rotate(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t loop_random(struct loop *l) /* xoshiro256** */
{
    uint64_t *s = l->random;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

void loop_secret(struct loop *l, void *out, size_t n)
{
    if (!l->seeded) {
        kernel_random(out, n);
        return;
    }
    unsigned char *p = out;
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(loop_random(l) >> 56);
}

void loop_token(struct loop *l, char *out, size_t size)
{
    uint8_t bytes[32];
    check(size % 2 == 1 && size / 2 <= sizeof bytes);
    loop_secret(l, bytes, size / 2);
    hex_write(bytes, size / 2, out);
    explicit_bzero(bytes, sizeof bytes);
}

int64_t loop_jitter(struct loop *l, int64_t base_ms)
{
    return base_ms - (int64_t)(loop_random(l) % (uint64_t)(base_ms / 2 + 1));
}

static void tick(int fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg; /* ends the poll; timer_fire_due does the rest */
}

struct loop *loop_new(const struct loop_options *o)
{
    struct loop *l = check_memory(calloc(1, sizeof *l));
    struct loop_options defaults = {.virtual_time = false};
    if (!o)
        o = &defaults;
    struct event_config *conf = event_config_new();
    check(conf);
    /* Edge triggers and early close: epoll has both. */
    check(event_config_require_features(conf, EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE) == 0);
    check(event_config_set_flag(conf, EVENT_BASE_FLAG_NOLOCK) == 0);
    l->base = event_base_new_with_config(conf);
    event_config_free(conf);
    check(l->base);
    l->tick = event_new(l->base, -1, 0, tick, NULL);
    check(l->tick);
    l->virtual_time = o->virtual_time;
    l->now_ms = o->virtual_time ? VIRTUAL_START_MS : time_mono_us() / 1000;
    l->offload_threads = o->offload_threads > 0 ? o->offload_threads : 2;
    list_init(&l->ready);
    list_init(&l->stood_back[0]);
    list_init(&l->stood_back[1]);
    seed_random(l, o->seed);
    return l;
}

void loop_free(struct loop *l)
{
    check(l->task_count == 0);
    if (l->offload)
        offload_pool_free(l->offload);
    while (l->signals) {
        struct signal_watch *s = l->signals;
        l->signals = s->next;
        event_free(s->ev);
        free(s);
    }
    event_free(l->tick);
    event_base_free(l->base);
    stack_pool_release(&l->stacks);
    free(l->timers);
    free(l);
}

static void poll_nothing_ready(struct loop *l)
{
    int64_t next = timer_next_ms(l);
    if (next != TIME_NEVER) {
        int64_t ms = next > l->now_ms ? next - l->now_ms : 0;
        struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
        event_add(l->tick, &tv);
    } else {
        event_del(l->tick);
    }
    check(event_base_loop(l->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY) >= 0);
}

/* Once: else libevent polls for as long as anything is ready. */
static void poll_now(struct loop *l)
{
    const int flags = EVLOOP_NONBLOCK | EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY;
    check(event_base_loop(l->base, flags) >= 0);
}

/* Virtual time passes only when nothing else can happen. */
static void poll_virtual(struct loop *l)
{
    poll_now(l);
    if (task_any_ready(l))
        return;
    int64_t next = timer_next_ms(l);
    if (next == TIME_NEVER || offload_pending(l))
        check(event_base_loop(l->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY) >= 0);
    else if (next > l->now_ms)
        l->now_ms = next;
}

void loop_run(struct loop *l)
{
    while (l->task_count > 0) {
        task_run_ready(l);
        if (l->task_count == 0)
            break;
        if (task_any_ready(l))
            poll_now(l);
        else if (l->virtual_time)
            poll_virtual(l);
        else
            poll_nothing_ready(l);
        if (!l->virtual_time)
            l->now_ms = time_mono_us() / 1000;
        timer_fire_due(l);
    }
}

int64_t loop_now_ms(const struct loop *l)
{
    return l->now_ms;
}

int64_t loop_now_us(const struct loop *l)
{
    return l->virtual_time ? l->now_ms * 1000 : time_mono_us();
}

int64_t loop_wall_ms(const struct loop *l)
{
    if (l->virtual_time)
        return VIRTUAL_WALL_MS + l->now_ms - VIRTUAL_START_MS + l->wall_ahead_ms;
    return time_wall_us() / 1000 + l->wall_ahead_ms;
}

void loop_set_wall_ahead(struct loop *l, int64_t ms)
{
    l->wall_ahead_ms = ms;
}

int64_t loop_wall_ahead(const struct loop *l)
{
    return l->wall_ahead_ms;
}

size_t loop_task_count(const struct loop *l)
{
    return l->task_count;
}

static void on_signal(int signo, short what, void *arg)
{
    (void)signo, (void)what;
    struct signal_watch *s = arg;
    s->fn(s->arg);
}

void loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg), void *arg)
{
    struct signal_watch *s = check_memory(malloc(sizeof *s));
    *s = (struct signal_watch){NULL, fn, arg, l->signals};
    s->ev = evsignal_new(l->base, signo, on_signal, s);
    check(s->ev && event_add(s->ev, NULL) == 0);
    l->signals = s;
}
