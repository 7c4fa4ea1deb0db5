/* The overview as numbers for Prometheus. They are of the whole system, and every node shows them:
 * take the maximum. */
#include <stdio.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "engine/watch/overview_private.h"

#define KEYS_SHOWN 20 /* slots of the page are few */

enum { LIMIT_REQUESTS, LIMIT_TOKENS, LIMIT_CAPS, LIMITS = LIMIT_CAPS + PERMITS_CAPS };

struct key_metrics {
    int64_t id;
    int64_t *use[LIMITS]; /* NULL: it never had such a limit */
};

struct overview_metrics {
    struct metrics *page;
    struct key_metrics keys[KEYS_SHOWN];
    size_t key_count;
    int64_t *queued, *queue_age, *running, *workers, *nodes, *nodes_taking;
    int64_t *keys_active, *keys_resting, *keys_disabled, *keys_refused;
    int64_t *records, *moves, *drift, *downloads_waiting, *downloads_taken;
    int64_t *user_sessions, *admin_sessions;
    int64_t *redis_up, *mysql_up, *redis_latency, *mysql_latency, *redis_memory, *mysql_memory;
    int64_t *redis_memory_max, *slowlog, *redis_hits, *redis_misses, *mysql_hits, *mysql_misses;
};

struct overview_metrics *overview_metrics_new(struct metrics *m)
{
    struct overview_metrics *x = check_memory(calloc(1, sizeof *x));
    x->page = m;
    const struct {
        int64_t **slot;
        const char *name, *labels, *help;
    } rows[] = {
        {&x->queued, "queue_runs", "", "Runs that wait for workers."},
        {&x->queue_age, "queue_age_seconds", "", "How long the first of them has waited."},
        {&x->running, "runs_running", "", "Runs that may have workers."},
        {&x->workers, "workers_all", "", "Workers of all nodes."},
        {&x->nodes, "nodes_alive", "", "Nodes that send heartbeats."},
        {&x->nodes_taking, "nodes_taking", "", "Those of them that take work."},
        {&x->keys_active, "keys", "state=\"active\"", "Keys of the AI service."},
        {&x->keys_resting, "keys", "state=\"resting\"", "Keys of the AI service."},
        {&x->keys_disabled, "keys", "state=\"disabled\"", "Keys of the AI service."},
        {&x->keys_refused, "keys", "state=\"refused\"", "Keys of the AI service."},
        {&x->records, "billing_records_waiting", "", "Charges that are not in MySQL yet."},
        {&x->moves, "billing_moves_waiting", "", "Users with recharges that Redis lacks."},
        {&x->drift, "drift_cents", "", "Cents that the last audit found to be off."},
        {&x->downloads_waiting, "downloads_queued", "", "Downloads that wait for a worker."},
        {&x->downloads_taken, "downloads_building", "", "Downloads that have one."},
        {&x->user_sessions, "sessions", "kind=\"user\"", "Sessions that have not ended."},
        {&x->admin_sessions, "sessions", "kind=\"admin\"", "Sessions that have not ended."},
        {&x->redis_up, "store_up", "store=\"redis\"", "1: it answers."},
        {&x->mysql_up, "store_up", "store=\"mysql\"", "1: it answers."},
        {&x->redis_latency, "store_latency_microseconds", "store=\"redis\"", "Of one question."},
        {&x->mysql_latency, "store_latency_microseconds", "store=\"mysql\"", "Of one question."},
        {&x->redis_memory, "store_memory_bytes", "store=\"redis\"", "Memory of its data."},
        {&x->mysql_memory, "store_memory_bytes", "store=\"mysql\"", "Memory of its data."},
        {&x->redis_memory_max, "redis_memory_bytes_max", "", "Its limit; 0: none."},
        {&x->slowlog, "redis_slowlog_length", "", "Commands that Redis found slow."},
        {&x->redis_hits, "store_hits", "store=\"redis\"", "Found in memory, since its start."},
        {&x->redis_misses, "store_misses", "store=\"redis\"", "Not found, since its start."},
        {&x->mysql_hits, "store_hits", "store=\"mysql\"", "Found in memory, since its start."},
        {&x->mysql_misses, "store_misses", "store=\"mysql\"", "Not found, since its start."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[64];
        snprintf(name, sizeof name, "millrace_%s", rows[i].name);
        *rows[i].slot = metric(m, METRIC_GAUGE, name, rows[i].labels, rows[i].help);
    }
    return x;
}

void overview_metrics_free(struct overview_metrics *m)
{
    free(m);
}

static void set_keys(struct overview_metrics *m, const struct overview_data *d)
{
    int64_t active = 0, resting = 0, disabled = 0, refused = 0;
    for (size_t i = 0; i < d->key_count; i++) {
        const struct permits_state *k = &d->keys[i];
        refused += k->refused;
        disabled += !k->active && !k->refused;
        resting += k->active && k->rests_ms > 0;
        active += k->active && k->rests_ms == 0;
    }
    metric_set(m->keys_active, active);
    metric_set(m->keys_resting, resting);
    metric_set(m->keys_disabled, disabled);
    metric_set(m->keys_refused, refused);
}

static void set_use(struct overview_metrics *m, struct key_metrics *k, size_t limit, int64_t used,
                    int64_t most)
{
    static const char *const names[LIMITS] = {"requests", "tokens", "minute", "day", "month"};
    char labels[64];
    if (most < 0)
        return;
    snprintf(labels, sizeof labels, "key=\"%lld\",limit=\"%s\"", (long long)k->id, names[limit]);
    if (!k->use[limit])
        k->use[limit] = metric(m->page, METRIC_GAUGE, "millrace_key_use_permille", labels,
                               "How much of a limit of a key is used.");
    metric_set(k->use[limit], most ? (int64_t)((double)used * 1000 / (double)most) : 1000);
}

static struct key_metrics *metrics_of_key(struct overview_metrics *m, int64_t id)
{
    for (size_t i = 0; i < m->key_count; i++)
        if (m->keys[i].id == id)
            return &m->keys[i];
    if (m->key_count == KEYS_SHOWN)
        return NULL;
    m->keys[m->key_count].id = id;
    return &m->keys[m->key_count++];
}

/* Of keys and limits that are gone nothing is used. */
static void set_key_use(struct overview_metrics *m, const struct overview_data *d)
{
    for (size_t i = 0; i < m->key_count; i++)
        for (size_t limit = 0; limit < LIMITS; limit++)
            if (m->keys[i].use[limit])
                metric_set(m->keys[i].use[limit], 0);
    for (size_t i = 0; i < d->key_count; i++) {
        const struct permits_state *s = &d->keys[i];
        struct key_metrics *k = metrics_of_key(m, s->id);
        if (!k)
            continue;
        set_use(m, k, LIMIT_REQUESTS, s->requests_used, s->requests_limit);
        set_use(m, k, LIMIT_TOKENS, s->tokens_used, s->tokens_limit);
        for (size_t c = 0; c < PERMITS_CAPS; c++)
            set_use(m, k, LIMIT_CAPS + c, s->calls[c], s->caps[c]);
    }
}

static void set_stores(struct overview_metrics *m, const struct overview_data *d)
{
    metric_set(m->redis_up, d->redis.up);
    metric_set(m->mysql_up, d->mysql.up);
    metric_set(m->redis_latency, d->redis.latency_us);
    metric_set(m->mysql_latency, d->mysql.latency_us);
    metric_set(m->redis_memory, d->redis.memory_bytes);
    metric_set(m->mysql_memory, d->mysql.memory_bytes);
    metric_set(m->redis_memory_max, d->redis.memory_bytes_max);
    metric_set(m->slowlog, d->slowlog);
    metric_set(m->redis_hits, d->redis.hits);
    metric_set(m->redis_misses, d->redis.misses);
    metric_set(m->mysql_hits, d->mysql.hits);
    metric_set(m->mysql_misses, d->mysql.misses);
}

void overview_metrics_set(struct overview_metrics *m, const struct overview_data *d)
{
    int64_t taking = 0;
    for (size_t i = 0; i < d->node_count; i++)
        taking += d->nodes[i].takes;
    metric_set(m->queued, d->queued);
    metric_set(m->queue_age, d->queue_age_s);
    metric_set(m->running, d->running);
    metric_set(m->workers, d->workers);
    metric_set(m->nodes, (int64_t)d->node_count);
    metric_set(m->nodes_taking, taking);
    metric_set(m->records, d->records);
    metric_set(m->moves, d->moves);
    metric_set(m->drift, d->drift_cents);
    metric_set(m->downloads_waiting, d->downloads_waiting);
    metric_set(m->downloads_taken, d->downloads_taken);
    metric_set(m->user_sessions, d->user_sessions);
    metric_set(m->admin_sessions, d->admin_sessions);
    set_keys(m, d);
    set_key_use(m, d);
    set_stores(m, d);
}
