/* Header values: what is found lies inside the input; any other input is survived. */
#include "base/check.h"
#include "base/time.h"
#include "wire/http_server/http_field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_range(struct str in, uint64_t bytes)
{
    uint64_t first = 0, count = 0;
    if (http_range_parse(in, bytes, &first, &count) == HTTP_RANGE_OK)
        check(count > 0 && first < bytes && count <= bytes - first);
}

static void check_date(struct str in)
{
    int64_t seconds, again;
    char text[TIME_HTTP_BYTES];
    if (!http_date_parse(in, &seconds) || seconds < 0)
        return;
    time_http(seconds * 1000000, text);
    check(http_date_parse(str_of(text), &again) && again == seconds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = str_from(size ? (const char *)data : "", size);
    struct str cookie = http_cookie_find(in, STR("a"));
    if (cookie.p)
        check(cookie.p >= in.p && cookie.p + cookie.n <= in.p + in.n);
    struct http_weights w = http_weights_parse(in);
    for (int i = 0; i < HTTP_CODINGS; i++)
        check(w.of[i] >= 0 && w.of[i] <= 1000);
    (void)http_list_has(in, STR("close"));
    (void)http_etag_matches(in, STR("\"a\""));
    if (http_host_valid(in))
        check(in.n > 0 && !memchr(in.p, '/', in.n) && !memchr(in.p, '@', in.n));
    check_range(in, 0);
    check_range(in, 100);
    check_range(in, UINT64_MAX / 2);
    check_date(in);
    return 0;
}
