#include "tool/sim/sim_limit.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define CAP_MIN 64 /* a power of two, as every later capacity */

void sim_window_release(struct sim_window *w)
{
    free(w->ring);
    *w = (struct sim_window){0};
}

static struct sim_slot *slot(const struct sim_window *w, size_t i)
{
    return &w->ring[(w->head + i) & (w->cap - 1)];
}

static void grow(struct sim_window *w)
{
    size_t cap = w->cap ? w->cap * 2 : CAP_MIN;
    struct sim_slot *ring = check_memory(malloc(cap * sizeof(*ring)));
    for (size_t i = 0; i < w->count; i++)
        ring[i] = *slot(w, i);
    free(w->ring);
    w->ring = ring;
    w->cap = cap;
    w->head = 0;
}

/* Drops slots that have left the window. */
static void slide(struct sim_window *w, int64_t now_ms)
{
    while (w->count && slot(w, 0)->at_ms <= now_ms - SIM_WINDOW_MS) {
        w->requests -= slot(w, 0)->requests;
        w->tokens -= slot(w, 0)->tokens;
        w->head = (w->head + 1) & (w->cap - 1);
        w->count--;
    }
}

static struct sim_slot *newest(struct sim_window *w, int64_t now_ms)
{
    if (w->count && slot(w, w->count - 1)->at_ms == now_ms)
        return slot(w, w->count - 1);
    check(!w->count || slot(w, w->count - 1)->at_ms < now_ms);
    if (w->count == w->cap)
        grow(w);
    struct sim_slot *s = slot(w, w->count++);
    *s = (struct sim_slot){.at_ms = now_ms};
    return s;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void sim_window_add(struct sim_window *w, int64_t now_ms, int64_t tokens)
{
    slide(w, now_ms);
    struct sim_slot *s = newest(w, now_ms);
    s->requests++;
    s->tokens += tokens;
    w->requests++;
    w->tokens += tokens;
    w->requests_peak = larger(w->requests_peak, w->requests);
    w->tokens_peak = larger(w->tokens_peak, w->tokens);
}

static int64_t over(int64_t sum, int64_t max)
{
    return max && sum > max ? sum - max : 0;
}

int64_t sim_window_wait_ms(struct sim_window *w, const struct sim_limit *limit, int64_t now_ms,
                           int64_t tokens)
{
    slide(w, now_ms);
    int64_t requests_over = over(w->requests + 1, limit->requests_max);
    int64_t tokens_over = over(w->tokens + tokens, limit->tokens_max);
    if (requests_over == 0 && tokens_over == 0)
        return 0;
    /* The oldest leave first; wait for the one that makes enough room. */
    for (size_t i = 0; i < w->count; i++) {
        requests_over -= slot(w, i)->requests;
        tokens_over -= slot(w, i)->tokens;
        if (requests_over <= 0 && tokens_over <= 0)
            return slot(w, i)->at_ms + SIM_WINDOW_MS - now_ms;
    }
    return SIM_WINDOW_MS;
}
