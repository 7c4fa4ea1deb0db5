#include "engine/ai/ai.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/sha256.h"
#include "engine/ai/ai_private.h"
#include "engine/ai/permits.h"
#include "engine/setup/config.h"
#include "wire/http_client.h"

#define BACKOFF_MS     500
#define BACKOFF_MS_MAX 8000
/* Keys that are refused for one paper. Not more: a proxy that dislikes a paper's text says 403, too, and
 * must not cost us every key. */
#define KEYS_REFUSED_MAX  4
#define AVERAGED_CALLS    64 /* about */
#define PROMPT_MARK_CHARS 12
#define PAGE_KEPT_BYTES   65536

struct ai {
    struct arena arena; /* of the strings */
    struct http_client *client;
    struct keyring *keyring;
    const char *url;
    struct ai_model model;
    int64_t timeout_ms;
    const char *prompt_file;
    struct arena prompt_arena;
    struct ai_prompt prompt;
    char prompt_mark[PROMPT_MARK_CHARS + 1];
    int64_t *calls_ok, *calls_retry, *calls_failed, *tokens;
    struct histogram *latency;
    struct buf page;   /* where requests are written: one for all, since nobody waits meanwhile */
    uint64_t page_of;  /* whose request is in it: the number of a struct judging */
    uint64_t judgings; /* so far */
    int64_t sum_us, sum_tokens; /* moving averages, times AVERAGED_CALLS */
};

static const char *url_of(struct arena *a, const char *base)
{
    struct str url = str_of(base);
    while (str_ends(url, STR("/")))
        url.n--;
    return arena_printf(a, "%.*s/chat/completions", STR_ARG(url));
}

static void open_metrics(struct ai *ai, struct metrics *m)
{
    const char *name = "millrace_ai_calls_total", *help = "Calls to the AI service.";
    ai->calls_ok = metric(m, METRIC_COUNTER, name, "outcome=\"ok\"", help);
    ai->calls_retry = metric(m, METRIC_COUNTER, name, "outcome=\"retry\"", help);
    ai->calls_failed = metric(m, METRIC_COUNTER, name, "outcome=\"failed\"", help);
    ai->tokens = metric(m, METRIC_COUNTER, "millrace_ai_tokens_total", "",
                        "Tokens used, those reserved where the service did not say.");
    ai->latency = histogram_new(m, "millrace_ai_latency_seconds",
                                "From a call to the AI service to its verdict.");
}

const char *ai_config_problem(struct arena *a, const struct config *c)
{
    struct ai_prompt checked;
    const char *why = NULL;
    return ai_prompt_load(a, c->ai_prompt_file, &checked, &why) ? why : NULL;
}

static void take_prompt(struct ai *ai, const struct ai_prompt *p)
{
    struct arena old = ai->prompt_arena;
    char hex[SHA256_HEX_BYTES];
    arena_init(&ai->prompt_arena);
    struct arena *a = &ai->prompt_arena;
    ai->prompt = (struct ai_prompt){str_dup(a, p->before), str_dup(a, p->after)};
    struct str both = str_printf(a, "%.*s{{}}%.*s", STR_ARG(p->before), STR_ARG(p->after));
    sha256_hex(both, hex);
    memcpy(ai->prompt_mark, hex, PROMPT_MARK_CHARS);
    arena_release(&old);
}

int ai_reload(struct arena *a, struct ai *ai, const char **why)
{
    struct ai_prompt fresh;
    int err = ai_prompt_load(a, ai->prompt_file, &fresh, why);
    if (!err)
        take_prompt(ai, &fresh);
    return err;
}

const char *ai_prompt_mark(const struct ai *ai)
{
    return ai->prompt_mark;
}

int ai_new(struct arena *a, const struct ai_options *o, struct ai **out, const char **why)
{
    const struct config *c = o->config;
    struct ai_prompt checked;
    if (!*c->ai_url) {
        *why = "ai.url is empty";
        return ERR_INVALID;
    }
    int err = ai_prompt_load(a, c->ai_prompt_file, &checked, why);
    if (err)
        return err;
    struct ai *ai = check_memory(calloc(1, sizeof *ai));
    arena_init(&ai->arena);
    buf_init(&ai->page);
    ai->client = o->client;
    ai->keyring = o->keyring;
    ai->url = url_of(&ai->arena, c->ai_url);
    ai->model.name = arena_strdup(&ai->arena, c->ai_model);
    ai->model.temperature_milli = c->ai_temperature_milli;
    ai->model.max_tokens = c->ai_max_tokens;
    ai->timeout_ms = c->ai_timeout_ms;
    ai->prompt_file = arena_strdup(&ai->arena, c->ai_prompt_file);
    arena_init(&ai->prompt_arena);
    take_prompt(ai, &checked);
    open_metrics(ai, o->metrics);
    *out = ai;
    return 0;
}

