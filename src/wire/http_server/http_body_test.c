/* Bodies: sized and chunked, limits, expectations, what is left unread. */
#include "base/log.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

#define BODY_MAX (300 * 1024)

/* Replies with the body's length and its last bytes. */
static int measure(struct task *t, struct http_exchange *x, struct str body)
{
    size_t tail = body.n < 8 ? body.n : 8;
    struct str text =
        str_printf(task_arena(t), "%zu:%.*s", body.n, (int)tail, body.p + (body.n - tail));
    return http_reply(t, x, 200, "text/plain", text);
}

static int take(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str body, again;
    int err = http_body(t, x, &body);
    if (err)
        return err;
    err = http_body(t, x, &again);
    check(!err && again.p == body.p && again.n == body.n);
    ok(str_eq(http_header(x, "host"), STR("h")), "the head is still where it was");
    return measure(t, x, body);
}

static int take_pieces(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct buf b;
    buf_init(&b);
    char piece[1000];
    size_t got;
    int err;
    while (!(err = http_body_read(t, x, piece, sizeof(piece), &got)) && got)
        buf_add(&b, piece, got);
    if (!err)
        err = measure(t, x, buf_str(&b));
    buf_release(&b);
    return err;
}

static int take_json(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    const struct json *j;
    int err = http_body_json(t, x, &j);
    return err ? err : http_reply(t, x, 200, "text/plain", json_str(json_get(j, "a")));
}

static int ignore(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "text/plain", STR("ignored"));
}

static int late(struct task *t, struct http_exchange *x, void *ctx)
{
    int err = take(t, x, ctx);
    check(task_time_left_ms(t) <= http_limits_default.handler_ms);
    return err;
}

static int sleepy(struct task *t, struct http_exchange *x, void *ctx)
{
    struct str body;
    int err = http_body(t, x, &body);
    if (!err)
        err = task_sleep(t, http_limits_default.handler_ms - 1000);
    return err ? err : take(t, x, ctx);
}

static const struct http_route routes[] = {
    {"POST", "/take", take, BODY_MAX},     {"POST", "/pieces", take_pieces, BODY_MAX},
    {"POST", "/json", take_json, 1000},    {"POST", "/ignore", ignore, 10 * BODY_MAX},
    {"POST", "/none", ignore, 0},          {"POST", "/late", late, BODY_MAX},
    {"POST", "/sleepy", sleepy, BODY_MAX}, {"GET", "/hidden", take, 0},
};
#define COUNT (sizeof(routes) / sizeof(routes[0]))
#define HOST  "Host: h\r\n"

struct fixture {
    struct site site;
    struct client client;
};

struct test {
    void (*fn)(struct task *t, struct fixture *f);
};

static void with_fixture(struct task *t, void *arg)
{
    const struct test *test = arg;
    struct fixture f;
    site_open(t, &f.site, (struct http_options){.metrics = NULL}, routes, COUNT, NULL);
    client_open(t, &f.site, &f.client);
    test->fn(t, &f);
    client_close(&f.client);
    site_close(t, &f.site);
}
#define RUN(fn) tap_task(with_fixture, &(struct test){fn}, false)

/* Sends in pieces of step bytes with pauses between them. */
static void send_slowly(struct task *t, struct client *c, struct str text, size_t step)
{
    while (text.n) {
        struct str piece = str_from(text.p, text.n < step ? text.n : step);
        client_send(t, c, piece);
        check(task_sleep(t, 10) == 0);
        text = str_from(text.p + piece.n, text.n - piece.n);
    }
}

static void add_sized(struct buf *b, const char *path, size_t n)
{
    buf_printf(b, "POST %s HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", path, n);
    for (size_t i = 0; i < n; i++)
        buf_add_char(b, (char)('a' + i % 26));
}

static void add_chunked(struct buf *b, const char *path, size_t n, size_t chunk)
{
    buf_printf(b, "POST %s HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", path);
    for (size_t i = 0; i < n;) {
        size_t size = n - i < chunk ? n - i : chunk;
        buf_printf(b, "%zx\r\n", size);
        for (size_t end = i + size; i < end; i++)
            buf_add_char(b, (char)('a' + i % 26));
        buf_add_lit(b, "\r\n");
    }
    buf_add_lit(b, "0\r\n\r\n");
}

