/* HTTP/2 with prior knowledge: requests and replies, limits, ends of all kinds. */
#include "base/log.h"
#include "tests/tap.h"
#include "wire/http2/http2_link.h"
#include "wire/http_server/http2_harness.h"

#define LARGE_BYTES (3 << 20)

struct notes { /* what handlers report */
    int began, ended;
    int err;
};

static int hello(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "application/json", STR("{\"a\":1}"));
}

static int echo(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str body;
    int err = http_body(t, x, &body);
    return err ? err : http_reply(t, x, 200, "text/plain", body);
}

static int read_json(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    const struct json *body;
    int err = http_body_json(t, x, &body);
    return err ? err : http_reply(t, x, 200, "text/plain", json_str(json_get(body, "a")));
}

static int mirror(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str q = STR("");
    (void)http_query(x, "q", 0, &q);
    struct str text =
        str_printf(task_arena(t), "%.*s|%.*s|%.*s|%.*s|%.*s|%.*s", STR_ARG(http_method(x)),
                   STR_ARG(http_param(x, "name")), STR_ARG(q), STR_ARG(http_peer(x)),
                   STR_ARG(http_header(x, "Host")), STR_ARG(http_header(x, "X-One")));
    http_set_header(x, "X-Two", STR("2"));
    return http_reply(t, x, 200, "text/plain", text);
}

static int cookies(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "text/plain", http_cookie(x, "b"));
}

static int missing(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)x, (void)ctx;
    return task_fail(t, ERR_NOT_FOUND, "no such thing");
}

static int nothing(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 204, NULL, STR(""));
}

static int large(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    char *p = arena_alloc(task_arena(t), LARGE_BYTES);
    memset(p, 'L', LARGE_BYTES);
    return http_reply(t, x, 200, "text/plain", str_from(p, LARGE_BYTES));
}

static int slow(struct task *t, struct http_exchange *x, void *ctx)
{
    struct notes *n = ctx;
    n->began++;
    int err = task_sleep(t, 1000);
    n->ended++;
    return err ? err : http_reply(t, x, 200, "text/plain", STR("slow"));
}

static int too_slow(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)x, (void)ctx;
    return task_sleep(t, 3600 * 1000);
}

static int useless(struct task *t, struct http_exchange *x, void *ctx)
{
    struct notes *n = ctx;
    n->began++;
    http_cancel_when_gone(x);
    n->err = task_sleep(t, 20000);
    n->ended++;
    return n->err ? n->err : http_reply(t, x, 200, "text/plain", STR("done"));
}

static int stubborn(struct task *t, struct http_exchange *x, void *ctx)
{
    struct notes *n = ctx;
    n->began++;
    check(task_sleep(t, 20000) == 0);
    n->err = http_gone(x);
    n->ended++;
    return http_reply(t, x, 200, "text/plain", STR("done"));
}

static int cut(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = 0;
    if (str_eq(http_query_string(x), STR("half"))) {
        err = http_stream_begin(t, x, 200, "text/plain");
        if (!err)
            err = http_stream_write(t, x, STR("half"));
    }
    http_abort(x);
    return err;
}

static int pieces(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    size_t n = 100000;
    char *p = arena_alloc(task_arena(t), n);
    memset(p, 'P', n);
    int err = http_stream_begin(t, x, 200, "text/plain");
    if (!err)
        err = http_stream_write(t, x, STR("one,"));
    if (!err)
        err = task_sleep(t, 2 * http_limits_default.handler_ms); /* longer than a handler may */
    if (!err)
        err = http_stream_write(t, x, str_from(p, n));
    if (!err && str_eq(http_query_string(x), STR("fail")))
        return task_fail(t, ERR_INTERNAL, "secret");
    return err ? err : http_stream_end(t, x);
}

static int events(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = sse_begin(t, x);
    return err ? err : sse_send(t, x, "state", STR("1"));
}

