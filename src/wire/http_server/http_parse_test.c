#include "wire/http_server/http_parse.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/tap.h"

static const struct http_parse_limits limits = {.target_bytes = 64, .head_bytes = 512, .fields = 8};
static struct http_field fields[8];
static struct http_parser parser;

static enum http_verdict parse(struct str in)
{
    http_parser_init(&parser, limits, fields);
    return http_parse(&parser, in);
}

/* The status it is refused with, 200 when it is taken, 0 when more must come. */
static int status_of(enum http_verdict v)
{
    return v == HTTP_BAD ? http_refused[parser.problem.why].status : v == HTTP_DONE ? 200 : 0;
}

/* The same whole, byte by byte, and cut at every place. */
static void gives(struct str in, int want, const char *what)
{
    int got = status_of(parse(in)), same = 1;
    http_parser_init(&parser, limits, fields);
    enum http_verdict v = HTTP_MORE;
    for (size_t n = 1; n <= in.n && v == HTTP_MORE; n++)
        v = http_parse(&parser, str_from(in.p, n));
    same &= status_of(v) == got;
    for (size_t cut = 1; cut < in.n; cut++) {
        http_parser_init(&parser, limits, fields);
        v = http_parse(&parser, str_from(in.p, cut));
        if (v == HTTP_MORE)
            v = http_parse(&parser, in);
        same &= status_of(v) == got;
    }
    is_int(got, want, "%s", what);
    if (!same)
        ok(false, "%s: it matters where it is cut", what);
}

#define HOST "Host: example.org\r\n"
#define GET  "GET / HTTP/1.1\r\n" HOST
#define POST "POST / HTTP/1.1\r\n" HOST

