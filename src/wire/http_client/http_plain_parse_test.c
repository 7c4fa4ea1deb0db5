#include "wire/http_client/http_plain_parse.h"

#include "base/buf.h"
#include "tests/tap.h"

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static const struct http_plain_limits limits = {.head_bytes = 300, .body_bytes = 40};

struct outcome {
    enum http_plain_verdict verdict;
    struct buf body;
    struct http_plain p;
    size_t end; /* bytes used */
};

/* In pieces of step bytes. */
static void read_reply(struct outcome *o, struct arena *a, struct str text, size_t step,
                       bool to_head)
{
    http_plain_init(&o->p, a, limits, to_head, 0);
    buf_init(&o->body);
    for (o->end = 0;;) {
        size_t left = text.n - o->end, used;
        struct str data, in = str_from(text.p + o->end, left < step ? left : step);
        o->verdict = http_plain_next(&o->p, in, &used, &data);
        o->end += used;
        if (o->verdict == HTTP_PLAIN_DATA)
            buf_add_str(&o->body, data);
        else if (o->verdict != HTTP_PLAIN_MORE || o->end == text.n)
            return;
    }
}

/* The same whole and cut in every way: "ok …", or what is wrong with it. */
static const char *verdict_text(struct arena *a, const struct outcome *o)
{
    struct str body = buf_str(&o->body);
    switch (o->verdict) {
    case HTTP_PLAIN_BAD:
        return o->p.problem;
    case HTTP_PLAIN_LIMIT:
        return "limit";
    case HTTP_PLAIN_END:
        return arena_printf(a, "%d %.*s%s", o->p.head.status, STR_ARG(body),
                            o->p.close ? " close" : "");
    default:
        if (http_plain_ended(&o->p))
            return arena_printf(a, "%d %.*s at end%s", o->p.head.status, STR_ARG(body),
                                o->p.close ? " close" : "");
        return "more";
    }
}

static void reads(struct str text, bool to_head, const char *want)
{
    struct arena a;
    arena_init(&a);
    size_t wrong = 0;
    const char *got = NULL;
    for (size_t step = text.n; step > 0; step--) {
        struct outcome o;
        read_reply(&o, &a, text, step, to_head);
        got = verdict_text(&a, &o);
        wrong += strcmp(got, want) != 0;
        buf_release(&o.body);
    }
    is_int((int64_t)wrong, 0, "%s: %.*s", want, text.n < 60 ? (int)text.n : 60, text.p);
    is_str(str_of(got), str_of(want), "byte by byte");
    arena_release(&a);
}
#define READS(text, want) reads(STR(text), false, want)

