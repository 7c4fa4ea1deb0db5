/* sim_stats.h -- counters of the simulated AI, in total and per key, and the windows of each key.
 *
 * Every request has exactly one outcome, so the outcomes add up to the requests
 * that have ended. Tests read these numbers to prove that a client kept to its
 * limits: requests_60s_max counts every arrival, those that were refused too. */
#ifndef TOOL_SIM_STATS_H
#define TOOL_SIM_STATS_H

#include "base/json.h"
#include "tool/sim/sim_fault.h"
#include "tool/sim/sim_limit.h"

struct map;

enum sim_outcome {
    OUTCOME_OK,
    OUTCOME_INVALID,      /* 400 */
    OUTCOME_UNAUTHORIZED, /* 401 */
    OUTCOME_LIMITED,      /* 429 by the limits */
    OUTCOME_FAULT,        /* of sim_fault.h */
    OUTCOME_GONE,         /* the client hung up, or did not read */
    OUTCOME_COUNT,
};

struct sim_key {
    struct sim_window arrived; /* all requests */
    struct sim_window granted; /* those within the limits, and their tokens */
    int64_t requests, limited, prompt_tokens, completion_tokens;
};

struct sim_stats {
    struct map *keys; /* to struct sim_key */
    int64_t requests, in_flight, in_flight_peak, prompt_tokens, completion_tokens;
    int64_t outcomes[OUTCOME_COUNT], faults[FAULT_COUNT];
};

#define SIM_KEYS_MAX 10000

void sim_stats_init(struct sim_stats *s);
void sim_stats_release(struct sim_stats *s);
/* Resets the numbers; the windows of the limits stay. */
void sim_stats_reset(struct sim_stats *s);

/* The key's record, made at its first request; NULL when there are SIM_KEYS_MAX others. */
struct sim_key *sim_stats_key(struct sim_stats *s, struct str key);

void sim_stats_begin(struct sim_stats *s);
void sim_stats_end(struct sim_stats *s, enum sim_outcome outcome, enum sim_fault fault);

void sim_stats_write(const struct sim_stats *s, struct json_writer *w);
#endif
