/* HTTP/2 with prior knowledge: requests and replies. */
#include "base/log.h"
#include "tests/tap.h"
#include "wire/http_server/http2_harness.h"

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

static int slow(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = task_sleep(t, 1000);
    return err ? err : http_reply(t, x, 200, "text/plain", STR("slow"));
}

static int too_slow(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)x, (void)ctx;
    return task_sleep(t, 3600 * 1000);
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

static const struct http_route routes[] = {
    {"GET", "/", h2_hello, 0},
    {"POST", "/echo", h2_echo, H2_LARGE_BYTES},
    {"POST", "/little", h2_echo, 10},
    {"POST", "/json", h2_read_json, 1000},
    {"GET", "/mirror/:name", h2_mirror, 0},
    {"GET", "/cookies", cookies, 0},
    {"GET", "/missing", missing, 0},
    {"GET", "/nothing", nothing, 0},
    {"GET", "/large", h2_large, 0},
    {"GET", "/slow", slow, 0},
    {"GET", "/too_slow", too_slow, 0},
    {"GET", "/cut", cut, 0},
    {"GET", "/pieces", pieces, 0},
    {"GET", "/events", events, 0},
};

static void open_site(struct task *t, struct site *s)
{
    site_open(t, s, (struct http_options){.http2 = true}, routes,
              sizeof(routes) / sizeof(routes[0]), NULL);
}

static void ignored_bodies(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    site_open(t, &s, (struct http_options){.http2 = true}, routes, 1, NULL);
    h2_open(t, &s, &h, (struct h2_settings){0});
    struct call c = {.path = "/", .body = STR("x")};
    h2_call(t, &h, &c);
    is_str(buf_str(&c.reply), STR("{\"a\":1}"), "a body is ignored where no route has one");
    call_release(&c);
    h2_close(&h);
    site_close(t, &s);
}

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

    c = (struct call){.path = "/", .body = STR("x")};
    h2_call(t, &h, &c);
    is_str(buf_str(&c.reply), STR("{\"a\":1}"), "a body that no route reads is ignored");
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
    is_int(site_metric(&s, "millrace_http_requests_total{code=\"2xx\""), 8, "all are counted");
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
        {{.method = "POST",
          .path = "/echo",
          .body = STR("x"),
          .name = "content-encoding",
          .value = "gzip"},
         415,
         "unsupported_coding"},
        {{.method = "POST", .path = "/", .body = STR("x")}, 405, "method_not_allowed"},
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
    char *body = arena_alloc(task_arena(t), H2_LARGE_BYTES + 1);
    memset(body, 'B', H2_LARGE_BYTES + 1);
    struct call two[2] = {
        {.method = "POST", .path = "/echo", .body = str_from(body, H2_LARGE_BYTES)},
        {.path = "/large"},
    };
    h2_begin(&h, &two[0]);
    h2_begin(&h, &two[1]);
    h2_await(t, &h, two, 2);
    ok(two[0].status == 200 && all_are(&two[0].reply, 'B', H2_LARGE_BYTES), "3 MB both ways");
    ok(two[1].status == 200 && all_are(&two[1].reply, 'L', H2_LARGE_BYTES), "3 MB in between");
    call_release(&two[0]);
    call_release(&two[1]);

    struct call c = {.method = "POST", .path = "/echo", .body = str_from(body, H2_LARGE_BYTES + 1)};
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

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    tap_task(ignored_bodies, NULL, false);
    tap_task(small_ones, NULL, false);
    tap_task(failures, NULL, false);
    tap_task(large_ones, NULL, false);
    tap_task(streams, NULL, false);
    return tap_done();
}
