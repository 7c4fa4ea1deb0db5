/* sim_limit.h -- requests and tokens of one key in a sliding window of 60 s, and its limits.
 *
 * A window slides with every millisecond: what happened at time t counts until
 * just before t + 60 s, and not a millisecond longer. One slot per millisecond
 * in which something happened, so a window never holds more than 60,000 of them. */
#ifndef TOOL_SIM_LIMIT_H
#define TOOL_SIM_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#define SIM_WINDOW_MS 60000

struct sim_slot {
    int64_t at_ms, requests, tokens;
};

struct sim_window { /* begins as all zero */
    struct sim_slot *ring;
    size_t cap, head, count;
    int64_t requests, tokens;           /* in the window that ends with the newest slot */
    int64_t requests_peak, tokens_peak; /* the most that any window held */
};

void sim_window_release(struct sim_window *w);
/* Counts one request and its tokens. Time never goes back. */
void sim_window_add(struct sim_window *w, int64_t now_ms, int64_t tokens);

struct sim_limit {
    int64_t requests_max, tokens_max; /* in any 60 s; 0: no limit */
};

/* Milliseconds until one more request with so many tokens fits, 0 when it does now. A whole window
 * for one that can never fit. */
int64_t sim_window_wait_ms(struct sim_window *w, const struct sim_limit *limit, int64_t now_ms,
                           int64_t tokens);
#endif
