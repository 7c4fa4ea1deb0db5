/* Facts of the whole: keys, nodes, the AI service, the queue. */
#include <stdio.h>
#include <time.h>

#include "base/json.h"
#include "engine/ai/permits.h"
#include "engine/people/switches.h"
#include "engine/store/generation.h"
#include "engine/store/keys.h"
#include "engine/watch/standing_private.h"

/* --- keys --- */

/* When the calendar's minute, day or month is over, UTC; ms since 1970. */
static int64_t period_end_ms(size_t period, int64_t now_ms)
{
    time_t now = (time_t)(now_ms / 1000);
    struct tm d;
    if (period < 2) {
        int64_t ms = period == 0 ? 60000 : 86400000;
        return now_ms - now_ms % ms + ms;
    }
    check(gmtime_r(&now, &d));
    d = (struct tm){.tm_year = d.tm_year, .tm_mon = d.tm_mon + 1, .tm_mday = 1};
    return (int64_t)timegm(&d) * 1000;
}

/* *until_ms: when it may be used again; 0: not by itself. */
static bool is_capped(const struct permits_state *k, int64_t now_ms, int64_t *until_ms)
{
    bool capped = k->requests_limit <= 0 || k->tokens_limit <= 0;
    bool ends = !capped;
    *until_ms = 0;
    for (size_t i = 0; i < PERMITS_CAPS; i++) {
        if (k->caps[i] < 0 || k->calls[i] < k->caps[i])
            continue;
        int64_t end_ms = period_end_ms(i, now_ms);
        capped = true;
        ends = ends && k->caps[i] > 0;
        *until_ms = end_ms > *until_ms ? end_ms : *until_ms;
    }
    *until_ms = ends ? *until_ms : 0;
    return capped;
}

static void sooner(int64_t *ms, int64_t other_ms)
{
    if (other_ms && (*ms == 0 || other_ms < *ms))
        *ms = other_ms;
}

static void count_key(struct standing_whole *w, const struct permits_state *k, int64_t now_ms)
{
    struct reason_keys *sum = &w->keys;
    int64_t until_ms;
    sum->listed++;
    if (!k->active) {
        *(k->refused ? &sum->refused : &sum->off) += 1;
    } else if (is_capped(k, now_ms, &until_ms)) {
        sum->capped++;
        sooner(&sum->cap_until_ms, until_ms);
    } else if (k->rests_ms > 0) {
        sum->resting++;
        sooner(&sum->rest_until_ms, now_ms + k->rests_ms);
    } else {
        sum->usable++;
        w->requests_used += k->requests_used;
        w->requests_limit += k->requests_limit;
        w->tokens_used += k->tokens_used;
        w->tokens_limit += k->tokens_limit;
    }
}

static int read_keys(struct task *t, struct permits *p, struct standing_whole *w)
{
    struct permits_state *keys;
    size_t count;
    int err = permits_states(t, p, &keys, &count);
    if (err)
        return err;
    w->keys.known = permits_looked(p) && !permits_keyless(p);
    for (size_t i = 0; i < count; i++)
        count_key(w, &keys[i], loop_wall_ms(task_loop(t)));
    return 0;
}

/* --- nodes --- */

struct sums {
    int64_t measured, latency_us, tokens;
    bool closed_works; /* a node that has workers reaches the service */
};

static int64_t number(const struct json *j, const char *name)
{
    int64_t v = 0;
    (void)json_int(json_get(j, name), &v);
    return v;
}

/* A note without "service" is of a node whose breaker is closed. */
static bool read_service(struct standing_whole *w, const struct json *service)
{
    bool open = false;
    (void)json_bool(json_get(service, "open"), &open);
    int64_t since_ms = number(service, "since_ms");
    if (!open || (w->down_since_ms && w->down_since_ms <= since_ms))
        return open;
    struct str cause = json_str(json_get(service, "cause"));
    struct str words = json_str(json_get(service, "words"));
    w->down_since_ms = since_ms;
    snprintf(w->down_cause, sizeof w->down_cause, "%.*s", STR_ARG(cause));
    snprintf(w->down_words, sizeof w->down_words, "%.*s", STR_ARG(words));
    return open;
}

static void read_node(struct task *t, struct standing_whole *w, struct str incarnation,
                      struct str note, struct sums *sums)
{
    const struct json *j;
    bool takes = false;
    if (w->node_count == MEMBERS_MAX || json_parse(task_arena(t), note, &j, NULL))
        return;
    struct standing_node *n = &w->nodes[w->node_count++];
    int64_t workers = number(j, "workers"), latency_us = number(j, "latency_us");
    snprintf(n->incarnation, sizeof n->incarnation, "%.*s", STR_ARG(incarnation));
    (void)json_bool(json_get(j, "takes"), &takes);
    n->open = read_service(w, json_get(j, "service"));
    w->nodes_taking += takes;
    w->workers += workers;
    w->open |= n->open;
    sums->closed_works |= !n->open && workers > 0;
    if (latency_us > 0) {
        sums->measured++;
        sums->latency_us += latency_us;
        sums->tokens += number(j, "tokens");
    }
}

/* alive: incarnations; notes: incarnation, note, … A note may be left of a node that is not. */
static void read_nodes(struct task *t, struct standing_whole *w, const struct redis_reply *alive,
                       const struct redis_reply *notes)
{
    struct sums sums = {.measured = 0};
    if (alive->type != REDIS_ARRAY || notes->type != REDIS_ARRAY)
        return;
    for (size_t i = 0; i < alive->count; i++)
        for (size_t k = 0; k + 1 < notes->count; k += 2)
            if (str_eq(alive->items[i]->str, notes->items[k]->str))
                read_node(t, w, alive->items[i]->str, notes->items[k + 1]->str, &sums);
    w->down = w->open && !sums.closed_works;
    if (sums.measured) {
        w->latency_us = sums.latency_us / sums.measured;
        w->tokens = sums.tokens / sums.measured;
    }
}

/* --- all of it --- */

static int read_whole(struct task *t, struct standing *s, struct standing_whole *w)
{
    enum { ALIVE, NOTES, QUEUED, DISPATCHED };
    struct node *n = s->node;
    struct redis_batch b;
    const struct redis_reply *const *r;
    redis_batch_init(&b, t, n->redis);
    redis_batch_add(&b, key_nodes, STR("ZRANGE"), key_nodes, STR("0"), STR("-1"));
    redis_batch_add(&b, key_nodes_info, STR("HGETALL"), key_nodes_info);
    redis_batch_add(&b, key_queue, STR("ZCARD"), key_queue);
    redis_batch_add(&b, key_dispatched, STR("GET"), key_dispatched);
    int err = redis_batch_run(&b, &r);
    if (err)
        return err;
    read_nodes(t, w, r[ALIVE], r[NOTES]);
    w->queued = redis_number(r[QUEUED], 0);
    w->queue_whole =
        r[DISPATCHED]->type == REDIS_STRING && generation_is(n->redis, r[DISPATCHED]->str);
    w->new_runs_off = n->switches && !switch_on(n->switches, SWITCH_NEW_RUNS);
    return read_keys(t, n->permits, w);
}

/* Two tasks that look at once read the same: the later one wins. */
int standing_look(struct task *t, struct standing *s)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (s->taken_ms >= 0 && now_ms - s->taken_ms < STANDING_FRESH_MS)
        return 0;
    struct standing_whole *w = ARENA_NEW(task_arena(t), struct standing_whole);
    int err = read_whole(t, s, w);
    if (err)
        return err;
    s->whole = *w;
    s->taken_ms = now_ms;
    return 0;
}
