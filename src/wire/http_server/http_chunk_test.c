#include "wire/http_server/http_chunk.h"

#include <stdio.h>

#include "base/buf.h"
#include "tests/tap.h"

#define EXTRA_BYTES_MAX 100

static size_t extra_max = EXTRA_BYTES_MAX;

/* Reads text in pieces of step bytes. Returns the verdict; *used is how far it got. */
static enum http_chunk_verdict read_all(struct str text, size_t step, struct buf *body,
                                        size_t *used)
{
    struct http_chunks c = {.extra_max = extra_max};
    *used = 0;
    buf_clear(body);
    for (;;) {
        size_t left = text.n - *used, n;
        struct str data = STR("");
        struct str in = str_from(text.p + *used, left < step ? left : step);
        enum http_chunk_verdict v = http_chunk_next(&c, in, &n, &data);
        *used += n;
        if (v == HTTP_CHUNK_DATA)
            buf_add_str(body, data);
        else if (v != HTTP_CHUNK_MORE || *used == text.n)
            return v;
    }
}

static void reads(struct str text)
{
    struct buf body;
    buf_init(&body);
    for (size_t step = 1; step <= text.n; step++) {
        size_t used;
        enum http_chunk_verdict v = read_all(text, step, &body, &used);
        ok(v == HTTP_CHUNK_END && str_eq(buf_str(&body), STR("hello, world 10!")) &&
               used == text.n - 9,
           "whole, and nothing of what follows, in steps of %zu", step);
    }
    buf_release(&body);
}

static void good(void)
{
    reads(STR("5\r\nhello\r\n00A\r\n, world 10\r\n1\r\n!\r\n0\r\n\r\nGET /next"));
    reads(STR("5;a\r\nhello\r\nA \t;\ta = \"b;c\" ;d=e\r\n, world 10\r\n1;\r\n!\r\n0;last\r\n\r\n"
              "GET /next"));
    reads(STR("10\r\nhello, world 10!\r\n0\r\nX-Sum: 12 ab\r\nEmpty:\r\nContent-Length: 5\r\n\r\n"
              "GET /next"));
}

static void verdict_is(struct str text, enum http_chunk_verdict want, const char *what)
{
    struct buf body;
    buf_init(&body);
    size_t used;
    enum http_chunk_verdict whole = read_all(text, text.n, &body, &used);
    enum http_chunk_verdict single = read_all(text, 1, &body, &used);
    ok(whole == want && single == want, "%s", what);
    buf_release(&body);
}

static void bad(void)
{
    verdict_is(STR("\r\n"), HTTP_CHUNK_BAD, "a size without digits");
    verdict_is(STR("5 \r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a space behind the size");
    verdict_is(STR(" 5\r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a space before the size");
    verdict_is(STR("0x5\r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a prefix");
    verdict_is(STR("-5\r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a sign");
    verdict_is(STR("5\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a bare line feed behind the size");
    verdict_is(STR("5\rhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a bare carriage return");
    verdict_is(STR("5\r\nhello\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a bare line feed behind the data");
    verdict_is(STR("5\r\nhello0\r\n\r\n"), HTTP_CHUNK_BAD, "nothing behind the data");
    verdict_is(STR("4\r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "more data than announced");
    verdict_is(STR("100000000\r\n"), HTTP_CHUNK_BAD, "a size beyond four gigabytes");
    verdict_is(STR("ffffffffffffffff5\r\nhello"), HTTP_CHUNK_BAD, "a size that would overflow");
    verdict_is(STR("0\r\n\n"), HTTP_CHUNK_BAD, "a bare line feed at the end");
    verdict_is(STR("5\r\nhel"), HTTP_CHUNK_MORE, "a cut piece is no end");
    verdict_is(STR("0\r\n"), HTTP_CHUNK_MORE, "the last line is missing");
}

static void bad_extras(void)
{
    verdict_is(STR("5 x\r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "no semicolon");
    verdict_is(STR(";a\r\n\r\n"), HTTP_CHUNK_BAD, "an extension without a size");
    verdict_is(STR("5;a\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a line feed ends an extension");
    verdict_is(STR("5;a\rb\r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a carriage return in one");
    verdict_is(STR("5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a line end in quotes");
    verdict_is(STR("5;a\0\r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "a control character in one");
    verdict_is(STR("0\r\nX: y\n\r\n"), HTTP_CHUNK_BAD, "a line feed ends a trailer");
    verdict_is(STR("0\r\nX: y\rz\r\n\r\n"), HTTP_CHUNK_BAD, "a carriage return in one");
    verdict_is(STR("0\r\nX: y\r\n z\r\n\r\n"), HTTP_CHUNK_BAD, "a folded trailer");
    verdict_is(STR("0\r\nX : y\r\n\r\n"), HTTP_CHUNK_BAD, "a space before its colon");
    verdict_is(STR("0\r\n: y\r\n\r\n"), HTTP_CHUNK_BAD, "a trailer without a name");
    verdict_is(STR("0\r\nGET / HTTP/1.1\r\n\r\n"), HTTP_CHUNK_BAD, "the next request");
    verdict_is(STR("0\r\nX: \x7f\r\n\r\n"), HTTP_CHUNK_BAD, "a control character in a trailer");
    verdict_is(STR("0\r\nX: y\r\n"), HTTP_CHUNK_MORE, "trailers without an end");
}

static struct str filled(const char *form, int n)
{
    static char text[512];
    return str_from(text, (size_t)snprintf(text, sizeof(text), form, n, 0));
}

static void bounds(void)
{
    verdict_is(filled("1;%0*d\r\nx\r\n0\r\n\r\n", EXTRA_BYTES_MAX - 1), HTTP_CHUNK_END,
               "the longest extension");
    verdict_is(filled("1;%0*d", EXTRA_BYTES_MAX), HTTP_CHUNK_BAD, "a longer one");
    verdict_is(filled("0\r\nX:%0*d\r\n\r\n", EXTRA_BYTES_MAX - 2), HTTP_CHUNK_END,
               "the longest trailer");
    verdict_is(filled("0\r\nX:%0*d", EXTRA_BYTES_MAX - 1), HTTP_CHUNK_BAD, "a longer one");
    verdict_is(filled("1;%0*d\r\nx\r\n0;a\r\nX:y\r\n\r\n", EXTRA_BYTES_MAX - 5), HTTP_CHUNK_BAD,
               "the bound is for all of a body");
    extra_max = 0;
    verdict_is(STR("5;a\r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "no extension where none may be");
    verdict_is(STR("0\r\nX: y\r\n\r\n"), HTTP_CHUNK_BAD, "no trailer either");
    extra_max = EXTRA_BYTES_MAX;
}

int main(void)
{
    good();
    bad();
    bad_extras();
    bounds();
    return tap_done();
}
