/* The one task of a node that talks to Redis about permits (1). */
#include "base/log.h"
#include "engine/ai/permits_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define BEAT_MS      1000 /* a call at least (6) */
#define MEASURE_US   100000
#define DEMAND_LEAST 20 /* in a tenth of a second: fewer are not leased in advance */
#define RETRY_MS     100
#define RETURNS_MAX  1000 /* of one call */
#define KEY_ARGS     6
#define RETURN_ARGS  4
#define REPLY_HEAD   6
#define REPLY_LEASE  5
#define KEYS_OF_KEY  4

struct wanted {
    struct wanted_class {
        int64_t requests, head, each; /* tokens of the first and of each other */
    } of[PERMITS_CLASSES];
    int64_t requests, advance, large; /* requests: of all classes */
};

/* What a call returns, kept in case that it fails. */
struct told {
    struct permits_key *key;
    struct permits_return what;
};

/* --- what is needed --- */

static void measure(struct permits *k, int64_t now_us)
{
    int64_t us = now_us - k->measured_us;
    if (us < MEASURE_US)
        return;
    k->demand = k->takes * MEASURE_US / us;
    if (k->takes)
        k->demand_tokens = k->take_tokens / k->takes;
    k->takes = k->take_tokens = 0;
    k->measured_us = now_us;
}

static bool wants_advance(const struct permits *k, int64_t now_us)
{
    return k->demand >= DEMAND_LEAST && k->stock < k->demand / 5 && now_us >= k->advance_again_us;
}

static struct wanted_class wanted_of(const struct permits *k, const struct list *line)
{
    struct wanted_class w = {0};
    int64_t sum = 0;
    list_each (it, line) {
        int64_t tokens = list_entry(it, struct permits_waiter, in)->tokens;
        if (w.requests++ == 0)
            w.head = tokens;
        else
            sum += tokens;
    }
    w.each = w.requests > 1 ? (sum + w.requests - 2) / (w.requests - 1) : k->demand_tokens;
    return w;
}

static struct wanted wanted(const struct permits *k, int64_t now_us)
{
    struct wanted w = {0};
    if (!k->begun)
        return w;
    for (size_t c = 0; c < PERMITS_CLASSES; c++) {
        w.of[c] = wanted_of(k, &k->waiting[c]);
        w.requests += w.of[c].requests;
    }
    if (!list_empty(&k->large))
        w.large = list_entry(k->large.next, struct permits_waiter, in)->tokens;
    if (wants_advance(k, now_us))
        w.advance = k->demand / 2;
    if (w.advance > PERMITS_ADVANCE_MAX)
        w.advance = PERMITS_ADVANCE_MAX;
    return w;
}

/* When the next call is due; us. */
static int64_t due_us(const struct permits *k, int64_t now_us)
{
    int64_t due = k->called_us + BEAT_MS * 1000;
    int64_t returns = k->return_since_us + permits_slot_us(k) * 2 / 5; /* 50 ms */
    if (k->return_count && returns < due)
        due = returns;
    if (k->begun && permits_waits(k) && k->ask_again_us < due)
        due = k->ask_again_us;
    if (k->begun && wants_advance(k, now_us))
        due = now_us;
    int64_t old =
        k->lot_count ? k->lots[0].begun_us + PERMITS_STOCK_SLOTS * permits_slot_us(k) : due;
    if (old < due)
        due = old;
    return due;
}

/* --- the call --- */

static struct script_list windows_of(struct arena *a, const struct permits *k)
{
    struct str *keys = ARENA_ARRAY(a, struct str, k->key_count * KEYS_OF_KEY + 1);
    size_t n = 0;
    for (size_t i = 0; i < k->key_count; i++) {
        int64_t id = k->keys[i]->id;
        keys[n++] = key_window(a, id);
        keys[n++] = key_api_limit(a, id, "minute");
        keys[n++] = key_api_limit(a, id, "day");
        keys[n++] = key_api_limit(a, id, "month");
    }
    return (struct script_list){keys, n};
}

static size_t add_limits(struct arena *a, const struct permits *k, struct str *argv)
{
    size_t n = 0;
    for (size_t i = 0; i < k->key_count; i++) {
        const struct permits_key *key = k->keys[i];
        argv[n++] = key->active ? STR("1") : STR("0");
        argv[n++] = str_int(a, key->rpm);
        argv[n++] = str_int(a, key->tpm);
        for (size_t c = 0; c < PERMITS_CAPS; c++)
            argv[n++] = str_int(a, key->caps[c]);
    }
    return n;
}

