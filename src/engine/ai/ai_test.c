/* Asking the AI: a service on the loop that does what a list of steps says, and a key pool that
 * remembers. All scenarios go on at the same time. */
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "engine/ai/ai_fixture.h"
#include "engine/ai/reply.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

#define STEPS_MAX  6
#define TOKENS     42  /* of the service's replies */
#define RESERVED   100 /* of a request */
#define CROWD      50
#define BODY_BYTES (1024 * 1024)
#define CANCEL_MS  100 /* shorter than the first back-off */

enum step {
    END,
    GOOD,      /* an answer */
    EMPTY,     /* a reply without one */
    GARBAGE,   /* no JSON */
    HALF,      /* half of the reply's JSON */
    ENDLESS,   /* more than a reply may have */
    STALL,     /* nothing */
    CUT,       /* the connection, before a reply */
    CUT_LATE,  /* within a reply */
    REPEATS,   /* 400, and repeats the key */
    RETRY,     /* 429 that asks for 7 s */
    CREATED,   /* an answer with status 201 */
    ELSEWHERE, /* 307 to another host */
    LEAKS,     /* an answer that cannot be read, and repeats the key */
    /* others are statuses */
};

struct scenario {
    const char *name;
    int steps[STEPS_MAX];
    int64_t keys;
    const char *prefix;
    int64_t timeout_ms, deadline_ms; /* 0: long, none */
    bool cancel;                     /* soon after the first request */
    /* what must come of it */
    int err, attempts, requests, settled, unused, cooled, refused;
    int64_t tokens_known; /* besides the reserved ones */
    int64_t reserved;     /* how many permits are settled for what was reserved */
    const char *error;    /* NULL: whatever */

    /* what did */
    struct site site;
    struct permits permits;
    struct http_client *client;
    int got, seen;
    struct ai_answer answer;
    struct str said, read;
    struct buf last, auth;
};

static struct metrics *metrics;
static struct arena arena;

#define REPLY "{\"answer\":\"mice\",\"usage\":{\"total_tokens\":42}}"

static int reply_status(struct task *t, struct http_exchange *x, int status)
{
    return http_reply(t, x, status, "application/json",
                      STR("{\"error\":{\"message\":\"too\\nmany  words\"}}"));
}

static int cut(struct task *t, struct http_exchange *x, bool late)
{
    int err = late ? http_stream_begin(t, x, 200, "application/json") : 0;
    if (late && !err)
        err = http_stream_write(t, x, STR("{\"answer\":"));
    http_abort(x);
    return err;
}

static int stall(struct task *t, struct http_exchange *x)
{
    http_cancel_when_gone(x);
    int err = task_sleep(t, 20000);
    return err ? err : reply_status(t, x, 500);
}

static int endless(struct task *t, struct http_exchange *x)
{
    size_t n = AI_REPLY_BYTES_MAX + 1;
    return http_reply(t, x, 200, "application/json",
                      str_from(memset(arena_alloc(task_arena(t), n), ' ', n), n));
}

static int act(struct task *t, struct http_exchange *x, int step, struct str auth)
{
    switch (step) {
    case GOOD:
        return http_reply(t, x, 200, "application/json", STR(REPLY));
    case EMPTY:
        return http_reply(t, x, 200, "application/json",
                          STR("{\"answers\":[],\"usage\":{\"total_tokens\":42}}"));
    case GARBAGE:
        return http_reply(t, x, 200, "text/html", STR("<html>It works</html>"));
    case HALF:
        return http_reply(t, x, 200, "application/json", str_from(REPLY, sizeof(REPLY) / 2));
    case ENDLESS:
        return endless(t, x);
    case STALL:
        return stall(t, x);
    case CUT:
    case CUT_LATE:
        return cut(t, x, step == CUT_LATE);
    case REPEATS:
        return http_reply(t, x, 400, "application/json",
                          str_printf(task_arena(t), "{\"error\":\"bad %.*s\"}", STR_ARG(auth)));
    case RETRY:
        http_set_header(x, "Retry-After", STR("7"));
        return reply_status(t, x, 429);
    case CREATED:
        return http_reply(t, x, 201, "application/json", STR(REPLY));
    case ELSEWHERE:
        http_set_header(x, "Location", STR("https://me:pw@other.example:8443/v2/chat?key=hidden"));
        return reply_status(t, x, 307);
    case LEAKS:
        return http_reply(t, x, 200, "application/json",
                          str_printf(task_arena(t), "{\"leak\":\"%.*s\"}", STR_ARG(auth)));
    default:
        return reply_status(t, x, step);
    }
}

