/* The keys as admins see them. */
#include <time.h>

#include "base/log.h"
#include "engine/ai/permits_private.h"
#include "engine/store/keys.h"

#define PERIOD_COMMANDS PERMITS_CAPS
#define KEY_COMMANDS    (2 + PERIOD_COMMANDS)

/* In Redis: when, ms since 1970; "refused" or "rests"; what. */
struct str permits_error_text(struct task *t, bool refused, const char *text)
{
    return str_printf(task_arena(t), "%s %s", refused ? "refused" : "rests", text);
}

/* As engine/ai/permits_lease.lua has it: the calendar, in UTC. */
static int64_t period_start(size_t period, int64_t now_s)
{
    time_t now = (time_t)now_s;
    struct tm d;
    if (period == 0)
        return now_s - now_s % 60;
    if (period == 1)
        return now_s - now_s % 86400;
    check(gmtime_r(&now, &d));
    return now_s - now_s % 86400 - (d.tm_mday - 1) * 86400;
}

static int64_t calls_of(const struct redis_reply *r, size_t period, int64_t now_ms)
{
    int64_t start, calls;
    struct str rest = r->type == REDIS_STRING ? r->str : STR("");
    struct str first = str_cut(&rest, ' ');
    bool now = str_to_i64(first, &start) && start == period_start(period, now_ms / 1000);
    return now && str_to_i64(rest, &calls) ? calls : 0;
}

static void read_error(const struct redis_reply *r, struct permits_state *s)
{
    struct str rest = r->type == REDIS_STRING ? r->str : STR("");
    if (!str_to_i64(str_cut(&rest, ' '), &s->error_ms) || !rest.p)
        return;
    s->refused = str_eq(str_cut(&rest, ' '), STR("refused")) && !s->active;
    s->error = rest;
}

static const char *const periods[PERMITS_CAPS] = {"minute", "day", "month"};

static void ask(struct redis_batch *b, struct arena *a, int64_t id)
{
    struct str key = key_window(a, id);
    redis_batch_add(b, key, STR("HMGET"), key, STR("r"), STR("t"), STR("rest"));
    redis_batch_add(b, key_key_errors, STR("HGET"), key_key_errors, str_int(a, id));
    for (size_t i = 0; i < PERMITS_CAPS; i++) {
        struct str calls = key_api_limit(a, id, periods[i]);
        redis_batch_add(b, calls, STR("GET"), calls);
    }
}

static struct permits_state state_of(struct arena *a, const struct permits *k,
                                     const struct permits_key *key)
{
    struct permits_state s = {.id = key->id,
                              .service = k->service,
                              .name = str_dup(a, str_of(key->name)),
                              .shown = str_of(log_secret(a, str_of(key->api_key))),
                              .active = key->active,
                              .requests_limit = key->rpm,
                              .tokens_limit = key->tpm};
    memcpy(s.caps, key->caps, sizeof s.caps);
    return s;
}

static void read_state(const struct redis_reply *const *r, int64_t now_ms, struct permits_state *s)
{
    if (r[0]->type == REDIS_ARRAY && r[0]->count == 3) {
        int64_t rests_ms = redis_number(r[0]->items[2], 0) - now_ms;
        s->requests_used = redis_number(r[0]->items[0], 0);
        s->tokens_used = redis_number(r[0]->items[1], 0);
        s->rests_ms = rests_ms > 0 ? rests_ms : 0;
    }
    read_error(r[1], s);
    for (size_t i = 0; i < PERMITS_CAPS; i++)
        s->calls[i] = calls_of(r[2 + i], i, now_ms);
}

bool permits_looked(const struct permits *k)
{
    return k->looked;
}

bool permits_none(const struct permits *k)
{
    return k->looked && k->tpm_max == 0;
}

bool permits_keyless(const struct permits *k)
{
    return k->keyless;
}

int permits_look(struct task *t, struct redis *redis, struct permits_state *keys, size_t count)
{
    struct redis_batch b;
    const struct redis_reply *const *r;
    redis_batch_init(&b, t, redis);
    redis_batch_add(&b, key_key_errors, STR("TIME"));
    for (size_t i = 0; i < count; i++)
        ask(&b, task_arena(t), keys[i].id);
    int err = redis_batch_run(&b, &r);
    if (err)
        return err;
    if (r[0]->type != REDIS_ARRAY || r[0]->count != 2)
        return task_fail(t, ERR_PROTO, "Redis does not know the time");
    int64_t now_ms =
        redis_number(r[0]->items[0], 0) * 1000 + redis_number(r[0]->items[1], 0) / 1000;
    for (size_t i = 0; i < count; i++)
        read_state(r + 1 + KEY_COMMANDS * i, now_ms, &keys[i]);
    return 0;
}

int permits_states(struct task *t, struct permits *k, struct permits_state **out, size_t *count)
{
    struct arena *a = task_arena(t);
    struct permits_state *all = ARENA_ARRAY(a, struct permits_state, k->key_count + 1);
    size_t n = 0;
    for (size_t i = 0; i < k->key_count; i++)
        if (k->keys[i]->listed)
            all[n++] = state_of(a, k, k->keys[i]);
    int err = permits_look(t, k->redis, all, n);
    if (err)
        return err;
    *out = all;
    *count = n;
    return 0;
}

const char *permits_word(const struct permits_state *s)
{
    if (!s->active)
        return s->refused ? "refused" : "off";
    for (size_t i = 0; i < PERMITS_CAPS; i++)
        if (s->caps[i] >= 0 && s->calls[i] >= s->caps[i])
            return "capped"; /* even if it rests: that ends sooner, and does not help */
    return s->rests_ms > 0 ? "resting" : "active";
}

void permits_forget_error(struct task *t, struct permits *k, int64_t key_id)
{
    if (redis_call(t, k->redis, key_key_errors, NULL, STR("HDEL"), key_key_errors,
                   str_int(task_arena(t), key_id)))
        log_debug("keyring", "the last error of key %lld stays: %s", (long long)key_id,
                  task_error(t));
}

void permits_forget_key(struct task *t, struct permits *k, int64_t key_id)
{
    struct arena *a = task_arena(t);
    struct redis_batch b;
    const struct redis_reply *const *r;
    redis_batch_init(&b, t, k->redis);
    redis_batch_add(&b, key_key_errors, STR("HDEL"), key_key_errors, str_int(a, key_id));
    for (size_t i = 0; i < PERMITS_CAPS; i++) {
        struct str calls = key_api_limit(a, key_id, periods[i]);
        redis_batch_add(&b, calls, STR("DEL"), calls);
    }
    if (redis_batch_run(&b, &r))
        log_debug("keyring", "what Redis counted for key %lld stays: %s", (long long)key_id,
                  task_error(t));
}
