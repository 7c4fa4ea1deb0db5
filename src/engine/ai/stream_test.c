/* Answers that are seen while they come in, from a service that streams well, badly, or not. */
#include <stdlib.h>

#include "engine/ai/ai_fixture.h"
#include "engine/ai/reply.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

#define STEPS_MAX  4
#define RESERVED   100 /* tokens of a request */
#define BODY_BYTES 65536
#define TIMEOUT_MS 1000

enum step {
    END,
    STREAM, /* the answer in events, with the tokens at the end */
    BARE,   /* the same without tokens */
    SLOW,   /* events that take longer than the timeout, but not each */
    BODY,   /* one JSON body */
    ERROR,  /* an event, then an error as an event */
    STALL,  /* an event, then nothing */
    WAITS,  /* an event, then comments for ever */
    SHORT,  /* an event, then the end of the reply */
    CUT,    /* an event, then the connection is cut */
    LONG,   /* more than an answer may have */
    /* others are statuses */
};

struct scenario {
    const char *name;
    int steps[STEPS_MAX];
    bool cancel; /* after the first text */
    /* what must come of it */
    int err, attempts, requests;
    int64_t tokens; /* that the permits were settled with */
    const char *seen, *error;

    /* what did */
    bool http2;
    struct site site;
    struct permits permits;
    struct http_client *client;
    struct task *task;
    int got, requested;
    struct ai_answer answer;
    struct str said, read;
    struct buf seen_all, last; /* texts as they were seen; the last request */
};

static struct metrics *metrics;

#define DELTA(text) "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]}\n\n"
#define STOP        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define USAGE       "data: {\"choices\":[],\"usage\":{\"total_tokens\":42}}\n\n"
#define DONE        "data: [DONE]\n\n"

/* Pieces, with a wait after each. */
static int send_pieces(struct task *t, struct http_exchange *x, const char *const *pieces,
                       int64_t wait_ms)
{
    int err = http_stream_begin(t, x, 200, "text/event-stream");
    for (; !err && *pieces; pieces++) {
        err = http_stream_write(t, x, str_of(*pieces));
        if (!err)
            err = task_sleep(t, wait_ms);
    }
    return err;
}

/* Begins an answer, and comes to no good end. */
static int spoil(struct task *t, struct http_exchange *x, enum step step)
{
    const char *const begin[] = {DELTA("mi"), NULL}, *const comment[] = {": wait\n\n"};
    int err = send_pieces(t, x, begin, 20);
    if (step == ERROR && !err)
        err = http_stream_write(t, x, STR("data: {\"error\":{\"message\":\"too busy\"}}\n\n"));
    for (int i = 0; (step == STALL || step == WAITS) && i < 200 && !err; i++) {
        err = task_sleep(t, 50);
        if (!err && step == WAITS)
            err = http_stream_write(t, x, str_of(*comment));
    }
    if (step != CUT)
        return err ? err : http_stream_end(t, x);
    http_abort(x);
    return err;
}

static int send_long(struct task *t, struct http_exchange *x)
{
    size_t n = AI_REPLY_BYTES_MAX / 4;
    char *text = memset(arena_zalloc(task_arena(t), n + 1), 'a', n);
    struct str event = str_printf(task_arena(t), DELTA("%s"), text);
    int err = http_stream_begin(t, x, 200, "text/event-stream");
    for (int i = 0; i < 5 && !err; i++)
        err = http_stream_write(t, x, event);
    return err ? err : http_stream_end(t, x);
}

static int act(struct task *t, struct http_exchange *x, int step)
{
    /* Cut within a character, and within lines. */
    static const char *const stream[] = {DELTA("mi"),
                                         "data: {\"choices\":[{\"delta\":{\"content\":"
                                         "\"c\xC3",
                                         "\xA9\"}}]}\n",
                                         "\n" STOP USAGE,
                                         DONE,
                                         NULL};
    static const char *const bare[] = {DELTA("mi"), DELTA("cé"), STOP DONE, NULL};
    static const char *const slow[] = {DELTA("m"), DELTA("i"), DELTA("c"),
                                       DELTA("é"), STOP USAGE, NULL};
    int err = 0;
    http_cancel_when_gone(x);
    switch (step) {
    case STREAM:
        err = send_pieces(t, x, stream, 20);
        return err ? err : http_stream_end(t, x);
    case BARE:
        err = send_pieces(t, x, bare, 20);
        return err ? err : http_stream_end(t, x);
    case SLOW:
        err = send_pieces(t, x, slow, TIMEOUT_MS / 2);
        return err ? err : http_stream_end(t, x);
    case BODY:
        return http_reply(t, x, 200, "application/json",
                          STR("{\"choices\":[{\"message\":{\"content\":\"micé\"}}],"
                              "\"usage\":{\"total_tokens\":42}}"));
    case ERROR:
    case STALL:
    case WAITS:
    case SHORT:
    case CUT:
        return spoil(t, x, (enum step)step);
    case LONG:
        return send_long(t, x);
    default:
        return http_reply(t, x, step, "application/json", STR("{\"error\":\"too busy\"}"));
    }
}

