/* Streams and server-sent events: framing, back-pressure, ends of all kinds. */
#include "base/log.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

/* What the handlers of a test report. */
struct notes {
    int written, ended;
    int err;
};

static int pieces(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    size_t n = 100000;
    char *large = arena_alloc(task_arena(t), n);
    memset(large, 'L', n);
    int err = http_stream_begin(t, x, 200, "text/plain");
    if (!err)
        err = http_stream_write(t, x, STR("one,"));
    if (!err)
        err = http_stream_write(t, x, STR(""));
    if (!err)
        err = task_sleep(t, 2 * http_limits_default.handler_ms); /* longer than a handler may */
    if (!err)
        err = http_stream_write(t, x, str_from(large, n));
    if (!err)
        err = http_stream_write(t, x, STR(",two"));
    return err ? err : http_stream_end(t, x);
}

static int sized(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = http_stream_begin_sized(t, x, 200, "text/plain", 7);
    if (!err)
        err = http_stream_write(t, x, STR("one,"));
    if (!err)
        err = task_sleep(t, 2 * http_limits_default.handler_ms);
    if (!err && str_eq(http_query_string(x), STR("half")))
        return task_fail(t, ERR_INTERNAL, "secret");
    if (!err)
        err = http_stream_write(t, x, STR("two"));
    return err ? err : http_stream_end(t, x);
}

static int broken(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = http_stream_begin(t, x, 200, "text/plain");
    if (!err)
        err = http_stream_write(t, x, STR("half"));
    return err ? err : task_fail(t, ERR_INTERNAL, "secret");
}

static int cut(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = http_stream_begin(t, x, 200, "text/plain");
    if (!err)
        err = http_stream_write(t, x, STR("half"));
    http_abort(x);
    return err;
}

static int cut_at_once(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)t, (void)ctx;
    http_abort(x);
    return 0;
}

static int events(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = sse_begin(t, x);
    if (!err)
        err = sse_send(t, x, "state", STR("{\"a\":1}"));
    if (!err)
        err = sse_send(t, x, NULL, STR("one\ntwo\r\nthree\rfour\n"));
    return err ? err : sse_ping(t, x);
}

/* Events until the drain, or until writing fails. */
static int flood(struct task *t, struct http_exchange *x, void *ctx)
{
    struct notes *n = ctx;
    size_t size = 10000;
    char *p = arena_alloc(task_arena(t), size);
    memset(p, 'e', size);
    n->err = sse_begin(t, x);
    while (!n->err && !http_draining(x) && n->written < 100000) {
        n->err = sse_send(t, x, "e", str_from(p, size));
        n->written += !n->err;
    }
    n->ended++;
    return n->err;
}

static int patient(struct task *t, struct http_exchange *x, void *ctx)
{
    struct notes *n = ctx;
    n->err = sse_begin(t, x);
    while (!n->err && !http_draining(x) && !http_gone(x))
        n->err = task_sleep(t, 1000);
    n->ended++;
    return n->err;
}

static int useless(struct task *t, struct http_exchange *x, void *ctx)
{
    struct notes *n = ctx;
    http_cancel_when_gone(x);
    n->err = task_sleep(t, 20000);
    n->ended++;
    return n->err ? n->err : http_reply(t, x, 200, "text/plain", STR("done"));
}

static int deaf(struct task *t, struct http_exchange *x, void *ctx)
{
    struct notes *n = ctx;
    int err = task_sleep(t, 20000);
    n->err = http_gone(x);
    n->ended++;
    return err ? err : http_reply(t, x, 200, "text/plain", STR("done"));
}

static const struct http_route routes[] = {
    {"GET", "/pieces", pieces, 0},   {"GET", "/broken", broken, 0},   {"GET", "/cut", cut, 0},
    {"GET", "/now", cut_at_once, 0}, {"GET", "/events", events, 0},   {"GET", "/flood", flood, 0},
    {"GET", "/patient", patient, 0}, {"GET", "/useless", useless, 0}, {"GET", "/deaf", deaf, 0},
    {"GET", "/sized", sized, 0},
};
#define COUNT     (sizeof(routes) / sizeof(routes[0]))
#define HOST      "Host: h\r\n"
#define GET(path) STR("GET " path " HTTP/1.1\r\n" HOST "\r\n")

struct fixture {
    struct site site;
    struct client client;
    struct notes notes;
};

struct test {
    void (*fn)(struct task *t, struct fixture *f);
};

static void with_fixture(struct task *t, void *arg)
{
    const struct test *test = arg;
    struct fixture f;
    f.notes = (struct notes){0};
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    site_open(t, &f.site, (struct http_options){.metrics = NULL}, routes, COUNT, &f.notes);
    client_open(t, &f.site, &f.client);
    test->fn(t, &f);
    client_close(&f.client);
    site_close(t, &f.site);
}
#define RUN(fn) tap_task(with_fixture, &(struct test){fn}, false)

