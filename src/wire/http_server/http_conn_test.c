/* Requests and replies over a connection: keep-alive, pipelining, deadlines, errors. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/log.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"
#include "wire/http_server/http_uri.h"

static int hello(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "text/plain", STR("hello"));
}

static int echo(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct json_writer w;
    struct str value = STR_NULL;
    (void)http_query_find(task_arena(t), http_query_string(x), STR("q"), 1, &value);
    http_json(x, &w);
    jw_object(&w);
    jw_put_str(&w, "method", http_method(x));
    jw_put_str(&w, "path", http_path(x));
    jw_put_str(&w, "id", http_param(x, "id"));
    jw_put_str(&w, "second", value);
    jw_put_str(&w, "header", http_header(x, "x-header"));
    jw_put_str(&w, "cookie", http_cookie(x, "session"));
    jw_put_str(&w, "peer", http_peer(x));
    jw_end_object(&w);
    http_set_header(x, "X-One", STR("first"));
    http_set_header(x, "x-one", STR("1"));
    http_set_header(x, "Set-Cookie", STR("a=1"));
    http_set_header(x, "Set-Cookie", STR("b=2"));
    return http_reply_json(t, x, 201);
}

static int page(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "text/html; charset=utf-8", STR("<p>"));
}

static int large(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    size_t n = 300000;
    char *p = arena_alloc(task_arena(t), n);
    memset(p, 'x', n);
    return http_reply(t, x, 200, "text/plain", str_from(p, n));
}

static int medium(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, NULL, str_printf(task_arena(t), "%05000d", 1));
}

/* How much of earlier replies the client could read by now. */
static int backlog(struct task *t, struct http_exchange *x, void *ctx)
{
    int n = 0;
    check(ioctl(*(int *)ctx, FIONREAD, &n) == 0);
    return http_reply(t, x, 200, NULL, str_printf(task_arena(t), "%d", n));
}

static int nothing(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 204, NULL, STR(""));
}

static int slow(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = task_sleep(t, 3600 * 1000);
    return err ? err : http_reply(t, x, 200, "text/plain", STR("late"));
}

static int failing(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int64_t code = 0;
    check(str_to_i64(http_param(x, "code"), &code));
    return task_fail(t, (int)-code, "secret of host 10.1.2.3");
}

static int wordless(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)t, (void)x, (void)ctx;
    return ERR_CONFLICT;
}

static const struct http_route routes[] = {
    {"GET", "/hello", hello, 0},       {"GET", "/echo/:id", echo, 0},
    {"GET", "/page", page, 0},         {"GET", "/medium", medium, 0},
    {"GET", "/large", large, 0},       {"GET", "/nothing", nothing, 0},
    {"GET", "/slow", slow, 0},         {"GET", "/fail/:code", failing, 0},
    {"GET", "/wordless", wordless, 0}, {"POST", "/post", hello, 10},
};
#define OPEN(t, s)                                                                                 \
    site_open((t), (s), (struct http_options){.metrics = NULL}, routes,                            \
              sizeof(routes) / sizeof(routes[0]), NULL)

#define HOST      "Host: h\r\n"
#define GET(path) STR("GET " path " HTTP/1.1\r\n" HOST "\r\n")

