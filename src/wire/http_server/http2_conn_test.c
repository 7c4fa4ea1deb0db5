/* HTTP/2 with prior knowledge: many streams, limits, ends of all kinds. */
#include "base/log.h"
#include "tests/tap.h"
#include "wire/http2/http2_link.h"
#include "wire/http_server/http2_harness.h"

struct notes { /* what handlers report */
    int began, ended;
    int err;
};

static int slow(struct task *t, struct http_exchange *x, void *ctx)
{
    struct notes *n = ctx;
    n->began++;
    int err = task_sleep(t, 1000);
    n->ended++;
    return err ? err : http_reply(t, x, 200, "text/plain", STR("slow"));
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

static struct notes notes;
static const struct http_route routes[] = {
    {"GET", "/", h2_hello, 0},
    {"POST", "/echo", h2_echo, H2_LARGE_BYTES},
    {"POST", "/json", h2_read_json, 1000},
    {"GET", "/mirror/:name", h2_mirror, 0},
    {"GET", "/large", h2_large, 0},
    {"GET", "/slow", slow, 0},
    {"GET", "/useless", useless, 0},
    {"GET", "/stubborn", stubborn, 0},
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
    h2_begin(&h, &late); /* before the client has read GOAWAY */
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

/* --- invalid HTTP/2 --- */

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

/* GET without :authority: each is answered with a reset. */
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

/* Random bytes after the preface: the server survives. */
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
    tap_task(many, NULL, false);
    tap_task(resets, NULL, false);
    tap_task(draining, NULL, false);
    tap_task(deadlines, NULL, false);
    tap_task(prefaces, NULL, false);
    tap_task(floods, NULL, false);
    tap_task(garbage, NULL, false);
    return tap_done();
}
