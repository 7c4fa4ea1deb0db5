#include "engine/ai/ai.h"

#include <stdlib.h>

#include "base/log.h"
#include "engine/ai/permits.h"
#include "engine/ai/reply.h"
#include "engine/setup/endpoint.h"
#include "loop/backoff.h"
#include "wire/http_client.h"

#define BACKOFF_MS     500
#define BACKOFF_MS_MAX 8000
/* Keys that may be refused for one request. Not more: a proxy that dislikes its text answers with
 * 403, too, and would have every key switched off. */
#define KEYS_REFUSED_MAX 4
#define AVERAGED_CALLS   64 /* about */
#define PAGE_KEPT_BYTES  65536

struct ai {
    struct arena arena; /* of the strings */
    struct http_client *client;
    struct permits *permits;
    const char *url, *key_header;
    struct str *headers; /* without the key's */
    size_t header_count;
    int64_t timeout_ms;
    int64_t *calls_ok, *calls_retry, *calls_failed, *tokens;
    struct histogram *latency;
    struct buf page;  /* where requests are written: one for all, since no task waits meanwhile */
    uint64_t page_of; /* the number of the struct asking whose request is in it */
    uint64_t askings; /* so far */
    int64_t sum_us, sum_tokens; /* moving averages, times AVERAGED_CALLS */
};

/* Those of the chat have had no label before there were other services. */
static void open_metrics(struct ai *ai, const struct ai_options *o)
{
    struct metrics *m = o->metrics;
    struct arena *a = &ai->arena;
    const char *name = "millrace_ai_calls_total", *help = "Calls to the AI service.";
    bool chat = ai_is_chat(o->service);
    const char *label = chat ? "" : arena_printf(a, "service=\"%s\"", o->service);
    const char *before = chat ? "" : arena_printf(a, "%s,", label);
    const char *latency = chat ? "millrace_ai_latency_seconds"
                               : arena_printf(a, "millrace_ai_%s_latency_seconds", o->service);
    ai->calls_ok =
        metric(m, METRIC_COUNTER, name, arena_printf(a, "%soutcome=\"ok\"", before), help);
    ai->calls_retry =
        metric(m, METRIC_COUNTER, name, arena_printf(a, "%soutcome=\"retry\"", before), help);
    ai->calls_failed =
        metric(m, METRIC_COUNTER, name, arena_printf(a, "%soutcome=\"failed\"", before), help);
    ai->tokens = metric(m, METRIC_COUNTER, "millrace_ai_tokens_total", label,
                        "Tokens used; those reserved where the service did not tell.");
    ai->latency = histogram_new(m, latency, "From a call to the AI service to its answer.");
}

struct ai *ai_new(const struct ai_options *o)
{
    if (!*o->url)
        return NULL;
    struct ai *ai = check_memory(calloc(1, sizeof *ai));
    arena_init(&ai->arena);
    buf_init(&ai->page);
    ai->client = o->client;
    ai->permits = o->permits;
    ai->url = endpoint_url(&ai->arena, o->url, o->path);
    ai->key_header = arena_strdup(&ai->arena, o->key_header ? o->key_header : ENDPOINT_KEY_HEADER);
    ai->headers = endpoint_headers(&ai->arena, o->headers ? o->headers : "", &ai->header_count);
    ai->timeout_ms = o->timeout_ms;
    open_metrics(ai, o);
    return ai;
}

void ai_free(struct ai *ai)
{
    if (!ai)
        return;
    histogram_free(ai->latency);
    buf_release(&ai->page);
    arena_release(&ai->arena);
    free(ai);
}

/* --- one attempt --- */

/* What became of an attempt, besides the codes that end everything. */
enum fate { FATE_DONE, FATE_AGAIN, FATE_OTHER_KEY, FATE_FINAL };

struct asking {
    struct ai *ai;
    uint64_t number;
    const struct ai_request *request;
    int64_t tokens_reserved;
    struct ai_answer answer;
    const char *problem; /* of the last attempt: "the AI service …"; in the task's arena */
    int keys_refused;
    bool *in_hand;
};

/* Ends the permit with the tokens that were used, and counts them. */
static void settle(struct task *t, struct asking *q, const struct permit *p, int64_t tokens)
{
    permits_settle(t, q->ai->permits, p, tokens);
    q->answer.tokens += tokens;
    metric_add(q->ai->tokens, tokens);
}

static enum fate again(struct asking *q, const char *problem)
{
    q->problem = problem;
    return FATE_AGAIN;
}

/* The first one counts whole. */
static void move_average(int64_t *sum, int64_t value)
{
    *sum = *sum ? *sum + value - *sum / AVERAGED_CALLS : value * AVERAGED_CALLS;
}

const char *ai_url(const struct ai *ai)
{
    return ai->url;
}

