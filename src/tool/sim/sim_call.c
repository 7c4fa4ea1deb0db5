#include "tool/sim/sim_call.h"

#include <zlib.h>

#include "base/map.h"

#define SPREAD_PIECES      20 /* of a stream */
#define TRICKLE_BYTES      16 /* a piece */
#define TRICKLE_PIECES_MAX 100
#define TRICKLE_MS         50        /* between pieces */
#define GZIP_WINDOW        (15 + 16) /* of zlib: the largest, with the head of gzip */

/* --- refusing --- */

static enum sim_outcome outcome_of(int status)
{
    return status == 400   ? OUTCOME_INVALID
           : status == 401 ? OUTCOME_UNAUTHORIZED
           : status == 429 ? OUTCOME_LIMITED
                           : OUTCOME_FAULT;
}

static const char *type_of(int status)
{
    if (status == 429)
        return "requests";
    return status < 500 ? "invalid_request_error" : "server_error";
}

static int reply_error(struct task *t, struct sim_call *c, int status, const char *code,
                       const char *message)
{
    struct json_writer w;
    http_json(c->x, &w);
    jw_object(&w);
    jw_key(&w, STR("error"));
    jw_object(&w);
    jw_put_str(&w, "message", str_of(message));
    jw_put_str(&w, "type", str_of(type_of(status)));
    jw_put_str(&w, "param", STR_NULL);
    jw_put_str(&w, "code", str_of(code));
    jw_end_object(&w);
    jw_end_object(&w);
    return http_reply_json(t, c->x, status);
}

int sim_call_refuse(struct task *t, struct sim_call *c, int status, const char *code,
                    const char *message)
{
    c->outcome = outcome_of(status);
    return reply_error(t, c, status, code, message);
}

static void set_retry_after(struct task *t, struct sim_call *c, int64_t seconds)
{
    http_set_header(c->x, "Retry-After", str_printf(task_arena(t), "%lld", (long long)seconds));
}

/* Takes a place in the window. 0, or the milliseconds until there is one. */
static int64_t admit(struct task *t, struct sim_call *c, struct sim_usage usage)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    int64_t tokens = usage.prompt_tokens + usage.completion_tokens;
    int64_t wait_ms = sim_window_wait_ms(&c->key->granted, &c->sim->options.limit, now_ms, tokens);
    if (wait_ms > 0)
        return wait_ms;
    sim_window_add(&c->key->granted, now_ms, tokens);
    c->key->prompt_tokens += usage.prompt_tokens;
    c->key->completion_tokens += usage.completion_tokens;
    c->sim->stats.prompt_tokens += usage.prompt_tokens;
    c->sim->stats.completion_tokens += usage.completion_tokens;
    return 0;
}

static int refuse_limited(struct task *t, struct sim_call *c, int64_t wait_ms)
{
    c->key->limited++;
    int64_t seconds = (wait_ms + 999) / 1000;
    set_retry_after(t, c, seconds);
    return sim_call_refuse(t, c, 429, "rate_limit_exceeded",
                           arena_printf(task_arena(t),
                                        "Rate limit reached. Please try again in %llds.",
                                        (long long)seconds));
}

/* --- delivering --- */

struct buf *sim_call_buf(struct sim_call *c)
{
    struct json_writer w;
    http_json(c->x, &w);
    return w.out;
}

static int reply_stream(struct task *t, struct sim_call *c, const struct sim_reply *r,
                        size_t piece_bytes, int64_t pause_ms)
{
    int err = http_stream_begin(t, c->x, 200, r->type);
    for (struct str rest = r->body; !err && rest.n;) {
        size_t n = rest.n < piece_bytes ? rest.n : piece_bytes;
        err = http_stream_write(t, c->x, str_from(rest.p, n));
        rest = str_skip(rest, n);
        if (!err && pause_ms && !http_draining(c->x))
            err = task_sleep(t, pause_ms);
    }
    return err ? err : http_stream_end(t, c->x);
}

