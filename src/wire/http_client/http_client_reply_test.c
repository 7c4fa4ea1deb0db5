#include "wire/http_client/http_client_reply.h"

#include "tests/tap.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01 00:00:00 */

static struct http_reply_head read_lines(struct arena *a, struct str text)
{
    struct http_reply_head h;
    http_reply_head_init(&h);
    while (text.p)
        http_reply_head_line(&h, a, str_cut(&text, '\n'), NOW_MS);
    return h;
}

static void test_head(struct arena *a)
{
    struct http_reply_head h = read_lines(a, STR(""));
    is_int(h.status, 0, "nothing yet");
    is_int(h.retry_after_ms, -1, "no Retry-After yet");

    h = read_lines(a, STR("HTTP/1.1 200 OK\r\nContent-TYPE:\t text/x \r\nlocation: /y\r\n\r\n"));
    is_int(h.status, 200, "status");
    is_int(h.version, 11, "version 1.1");
    is_str(h.content_type, STR("text/x"), "type, whatever its case and spaces");
    is_str(h.location, STR("/y"), "where a redirect points to");
    is_int(read_lines(a, STR("HTTP/1.0 404\r\n")).version, 10, "version 1.0");
    h = read_lines(a, STR("HTTP/2 503 \r\nretry-after: 5\r\n"));
    is_int(h.version, 20, "version 2");
    is_int(h.status, 503, "status without text");
    is_int(h.retry_after_ms, 5000, "Retry-After");

    h = read_lines(a, STR("HTTP/1.1 103 Hints\r\nRetry-After: 9\r\nContent-Type: a\r\n\r\n"
                          "HTTP/1.1 200 OK\r\n\r\n"));
    is_int(h.status, 200, "an interim reply is forgotten");
    is_int(h.retry_after_ms, -1, "its Retry-After too");
    ok(!h.content_type.p, "and its type");
    is_int(read_lines(a, STR("HTTP/1.1 99999999999999999999 X\r\n")).status, 0, "a wild status");
    is_int(read_lines(a, STR("HTTP/1.1 -5\r\n")).status, 0, "a negative status");
}

static void is_after(const char *value, int64_t ms)
{
    is_int(http_retry_after_ms(str_of(value), NOW_MS), ms, "Retry-After \"%s\"", value);
}

static void test_retry_after(void)
{
    is_after("0", 0);
    is_after("120", 120000);
    is_after("Thu, 01 Jan 2026 00:01:00 GMT", 60000);
    is_after("Wed, 31 Dec 2025 23:59:00 GMT", 0); /* past */
    is_after("Thu, 01 Jan 1970 00:00:00 GMT", 0);
    int64_t year_ms = INT64_C(366) * 24 * 3600 * 1000;
    is_after("99999999999", year_ms);
    is_after("99999999999999999999999999", year_ms);
    is_after("Fri, 31 Dec 9999 23:59:59 GMT", year_ms);
    is_after("", -1);
    is_after("-1", -1);
    is_after("1.5", -1);
    is_after("+3", -1);
    is_after("soon", -1);
    is_after("12 apples", -1);
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    test_head(&a);
    test_retry_after();
    arena_release(&a);
    return tap_done();
}