static void bodies(struct task *t, struct fixture *f)
{
    static const size_t sizes[] = {0, 1, 5, 4000, 5000, 70000, BODY_MAX};
    static const char *const paths[] = {"/take", "/pieces"};
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < 4 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t n = sizes[i / 4];
        buf_clear(&b);
        if (i % 2)
            add_chunked(&b, paths[i / 2 % 2], n, 1777);
        else
            add_sized(&b, paths[i / 2 % 2], n);
        add_sized(&b, "/take", 3); /* pipelined */
        send_slowly(t, &f->client, buf_str(&b), n < 10 ? 7 : 30011);
        struct reply r = client_reply(t, &f->client);
        struct str want = str_printf(task_arena(t), "%zu:", n);
        ok(r.status == 200 && str_starts(r.body, want), "%zu bytes %s to %s", n,
           i % 2 ? "chunked" : "sized", paths[i / 2 % 2]);
        is_str(client_reply(t, &f->client).body, STR("3:abc"), "the next request is found");
    }
    buf_release(&b);
}

/* A head that just fits the first buffer leaves no room there for the chunks behind it. */
static void tight_heads(struct task *t, struct fixture *f)
{
    struct buf b;
    int good = 0, sent = 0;
    buf_init(&b);
    for (size_t size = 4080; size <= 4110; size++, sent++) {
        buf_clear(&b);
        buf_printf(&b, "POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nX: ");
        while (b.len < size - 4)
            buf_add_char(&b, 'x');
        buf_add_lit(&b, "\r\n\r\n");
        client_send(t, &f->client, buf_str(&b));
        check(task_sleep(t, 1) == 0);
        client_send(t, &f->client, STR("3\r\nabc\r\n0\r\n\r\n"));
        good += str_eq(client_reply(t, &f->client).body, STR("3:abc"));
    }
    is_int(good, sent, "heads that fill the buffer");
    buf_release(&b);
}

static void json(struct task *t, struct fixture *f)
{
    client_send(t, &f->client,
                STR("POST /json HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\n{\"a\":\"b\"}"));
    is_str(client_reply(t, &f->client).body, STR("b"), "JSON");
    client_send(t, &f->client,
                STR("POST /json HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\n{\"a\":\n b}"));
    struct reply r = client_reply(t, &f->client);
    ok(r.status == 400 && reply_has(&r, "line 2, column 2"), "no JSON, and where");
    client_send(t, &f->client, STR("POST /json HTTP/1.1\r\n" HOST "\r\n"));
    is_int(client_reply(t, &f->client).status, 400, "no body is no JSON");
}

/* One request on a connection of its own, which must end afterwards. */
static void refused(struct task *t, struct site *s, struct str request, int status,
                    const char *code, const char *what)
{
    struct client c;
    client_open(t, s, &c);
    client_send(t, &c, request);
    struct reply r = client_reply(t, &c);
    is_int(r.status, status, "%s", what);
    ok(reply_has(&r, code) && str_eq(reply_header(&r, "connection"), STR("close")) &&
           client_at_end(t, &c),
       "%s: the reason is given, the connection ends", what);
    client_close(&c);
}

static void limits(struct task *t, struct fixture *f)
{
    struct site *s = &f->site;
    refused(t, s, STR("POST /take HTTP/1.1\r\n" HOST "Content-Length: 307201\r\n\r\n"), 413,
            "too_large", "too large, before any of it was read");
    refused(t, s, STR("POST /none HTTP/1.1\r\n" HOST "Content-Length: 65537\r\n\r\nx"), 413,
            "too_large", "a large body where none is read");
    struct buf b;
    buf_init(&b);
    add_chunked(&b, "/take", BODY_MAX + 1, 5000);
    refused(t, s, buf_str(&b), 413, "too_large", "chunks that add up to too much");
    buf_clear(&b);
    add_chunked(&b, "/pieces", BODY_MAX + 1, 5000);
    refused(t, s, buf_str(&b), 413, "too_large", "the same read in pieces");
    buf_release(&b);
    refused(t, s, STR("POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\nx"), 400,
            "bad_request", "bad chunks");
    refused(
        t, s,
        STR("POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nX : y\r\n\r\n"),
        400, "bad_request", "a bad trailer");
    refused(t, s,
            str_printf(task_arena(t),
                       "POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;%08192d",
                       0),
            400, "bad_request", "an extension without end");
    refused(t, s,
            STR("POST /none HTTP/1.1\r\n" HOST "Content-Length: 0\r\n"
                "Connection: close\r\n\r\n"),
            200, "ignored", "an empty body is none");
}