/* A stream is spread over the latency, in pieces that are cut anywhere. */
static int reply_spread(struct task *t, struct sim_call *c, const struct sim_reply *r,
                        int64_t delay_ms)
{
    int64_t pause_ms = delay_ms / (SPREAD_PIECES + 1);
    int err = task_sleep(t, delay_ms - SPREAD_PIECES * pause_ms);
    return err ? err : reply_stream(t, c, r, r->body.n / SPREAD_PIECES + 1, pause_ms);
}

static int reply_whole(struct task *t, struct sim_call *c, const struct sim_reply *r)
{
    return r->stream ? reply_stream(t, c, r, r->body.n, 0)
                     : http_reply(t, c->x, 200, r->type, r->body);
}

static int begin_half(struct task *t, struct sim_call *c, const struct sim_reply *r)
{
    int err = http_stream_begin(t, c->x, 200, r->type);
    return err ? err : http_stream_write(t, c->x, str_from(r->body.p, r->body.n / 2));
}

/* Sends nothing, or half of a stream and nothing more, until stall_ms are over or the server
 * drains. */
static int stall(struct task *t, struct sim_call *c, const struct sim_reply *r)
{
    if (r->stream && (c->fate.dice & 1)) {
        int begun = begin_half(t, c, r);
        if (begun)
            return begun;
    }
    int64_t old = task_deadline(t, c->sim->options.stall_ms);
    int err = 0;
    while (!err && !http_draining(c->x))
        err = waitq_wait(t, &c->sim->quit);
    task_deadline_restore(t, old);
    if (err == ERR_CANCELED)
        return err;
    http_abort(c->x);
    return 0;
}

static int cut(struct task *t, struct sim_call *c, const struct sim_reply *r)
{
    int err = c->fate.dice & 1 ? begin_half(t, c, r) : 0;
    http_abort(c->x);
    return err;
}

static int reply_garbage(struct task *t, struct sim_call *c, const struct sim_reply *r)
{
    if (c->fate.dice & 1)
        return http_reply(t, c->x, 200, r->type, str_from(r->body.p, r->body.n / 2));
    return http_reply(t, c->x, 200, "text/html",
                      STR("<html><head><title>Welcome</title></head><body>It works</body></html>"));
}

/* The reply by gzip, in the task's arena. */
static struct str gzipped(struct task *t, struct str s)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)s.p, .avail_in = (uInt)s.n};
    check(deflateInit2(&z, 6, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    size_t most = deflateBound(&z, s.n);
    char *out = arena_alloc(task_arena(t), most);
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)most;
    check(deflate(&z, Z_FINISH) == Z_STREAM_END);
    check(deflateEnd(&z) == Z_OK);
    return str_from(out, most - z.avail_out);
}

static int reply_wrapped(struct task *t, struct sim_call *c, const struct sim_reply *r)
{
    unsigned kind = (unsigned)(c->fate.dice % 3);
    if (kind == 0)
        return http_reply(t, c->x, 201, r->type, r->body);
    if (kind == 1)
        return http_reply(t, c->x, 200, r->type, STR_JOIN(task_arena(t), STR("\uFEFF"), r->body));
    http_set_header(c->x, "Content-Encoding", STR("gzip"));
    return http_reply(t, c->x, 200, r->type, gzipped(t, r->body));
}

/* A long reply is not sent for hours. */
static int trickle(struct task *t, struct sim_call *c, const struct sim_reply *r)
{
    size_t bytes = r->body.n / TRICKLE_PIECES_MAX + 1;
    return reply_stream(t, c, r, bytes > TRICKLE_BYTES ? bytes : TRICKLE_BYTES, TRICKLE_MS);
}

static int reply_faulty(struct task *t, struct sim_call *c, const struct sim_reply *r)
{
    c->outcome = OUTCOME_FAULT;
    switch (c->fate.fault) {
    case FAULT_LIMITED:
        set_retry_after(t, c, c->sim->options.retry_after_s);
        return reply_error(t, c, 429, "rate_limit_exceeded",
                           "Rate limit reached by other clients.");
    case FAULT_ERROR:
        return reply_error(t, c, 500, "server_error", "The server had an error. Sorry about that.");
    case FAULT_OVERLOADED:
        return reply_error(t, c, 503, "overloaded", "The engine is currently overloaded.");
    case FAULT_TIMEOUT:
        return stall(t, c, r);
    case FAULT_CUT:
        return cut(t, c, r);
    case FAULT_GARBAGE:
        return reply_garbage(t, c, r);
    case FAULT_TRICKLE:
        return trickle(t, c, r);
    case FAULT_WRAPPED:
        return reply_wrapped(t, c, r);
    default: /* the body has the fault already */
        return reply_whole(t, c, r);
    }
}