static int handle(struct task *t, struct http_exchange *x, void *ctx)
{
    struct scenario *s = ctx;
    struct str body, auth = http_header(x, "Authorization");
    int err = http_body(t, x, &body);
    if (err)
        return err;
    buf_clear(&s->last);
    buf_clear(&s->auth);
    buf_add_str(&s->last, body);
    buf_add_str(&s->auth, auth);
    int step = s->seen < STEPS_MAX ? s->steps[s->seen] : END;
    s->seen++;
    return act(t, x, step ? step : 500, auth);
}

static const struct http_route routes[] = {
    {"POST", "/v1/chat/completions", handle, BODY_BYTES},
};

static struct str request_of(struct arena *a, const char *name)
{
    return str_printf(a, "{\"ask\":\"%s\"}", name);
}

/* Writes the page only after a wait, as a caller does that must fetch something first. */
static int write_request(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    struct scenario *s = arg;
    int err = task_yield(t);
    if (err)
        return err;
    buf_clear(body);
    buf_add_str(body, request_of(task_arena(t), s->name));
    *tokens = RESERVED;
    return 0;
}

static int read_answer(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    struct scenario *s = arg;
    const struct json *reply = ai_reply_parse(task_arena(t), body, tokens_used);
    struct str answer = json_str(json_get(reply, "answer"));
    struct str leak = json_str(json_get(reply, "leak"));
    if (leak.p)
        return task_fail(t, ERR_PROTO, "an error: %.*s", STR_ARG(leak));
    if (!answer.p)
        return task_fail(t, ERR_PROTO, "a reply without an answer");
    s->read = str_of(strndup(answer.p, answer.n));
    return 0;
}

static void ask_for(struct task *t, struct scenario *s, struct ai *ai)
{
    const struct ai_request q = {
        .write = write_request, .read = read_answer, .arg = s, .asks = &ai_for_run};
    int64_t old = s->deadline_ms ? task_deadline(t, s->deadline_ms) : TIME_NEVER;
    s->answer.attempts = -1;
    struct ai_hand hand = {.busy = false};
    s->got = ai_ask(t, ai, &q, &hand, &s->answer);
    check(hand.busy == (s->got == 0)); /* an answer is, and nothing else */
    task_deadline_restore(t, old);
}

struct canceling {
    struct task *task;
    const struct scenario *scenario;
};

static void cancel_later(struct task *t, void *arg)
{
    struct canceling *c = arg;
    while (c->scenario->seen == 0)
        check(task_sleep(t, 1) == 0);
    check(task_sleep(t, CANCEL_MS) == 0);
    task_cancel(c->task);
}

/* On its own: the scenario's task is the one that is cancelled, not the one that cleans up. */
static void ask_task(struct task *t, void *arg)
{
    struct scenario *s = arg;
    struct group g;
    struct canceling c = {t, s};
    const char *url = arena_printf(task_arena(t), "http://127.0.0.1:%d/v1/", s->site.port);
    struct ai *ai = open_ai(s->client, &s->permits, metrics, url, s->timeout_ms);
    group_init(&g, task_loop(t));
    if (s->cancel)
        check(task_go(&g, "cancel", cancel_later, &c) == 0);
    ask_for(t, s, ai);
    int ignored = group_join(t, &g); /* it is cancelled, as it should be */
    (void)ignored;
    s->said = str_of(strdup(task_error(t)));
    ai_free(ai);
}

static void run(struct task *t, void *arg)
{
    struct scenario *s = arg;
    struct group g;
    buf_init(&s->last);
    buf_init(&s->auth);
    s->timeout_ms = s->timeout_ms ? s->timeout_ms : 15000;
    s->permits = (struct permits){.keys = s->keys, .prefix = s->prefix};
    s->client = http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    site_open_tcp(t, &s->site, (struct http_options){.behind_tls = false}, routes, 1, s);
    if (s->requests == 0 && s->unused) /* the port answers no more */
        check(shutdown(s->site.fd, SHUT_RDWR) == 0);
    group_init(&g, task_loop(t));
    check(task_go(&g, "ask", ask_task, s) == 0);
    check(group_join(t, &g) == 0);
    http_client_free(s->client);
    site_close(t, &s->site);
}