static void codings(struct task *t, struct fixture *f)
{
    static const struct {
        const char *headers;
        int status;
    } cases[] = {
        {"Content-Encoding: gzip\r\n", 415},
        {"Content-Encoding: identity, br\r\n", 415},
        {"Content-Encoding: identity\r\nContent-Encoding: deflate\r\n", 415},
        {"Content-Encoding: Identity\r\n", 200},
        {"Content-Encoding:\r\n", 200},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str form = str_of(cases[i].headers);
        client_send(t, &f->client,
                    str_printf(task_arena(t),
                               "POST /take HTTP/1.1\r\n" HOST "%.*sContent-Length: 5\r\n\r\nhello",
                               STR_ARG(form)));
        struct reply r = client_reply(t, &f->client);
        is_int(r.status, cases[i].status, "coding %zu", i);
        if (r.status == 415)
            ok(reply_has(&r, "unsupported_coding") && !reply_header(&r, "connection").p &&
                   str_eq(reply_header(&r, "accept-encoding"), STR("identity")),
               "what would be taken is told, and the connection goes on");
    }
    client_send(t, &f->client,
                STR("POST /take HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
                    "GET /hidden HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\n"
                    "Content-Length: 5\r\n\r\nhello"));
    is_int(client_reply(t, &f->client).status, 415, "chunked");
    is_int(client_reply(t, &f->client).status, 200, "not where the body is ignored");
}

static void timeouts(struct task *t, struct fixture *f)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    int64_t began = loop_now_ms(task_loop(t));
    client_send(t, &f->client, STR("POST /take HTTP/1.1\r\n" HOST "Content-Length: 500\r\n\r\n"));
    int bytes = 0;
    while (!f->client.watch.gone && bytes < 500) {
        client_send(t, &f->client, STR("x"));
        bytes++;
        check(task_sleep(t, 1000) == 0);
    }
    struct reply r = client_reply(t, &f->client);
    is_int(r.status, 408, "a body without end, whatever the handler's own deadline is");
    ok(reply_has(&r, "request_timeout"), "and why");
    is_int((loop_now_ms(task_loop(t)) - began) / 1000, http_limits_default.body_ms / 1000 + 1,
           "one byte per second does not help");
    client_close(&f->client);

    client_open(t, &f->site, &f->client);
    client_send(t, &f->client, STR("POST /sleepy HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nx"));
    check(task_sleep(t, http_limits_default.body_ms - 1000) == 0);
    client_send(t, &f->client, STR("y"));
    is_int(client_reply(t, &f->client).status, 200, "a slow upload is not the handler's time");
}

static void expectations(struct task *t, struct fixture *f)
{
    struct client *c = &f->client;
    client_send(t, c,
                STR("POST /take HTTP/1.1\r\n" HOST "Content-Length: 5\r\n"
                    "Expect: 100-continue\r\n\r\n"));
    is_str(client_read(t, c), STR("HTTP/1.1 100 Continue\r\n\r\n"), "the body is asked for");
    client_send(t, c, STR("hello"));
    is_str(client_reply(t, c).body, STR("5:hello"), "and taken");
    client_send(t, c,
                STR("POST /take HTTP/1.1\r\n" HOST "Content-Length: 5\r\n"
                    "Expect: 100-continue\r\n\r\nhello"));
    is_str(client_reply(t, c).body, STR("5:hello"), "it is not asked for when it is here");
    client_send(t, c,
                STR("POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n"
                    "Expect: 100-continue\r\n\r\n"));
    is_int(client_reply(t, c).status, 100, "the same for chunks");
    client_send(t, c, STR("1\r\nx\r\n0\r\n\r\n"));
    is_str(client_reply(t, c).body, STR("1:x"), "and taken");
    client_send(t, c,
                STR("POST /ignore HTTP/1.1\r\n" HOST "Content-Length: 5\r\n"
                    "Expect: 100-continue\r\n\r\n"));
    struct reply r = client_reply(t, c);
    ok(r.status == 200 && str_eq(reply_header(&r, "connection"), STR("close")),
       "a handler that does not want it: no 100, and the end");
    ok(client_at_end(t, c), "really");
    refused(t, &f->site,
            STR("POST /none HTTP/1.1\r\n" HOST "Content-Length: 5\r\n"
                "Expect: 100-continue\r\n\r\n"),
            200, "ignored", "a body that is ignored is not asked for");
}

