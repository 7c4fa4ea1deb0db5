/* Asking the AI: a service on the loop that does what a list of steps says, and a key pool that remembers. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/ai/ai_fixture.h"
#include "engine/ai/ai_private.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

#define STEPS_MAX  6
#define TOKENS     42 /* of the service's replies */
#define BODY_BYTES (1024 * 1024)
#define CANCEL_MS  100 /* shorter than the first back-off */

enum step {
    END,
    GOOD,     /* relevant, with a reason */
    EMPTY,    /* a reply without a verdict */
    GARBAGE,  /* no JSON */
    HALF,     /* half of the reply's JSON */
    ENDLESS,  /* more than a reply may have */
    STALL,    /* nothing */
    CUT,      /* the connection, before a reply */
    CUT_LATE, /* within a reply */
    REPEATS,  /* 400, and repeats the key */
    RETRY,    /* 429 that asks for 7 s */
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
    struct keyring keyring;
    struct http_client *client;
    int got, seen;
    struct ai_verdict verdict;
    struct str said, reason;
    struct buf last, auth;
};

static struct metrics *metrics;

#define REPLY                                                                                      \
    "{\"choices\":[{\"message\":{\"content\":\"{\\\"relevant\\\":true,\\\"reason\\\":"             \
    "\\\"mice\\\"}\"}}],"                                                                          \
    "\"usage\":{\"total_tokens\":42}}"

static int reply_status(struct task *t, struct http_exchange *x, int status)
{
    return http_reply(t, x, status, "application/json",
                      STR("{\"error\":{\"message\":\"too\\nmany  words\"}}"));
}

static int cut(struct task *t, struct http_exchange *x, bool late)
{
    int err = late ? http_stream_begin(t, x, 200, "application/json") : 0;
    if (late && !err)
        err = http_stream_write(t, x, STR("{\"choices\":"));
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
                          STR("{\"choices\":[],\"usage\":{\"total_tokens\":42}}"));
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

static const struct ai_paper paper = {STR("10.1/x"), STR("On mice"), STR("We report …")};

static int given(struct task *t, void *arg, struct ai_paper *out)
{
    (void)t;
    *out = *(const struct ai_paper *)arg;
    return 0;
}