static struct notes notes;
static const struct http_route routes[] = {
    {"GET", "/", hello, 0},
    {"POST", "/echo", echo, LARGE_BYTES},
    {"POST", "/little", echo, 10},
    {"POST", "/json", read_json, 1000},
    {"GET", "/mirror/:name", mirror, 0},
    {"GET", "/cookies", cookies, 0},
    {"GET", "/missing", missing, 0},
    {"GET", "/nothing", nothing, 0},
    {"GET", "/large", large, 0},
    {"GET", "/slow", slow, 0},
    {"GET", "/too_slow", too_slow, 0},
    {"GET", "/useless", useless, 0},
    {"GET", "/stubborn", stubborn, 0},
    {"GET", "/cut", cut, 0},
    {"GET", "/pieces", pieces, 0},
    {"GET", "/events", events, 0},
};

static void open_site(struct task *t, struct site *s)
{
    notes = (struct notes){0};
    site_open(t, s, (struct http_options){.http2 = true}, routes,
              sizeof(routes) / sizeof(routes[0]), &notes);
}

static int64_t now_ms(struct task *t)
{
    return loop_now_ms(task_loop(t));
}

/* --- requests and replies --- */

static void small_ones(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    open_site(t, &s);
    h2_open(t, &s, &h, (struct h2_settings){0});

    struct call c = {.path = "/"};
    h2_call(t, &h, &c);
    is_int(c.status, 200, "a request is answered");
    is_str(buf_str(&c.reply), STR("{\"a\":1}"), "with its body");
    ok(c.ended && c.error == 0 && c.heads == 1 && c.frames == 1, "in two frames, and ended");
    is_str(call_field(&c, "content-length"), STR("7"), "the length is told");
    is_str(call_field(&c, "cache-control"), STR("no-store"), "and what every reply has");
    ok(call_field(&c, "date").n > 20 && !call_field(&c, "connection").p, "but no Connection");
    call_release(&c);

    c = (struct call){.path = "/mirror/a%20b?q=1%2B1", .name = "x-one", .value = "eins"};
    h2_call(t, &h, &c);
    is_str(buf_str(&c.reply), STR("GET|a b|1+1|unix|test.example:80|eins"),
           "handlers see the request");
    is_str(call_field(&c, "x-two"), STR("2"), "a header that a handler has set");
    call_release(&c);

    c = (struct call){.path = "/cookies", .name = "cookie", .value = "a=1; b=2"};
    h2_call(t, &h, &c);
    is_str(buf_str(&c.reply), STR("2"), "a cookie");
    call_release(&c);

    c = (struct call){.method = "POST", .path = "/json", .body = STR("{\"a\":\"b\"}")};
    h2_call(t, &h, &c);
    is_str(buf_str(&c.reply), STR("b"), "a JSON body");
    call_release(&c);

    c = (struct call){.method = "POST", .path = "/echo", .body = STR("")};
    h2_call(t, &h, &c);
    ok(c.status == 200 && c.ended && c.heads == 1 && c.frames == 0, "an empty body both ways");
    call_release(&c);

    c = (struct call){.path = "/nothing"};
    h2_call(t, &h, &c);
    ok(c.status == 204 && c.ended && c.frames == 0, "204 has no body");
    call_release(&c);

    c = (struct call){.method = "HEAD", .path = "/"};
    h2_call(t, &h, &c);
    ok(c.status == 200 && c.ended && c.frames == 0, "nor has HEAD");
    is_str(call_field(&c, "content-length"), STR("7"), "but its length");
    call_release(&c);
    is_int(site_metric(&s, "millrace_http_requests_total{code=\"2xx\""), 7, "all are counted");
    is_int((int64_t)http_server_connections(s.server), 1, "all came on one connection");
    h2_close(&h);
    site_close(t, &s);
}

