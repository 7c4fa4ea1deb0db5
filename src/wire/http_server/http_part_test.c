/* Parts of a body that a handler sends, and the tags by which they belong together. */
#include "tests/tap.h"
#include "wire/http_server/http2_harness.h"

#define SIZE 5000

static char bytes[SIZE];

static int serve(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    if (str_eq(http_path(x), STR("/packed")))
        http_allow_gzip(x);
    struct http_part p = http_part_choose(x, STR("v1"), SIZE);
    http_part_announce(x, &p);
    if (p.status == 304 || p.status == 416)
        return http_reply(t, x, p.status, NULL, STR(""));
    int err = http_stream_begin_sized(t, x, p.status, "text/csv", p.count);
    if (!err)
        err = http_stream_write(t, x, str_from(bytes + p.first, (size_t)p.count));
    return err ? err : http_stream_end(t, x);
}

static const struct http_route routes[] = {
    {"GET", "/plain", serve, 0},
    {"POST", "/plain", serve, 100},
    {"GET", "/packed", serve, 0},
};

struct expected {
    const char *method, *path, *headers;
    int status;
    const char *range, *etag, *ranges, *coding; /* of the reply; NULL: none */
    size_t first, count;                        /* of the body, if it is not coded */
};

#define PLAIN  "\"v1\""
#define PACKED "\"v1-gzip\""
#define GZIP   "Accept-Encoding: gzip\r\n"

static const struct expected cases[] = {
    {"GET", "/plain", "", 200, NULL, PLAIN, "bytes", NULL, 0, SIZE},
    {"GET", "/plain", "Range: bytes=10-19\r\n", 206, "bytes 10-19/5000", PLAIN, "bytes", NULL, 10,
     10},
    {"GET", "/plain", "Range: bytes=-1\r\n", 206, "bytes 4999-4999/5000", PLAIN, "bytes", NULL,
     4999, 1},
    {"GET", "/plain", "Range: bytes=5000-\r\n", 416, "bytes */5000", PLAIN, "bytes", NULL, 0, 0},
    {"GET", "/plain", "Range: bytes=0-1,3-4\r\n", 200, NULL, PLAIN, "bytes", NULL, 0, SIZE},
    {"GET", "/plain", "Range: bytes=0-1\r\nIf-Range: " PLAIN "\r\n", 206, "bytes 0-1/5000", PLAIN,
     "bytes", NULL, 0, 2},
    {"GET", "/plain", "Range: bytes=0-1\r\nIf-Range: \"v0\"\r\n", 200, NULL, PLAIN, "bytes", NULL,
     0, SIZE},
    {"GET", "/plain", "Range: bytes=0-1\r\nIf-Range: W/" PLAIN "\r\n", 200, NULL, PLAIN, "bytes",
     NULL, 0, SIZE},
    {"GET", "/plain", "If-None-Match: \"v0\", " PLAIN "\r\n", 304, NULL, PLAIN, NULL, NULL, 0, 0},
    {"POST", "/plain", "Range: bytes=0-1\r\nContent-Length: 0\r\n", 200, NULL, PLAIN, "bytes", NULL,
     0, SIZE},
    {"POST", "/plain", "If-None-Match: *\r\nContent-Length: 0\r\n", 200, NULL, PLAIN, "bytes", NULL,
     0, SIZE},
    {"GET", "/packed", GZIP, 200, NULL, PACKED, NULL, "gzip", 0, 0},
    {"GET", "/packed", "", 200, NULL, PLAIN, "bytes", NULL, 0, SIZE},
    {"GET", "/packed", GZIP "Range: bytes=0-1999\r\n", 206, "bytes 0-1999/5000", PLAIN, "bytes",
     NULL, 0, 2000},
    {"GET", "/packed", GZIP "Range: bytes=0-1\r\nIf-Range: " PACKED "\r\n", 200, NULL, PACKED, NULL,
     "gzip", 0, 0},
    {"GET", "/packed", GZIP "If-None-Match: " PACKED "\r\n", 304, NULL, PACKED, NULL, NULL, 0, 0},
    {"GET", "/packed", GZIP "If-None-Match: " PLAIN "\r\n", 200, NULL, PACKED, NULL, "gzip", 0, 0},
};

static bool same(struct str got, const char *want)
{
    return want ? got.p && str_eq(got, str_of(want)) : !got.p;
}

static void parts(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open(t, &s, (struct http_options){.http2 = true}, routes,
              sizeof(routes) / sizeof(routes[0]), NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct expected *e = &cases[i];
        struct reply r = ask(t, &s,
                             str_printf(task_arena(t), "%s %s HTTP/1.1\r\nHost: h\r\n%s\r\n",
                                        e->method, e->path, e->headers));
        is_int(r.status, e->status, "case %zu: status", i);
        ok(same(reply_header(&r, "content-range"), e->range) &&
               same(reply_header(&r, "etag"), e->etag) &&
               same(reply_header(&r, "accept-ranges"), e->ranges) &&
               same(reply_header(&r, "content-encoding"), e->coding),
           "case %zu: headers", i);
        ok(same(reply_header(&r, "vary"),
                strcmp(e->path, "/packed") == 0 ? "Accept-Encoding" : NULL),
           "case %zu: Vary", i);
        if (!e->coding)
            is_str(r.body, str_from(bytes + e->first, e->count), "case %zu: body", i);
    }
    struct h2 h;
    h2_open(t, &s, &h, (struct h2_settings){0});
    struct call c = {.path = "/packed", .name = "range", .value = "bytes=7-8"};
    h2_call(t, &h, &c);
    is_int(c.status, 206, "a part by HTTP/2");
    is_str(buf_str(&c.reply), str_from(bytes + 7, 2), "which");
    is_str(call_field(&c, "content-range"), STR("bytes 7-8/5000"), "and where it is from");
    call_release(&c);
    h2_close(&h);
    site_close(t, &s);
}

int main(void)
{
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)('a' + i / 3 % 26);
    tap_task(parts, NULL, true);
    return tap_done();
}