static int handle(struct task *t, struct http_exchange *x, void *ctx)
{
    struct scenario *s = ctx;
    struct str body;
    int err = http_body(t, x, &body);
    if (err)
        return err;
    buf_clear(&s->last);
    buf_add_str(&s->last, body);
    int step = s->requested < STEPS_MAX ? s->steps[s->requested] : END;
    s->requested++;
    return act(t, x, step ? step : 500);
}

static const struct http_route routes[] = {
    {"POST", "/v1/chat/completions", handle, BODY_BYTES},
};

static int write_request(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    (void)t, (void)arg;
    buf_clear(body);
    buf_add_lit(body, "{\"ask\":1}");
    *tokens = RESERVED;
    return 0;
}

static int read_answer(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    struct scenario *s = arg;
    const char *problem;
    struct str text = ai_reply_text(task_arena(t), body, tokens_used, &problem);
    if (!text.p)
        return task_fail(t, ERR_PROTO, "%s", problem);
    s->read = str_of(strndup(text.p, text.n));
    return 0;
}

static void see(void *arg, struct str text)
{
    struct scenario *s = arg;
    buf_printf(&s->seen_all, "%.*s|", text.n < 32 ? (int)text.n : 0, text.p);
    if (s->cancel)
        task_cancel(s->task);
}

static void ask_task(struct task *t, void *arg)
{
    struct scenario *s = arg;
    const struct ai_request q = {
        .write = write_request, .read = read_answer, .arg = s, .seen = see, .asks = &ai_for_run};
    struct ai_hand hand = {.busy = false};
    const char *url = arena_printf(task_arena(t), "http://127.0.0.1:%d/v1/", s->site.port);
    struct ai *ai = open_ai(s->client, &s->permits, metrics, url, TIMEOUT_MS);
    int64_t latency_us, tokens;
    s->task = t;
    s->got = ai_ask(t, ai, &q, &hand, &s->answer);
    s->said = str_of(strdup(task_error(t)));
    ai_averages(ai, &latency_us, &tokens);
    ok(latency_us == 0 && tokens == 0, "%s: the averages are those of other answers", s->name);
    ai_free(ai);
}

static void run(struct task *t, void *arg)
{
    struct scenario *s = arg;
    struct group g;
    buf_init(&s->seen_all);
    buf_init(&s->last);
    s->permits = (struct permits){.keys = 1};
    s->client = http_client_new(task_loop(t), &(struct http_client_options){.plain_h2 = s->http2});
    site_open_tcp(t, &s->site, (struct http_options){.http2 = s->http2}, routes, 1, s);
    group_init(&g, task_loop(t));
    check(task_go(&g, "ask", ask_task, s) == 0);
    check(group_join(t, &g) == 0);
    http_client_free(s->client);
    site_close(t, &s->site);
}

