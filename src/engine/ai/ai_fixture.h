/* ai_fixture.h -- permits for tests of the AI's calls: never used up, and they count what becomes
 * of them. Linked instead of the real ones. */
#ifndef ENGINE_AI_AI_FIXTURE_H
#define ENGINE_AI_AI_FIXTURE_H

#include "engine/ai/ai.h"
#include "engine/ai/permits.h"
#include "wire/http_client.h"

struct permits {
    int64_t keys;       /* 1 to keys can be had, one after the other; refused ones are gone */
    const char *prefix; /* of the keys; NULL: "sk-secret-" */
    int64_t valid_ms;   /* of permits; 0: for ever */
    int64_t next;
    int taken, taken_for_jobs, settled, unused, cooled, refused, refused_status;
    int64_t tokens_reserved, tokens_used, cool_ms; /* the first of the last permit */
};

int permits_take(struct task *t, struct permits *k, enum permits_class c, int64_t tokens,
                 struct permit *out)
{
    if (k->keys <= k->refused)
        return task_fail(t, ERR_UNAVAILABLE, "there is no key");
    k->taken++;
    k->taken_for_jobs += c == PERMITS_JOBS;
    k->tokens_reserved = tokens;
    int64_t id = 1 + k->refused + k->next++ % (k->keys - k->refused);
    *out = (struct permit){.key_id = id, .tokens = tokens, .until_us = INT64_MAX};
    if (k->valid_ms)
        out->until_us = loop_now_us(task_loop(t)) + k->valid_ms * 1000;
    out->api_key =
        str_printf(task_arena(t), "%s%lld", k->prefix ? k->prefix : "sk-secret-", (long long)id);
    return 0;
}

void permits_settle(struct task *t, struct permits *k, const struct permit *p, int64_t tokens_used)
{
    (void)t, (void)p;
    k->settled++;
    k->tokens_used += tokens_used;
}

void permits_unused(struct task *t, struct permits *k, const struct permit *p)
{
    (void)t, (void)p;
    k->unused++;
}

void permits_cool(struct task *t, struct permits *k, int64_t key_id, int64_t retry_after_ms)
{
    (void)t, (void)key_id;
    k->cooled++;
    k->cool_ms = retry_after_ms;
}

void permits_refused(struct task *t, struct permits *k, int64_t key_id, int status)
{
    (void)t, (void)key_id;
    k->refused++;
    k->refused_status = status;
}

bool permits_none(const struct permits *k)
{
    return k->keys <= k->refused;
}

/* A chat service at url. */
static inline struct ai *open_ai(struct http_client *client, struct permits *k, struct metrics *m,
                                 const char *url, int64_t timeout_ms)
{
    return ai_new(&(struct ai_options){.service = AI_CHAT,
                                       .url = url,
                                       .path = AI_CHAT_PATH,
                                       .timeout_ms = timeout_ms,
                                       .client = client,
                                       .permits = k,
                                       .metrics = m});
}
#endif
