#include "wire/http_server/http_chunk.h"

#include "base/buf.h"
#include "tests/tap.h"

/* Reads text in pieces of step bytes. Returns the verdict; *used is how far it got. */
static enum http_chunk_verdict read_all(struct str text, size_t step, struct buf *body,
                                        size_t *used)
{
    struct http_chunks c = {0};
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

static void good(void)
{
    struct str text = STR("5\r\nhello\r\n00A\r\n, world 10\r\n1\r\n!\r\n0\r\n\r\nGET /next");
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
    verdict_is(STR("5;name=value\r\nhello\r\n0\r\n\r\n"), HTTP_CHUNK_BAD, "an extension");
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
    verdict_is(STR("0\r\nX-Trailer: 1\r\n\r\n"), HTTP_CHUNK_BAD, "a trailer");
    verdict_is(STR("0\r\n\n"), HTTP_CHUNK_BAD, "a bare line feed at the end");
    verdict_is(STR("5\r\nhel"), HTTP_CHUNK_MORE, "a cut piece is no end");
    verdict_is(STR("0\r\n"), HTTP_CHUNK_MORE, "the last line is missing");
}

int main(void)
{
    good();
    bad();
    return tap_done();
}
