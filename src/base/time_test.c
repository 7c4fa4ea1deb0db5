#include "base/time.h"

#include "tests/tap.h"

#define SECOND ((int64_t)1000000)

static void is_iso(int64_t wall_us, const char *want)
{
    char text[TIME_ISO_BYTES];
    time_iso(wall_us, text);
    is_str(str_of(text), str_of(want), "iso %s", want);
}

static void is_http(int64_t wall_us, const char *want)
{
    char text[TIME_HTTP_BYTES];
    time_http(wall_us, text);
    is_str(str_of(text), str_of(want), "http %s", want);
}

static void read_back(void)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {
        {"2026-01-31T12:00:00.000Z", 1769860800 * SECOND},
        {"2024-02-29T12:34:56.789Z", 1709210096 * SECOND + 789000},
        {"2026-01-31T12:00:00Z", 1769860800 * SECOND},
        {"2026-01-31", 1769817600 * SECOND},
        {"1970-01-01", 0},
        {"9999-12-31T23:59:59.999Z", 253402300799 * SECOND + 999000},
    };
    static const char *const bad[] = {
        "",           "2026-02-30",           "2026-13-01",           "2026-1-31",
        "2026-01-3x", "2026-01-31T24:00:00Z", "2026-01-31T12:00:00",  "2026-01-31 12:00:00Z",
        "1969-12-31", "2026-01-31T12:00:00+", "2026-01-31T12:00:60Z", "2026-01-31T12:00:00,000Z",
        "----------", "9999-99-99",           "0000-00-00",           "2026-01-31T12:00:00.0001Z",
    };
    int64_t us;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ok(time_from_iso(str_of(good[i].text), &us) && us == good[i].us, "read %s", good[i].text);
    us = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(!time_from_iso(str_of(bad[i]), &us) && us == 7, "no time: %s", bad[i]);
}

int main(void)
{
    read_back();
    is_iso(0, "1970-01-01T00:00:00.000Z");
    is_iso(1769860800 * SECOND, "2026-01-31T12:00:00.000Z");
    is_iso(1709210096 * SECOND + 789999, "2024-02-29T12:34:56.789Z");
    is_iso(-1, "1970-01-01T00:00:00.000Z");
    is_iso(INT64_MAX, "9999-12-31T23:59:59.999Z");
    is_http(784111777 * SECOND, "Sun, 06 Nov 1994 08:49:37 GMT");
    is_http(1769860800 * SECOND, "Sat, 31 Jan 2026 12:00:00 GMT");
    is_http(INT64_MIN, "Thu, 01 Jan 1970 00:00:00 GMT");
    is_http(INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT");

    int64_t mono = time_mono_us();
    ok(mono > 0 && time_mono_us() >= mono, "the monotonic clock does not go back");
    ok(time_wall_us() > 1700000000 * SECOND, "the wall clock is in microseconds since 1970");
    return tap_done();
}
