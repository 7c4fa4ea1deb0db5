#include "corpus/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unictype.h>
#include <unistr.h>

#include "base/ascii.h"
#include "base/decimal.h"

#define DIGITS_MAX      60    /* that count; those behind them only move the point */
#define SHORT_DIGITS    15    /* and fewer: as doubles they are exact */
#define GROUPS_MAX      12    /* of three digits; keeps every reading short */
#define EXPONENT_MAX    10000 /* of ten: beyond any double */
#define POWER_DIGITS    3     /* of a power that has lost its raised form */
#define RELATIVE_CLOSE  1e-9
#define PLAIN_POWER_MAX 2

/* How a number is read. Strictly, unless one of these is set. */
enum style {
    STRICT = 0,
    EUROPEAN = 1,     /* a comma is the point, points are between thousands */
    SPACED = 2,       /* plain spaces are between thousands, too */
    LOST_POWER = 4,   /* × 105 is × 10⁵ */
    MANTISSA_ONLY = 8 /* neither powers nor multipliers */
};

struct figures { /* digits as a whole number, times a power of ten */
    char digits[DIGITS_MAX];
    size_t n;
    int64_t exponent;
};

/* --- characters --- */

/* Bytes of lit when it stands at i, else 0. */
static size_t step_over(struct str s, size_t i, struct str lit)
{
    return str_starts(str_skip(s, i), lit) ? lit.n : 0;
}

static size_t any_of(struct str s, size_t i, const char *const *list)
{
    for (; *list && i < s.n; list++) {
        if (**list != s.p[i])
            continue;
        size_t n = step_over(s, i, str_of(*list));
        if (n)
            return n;
    }
    return 0;
}

/* The value of the digit at i, plain or full-width, and its bytes; -1: there is none. */
static int digit_at(struct str s, size_t i, size_t *bytes)
{
    *bytes = 1;
    if (i < s.n && ascii_is_digit(s.p[i]))
        return s.p[i] - '0';
    *bytes = 3;
    if (i + 2 < s.n && step_over(s, i, STR("\xef\xbc"))) {
        unsigned char last = (unsigned char)s.p[i + 2];
        return last >= 0x90 && last <= 0x99 ? last - 0x90 : -1;
    }
    return -1;
}

static bool is_digit(struct str s, size_t i)
{
    size_t bytes;
    return digit_at(s, i, &bytes) >= 0;
}

/* Behind the digits at i. count: how many there are. */
static size_t run_end(struct str s, size_t i, size_t *count)
{
    size_t bytes;
    for (*count = 0; digit_at(s, i, &bytes) >= 0; ++*count)
        i += bytes;
    return i;
}

static size_t dash_at(struct str s, size_t i)
{
    static const char *const dashes[] = {"-", "−", "–", "－", NULL};
    return any_of(s, i, dashes);
}

static size_t plus_at(struct str s, size_t i)
{
    static const char *const pluses[] = {"+", "＋", NULL};
    return any_of(s, i, pluses);
}

/* Thin, narrow, figure and no-break spaces: those that printers set inside numbers. */
static size_t fixed_space_at(struct str s, size_t i)
{
    static const char *const spaces[] = {"\u2009", "\u202f", "\u00a0", "\u2007", "\u200a", NULL};
    return any_of(s, i, spaces);
}

static size_t space_at(struct str s, size_t i)
{
    return step_over(s, i, STR(" ")) + fixed_space_at(s, i);
}

/* The character that ends before i; 0: none. A byte that is not UTF-8 is U+FFFD. */
static ucs4_t before(struct str s, size_t i, size_t *begin)
{
    size_t back = str_utf8_back(str_from(s.p, i));
    ucs4_t c = 0xFFFD;
    if (back)
        u8_mbtouc_unsafe(&c, (const uint8_t *)s.p + i - back, back);
    *begin = back ? i - back : i ? i - 1 : 0;
    return i ? c : 0;
}

/* Of an alphabet: a digit behind it is part of a name. */
static bool is_letter(ucs4_t c)
{
    if (c < 0x80)
        return ascii_is_letter((char)c);
    return c < 0x2E80 && uc_is_property_alphabetic(c);
}

/* --- digits and powers --- */

static void add_digit(struct figures *f, int digit, bool fraction)
{
    if (f->n == 0 && digit == 0) {
        f->exponent -= fraction;
    } else if (f->n == DIGITS_MAX) {
        f->exponent += !fraction;
    } else {
        f->digits[f->n++] = (char)('0' + digit);
        f->exponent -= fraction;
    }
}

