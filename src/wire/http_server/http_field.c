#include "wire/http_server/http_field.h"

#include <time.h>

#include "base/ascii.h"
#include "base/bytes16.h"

static const bool is_token[256] = {
    ['!'] = 1,         ['#' ... '\''] = 1, ['*'] = 1,         ['+'] = 1, ['-'] = 1, ['.'] = 1,
    ['0' ... '9'] = 1, ['A' ... 'Z'] = 1,  ['^' ... 'z'] = 1, ['|'] = 1, ['~'] = 1,
};

size_t http_token_bytes(struct str s)
{
    size_t n = 0;
    while (n < s.n && is_token[(unsigned char)s.p[n]])
        n++;
    return n;
}

bool http_token_valid(struct str s)
{
    return s.n > 0 && http_token_bytes(s) == s.n;
}

static bool values16(const char *p)
{
    bytes16 v = bytes16_load(p);
    return !bytes16_bits(((v >= 0) & (v < ' ') & (v != '\t')) | (v == 0x7F));
}

bool http_value_valid(struct str s)
{
    for (size_t i = 0; s.n < 16 && i < s.n; i++)
        if (((unsigned char)s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7F)
            return false;
    for (size_t i = 0; s.n - i >= 16; i += 16)
        if (!values16(s.p + i))
            return false;
    return s.n < 16 || values16(s.p + s.n - 16); /* the rest, overlapping */
}

bool http_one_line(struct str s)
{
    return s.n == 0 ||
           (!memchr(s.p, '\r', s.n) && !memchr(s.p, '\n', s.n) && !memchr(s.p, '\0', s.n));
}

bool http_list_has(struct str list, struct str token)
{
    while (list.p)
        if (str_ieq(str_trim(str_cut(&list, ',')), token))
            return true;
    return false;
}

static bool is_name_char(char c)
{
    return ascii_is_word(c) || c == '-' || c == '.' || c == '_';
}

static bool is_ipv6_char(char c)
{
    return ascii_hex(c) >= 0 || c == ':' || c == '.';
}

/* Bytes of the address part; 0 when it is none. */
static size_t address_bytes(struct str host)
{
    size_t i = 0;
    if (host.n && host.p[0] == '[') {
        for (i = 1; i < host.n && is_ipv6_char(host.p[i]); i++)
            ;
        return i < host.n && host.p[i] == ']' && i >= 3 ? i + 1 : 0;
    }
    while (i < host.n && is_name_char(host.p[i]))
        i++;
    return i;
}

#define PORT_DIGITS_MAX 5

bool http_host_valid(struct str host)
{
    size_t n = address_bytes(host);
    if (n == 0 || n == host.n)
        return n > 0;
    int64_t port;
    struct str digits = str_from(host.p + n + 1, host.n - n - 1);
    return host.p[n] == ':' && digits.n <= PORT_DIGITS_MAX && str_to_i64(digits, &port) &&
           port >= 0 && port <= 65535;
}

struct str http_cookie_find(struct str cookies, struct str name)
{
    while (cookies.p) {
        struct str value = str_trim(str_cut(&cookies, ';'));
        struct str found = str_cut(&value, '=');
        if (value.p && str_eq(found, name))
            return value;
    }
    return STR_NULL;
}

#define WEIGHT_MOST 1000

/* ";q=0.5" behind a coding, in thousandths; -1: malformed. */
static int weight_of(struct str q)
{
    if (!q.p)
        return WEIGHT_MOST;
    struct str value = str_trim(q), name = str_cut(&value, '=');
    if (!str_ieq(name, STR("q")) || value.n == 0 || value.n > 5 ||
        (value.n > 1 && value.p[1] != '.'))
        return -1;
    int weight = 0, unit = WEIGHT_MOST;
    for (size_t i = 0; i < value.n; i++) {
        if (i == 1)
            continue;
        if (!ascii_is_digit(value.p[i]))
            return -1;
        weight += (value.p[i] - '0') * unit;
        unit /= 10;
    }
    return weight <= WEIGHT_MOST ? weight : -1;
}

static int coding_of(struct str name)
{
    static const char *const names[] = {"br", "gzip", "identity"};
    for (int i = 0; i < HTTP_CODINGS; i++)
        if (str_ieq(name, str_of(names[i])))
            return i;
    return str_ieq(name, STR("x-gzip")) ? HTTP_GZIP : -1;
}

struct http_weights http_weights_parse(struct str accept_encoding)
{
    struct http_weights w = {{-1, -1, -1}}; /* not said */
    int others = -1;
    while (accept_encoding.p) {
        struct str q = str_cut(&accept_encoding, ',');
        struct str name = str_trim(str_cut(&q, ';'));
        int weight = weight_of(q), coding = coding_of(name);
        if (weight >= 0 && coding >= 0)
            w.of[coding] = weight;
        else if (weight >= 0 && str_eq(name, STR("*")))
            others = weight;
    }
    for (int i = 0; i < HTTP_CODINGS; i++)
        if (w.of[i] < 0)
            w.of[i] = others >= 0 ? others : i == HTTP_IDENTITY ? 1 : 0;
    return w;
}

static struct str strong_part(struct str tag)
{
    return str_starts(tag, STR("W/")) ? str_from(tag.p + 2, tag.n - 2) : tag;
}

bool http_etag_matches(struct str list, struct str etag)
{
    if (list.p && str_eq(str_trim(list), STR("*")))
        return true;
    while (list.p)
        if (str_eq(strong_part(str_trim(str_cut(&list, ','))), strong_part(etag)))
            return true;
    return false;
}

static bool digits_at(struct str s, size_t at, size_t n, int *out)
{
    int64_t v;
    if (!ascii_is_digit(s.p[at]) || !str_to_i64(str_from(s.p + at, n), &v))
        return false;
    *out = (int)v;
    return true;
}

static int month_of(const char *p)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int i = 0; i < 12; i++)
        if (memcmp(p, months + 3 * i, 3) == 0)
            return i;
    return -1;
}

