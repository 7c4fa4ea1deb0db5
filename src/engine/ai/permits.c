#include <stdlib.h>

#include "base/buf.h"
#include "base/log.h"
#include "engine/ai/permits_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

static void make_metrics(struct permits *k, struct metrics *m)
{
    const struct {
        int64_t **slot;
        enum metric_kind kind;
        const char *name, *help;
    } all[] = {
        {&k->given, METRIC_COUNTER, "millrace_keyring_permits_total",
         "Permits to ask the AI service that were given to workers and jobs."},
        {&k->waits, METRIC_COUNTER, "millrace_keyring_waits_total",
         "Permits that had to be waited for."},
        {&k->rests, METRIC_COUNTER, "millrace_keyring_rests_total",
         "Times that a key had to rest."},
        {&k->refusals, METRIC_COUNTER, "millrace_keyring_refusals_total",
         "Keys that the AI service refused."},
        {&k->calls, METRIC_COUNTER, "millrace_keyring_leases_total", "Calls to Redis for permits."},
        {&k->requests_used, METRIC_GAUGE, "millrace_keyring_requests_used",
         "Requests of the last minute, over all nodes and active keys."},
        {&k->requests_limit, METRIC_GAUGE, "millrace_keyring_requests_limit",
         "Requests that the active keys allow in a minute."},
        {&k->tokens_used, METRIC_GAUGE, "millrace_keyring_tokens_used",
         "Tokens of the last minute, over all nodes and active keys."},
        {&k->tokens_limit, METRIC_GAUGE, "millrace_keyring_tokens_limit",
         "Tokens that the active keys allow in a minute."},
    };
    struct buf label;
    buf_init(&label);
    if (!ai_is_chat(k->service))
        buf_printf(&label, "service=\"%s\"", k->service); /* a constant: nothing to escape */
    buf_add_char(&label, '\0');
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i].slot = metric(m, all[i].kind, all[i].name, buf_str(&label).p, all[i].help);
    buf_release(&label);
}

struct permits *permits_new(const struct permits_options *o)
{
    struct permits *k = check_memory(calloc(1, sizeof *k));
    k->redis = o->redis;
    k->sql = o->sql;
    k->service = o->service ? o->service : AI_CHAT;
    k->keyless = o->keyless;
    k->slot_ms = o->slot_ms ? o->slot_ms : PERMITS_SLOT_MS;
    k->jobs_share = o->jobs_share ? o->jobs_share : PERMITS_JOBS_SHARE;
    for (size_t c = 0; c < PERMITS_CLASSES; c++)
        list_init(&k->waiting[c]);
    list_init(&k->large);
    make_metrics(k, o->metrics);
    return k;
}

void permits_free(struct permits *k)
{
    check(!permits_waits(k) && !k->pump);
    for (size_t i = 0; i < k->key_count; i++) {
        free(k->keys[i]->api_key);
        free(k->keys[i]->name);
        free(k->keys[i]);
    }
    free(k);
}

struct permits_key *permits_find(struct permits *k, int64_t id)
{
    for (size_t i = 0; i < k->key_count; i++)
        if (k->keys[i]->id == id)
            return k->keys[i];
    return NULL;
}

void permits_wake(struct permits *k)
{
    if (k->pump && !k->calling) /* it looks for more by itself after a call */
        task_wake(k->pump);
}

/* What the reply of the script is made of. */
enum {
    LOAD_RESTING,
    LOAD_REQUESTS,
    LOAD_TOKENS = LOAD_REQUESTS + PERMITS_SECONDS,
    LOAD_JOBS = LOAD_TOKENS + PERMITS_SECONDS,
    LOAD_NUMBERS = LOAD_JOBS + 2
};

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static void read_load(const struct redis_reply *r, struct permits_load *l)
{
    l->keys_resting = r->items[LOAD_RESTING]->integer;
    for (size_t i = 0; i < PERMITS_SECONDS; i++) {
        l->requests[i] = r->items[LOAD_REQUESTS + i]->integer;
        l->tokens[i] = r->items[LOAD_TOKENS + i]->integer;
        l->requests_used += l->requests[i];
        l->tokens_used += l->tokens[i];
    }
    l->jobs_requests = least(r->items[LOAD_JOBS]->integer, l->requests_used);
    l->jobs_tokens = least(r->items[LOAD_JOBS + 1]->integer, l->tokens_used);
}

int permits_load(struct task *t, struct permits *k, struct permits_load *out)
{
    struct arena *a = task_arena(t);
    struct permits_load l = {.jobs_share = k->jobs_share};
    struct str *windows = ARENA_ARRAY(a, struct str, PERMITS_KEYS_MAX);
    size_t n = 0;
    for (size_t i = 0; i < k->key_count; i++) {
        const struct permits_key *key = k->keys[i];
        l.keys_disabled += !key->active && key->listed;
        if (!key->active)
            continue;
        l.requests_limit += key->rpm;
        l.tokens_limit += key->tpm;
        windows[n++] = key_window(a, key->id);
    }
    l.keys_active = (int64_t)n;
    const struct redis_reply *r;
    int err = n == 0 ? 0
                     : SCRIPT(t, k->redis, permits_load, &r, .ring = key_permits(a, k->service),
                              .slot_ms = str_int(a, k->slot_ms), .slots = str_int(a, PERMITS_SLOTS),
                              .per_second = str_int(a, PERMITS_SLOTS_PER_SECOND),
                              .windows = {windows, n});
    if (err)
        return err;
    if (n > 0 && (r->type != REDIS_ARRAY || r->count != LOAD_NUMBERS))
        return task_fail(t, ERR_PROTO, "the windows of the keys cannot be read");
    if (n > 0)
        read_load(r, &l);
    *out = l;
    return 0;
}

void permits_close(struct task *t, struct permits *k)
{
    struct str ring = key_permits(task_arena(t), k->service);
    struct str run = str_dup(task_arena(t), redis_run_id_at(k->redis, ring));
    if (run.n && redis_call(t, k->redis, ring, NULL, STR("HSET"), ring, STR("clean"), run))
        log_debug("keyring",
                  "the mark for a clean restart is not set, the next start waits a minute: %s",
                  task_error(t));
}