/* They count as returned from here on. */
static size_t collect_returns(struct permits *k, struct told *told)
{
    size_t n = 0;
    for (size_t i = 0; i < k->key_count; i++)
        for (size_t s = 0; k->return_count && s < PERMITS_SLOTS && n < RETURNS_MAX; s++) {
            struct permits_return *x = &k->keys[i]->returns[s];
            if (!x->waiting)
                continue;
            told[n++] = (struct told){k->keys[i], *x};
            *x = (struct permits_return){0};
            k->return_count--;
        }
    return n;
}

static size_t add_returns(struct arena *a, const struct permits *k, const struct told *told,
                          size_t count, struct str *argv)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        while (k->keys[at] != told[i].key)
            at++; /* both are in the same order */
        argv[n++] = str_int(a, (int64_t)at + 1);
        argv[n++] = str_int(a, told[i].what.slot);
        argv[n++] = str_int(a, told[i].what.requests);
        argv[n++] = str_int(a, told[i].what.tokens);
    }
    return n;
}

/* A call failed. If it surely was not run, all is returned again. If it may have been run, tokens
 * that count are sent again, and what would be given back is not: both err on the side of the
 * limit. */
static void untell(struct permits *k, int64_t now_us, int err, const struct told *told,
                   size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct permits_return r = told[i].what;
        if (err != ERR_UNAVAILABLE && err != ERR_BUSY) {
            r.requests = 0;
            if (r.tokens > 0)
                r.tokens = 0;
        }
        permits_give_back(k, now_us, told[i].key, &r);
    }
}

static void give_to_large(struct permits *k, const struct permits_lot *lot)
{
    struct permits_waiter *w =
        list_empty(&k->large) ? NULL : list_entry(k->large.next, struct permits_waiter, in);
    if (!w || w->tokens > lot->tokens) { /* its task has ended meanwhile */
        permits_give_back(k, lot->begun_us, lot->key,
                          &(struct permits_return){
                              .slot = lot->slot, .requests = lot->requests, .tokens = lot->tokens});
        return;
    }
    *w->out = (struct permit){.key_id = lot->key->id,
                              .slot = lot->slot,
                              .tokens = lot->tokens,
                              .until_us = lot->begun_us + PERMITS_VALID_SLOTS * permits_slot_us(k)};
    w->key = lot->key;
    w->done = true;
    list_del(&w->in);
    task_wake(w->task);
}

/* Lots live for two slots, so a key has no more than three of them of a kind. */
static void add_lot(struct permits *k, const struct permits_lot *lot)
{
    k->stock += lot->requests;
    for (size_t i = 0; i < k->lot_count; i++) {
        struct permits_lot *x = &k->lots[i];
        if (x->key == lot->key && x->slot == lot->slot && x->what == lot->what) {
            x->requests += lot->requests;
            x->tokens += lot->tokens;
            return; /* as old as the older one */
        }
    }
    check(k->lot_count < PERMITS_LOTS_MAX);
    k->lots[k->lot_count++] = *lot;
}

static void learn_leases(struct permits *k, const struct redis_reply *r, int64_t begun_us)
{
    for (size_t i = REPLY_HEAD; i + REPLY_LEASE <= r->count; i += REPLY_LEASE) {
        const struct redis_reply *const *v = r->items + i;
        check(v[0]->integer >= 1 && v[0]->integer <= (int64_t)k->key_count);
        struct permits_lot lot = {.key = k->keys[v[0]->integer - 1],
                                  .what = v[4]->integer,
                                  .slot = v[1]->integer,
                                  .requests = v[2]->integer,
                                  .tokens = v[3]->integer,
                                  .begun_us = begun_us};
        if (lot.what == PERMITS_LARGE) {
            give_to_large(k, &lot);
            continue;
        }
        add_lot(k, &lot);
    }
}

