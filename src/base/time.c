#include "base/time.h"

#include <string.h>
#include <time.h>

#define US_PER_SECOND 1000000
#define WALL_US_MAX   (253402300800 * US_PER_SECOND - 1) /* the end of 9999 */

static int64_t clock_us(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * US_PER_SECOND + ts.tv_nsec / 1000;
}

int64_t time_mono_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

int64_t time_wall_us(void)
{
    return clock_us(CLOCK_REALTIME);
}

static struct tm utc(int64_t *wall_us)
{
    if (*wall_us < 0)
        *wall_us = 0;
    if (*wall_us > WALL_US_MAX)
        *wall_us = WALL_US_MAX;
    time_t seconds = (time_t)(*wall_us / US_PER_SECOND);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    return tm;
}

/* Not printf: every log line and every HTTP response passes here. */
static char *put_digits(char *at, int digits, int64_t v)
{
    for (int i = digits - 1; i >= 0; i--, v /= 10)
        at[i] = (char)('0' + v % 10);
    return at + digits;
}

static char *put_clock(char *at, const struct tm *tm)
{
    at = put_digits(at, 2, tm->tm_hour);
    *at++ = ':';
    at = put_digits(at, 2, tm->tm_min);
    *at++ = ':';
    return put_digits(at, 2, tm->tm_sec);
}

void time_iso(int64_t wall_us, char out[TIME_ISO_BYTES])
{
    struct tm tm = utc(&wall_us);
    char *at = put_digits(out, 4, tm.tm_year + 1900);
    *at++ = '-';
    at = put_digits(at, 2, tm.tm_mon + 1);
    *at++ = '-';
    at = put_digits(at, 2, tm.tm_mday);
    *at++ = 'T';
    at = put_clock(at, &tm);
    *at++ = '.';
    at = put_digits(at, 3, wall_us / 1000 % 1000);
    stpcpy(at, "Z");
}

static int digits_at(const char *at, int digits)
{
    int v = 0;
    for (int i = 0; i < digits; i++)
        v = v * 10 + (at[i] - '0');
    return v;
}

/* Digits are not checked one by one: other bytes show when the result is written again. */
bool time_from_iso(struct str text, int64_t *wall_us)
{
    char whole[TIME_ISO_BYTES] = "0000-00-00T00:00:00.000Z", again[TIME_ISO_BYTES];
    bool date = text.n == strlen("2026-01-31"), seconds = text.n == strlen("2026-01-31T12:00:00Z");
    if (!date && !seconds && text.n != TIME_ISO_BYTES - 1)
        return false;
    memcpy(whole, text.p, seconds ? text.n - 1 : text.n);
    if (seconds && text.p[text.n - 1] != 'Z')
        return false;
    struct tm tm = {.tm_year = digits_at(whole, 4) - 1900,
                    .tm_mon = digits_at(whole + 5, 2) - 1,
                    .tm_mday = digits_at(whole + 8, 2),
                    .tm_hour = digits_at(whole + 11, 2),
                    .tm_min = digits_at(whole + 14, 2),
                    .tm_sec = digits_at(whole + 17, 2)};
    int64_t us = (int64_t)timegm(&tm) * US_PER_SECOND + digits_at(whole + 20, 3) * 1000;
    time_iso(us, again);
    if (strcmp(again, whole) != 0)
        return false;
    *wall_us = us;
    return true;
}

/* Not strftime: the names must not follow the locale. */
void time_http(int64_t wall_us, char out[TIME_HTTP_BYTES])
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm = utc(&wall_us);
    char *at = stpcpy(out, days[tm.tm_wday]);
    at = stpcpy(at, ", ");
    at = put_digits(at, 2, tm.tm_mday);
    *at++ = ' ';
    at = stpcpy(at, months[tm.tm_mon]);
    *at++ = ' ';
    at = put_digits(at, 4, tm.tm_year + 1900);
    *at++ = ' ';
    at = put_clock(at, &tm);
    stpcpy(at, " GMT");
}