static void failures(struct task *t, void *arg)
{
    (void)arg;
    char many[20001];
    memset(many, 'h', 20000);
    many[0] = '/';
    many[20000] = '\0';
    struct {
        struct call call;
        int status;
        const char *code;
    } cases[] = {
        {{.path = "/nowhere"}, 404, "not_found"},
        {{.path = "/missing"}, 404, "not_found"},
        {{.method = "DELETE", .path = "/echo"}, 405, "method_not_allowed"},
        {{.method = "POST", .path = "/little", .body = STR("0123456789a")}, 413, "too_large"},
        {{.method = "POST", .path = "/", .body = STR("x")}, 405, "method_not_allowed"},
        {{.path = "/", .body = STR("x")}, 413, "too_large"},
        {{.method = "POST", .path = "/json", .body = STR("{")}, 400, "invalid"},
        {{.path = "/%zz"}, 400, "bad_request"},
        {{.path = "/a/../b"}, 400, "bad_request"},
        {{.path = "/a\"b"}, 400, "bad_request"},
        {{.path = "/", .name = "content-type", .value = "\x80"}, 200, ""},
        {{.path = "/", .name = "x-long", .value = many}, 431, "headers_too_large"},
        {{.path = many}, 414, "uri_too_long"},
        {{.path = "/too_slow"}, 504, "timeout"},
    };
    struct site s;
    struct h2 h;
    open_site(t, &s);
    h2_open(t, &s, &h, (struct h2_settings){0});
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct call *c = &cases[i].call;
        h2_call(t, &h, c);
        is_int(c->status, cases[i].status, "%s %.30s", c->method ? c->method : "GET", c->path);
        ok(str_find(buf_str(&c->reply), str_of(cases[i].code)) >= 0, "says %s: %.*s", cases[i].code,
           STR_ARG(buf_str(&c->reply)));
        call_release(c);
    }
    struct call slashless = {.path = "a"};
    h2_call(t, &h, &slashless);
    ok(slashless.status == 0 && slashless.error == NGHTTP2_PROTOCOL_ERROR,
       "a path without a slash");
    call_release(&slashless);
    ok(!h.gone && !h.goaway, "all of them on one connection");
    h2_close(&h);
    site_close(t, &s);
}

static bool all_are(const struct buf *b, char c, size_t n)
{
    struct str s = buf_str(b);
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != c)
            return false;
    return s.n == n;
}

static void large_ones(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    open_site(t, &s);
    h2_open(t, &s, &h, (struct h2_settings){0});
    char *body = arena_alloc(task_arena(t), LARGE_BYTES + 1);
    memset(body, 'B', LARGE_BYTES + 1);
    struct call two[2] = {
        {.method = "POST", .path = "/echo", .body = str_from(body, LARGE_BYTES)},
        {.path = "/large"},
    };
    h2_begin(&h, &two[0]);
    h2_begin(&h, &two[1]);
    h2_await(t, &h, two, 2);
    ok(two[0].status == 200 && all_are(&two[0].reply, 'B', LARGE_BYTES), "3 MB both ways");
    ok(two[1].status == 200 && all_are(&two[1].reply, 'L', LARGE_BYTES), "3 MB in between");
    call_release(&two[0]);
    call_release(&two[1]);

    struct call c = {.method = "POST", .path = "/echo", .body = str_from(body, LARGE_BYTES + 1)};
    c.endless = true;
    h2_call(t, &h, &c);
    is_int(c.status, 413, "more than any route takes is refused before its end");
    ok(c.ended && c.closed && c.error == NGHTTP2_NO_ERROR, "and the rest is declined");
    call_release(&c);
    h2_close(&h);

    h2_open(t, &s, &h, (struct h2_settings){.window = 1000});
    c = (struct call){.method = "POST", .path = "/echo", .body = str_from(body, 100000)};
    h2_call(t, &h, &c);
    ok(c.status == 200 && all_are(&c.reply, 'B', 100000), "through a window of 1,000 bytes");
    ok(c.frames >= 100, "in %d frames", c.frames);
    call_release(&c);
    h2_close(&h);
    site_close(t, &s);
}

