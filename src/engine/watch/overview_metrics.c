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

#define ROWS    30
#define LATENCY "store_latency_seconds" /* its values are microseconds */

struct queue_metrics {
    const char *name;
    int64_t *waiting, *delayed, *held, *working, *oldest;
};

struct overview_metrics {
    struct metrics *page;
    struct queue_metrics queues[JOBS_QUEUES_MAX];
    size_t queue_count;
    struct key_metrics keys[KEYS_SHOWN];
    size_t key_count;
    int64_t *rows[ROWS];
};

struct row {
    const char *name, *labels, *help;
    int64_t value;
};

static int64_t keys_that_are(const struct overview_data *d, const char *word)
{
    int64_t count = 0;
    for (size_t i = 0; i < d->key_count; i++)
        count += strcmp(permits_word(&d->keys[i]), word) == 0;
    return count;
}

/* All numbers but those of single keys, and what they are in d. */
static void rows_of(const struct overview_data *d, struct row out[ROWS])
{
    int64_t taking = 0;
    for (size_t i = 0; i < d->node_count; i++)
        taking += d->nodes[i].takes;
    const struct row rows[] = {
        {"queue_runs", "", "Runs that wait for workers.", d->queued},
        {"queue_age_seconds", "", "How long the first of them has waited.", d->queue_age_s},
        {"runs_running", "", "Runs that may have workers.", d->running},
        {"workers_all", "", "Workers of all nodes.", d->workers},
        {"nodes_alive", "", "Nodes that send heartbeats.", (int64_t)d->node_count},
        {"nodes_taking", "", "Those of them that take work.", taking},
        {"keys", "state=\"active\"", "Keys of the AI service.", keys_that_are(d, "active")},
        {"keys", "state=\"resting\"", "Keys of the AI service.", keys_that_are(d, "resting")},
        {"keys", "state=\"capped\"", "Keys of the AI service.", keys_that_are(d, "capped")},
        {"keys", "state=\"off\"", "Keys of the AI service.", keys_that_are(d, "off")},
        {"keys", "state=\"refused\"", "Keys of the AI service.", keys_that_are(d, "refused")},
        {"billing_records_waiting", "", "Charges that are not in MySQL yet.", d->records},
        {"billing_moves_waiting", "", "Users with recharges that Redis lacks.", d->moves},
        {"drift_cents", "", "Cents that the last audit found to be off.", d->drift_cents},
        {"downloads_queued", "", "Downloads that wait for a worker.", d->downloads_waiting},
        {"downloads_building", "", "Downloads that have one.", d->downloads_taken},
        {"sessions", "kind=\"user\"", "Sessions that have not ended.", d->user_sessions},
        {"sessions", "kind=\"admin\"", "Sessions that have not ended.", d->admin_sessions},
        {"store_up", "store=\"redis\"", "1: it answers.", d->redis.up},
        {"store_up", "store=\"mysql\"", "1: it answers.", d->mysql.up},
        {LATENCY, "store=\"redis\"", "Of one question.", d->redis.latency_us},
        {LATENCY, "store=\"mysql\"", "Of one question.", d->mysql.latency_us},
        {"store_memory_bytes", "store=\"redis\"", "Memory of its data.", d->redis.memory_bytes},
        {"store_memory_bytes", "store=\"mysql\"", "Memory of its data.", d->mysql.memory_bytes},
        {"redis_memory_bytes_max", "", "Its limit; 0: none.", d->redis.memory_bytes_max},
        {"redis_slowlog_length", "", "Commands that Redis found slow.", d->slowlog},
        {"store_hits", "store=\"redis\"", "Found in memory, since its start.", d->redis.hits},
        {"store_misses", "store=\"redis\"", "Not found, since its start.", d->redis.misses},
        {"store_hits", "store=\"mysql\"", "Found in memory, since its start.", d->mysql.hits},
        {"store_misses", "store=\"mysql\"", "Not found, since its start.", d->mysql.misses},
    };
    _Static_assert(sizeof rows / sizeof *rows == ROWS, "a slot for each");
    memcpy(out, rows, sizeof rows);
}

struct overview_metrics *overview_metrics_new(struct metrics *m)
{
    struct overview_metrics *x = check_memory(calloc(1, sizeof *x));
    struct row rows[ROWS];
    rows_of(&(struct overview_data){.number = 0}, rows);
    x->page = m;
    for (size_t i = 0; i < ROWS; i++) {
        char name[64];
        bool us = strcmp(rows[i].name, LATENCY) == 0;
        enum metric_kind kind = us ? METRIC_GAUGE_US : METRIC_GAUGE;
        snprintf(name, sizeof name, "millrace_%s", rows[i].name);
        x->rows[i] = metric(m, kind, name, rows[i].labels, rows[i].help);
    }
    return x;
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

static int64_t *queue_jobs(struct overview_metrics *m, const char *queue, const char *state)
{
    char labels[64];
    snprintf(labels, sizeof labels, "queue=\"%s\",state=\"%s\"", queue, state);
    return metric(m->page, METRIC_GAUGE, "millrace_queue_jobs", labels,
                  "Jobs of a queue, over all nodes.");
}

static struct queue_metrics *metrics_of_queue(struct overview_metrics *m, const char *name)
{
    for (size_t i = 0; i < m->queue_count; i++)
        if (strcmp(m->queues[i].name, name) == 0)
            return &m->queues[i];
    check(m->queue_count < JOBS_QUEUES_MAX);
    char labels[64];
    snprintf(labels, sizeof labels, "queue=\"%s\"", name);
    struct queue_metrics *q = &m->queues[m->queue_count++];
    *q = (struct queue_metrics){
        .name = name,
        .waiting = queue_jobs(m, name, "waiting"),
        .delayed = queue_jobs(m, name, "delayed"),
        .held = queue_jobs(m, name, "held"),
        .working = queue_jobs(m, name, "working"),
        .oldest = metric(m->page, METRIC_GAUGE, "millrace_queue_oldest_seconds", labels,
                         "Age of the oldest job that waits to be taken, or to be tried again.")};
    return q;
}

static void set_queues(struct overview_metrics *m, const struct overview_data *d)
{
    for (size_t i = 0; i < d->queue_count; i++) {
        const struct jobs_look *l = &d->queues[i];
        struct queue_metrics *q = metrics_of_queue(m, l->name);
        metric_set(q->waiting, l->waiting);
        metric_set(q->delayed, l->delayed);
        metric_set(q->held, l->held);
        metric_set(q->working, l->working);
        metric_set(q->oldest, l->oldest_ms / 1000);
    }
}

void overview_metrics_set(struct overview_metrics *m, const struct overview_data *d)
{
    struct row rows[ROWS];
    rows_of(d, rows);
    for (size_t i = 0; i < ROWS; i++)
        metric_set(m->rows[i], rows[i].value);
    set_key_use(m, d);
    set_queues(m, d);
}
