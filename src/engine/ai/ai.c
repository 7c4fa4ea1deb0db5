#include "engine/ai/ai.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/ai/breaker.h"
#include "engine/ai/events.h"
#include "engine/ai/faults.h"
#include "engine/ai/permits.h"
#include "engine/ai/reply.h"
#include "engine/setup/endpoint.h"
#include "loop/backoff.h"
#include "wire/http_client.h"

#define BACKOFF_MS     500
#define BACKOFF_MS_MAX 8000
#define NO_KEY_MS      500
#define NO_KEY_MS_MAX  2000
#define STATE_MS       120000 /* a service that nothing has asked for so long may work again */
/* Keys that may be refused with 403 for one request. Not more: a proxy that dislikes its text
 * answers so, too, and would have every key switched off. */
#define KEYS_REFUSED_MAX 4
#define AVERAGED_CALLS   64 /* about */
#define PAGE_KEPT_BYTES  65536
/* Of all events of a stream. Each has a few letters of the text, and hundreds around them. */
#define STREAM_BYTES_MAX ((size_t)32 * 1024 * 1024)

struct ai {
    struct arena arena; /* of the strings */
    struct http_client *client;
    struct permits *permits;
    struct ai_faults *faults;
    const char *url, *key_header;
    struct str *headers; /* without the key's */
    size_t header_count;
    int64_t timeout_ms;
    size_t reply_bytes_max;
    struct breaker breaker;
    int64_t *calls_ok, *calls_retry, *calls_failed, *tokens, *open;
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
    ai->open = metric(m, METRIC_GAUGE, "millrace_ai_open", label,
                      "1: the AI service does not work, calls wait.");
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
    ai->faults = o->faults;
    ai->url = endpoint_url(&ai->arena, o->url, o->path);
    ai->key_header = arena_strdup(&ai->arena, o->key_header ? o->key_header : ENDPOINT_KEY_HEADER);
    ai->headers = endpoint_headers(&ai->arena, o->headers ? o->headers : "", &ai->header_count);
    ai->timeout_ms = o->timeout_ms;
    ai->reply_bytes_max = o->reply_bytes_max ? o->reply_bytes_max : AI_REPLY_BYTES_MAX;
    open_metrics(ai, o);
    breaker_init(&ai->breaker, o->service, ai->open);
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

struct ai_state ai_state(const struct ai *ai, int64_t now_ms)
{
    const struct breaker *b = &ai->breaker;
    return (struct ai_state){.open = b->open && now_ms - b->failed_at_ms < STATE_MS,
                             .since_ms = b->since_ms,
                             .successes = (int64_t)b->successes,
                             .fault = &b->fault};
}

int ai_job_error(struct task *t, const struct ai *ai, int err)
{
    if (err != ERR_TIMEOUT || !ai)
        return err;
    struct ai_state s = ai_state(ai, loop_now_ms(task_loop(t)));
    return s.open ? task_fail(t, ERR_UNAVAILABLE, "the AI service %s", s.fault->words) : err;
}

/* --- one attempt --- */

/* What became of an attempt, besides the codes that end everything: see ai.h. */
enum fate { FATE_DONE, FATE_SERVICE, FATE_REQUEST, FATE_KEY };

struct asking {
    struct ai *ai;
    uint64_t number;
    const struct ai_request *request;
    int64_t tokens_reserved;
    struct ai_answer answer;
    /* Of the last attempt that failed; in the task's arena, because thousands of these stand on
     * stacks. The words complete "the AI service …". */
    const char *cause, *words;
    int keys_refused;
    uint64_t successes; /* of the service, when the last attempt but one had failed */
    struct ai_hand *hand;
    const struct permit *permit;
    bool sent;             /* with it, once at least */
    bool late;             /* it had expired when the connection was ready */
    struct stream *stream; /* of the attempt under way; NULL: none is asked for */
};

/* A reply that is seen while it comes in. */
struct stream {
    struct ai_events events;
    struct task *task;
    int64_t deadline; /* of the task, without the timeout of the attempt */
};

/* Ends the permit with the tokens that were used, and counts them. */
static void settle(struct task *t, struct asking *q, const struct permit *p, int64_t tokens)
{
    permits_settle(t, q->ai->permits, p, tokens);
    q->answer.tokens += tokens;
    metric_add(q->ai->tokens, tokens);
}

static enum fate fault(struct asking *q, enum fate fate, const char *cause, const char *words)
{
    q->cause = cause;
    q->words = words;
    return fate;
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
        return fault(q, FATE_SERVICE, "unreadable",
                     str_find(str_of(task_error(t)), p->api_key) < 0
                         ? arena_printf(task_arena(t), "sent %s", task_error(t))
                         : "sent an error that repeats the key");
    histogram_add_us(q->ai->latency, q->answer.latency_us);
    if (!q->request->seen) { /* long answers say nothing of the next paper's */
        move_average(&q->ai->sum_us, q->answer.latency_us);
        move_average(&q->ai->sum_tokens, tokens);
    }
    return FATE_DONE;
}

/* What the service says of its refusal, unless it repeats the key. */
static struct str words_of(struct task *t, const struct permit *p, const struct http_response *r)
{
    struct str words = ai_complaint(task_arena(t), r->body);
    return words.n && str_find(words, p->api_key) < 0
               ? words
               : str_printf(task_arena(t), "status %d", r->status);
}

static bool is_final(const struct asking *q, int status)
{
    return status == 400 || status == 413 || status == 422 ||
           (status == 404 && q->request->other_model);
}

static enum fate key_refused(struct task *t, struct asking *q, const struct permit *p, int status)
{
    settle(t, q, p, 0);
    permits_refused(t, q->ai->permits, p->key_id, status);
    bool other = status == 401 || ++q->keys_refused < KEYS_REFUSED_MAX;
    return fault(q, other ? FATE_KEY : FATE_SERVICE, "status_403", "refuses the keys it gets");
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

/* An error that came after the request was taken in may have cost all that it could. */
static enum fate read_reply(struct task *t, struct asking *q, const struct permit *p,
                            const struct http_response *r)
{
    struct arena *a = task_arena(t);
    if (r->status / 100 == 2)
        return read_answer(t, q, p, r->body);
    if (r->status == 401 || r->status == 403)
        return key_refused(t, q, p, r->status);
    bool taken = r->status == 408 || r->status == 429 || r->status >= 500;
    if (r->status == 429)
        permits_cool(t, q->ai->permits, p->key_id, r->retry_after_ms > 0 ? r->retry_after_ms : 0);
    settle(t, q, p, taken ? p->tokens : 0);
    if (is_final(q, r->status))
        return fault(q, FATE_REQUEST, "status_400",
                     arena_printf(a, "refuses the request: %.*s", STR_ARG(words_of(t, p, r))));
    if (is_redirect(r->status)) /* not followed: key and paper are for the host of the settings */
        return fault(q, FATE_SERVICE, arena_printf(a, "status_%d", r->status),
                     arena_printf(a,
                                  "redirects to %.*s: the settings must name the address that "
                                  "answers",
                                  STR_ARG(ai_redirect_target(t, r))));
    return fault(
        q, FATE_SERVICE, arena_printf(a, "status_%d", r->status),
        arena_printf(a, "answers with status %d: %.*s", r->status, STR_ARG(words_of(t, p, r))));
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
    const char *why = *task_error(t) ? task_error(t) : err_name(err),
               *cause = ai_fault_kind(err, why);
    if (err == ERR_TIMEOUT)
        *fate = fault(q, FATE_SERVICE, cause, "does not answer in time");
    else if (err == ERR_UNCERTAIN)
        *fate = fault(q, FATE_SERVICE, cause, "cuts the connection");
    else if (err == ERR_INVALID)
        *fate = fault(q, FATE_SERVICE, "malformed",
                      "cannot be called: its address or a key is malformed");
    else if (err == ERR_UNAVAILABLE || err == ERR_BUSY)
        *fate = fault(q, FATE_SERVICE, cause,
                      arena_printf(task_arena(t), "cannot be reached: %s", why));
    else
        *fate = fault(q, FATE_SERVICE, cause, "sends a reply that is no HTTP");
    return 0;
}

/* Adds to the request that its reply shall be a stream, which tells its tokens at the end. */
static void ask_for_stream(struct buf *body)
{
    struct str s = buf_str(body);
    check(s.n > 2 && s.p[0] == '{' && s.p[s.n - 1] == '}');
    body->len--;
    buf_add_lit(body, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
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
    if (!err && q->request->seen)
        ask_for_stream(&ai->page);
    return err;
}

/* The request is about to be sent: connecting may have taken longer than the permit is valid. */
static int make_body(struct task *t, void *arg, struct str *out)
{
    struct asking *q = arg;
    int err = write_page(t, q);
    if (err)
        return err;
    *out = buf_str(&q->ai->page);
    bool valid = permit_valid(q->permit, task_loop(t));
    if (!valid && q->sent)
        return task_fail(t, ERR_UNAVAILABLE, "it refuses the call");
    q->late = !valid;
    q->sent = true;
    return valid ? 0 : task_fail(t, ERR_BUSY, "the permit has expired");
}

/* As ai_call; a reply is taken in pieces if on_piece is set. */
static int call_http(struct task *t, const struct ai *ai, struct str api_key,
                     const struct http_call *how, struct http_response *r)
{
    struct str *headers = ARENA_ARRAY(task_arena(t), struct str, ai->header_count + 2);
    headers[0] = STR("Content-Type: application/json");
    headers[1] = endpoint_key_line(task_arena(t), ai->key_header, api_key);
    for (size_t i = 0; i < ai->header_count; i++)
        headers[i + 2] = ai->headers[i];
    struct http_call c = *how;
    c.method = "POST";
    c.url = ai->url;
    c.headers = headers;
    c.header_count = ai->header_count + 2;
    c.reply_bytes_max = c.on_piece ? STREAM_BYTES_MAX : ai->reply_bytes_max;
    int64_t old = task_deadline(t, ai->timeout_ms);
    int err = http_call(t, ai->client, &c, r);
    task_deadline_restore(t, old);
    return err;
}

int ai_call(struct task *t, const struct ai *ai, struct str api_key,
            int (*body)(struct task *t, void *arg, struct str *out), void *arg,
            struct http_response *r)
{
    return call_http(t, ai, api_key, &(struct http_call){.body_fn = body, .arg = arg}, r);
}

/* --- streams --- */

/* May run on the loop's stack. Each event gives the service its whole timeout again. */
static int take_piece(void *arg, struct str piece)
{
    struct asking *q = arg;
    struct stream *s = q->stream;
    size_t count = s->events.count, text = s->events.content.len;
    int err = ai_events_add(&s->events, piece);
    if (s->events.count != count) {
        task_deadline_restore(s->task, s->deadline);
        task_deadline(s->task, q->ai->timeout_ms);
    }
    if (s->events.content.len != text)
        q->request->seen(q->request->arg, buf_str(&s->events.content));
    return err;
}

/* A call whose reply comes in pieces, which are put together at the end. */
static int call_stream(struct task *t, struct asking *q, const struct permit *p,
                       struct http_response *r)
{
    struct stream s = {.task = t, .deadline = task_deadline(t, TIME_NEVER)};
    ai_events_init(&s.events);
    q->stream = &s;
    int err =
        call_http(t, q->ai, p->api_key,
                  &(struct http_call){.body_fn = make_body, .on_piece = take_piece, .arg = q}, r);
    if (!err && r->status / 100 == 2) {
        r->body = ai_events_body(&s.events, task_arena(t));
        if (ai_events_cut(&s.events))
            err = task_fail(t, ERR_UNCERTAIN, "the stream ended before the answer");
        else if (r->body.n > AI_REPLY_BYTES_MAX)
            err = task_fail(t, ERR_LIMIT, "the reply is too long");
    }
    q->stream = NULL;
    ai_events_release(&s.events);
    return err;
}

/* --- with a permit --- */

static int call(struct task *t, struct asking *q, const struct permit *p, struct http_response *r)
{
    int64_t start_us = loop_now_us(task_loop(t));
    int err =
        q->request->seen ? call_stream(t, q, p, r) : ai_call(t, q->ai, p->api_key, make_body, q, r);
    q->answer.latency_us = loop_now_us(task_loop(t)) - start_us;
    return err;
}

/* Waits for a permit, and for a key if there is none: one that is added, woken or switched on. */
static int take_permit(struct task *t, struct asking *q, struct permit *p)
{
    struct permits *k = q->ai->permits;
    struct backoff backoff = {.ms = NO_KEY_MS, .ms_max = NO_KEY_MS_MAX};
    int err;
    for (;;) {
        err = permits_take(t, k, q->request->asks == &ai_for_run ? PERMITS_RUNS : PERMITS_JOBS,
                           q->tokens_reserved, p);
        if (!err && permit_valid(p, task_loop(t)))
            return 0;
        if (!err)
            permits_unused(t, k, p); /* the task was woken too late for it */
        else if (err != ERR_UNAVAILABLE || (err = backoff_wait(t, &backoff)))
            return err;
    }
}

/* A call with a permit that is valid when it is sent. Returns as http_call; *taken: there is a
 * permit, which must be settled. */
static int call_in_time(struct task *t, struct asking *q, struct permit *p, bool *taken,
                        struct http_response *r)
{
    for (;;) {
        *taken = q->late = q->sent = false;
        int err = write_page(t, q);
        if (!err)
            err = take_permit(t, q, p);
        if (err)
            return err;
        *taken = q->hand->busy = true;
        q->permit = p;
        err = call(t, q, p, r);
        if (!q->late)
            return err;
        q->hand->busy = false;
        permits_unused(t, q->ai->permits, p); /* the connection stays, and is ready next time */
    }
}

static int attempt(struct task *t, struct asking *q, enum fate *fate)
{
    struct permit p;
    struct http_response r;
    bool taken;
    int err = call_in_time(t, q, &p, &taken, &r);
    if (!taken)
        return err;
    if (err)
        err = read_error(t, q, &p, err, fate);
    else
        *fate = read_reply(t, q, &p, &r);
    q->hand->busy = !err && *fate == FATE_DONE;
    return err;
}

/* --- all of them --- */

static void count(struct ai *ai, enum fate fate, bool last)
{
    bool failed = fate == FATE_REQUEST || (fate == FATE_SERVICE && last);
    metric_add(fate == FATE_DONE ? ai->calls_ok : failed ? ai->calls_failed : ai->calls_retry, 1);
}

/* What the breaker learns from an attempt. A refused request or key is an answer. */
static void tell(struct task *t, struct asking *q, enum fate fate, int err, bool probe)
{
    struct breaker *b = &q->ai->breaker;
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (!err && fate != FATE_DONE)
        ai_faults_note(q->ai->faults, t, q->cause, q->words);
    if (err || fate == FATE_KEY)
        breaker_unknown(b, probe);
    else if (fate == FATE_SERVICE)
        breaker_failed(b, now_ms, q->cause, q->words, probe);
    else
        breaker_worked(b, now_ms);
}

/* The attempts are used up. If no other request was answered before the last one, it is the
 * service. */
static int give_up(struct task *t, struct asking *q)
{
    struct breaker *b = &q->ai->breaker;
    if (b->successes != q->successes)
        return task_fail(t, ERR_PROTO, "the AI service %s, after %d attempts", q->words,
                         q->answer.attempts);
    breaker_trip(b, loop_now_ms(task_loop(t)));
    return task_fail(t, ERR_UNAVAILABLE, "the AI service %s", q->words);
}

/* One attempt, when the breaker lets it. *last: if it failed, this was the last one. */
static int try_once(struct task *t, struct asking *q, enum fate *fate, bool *last)
{
    struct breaker *b = &q->ai->breaker;
    bool probe = false;
    if (b->open)
        q->answer.attempts = 0; /* what failed before was the service */
    int err = breaker_enter(t, b, &probe);
    if (err)
        return err;
    err = attempt(t, q, fate);
    tell(t, q, *fate, err, probe);
    if (err)
        return err;
    q->answer.attempts += *fate != FATE_KEY;
    *last = q->answer.attempts == AI_ATTEMPTS_MAX || q->keys_refused == KEYS_REFUSED_MAX ||
            (probe && b->open);
    count(q->ai, *fate, *last);
    if (!*last || probe)
        q->successes = b->successes;
    return 0;
}

static int ask(struct task *t, struct asking *q)
{
    struct backoff backoff = {.ms = BACKOFF_MS, .ms_max = BACKOFF_MS_MAX};
    for (;;) {
        enum fate fate = FATE_REQUEST;
        bool last = false;
        int err = try_once(t, q, &fate, &last);
        if (err || fate == FATE_DONE)
            return err;
        if (fate == FATE_REQUEST)
            return task_fail(t, ERR_REFUSED, "the AI service %s", q->words);
        if (fate == FATE_SERVICE && last)
            return give_up(t, q);
        if (q->hand->leaves)
            return task_fail(t, ERR_CANCELED, "no further attempt begins");
        err = fate == FATE_SERVICE ? backoff_wait(t, &backoff) : 0;
        if (err)
            return err;
    }
}

const bool ai_for_run = true;

int ai_ask(struct task *t, struct ai *ai, const struct ai_request *q, struct ai_hand *hand,
           struct ai_answer *out)
{
    check(q->asks && *q->asks);
    struct asking asking = {.ai = ai, .number = ++ai->askings, .request = q, .hand = hand};
    int err = ask(t, &asking);
    if (!err)
        *out = asking.answer;
    return err;
}