static void test_bodies(void)
{
    READS(OK_HEAD "Content-Length: 5\r\n\r\nhello", "200 hello");
    READS(OK_HEAD "content-LENGTH:\t5 \r\n\r\nhelloHTTP/1.1 ", "200 hello");
    READS(OK_HEAD "Content-Length: 0\r\n\r\n", "200 ");
    READS(OK_HEAD "Content-Length: 5\r\n\r\nhell", "more");
    READS(OK_HEAD "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n3\r\n wo\r\n0\r\n\r\n",
          "200 hello wo");
    READS(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r", "more");
    READS(OK_HEAD "X: y\r\n\r\nhello", "200 hello at end close");
    READS("HTTP/1.0 200 OK\r\n\r\nhello", "200 hello at end close");
    READS("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhello", "200 he close");
    READS(OK_HEAD "Connection: x, Close\r\nContent-Length: 2\r\n\r\nhe", "200 he close");
    READS("HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", "404 ");
    READS("HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n", "599 ");
    READS("HTTP/1.1 204 No\r\n\r\n", "204 ");
    READS("HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", "204 ");
    READS("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello", "204  close");
    READS("HTTP/1.1 304 Same\r\nTransfer-Encoding: chunked\r\n\r\n", "304  close");
    reads(STR(OK_HEAD "Content-Length: 5\r\n\r\nhello"), true, "200  close");
    reads(STR(OK_HEAD "\r\n"), true, "200 ");
    reads(STR(OK_HEAD "Content-Length: 99999\r\n\r\n"), true, "200  close");
}

static void test_interim(void)
{
    READS("HTTP/1.1 100 Continue\r\n\r\n" OK_HEAD "Content-Length: 2\r\n\r\nhe", "200 he");
    READS(
        "HTTP/1.1 103 Hints\r\nContent-Length: 9\r\nConnection: close\r\n\r\nHTTP/1.1 102 x\r\n\r\n"
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "200 ");
    READS("HTTP/1.1 100 Continue\r\n\r\n", "more");
    READS("HTTP/1.1 101 Switch\r\n\r\n", "it switches to another protocol unasked");
}

static void test_refused(void)
{
    static const char no_http[] = "no status line of HTTP/1.1", name[] = "bad header name",
                      length[] = "bad Content-Length",
                      control[] = "a header has a control character in it",
                      two[] = "two headers say how long the body is",
                      coding[] = "a Transfer-Encoding other than chunked",
                      feed[] = "a line feed without a carriage return",
                      chunk[] = "a chunk of the body has no proper size";
    READS("SSH-2.0-OpenSSH_9.2\r\n", no_http);
    READS("X", no_http);
    READS("\r\n" OK_HEAD, no_http);
    READS("HTTP/2.0 200 OK\r\n", no_http);
    READS("HTTP/1.2 200 OK\r\n", no_http);
    READS("HTTP/1.1 20 OK\r\n", no_http);
    READS("HTTP/1.1 2000 OK\r\n", no_http);
    READS("HTTP/1.1 099 OK\r\n", no_http);
    READS("HTTP/1.1  200 OK\r\n", no_http);
    READS("HTTP/1.1 200 O\001K\r\n", no_http);
    READS("HTTP/1.1 200 OK\n\n", feed);
    READS(OK_HEAD "X: y\n", feed);
    READS(OK_HEAD "\n", feed);
    READS(OK_HEAD "X : y\r\n", name);
    READS(OK_HEAD " folded\r\n", name);
    READS(OK_HEAD "no colon\r\n", name);
    READS(OK_HEAD ": y\r\n", name);
    READS(OK_HEAD "X: a\rb\r\n", control);
    READS(OK_HEAD "X: a\0b\r\n", control);
    READS(OK_HEAD "Content-Length: 5, 5\r\n", length);
    READS(OK_HEAD "Content-Length: -1\r\n", length);
    READS(OK_HEAD "Content-Length: +1\r\n", length);
    READS(OK_HEAD "Content-Length: 05\r\n", length);
    READS(OK_HEAD "Content-Length:\r\n", length);
    READS(OK_HEAD "Content-Length: 18446744073709551617\r\n", length);
    READS(OK_HEAD "Content-Length: 5\r\nContent-Length: 5\r\n", two);
    READS(OK_HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", two);
    READS(OK_HEAD "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", two);
    READS(OK_HEAD "Transfer-Encoding: gzip, chunked\r\n", coding);
    READS("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n", "a Transfer-Encoding in HTTP/1.0");
    READS(OK_HEAD "Transfer-Encoding: chunked\r\n\r\nx", chunk);
    READS(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX", chunk);
    READS(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello", chunk);
    READS(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello", chunk);
    READS(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n", chunk);
}

static void test_limits(void)
{
    char text[1000];
    memset(text, 'x', sizeof text);
    memcpy(text, OK_HEAD "X: ", 20);
    memcpy(text + 296, "\r\n\r\n", 4);
    reads(str_from(text, 300), false, "200  at end close");
    memset(text + 296, 'x', 4);
    memcpy(text + 297, "\r\n\r\n", 4);
    reads(str_from(text, 301), false, "limit");
    reads(str_from(text, 299), false, "more");
    memset(text + 297, 'x', 4);
    reads(str_from(text, 300), false, "limit");

    struct str forty = STR("0123456789012345678901234567890123456789");
    struct arena a;
    arena_init(&a);
    const char *whole = arena_printf(&a, OK_HEAD "\r\n%s", forty.p);
    reads(str_of(whole), false, arena_printf(&a, "200 %s at end close", forty.p));
    reads(str_printf(&a, "%sx", whole), false, "limit");
    reads(str_printf(&a, OK_HEAD "Content-Length: 40\r\n\r\n%s", forty.p), false,
          arena_printf(&a, "200 %s", forty.p));
    READS(OK_HEAD "Content-Length: 41\r\n\r\n", "limit");
    reads(str_printf(&a, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n28\r\n%s\r\n1\r\nx", forty.p),
          false, "limit");
    const char *hint = "HTTP/1.1 103 Early Hints are many, and some servers never end them\r\n\r\n";
    reads(str_printf(&a, "%s%s%s%s%s", hint, hint, hint, hint, hint), false, "limit");
    arena_release(&a);
}

static void test_head(void)
{
    struct arena a;
    arena_init(&a);
    struct outcome o;
    struct str text = STR("HTTP/1.0 503 x\r\nRetry-After: 7\r\nContent-Type: a/b\r\n\r\n");
    for (size_t step = 1; step < text.n; step += 20) {
        read_reply(&o, &a, text, step, false);
        is_int(o.p.head.status, 503, "status");
        is_int(o.p.head.version, 10, "version");
        is_int(o.p.head.retry_after_ms, 7000, "Retry-After");
        is_str(o.p.head.content_type, STR("a/b"), "type");
        buf_release(&o.body);
    }
    arena_release(&a);
}

int main(void)
{
    test_bodies();
    test_interim();
    test_refused();
    test_limits();
    test_head();
    return tap_done();
}