static void streams(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    open_site(t, &s);
    h2_open(t, &s, &h, (struct h2_settings){0});
    struct call c = {.path = "/pieces"};
    h2_call(t, &h, &c);
    ok(c.status == 200 && c.ended && c.reply.len == 100004, "a stream comes whole");
    ok(!call_field(&c, "transfer-encoding").p && !call_field(&c, "content-length").p,
       "without a word of its length");
    call_release(&c);

    c = (struct call){.path = "/pieces?fail"};
    h2_call(t, &h, &c);
    ok(!c.ended && c.error == NGHTTP2_INTERNAL_ERROR, "one that fails is reset");
    call_release(&c);

    c = (struct call){.method = "HEAD", .path = "/pieces"};
    h2_call(t, &h, &c);
    ok(c.status == 200 && c.ended && c.reply.len == 0, "HEAD of a stream");
    call_release(&c);

    c = (struct call){.path = "/events"};
    h2_call(t, &h, &c);
    is_str(buf_str(&c.reply), STR("event: state\ndata: 1\n\n"), "events");
    ok(c.ended, "and their end");
    call_release(&c);

    struct call both[3] = {{.path = "/cut"}, {.path = "/cut?half"}, {.path = "/slow"}};
    for (int i = 0; i < 3; i++)
        h2_begin(&h, &both[i]);
    h2_await(t, &h, both, 3);
    ok(both[0].status == 0 && both[0].error == NGHTTP2_INTERNAL_ERROR, "cut at once");
    ok(both[1].status == 200 && both[1].error == NGHTTP2_INTERNAL_ERROR, "cut in the middle");
    is_str(buf_str(&both[1].reply), STR("half"), "after a half");
    is_int(both[2].status, 200, "another stream does not notice");
    for (int i = 0; i < 3; i++)
        call_release(&both[i]);
    h2_close(&h);
    site_close(t, &s);
}

/* --- many --- */

static int count_status(const struct call *calls, size_t n, int status)
{
    int found = 0;
    for (size_t i = 0; i < n; i++)
        found += calls[i].closed && calls[i].status == status;
    return found;
}

static void release_all(struct call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        call_release(&calls[i]);
}

static void many(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    size_t n = HTTP2_STREAMS_MAX * 3 / 2;
    struct call *calls = ARENA_ARRAY(task_arena(t), struct call, n);
    open_site(t, &s);
    h2_open(t, &s, &h, (struct h2_settings){0});
    for (size_t i = 0; i < n; i++) {
        calls[i].path = "/slow";
        h2_begin(&h, &calls[i]);
    }
    int64_t began = now_ms(t);
    h2_await(t, &h, calls, n);
    is_int(count_status(calls, n, 200), HTTP2_STREAMS_MAX, "so many streams are served at once");
    is_int(now_ms(t) - began, 1000, "in the time of one");
    int refused = 0;
    for (size_t i = 0; i < n; i++)
        refused += calls[i].error == NGHTTP2_REFUSED_STREAM;
    is_int(refused, HTTP2_STREAMS_MAX / 2, "the rest is refused");
    release_all(calls, n);

    memset(calls, 0, n * sizeof(*calls));
    for (size_t i = 0; i < n; i++) {
        calls[i].path = "/slow";
        h2_begin(&h, &calls[i]);
    }
    began = now_ms(t);
    h2_await(t, &h, calls, n);
    is_int(count_status(calls, n, 200), (int)n, "a client that knows the limit has all served");
    is_int(now_ms(t) - began, 2000, "one after the other");
    release_all(calls, n);
    h2_close(&h);
    site_close(t, &s);
}

/* --- ends --- */

