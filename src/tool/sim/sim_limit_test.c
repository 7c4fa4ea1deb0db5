#include "tool/sim/sim_limit.h"

#include "loop/task.h"
#include "tests/tap.h"

static void test_edges(void)
{
    struct sim_window w = {0};
    struct sim_limit two = {.requests_max = 2};
    sim_window_add(&w, 1000, 0);
    is_int(sim_window_wait_ms(&w, &two, 1000, 0), 0, "a second place is free");
    sim_window_add(&w, 1500, 0);
    is_int(sim_window_wait_ms(&w, &two, 1500, 0), 59500,
           "a third must wait for the first to leave");
    is_int(sim_window_wait_ms(&w, &two, 60999, 0), 1, "to the last millisecond");
    is_int(sim_window_wait_ms(&w, &two, 61000, 0), 0, "and no longer");
    sim_window_add(&w, 61000, 0);
    is_int(sim_window_wait_ms(&w, &two, 61000, 0), 500, "then for the second");
    is_int(w.requests_peak, 2, "no window held more than two");
    sim_window_release(&w);
}

static void test_tokens(void)
{
    struct sim_window w = {0};
    struct sim_limit limit = {.tokens_max = 100};
    sim_window_add(&w, 0, 40);
    sim_window_add(&w, 10, 40);
    is_int(sim_window_wait_ms(&w, &limit, 20, 20), 0, "up to the limit");
    is_int(sim_window_wait_ms(&w, &limit, 20, 21), 59980, "one over waits for the first");
    is_int(sim_window_wait_ms(&w, &limit, 20, 61), 59990, "more waits for the second");
    is_int(sim_window_wait_ms(&w, &limit, 20, 101), SIM_WINDOW_MS,
           "what never fits waits a window");
    struct sim_limit both = {.requests_max = 2, .tokens_max = 1000};
    is_int(sim_window_wait_ms(&w, &both, 20, 1), 59980, "either limit holds back");
    is_int(w.tokens_peak, 80, "the most tokens");
    sim_window_release(&w);
}

#define EVENTS 4000

/* Against the plain definition: all arrivals kept, counted one by one. */
struct naive {
    int64_t at[EVENTS], tokens[EVENTS];
    int count;
};

static void naive_sums(const struct naive *n, int64_t now, int64_t *requests, int64_t *tokens)
{
    *requests = *tokens = 0;
    for (int i = 0; i < n->count; i++)
        if (n->at[i] > now - SIM_WINDOW_MS) {
            (*requests)++;
            *tokens += n->tokens[i];
        }
}

static bool naive_fits(const struct naive *n, const struct sim_limit *l, int64_t now,
                       int64_t tokens)
{
    int64_t r, sum;
    naive_sums(n, now, &r, &sum);
    return r + 1 <= l->requests_max && sum + tokens <= l->tokens_max;
}

/* Sleeps on virtual time, at random, and asks for places as fast as a client in a hurry. */
static void test_random(struct task *t, void *arg)
{
    (void)arg;
    static struct naive n;
    struct loop *l = task_loop(t);
    struct sim_limit limit = {.requests_max = 120, .tokens_max = 20000};
    struct sim_window w = {0};
    int wrong = 0, too_late = 0, too_early = 0, most = 0;
    while (n.count < EVENTS) {
        int64_t now = loop_now_ms(l), tokens = (int64_t)(loop_random(l) % 400);
        int64_t wait = sim_window_wait_ms(&w, &limit, now, tokens);
        wrong += (wait == 0) != naive_fits(&n, &limit, now, tokens);
        if (wait == 0) {
            n.at[n.count] = now;
            n.tokens[n.count++] = tokens;
            sim_window_add(&w, now, tokens);
            int64_t r, sum;
            naive_sums(&n, now, &r, &sum);
            wrong += r != w.requests || sum != w.tokens;
            most = r > most ? (int)r : most;
        } else {
            too_late += naive_fits(&n, &limit, now + wait - 1, tokens);
            too_early += !naive_fits(&n, &limit, now + wait, tokens);
        }
        if (loop_random(l) % 3 == 0)
            check(task_sleep(t, (int64_t)(loop_random(l) % 1500)) == 0);
    }
    is_int(wrong, 0, "agrees with the definition at every step");
    is_int(too_late, 0, "never asks to wait longer than needed");
    is_int(too_early, 0, "a place is free when it said so");
    is_int(w.requests_peak, most, "the peak is the fullest window");
    sim_window_release(&w);
}

static void test_memory(void)
{
    struct sim_window w = {0};
    for (int64_t ms = 0; ms < 3 * SIM_WINDOW_MS; ms++)
        for (int i = 0; i < 10; i++)
            sim_window_add(&w, ms, 1);
    is_int(w.requests, 10 * SIM_WINDOW_MS, "ten requests in each millisecond, all counted");
    ok(w.cap <= 65536, "in no more than a slot per millisecond");
    sim_window_release(&w);
}

int main(void)
{
    test_edges();
    test_tokens();
    tap_task(test_random, NULL, false);
    test_memory();
    return tap_done();
}