void ai_free(struct ai *ai)
{
    if (!ai)
        return;
    histogram_free(ai->latency);
    buf_release(&ai->page);
    arena_release(&ai->prompt_arena);
    arena_release(&ai->arena);
    free(ai);
}

const struct ai_question *ai_question_new(struct arena *a, const struct ai *ai, struct str question)
{
    return ai_prompt_question(a, &ai->prompt, &ai->model, question);
}

/* --- one attempt --- */

/* What became of an attempt, besides the codes that end everything. */
enum fate { FATE_DONE, FATE_AGAIN, FATE_OTHER_KEY, FATE_FINAL };

struct judging {
    struct ai *ai;
    uint64_t number;
    const struct ai_question *question;
    const struct ai_source *source;
    int64_t tokens_reserved;
    struct ai_verdict verdict;
    const char *problem; /* of the last attempt: "the AI service …"; in the task's arena */
    int keys_refused;
    bool *in_hand;
};

/* The permit's end: what was used is told to the key pool, and counted. */
static void settle(struct task *t, struct judging *j, const struct permit *p, int64_t tokens)
{
    keyring_settle(t, j->ai->keyring, p, tokens);
    j->verdict.tokens += tokens;
    metric_add(j->ai->tokens, tokens);
}

static enum fate again(struct judging *j, const char *problem)
{
    j->problem = problem;
    return FATE_AGAIN;
}

/* The first one counts whole. */
static void move_average(int64_t *sum, int64_t value)
{
    *sum = *sum ? *sum + value - *sum / AVERAGED_CALLS : value * AVERAGED_CALLS;
}

void ai_averages(const struct ai *ai, int64_t *latency_us, int64_t *tokens)
{
    *latency_us = ai->sum_us / AVERAGED_CALLS;
    *tokens = ai->sum_tokens / AVERAGED_CALLS;
}

static enum fate read_verdict(struct task *t, struct judging *j, const struct permit *p,
                              struct str body)
{
    struct ai_reply r;
    ai_verdict_read(task_arena(t), body, &r);
    settle(t, j, p, r.tokens < 0 ? p->tokens : r.tokens);
    if (!r.readable)
        return again(j, "sent a reply that has no verdict in it");
    j->verdict.relevant = r.relevant;
    j->verdict.reason = r.reason;
    histogram_add_us(j->ai->latency, j->verdict.latency_us);
    move_average(&j->ai->sum_us, j->verdict.latency_us);
    move_average(&j->ai->sum_tokens, r.tokens < 0 ? p->tokens : r.tokens);
    return FATE_DONE;
}

/* Final, in the service's words, unless it repeats the key. */
static enum fate refused(struct task *t, struct judging *j, const struct permit *p,
                         const struct http_response *r)
{
    struct arena *a = task_arena(t);
    struct str words = ai_complaint(a, r->body);
    settle(t, j, p, 0);
    if (words.n == 0 || str_find(words, p->api_key) >= 0)
        words = str_printf(a, "status %d", r->status);
    j->problem = arena_printf(a, "refuses the request: %.*s", STR_ARG(words));
    return FATE_FINAL;
}

static enum fate key_refused(struct task *t, struct judging *j, const struct permit *p, int status)
{
    settle(t, j, p, 0);
    keyring_refused(t, j->ai->keyring, p->key_id, status);
    j->problem = "refuses our keys";
    return ++j->keys_refused < KEYS_REFUSED_MAX ? FATE_OTHER_KEY : FATE_FINAL;
}

/* An error that came after the request was taken in may have cost all that it could. */
static enum fate read_reply(struct task *t, struct judging *j, const struct permit *p,
                            const struct http_response *r)
{
    if (r->status == 200)
        return read_verdict(t, j, p, r->body);
    if (r->status == 401 || r->status == 403)
        return key_refused(t, j, p, r->status);
    if (r->status != 408 && r->status != 429 && r->status < 500)
        return refused(t, j, p, r);
    settle(t, j, p, p->tokens);
    if (r->status == 429)
        keyring_cool(t, j->ai->keyring, p->key_id, r->retry_after_ms > 0 ? r->retry_after_ms : 0);
    return again(j, arena_printf(task_arena(t), "answered with status %d", r->status));
}

/* There was no reply. Other than 0 ends everything: the task was cancelled, or is out of time. */
static int read_error(struct task *t, struct judging *j, const struct permit *p, int err,
                      enum fate *fate)
{
    if (err == ERR_UNAVAILABLE || err == ERR_BUSY || err == ERR_INVALID)
        keyring_unused(t, j->ai->keyring, p);
    else
        settle(t, j, p, p->tokens);
    if (err == ERR_CANCELED || (err == ERR_TIMEOUT && task_time_left_ms(t) <= 0))
        return err;
    log_debug("ai", "%s", task_error(t));
    *fate = FATE_AGAIN;
    if (err == ERR_INVALID) {
        j->problem = "cannot be called: its address or a key is malformed";
        *fate = FATE_FINAL;
    } else if (err == ERR_UNAVAILABLE || err == ERR_BUSY) {
        j->problem = "cannot be reached";
    } else if (err == ERR_TIMEOUT) {
        j->problem = "did not answer in time";
    } else {
        j->problem = err == ERR_UNCERTAIN ? "cut the connection" : "sent a reply that is no HTTP";
    }
    return 0;
}

