/* Compressed replies: which are, that they are whole, and that the loop goes on meanwhile. */
#include <zlib.h>

#include "base/log.h"
#include "tests/tap.h"
#include "wire/http_server/http2_harness.h"

#define LARGE_BYTES (2 << 20)

/* Text that compresses well, but not to nothing. */
static struct str text(struct task *t, size_t n)
{
    char *p = arena_alloc(task_arena(t), n + 1);
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        p[i] = (char)('a' + (state >> 28));
    }
    return str_from(p, n);
}

static size_t size_of(const struct http_exchange *x)
{
    int64_t n;
    check(str_to_i64(http_param(x, "n"), &n));
    return (size_t)n;
}

static int whole(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    http_allow_gzip(x);
    return http_reply(t, x, 200, "text/plain", text(t, size_of(x)));
}

static struct {
    bool stop;
    int64_t ticks, ticks_meanwhile;
} ticker;

static int watched(struct task *t, struct http_exchange *x, void *ctx)
{
    int64_t before = ticker.ticks;
    int err = whole(t, x, ctx);
    ticker.ticks_meanwhile = ticker.ticks - before;
    return err;
}

static int secret(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "text/plain", text(t, size_of(x)));
}

static int coded(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    http_allow_gzip(x);
    http_set_header(x, "Content-Encoding", STR("x-own"));
    return http_reply(t, x, 200, "text/plain", text(t, size_of(x)));
}

static int noise(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    http_allow_gzip(x);
    char *p = arena_alloc(task_arena(t), 4000);
    loop_secret(task_loop(t), p, 4000);
    return http_reply(t, x, 200, "application/octet-stream", str_from(p, 4000));
}

/* In pieces of all sizes; ?sized: the length is told, ?fail: the end does not come. */
static int stream(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str all = text(t, size_of(x)), how = http_query_string(x);
    http_allow_gzip(x);
    int err = how.p && str_eq(how, STR("sized"))
                  ? http_stream_begin_sized(t, x, 200, "text/csv", all.n)
                  : http_stream_begin(t, x, 200, "text/csv");
    for (size_t at = 0, n = 0; !err && at < all.n; at += n) {
        n = at * 3 + 1 < all.n - at ? at * 3 + 1 : all.n - at;
        err = http_stream_write(t, x, str_from(all.p + at, n));
    }
    if (!err && how.p && str_eq(how, STR("fail")))
        return task_fail(t, ERR_INTERNAL, "lost");
    return err ? err : http_stream_end(t, x);
}

static int events(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    http_allow_gzip(x);
    int err = sse_begin(t, x);
    return err ? err : sse_send(t, x, "state", STR("1"));
}

static const struct http_route routes[] = {
    {"GET", "/whole/:n", whole, 0},     {"GET", "/secret/:n", secret, 0},
    {"GET", "/coded/:n", coded, 0},     {"GET", "/noise", noise, 0},
    {"GET", "/stream/:n", stream, 0},   {"GET", "/events", events, 0},
    {"GET", "/watched/:n", watched, 0},
};

static struct str unpacked(struct task *t, struct str packed)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)packed.p, .avail_in = (uInt)packed.n};
    char *p = arena_alloc(task_arena(t), LARGE_BYTES + 1);
    check(inflateInit2(&z, 15 + 16) == Z_OK);
    z.next_out = (Bytef *)p;
    z.avail_out = LARGE_BYTES + 1;
    int got = inflate(&z, Z_FINISH);
    size_t n = z.total_out;
    inflateEnd(&z);
    return got == Z_STREAM_END && z.avail_in == 0 ? str_from(p, n) : STR_NULL;
}

struct fixture {
    struct site site;
};

static struct reply get(struct task *t, struct fixture *f, const char *path, const char *accepted)
{
    return ask(t, &f->site,
               str_printf(task_arena(t), "GET %s HTTP/1.1\r\nHost: h\r\n%s%s\r\n\r\n", path,
                          accepted ? "Accept-Encoding: " : "Accept: */*",
                          accepted ? accepted : ""));
}

struct test {
    void (*fn)(struct task *t, struct fixture *f);
};

static void with_fixture(struct task *t, void *arg)
{
    const struct test *test = arg;
    struct fixture f;
    site_open(t, &f.site, (struct http_options){.http2 = true}, routes,
              sizeof(routes) / sizeof(routes[0]), NULL);
    test->fn(t, &f);
    site_close(t, &f.site);
}
#define RUN(fn) tap_task(with_fixture, &(struct test){fn}, true)

static void is_packed(struct task *t, const struct reply *r, size_t n, const char *what)
{
    ok(r->status == 200 && str_eq(reply_header(r, "content-encoding"), STR("gzip")) &&
           str_eq(reply_header(r, "vary"), STR("Accept-Encoding")) && (n < 100 || r->body.n < n),
       "%s: compressed", what);
    ok(str_eq(unpacked(t, r->body), text(t, n)), "%s: all of it", what);
}

static void is_plain(struct task *t, const struct reply *r, size_t n, const char *what)
{
    ok(r->status == 200 && !reply_header(r, "content-encoding").p, "%s: not compressed", what);
    ok(str_eq(r->body, text(t, n)), "%s: all of it", what);
}

