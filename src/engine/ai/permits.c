#include <stdlib.h>

#include "base/log.h"
#include "engine/ai/permits_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

static void make_metrics(struct keyring *k, struct metrics *m)
{
    k->permits = metric(m, METRIC_COUNTER, "millrace_keyring_permits_total", "",
                        "Permits to ask the AI service that were given to workers.");
    k->waits = metric(m, METRIC_COUNTER, "millrace_keyring_waits_total", "",
                      "Permits that had to be waited for.");
    k->rests = metric(m, METRIC_COUNTER, "millrace_keyring_rests_total", "",
                      "Times that a key was told to rest.");
    k->refusals = metric(m, METRIC_COUNTER, "millrace_keyring_refusals_total", "",
                         "Keys that the AI service refused.");
    k->calls = metric(m, METRIC_COUNTER, "millrace_keyring_leases_total", "",
                      "Calls to Redis for permits.");
    k->requests_used = metric(m, METRIC_GAUGE, "millrace_keyring_requests_used", "",
                              "Requests of the last minute, over all nodes and active keys.");
    k->requests_limit = metric(m, METRIC_GAUGE, "millrace_keyring_requests_limit", "",
                               "Requests that the active keys allow in a minute.");
    k->tokens_used = metric(m, METRIC_GAUGE, "millrace_keyring_tokens_used", "",
                            "Tokens of the last minute, over all nodes and active keys.");
    k->tokens_limit = metric(m, METRIC_GAUGE, "millrace_keyring_tokens_limit", "",
                             "Tokens that the active keys allow in a minute.");
}

struct keyring *keyring_new(const struct keyring_options *o)
{
    struct keyring *k = check_memory(calloc(1, sizeof *k));
    k->redis = o->redis;
    k->sql = o->sql;
    k->slot_ms = o->slot_ms ? o->slot_ms : KEYRING_SLOT_MS;
    list_init(&k->waiting);
    list_init(&k->large);
    make_metrics(k, o->metrics);
    return k;
}

void keyring_free(struct keyring *k)
{
    check(list_empty(&k->waiting) && list_empty(&k->large) && !k->pump);
    for (size_t i = 0; i < k->key_count; i++) {
        free(k->keys[i]->api_key);
        free(k->keys[i]->name);
        free(k->keys[i]);
    }
    free(k);
}

struct keyring_key *keyring_find(struct keyring *k, int64_t id)
{
    for (size_t i = 0; i < k->key_count; i++)
        if (k->keys[i]->id == id)
            return k->keys[i];
    return NULL;
}

void keyring_wake(struct keyring *k)
{
    if (k->pump && !k->calling) /* it looks for more by itself after a call */
        task_wake(k->pump);
}

/* What the reply of the script is made of. */
enum {
    LOAD_RESTING,
    LOAD_REQUESTS,
    LOAD_TOKENS = LOAD_REQUESTS + KEYRING_SECONDS,
    LOAD_NUMBERS = LOAD_TOKENS + KEYRING_SECONDS
};

static void read_load(const struct redis_reply *r, struct keyring_load *l)
{
    l->keys_resting = r->items[LOAD_RESTING]->integer;
    for (size_t i = 0; i < KEYRING_SECONDS; i++) {
        l->requests[i] = r->items[LOAD_REQUESTS + i]->integer;
        l->tokens[i] = r->items[LOAD_TOKENS + i]->integer;
        l->requests_used += l->requests[i];
        l->tokens_used += l->tokens[i];
    }
}

int keyring_load(struct task *t, struct keyring *k, struct keyring_load *out)
{
    struct arena *a = task_arena(t);
    struct keyring_load l = {0};
    struct str *argv = ARENA_ARRAY(a, struct str, KEYRING_KEYS_MAX + 3);
    size_t n = 0;
    for (size_t i = 0; i < k->key_count; i++) {
        const struct keyring_key *key = k->keys[i];
        l.keys_disabled += !key->active && key->listed;
        if (!key->active)
            continue;
        l.requests_limit += key->rpm;
        l.tokens_limit += key->tpm;
        argv[n++] = key_window(a, key->id);
    }
    l.keys_active = (int64_t)n;
    argv[n] = str_int(a, k->slot_ms);
    argv[n + 1] = str_int(a, KEYRING_SLOTS);
    argv[n + 2] = str_int(a, KEYRING_SLOTS_PER_SECOND);
    const struct redis_reply *r;
    int err = redis_script_run(t, k->redis, &script_keyring_load, key_keyring, n, n + 3, argv, &r);
    if (err)
        return err;
    if (r->type != REDIS_ARRAY || r->count != LOAD_NUMBERS)
        return task_fail(t, ERR_PROTO, "the windows of the keys cannot be read");
    read_load(r, &l);
    *out = l;
    return 0;
}

void keyring_close(struct task *t, struct keyring *k)
{
    struct str run = str_dup(task_arena(t), redis_run_id(k->redis));
    if (run.n &&
        redis_call(t, k->redis, key_keyring, NULL, STR("HSET"), key_keyring, STR("clean"), run))
        log_debug("keyring", "the end is not noted: %s", task_error(t));
}