static void resets(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    open_site(t, &s);
    h2_open(t, &s, &h, (struct h2_settings){0});
    struct call c = {.path = "/useless"}, other = {.path = "/slow"};
    h2_begin(&h, &c);
    h2_begin(&h, &other);
    h2_say(t, &h);
    check(task_sleep(t, 500) == 0 && notes.began == 2);
    check(nghttp2_submit_rst_stream(h.session, NGHTTP2_FLAG_NONE, c.id, NGHTTP2_CANCEL) == 0);
    h2_say(t, &h);
    check(task_sleep(t, 1) == 0);
    ok(notes.ended == 1 && notes.err == ERR_CANCELED,
       "a reset cancels a handler that asked for it");
    h2_await(t, &h, &other, 1);
    is_int(other.status, 200, "and no other");
    call_release(&c);
    call_release(&other);

    notes = (struct notes){0};
    c = (struct call){.path = "/stubborn"};
    h2_begin(&h, &c);
    h2_say(t, &h);
    check(task_sleep(t, 500) == 0);
    check(nghttp2_submit_rst_stream(h.session, NGHTTP2_FLAG_NONE, c.id, NGHTTP2_CANCEL) == 0);
    h2_say(t, &h);
    check(task_sleep(t, 10000) == 0);
    is_int(notes.ended, 0, "one that did not ask goes on");
    check(task_sleep(t, 10000) == 0);
    ok(notes.ended == 1 && notes.err, "and may know");
    call_release(&c);

    notes = (struct notes){0};
    c = (struct call){.path = "/useless"};
    other = (struct call){.path = "/stubborn"};
    h2_begin(&h, &c);
    h2_begin(&h, &other);
    h2_say(t, &h);
    check(task_sleep(t, 500) == 0);
    h2_close(&h);
    check(task_sleep(t, 500) == 0);
    ok(notes.ended == 1 && notes.err == ERR_CANCELED, "so does the end of the connection");
    is_int((int64_t)http_server_connections(s.server), 1, "which waits for its handlers");
    check(task_sleep(t, 20000) == 0);
    is_int((int64_t)http_server_connections(s.server), 0, "and ends with the last one");
    call_release(&c);
    call_release(&other);
    site_close(t, &s);
}

static void draining(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h, idle;
    open_site(t, &s);
    h2_open(t, &s, &h, (struct h2_settings){0});
    h2_open(t, &s, &idle, (struct h2_settings){0});
    struct call c = {.path = "/slow"}, late = {.path = "/slow"};
    h2_begin(&h, &c);
    h2_say(t, &h);
    h2_say(t, &idle);
    check(task_sleep(t, 500) == 0);
    int64_t began = now_ms(t);
    http_server_drain(s.server);
    while (!idle.gone && !idle.silent)
        h2_step(t, &idle);
    ok(idle.goaway && idle.goaway_error == 0 && now_ms(t) == began,
       "an idle connection is ended with GOAWAY");
    h2_begin(&h, &late); /* the client does not know yet */
    h2_await(t, &h, &c, 1);
    is_int(c.status, 200, "what was asked before the drain is answered");
    ok(h.goaway && h.goaway_error == 0, "the client is told");
    while (!h.gone && !h.silent)
        h2_step(t, &h);
    ok(h.gone && late.status == 0, "what came after it is not, and the connection ends");
    while (s.result == 1)
        check(task_sleep(t, 10) == 0);
    is_int(s.result, 0, "the server has ended");
    call_release(&c);
    call_release(&late);
    h2_close(&h);
    h2_close(&idle);
    site_close(t, &s);
}