static const struct scenario scenarios[] = {
    {"a stream", {STREAM}, .attempts = 1, .requests = 1, .tokens = 42, .seen = "mi|micé|"},
    {"a stream without tokens",
     {BARE},
     .attempts = 1,
     .requests = 1,
     .tokens = RESERVED,
     .seen = "mi|micé|"},
    {"a stream that takes longer than a timeout",
     {SLOW},
     .attempts = 1,
     .requests = 1,
     .tokens = 42,
     .seen = "m|mi|mic|micé|"},
    {"a service that does not stream",
     {BODY},
     .attempts = 1,
     .requests = 1,
     .tokens = 42,
     .seen = ""},
    {"an error within a stream",
     {ERROR, STREAM},
     .attempts = 2,
     .requests = 2,
     .tokens = RESERVED + 42,
     .seen = "mi|mi|micé|"},
    {"a stream that stalls",
     {STALL, STREAM},
     .attempts = 2,
     .requests = 2,
     .tokens = RESERVED + 42,
     .seen = "mi|mi|micé|"},
    {"a stream that only waits",
     {WAITS, STREAM},
     .attempts = 2,
     .requests = 2,
     .tokens = RESERVED + 42,
     .seen = "mi|mi|micé|"},
    {"a stream that ends too early",
     {SHORT, STREAM},
     .attempts = 2,
     .requests = 2,
     .tokens = RESERVED + 42,
     .seen = "mi|mi|micé|"},
    {"a stream that is cut",
     {CUT, BODY},
     .attempts = 2,
     .requests = 2,
     .tokens = RESERVED + 42,
     .seen = "mi|"},
    {"a stream that is too long",
     {LONG, BODY},
     .attempts = 2,
     .requests = 2,
     .tokens = RESERVED + 42,
     .seen = NULL},
    {"503, then a stream",
     {503, STREAM},
     .attempts = 2,
     .requests = 2,
     .tokens = RESERVED + 42,
     .seen = "mi|micé|"},
    {"400",
     {400},
     .err = ERR_REFUSED,
     .requests = 1,
     .seen = "",
     .error = "the AI service refuses the request: too busy"},
    {"errors for ever",
     {ERROR, ERROR, ERROR, ERROR},
     .err = ERR_UNAVAILABLE,
     .requests = 4,
     .tokens = 4 * RESERVED,
     .seen = "mi|mi|mi|mi|",
     .error = "the AI service sent an error instead of an answer: too busy"},
    {"early ends for ever",
     {SHORT, SHORT, SHORT, SHORT},
     .err = ERR_UNAVAILABLE,
     .requests = 4,
     .tokens = 4 * RESERVED,
     .seen = "mi|mi|mi|mi|",
     .error = "the AI service cuts the connection"},
    {"a cancellation within a stream",
     {STALL},
     .cancel = true,
     .err = ERR_CANCELED,
     .requests = 1,
     .tokens = RESERVED,
     .seen = "mi|"},
};
#define SCENARIOS (sizeof scenarios / sizeof *scenarios)

static void look_at(struct scenario *s)
{
    is_int(s->got, s->err, "%s, HTTP/%d: %.*s", s->name, s->http2 ? 2 : 1, STR_ARG(s->said));
    is_int(s->requested, s->requests, "%s: requests", s->name);
    is_str(buf_str(&s->last),
           STR("{\"ask\":1,\"stream\":true,\"stream_options\":{\"include_usage\":true}}"),
           "%s: the request asks for a stream", s->name);
    is_int(s->permits.taken, s->permits.settled + s->permits.unused, "%s: permits", s->name);
    is_int(s->permits.tokens_used, s->tokens, "%s: tokens", s->name);
    if (s->seen)
        is_str(buf_str(&s->seen_all), str_of(s->seen), "%s: what was seen", s->name);
    if (s->error)
        is_str(s->said, str_of(s->error), "%s: what is said", s->name);
    if (!s->err) {
        is_int(s->answer.attempts, s->attempts, "%s: attempts", s->name);
        is_str(s->read, STR("micé"), "%s: the answer", s->name);
    }
    free((char *)(uintptr_t)s->said.p);
    free((char *)(uintptr_t)s->read.p);
    buf_release(&s->last);
    buf_release(&s->seen_all);
}

static void run_all(struct task *t, void *arg)
{
    struct scenario *all = arg;
    struct group g;
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < SCENARIOS; i++)
        check(task_go(&g, "scenario", run, &all[i]) == 0);
    check(group_join(t, &g) == 0);
}

/* By HTTP/1.1, and by HTTP/2, where pieces come on the stack of another task. */
static void try_all(bool http2)
{
    struct scenario all[SCENARIOS];
    memcpy(all, scenarios, sizeof all);
    for (size_t i = 0; i < SCENARIOS; i++)
        all[i].http2 = http2;
    tap_task(run_all, all, true);
    for (size_t i = 0; i < SCENARIOS; i++)
        look_at(&all[i]);
}

int main(void)
{
    metrics = metrics_open(-1, 1, 0);
    try_all(false);
    try_all(true);
    metrics_close(metrics);
    return tap_done();
}