static void bodies(struct task *t, struct fixture *f)
{
    struct reply r = get(t, f, "/whole/1400", "gzip");
    is_packed(t, &r, 1400, "the shortest");
    ok(reply_header(&r, "content-length").p && !reply_header(&r, "transfer-encoding").p, "sized");
    r = get(t, f, "/whole/1399", "gzip");
    is_plain(t, &r, 1399, "a shorter one");
    is_str(reply_header(&r, "vary"), STR_NULL, "whatever the client takes");
    r = get(t, f, "/whole/10", "gzip, identity;q=0");
    is_packed(t, &r, 10, "a client that takes nothing else");
    r = get(t, f, "/whole/2097152", "deflate, gzip;q=0.5");
    is_packed(t, &r, LARGE_BYTES, "a large one");
    static const char *const without[] = {
        NULL, "br", "gzip;q=0", "identity, gzip;q=0.9", "*;q=0.0", "gzip;q=none"};
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        r = get(t, f, "/whole/5000", without[i]);
        is_plain(t, &r, 5000, without[i] ? without[i] : "no Accept-Encoding");
        is_str(reply_header(&r, "vary"), STR("Accept-Encoding"), "but caches are told");
    }
    r = get(t, f, "/noise", "gzip");
    ok(r.body.n == 4000 && !reply_header(&r, "content-encoding").p, "what would grow is left");
}

static void not_allowed(struct task *t, struct fixture *f)
{
    struct reply r = get(t, f, "/secret/5000", "gzip, identity;q=0");
    is_plain(t, &r, 5000, "a reply with a secret, whatever the client takes");
    r = get(t, f, "/coded/5000", "gzip");
    is_str(reply_header(&r, "content-encoding"), STR("x-own"), "a coding of the handler's own");
    ok(str_eq(r.body, text(t, 5000)), "is not compressed again");
    r = get(t, f, "/events", "gzip");
    is_str(r.body, STR("event: state\ndata: 1\n\n"), "events");
    ok(!reply_header(&r, "content-encoding").p, "are not compressed");
}

static void streams(struct task *t, struct fixture *f)
{
    struct reply r = get(t, f, "/stream/2097152", "gzip");
    is_packed(t, &r, LARGE_BYTES, "a stream");
    r = get(t, f, "/stream/2097152?sized", "gzip");
    is_packed(t, &r, LARGE_BYTES, "one of known length");
    ok(!reply_header(&r, "content-length").p, "which is not that of what is sent");
    r = get(t, f, "/stream/0", "gzip");
    is_packed(t, &r, 0, "an empty stream");
    r = get(t, f, "/stream/1000?sized", "gzip");
    is_plain(t, &r, 1000, "a stream known to be short");
    is_str(reply_header(&r, "content-length"), STR("1000"), "keeps its length");
    r = get(t, f, "/stream/5000", NULL);
    is_plain(t, &r, 5000, "a stream without Accept-Encoding");
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    r = get(t, f, "/stream/200000?fail", "gzip");
    ok(r.cut && !unpacked(t, r.body).p, "a stream that fails has no end");
}

static void heads(struct task *t, struct fixture *f)
{
    static const char *const paths[] = {"/whole/5000", "/stream/5000?sized"};
    struct client c;
    client_open(t, &f->site, &c);
    for (size_t i = 0; i < 2; i++) {
        struct reply g = get(t, f, paths[i], "gzip");
        client_send(t, &c,
                    str_printf(task_arena(t),
                               "HEAD %s HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n",
                               paths[i]));
        struct reply r = client_reply_to_head(t, &c);
        ok(r.status == 200 && str_eq(reply_header(&r, "content-encoding"), STR("gzip")) &&
               str_eq(reply_header(&r, "content-length"), reply_header(&g, "content-length")),
           "HEAD of %s is like GET", paths[i]);
    }
    client_close(&c);
    struct reply old =
        ask(t, &f->site, STR("GET /stream/5000 HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"));
    is_packed(t, &old, 5000, "HTTP/1.0");
}

static void over_http2(struct task *t, struct fixture *f)
{
    static const char *const paths[] = {"/whole/2097152", "/stream/2097152",
                                        "/stream/2097152?sized"};
    struct h2 h;
    h2_open(t, &f->site, &h, (struct h2_settings){0});
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct call c = {.path = paths[i], .name = "accept-encoding", .value = "gzip"};
        h2_call(t, &h, &c);
        ok(c.status == 200 && c.ended && str_eq(call_field(&c, "content-encoding"), STR("gzip")),
           "%s by HTTP/2: compressed", paths[i]);
        ok(str_eq(unpacked(t, buf_str(&c.reply)), text(t, LARGE_BYTES)), "all of it");
        call_release(&c);
    }
    h2_close(&h);
}

static void tick(struct task *t, void *arg)
{
    (void)arg;
    while (!ticker.stop) {
        ticker.ticks++;
        check(task_yield(t) == 0);
    }
}

static void watch(struct task *t, struct fixture *f, const char *n)
{
    struct client c;
    client_open(t, &f->site, &c);
    client_send(t, &c,
                str_printf(task_arena(t),
                           "HEAD /watched/%s HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n",
                           n));
    struct reply r = client_reply_to_head(t, &c);
    is_str(reply_header(&r, "content-encoding"), STR("gzip"), "%s bytes are compressed", n);
    client_close(&c);
}

/* HEAD: nothing is sent, so that only compressing can let another task run. */
static void meanwhile(struct task *t, struct fixture *f)
{
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "ticker", tick, NULL) == 0);
    watch(t, f, "30000");
    is_int(ticker.ticks_meanwhile, 0, "a short one at once");
    watch(t, f, "2097152");
    ok(ticker.ticks_meanwhile > 0, "a long one beside the loop, which goes on");
    ticker.stop = true;
    check(group_join(t, &g) == 0);
}

int main(void)
{
    RUN(bodies);
    RUN(not_allowed);
    RUN(streams);
    RUN(heads);
    RUN(over_http2);
    RUN(meanwhile);
    return tap_done();
}