static void judge(struct task *t, struct scenario *s, struct ai *ai)
{
    const struct ai_source source = {given, (void *)(uintptr_t)&paper};
    const struct ai_question *q = ai_question_new(task_arena(t), ai, STR("Mice?"));
    int64_t old = s->deadline_ms ? task_deadline(t, s->deadline_ms) : TIME_NEVER;
    s->verdict.attempts = -1;
    bool in_hand = false;
    s->got = ai_judge(t, ai, q, &source, &in_hand, &s->verdict);
    check(in_hand == (s->got == 0)); /* a verdict is, and nothing else */
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
static void judge_task(struct task *t, void *arg)
{
    struct scenario *s = arg;
    struct group g;
    struct canceling c = {t, s};
    const char *url = arena_printf(task_arena(t), "http://127.0.0.1:%d/v1/", s->site.port);
    struct ai *ai = open_ai(t, s->client, &s->keyring, metrics, url, s->timeout_ms);
    group_init(&g, task_loop(t));
    if (s->cancel)
        check(task_go(&g, "cancel", cancel_later, &c) == 0);
    judge(t, s, ai);
    int ignored = group_join(t, &g); /* it is cancelled, as it should be */
    (void)ignored;
    s->said = str_of(strdup(task_error(t)));
    s->reason = str_of(strdup(s->verdict.reason.p ? s->verdict.reason.p : ""));
    ai_free(ai);
}

static void run(struct task *t, void *arg)
{
    struct scenario *s = arg;
    struct group g;
    buf_init(&s->last);
    buf_init(&s->auth);
    s->timeout_ms = s->timeout_ms ? s->timeout_ms : 15000;
    s->keyring = (struct keyring){.keys = s->keys, .prefix = s->prefix};
    s->client = http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    site_open_tcp(t, &s->site, (struct http_options){.behind_tls = false}, routes, 1, s);
    if (s->requests == 0 && s->unused) /* nobody is there: the port answers no more */
        check(shutdown(s->site.fd, SHUT_RDWR) == 0);
    group_init(&g, task_loop(t));
    check(task_go(&g, "judge", judge_task, s) == 0);
    check(group_join(t, &g) == 0);
    http_client_free(s->client);
    site_close(t, &s->site);
}

#define AFTER ", after 4 attempts"

static struct scenario scenarios[] = {
    {"a verdict", {GOOD}, 2, .attempts = 1, .requests = 1, .settled = 1, .tokens_known = TOKENS},
    {"500, then a verdict",
     {500, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"503, 408, 429, then a verdict",
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
     .err = ERR_REFUSED,
     .requests = 4,
     .settled = 4,
     .reserved = 4,
     .error = "the AI service answered with status 500" AFTER},
    {"429 without a time",
     {429, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .cooled = 1,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"garbage, then a verdict",
     {GARBAGE, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"half a reply, then a verdict",
     {HALF, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"no verdict, then one",
     {EMPTY, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = 2 * TOKENS},
    {"never a verdict",
     {EMPTY, EMPTY, EMPTY, EMPTY, GOOD},
     2,
     .err = ERR_REFUSED,
     .requests = 4,
     .settled = 4,
     .tokens_known = 4 * TOKENS,
     .error = "the AI service sent a reply that has no verdict in it" AFTER},
    {"too long a reply, then a verdict",
     {ENDLESS, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"a cut, then a verdict",
     {CUT, GOOD},
     2,
     .attempts = 2,
     .requests = 2,
     .settled = 2,
     .tokens_known = TOKENS,
     .reserved = 1},
    {"a cut within a reply, then a verdict",
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
     .err = ERR_REFUSED,
     .requests = 4,
     .settled = 4,
     .reserved = 4,
     .error = "the AI service cut the connection" AFTER},
    {"a stall, then a verdict",
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
     .err = ERR_REFUSED,
     .requests = 4,
     .settled = 4,
     .reserved = 4,
     .error = "the AI service did not answer in time" AFTER},
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
     .err = ERR_REFUSED,
     .requests = 4,
     .settled = 4,
     .refused = 4,
     .error = "the AI service refuses our keys"},
    {"the only key is bad",
     {401, GOOD},
     1,
     .err = ERR_UNAVAILABLE,
     .requests = 1,
     .settled = 1,
     .refused = 1,
     .error = "there is no key"},
    {"no key", {GOOD}, 0, .err = ERR_UNAVAILABLE, .error = "there is no key"},
    {"400",
     {400, GOOD},
     2,
     .err = ERR_REFUSED,
     .requests = 1,
     .settled = 1,
     .error = "the AI service refuses the request: too many  words"},
    {"404", {404, GOOD}, 2, .err = ERR_REFUSED, .requests = 1, .settled = 1},
    {"413", {413, GOOD}, 2, .err = ERR_REFUSED, .requests = 1, .settled = 1},
    {"422", {422, GOOD}, 2, .err = ERR_REFUSED, .requests = 1, .settled = 1},
    {"302", {302, GOOD}, 2, .err = ERR_REFUSED, .requests = 1, .settled = 1},
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
     .err = ERR_REFUSED,
     .unused = 1,
     .error = "the AI service cannot be called: its address or a key is malformed"},
    {"nobody there",
     {GOOD},
     2,
     .err = ERR_REFUSED,
     .unused = 4,
     .error = "the AI service cannot be reached" AFTER},
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

static void report_verdict(const struct scenario *s)
{
    is_int(s->verdict.attempts, s->attempts, "%s: attempts", s->name);
    ok(s->verdict.relevant, "%s: relevant", s->name);
    is_str(s->reason, STR("mice"), "%s: reason", s->name);
    is_int(s->verdict.tokens, s->keyring.tokens_used, "%s: the tokens of all attempts", s->name);
    ok(s->verdict.latency_us > 0, "%s: latency", s->name);
}

static void report(struct scenario *s)
{
    const struct keyring *k = &s->keyring;
    is_int(s->got, s->err, "%s: outcome", s->name);
    if (!s->err)
        report_verdict(s);
    else
        is_int(s->verdict.attempts, -1, "%s: no verdict is made up", s->name);
    if (s->error)
        is_str(s->said, str_of(s->error), "%s: what the user is told", s->name);
    is_int(s->seen, s->requests, "%s: requests", s->name);
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
        failed += s->err == ERR_REFUSED;
        requests += s->keyring.taken - stopped;
        tokens += s->keyring.tokens_used;
    }
    requests += named("cancelled between calls")->keyring.taken; /* its only call was over */
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
    is_int(named("503, 408, 429, then a verdict")->keyring.cool_ms, 7000, "Retry-After");
    is_int(named("429 without a time")->keyring.cool_ms, 0, "no Retry-After");
    is_int(named("a bad key, then a good one")->keyring.refused_status, 401, "what was refused");
    is_str(buf_str(&named("a bad key, then a good one")->auth), STR("Bearer sk-secret-2"),
           "another key at once");
    ok(str_find(buf_str(&named("a verdict")->last), STR("Title: On mice\\n\\nAbstract: We")) > 0,
       "the paper was sent");
    test_metrics();
    metrics_close(metrics);
    buf_release(&log);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    check(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void test_reload(struct task *t, const struct ai_options *o, struct config *c)
{
    struct arena *a = task_arena(t);
    char path[] = "/tmp/millrace-prompt-XXXXXX";
    const char *why = NULL;
    struct ai *ai;
    int fd = mkstemp(path);
    check(fd >= 0 && close(fd) == 0);
    write_file(path, "Old: {{question}}");
    c->ai_prompt_file = path;
    check(ai_new(a, o, &ai, &why) == 0);
    const char *before = arena_strdup(a, ai_prompt_mark(ai));
    const struct ai_question *old = ai_question_new(a, ai, STR("Wet?"));
    write_file(path, "New: {{question}}");
    is_int(ai_reload(a, ai, &why), 0, "a prompt is read again");
    const struct ai_question *q = ai_question_new(a, ai, STR("Wet?"));
    ok(str_find(q->head, STR("New: Wet?")) > 0, "for questions that are made from now on");
    ok(str_find(old->head, STR("Old: Wet?")) > 0, "others stay as they are");
    const char *mark = arena_strdup(a, ai_prompt_mark(ai));
    ok(strlen(mark) == 12 && strcmp(mark, before) != 0, "the two are told apart");
    write_file(path, "None");
    is_int(ai_reload(a, ai, &why), ERR_INVALID, "one that cannot be used");
    ok(strstr(why, "has no {{question}}") != NULL, "says why");
    check(unlink(path) == 0);
    is_int(ai_reload(a, ai, &why), ERR_IO, "one that is gone");
    is_str(str_of(ai_prompt_mark(ai)), str_of(mark), "leave the last good one");
    ai_free(ai);
}

static void test_new(struct task *t, void *arg)
{
    (void)arg;
    struct arena *a = task_arena(t);
    struct config c;
    const char *why = "";
    struct ai *ai = NULL;
    struct metrics *m = metrics_open(-1, 1, 0);
    check(config_parse(a, "none", STR_NULL, NULL, &c, &why) == 0);
    struct ai_options o = {.config = &c, .metrics = m};
    is_int(ai_new(a, &o, &ai, &why), ERR_INVALID, "no address");
    is_str(str_of(why), STR("ai.url is empty"), "and why");
    c.ai_url = "http://127.0.0.1/v1";
    c.ai_prompt_file = "/nowhere/prompt.txt";
    is_int(ai_new(a, &o, &ai, &why), ERR_IO, "no prompt file");
    is_str(str_of(why), STR("ai.prompt_file: /nowhere/prompt.txt: No such file or directory"),
           "and why");
    ok(!ai, "nothing was made");
    test_reload(t, &o, &c);
    metrics_close(m);
}

static void release(struct scenario *s)
{
    buf_release(&s->last);
    buf_release(&s->auth);
    free((char *)(uintptr_t)s->said.p);
    free((char *)(uintptr_t)s->reason.p);
}

int main(void)
{
    tap_task(test_new, NULL, false);
    tap_task(test_scenarios, NULL, true);
    for (size_t i = 0; i < SCENARIOS; i++)
        release(&scenarios[i]);
    return tap_done();
}