static void streams(struct task *t, struct fixture *f)
{
    struct client *c = &f->client;
    client_send(t, c, GET("/pieces"));
    struct reply r = client_reply(t, c);
    ok(r.status == 200 && r.body.n == 100008 && !r.cut && str_ends(r.body, STR("L,two")),
       "a stream, chunked, longer than a handler may take");
    ok(!reply_header(&r, "content-length").p, "without a length");
    client_send(t, c, STR("HEAD /pieces HTTP/1.1\r\n" HOST "\r\n"));
    r = client_reply_to_head(t, c);
    is_str(reply_header(&r, "transfer-encoding"), STR("chunked"), "its head alone");
    check(task_sleep(t, 2 * http_limits_default.handler_ms + 1000) == 0);
    client_send(t, c, GET("/pieces"));
    is_int((int64_t)client_reply(t, c).body.n, 100008, "and again on the same connection");
    client_send(t, c, GET("/sized"));
    r = client_reply(t, c);
    ok(str_eq(reply_header(&r, "content-length"), STR("7")) && str_eq(r.body, STR("one,two")) &&
           !reply_header(&r, "transfer-encoding").p,
       "a stream of known length");
    client_send(t, c, STR("HEAD /sized HTTP/1.1\r\n" HOST "\r\n"));
    r = client_reply_to_head(t, c);
    is_str(reply_header(&r, "content-length"), STR("7"), "its head alone");
    check(task_sleep(t, 2 * http_limits_default.handler_ms + 1000) == 0);
    client_send(t, c, GET("/sized?half"));
    ok(client_reply(t, c).cut, "one that fails half-way is cut");
    client_close(c);
    client_open(t, &f->site, c);
    client_send(t, c, GET("/pieces"));
    check(client_reply(t, c).status == 200);
    client_close(c);

    client_open(t, &f->site, c);
    client_send(t, c, STR("GET /pieces HTTP/1.0\r\n\r\n"));
    r = client_reply(t, c);
    ok(!reply_header(&r, "transfer-encoding").p && r.body.n == 100008,
       "HTTP/1.0 gets it bare, up to the end of the connection");
    client_close(c);

    client_open(t, &f->site, c);
    int64_t began = loop_now_ms(task_loop(t));
    client_send(t, c, GET("/broken"));
    r = client_reply(t, c);
    ok(r.cut && str_eq(r.body, STR("half")), "a failed stream has no end");
    client_close(c);
    client_open(t, &f->site, c);
    client_send(t, c, GET("/cut"));
    ok(client_reply(t, c).cut, "nor has one that was cut");
    client_close(c);
    client_open(t, &f->site, c);
    client_send(t, c, GET("/now"));
    is_int(client_reply(t, c).status, 0, "a reply that was cut before it began");
    is_int(loop_now_ms(task_loop(t)), began, "all of them at once");
}

static void sse(struct task *t, struct fixture *f)
{
    client_send(t, &f->client, GET("/events"));
    struct reply r = client_reply(t, &f->client);
    is_str(reply_header(&r, "content-type"), STR("text/event-stream; charset=utf-8"), "events");
    is_str(reply_header(&r, "cache-control"), STR("no-store"), "are not kept");
    is_str(reply_header(&r, "x-accel-buffering"), STR("no"), "nor held back");
    is_str(r.body,
           STR("event: state\ndata: {\"a\":1}\n\n"
               "data: one\ndata: two\ndata: three\ndata: four\ndata: \n\n:\n\n"),
           "every line of data is marked");
    ok(!r.cut, "the stream ends with its handler");
    client_send(t, &f->client, GET("/events"));
    is_int(client_reply(t, &f->client).status, 200, "the connection goes on");
}

static void back_pressure(struct task *t, struct fixture *f)
{
    client_send(t, &f->client, GET("/flood"));
    check(task_sleep(t, http_limits_default.write_ms / 2) == 0);
    int written = f->notes.written;
    ok(written > 0 && written < 1000, "writing waits for the reader");
    for (size_t n = 0; n < 300000;)
        n += client_read(t, &f->client).n;
    check(task_sleep(t, http_limits_default.write_ms / 2 + 1000) == 0);
    ok(f->notes.written > written && !f->notes.ended, "and goes on when it reads");
    check(task_sleep(t, http_limits_default.write_ms + 1000) == 0);
    is_int(f->notes.err, ERR_TIMEOUT, "but not for ever");
    client_close(&f->client);

    f->notes = (struct notes){0};
    client_open(t, &f->site, &f->client);
    client_send(t, &f->client, GET("/flood"));
    check(task_sleep(t, 1000) == 0);
    client_close(&f->client);
    check(task_sleep(t, 1000) == 0);
    is_int(f->notes.err, ERR_CLOSED, "a reader that left is noticed while writing");
    is_int((int64_t)http_server_connections(f->site.server), 0, "and forgotten");
    client_open(t, &f->site, &f->client);
}

static void leaving(struct task *t, struct fixture *f)
{
    static const char *const requests[] = {
        "GET /patient HTTP/1.1\r\n" HOST "\r\n",
        "GET /useless HTTP/1.1\r\n" HOST "\r\n",
        "GET /deaf HTTP/1.1\r\n" HOST "\r\n",
    };
    static const int64_t until_ms[] = {1000, 0, 20000};
    static const int err[] = {0, ERR_CANCELED, 1};
    for (int i = 0; i < 3; i++) {
        f->notes = (struct notes){0};
        client_send(t, &f->client, str_of(requests[i]));
        check(task_sleep(t, 500) == 0);
        is_int(f->notes.ended, 0, "the handler is at work");
        int64_t began = loop_now_ms(task_loop(t));
        client_close(&f->client);
        while (!f->notes.ended)
            check(task_sleep(t, 10) == 0);
        ok(loop_now_ms(task_loop(t)) - began <= until_ms[i] + 10, "case %d ends in time", i);
        is_int(f->notes.err, err[i], "as it should");
        client_open(t, &f->site, &f->client);
    }
}

int main(void)
{
    RUN(streams);
    RUN(sse);
    RUN(back_pressure);
    RUN(leaving);
    return tap_done();
}