static void request_and_reply(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    OPEN(t, &s);
    struct reply r = ask(t, &s,
                         STR("GET /echo/a%2Fb?q=1&q=t%20wo HTTP/1.1\r\n" HOST
                             "X-Header: v\r\nCookie: session=abc\r\n\r\n"));
    is_int(r.status, 201, "the handler's status");
    is_str(r.body,
           STR("{\"method\":\"GET\",\"path\":\"/echo/a/b\",\"id\":\"a/b\",\"second\":\"t wo\","
               "\"header\":\"v\",\"cookie\":\"abc\",\"peer\":\"unix\"}"),
           "the handler sees the request");
    is_str(reply_header(&r, "x-one"), STR("1"), "a header set twice has the second value");
    ok(str_find(r.head, STR("X-One: first")) < 0, "and only that");
    ok(str_find(r.head, STR("Set-Cookie: a=1\r\n")) > 0 &&
           str_find(r.head, STR("Set-Cookie: b=2\r\n")) > 0,
       "but cookies add up");
    is_str(reply_header(&r, "content-type"), STR("application/json"), "JSON");
    is_str(reply_header(&r, "date"), STR("Thu, 01 Jan 2026 00:00:00 GMT"), "Date");
    is_str(reply_header(&r, "x-content-type-options"), STR("nosniff"), "nosniff");
    is_str(reply_header(&r, "referrer-policy"), STR("no-referrer"), "no referrer");
    is_str(reply_header(&r, "server"), STR_NULL, "Server is not sent");
    is_str(reply_header(&r, "connection"), STR_NULL, "the connection stays");
    is_str(reply_header(&r, "content-security-policy"), STR_NULL, "JSON needs no policy");
    ok(!reply_header(&r, "permissions-policy").p &&
           !reply_header(&r, "cross-origin-opener-policy").p,
       "nor what a page needs");
    is_str(reply_header(&r, "strict-transport-security"), STR_NULL, "no TLS, no HSTS");
    check(task_sleep(t, 1500) == 0);
    r = ask(t, &s, GET("/page"));
    is_str(reply_header(&r, "date"), STR("Thu, 01 Jan 2026 00:00:01 GMT"), "the date goes on");
    struct str policy = reply_header(&r, "content-security-policy");
    ok(str_find(policy, STR("default-src 'self'")) >= 0 &&
           str_find(policy, STR("frame-ancestors 'none'")) >= 0 &&
           str_find(policy, STR("script-src 'self';")) >= 0,
       "pages have a policy");
    struct str permissions = reply_header(&r, "permissions-policy");
    ok(str_find(permissions, STR("camera=()")) >= 0 &&
           str_find(permissions, STR("geolocation=()")) >= 0 &&
           str_find(permissions, STR("clipboard-write")) < 0,
       "pages may do what they need");
    is_str(reply_header(&r, "cross-origin-opener-policy"), STR("same-origin"), "alone in a window");
    r = ask(t, &s, GET("/nothing"));
    ok(r.status == 204 && !reply_header(&r, "content-length").p, "204 has no length");
    r = ask(t, &s, GET("/large"));
    ok(r.status == 200 && r.body.n == 300000 && r.body.p[299999] == 'x', "a large body");
    site_close(t, &s);

    site_open(t, &s, (struct http_options){.behind_tls = true}, routes, 1, NULL);
    r = ask(t, &s, GET("/hello"));
    ok(reply_header(&r, "strict-transport-security").p, "HSTS behind TLS");
    site_close(t, &s);
}