void ai_averages(const struct ai *ai, int64_t *latency_us, int64_t *tokens)
{
    *latency_us = ai->sum_us / AVERAGED_CALLS;
    *tokens = ai->sum_tokens / AVERAGED_CALLS;
}

static enum fate read_answer(struct task *t, struct asking *q, const struct permit *p,
                             struct str body)
{
    int64_t tokens = -1;
    int err = q->request->read(t, q->request->arg, body, &tokens);
    if (tokens < 0)
        tokens = p->tokens;
    settle(t, q, p, tokens);
    if (err)
        return again(q, str_find(str_of(task_error(t)), p->api_key) < 0
                            ? arena_printf(task_arena(t), "sent %s", task_error(t))
                            : "sent an error that repeats the key");
    histogram_add_us(q->ai->latency, q->answer.latency_us);
    move_average(&q->ai->sum_us, q->answer.latency_us);
    move_average(&q->ai->sum_tokens, tokens);
    return FATE_DONE;
}

/* Final, in the service's words, unless it repeats the key. */
static enum fate refused(struct task *t, struct asking *q, const struct permit *p,
                         const struct http_response *r)
{
    struct arena *a = task_arena(t);
    struct str words = ai_complaint(a, r->body);
    settle(t, q, p, 0);
    if (words.n == 0 || str_find(words, p->api_key) >= 0)
        words = str_printf(a, "status %d", r->status);
    q->problem = arena_printf(a, "refuses the request: %.*s", STR_ARG(words));
    return FATE_FINAL;
}

static enum fate key_refused(struct task *t, struct asking *q, const struct permit *p, int status)
{
    settle(t, q, p, 0);
    permits_refused(t, q->ai->permits, p->key_id, status);
    q->problem = "refuses the keys it gets";
    return ++q->keys_refused < KEYS_REFUSED_MAX ? FATE_OTHER_KEY : FATE_FINAL;
}