static size_t add_run(struct figures *f, struct str s, size_t i, bool fraction)
{
    size_t bytes;
    for (int d; (d = digit_at(s, i, &bytes)) >= 0; i += bytes)
        add_digit(f, d, fraction);
    return i;
}

static double value_of(const struct figures *f)
{
    char text[DIGITS_MAX + 32];
    int64_t e = f->exponent;
    uint64_t digits = 0;
    double exact;
    if (f->n == 0)
        return 0;
    for (size_t i = 0; i < f->n && f->n <= SHORT_DIGITS; i++)
        digits = digits * 10 + (uint64_t)(f->digits[i] - '0');
    if (f->n <= SHORT_DIGITS && decimal_exact(digits, e, &exact))
        return exact;
    e = e > EXPONENT_MAX ? EXPONENT_MAX : e < -EXPONENT_MAX ? -EXPONENT_MAX : e;
    snprintf(text, sizeof text, "%.*se%lld", (int)f->n, f->digits, (long long)e);
    return strtod(text, NULL); /* no point in it: the same in every locale */
}

/* A short whole number, bounded; i moves behind it. False: no digit there. */
static bool exponent_digits(struct str s, size_t *i, int64_t *out)
{
    size_t bytes;
    int d = digit_at(s, *i, &bytes);
    if (d < 0)
        return false;
    for (*out = 0; d >= 0; d = digit_at(s, *i, &bytes)) {
        *i += bytes;
        *out = *out < EXPONENT_MAX ? *out * 10 + d : *out;
    }
    return true;
}

static bool signed_exponent(struct str s, size_t *i, int64_t *out)
{
    size_t minus = dash_at(s, *i), at = *i + minus;
    at += minus ? 0 : plus_at(s, at);
    if (!exponent_digits(s, &at, out))
        return false;
    *out = minus ? -*out : *out;
    *i = at;
    return true;
}

/* ^3  ^-3  ^{-3}  ^(3) */
static bool caret_power(struct str s, size_t *i, int64_t *out)
{
    size_t at = *i + step_over(s, *i, STR("^"));
    if (at == *i)
        return false;
    bool open = at < s.n && (s.p[at] == '{' || s.p[at] == '(');
    char close = open && s.p[at] == '{' ? '}' : ')';
    at += open;
    if (!signed_exponent(s, &at, out) || (open && (at == s.n || s.p[at] != close)))
        return false;
    *i = at + open;
    return true;
}

static int raised_digit(struct str s, size_t i, size_t *bytes)
{
    static const char *const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    for (int d = 0; d < 10; d++)
        if ((*bytes = step_over(s, i, str_of(raised[d]))))
            return d;
    return -1;
}

static bool raised_power(struct str s, size_t *i, int64_t *out)
{
    size_t minus = step_over(s, *i, STR("⁻")), at = *i + minus, bytes;
    at += minus ? 0 : step_over(s, at, STR("⁺"));
    int d = raised_digit(s, at, &bytes);
    if (d < 0)
        return false;
    for (*out = 0; d >= 0; d = raised_digit(s, at, &bytes)) {
        at += bytes;
        *out = *out < EXPONENT_MAX ? *out * 10 + d : *out;
    }
    *out = minus ? -*out : *out;
    *i = at;
    return true;
}

/* Behind "× 10": −4 that was raised once; and 5 of 105, if such a loss is reckoned with. */
static bool fallen_power(struct str s, size_t *i, enum style style, int64_t *out)
{
    size_t count, sign = dash_at(s, *i), end = run_end(s, *i + sign, &count);
    if (sign)
        return count > 0 && count <= POWER_DIGITS && signed_exponent(s, i, out);
    if (!(style & LOST_POWER) || count == 0 || count > PLAIN_POWER_MAX || s.p[*i] == '0')
        return false;
    bool read = exponent_digits(s, i, out);
    check(read && *i == end);
    return true;
}

static bool letter_power(struct str s, size_t *i, int64_t *out)
{
    size_t at = *i + 1;
    if (*i >= s.n || ascii_lower(s.p[*i]) != 'e' || !signed_exponent(s, &at, out) ||
        (at < s.n && ascii_is_letter(s.p[at])))
        return false;
    *i = at;
    return true;
}

/* Bytes of a sign of multiplication with the spaces around it. */
static size_t times_at(struct str s, size_t i)
{
    static const char *const signs[] = {"×", "x",       "X",      "*", "·", "⋅",
                                        "∙", "\\times", "\\cdot", "✕", NULL};
    size_t at = i + space_at(s, i), sign = any_of(s, at, signs);
    if (sign == 0)
        return 0;
    at += sign;
    return at + space_at(s, at) - i;
}