static void learn(struct permits *k, const struct redis_reply *r, const struct wanted *w,
                  int64_t begun_us, int64_t now_us)
{
    metric_set(k->requests_used, r->items[1]->integer);
    metric_set(k->requests_limit, r->items[2]->integer);
    metric_set(k->tokens_used, r->items[3]->integer);
    metric_set(k->tokens_limit, r->items[4]->integer);
    int64_t stock = k->stock;
    learn_leases(k, r, begun_us);
    int64_t got = k->stock - stock;
    if (got < w->requests + w->advance)
        k->advance_again_us = now_us + MEASURE_US;
    permits_serve(k, now_us, true);
    permits_clear_lots(k, now_us, NULL);
    /* Too few for all: there was no more. Else the tasks that wait came later, or need more. */
    bool none = got < w->requests || (w->large && r->count == REPLY_HEAD);
    k->ask_again_us = now_us + (none ? r->items[0]->integer * 1000 : 0);
}

static int call_script(struct task *t, struct permits *k, bool fresh, const struct wanted *w,
                       const struct told *told, size_t told_count, const struct redis_reply **r)
{
    struct arena *a = task_arena(t);
    const struct wanted_class *runs = &w->of[PERMITS_RUNS], *jobs = &w->of[PERMITS_JOBS];
    struct str *further =
        ARENA_ARRAY(a, struct str, k->key_count * KEY_ARGS + told_count * RETURN_ARGS + 1);
    size_t n = add_limits(a, k, further);
    n += add_returns(a, k, told, told_count, further + n);
    int err = SCRIPT(t, k->redis, permits_lease, r, .ring = key_permits(a, k->service),
                     .windows = windows_of(a, k), .slot_ms = str_int(a, k->slot_ms),
                     .slots = str_int(a, PERMITS_SLOTS), .fresh = str_int(a, fresh),
                     .node = str_of(k->name), .share = str_int(a, k->jobs_share),
                     .requests = str_int(a, runs->requests), .head = str_int(a, runs->head),
                     .each = str_int(a, runs->each), .job_requests = str_int(a, jobs->requests),
                     .job_head = str_int(a, jobs->head), .job_each = str_int(a, jobs->each),
                     .advance = str_int(a, w->advance), .large = str_int(a, w->large),
                     .count = str_int(a, (int64_t)k->key_count), .further = {further, n});
    if (!err && ((*r)->type != REDIS_ARRAY || (*r)->count < REPLY_HEAD))
        err = task_fail(t, ERR_PROTO, "script permits_lease returned something else");
    return err;
}

int permits_lease(struct task *t, struct permits *k, bool fresh)
{
    int64_t begun_us = loop_now_us(task_loop(t));
    if (!*k->name)
        loop_token(task_loop(t), k->name, sizeof k->name);
    permits_clear_lots(k, begun_us, NULL);
    struct wanted w = wanted(k, begun_us);
    struct told *told = ARENA_ARRAY(task_arena(t), struct told, RETURNS_MAX);
    size_t told_count = collect_returns(k, told);
    const struct redis_reply *r = NULL;
    metric_add(k->calls, 1);
    k->called_us = begun_us;
    int err = call_script(t, k, fresh, &w, told, told_count, &r);
    int64_t now_us = loop_now_us(task_loop(t));
    if (err)
        untell(k, now_us, err, told, told_count);
    else
        learn(k, r, &w, begun_us, now_us);
    return err;
}

/* --- the task --- */

static int wait_for(struct task *t, int64_t us)
{
    int64_t old = task_deadline(t, (us + 999) / 1000);
    int err = task_wait(t);
    task_deadline_restore(t, old);
    return err == ERR_CANCELED ? err : 0;
}

static int call(struct task *t, struct permits *k)
{
    struct task_scope scope = task_scope(t);
    k->calling = true;
    int err = permits_lease(t, k, false);
    k->calling = false;
    if (err && err != ERR_CANCELED && !k->deaf)
        log_warn("keyring", "Redis gives no permits, workers wait: %s", task_error(t));
    k->deaf = err != 0;
    task_scope_end(t, scope);
    return err ? backoff_wait(t, &(struct backoff){.ms = RETRY_MS}) : 0;
}

void permits_task(struct task *t, void *arg)
{
    struct permits *k = arg;
    int err = 0;
    k->pump = t;
    while (!err) {
        int64_t now_us = loop_now_us(task_loop(t));
        measure(k, now_us);
        int64_t due = k->begun ? due_us(k, now_us) : now_us + BEAT_MS * 1000;
        if (due > now_us)
            err = wait_for(t, due - now_us);
        else
            err = call(t, k);
    }
    k->pump = NULL;
}
