/* ai_fixture.h -- a key pool for tests of the AI's calls: never full, and remembers what it was told. It is
 * linked instead of the real one. */
#ifndef ENGINE_AI_AI_FIXTURE_H
#define ENGINE_AI_AI_FIXTURE_H

#include "engine/ai/ai.h"
#include "engine/ai/permits.h"
#include "engine/setup/config.h"
#include "wire/http_client.h"

struct keyring {
    int64_t keys;       /* 1 to keys can be had, one after the other; refused ones are gone */
    const char *prefix; /* of the keys; NULL: "sk-secret-" */
    int64_t next;
    int taken, settled, unused, cooled, refused, refused_status;
    int64_t tokens_reserved, tokens_used, cool_ms; /* the first of the last permit */
};

int keyring_take(struct task *t, struct keyring *k, int64_t tokens, struct permit *out)
{
    if (k->keys <= k->refused)
        return task_fail(t, ERR_UNAVAILABLE, "there is no key");
    k->taken++;
    k->tokens_reserved = tokens;
    int64_t id = 1 + k->refused + k->next++ % (k->keys - k->refused);
    *out = (struct permit){.key_id = id, .tokens = tokens, .until_us = INT64_MAX};
    out->api_key =
        str_printf(task_arena(t), "%s%lld", k->prefix ? k->prefix : "sk-secret-", (long long)id);
    return 0;
}

void keyring_settle(struct task *t, struct keyring *k, const struct permit *p, int64_t tokens_used)
{
    (void)t, (void)p;
    k->settled++;
    k->tokens_used += tokens_used;
}

void keyring_unused(struct task *t, struct keyring *k, const struct permit *p)
{
    (void)t, (void)p;
    k->unused++;
}

void keyring_cool(struct task *t, struct keyring *k, int64_t key_id, int64_t retry_after_ms)
{
    (void)t, (void)key_id;
    k->cooled++;
    k->cool_ms = retry_after_ms;
}

void keyring_refused(struct task *t, struct keyring *k, int64_t key_id, int status)
{
    (void)t, (void)key_id;
    k->refused++;
    k->refused_status = status;
}

/* An AI at url, with the defaults of everything else. */
static inline struct ai *open_ai(struct task *t, struct http_client *client, struct keyring *k,
                                 struct metrics *m, const char *url, int64_t timeout_ms)
{
    struct arena *a = task_arena(t);
    struct config *c = ARENA_NEW(a, struct config);
    const char *why = "";
    check(config_parse(a, "none", STR_NULL, NULL, c, &why) == 0);
    c->ai_url = url;
    c->ai_timeout_ms = timeout_ms;
    struct ai_options o = {.client = client, .keyring = k, .config = c, .metrics = m};
    struct ai *ai;
    check(ai_new(a, &o, &ai, &why) == 0);
    return ai;
}
#endif