bool http_date_parse(struct str date, int64_t *seconds)
{
    static const char form[] = "###, 00 ### 0000 00:00:00 GMT";
    if (date.n != sizeof(form) - 1)
        return false;
    for (size_t i = 0; i < date.n; i++)
        if (form[i] != '#' && form[i] != '0' && form[i] != date.p[i])
            return false;
    struct tm tm = {.tm_mon = month_of(date.p + 8)};
    if (tm.tm_mon < 0 || !digits_at(date, 5, 2, &tm.tm_mday) ||
        !digits_at(date, 12, 4, &tm.tm_year) || !digits_at(date, 17, 2, &tm.tm_hour) ||
        !digits_at(date, 20, 2, &tm.tm_min) || !digits_at(date, 23, 2, &tm.tm_sec))
        return false;
    if (tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
        return false;
    tm.tm_year -= 1900;
    *seconds = timegm(&tm);
    return true;
}

static bool to_u64(struct str s, uint64_t *out)
{
    int64_t v;
    if (s.n == 0 || !ascii_is_digit(s.p[0]) || !str_to_i64(s, &v))
        return false;
    *out = (uint64_t)v;
    return true;
}

#define LENGTH_DIGITS_MAX 15

bool http_length_parse(struct str value, uint64_t *out)
{
    bool padded = value.n > 1 && value.p[0] == '0';
    return value.n <= LENGTH_DIGITS_MAX && !padded && to_u64(value, out);
}

/* "-500": the last 500 bytes. */
static enum http_range suffix_range(struct str digits, uint64_t size, uint64_t *first,
                                    uint64_t *count)
{
    uint64_t n;
    if (!to_u64(digits, &n))
        return HTTP_RANGE_NONE;
    if (n == 0 || size == 0)
        return HTTP_RANGE_UNSATISFIABLE;
    *count = n < size ? n : size;
    *first = size - *count;
    return HTTP_RANGE_OK;
}

enum http_range http_range_parse(struct str range, uint64_t size, uint64_t *first, uint64_t *count)
{
    struct str last = range, unit = str_cut(&last, '=');
    if (!last.p || !str_eq(unit, STR("bytes")))
        return HTTP_RANGE_NONE;
    struct str start = str_cut(&last, '-');
    if (!last.p)
        return HTTP_RANGE_NONE;
    if (start.n == 0)
        return suffix_range(last, size, first, count);

    uint64_t from, to = UINT64_MAX;
    if (!to_u64(start, &from) || (last.n && !to_u64(last, &to)) || to < from)
        return HTTP_RANGE_NONE;
    if (from >= size)
        return HTTP_RANGE_UNSATISFIABLE;
    *first = from;
    *count = (to < size ? to + 1 : size) - from;
    return HTTP_RANGE_OK;
}