static bool ten_to_the(struct str s, size_t *i, enum style style, int64_t *out)
{
    size_t at = *i + times_at(s, *i);
    if (at == *i || !step_over(s, at, STR("10")))
        return false;
    at += 2;
    if (!caret_power(s, &at, out) && !raised_power(s, &at, out) &&
        !fallen_power(s, &at, style, out))
        return false;
    *i = at;
    return true;
}

/* --- the mantissa --- */

typedef size_t separator_fn(struct str s, size_t i);

static size_t comma_at(struct str s, size_t i)
{
    return step_over(s, i, STR(","));
}

static size_t point_at(struct str s, size_t i)
{
    static const char *const points[] = {".", "．", NULL};
    return any_of(s, i, points);
}

/* Behind groups of three digits from i on, each with the separator before it. Those that are
 * followed by the separator and other digits are a list: count is 0. */
static size_t groups_end(struct str s, size_t i, separator_fn *separator, size_t *count)
{
    size_t begin = i;
    for (*count = 0; *count < GROUPS_MAX; ++*count) {
        size_t sep = separator(s, i), digits;
        size_t end = sep ? run_end(s, i + sep, &digits) : i;
        if (!sep || digits == 0)
            return i;
        if (digits != 3)
            break;
        i = end;
    }
    *count = 0;
    return begin;
}

/* What is between thousands behind the digits at i; NULL: nothing. */
static separator_fn *thousands(struct str s, size_t i, enum style style)
{
    size_t count;
    bool european = style & EUROPEAN;
    groups_end(s, i, comma_at, &count);
    if (count && !european)
        return comma_at;
    size_t end = groups_end(s, i, point_at, &count);
    if (count && (count > 1 || european || (comma_at(s, end) && is_digit(s, end + 1))))
        return point_at;
    groups_end(s, i, style & SPACED ? space_at : fixed_space_at, &count);
    return !count ? NULL : style & SPACED ? space_at : fixed_space_at;
}

/* Whether the comma at i, behind the number that begins at begin, can only be a decimal one: what
 * follows are no thousands, and no list. */
static bool is_decimal_comma(struct str s, size_t begin, size_t i)
{
    size_t digits, end = run_end(s, i + 1, &digits);
    bool in_list = (comma_at(s, end) && is_digit(s, end + 1)) ||
                   (begin > 1 && s.p[begin - 1] == ',' && ascii_is_digit(s.p[begin - 2]));
    bool zero = i == begin + 1 && s.p[begin] == '0';
    return digits > 0 && !in_list && (digits != 3 || zero);
}

/* Bytes of the decimal sign at i, with a digit behind it; else 0. */
static size_t decimal_at(struct str s, size_t begin, size_t i, separator_fn *sep, enum style style)
{
    size_t n = sep == point_at ? 0 : point_at(s, i), middle = step_over(s, i, STR("·"));
    int64_t power;
    size_t at = i;
    if (n == 0 && middle && !ten_to_the(s, &at, style, &power))
        n = middle;
    bool comma = comma_at(s, i) && sep != comma_at &&
                 (sep || style & EUROPEAN || is_decimal_comma(s, begin, i));
    n += n == 0 && comma;
    return n && is_digit(s, i + n) ? n : 0;
}

static size_t mantissa(struct str s, size_t i, enum style style, struct figures *f)
{
    size_t begin = i, count, end = run_end(s, i, &count);
    bool zero = count && s.p[begin] == '0';
    i = add_run(f, s, i, false);
    check(i == end);
    separator_fn *sep = count > 0 && count <= 3 && !zero ? thousands(s, i, style) : NULL;
    if (sep) {
        end = groups_end(s, i, sep, &count);
        while (i < end)
            i = add_run(f, s, i + sep(s, i), false);
    }
    size_t point = decimal_at(s, begin, i, sep, style);
    return point ? add_run(f, s, i + point, true) : i;
}

/* --- multipliers --- */

static const struct multiplier {
    const char *word;
    int power;
} multipliers[] = {
    {"百万", 6},    {"千万", 7},    {"百亿", 10},     {"千亿", 11}, {"万亿", 12},
    {"万", 4},      {"亿", 8},      {"萬", 4},        {"億", 8},    {"thousand", 3},
    {"million", 6}, {"billion", 9}, {"trillion", 12},
};