static struct scenario scenarios[] = {
    {"an answer", {GOOD}, 2, .attempts = 1, .requests = 1, .settled = 1, .tokens_known = TOKENS},
    {"500, then an answer",
     {500, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"503, 408, 429, then an answer",
     {503, 408, RETRY, GOOD},
     2,
     .attempts = 4,
     .requests = 4,
     .settled = 4,
     .cooled = 1,
     .tokens_known = TOKENS,
     .reserved = 3},
    {"500 for ever",
     {500, 500, 500, 500, GOOD},
     2,
     .err = ERR_UNAVAILABLE,
     .requests = 4,
     .settled = 4,
     .reserved = 4,
     .error = "the AI service answers with status 500: too many  words"},
    {"429 without a time",
     {429, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .cooled = 1,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"garbage, then an answer",
     {GARBAGE, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"half a reply, then an answer",
     {HALF, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"no answer, then one",
     {EMPTY, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = 2 * TOKENS},
    {"never an answer",
     {EMPTY, EMPTY, EMPTY, EMPTY, GOOD},
     2,
     .err = ERR_UNAVAILABLE,
     .requests = 4,
     .settled = 4,
     .tokens_known = 4 * TOKENS,
     .error = "the AI service sent a reply without an answer"},
    {"too long a reply, then an answer",
     {ENDLESS, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"a cut, then an answer",
     {CUT, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"a cut within a reply, then an answer",
     {CUT_LATE, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"cuts for ever",
     {CUT, CUT, CUT, CUT, GOOD},
     2,
     .err = ERR_UNAVAILABLE,
     .requests = 4,
     .settled = 4,
     .reserved = 4,
     .error = "the AI service cuts the connection"},
    {"a stall, then an answer",
     {STALL, GOOD},
     2,
     .timeout_ms = 600,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"stalls for ever",
     {STALL, STALL, STALL, STALL, GOOD},
     2,
     .timeout_ms = 600,
     .err = ERR_UNAVAILABLE,
     .requests = 4,
     .settled = 4,
     .reserved = 4,
     .error = "the AI service does not answer in time"},
    {"a bad key, then a good one",
     {401, GOOD},
     2,
     .attempts = 1,
     .requests = 2,
     .settled = 2,
     .refused = 1,
     .tokens_known = TOKENS},
    {"three bad keys, and four attempts",
     {401, 500, 403, 500, 401, GOOD},
     9,
     .attempts = 3,
     .requests = 6,
     .settled = 6,
     .refused = 3,
     .tokens_known = TOKENS,
     .reserved = 2},
    {"403 for ever",
     {403, 403, 403, 403, 403, 403},
     9,
     .err = ERR_UNAVAILABLE,
     .requests = 4,
     .settled = 4,
     .refused = 4,
     .error = "the AI service refuses the keys it gets"},
    {"401 for ever",
     {401, 401, 401, 401, 401, GOOD},
     6,
     .attempts = 1,
     .requests = 6,
     .settled = 6,
     .refused = 5,
     .tokens_known = TOKENS},
    {"the only key is bad",
     {401, GOOD},
     1,
     .deadline_ms = 700,
     .err = ERR_TIMEOUT,
     .requests = 1,
     .settled = 1,
     .refused = 1},
    {"no key", {GOOD}, 0, .deadline_ms = 700, .err = ERR_TIMEOUT},
    {"400",
     {400, GOOD},
     2,
     .err = ERR_REFUSED,
     .requests = 1,
     .settled = 1,
     .error = "the AI service refuses the request: too many  words"},
    {"404 for ever", {404, 404, 404, 404}, 2, .err = ERR_UNAVAILABLE, .requests = 4, .settled = 4},
    {"402, then an answer",
     {402, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS},
    {"413", {413, GOOD}, 2, .err = ERR_REFUSED, .requests = 1, .settled = 1},
    {"422", {422, GOOD}, 2, .err = ERR_REFUSED, .requests = 1, .settled = 1},
    {"302 for ever", {302, 302, 302, 302}, 2, .err = ERR_UNAVAILABLE, .requests = 4, .settled = 4},
    {"a redirect is not followed",
     {ELSEWHERE, ELSEWHERE, ELSEWHERE, ELSEWHERE, GOOD},
     2,
     .err = ERR_UNAVAILABLE,
     .requests = 4,
     .settled = 4,
     .error = "the AI service redirects to other.example:8443: the settings must name the address "
              "that answers"},
    {"201", {CREATED}, 2, .attempts = 1, .requests = 1, .settled = 1, .tokens_known = TOKENS},
    {"a reply that repeats the key",
     {LEAKS, LEAKS, LEAKS, LEAKS},
     2,
     .err = ERR_UNAVAILABLE,
     .requests = 4,
     .settled = 4,
     .reserved = 4,
     .error = "the AI service sent an error that repeats the key"},
    {"a complaint that repeats the key",
     {REPEATS, GOOD},
     2,
     .err = ERR_REFUSED,
     .requests = 1,
     .settled = 1,
     .error = "the AI service refuses the request: status 400"},
    {"a key that cannot be sent",
     {GOOD},
     2,
     .prefix = "sk-secret\n",
     .err = ERR_UNAVAILABLE,
     .unused = 4,
     .error = "the AI service cannot be called: its address or a key is malformed"},
    {"no service there",
     {GOOD},
     2,
     .err = ERR_UNAVAILABLE,
     .unused = 4,
     .error = "the AI service cannot be reached: http://127.0.0.1:PORT: no connection: Connection "
              "refused"},
    {"cancelled in a call",
     {STALL, GOOD},
     2,
     .cancel = true,
     .err = ERR_CANCELED,
     .requests = 1,
     .settled = 1,
     .reserved = 1},
    {"cancelled between calls",
     {500, GOOD},
     2,
     .cancel = true,
     .err = ERR_CANCELED,
     .requests = 1,
     .settled = 1,
     .reserved = 1},
    {"out of time in a call",
     {STALL, GOOD},
     2,
     .deadline_ms = 200,
     .err = ERR_TIMEOUT,
     .requests = 1,
     .settled = 1,
     .reserved = 1},
    {"out of time between calls",
     {500, GOOD},
     2,
     .deadline_ms = 240,
     .err = ERR_TIMEOUT,
     .requests = 1,
     .settled = 1,
     .reserved = 1},
};
#define SCENARIOS (sizeof scenarios / sizeof *scenarios)

static void report_answer(const struct scenario *s)
{
    is_int(s->answer.attempts, s->attempts, "%s: attempts", s->name);
    is_str(s->read, STR("mice"), "%s: the answer was read", s->name);
    is_int(s->answer.tokens, s->permits.tokens_used, "%s: the tokens of all attempts", s->name);
    ok(s->answer.latency_us > 0, "%s: latency", s->name);
}

/* The text that must have been told, with the port of the service. */
static struct str told(const struct scenario *s)
{
    struct str text = str_of(s->error);
    ptrdiff_t at = str_find(text, STR("PORT"));
    if (at < 0)
        return text;
    return str_printf(&arena, "%.*s%d%s", (int)at, text.p, s->site.port, text.p + at + 4);
}

static void report(struct scenario *s)
{
    const struct permits *k = &s->permits;
    is_int(s->got, s->err, "%s: outcome", s->name);
    if (!s->err)
        report_answer(s);
    else
        is_int(s->answer.attempts, -1, "%s: no answer is made up", s->name);
    if (s->error)
        is_str(s->said, told(s), "%s: what the user is told", s->name);
    is_int(s->seen, s->requests, "%s: requests", s->name);
    if (s->seen)
        is_str(buf_str(&s->last), request_of(&arena, s->name), "%s: the request was sent", s->name);
    is_int(k->settled, s->settled, "%s: permits settled", s->name);
    is_int(k->unused, s->unused, "%s: permits given back", s->name);
    is_int(k->taken, k->settled + k->unused, "%s: no permit is forgotten", s->name);
    is_int(k->cooled, s->cooled, "%s: keys that rest", s->name);
    is_int(k->refused, s->refused, "%s: keys refused", s->name);
    is_int(k->tokens_used, s->tokens_known + s->reserved * k->tokens_reserved, "%s: tokens",
           s->name);
    ok(str_find(s->said, STR("secret")) < 0, "%s: no key is told", s->name);
}

static struct scenario *named(const char *name)
{
    struct scenario *s = scenarios;
    while (strcmp(s->name, name) != 0)
        check(++s < scenarios + SCENARIOS);
    return s;
}

static int64_t rendered(const char *name)
{
    struct buf b;
    buf_init(&b);
    metrics_render(metrics, &b);
    int64_t v = -1;
    for (struct str rest = buf_str(&b); rest.p;) {
        struct str line = str_cut(&rest, '\n');
        ptrdiff_t blank = str_find(line, STR(" "));
        if (str_starts(line, str_of(name)) && blank > 0)
            check(str_to_i64(str_from(line.p + blank + 1, line.n - (size_t)blank - 1), &v));
    }
    buf_release(&b);
    return v;
}

static void test_metrics(void)
{
    int64_t good = 0, failed = 0, requests = 0, tokens = 0;
    for (size_t i = 0; i < SCENARIOS; i++) {
        const struct scenario *s = &scenarios[i];
        bool stopped = s->err == ERR_CANCELED || (s->err == ERR_TIMEOUT && s->steps[0] == STALL);
        good += s->err == 0;
        failed += s->err == ERR_REFUSED || s->err == ERR_UNAVAILABLE;
        requests += s->permits.taken - stopped;
        tokens += s->permits.tokens_used;
    }
    requests += named("cancelled between calls")->permits.taken; /* its only call was over */
    is_int(rendered("millrace_ai_calls_total{outcome=\"ok\""), good, "calls that are fine");
    is_int(rendered("millrace_ai_calls_total{outcome=\"failed\""), failed, "calls that failed");
    is_int(rendered("millrace_ai_calls_total{outcome=\"retry\""), requests - good - failed,
           "calls that were tried again");
    is_int(rendered("millrace_ai_tokens_total"), tokens, "tokens");
    is_int(rendered("millrace_ai_latency_seconds_count"), good, "latencies");
}

static void test_scenarios(struct task *t, void *arg)
{
    (void)arg;
    struct group g;
    struct buf log;
    buf_init(&log);
    log_setup(LOG_DEBUG, LOG_TEXT, "test");
    log_capture(&log);
    metrics = metrics_open(-1, 1, 0);
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < SCENARIOS; i++)
        check(task_go(&g, "scenario", run, &scenarios[i]) == 0);
    check(group_join(t, &g) == 0);
    log_capture(NULL);
    for (size_t i = 0; i < SCENARIOS; i++)
        report(&scenarios[i]);
    ok(str_find(buf_str(&log), STR("secret")) < 0, "no key is logged");
    is_int(named("503, 408, 429, then an answer")->permits.cool_ms, 7000, "Retry-After");
    is_int(named("429 without a time")->permits.cool_ms, 0, "no Retry-After");
    is_int(named("a bad key, then a good one")->permits.refused_status, 401, "what was refused");
    is_str(buf_str(&named("a bad key, then a good one")->auth), STR("Bearer sk-secret-2"),
           "another key at once");
    test_metrics();
    metrics_close(metrics);
    buf_release(&log);
}

/* --- one page for all --- */

struct crowd {
    struct ai *ai;
    int next, wrong;
};

struct crowd_member {
    int number;
    struct str got;
};

static int write_number(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    int err = task_yield(t);
    if (err)
        return err;
    buf_clear(body);
    buf_printf(body, "%d", ((const struct crowd_member *)arg)->number);
    *tokens = RESERVED;
    return 0;
}

static int read_number(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    (void)t, (void)tokens_used;
    ((struct crowd_member *)arg)->got = body;
    return 0;
}

static void ask_number(struct task *t, void *arg)
{
    struct crowd *c = arg;
    struct crowd_member m = {.number = c->next++};
    const struct ai_request q = {
        .write = write_number, .read = read_number, .arg = &m, .asks = &ai_for_run};
    struct ai_answer answer;
    struct ai_hand hand = {.busy = false};
    check(ai_ask(t, c->ai, &q, &hand, &answer) == 0);
    c->wrong += !str_eq(m.got, str_int(task_arena(t), m.number));
}

static int echo(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str body;
    int err = http_body(t, x, &body);
    return err ? err : http_reply(t, x, 200, "application/json", body);
}

static void test_shared_page(struct task *t, void *arg)
{
    (void)arg;
    static const struct http_route echoes[] = {{"POST", "/chat/completions", echo, BODY_BYTES}};
    struct permits keys = {.keys = 1};
    struct site site;
    struct group g;
    struct metrics *m = metrics_open(-1, 1, 0);
    struct http_client *client =
        http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    site_open_tcp(t, &site, (struct http_options){.behind_tls = false}, echoes, 1, NULL);
    const char *url = arena_printf(task_arena(t), "http://127.0.0.1:%d", site.port);
    struct crowd c = {.ai = open_ai(client, &keys, m, url, 15000)};
    group_init(&g, task_loop(t));
    for (int i = 0; i < CROWD; i++)
        check(task_go(&g, "ask", ask_number, &c) == 0);
    check(group_join(t, &g) == 0);
    is_int(c.wrong, 0, "no task sends the request of another");
    ai_free(c.ai);
    http_client_free(client);
    site_close(t, &site);
    metrics_close(m);
}

static void release(struct scenario *s)
{
    buf_release(&s->last);
    buf_release(&s->auth);
    free((char *)(uintptr_t)s->said.p);
    free((char *)(uintptr_t)s->read.p);
}

int main(void)
{
    arena_init(&arena);
    tap_task(test_shared_page, NULL, true);
    tap_task(test_scenarios, NULL, true);
    for (size_t i = 0; i < SCENARIOS; i++)
        release(&scenarios[i]);
    arena_release(&arena);
    return tap_done();
}
