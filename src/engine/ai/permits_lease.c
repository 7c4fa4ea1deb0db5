/* The one task of a node that talks to Redis about permits (1). */
#include "base/log.h"
#include "engine/ai/permits_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define BEAT_MS      1000 /* a call at least (6) */
#define MEASURE_US   100000
#define DEMAND_LEAST 20 /* in a tenth of a second: fewer are not leased in advance */
#define RETRY_MS     100
#define RETURNS_MAX  1000 /* of one call */
#define HEAD_ARGS    9
#define KEY_ARGS     6
#define RETURN_ARGS  4
#define REPLY_HEAD   6
#define REPLY_LEASE  5
#define KEYS_OF_KEY  4

struct wanted {
    int64_t requests, head, each; /* tokens of the first and of each other */
    int64_t advance, large;
};

/* What a call has told, in case that it must be told again. */
struct told {
    struct keyring_key *key;
    struct keyring_return what;
};

/* --- what is needed --- */

static void measure(struct keyring *k, int64_t now_us)
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

static bool wants_advance(const struct keyring *k, int64_t now_us)
{
    return k->demand >= DEMAND_LEAST && k->stock < k->demand / 5 && now_us >= k->advance_again_us;
}

static struct wanted wanted(const struct keyring *k, int64_t now_us)
{
    struct wanted w = {0};
    if (!k->begun)
        return w;
    int64_t sum = 0;
    list_each (it, &k->waiting) {
        int64_t tokens = list_entry(it, struct keyring_waiter, in)->tokens;
        if (w.requests++ == 0)
            w.head = tokens;
        else
            sum += tokens;
    }
    w.each = w.requests > 1 ? (sum + w.requests - 2) / (w.requests - 1) : k->demand_tokens;
    if (!list_empty(&k->large))
        w.large = list_entry(k->large.next, struct keyring_waiter, in)->tokens;
    if (wants_advance(k, now_us))
        w.advance = k->demand / 2;
    if (w.advance > KEYRING_ADVANCE_MAX)
        w.advance = KEYRING_ADVANCE_MAX;
    return w;
}

/* When the next call is due; us. */
static int64_t due_us(const struct keyring *k, int64_t now_us)
{
    int64_t due = k->called_us + BEAT_MS * 1000;
    int64_t returns = k->return_since_us + keyring_slot_us(k) * 2 / 5; /* 50 ms */
    if (k->return_count && returns < due)
        due = returns;
    bool waits = !list_empty(&k->waiting) || !list_empty(&k->large);
    if (k->begun && waits && k->ask_again_us < due)
        due = k->ask_again_us;
    if (k->begun && wants_advance(k, now_us))
        due = now_us;
    int64_t old =
        k->lot_count ? k->lots[0].begun_us + KEYRING_STOCK_SLOTS * keyring_slot_us(k) : due;
    if (old < due)
        due = old;
    return due;
}

/* --- the call --- */

static size_t add_keys(struct arena *a, const struct keyring *k, struct str *argv)
{
    size_t n = 0;
    argv[n++] = key_keyring;
    for (size_t i = 0; i < k->key_count; i++) {
        int64_t id = k->keys[i]->id;
        argv[n++] = key_window(a, id);
        argv[n++] = key_api_limit(a, id, "minute");
        argv[n++] = key_api_limit(a, id, "day");
        argv[n++] = key_api_limit(a, id, "month");
    }
    return n;
}

static size_t add_limits(struct arena *a, const struct keyring *k, struct str *argv)
{
    size_t n = 0;
    for (size_t i = 0; i < k->key_count; i++) {
        const struct keyring_key *key = k->keys[i];
        argv[n++] = key->active ? STR("1") : STR("0");
        argv[n++] = str_int(a, key->rpm);
        argv[n++] = str_int(a, key->tpm);
        for (size_t c = 0; c < KEYRING_CAPS; c++)
            argv[n++] = str_int(a, key->caps[c]);
    }
    return n;
}

static size_t add_head(struct arena *a, const struct keyring *k, bool fresh, const struct wanted *w,
                       struct str *argv)
{
    const int64_t numbers[HEAD_ARGS] = {k->slot_ms,  KEYRING_SLOTS, fresh,
                                        w->requests, w->head,       w->each,
                                        w->advance,  w->large,      (int64_t)k->key_count};
    for (size_t i = 0; i < HEAD_ARGS; i++)
        argv[i] = str_int(a, numbers[i]);
    return HEAD_ARGS;
}

/* They count as told from here on. */
static size_t collect_returns(struct keyring *k, struct told *told)
{
    size_t n = 0;
    for (size_t i = 0; i < k->key_count; i++)
        for (size_t s = 0; k->return_count && s < KEYRING_SLOTS && n < RETURNS_MAX; s++) {
            struct keyring_return *x = &k->keys[i]->returns[s];
            if (!x->waiting)
                continue;
            told[n++] = (struct told){k->keys[i], *x};
            *x = (struct keyring_return){0};
            k->return_count--;
        }
    return n;
}