static void deadlines(struct task *t, void *arg)
{
    (void)arg;
    const struct http_limits *l = &http_limits_default;
    struct site s;
    struct h2 h;
    open_site(t, &s);
    h2_open(t, &s, &h, (struct h2_settings){0});
    struct call c = {.path = "/slow"};
    h2_call(t, &h, &c);
    call_release(&c);
    int64_t began = now_ms(t);
    while (!h.gone && !h.silent)
        h2_step(t, &h);
    ok(h.goaway && h.goaway_error == 0, "a connection without streams ends with GOAWAY");
    is_int(now_ms(t) - began, l->idle_ms, "after idle_ms");
    h2_close(&h);

    h2_open(t, &s, &h, (struct h2_settings){0});
    c = (struct call){.method = "POST", .path = "/echo", .body = STR("some"), .endless = true};
    began = now_ms(t);
    h2_call(t, &h, &c);
    is_int(c.status, 408, "a request that does not end is answered");
    is_int(now_ms(t) - began, l->body_ms, "after body_ms");
    ok(c.closed && c.error == NGHTTP2_NO_ERROR, "and reset");
    call_release(&c);

    struct call deaf = {.path = "/large", .deaf = true};
    h2_begin(&h, &deaf);
    began = now_ms(t);
    h2_await(t, &h, &deaf, 1);
    ok(deaf.status == 200 && !deaf.ended && deaf.error == NGHTTP2_INTERNAL_ERROR,
       "a reply that is not read is reset");
    is_int(now_ms(t) - began, l->write_ms, "after write_ms");
    call_release(&deaf);
    c = (struct call){.path = "/"};
    h2_call(t, &h, &c);
    is_int(c.status, 200, "which another stream does not notice");
    call_release(&c);
    h2_close(&h);

    h2_open(t, &s, &h, (struct h2_settings){.window = 1 << 30});
    check(nghttp2_session_set_local_window_size(h.session, NGHTTP2_FLAG_NONE, 0, 1 << 30) == 0);
    struct call all[20];
    for (int i = 0; i < 20; i++) {
        all[i] = (struct call){.path = "/large"};
        h2_begin(&h, &all[i]);
    }
    h2_say(t, &h);
    check(task_sleep(t, 1000) == 0);
    is_int((int64_t)http_server_connections(s.server), 1, "a client that reads nothing at all");
    check(task_sleep(t, 2 * l->write_ms + l->idle_ms) == 0);
    is_int((int64_t)http_server_connections(s.server), 0, "is left");
    release_all(all, 20);
    h2_close(&h);
    site_close(t, &s);
}

/* --- what is no HTTP/2 --- */

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static void prefaces(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open(t, &s, (struct http_options){0}, routes, sizeof(routes) / sizeof(routes[0]), &notes);
    struct reply r = ask(t, &s, STR(PREFACE "\0\0\0\4\0\0\0\0\0"));
    is_int(r.status, 505, "where it is not switched on the preface is refused");
    site_close(t, &s);

    open_site(t, &s);
    r = ask(t, &s, STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    is_int(r.status, 200, "HTTP/1.1 is spoken beside it");
    r = ask(t, &s, STR("PRI * HTTP/1.1\r\nHost: a\r\n\r\n"));
    is_int(r.status, 400, "what only begins like a preface is none");

    struct h2 h;
    h2_open(t, &s, &h, (struct h2_settings){0});
    struct call c = {.path = "/"};
    h2_begin(&h, &c);
    const uint8_t *p;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(h.session, &p)) > 0)
        for (ssize_t i = 0; i < n; i++) {
            client_send(t, &h.raw, str_from((const char *)p + i, 1));
            check(task_yield(t) == 0 && task_yield(t) == 0);
        }
    h2_await(t, &h, &c, 1);
    is_int(c.status, 200, "a connection that comes byte by byte");
    call_release(&c);
    h2_close(&h);

    struct client raw;
    client_open(t, &s, &raw);
    client_send(t, &raw, STR("PRI * HTTP/2.0\r\n\r\nSM"));
    int64_t began = now_ms(t);
    (void)client_reply(t, &raw);
    is_int(now_ms(t) - began, http_limits_default.header_ms,
           "half a preface is not waited for long");
    client_close(&raw);
    site_close(t, &s);
}

static void add_ping(struct buf *b, int i)
{
    (void)i;
    buf_add_lit(b, "\0\0\x08\x06\0\0\0\0\0pingpong");
}

/* GET http /, but of no host: each is answered with a reset. */
static void add_bad_request(struct buf *b, int i)
{
    uint32_t id = (uint32_t)i * 2 + 1;
    char frame[] = {0,        0,    3,    1,   5, 0, (char)(id >> 16), (char)(id >> 8),
                    (char)id, -126, -122, -124};
    buf_add(b, frame, sizeof(frame));
}

