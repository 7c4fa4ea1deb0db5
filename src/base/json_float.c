#include "base/json_float.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/ascii.h"

#define DIGITS_MAX   19  /* that an uint64_t holds; a float has nine that count */
#define SCALE_MOST   400 /* beyond it every number is zero or infinite, however long it is */
#define POWERS       22
#define EXPONENT_MAX 100000
#define BEYOND_FLOAT 0x1.ffffffp127 /* half a step above the largest float */

static const double powers[POWERS + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

struct number { /* digits * 10^scale */
    uint64_t digits;
    int kept; /* of them; leading zeros are none */
    int64_t scale;
};

/* Of eight bytes in memory, the first of which is the lowest: are all of them digits? */
static inline bool are_digits(uint64_t v)
{
    const uint64_t high = 0xF0F0F0F0F0F0F0F0u;
    return ((v & high) | ((v + 0x0606060606060606u) & high) >> 4) == 0x3333333333333333u;
}

/* Their value: neighbours become two digits, then four, then eight. */
static inline uint64_t value_of(uint64_t v)
{
    v = (v & 0x0F0F0F0F0F0F0F0Fu) * (10 << 8 | 1) >> 8;
    v = (v & 0x00FF00FF00FF00FFu) * (100 << 16 | 1) >> 16;
    return (v & 0x0000FFFF0000FFFFu) * (10000ull << 32 | 1) >> 32;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "value_of wants the first byte lowest");

/* The digits at p; step is what each of them that is kept adds to the scale. */
static inline const char *take_digits(const char *p, const char *end, struct number *n, int step)
{
    uint64_t eight;
    while (end - p >= 8 && n->kept <= DIGITS_MAX - 8) {
        memcpy(&eight, p, sizeof eight);
        if (!are_digits(eight))
            break;
        n->digits = n->digits * 100000000 + value_of(eight);
        n->kept = n->digits ? n->kept + 8 : 0;
        n->scale += 8 * step;
        p += 8;
    }
    for (; p < end && ascii_is_digit(*p); p++) {
        if (n->kept == DIGITS_MAX) { /* too small to matter, but for its place */
            n->scale += step + 1;
            continue;
        }
        n->digits = n->digits * 10 + (uint64_t)(*p - '0');
        n->kept += n->digits != 0;
        n->scale += step;
    }
    return p;
}

/* After the e. NULL: no digit follows. */
static const char *take_exponent(const char *p, const char *end, struct number *n)
{
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    const char *from = p;
    int64_t exponent = 0;
    for (; p < end && ascii_is_digit(*p); p++)
        exponent = exponent < EXPONENT_MAX ? exponent * 10 + (*p - '0') : exponent;
    n->scale += negative ? -exponent : exponent;
    return p > from ? p : NULL;
}

static float to_float(const struct number *n)
{
    double d = (double)n->digits;
    int64_t scale = n->scale;
    if (scale < -SCALE_MOST || n->digits == 0)
        return 0;
    if (scale > SCALE_MOST)
        return INFINITY;
    for (; scale < -POWERS; scale += POWERS)
        d /= powers[POWERS];
    for (; scale > POWERS; scale -= POWERS)
        d *= powers[POWERS];
    d = scale < 0 ? d / powers[-scale] : d * powers[scale];
    return d >= BEYOND_FLOAT ? INFINITY : (float)d;
}

static const char *take_null(const char *p, const char *end, float *out)
{
    if (end - p < 4 || memcmp(p, "null", 4) != 0)
        return NULL;
    *out = NAN;
    return p + 4;
}

const char *json_float(const char *p, const char *end, float *out)
{
    struct number n = {.digits = 0};
    bool negative = p < end && *p == '-';
    p += negative;
    if (p == end || !ascii_is_digit(*p))
        return negative ? NULL : take_null(p, end, out);
    if (*p == '0')
        p++;
    else
        p = take_digits(p, end, &n, 0);
    if (p < end && ascii_is_digit(*p)) /* after a leading zero */
        return NULL;
    if (p < end && *p == '.') {
        const char *point = p + 1;
        p = take_digits(point, end, &n, -1);
        if (p == point)
            return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E') && !(p = take_exponent(p + 1, end, &n)))
        return NULL;
    float v = to_float(&n);
    *out = negative ? -v : v;
    return p;
}
