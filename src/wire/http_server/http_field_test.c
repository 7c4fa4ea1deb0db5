#include "wire/http_server/http_field.h"

#include "base/time.h"
#include "tests/tap.h"

static void lists(void)
{
    ok(http_list_has(STR("close"), STR("close")), "alone");
    ok(http_list_has(STR("Upgrade ,\tCLOSE, x"), STR("close")), "among others, in any case");
    ok(!http_list_has(STR("closed, not-close"), STR("close")), "whole tokens only");
    ok(!http_list_has(STR_NULL, STR("close")) && !http_list_has(STR(""), STR("close")), "nothing");
}

static void hosts(void)
{
    static const char *const good[] = {"example.org", "localhost:8080",   "127.0.0.1",
                                       "[::1]:80",    "[::ffff:1.2.3.4]", "a_b-c.d",
                                       "h:0",         "h:65535"};
    static const char *const bad[] = {
        "",     ":80", "h:",    "h:65536", "h:1a",    "h:-1",     "a b", "a/b",      "a@b",
        "[::1", "[]",  "[::g]", "[::1]x",  "h:80:80", "h:000080", "a,b", "a\xc3\xa9"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ok(http_host_valid(str_of(good[i])), "host %s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok(!http_host_valid(str_of(bad[i])), "no host: %s", bad[i]);
}

static void cookies(void)
{
    struct str c = STR("a=1; session=x=y;b=2 ; session=late; flag");
    is_str(http_cookie_find(c, STR("session")), STR("x=y"), "the first of that name");
    is_str(http_cookie_find(c, STR("b")), STR("2"), "without a space before, with one behind");
    is_str(http_cookie_find(c, STR("Session")), STR_NULL, "names have their case");
    is_str(http_cookie_find(c, STR("sess")), STR_NULL, "whole names only");
    is_str(http_cookie_find(c, STR("flag")), STR_NULL, "no value, no cookie");
    is_str(http_cookie_find(STR_NULL, STR("a")), STR_NULL, "no cookies");
}

static void weights_are(struct str list, int brotli, int gzip, int identity)
{
    struct http_weights w = http_weights_parse(list);
    ok(w.of[HTTP_BROTLI] == brotli && w.of[HTTP_GZIP] == gzip && w.of[HTTP_IDENTITY] == identity,
       "Accept-Encoding: %.*s", STR_ARG(list));
}

static void codings(void)
{
    weights_are(STR("gzip, deflate, br"), 1000, 1000, 1);
    weights_are(STR("br;q=0, GZIP;q=0.5"), 0, 500, 1);
    weights_are(STR("br;q=0.5, gzip;q=1"), 500, 1000, 1);
    weights_are(STR("gzip; q=0.000"), 0, 0, 1);
    weights_are(STR("gzip ;\tQ=0.001"), 0, 1, 1);
    weights_are(STR("x-gzip;q=1.000"), 0, 1000, 1);
    weights_are(STR("*"), 1000, 1000, 1000);
    weights_are(STR("*, br;q=0"), 0, 1000, 1000);
    weights_are(STR("*;q=0, gzip"), 0, 1000, 0);
    weights_are(STR("*;q=0.2, gzip;q=0.1"), 200, 100, 200);
    weights_are(STR("identity"), 0, 0, 1000);
    weights_are(STR("identity;q=0"), 0, 0, 0);
    weights_are(STR("identity;q=0, gzip;q=0.5"), 0, 500, 0);
    weights_are(STR(""), 0, 0, 1);
    weights_are(STR_NULL, 0, 0, 1);
    static const char *const bad[] = {"gzip;q=1.001",  "gzip;q=2",  "gzip;q=",    "gzip;q=a",
                                      "gzip;q=0.1234", "gzip;q=-1", "gzip;q=0,5", "gzip;w=1",
                                      "gzip;q=1;a=b",  "gzip q=1",  "gzip;",      "gzipped"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        weights_are(str_of(bad[i]), 0, 0, 1);
}

static void etags(void)
{
    ok(http_etag_matches(STR("\"a\", W/\"b\""), STR("\"b\"")), "weakly, in a list");
    ok(http_etag_matches(STR(" * "), STR("\"b\"")), "any");
    ok(!http_etag_matches(STR("\"ab\""), STR("\"b\"")), "whole tags only");
    ok(!http_etag_matches(STR_NULL, STR("\"b\"")), "none");
}

static void dates(void)
{
    int64_t s = 0;
    ok(http_date_parse(STR("Sun, 06 Nov 1994 08:49:37 GMT"), &s), "the usual form");
    is_int(s, 784111777, "its seconds");
    char text[TIME_HTTP_BYTES];
    time_http(1767225599 * INT64_C(1000000), text);
    ok(http_date_parse(str_of(text), &s) && s == 1767225599, "dates written here can be read");
    static const char *const bad[] = {
        "",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:-9:37 GMT",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok(!http_date_parse(str_of(bad[i]), &s), "no date: %s", bad[i]);
}

static void range_is(const char *range, uint64_t size, enum http_range want, uint64_t first,
                     uint64_t count)
{
    uint64_t f = 0, n = 0;
    enum http_range got = http_range_parse(str_of(range), size, &f, &n);
    ok(got == want && (want != HTTP_RANGE_OK || (f == first && n == count)), "%s of %d", range,
       (int)size);
}

static void ranges(void)
{
    range_is("bytes=0-0", 10, HTTP_RANGE_OK, 0, 1);
    range_is("bytes=2-5", 10, HTTP_RANGE_OK, 2, 4);
    range_is("bytes=2-", 10, HTTP_RANGE_OK, 2, 8);
    range_is("bytes=2-99", 10, HTTP_RANGE_OK, 2, 8);
    range_is("bytes=-3", 10, HTTP_RANGE_OK, 7, 3);
    range_is("bytes=-30", 10, HTTP_RANGE_OK, 0, 10);
    range_is("bytes=9-9223372036854775807", 10, HTTP_RANGE_OK, 9, 1);
    range_is("bytes=10-", 10, HTTP_RANGE_UNSATISFIABLE, 0, 0);
    range_is("bytes=-0", 10, HTTP_RANGE_UNSATISFIABLE, 0, 0);
    range_is("bytes=0-", 0, HTTP_RANGE_UNSATISFIABLE, 0, 0);
    static const char *const none[] = {
        "bytes=5-2",  "bytes=0-1,3-4", "bytes=-", "bytes=a-b",
        "lines=0-1",  "bytes",         "bytes=3", "bytes=--3",
        "bytes= 0-1", "bytes=0-1 ",    "",        "bytes=99999999999999999999-"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        range_is(none[i], 10, HTTP_RANGE_NONE, 0, 0);
}

int main(void)
{
    lists();
    hosts();
    cookies();
    codings();
    etags();
    dates();
    ranges();
    return tap_done();
}