/* A client that never reads. True: the server has ended the connection, and soon. */
static bool flood(struct task *t, void (*add)(struct buf *b, int i))
{
    struct site s;
    struct client raw;
    open_site(t, &s);
    client_open(t, &s, &raw);
    client_send(t, &raw, STR(PREFACE "\0\0\0\4\0\0\0\0\0"));
    check(task_sleep(t, 10) == 0);
    int64_t began = now_ms(t);
    for (int i = 0; i < 500000 && http_server_connections(s.server) > 0;) {
        struct buf frames;
        buf_init(&frames);
        for (int end = i + 500; i < end; i++)
            add(&frames, i);
        int64_t old = task_deadline(t, 1000);
        if (watch_write(t, &raw.watch, frames.p, frames.len) != 0)
            i = 500000;
        task_deadline_restore(t, old);
        buf_release(&frames);
    }
    check(task_sleep(t, 10) == 0);
    bool ended = http_server_connections(s.server) == 0 && now_ms(t) - began < 2000;
    client_close(&raw);
    site_close(t, &s);
    return ended;
}

static void floods(struct task *t, void *arg)
{
    (void)arg;
    ok(flood(t, add_ping), "a flood of pings ends the connection");
    ok(flood(t, add_bad_request), "so does one of bad requests");
}

static struct str record(struct task *t, struct site *s)
{
    struct h2 h;
    struct call calls[] = {
        {.path = "/"},
        {.method = "POST", .path = "/echo", .body = STR("0123456789")},
        {.path = "/mirror/x?q=1", .name = "x-one", .value = "1"},
        {.path = "/useless"},
        {.method = "POST", .path = "/json", .body = STR("{\"a\":\"b\"}")},
    };
    size_t n = sizeof(calls) / sizeof(calls[0]);
    h2_open(t, s, &h, (struct h2_settings){.window = 1000});
    h.record = true;
    for (size_t i = 0; i < n; i++)
        h2_begin(&h, &calls[i]);
    h2_await(t, &h, calls, n);
    struct str said = str_dup(task_arena(t), buf_str(&h.said));
    release_all(calls, n);
    h2_close(&h);
    return said;
}

/* Bytes that may be wrong anywhere behind the preface: whatever comes, we stand. */
static void garbage(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    open_site(t, &s);
    struct str said = record(t, &s);
    struct loop *l = task_loop(t);
    for (int round = 0; round < 1000; round++) {
        struct task_scope scope = task_scope(t);
        struct client raw;
        client_open(t, &s, &raw);
        struct str sent = str_dup(task_arena(t), said);
        char *bytes = (char *)(uintptr_t)sent.p;
        for (uint64_t left = 1 + loop_random(l) % 4; left > 0; left--)
            bytes[24 + loop_random(l) % (sent.n - 24)] ^= (char)(1u << loop_random(l) % 8);
        if (round % 4 == 0)
            sent.n = 24 + loop_random(l) % (sent.n - 24);
        client_send(t, &raw, sent);
        check(task_sleep(t, 1) == 0);
        client_close(&raw);
        task_scope_end(t, scope);
    }
    check(task_sleep(t, 60000) == 0);
    is_int((int64_t)http_server_connections(s.server), 0, "a thousand broken connections are gone");
    struct h2 h;
    struct call c = {.path = "/"};
    h2_open(t, &s, &h, (struct h2_settings){0});
    h2_call(t, &h, &c);
    is_int(c.status, 200, "and the server serves");
    call_release(&c);
    h2_close(&h);
    site_close(t, &s);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    tap_task(small_ones, NULL, false);
    tap_task(failures, NULL, false);
    tap_task(large_ones, NULL, false);
    tap_task(streams, NULL, false);
    tap_task(many, NULL, false);
    tap_task(resets, NULL, false);
    tap_task(draining, NULL, false);
    tap_task(deadlines, NULL, false);
    tap_task(prefaces, NULL, false);
    tap_task(floods, NULL, false);
    tap_task(garbage, NULL, false);
    return tap_done();
}
