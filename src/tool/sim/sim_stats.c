#include "tool/sim/sim_stats.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"

#define SHOWN_BYTES_MAX 16

static const char *const outcome_names[OUTCOME_COUNT] = {
    [OUTCOME_OK] = "ok",
    [OUTCOME_INVALID] = "invalid",
    [OUTCOME_UNAUTHORIZED] = "unauthorized",
    [OUTCOME_LIMITED] = "limited",
    [OUTCOME_FAULT] = "fault",
    [OUTCOME_GONE] = "gone",
};

void sim_stats_init(struct sim_stats *s)
{
    *s = (struct sim_stats){.keys = map_new()};
}

void sim_stats_release(struct sim_stats *s)
{
    size_t at = 0;
    struct str name;
    void *value;
    while (map_next(s->keys, &at, &name, &value)) {
        struct sim_key *key = value;
        sim_window_release(&key->arrived);
        sim_window_release(&key->granted);
        free(key);
    }
    map_free(s->keys);
}

static void reset_key(struct sim_key *k)
{
    sim_window_release(&k->arrived);
    k->granted.requests_peak = k->granted.tokens_peak = 0;
    k->requests = k->limited = k->prompt_tokens = k->completion_tokens = 0;
}

void sim_stats_reset(struct sim_stats *s)
{
    size_t at = 0;
    struct str name;
    void *value;
    while (map_next(s->keys, &at, &name, &value))
        reset_key(value);
    *s = (struct sim_stats){
        .keys = s->keys, .in_flight = s->in_flight, .in_flight_peak = s->in_flight};
}

struct sim_key *sim_stats_key(struct sim_stats *s, struct str key)
{
    struct sim_key *k = map_get(s->keys, key);
    if (k || map_count(s->keys) == SIM_KEYS_MAX)
        return k;
    k = check_memory(calloc(1, sizeof(*k)));
    map_set(s->keys, key, k);
    return k;
}

void sim_stats_begin(struct sim_stats *s)
{
    s->requests++;
    s->in_flight++;
    if (s->in_flight_peak < s->in_flight)
        s->in_flight_peak = s->in_flight;
}

void sim_stats_end(struct sim_stats *s, enum sim_outcome outcome, enum sim_fault fault)
{
    s->in_flight--;
    s->outcomes[outcome]++;
    if (outcome == OUTCOME_FAULT)
        s->faults[fault]++;
}

/* Real keys, from a client with the wrong URL, are masked: they are long, names in tests are
 * not. */
static void write_key_name(struct json_writer *w, struct str name)
{
    struct arena a;
    arena_init(&a);
    jw_put_str(w, "key", name.n < SHOWN_BYTES_MAX ? name : str_of(log_secret(&a, name)));
    arena_release(&a);
}

static void write_key(struct json_writer *w, struct str name, const struct sim_key *k)
{
    jw_object(w);
    write_key_name(w, name);
    jw_put_int(w, "requests", k->requests);
    jw_put_int(w, "limited", k->limited);
    jw_put_int(w, "prompt_tokens", k->prompt_tokens);
    jw_put_int(w, "completion_tokens", k->completion_tokens);
    jw_put_int(w, "requests_60s_max", k->arrived.requests_peak);
    jw_put_int(w, "granted_60s_max", k->granted.requests_peak);
    jw_put_int(w, "tokens_60s_max", k->granted.tokens_peak);
    jw_end_object(w);
}

static void write_keys(const struct sim_stats *s, struct json_writer *w)
{
    size_t at = 0;
    struct str name;
    void *value;
    jw_array(w);
    while (map_next(s->keys, &at, &name, &value))
        write_key(w, name, value);
    jw_end_array(w);
}

static void write_tokens(const struct sim_stats *s, struct json_writer *w)
{
    jw_object(w);
    jw_put_int(w, "prompt", s->prompt_tokens);
    jw_put_int(w, "completion", s->completion_tokens);
    jw_put_int(w, "total", s->prompt_tokens + s->completion_tokens);
    jw_end_object(w);
}

void sim_stats_write(const struct sim_stats *s, struct json_writer *w)
{
    jw_object(w);
    jw_put_int(w, "requests", s->requests);
    jw_put_int(w, "in_flight", s->in_flight);
    jw_put_int(w, "in_flight_peak", s->in_flight_peak);
    jw_key(w, STR("outcomes"));
    jw_object(w);
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        jw_key(w, str_of(outcome_names[i]));
        jw_int(w, s->outcomes[i]);
    }
    jw_end_object(w);
    jw_key(w, STR("faults"));
    jw_object(w);
    for (int i = FAULT_NONE + 1; i < FAULT_COUNT; i++) {
        jw_key(w, str_of(sim_fault_name((enum sim_fault)i)));
        jw_int(w, s->faults[i]);
    }
    jw_end_object(w);
    jw_key(w, STR("tokens"));
    write_tokens(s, w);
    jw_key(w, STR("keys"));
    write_keys(s, w);
    jw_end_object(w);
}