static size_t add_returns(struct arena *a, const struct keyring *k, const struct told *told,
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

/* A call failed. What was surely not told is told again. If nobody knows, what is to be counted is told
 * again, and what is to be given back is not: both errs on the side of the limit. */
static void untell(struct keyring *k, int64_t now_us, int err, const struct told *told,
                   size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct keyring_return r = told[i].what;
        if (err != ERR_UNAVAILABLE && err != ERR_BUSY) {
            r.requests = 0;
            if (r.tokens > 0)
                r.tokens = 0;
        }
        keyring_give_back(k, now_us, told[i].key, &r);
    }
}

static void give_to_large(struct keyring *k, const struct keyring_lot *lot)
{
    struct keyring_waiter *w =
        list_empty(&k->large) ? NULL : list_entry(k->large.next, struct keyring_waiter, in);
    if (!w || w->tokens > lot->tokens) { /* has gone away meanwhile */
        keyring_give_back(k, lot->begun_us, lot->key,
                          &(struct keyring_return){
                              .slot = lot->slot, .requests = lot->requests, .tokens = lot->tokens});
        return;
    }
    *w->out = (struct permit){.key_id = lot->key->id,
                              .slot = lot->slot,
                              .tokens = lot->tokens,
                              .until_us = lot->begun_us + KEYRING_VALID_SLOTS * keyring_slot_us(k)};
    w->key = lot->key;
    w->done = true;
    list_del(&w->in);
    task_wake(w->task);
}

/* Lots live for two slots, so a key has no more than three of them. */
static void add_lot(struct keyring *k, const struct keyring_lot *lot)
{
    k->stock += lot->requests;
    for (size_t i = 0; i < k->lot_count; i++) {
        struct keyring_lot *x = &k->lots[i];
        if (x->key == lot->key && x->slot == lot->slot) {
            x->requests += lot->requests;
            x->tokens += lot->tokens;
            return; /* as old as the older one */
        }
    }
    check(k->lot_count < KEYRING_LOTS_MAX);
    k->lots[k->lot_count++] = *lot;
}

static void learn_leases(struct keyring *k, const struct redis_reply *r, int64_t begun_us)
{
    for (size_t i = REPLY_HEAD; i + REPLY_LEASE <= r->count; i += REPLY_LEASE) {
        const struct redis_reply *const *v = r->items + i;
        check(v[0]->integer >= 1 && v[0]->integer <= (int64_t)k->key_count);
        struct keyring_lot lot = {.key = k->keys[v[0]->integer - 1],
                                  .slot = v[1]->integer,
                                  .requests = v[2]->integer,
                                  .tokens = v[3]->integer,
                                  .begun_us = begun_us};
        if (v[4]->integer) {
            give_to_large(k, &lot);
            continue;
        }
        add_lot(k, &lot);
    }
}

static void learn(struct keyring *k, const struct redis_reply *r, const struct wanted *w,
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
    keyring_serve(k, now_us, true);
    keyring_clear_lots(k, now_us, NULL);
    /* Too few for all: that is all there was. Else those who wait came later, or need more. */
    bool none = got < w->requests || (w->large && r->count == REPLY_HEAD);
    k->ask_again_us = now_us + (none ? r->items[0]->integer * 1000 : 0);
}

int keyring_lease(struct task *t, struct keyring *k, bool fresh)
{
    struct arena *a = task_arena(t);
    int64_t begun_us = loop_now_us(task_loop(t));
    keyring_clear_lots(k, begun_us, NULL);
    struct wanted w = wanted(k, begun_us);
    struct told *told = ARENA_ARRAY(a, struct told, RETURNS_MAX);
    size_t told_count = collect_returns(k, told);
    struct str *argv = ARENA_ARRAY(a, struct str,
                                   1 + HEAD_ARGS + k->key_count * (KEYS_OF_KEY + KEY_ARGS) +
                                       told_count * RETURN_ARGS);
    size_t keys = add_keys(a, k, argv), n = keys;
    n += add_head(a, k, fresh, &w, argv + n);
    n += add_limits(a, k, argv + n);
    n += add_returns(a, k, told, told_count, argv + n);
    const struct redis_reply *r = NULL;
    metric_add(k->calls, 1);
    k->called_us = begun_us;
    int err = redis_script_run(t, k->redis, &script_keyring_lease, key_keyring, keys, n, argv, &r);
    if (!err && (r->type != REDIS_ARRAY || r->count < REPLY_HEAD))
        err = task_fail(t, ERR_PROTO, "the script of leases answers with something else");
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

static int call(struct task *t, struct keyring *k)
{
    struct task_scope scope = task_scope(t);
    k->calling = true;
    int err = keyring_lease(t, k, false);
    k->calling = false;
    if (err && err != ERR_CANCELED && !k->deaf)
        log_warn("keyring", "no permits are to be had: %s", task_error(t));
    k->deaf = err != 0;
    task_scope_end(t, scope);
    return err ? task_sleep(t, loop_jitter(task_loop(t), RETRY_MS)) : 0;
}

void keyring_pump(struct task *t, void *arg)
{
    struct keyring *k = arg;
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
