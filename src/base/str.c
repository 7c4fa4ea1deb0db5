#include "base/str.h"

#include <stdarg.h>

#include "base/ascii.h"
#include "base/bytes16.h"

/* Eight bytes with their capitals made small. In each byte without its top bit, adding carries into
 * the top bit from 'A' on, and from the one after 'Z' on: the capitals are where only one does. */
static uint64_t lower8(uint64_t w)
{
    const uint64_t every = 0x0101010101010101u;
    uint64_t low = w & 0x7F * every;
    uint64_t capital = (low + (0x80 - 'A') * every) ^ (low + (0x80 - 'Z' - 1) * every);
    return w | (capital & ~w & 0x80 * every) >> 2;
}

static bool same8(const char *p, const char *q) /* but for case */
{
    uint64_t a, b;
    memcpy(&a, p, sizeof(a));
    memcpy(&b, q, sizeof(b));
    return a == b || lower8(a) == lower8(b);
}

bool str_ieq(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    size_t i = 0;
    if (a.n >= 8) {
        for (; a.n - i >= 8; i += 8)
            if (!same8(a.p + i, b.p + i))
                return false;
        return same8(a.p + a.n - 8, b.p + a.n - 8); /* the last 8, some of them again */
    }
    for (; i < a.n; i++)
        if (ascii_lower(a.p[i]) != ascii_lower(b.p[i]))
            return false;
    return true;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq(str_from(s.p, prefix.n), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n &&
           (suffix.n == 0 || str_eq(str_from(s.p + (s.n - suffix.n), suffix.n), suffix));
}

ptrdiff_t str_find(struct str hay, struct str needle)
{
    if (needle.n == 0)
        return 0;
    if (hay.n < needle.n)
        return -1;
    const char *at = memmem(hay.p, hay.n, needle.p, needle.n);
    return at ? at - hay.p : -1;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct str str_trim(struct str s)
{
    return str_trim_if(s, is_blank);
}

struct str str_cut(struct str *rest, char sep)
{
    struct str part = *rest;
    const char *at = part.n ? memchr(part.p, sep, part.n) : NULL;
    if (!at) {
        *rest = STR_NULL;
        return part;
    }
    part.n = (size_t)(at - part.p);
    *rest = str_from(at + 1, rest->n - part.n - 1);
    return part;
}

bool str_to_i64(struct str s, int64_t *out)
{
    bool negative = s.n && s.p[0] == '-';
    size_t i = negative;
    if (i == s.n)
        return false;
    /* Accumulated as a negative number: INT64_MIN has no positive counterpart. */
    int64_t v = 0;
    for (; i < s.n; i++) {
        if (!ascii_is_digit(s.p[i]))
            return false;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s.p[i] - '0', &v))
            return false;
    }
    if (!negative && v == INT64_MIN)
        return false;
    *out = negative ? v : -v;
    return true;
}

bool str_eq_secret(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    volatile unsigned char differ = 0; /* volatile: the compiler must not stop the loop early */
    for (size_t i = 0; i < a.n; i++)
        differ = (unsigned char)(differ | (unsigned char)(a.p[i] ^ b.p[i]));
    return differ == 0;
}

static bool continues(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* The table of the Unicode standard (3-7): only the second byte depends on the first. */
size_t str_utf8_step(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    if (s.n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xC2 || s.n < 2)
        return 0;
    if (p[0] < 0xE0)
        return continues(p[1]) ? 2 : 0;
    if (p[0] < 0xF0) {
        unsigned char low = p[0] == 0xE0 ? 0xA0 : 0x80, high = p[0] == 0xED ? 0x9F : 0xBF;
        return p[1] >= low && p[1] <= high && s.n >= 3 && continues(p[2]) ? 3 : 0;
    }
    if (p[0] > 0xF4)
        return 0;
    unsigned char low = p[0] == 0xF0 ? 0x90 : 0x80, high = p[0] == 0xF4 ? 0x8F : 0xBF;
    return p[1] >= low && p[1] <= high && s.n >= 4 && continues(p[2]) && continues(p[3]) ? 4 : 0;
}

size_t str_utf8_back(struct str s)
{
    size_t n = 1;
    while (n < 4 && n < s.n && continues((unsigned char)s.p[s.n - n]))
        n++;
    return s.n && str_utf8_step(str_skip(s, s.n - n)) == n ? n : 0;
}

/* Bytes of the whole characters in the sixteen bytes at p, which start with one; 0 when they may be
 * invalid. It checks where continuation bytes stand. Leading bytes that are never valid, or not
 * with every continuation byte (C0, C1, E0, ED, from F0 on), are left to str_utf8_step. */
static size_t utf8_step16(const char *p)
{
    bytes16 v = bytes16_load(p);
    bytes16 odd = ((v & -2) == (signed char)0xC0) | (v == (signed char)0xE0) |
                  (v == (signed char)0xED) | ((v >= (signed char)0xF0) & (v < 0));
    uint32_t inner = bytes16_bits(v < (signed char)0xC0), lead = bytes16_bits(v < 0) & ~inner;
    uint32_t three = bytes16_bits(v >= (signed char)0xE0) & lead;
    uint32_t going_on = lead << 1 | three << 2;
    if (bytes16_bits(odd) || ((going_on ^ inner) & 0xFFFF))
        return 0;
    return 16 - (lead >> 15) - 2 * (three >> 14 & 1);
}

size_t str_utf8_prefix(struct str s)
{
    size_t i = 0, step = 1;
    while (i < s.n && step) {
        i += bytes16_ascii(s.p + i, s.n - i);
        step = s.n - i >= 16 ? utf8_step16(s.p + i) : 0;
        if (step == 0)
            step = str_utf8_step(str_skip(s, i));
        i += step;
    }
    return i;
}

bool str_utf8_valid(struct str s)
{
    return str_utf8_prefix(s) == s.n;
}

size_t str_utf8_put(char out[4], uint32_t code)
{
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        code = 0xFFFD;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)((0xF00u >> n & 0xF0) | code);
    return n;
}

char *str_z(struct arena *a, struct str s)
{
    char *z = arena_alloc(a, s.n + 1);
    if (s.n)
        memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return z;
}

struct str str_dup(struct arena *a, struct str s)
{
    return str_from(str_z(a, s), s.n);
}

struct str str_lower(struct arena *a, struct str s)
{
    char *out = str_z(a, s);
    for (size_t i = 0; i < s.n; i++)
        out[i] = ascii_lower(out[i]);
    return str_from(out, s.n);
}

struct str str_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct str s = str_of(arena_vprintf(a, fmt, ap));
    va_end(ap);
    return s;
}

struct str str_int(struct arena *a, int64_t v)
{
    char digits[STR_INT_BYTES];
    return str_dup(a, str_digits(digits, v));
}

struct str str_digits(char space[STR_INT_BYTES], int64_t v)
{
    size_t at = STR_INT_BYTES;
    uint64_t rest = v < 0 ? -(uint64_t)v : (uint64_t)v;
    do {
        space[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (v < 0)
        space[--at] = '-';
    return str_from(space + at, STR_INT_BYTES - at);
}

struct str str_join(struct arena *a, size_t count, const struct str *parts)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += parts[i].n;
    char *p = arena_alloc(a, n + 1), *end = p;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].n)
            memcpy(end, parts[i].p, parts[i].n);
        end += parts[i].n;
    }
    *end = '\0';
    return str_from(p, n);
}