struct str ai_redirect_target(struct task *t, const struct http_response *r)
{
    struct str s = r->location.p ? r->location : STR("an unknown address");
    ptrdiff_t scheme = str_find(s, STR("://"));
    size_t n = scheme < 0 ? 0 : (size_t)scheme + strlen("://");
    while (n < s.n && s.p[n] != '?' && s.p[n] != '#' && (scheme < 0 || s.p[n] != '/'))
        n++;
    const char *at = scheme < 0 ? NULL : memrchr(s.p, '@', n);
    if (at) /* a user and a password */
        return ai_line(task_arena(t), str_from(at + 1, n - (size_t)(at + 1 - s.p)));
    return ai_line(task_arena(t), str_from(s.p, n));
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Not followed: the key and the paper are meant for the host that the settings name. */
static enum fate redirected(struct task *t, struct asking *q, const struct permit *p,
                            const struct http_response *r)
{
    settle(t, q, p, 0);
    q->problem = arena_printf(task_arena(t),
                              "redirects to %.*s: the settings must name the address that answers",
                              STR_ARG(ai_redirect_target(t, r)));
    return FATE_FINAL;
}

/* An error that came after the request was taken in may have cost all that it could. */
static enum fate read_reply(struct task *t, struct asking *q, const struct permit *p,
                            const struct http_response *r)
{
    if (r->status / 100 == 2)
        return read_answer(t, q, p, r->body);
    if (is_redirect(r->status))
        return redirected(t, q, p, r);
    if (r->status == 401 || r->status == 403)
        return key_refused(t, q, p, r->status);
    if (r->status != 408 && r->status != 429 && r->status < 500)
        return refused(t, q, p, r);
    settle(t, q, p, p->tokens);
    if (r->status == 429)
        permits_cool(t, q->ai->permits, p->key_id, r->retry_after_ms > 0 ? r->retry_after_ms : 0);
    return again(q, arena_printf(task_arena(t), "answered with status %d", r->status));
}

/* There was no reply. Other than 0 ends everything: the task was cancelled, or is out of time. */
static int read_error(struct task *t, struct asking *q, const struct permit *p, int err,
                      enum fate *fate)
{
    if (err == ERR_UNAVAILABLE || err == ERR_BUSY || err == ERR_INVALID)
        permits_unused(t, q->ai->permits, p);
    else
        settle(t, q, p, p->tokens);
    if (err == ERR_CANCELED || (err == ERR_TIMEOUT && task_time_left_ms(t) <= 0))
        return err;
    log_debug("ai", "%s", task_error(t));
    *fate = FATE_AGAIN;
    if (err == ERR_INVALID) {
        q->problem = "cannot be called: its address or a key is malformed";
        *fate = FATE_FINAL;
    } else if (err == ERR_UNAVAILABLE || err == ERR_BUSY) {
        q->problem = arena_printf(task_arena(t), "cannot be reached: %s", task_error(t));
    } else if (err == ERR_TIMEOUT) {
        q->problem = "did not answer in time";
    } else {
        q->problem = err == ERR_UNCERTAIN ? "cut the connection" : "sent a reply that is no HTTP";
    }
    return 0;
}

/* Puts the request on the page, unless it still is there. write may wait before it clears the page;
 * if it fails afterwards, the page has the request of no task. */
static int write_page(struct task *t, struct asking *q)
{
    struct ai *ai = q->ai;
    if (ai->page_of == q->number)
        return 0;
    buf_clear(&ai->page);
    buf_shrink(&ai->page, PAGE_KEPT_BYTES);
    int err = q->request->write(t, q->request->arg, &ai->page, &q->tokens_reserved);
    ai->page_of = err ? 0 : q->number;
    return err;
}

static int make_body(struct task *t, void *arg, struct str *out)
{
    struct asking *q = arg;
    int err = write_page(t, q);
    *out = buf_str(&q->ai->page);
    return err;
}

int ai_call(struct task *t, const struct ai *ai, struct str api_key,
            int (*body)(struct task *t, void *arg, struct str *out), void *arg,
            struct http_response *r)
{
    struct str *headers = ARENA_ARRAY(task_arena(t), struct str, ai->header_count + 2);
    headers[0] = STR("Content-Type: application/json");
    headers[1] = endpoint_key_line(task_arena(t), ai->key_header, api_key);
    for (size_t i = 0; i < ai->header_count; i++)
        headers[i + 2] = ai->headers[i];
    struct http_call c = {
        .method = "POST",
        .url = ai->url,
        .headers = headers,
        .header_count = ai->header_count + 2,
        .body_fn = body,
        .arg = arg,
        .reply_bytes_max = AI_REPLY_BYTES_MAX,
    };
    int64_t old = task_deadline(t, ai->timeout_ms);
    int err = http_call(t, ai->client, &c, r);
    task_deadline_restore(t, old);
    return err;
}

static int call(struct task *t, struct asking *q, const struct permit *p, struct http_response *r)
{
    int64_t start_us = loop_now_us(task_loop(t));
    int err = ai_call(t, q->ai, p->api_key, make_body, q, r);
    q->answer.latency_us = loop_now_us(task_loop(t)) - start_us;
    return err;
}

static int attempt(struct task *t, struct asking *q, enum fate *fate)
{
    struct permit p;
    struct http_response r;
    struct permits *ring = q->ai->permits;
    int err = write_page(t, q);
    if (err)
        return err;
    while (!(err = permits_take(t, ring, q->tokens_reserved, &p)) &&
           !permit_valid(&p, task_loop(t)))
        permits_unused(t, ring, &p); /* the task was woken too late for it */
    if (err)
        return err;
    *q->in_hand = true;
    err = call(t, q, &p, &r);
    if (err)
        err = read_error(t, q, &p, err, fate);
    else
        *fate = read_reply(t, q, &p, &r);
    *q->in_hand = !err && *fate == FATE_DONE;
    return err;
}

/* --- all of them --- */

static void count(struct ai *ai, enum fate fate)
{
    metric_add(fate == FATE_DONE    ? ai->calls_ok
               : fate == FATE_FINAL ? ai->calls_failed
                                    : ai->calls_retry,
               1);
}

static int ask(struct task *t, struct asking *q)
{
    struct backoff backoff = {.ms = BACKOFF_MS, .ms_max = BACKOFF_MS_MAX};
    for (;;) {
        enum fate fate = FATE_FINAL;
        int err = attempt(t, q, &fate);
        if (err)
            return err;
        if (fate != FATE_OTHER_KEY)
            q->answer.attempts++;
        bool last = q->answer.attempts == AI_ATTEMPTS_MAX;
        count(q->ai, fate == FATE_AGAIN && last ? FATE_FINAL : fate);
        if (fate == FATE_DONE)
            return 0;
        if (fate == FATE_FINAL)
            return task_fail(t, ERR_REFUSED, "the AI service %s", q->problem);
        if (last)
            return task_fail(t, ERR_REFUSED, "the AI service %s, after %d attempts", q->problem,
                             AI_ATTEMPTS_MAX);
        err = fate == FATE_AGAIN ? backoff_wait(t, &backoff) : 0;
        if (err)
            return err;
    }
}

int ai_ask(struct task *t, struct ai *ai, const struct ai_request *q, bool *in_hand,
           struct ai_answer *out)
{
    struct asking asking = {.ai = ai, .number = ++ai->askings, .request = q, .in_hand = in_hand};
    int err = ask(t, &asking);
    if (!err)
        *out = asking.answer;
    return err;
}