/* Puts the request on the page, unless it is there still. */
static int write_page(struct task *t, struct judging *j)
{
    struct ai *ai = j->ai;
    if (ai->page_of == j->number)
        return 0;
    struct ai_paper p;
    int err = j->source->read(t, j->source->arg, &p);
    if (err)
        return err;
    buf_clear(&ai->page);
    buf_shrink(&ai->page, PAGE_KEPT_BYTES);
    j->tokens_reserved = ai_prompt_write(j->question, &p, &ai->page);
    ai->page_of = j->number;
    return 0;
}

static int make_body(struct task *t, void *arg, struct str *out)
{
    struct judging *j = arg;
    int err = write_page(t, j);
    *out = buf_str(&j->ai->page);
    return err;
}

static int call(struct task *t, struct judging *j, const struct permit *p, struct http_response *r)
{
    struct ai *ai = j->ai;
    struct str headers[] = {
        STR("Content-Type: application/json"),
        STR_JOIN(task_arena(t), STR("Authorization: Bearer "), p->api_key),
    };
    struct http_call c = {
        .method = "POST",
        .url = ai->url,
        .headers = headers,
        .header_count = sizeof headers / sizeof *headers,
        .body_fn = make_body,
        .arg = j,
        .reply_bytes_max = AI_REPLY_BYTES_MAX,
    };
    int64_t old = task_deadline(t, ai->timeout_ms);
    int64_t start_us = loop_now_us(task_loop(t));
    int err = http_call(t, ai->client, &c, r);
    j->verdict.latency_us = loop_now_us(task_loop(t)) - start_us;
    task_deadline_restore(t, old);
    return err;
}

static int attempt(struct task *t, struct judging *j, enum fate *fate)
{
    struct permit p;
    struct http_response r;
    struct keyring *ring = j->ai->keyring;
    int err = write_page(t, j);
    if (err)
        return err;
    while (!(err = keyring_take(t, ring, j->tokens_reserved, &p)) &&
           !permit_valid(&p, task_loop(t)))
        keyring_unused(t, ring, &p); /* we were woken too late for it */
    if (err)
        return err;
    *j->in_hand = true;
    err = call(t, j, &p, &r);
    if (err)
        err = read_error(t, j, &p, err, fate);
    else
        *fate = read_reply(t, j, &p, &r);
    *j->in_hand = !err && *fate == FATE_DONE;
    return err;
}

/* --- all of them --- */

static int back_off(struct task *t, int attempts)
{
    int64_t ms = BACKOFF_MS << (attempts - 1);
    return task_sleep(t, loop_jitter(task_loop(t), ms < BACKOFF_MS_MAX ? ms : BACKOFF_MS_MAX));
}

static void count(struct ai *ai, enum fate fate)
{
    metric_add(fate == FATE_DONE    ? ai->calls_ok
               : fate == FATE_FINAL ? ai->calls_failed
                                    : ai->calls_retry,
               1);
}

static int judge(struct task *t, struct judging *j)
{
    for (;;) {
        enum fate fate = FATE_FINAL;
        int err = attempt(t, j, &fate);
        if (err)
            return err;
        if (fate != FATE_OTHER_KEY)
            j->verdict.attempts++;
        bool last = j->verdict.attempts == AI_ATTEMPTS_MAX;
        count(j->ai, fate == FATE_AGAIN && last ? FATE_FINAL : fate);
        if (fate == FATE_DONE)
            return 0;
        if (fate == FATE_FINAL)
            return task_fail(t, ERR_REFUSED, "the AI service %s", j->problem);
        if (last)
            return task_fail(t, ERR_REFUSED, "the AI service %s, after %d attempts", j->problem,
                             AI_ATTEMPTS_MAX);
        err = fate == FATE_AGAIN ? back_off(t, j->verdict.attempts) : 0;
        if (err)
            return err;
    }
}

int ai_judge(struct task *t, struct ai *ai, const struct ai_question *q, const struct ai_source *s,
             bool *in_hand, struct ai_verdict *out)
{
    struct judging j = {.ai = ai,
                        .number = ++ai->judgings,
                        .question = q,
                        .source = s,
                        .verdict = {.reason = STR("")},
                        .in_hand = in_hand};
    int err = judge(t, &j);
    if (!err)
        *out = j.verdict;
    return err;
}