static void multiply(struct str s, size_t *i, struct figures *f)
{
    struct str rest = str_skip(s, *i + space_at(s, *i));
    for (size_t m = 0; m < sizeof multipliers / sizeof *multipliers; m++) {
        struct str word = str_of(multipliers[m].word);
        if (rest.n < word.n || !str_ieq(str_from(rest.p, word.n), word) ||
            (rest.n > word.n && ascii_is_letter(rest.p[word.n])))
            continue;
        f->exponent += multipliers[m].power;
        *i = (size_t)(rest.p - s.p) + word.n;
        return;
    }
}

/* --- one number --- */

struct number {
    size_t begin, end; /* of its digits: a sign stands before them */
    bool negative;
};

/* Reads the number at n->begin. False: too large. */
static bool read_at(struct str s, struct number *n, enum style style, double *out)
{
    struct figures f = {.n = 0};
    size_t i = mantissa(s, n->begin, style, &f);
    int64_t power = 0;
    bool ten = i == n->begin + 2 && step_over(s, n->begin, STR("10"));
    if (!(style & MANTISSA_ONLY)) {
        if (letter_power(s, &i, &power) || ten_to_the(s, &i, style, &power))
            f.exponent += power;
        else if (ten && (caret_power(s, &i, &power) || raised_power(s, &i, &power)))
            f.exponent += power - 1;
        multiply(s, &i, &f);
    }
    n->end = i;
    double v = value_of(&f);
    if (!isfinite(v))
        return false;
    *out = n->negative ? -v : v;
    return true;
}

/* Whether a dash that begins at i is a sign: it does not join what stands before it. */
static bool begins_sign(struct str s, size_t i)
{
    size_t begin;
    ucs4_t c = before(s, i, &begin);
    bool unit = c == ')' || c == ']' || c == '%' || c == 0xB0 || c == 0x2103 || c == 0x2030;
    return c == 0 || !(is_letter(c) || is_digit(s, begin) || dash_at(s, begin) || unit);
}

static bool has_minus(struct str s, size_t i)
{
    size_t begin;
    before(s, i, &begin);
    return begin < i && dash_at(s, begin) == i - begin && begins_sign(s, begin);
}

/* A point without digits before it: .05 */
static bool is_bare_point(struct str s, size_t i)
{
    size_t n = point_at(s, i), begin;
    ucs4_t c = before(s, i, &begin);
    return n && is_digit(s, i + n) && !is_letter(c) && (c == 0 || !is_digit(s, begin)) && c != '.';
}

/* The next number from i on. */
static bool next_number(struct str s, size_t i, struct number *out)
{
    for (; i < s.n; i++) {
        if (!is_digit(s, i) && !is_bare_point(s, i))
            continue;
        size_t begin;
        *out = (struct number){.begin = i, .negative = has_minus(s, i)};
        if (!is_letter(before(s, i, &begin)))
            return true;
        struct figures name = {.n = 0};
        i = mantissa(s, i, STRICT, &name) - 1;
    }
    return false;
}

bool number_read(struct str text, double *out, struct str *rest)
{
    struct number n = {.end = 0};
    while (next_number(text, n.end, &n)) {
        if (!read_at(text, &n, STRICT, out))
            continue;
        if (rest)
            *rest = str_skip(text, n.end);
        return true;
    }
    return false;
}

static bool is_close(double a, double b)
{
    return fabs(a - b) <= RELATIVE_CLOSE * fmax(fabs(a), fabs(b));
}

/* Behind the first digits of a number when a decimal comma follows them, which may be a list; else
 * behind all of it. */
static size_t next_from(struct str s, const struct number *n)
{
    size_t count, end = run_end(s, n->begin, &count);
    return count && comma_at(s, end) && is_decimal_comma(s, n->begin, end) ? end : n->end;
}

/* Reads it in each style, strictly first, since most are meant so. n->end is where that reading
 * ends, unless one of them is close. */
static bool may_mean(struct str text, struct number *n, double value)
{
    static const enum style styles[] = {STRICT,     EUROPEAN,     SPACED, SPACED | EUROPEAN,
                                        LOST_POWER, MANTISSA_ONLY};
    size_t end = 0;
    double got;
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        if (read_at(text, n, styles[i], &got) && is_close(got, value))
            return true;
        end = i == 0 ? n->end : end;
    }
    n->end = end;
    return false;
}

bool number_in(struct str text, double value)
{
    struct number n = {.end = 0};
    for (size_t from = 0; next_number(text, from, &n); from = next_from(text, &n))
        if (may_mean(text, &n, value))
            return true;
    return false;
}