static void keeping_alive(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    OPEN(t, &s);
    client_open(t, &s, &c);
    for (int i = 0; i < 3; i++) {
        client_send(t, &c, GET("/hello"));
        struct reply r = client_reply(t, &c);
        ok(r.status == 200 && str_eq(r.body, STR("hello")), "request %d on one connection", i);
        check(task_sleep(t, 5000) == 0); /* long enough to give its kit back */
    }
    client_send(t, &c, STR("HEAD /hello HTTP/1.1\r\n" HOST "\r\n"));
    struct reply r = client_reply_to_head(t, &c);
    ok(r.status == 200 && str_eq(reply_header(&r, "content-length"), STR("5")), "HEAD");
    client_send(t, &c, STR("HEAD /large HTTP/1.1\r\n" HOST "\r\n"));
    r = client_reply_to_head(t, &c);
    ok(r.status == 200 && str_eq(reply_header(&r, "content-length"), STR("300000")), "large HEAD");
    client_send(t, &c, GET("/none"));
    r = client_reply(t, &c);
    ok(r.status == 404 && reply_has(&r, "{\"success\":false,\"error\":{\"code\":\"not_found\""),
       "HEAD has no body, and an unknown path does not end the connection");
    client_send(t, &c, STR("PUT /post HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"));
    r = client_reply(t, &c);
    ok(r.status == 405 && str_eq(reply_header(&r, "allow"), STR("POST")), "an unknown method");
    client_send(t, &c, STR("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"));
    is_int(client_reply(t, &c).status, 404, "OPTIONS *");
    client_send(t, &c, STR("GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
    r = client_reply(t, &c);
    ok(r.status == 200 && str_eq(reply_header(&r, "connection"), STR("close")), "asked to close");
    ok(client_at_end(t, &c), "and closed");
    client_close(&c);
    is_int(site_metric(&s, "millrace_http_requests_total{code=\"2xx\""), 6, "counted");
    is_int(site_metric(&s, "millrace_http_requests_total{code=\"4xx\""), 3, "counted too");
    is_int(site_metric(&s, "millrace_http_refused_total{reason=\"not_found\""), 2, "refusals");
    is_int(site_metric(&s, "millrace_http_request_seconds_count"), 9, "durations");
    site_close(t, &s);
}

static void old_clients(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    OPEN(t, &s);
    client_open(t, &s, &c);
    client_send(t, &c, STR("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    struct reply r = client_reply(t, &c);
    ok(r.status == 200 && str_eq(reply_header(&r, "connection"), STR("close")), "HTTP/1.0 closes");
    ok(client_at_end(t, &c), "really");
    client_close(&c);
    site_close(t, &s);
}

static void in_one_write(struct task *t, void *arg)
{
    (void)arg;
    static const struct http_route one[] = {{"GET", "/", backlog, 0}};
    struct site s;
    struct client c;
    int fd;
    site_open(t, &s, (struct http_options){.metrics = NULL}, one, 1, &fd);
    client_open(t, &s, &c);
    fd = c.watch.fd;
    for (int round = 0; round < 2; round++) {
        client_send(t, &c,
                    STR("GET / HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\n" HOST "\r\n"
                        "GET / HTTP/1.1\r\n" HOST "\r\nGE"));
        for (int i = 0; i < 3; i++)
            is_str(client_reply(t, &c).body, STR("0"), "the replies wait for each other");
        client_send(t, &c, STR("T / HTTP/1.1\r\n" HOST "\r\n"));
        is_str(client_reply(t, &c).body, STR("0"), "but not for a request that is not complete");
    }
    client_close(&c);
    site_close(t, &s);
}

static void pipelining(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    OPEN(t, &s);
    client_open(t, &s, &c);
    client_send(t, &c,
                STR("GET /hello HTTP/1.1\r\n" HOST "\r\n"
                    "POST /post HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody"
                    "GET /echo/3 HTTP/1.1\r\n" HOST "\r\nGET /hel"));
    struct str all = client_read(t, &c);
    int count = 0;
    for (ptrdiff_t at; (at = str_find(all, STR("HTTP/1.1 20"))) >= 0; count++)
        all = str_from(all.p + at + 1, all.n - (size_t)at - 1);
    is_int(count, 3, "three replies leave in one write");
    client_send(t, &c, STR("lo HTTP/1.1\r\n" HOST "\r\n"));
    is_int(client_reply(t, &c).status, 200, "the fourth follows its second half");
    client_close(&c);

    struct buf many;
    buf_init(&many);
    for (int i = 0; i < 2000; i++)
        buf_add_str(&many, GET("/hello"));
    client_open(t, &s, &c);
    client_send(t, &c, buf_str(&many));
    int good = 0;
    for (int i = 0; i < 2000; i++)
        good += client_reply(t, &c).status == 200;
    is_int(good, 2000, "a long row of requests");
    client_close(&c);

    buf_clear(&many);
    for (int i = 0; i < 60; i++)
        buf_add_str(&many, GET("/medium"));
    buf_add_str(&many, GET("/slow"));
    client_open(t, &s, &c);
    client_send(t, &c, buf_str(&many));
    int64_t began = loop_now_ms(task_loop(t));
    ok(client_read(t, &c).n > 0 && loop_now_ms(task_loop(t)) == began,
       "many replies do not wait for a slow one behind them");
    client_close(&c);
    buf_release(&many);
    site_close(t, &s);
}

static void half_closed(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    OPEN(t, &s);
    client_open(t, &s, &c);
    client_send(t, &c, GET("/hello"));
    client_send(t, &c, GET("/hello"));
    check(shutdown(c.watch.fd, SHUT_WR) == 0);
    is_int(client_reply(t, &c).status, 200,
           "a client that half-closes after its request is answered");
    is_int(client_reply(t, &c).status, 200, "twice, if it asked twice");
    ok(client_at_end(t, &c), "and then let go");
    client_close(&c);
    client_open(t, &s, &c);
    client_send(t, &c, STR("GET /hello HT"));
    check(shutdown(c.watch.fd, SHUT_WR) == 0);
    is_int(client_reply(t, &c).status, 0, "half a question has no answer");
    client_close(&c);
    site_close(t, &s);
}

/* Counts the turns of the loop until stopped. */
struct ticker {
    int turns;
    bool stop;
};

static void tick(struct task *t, void *arg)
{
    struct ticker *k = arg;
    while (!k->stop && task_yield(t) == 0)
        k->turns++;
}

static int note_turn(struct task *t, struct http_exchange *x, void *ctx)
{
    struct ticker *k = ctx;
    return http_reply(t, x, 200, NULL, str_printf(task_arena(t), "%d", k->turns));
}

static void taking_turns(struct task *t, void *arg)
{
    (void)arg;
    static const struct http_route turns[] = {{"GET", "/", note_turn, 0}};
    struct ticker ticker = {0};
    struct site s;
    struct client c;
    struct group g;
    struct buf many;
    buf_init(&many);
    for (int i = 0; i < 1000; i++)
        buf_add_str(&many, GET("/"));
    site_open(t, &s, (struct http_options){.metrics = NULL}, turns, 1, &ticker);
    client_open(t, &s, &c);
    client_send(t, &c, buf_str(&many));
    group_init(&g, task_loop(t));
    check(task_go(&g, "ticker", tick, &ticker) == 0);
    int first = atoi(client_reply(t, &c).body.p), last = first;
    for (int i = 1; i < 1000; i++)
        last = atoi(client_reply(t, &c).body.p);
    ok(last - first >= 10, "a client that asks without pause lets others have their turn");
    ticker.stop = true;
    check(group_join(t, &g) == 0);
    client_close(&c);
    site_close(t, &s);
    buf_release(&many);
}

static void in_pieces(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    OPEN(t, &s);
    client_open(t, &s, &c);
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "GET /echo/7 HTTP/1.1\r\n" HOST "X-Header: %05000d\r\n\r\n", 9);
    for (size_t i = 0; i < b.len; i += 700) { /* across a growing buffer */
        client_send(t, &c, str_from(b.p + i, b.len - i < 700 ? b.len - i : 700));
        check(task_sleep(t, 1) == 0);
    }
    struct reply r = client_reply(t, &c);
    ok(r.status == 201 && reply_has(&r, "\"id\":\"7\"") && reply_has(&r, "0009\""), "in pieces");
    struct str byte = GET("/hello");
    for (size_t i = 0; i < byte.n; i++)
        client_send(t, &c, str_from(byte.p + i, 1));
    is_int(client_reply(t, &c).status, 200, "byte by byte");
    client_close(&c);
    buf_release(&b);
    site_close(t, &s);
}

static void bad_requests(struct task *t, void *arg)
{
    (void)arg;
    static const struct {
        const char *request;
        int status;
        const char *code;
    } cases[] = {
        {"GET / HTTP/1.1\n\n", 400, "bad_request"},
        {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "bad_request"},
        {"GET /a%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "bad_request"},
        {"GET /a/../b HTTP/1.1\r\nHost: h\r\n\r\n", 400, "bad_request"},
        {"GET /%2e%2e/b HTTP/1.1\r\nHost: h\r\n\r\n", 400, "bad_request"},
        {"GET /hello?a=%f HTTP/1.1\r\nHost: h\r\n\r\n", 400, "bad_request"},
        {"GET / HTTP/2.0\r\n", 505, "version_not_supported"},
        {"GET / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n", 417, "expectation_failed"},
    };
    struct site s;
    OPEN(t, &s);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct client c;
        client_open(t, &s, &c);
        client_send(t, &c, str_of(cases[i].request));
        client_send(t, &c, GET("/hello"));
        struct reply r = client_reply(t, &c);
        is_int(r.status, cases[i].status, "case %zu is refused", i);
        ok(reply_has(&r, cases[i].code) && reply_has(&r, "{\"success\":false,"), "in API form");
        is_str(reply_header(&r, "connection"), STR("close"), "with a last word");
        ok(client_at_end(t, &c), "which really is the last");
        client_close(&c);
    }
    is_int(site_metric(&s, "millrace_http_refused_total{reason=\"bad_request\""), 6, "counted");
    is_int(site_metric(&s, "millrace_http_request_seconds_count"), 5,
           "but only what has a beginning has a duration");
    site_close(t, &s);
}

static void failures(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct buf log;
    OPEN(t, &s);
    buf_init(&log);
    log_capture(&log);
    struct reply r = ask(t, &s, GET("/fail/10"));
    ok(r.status == 400 && reply_has(&r, "\"code\":\"invalid\"") && reply_has(&r, "secret of host"),
       "the caller's mistakes are shown");
    is_int((int64_t)log.len, 0, "and not logged");
    r = ask(t, &s, GET("/fail/19"));
    ok(r.status == 500 && !reply_has(&r, "secret"), "the server's own are not");
    ok(reply_has(&r, "internal error (request ") && str_find(buf_str(&log), STR("secret")) > 0,
       "they are in the log");
    ptrdiff_t at = str_find(r.body, STR("request "));
    ok(at > 0 && str_find(buf_str(&log), str_from(r.body.p + at, 24)) > 0, "under their number");
    static const int hidden[] = {ERR_IO, ERR_PROTO, ERR_CLOSED, ERR_REFUSED, ERR_UNCERTAIN};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        r = ask(t, &s,
                str_printf(task_arena(t), "GET /fail/%d HTTP/1.1\r\n" HOST "\r\n", -hidden[i]));
        ok(r.status >= 500 && !reply_has(&r, "secret"), "%s tells nothing", err_name(hidden[i]));
    }
    r = ask(t, &s, GET("/fail/8"));
    ok(r.status == 503 && str_eq(reply_header(&r, "retry-after"), STR("1")), "come back later");
    r = ask(t, &s, GET("/fail/14"));
    ok(r.status == 401 && reply_header(&r, "www-authenticate").p, "not logged in");
    log_capture(NULL);

    struct client c;
    client_open(t, &s, &c);
    client_send(t, &c, GET("/fail/10"));
    (void)client_reply(t, &c);
    client_send(t, &c, GET("/wordless"));
    r = client_reply(t, &c);
    ok(r.status == 409 && !reply_has(&r, "secret"), "the words of one request are not the next's");
    client_close(&c);
    buf_release(&log);
    site_close(t, &s);
}

static void waits_until(struct task *t, struct site *s, struct str bytes, int status, int64_t ms,
                        const char *what)
{
    struct client c;
    client_open(t, s, &c);
    client_send(t, &c, bytes);
    int64_t began = loop_now_ms(task_loop(t));
    struct reply r = client_reply(t, &c);
    is_int(r.status, status, "%s: status", what);
    is_int(loop_now_ms(task_loop(t)) - began, ms, "%s: time", what);
    ok(status == 504 || client_at_end(t, &c), "%s: closed", what);
    client_close(&c);
}

static void deadlines(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    OPEN(t, &s);
    const struct http_limits *l = &http_limits_default;
    struct client c;
    waits_until(t, &s, STR(""), 0, l->idle_ms, "nothing was sent");
    waits_until(t, &s, STR("G"), 408, l->header_ms, "a header without end");
    waits_until(t, &s, STR("\r\n"), 0, l->header_ms, "an empty line, and no request");
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    waits_until(t, &s, GET("/slow"), 504, l->handler_ms, "a slow handler");

    client_open(t, &s, &c);
    struct str request = GET("/hello");
    size_t sent = 0;
    while (!c.watch.gone && sent < request.n) {
        client_send(t, &c, str_from(request.p + sent++, 1));
        check(task_sleep(t, 1000) == 0);
    }
    is_int((int64_t)sent, l->header_ms / 1000 + 1, "one byte per second does not help");
    is_int(client_reply(t, &c).status, 408, "it is told so");
    client_close(&c);

    client_open(t, &s, &c);
    client_send(t, &c, GET("/hello"));
    (void)client_reply(t, &c);
    int64_t began = loop_now_ms(task_loop(t));
    ok(client_at_end(t, &c), "an idle connection ends without a word");
    is_int(loop_now_ms(task_loop(t)) - began, l->idle_ms, "in due time");
    client_close(&c);
    site_close(t, &s);
}

static void without_reading(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    OPEN(t, &s);
    client_open(t, &s, &c);
    for (int i = 0; i < 30; i++)
        client_send(t, &c, GET("/large"));
    int64_t began = loop_now_ms(task_loop(t));
    check(task_sleep(t, 100) == 0);
    while (http_server_connections(s.server) > 0 && loop_now_ms(task_loop(t)) - began < 3600000)
        check(task_sleep(t, 100) == 0);
    is_int((loop_now_ms(task_loop(t)) - began) / 1000, http_limits_default.write_ms / 1000,
           "a client that does not read is dropped after write_ms");
    client_close(&c);

    client_open(t, &s, &c);
    for (int i = 0; i < 10; i++)
        client_send(t, &c, GET("/large"));
    int whole = 0;
    for (int i = 0; i < 10; i++) { /* ten times slower than write_ms allows for all of it */
        check(task_sleep(t, http_limits_default.write_ms * 9 / 10) == 0);
        struct reply r = client_reply(t, &c);
        whole += r.status == 200 && r.body.n == 300000;
    }
    is_int(whole, 10, "a slow one that goes on reading is served");
    client_close(&c);
    site_close(t, &s);
}

int main(void)
{
    tap_task(request_and_reply, NULL, false);
    tap_task(keeping_alive, NULL, false);
    tap_task(old_clients, NULL, false);
    tap_task(in_one_write, NULL, false);
    tap_task(pipelining, NULL, false);
    tap_task(half_closed, NULL, false);
    tap_task(taking_turns, NULL, false);
    tap_task(in_pieces, NULL, false);
    tap_task(bad_requests, NULL, false);
    tap_task(failures, NULL, false);
    tap_task(deadlines, NULL, false);
    tap_task(without_reading, NULL, false);
    return tap_done();
}