static void taken(void)
{
    struct str in = STR("POST /a/b?c=d&e HTTP/1.1\r\nHost: example.org:80\r\nX-One:\t 1 \t\r\n"
                        "Empty:\r\ncontent-LENGTH: 12\r\n\r\nhello");
    is_int(parse(in), HTTP_DONE, "a request with everything");
    struct http_head *h = &parser.head;
    is_int((int64_t)parser.used, (int64_t)in.n - 5, "the body is left alone");
    is_str(h->method, STR("POST"), "method");
    is_str(h->target, STR("/a/b?c=d&e"), "target");
    is_str(h->path, STR("/a/b"), "path");
    is_str(h->query, STR("c=d&e"), "query");
    is_str(http_head_field(h, STR("x-one")), STR("1"), "values are trimmed, names have no case");
    is_str(http_head_field(h, STR("empty")), STR(""), "an empty value");
    is_str(http_head_field(h, STR("absent")), STR_NULL, "an absent one");
    ok(h->framing == HTTP_SIZED && h->body_bytes == 12 && !h->close && h->minor == 1, "framing");
    ok(h->method.p == in.p, "nothing is copied");

    parse(STR(GET "\r\n"));
    ok(h->framing == HTTP_NO_BODY && !h->query.p && !h->expects_continue, "the least there is");
    parse(STR(POST "Transfer-Encoding: chunked\r\nExpect: 100-Continue\r\n\r\n"));
    ok(h->framing == HTTP_CHUNKED && h->expects_continue, "chunked, with an expectation");
    parse(STR(GET "Connection: x, Close\r\n\r\n"));
    ok(h->close, "the client wants to close");
    parse(STR("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    ok(h->close && h->minor == 0, "HTTP/1.0 always closes, and needs no Host");
    parse(STR("GET /? HTTP/1.1\r\n" HOST "\r\n"));
    is_str(h->query, STR(""), "an empty query is not an absent one");
    gives(STR(GET "X: \xC3\xA9\r\n\r\n"), 200, "bytes above ASCII in a value");
    gives(STR("GET /a?b=[1]|{2}^'` HTTP/1.1\r\n" HOST "\r\n"), 200, "what browsers leave bare");
    gives(STR("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), 200, "OPTIONS *");
    gives(STR(GET "\r\nGET / HTTP/1.1\nrubbish"), 200, "what follows is not looked at");
}

static void request_lines(void)
{
    gives(STR("GET / HTTP/1.1"), 0, "not yet complete");
    gives(STR("GET /\r\n"), 400, "HTTP/0.9");
    gives(STR("GET\r\n"), 400, "a method alone");
    gives(STR("\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), 200, "an empty line before");
    gives(STR("\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), 200, "a few of them");
    gives(STR("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), 400, "too many");
    gives(STR("\r\n\r\n"), 0, "empty lines alone are no request yet");
    gives(STR("\nGET / HTTP/1.1\r\n" HOST "\r\n"), 400, "a bare line feed before");
    gives(STR("\r\n\nGET / HTTP/1.1\r\n" HOST "\r\n"), 400, "one behind an empty line");
    gives(STR("\rGET / HTTP/1.1\r\n" HOST "\r\n"), 400, "a bare carriage return before");
    gives(STR("\r\n GET / HTTP/1.1\r\n" HOST "\r\n"), 400, "a space behind an empty line");
    gives(STR("\r\n\x16\x03\x01"), 400, "TLS behind an empty line");
    gives(STR("get / HTTP/1.1\r\n" HOST "\r\n"), 400, "a method in lower case");
    gives(STR("GeT / HTTP/1.1\r\n" HOST "\r\n"), 400, "a method in mixed case");
    gives(STR("G@T / HTTP/1.1\r\n" HOST "\r\n"), 400, "a method with a strange character");
    gives(STR("ABCDEFGHIJKLMNOPQRSTU / HTTP/1.1\r\n" HOST "\r\n"), 400, "a method without end");
    gives(STR("\x16\x03\x01"), 400, "TLS, at its first byte");
    gives(STR("GET  / HTTP/1.1\r\n" HOST "\r\n"), 400, "two spaces");
    gives(STR("GET / HTTP/1.1 \r\n" HOST "\r\n"), 400, "a space at the end");
    gives(STR("GET /a b HTTP/1.1\r\n" HOST "\r\n"), 400, "a space in the target");
    gives(STR("GET\t/\tHTTP/1.1\r\n" HOST "\r\n"), 400, "tabs");
    gives(STR("GET / HTTP/1.1\n" HOST "\r\n"), 400, "a bare line feed");
    gives(STR("GET / HTTP/1.1\r" HOST "\r\n"), 400, "a bare carriage return");
    gives(STR("GET / HTTP/1.1\r\r\n" HOST "\r\n"), 400, "two carriage returns");
    gives(STR("GET / http/1.1\r\n" HOST "\r\n"), 400, "a version in lower case");
    gives(STR("GET / HTTP/0.9\r\n" HOST "\r\n"), 400, "version 0.9");
    gives(STR("GET / HTTP/1\r\n" HOST "\r\n"), 400, "half a version");
    gives(STR("GET / HTTP/1.10\r\n" HOST "\r\n"), 400, "a long version");
    gives(STR("GET / HTTP/1.2\r\n" HOST "\r\n"), 505, "version 1.2");
    gives(STR("GET / HTTP/2.0\r\n" HOST "\r\n"), 505, "version 2");
    gives(STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505, "the preface of HTTP/2");
}

static void targets(void)
{
    gives(STR("GET * HTTP/1.1\r\n" HOST "\r\n"), 400, "* is for OPTIONS");
    gives(STR("GET a HTTP/1.1\r\n" HOST "\r\n"), 400, "no slash");
    gives(STR("CONNECT example.org:443 HTTP/1.1\r\n" HOST "\r\n"), 400, "authority form");
    gives(STR("GET /a#b HTTP/1.1\r\n" HOST "\r\n"), 400, "a fragment");
    gives(STR("GET /a?b#c HTTP/1.1\r\n" HOST "\r\n"), 400, "a fragment behind a query");
    gives(STR("GET /\xC3\xA9 HTTP/1.1\r\n" HOST "\r\n"), 400, "bytes above ASCII");
    gives(STR("GET /?\xC3\xA9 HTTP/1.1\r\n" HOST "\r\n"), 400, "bytes above ASCII in the query");
    gives(STR("GET /a\\b HTTP/1.1\r\n" HOST "\r\n"), 400, "a backslash");
    gives(STR("GET /a\"b HTTP/1.1\r\n" HOST "\r\n"), 400, "a quote");
    gives(STR("GET /?a<b HTTP/1.1\r\n" HOST "\r\n"), 400, "an angle in the query");
    gives(STR("GET /\0 HTTP/1.1\r\n" HOST "\r\n"), 400, "NUL");
    gives(STR("GET /\x7f HTTP/1.1\r\n" HOST "\r\n"), 400, "DEL");
}

static void absolute_is(struct str in, const char *host, const char *path, const char *query,
                        const char *what)
{
    gives(in, 200, what);
    parse(in);
    const struct http_head *h = &parser.head;
    is_str(http_head_field(h, STR("host")), str_of(host), "%s: host", what);
    is_str(h->path, str_of(path), "%s: path", what);
    is_str(h->query, query ? str_of(query) : STR_NULL, "%s: query", what);
}

static void absolute_targets(void)
{
    absolute_is(STR("GET http://a.example:80/x/y?z=1 HTTP/1.1\r\n" HOST "\r\n"), "a.example:80",
                "/x/y", "z=1", "the host of the target counts, not the header");
    absolute_is(STR("GET HTTPS://[::1]/ HTTP/1.1\r\n" HOST "\r\n"), "[::1]", "/", NULL,
                "any case of the scheme");
    absolute_is(STR("GET http://a HTTP/1.1\r\n" HOST "\r\n"), "a", "/", NULL, "no path");
    absolute_is(STR("GET http://a?b HTTP/1.1\r\n" HOST "\r\n"), "a", "/", "b", "only a query");
    absolute_is(STR("GET http://a/ HTTP/1.0\r\n\r\n"), "a", "/", NULL, "HTTP/1.0 without Host");
    gives(STR("GET http://a/ HTTP/1.1\r\n\r\n"), 400, "no Host");
    gives(STR("GET http://a/ HTTP/1.1\r\nHost: a b\r\n\r\n"), 400, "a bad Host");
    gives(STR("GET http:///a HTTP/1.1\r\n" HOST "\r\n"), 400, "no host in the target");
    gives(STR("GET http://u@a/ HTTP/1.1\r\n" HOST "\r\n"), 400, "a user");
    gives(STR("GET http://a:99999/ HTTP/1.1\r\n" HOST "\r\n"), 400, "a bad port");
    gives(STR("GET http://a#b HTTP/1.1\r\n" HOST "\r\n"), 400, "a fragment");
    gives(STR("GET http:/a HTTP/1.1\r\n" HOST "\r\n"), 400, "one slash");
    gives(STR("GET ftp://a/ HTTP/1.1\r\n" HOST "\r\n"), 400, "another scheme");
    gives(STR("GET http://a/\xC3\xA9 HTTP/1.1\r\n" HOST "\r\n"), 400, "bytes above ASCII");
    gives(STR("GET http://a/ HTTP/1.0\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n\r\n"),
          431, "no room for its host");
    http_parser_init(&parser, limits, fields);
    http_parse_field(&parser, STR("host"), STR("a"));
    is_int(http_parse_end(&parser, STR("GET"), STR("http://b/")), HTTP_BAD, "not in HTTP/2");
}

static void headers(void)
{
    gives(STR("GET / HTTP/1.1\r\n\r\n"), 400, "no Host");
    gives(STR(GET HOST "\r\n"), 400, "two Hosts");
    gives(STR("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 400, "an empty Host");
    gives(STR("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400, "a bad Host");
    gives(STR("GET / HTTP/1.0\r\nHost: a/b\r\n\r\n"), 400, "a bad Host in HTTP/1.0");
    gives(STR(GET "Name : v\r\n\r\n"), 400, "a space before the colon");
    gives(STR(GET "Na me: v\r\n\r\n"), 400, "a space in a name");
    gives(STR(GET ": v\r\n\r\n"), 400, "no name");
    gives(STR(GET "Name\r\n\r\n"), 400, "no colon");
    gives(STR(GET "N\xC3\xA9: v\r\n\r\n"), 400, "bytes above ASCII in a name");
    gives(STR(GET "N(e): v\r\n\r\n"), 400, "a delimiter in a name");
    gives(STR(GET "A: b\r\n c\r\n\r\n"), 400, "a folded header");
    gives(STR("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400, "a space before the first header");
    gives(STR(GET "A: b\n\r\n"), 400, "a bare line feed");
    gives(STR(GET "A: b\rB: c\r\n\r\n"), 400, "a bare carriage return");
    gives(STR(GET "A: b\r\n\n"), 400, "a bare line feed at the end");
    gives(STR(GET "A: b\0c\r\n\r\n"), 400, "NUL");
    gives(STR(GET "A: b\x01\r\n\r\n"), 400, "a control character");
    gives(STR(GET "A: \x7f\r\n\r\n"), 400, "DEL");
    gives(STR(GET "Authorization: a\r\nauthorization: b\r\n\r\n"), 400, "two Authorizations");
    gives(STR(GET "Cookie: a=1\r\nCookie: a=2\r\n\r\n"), 400, "two Cookies");
    gives(STR(GET "Expect: 200-ok\r\n\r\n"), 417, "an expectation that cannot be met");
    gives(STR("GET / HTTP/1.0\r\nExpect: 200-ok\r\n\r\n"), 200, "HTTP/1.0 expects nothing");
}

static void framings(void)
{
    gives(STR(POST "Content-Length: 0\r\n\r\n"), 200, "length 0");
    gives(STR(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), 400, "two equal lengths");
    gives(STR(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"), 400, "two lengths");
    gives(STR(POST "Content-Length: 5, 5\r\n\r\n"), 400, "a list of lengths");
    gives(STR(POST "Content-Length: +5\r\n\r\n"), 400, "a sign");
    gives(STR(POST "Content-Length: -5\r\n\r\n"), 400, "a negative length");
    gives(STR(POST "Content-Length: 0x5\r\n\r\n"), 400, "a hexadecimal length");
    gives(STR(POST "Content-Length: 05\r\n\r\n"), 400, "a padded length");
    gives(STR(POST "Content-Length: 5 5\r\n\r\n"), 400, "a space in a length");
    gives(STR(POST "Content-Length:\r\n\r\n"), 400, "an empty length");
    gives(STR(POST "Content-Length: 18446744073709551621\r\n\r\n"), 400, "a length that overflows");
    gives(STR(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), 400,
          "a length, then chunked");
    gives(STR(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"), 400,
          "chunked, then a length");
    gives(STR(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), 400,
          "chunked twice");
    gives(STR(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), 400, "another coding before");
    gives(STR(POST "Transfer-Encoding: chunked, identity\r\n\r\n"), 400, "another coding behind");
    gives(STR(POST "Transfer-Encoding: xchunked\r\n\r\n"), 400, "an unknown coding");
    gives(STR(POST "Transfer-Encoding: Chunked\r\n\r\n"), 200, "chunked in any case");
    gives(STR(POST "Transfer-Encoding: CHUNKED\r\nContent-Length: 5\r\n\r\n"), 400,
          "in any case not with a length");
    gives(STR(POST "Transfer-Encoding: chunked;q=1\r\n\r\n"), 400, "chunked with a parameter");
    gives(STR(POST "Transfer-Encoding: \x0b"
                   "chunked\r\n\r\n"),
          400, "a vertical tab");
    gives(STR(POST "Transfer-Encoding:\r\n\r\n"), 400, "an empty coding");
    gives(STR("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, "chunked HTTP/1.0");
}

static struct str filled(const char *form, int n)
{
    static char text[2048];
    return str_from(text, (size_t)snprintf(text, sizeof(text), form, n, 0));
}

static void sizes(void)
{
    gives(filled("GET /%0*d HTTP/1.1\r\n" HOST "\r\n", 63), 200, "the longest target");
    gives(filled("GET /%0*d HTTP/1.1\r\n" HOST "\r\n", 64), 414, "a longer target");
    gives(filled("GET /%0*d", 1000), 414, "a target without end");
    gives(filled("GET http://a/%0*d HTTP/1.1\r\n" HOST "\r\n", 55), 200, "an absolute one");
    gives(filled("GET http://a/%0*d HTTP/1.1\r\n" HOST "\r\n", 56), 414, "a longer one");
    gives(filled("\r\n\r\nGET /%0*d HTTP/1.1\r\n" HOST "\r\n", 63), 200,
          "the longest target behind empty lines");
    gives(filled("\r\n\r\nGET /%0*d HTTP/1.1\r\n" HOST "\r\n", 64), 414, "a longer one");
    gives(filled("GET / HTTP/1.1\r\n" HOST "A: %0*d\r\n\r\n", 470), 200, "the largest head");
    gives(filled("GET / HTTP/1.1\r\n" HOST "A: %0*d\r\n\r\n", 471), 431, "a larger head");
    gives(filled("GET / HTTP/1.1\r\n" HOST "A: %0*d", 1000), 431, "a header without end");
    gives(STR(GET "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n\r\n"), 200, "the most headers");
    gives(STR(GET "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n\r\n"), 431, "one more");
}

/* Every byte at every place of values of many lengths; long ones are looked at in blocks. */
static void value_bytes(void)
{
    bool fine = true;
    for (int c = 0; c < 256; c++) {
        bool allowed = c == '\t' || (c >= ' ' && c != 0x7F);
        for (int n = 1; n < 60; n += n < 20 ? 1 : 13)
            for (int at = 0; at < n; at++) {
                char in[128];
                int used = snprintf(in, sizeof(in), GET "A:%0*d\r\n\r\n", n, 0);
                in[strlen(GET "A:") + (size_t)at] = (char)c;
                bool done = parse(str_from(in, (size_t)used)) == HTTP_DONE;
                fine &= done == allowed;
            }
    }
    ok(fine, "control characters are found wherever they stand");
}

int main(void)
{
    taken();
    request_lines();
    targets();
    absolute_targets();
    headers();
    value_bytes();
    framings();
    sizes();
    return tap_done();
}