/* What is dropped is dropped whole: the next request begins where it ends. */
static void dropped(struct task *t, struct fixture *f)
{
    static const char *const requests[] = {
        "GET /hidden HTTP/1.1\r\n" HOST "Content-Length: 35\r\n\r\n"
        "POST /take HTTP/1.1\r\nHost: evil\r\n\r\n",
        "GET /hidden HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"
        "23;a=b\r\nPOST /take HTTP/1.1\r\nHost: evil\r\n\r\n\r\n0\r\nX: y\r\n\r\n",
        "HEAD /hidden HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello",
    };
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct buf b;
        buf_init(&b);
        buf_add_str(&b, str_of(requests[i]));
        add_sized(&b, "/take", 3);
        send_slowly(t, &f->client, buf_str(&b), i ? 9 : b.len);
        struct reply r = requests[i][0] == 'H' ? client_reply_to_head(t, &f->client)
                                               : client_reply(t, &f->client);
        is_int(r.status, 200, "a body of a request without one, %zu", i);
        if (requests[i][0] != 'H')
            is_str(r.body, STR("0:"), "to its handler it is empty");
        is_str(client_reply(t, &f->client).body, STR("3:abc"), "the next request is found");
        buf_release(&b);
    }
    client_send(t, &f->client,
                STR("POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: CHUNKED\r\n\r\n"
                    "3;name=\"value\"\r\nabc\r\n0;last\r\nContent-Length: 9\r\nX-Sum: 1\r\n\r\n"
                    "\r\nPOST /take HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx"));
    is_str(client_reply(t, &f->client).body, STR("3:abc"), "extensions and trailers are dropped");
    is_str(client_reply(t, &f->client).body, STR("1:x"), "and an empty line behind them");
}

static void unread(struct task *t, struct fixture *f)
{
    struct client *c = &f->client;
    struct buf b;
    buf_init(&b);
    add_sized(&b, "/ignore", 50000);
    add_chunked(&b, "/ignore", 50000, 1000);
    add_sized(&b, "/nowhere", 50000);
    add_chunked(&b, "/nowhere", 50000, 1000);
    add_sized(&b, "/take", 3);
    send_slowly(t, c, buf_str(&b), 40000);
    is_int(client_reply(t, c).status, 200, "a small body is read and forgotten");
    is_int(client_reply(t, c).status, 200, "a chunked one as well");
    is_int(client_reply(t, c).status, 404, "without a handler, too");
    is_int(client_reply(t, c).status, 404, "and chunked");
    is_str(client_reply(t, c).body, STR("3:abc"), "the connection goes on");
    client_close(c);

    client_open(t, &f->site, c);
    buf_clear(&b);
    add_sized(&b, "/ignore", 200000);
    client_send(t, c, buf_str(&b));
    struct reply r = client_reply(t, c);
    ok(r.status == 200 && str_eq(reply_header(&r, "connection"), STR("close")) &&
           client_at_end(t, c),
       "a large one is not: the reply arrives, then the end");
    client_close(c);

    client_open(t, &f->site, c);
    buf_clear(&b);
    add_chunked(&b, "/ignore", 200000, 1000);
    add_sized(&b, "/take", 3);
    client_send(t, c, buf_str(&b));
    is_int(client_reply(t, c).status, 200, "nor are many chunks");
    ok(client_at_end(t, c), "however they add up");
    buf_release(&b);
}

static void gone(struct task *t, struct fixture *f)
{
    struct buf log;
    buf_init(&log);
    log_setup(LOG_DEBUG, LOG_TEXT, "test");
    log_capture(&log);
    client_send(t, &f->client, STR("POST /take HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhe"));
    check(task_sleep(t, 10) == 0);
    client_close(&f->client);
    check(task_sleep(t, 10) == 0);
    log_capture(NULL);
    is_int((int64_t)log.len, 0, "a client that leaves is no failure of the server");
    buf_release(&log);
    is_int((int64_t)http_server_connections(f->site.server), 0, "a client that left is let go");
    is_int(site_metric(&f->site, "millrace_http_connections"), 0, "the gauge agrees");
    client_open(t, &f->site, &f->client);
}

int main(void)
{
    RUN(bodies);
    RUN(tight_heads);
    RUN(json);
    RUN(limits);
    RUN(codings);
    RUN(timeouts);
    RUN(expectations);
    RUN(unread);
    RUN(dropped);
    RUN(gone);
    return tap_done();
}