/* A delayed reply was sent, or its client has gone. */
static void on_reply(void *sim, int err)
{
    struct sim *s = sim;
    sim_stats_end(&s->stats, err ? OUTCOME_GONE : OUTCOME_OK, FAULT_NONE);
}

int sim_call_deliver(struct task *t, struct sim_call *c, struct sim_usage usage,
                     const struct sim_reply *r)
{
    const struct sim_options *o = &c->sim->options;
    int64_t wait_ms = admit(t, c, usage);
    if (wait_ms)
        return refuse_limited(t, c, wait_ms);
    int64_t delay_ms = sim_fault_delay_ms(&c->fate, o->latency_ms, o->jitter_ms);
    if (delay_ms > 0 && c->fate.fault == FAULT_NONE && !r->stream) {
        c->asleep = true;
        return http_reply_later(t, c->x, delay_ms, 200, r->type, r->body, on_reply, c->sim);
    }
    if (delay_ms > 0 && c->fate.fault == FAULT_NONE)
        return reply_spread(t, c, r, delay_ms);
    if (delay_ms > 0 && c->fate.fault != FAULT_LIMITED) {
        int err = task_sleep(t, delay_ms);
        if (err)
            return err;
    }
    return c->fate.fault == FAULT_NONE ? reply_whole(t, c, r) : reply_faulty(t, c, r);
}

/* --- all of it --- */

/* As OpenAI wants it, or as other services do. */
static struct str key_of(const struct http_exchange *x)
{
    struct str auth = http_header(x, "Authorization"), alone = http_header(x, "api-key");
    if (auth.n > 7 && str_ieq(str_from(auth.p, 7), STR("Bearer ")))
        return str_trim(str_skip(auth, 7));
    return str_trim(alone.p ? alone : STR(""));
}

/* Finds the caller's key and counts the arrival. False when there is none or a wrong one. */
static bool find_key(struct task *t, struct sim_call *c)
{
    struct str key = key_of(c->x);
    if (key.n == 0 || (c->sim->keys && !map_get(c->sim->keys, key)))
        return false;
    c->key = sim_stats_key(&c->sim->stats, key);
    if (!c->key)
        return false;
    c->key->requests++;
    sim_window_add(&c->key->arrived, loop_now_ms(task_loop(t)), 0);
    return true;
}

static int answer_body(struct task *t, struct sim_call *c, sim_answer_fn *answer)
{
    const struct json *body;
    if (!find_key(t, c))
        return sim_call_refuse(t, c, 401, "invalid_api_key",
                               "You didn't provide an API key that this server knows. Send it as "
                               "Authorization: Bearer YOUR_KEY.");
    int err = http_body_json(t, c->x, &body);
    if (err == ERR_INVALID)
        return sim_call_refuse(t, c, 400, "invalid_json", task_error(t));
    return err ? err : answer(t, c, body);
}

int sim_call_run(struct task *t, struct sim *s, struct http_exchange *x, sim_answer_fn *answer)
{
    struct sim_call c = {.sim = s, .x = x, .number = ++s->count, .outcome = OUTCOME_OK};
    c.fate = sim_fault_pick(&s->options.faults, c.number);
    sim_stats_begin(&s->stats);
    /* A request whose client has gone ends at once, and is no longer in flight. */
    http_cancel_when_gone(x);
    int err = answer_body(t, &c, answer);
    if (c.asleep)
        return err;
    if (err)
        c.outcome = err == ERR_LIMIT ? OUTCOME_INVALID : OUTCOME_GONE;
    sim_stats_end(&s->stats, c.outcome, c.fate.fault);
    return err;
}
