#include "base/json.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/decimal.h"
#include "base/err.h"
#include "base/json_float.h"
#include "base/json_scan.h"
#include "base/map.h"

/* Up to here a new name is compared with the others one by one; then a map takes over, so
 * that a hostile object does not cost quadratic time. */
#define NAMES_COMPARED_MAX 32

/* Larger exponents are clamped to this: no text has enough digits to compensate. */
#define EXPONENT_MAX 1000000000000000000

/* On failure p stays where the text went wrong. */
struct reader {
    struct arena *arena;
    const char *start, *p, *end;
    const char *message;
    int depth;
    bool packs; /* arrays of numbers become floats */
};

static bool read_value(struct reader *r, struct json *j);

static bool fail(struct reader *r, const char *message)
{
    r->message = message;
    return false;
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
        r->p++;
}

static bool next_is(struct reader *r, char c) /* and takes it */
{
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

/* --- strings --- */

/* The four digits after "\u". */
static bool read_hex4(struct reader *r, uint32_t *out)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        int digit = r->p < r->end ? ascii_hex(*r->p) : -1;
        if (digit < 0)
            return fail(r, "expected four hexadecimal digits after \\u");
        v = v << 4 | (uint32_t)digit;
        r->p++;
    }
    *out = v;
    return true;
}

/* After "\u": one character, which takes a second escape if it lies beyond U+FFFF. */
static bool read_unicode_escape(struct reader *r, uint32_t *out)
{
    uint32_t high, low;
    if (!read_hex4(r, &high))
        return false;
    *out = high;
    if (high < 0xD800 || high > 0xDFFF)
        return true;
    if (high > 0xDBFF)
        return fail(r, "expected the first half of a surrogate pair before the second");
    if (!next_is(r, '\\') || !next_is(r, 'u'))
        return fail(r, "expected the second half of a surrogate pair");
    if (!read_hex4(r, &low))
        return false;
    if (low < 0xDC00 || low > 0xDFFF)
        return fail(r, "expected the second half of a surrogate pair");
    *out = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

/* After the backslash: writes what the escape stands for. */
static bool read_escape(struct reader *r, char **at)
{
    static const char meanings[256] = {
        ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
        ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
    };
    if (next_is(r, 'u')) {
        uint32_t c;
        if (!read_unicode_escape(r, &c))
            return false;
        *at += str_utf8_put(*at, c);
        return true;
    }
    char meaning = '\0';
    if (r->p < r->end)
        meaning = meanings[(unsigned char)*r->p];
    if (!meaning)
        return fail(r, "expected one of \"\\/bfnrtu after a backslash");
    *(*at)++ = meaning;
    r->p++;
    return true;
}

static bool skip_beyond_ascii(struct reader *r)
{
    while (r->p < r->end && (*r->p & 0x80)) {
        size_t step = str_utf8_step(str_from(r->p, (size_t)(r->end - r->p)));
        if (step == 0)
            return fail(r, "expected valid UTF-8");
        r->p += step;
    }
    return true;
}

/* At a byte that is not plain. True: skipped characters beyond ASCII. False: at a quote or a
 * backslash, or the text is wrong and the message set. */
static bool skip_unplain(struct reader *r)
{
    if (r->p == r->end)
        return fail(r, "expected the closing quote of a string");
    if (*r->p == '"' || *r->p == '\\')
        return false;
    if (!(*r->p & 0x80))
        return fail(r, "expected an escape instead of a control character in a string");
    return skip_beyond_ascii(r);
}

/* Skips everything that needs no decoding; a quote or a backslash follows. */
static bool skip_literal(struct reader *r)
{
    do
        r->p = json_skip_plain(r->p, r->end);
    while (skip_unplain(r));
    return !r->message;
}

/* The same, and copies it. */
static bool copy_literal(struct reader *r, char **at)
{
    for (;;) {
        const char *from = r->p;
        r->p = json_copy_plain(from, r->end, *at);
        *at += r->p - from;
        from = r->p;
        if (!skip_unplain(r))
            return !r->message;
        memcpy(*at, from, (size_t)(r->p - from));
        *at += r->p - from;
    }
}

static bool is_escaped(const char *p, const char *from) /* by an odd number of backslashes */
{
    const char *q = p;
    while (q > from && q[-1] == '\\')
        q--;
    return (p - q) % 2 != 0;
}

/* The first quote that is not escaped; end when there is none. */
static const char *closing_quote(const char *from, const char *end)
{
    const char *p = from;
    while (p < end && (p = memchr(p, '"', (size_t)(end - p)))) {
        if (!is_escaped(p, from))
            return p;
        p++;
    }
    return end;
}

/* The rest of a string that has escapes: p is at the first backslash. No escape stands for more
 * bytes than it is written with, so the closing quote bounds the memory needed. */
static bool read_escaped(struct reader *r, const char *from, struct str *out)
{
    const char *close = closing_quote(r->p, r->end);
    char *copy = arena_alloc(r->arena, (size_t)(close - from) + JSON_COPY_SLACK);
    memcpy(copy, from, (size_t)(r->p - from));
    char *at = copy + (r->p - from);
    while (!next_is(r, '"')) {
        r->p++;
        if (!read_escape(r, &at) || !copy_literal(r, &at))
            return false;
    }
    *out = str_from(copy, (size_t)(at - copy));
    return true;
}

/* After the opening quote. */
static bool read_string(struct reader *r, struct str *out)
{
    const char *from = r->p;
    r->p = json_skip_plain(from, r->end);
    bool plain = r->p < r->end && *r->p == '"'; /* as most are */
    if (!plain && !skip_literal(r))
        return false;
    if (*r->p == '\\')
        return read_escaped(r, from, out);
    *out = str_from(from, (size_t)(r->p - from));
    r->p++;
    return true;
}

/* --- numbers --- */

struct number {
    const char *text;
    bool negative;
    uint64_t digits; /* without point and sign; meaningless once they do not fit */
    bool digits_fit;
    int64_t scale; /* the value is digits * 10^scale */
};

static bool read_digits(struct reader *r, struct number *n)
{
    const char *from = r->p;
    for (; r->p < r->end && ascii_is_digit(*r->p); r->p++) {
        n->digits_fit = n->digits_fit && !__builtin_mul_overflow(n->digits, 10u, &n->digits) &&
                        !__builtin_add_overflow(n->digits, (uint64_t)(*r->p - '0'), &n->digits);
    }
    return r->p > from || fail(r, "expected a digit");
}

static bool read_exponent(struct reader *r, struct number *n)
{
    struct number e = {.digits_fit = true, .negative = next_is(r, '-')};
    if (!e.negative)
        next_is(r, '+');
    if (!read_digits(r, &e))
        return false;
    int64_t shift = e.digits_fit && e.digits < EXPONENT_MAX ? (int64_t)e.digits : EXPONENT_MAX;
    n->scale += e.negative ? -shift : shift;
    return true;
}

/* strtod works under the locale in which the point is a point. */
static bool to_double(struct reader *r, const struct number *n, double *out)
{
    double d;
    if (n->digits_fit && decimal_exact(n->digits, n->scale, &d)) {
        *out = n->negative ? -d : d;
        return true;
    }
    struct arena_mark before = arena_mark(r->arena);
    char *z = str_z(r->arena, str_from(n->text, (size_t)(r->p - n->text)));
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *out = strtod_l(z, NULL, c);
    freelocale(c);
    arena_reset(r->arena, before);
    return isfinite(*out) || fail(r, "expected a number within the range of a double");
}

static bool read_number(struct reader *r, struct json *j)
{
    struct number n = {.text = r->p, .digits_fit = true, .negative = next_is(r, '-')};
    bool real = false;
    if (next_is(r, '0')) {
        if (r->p < r->end && ascii_is_digit(*r->p))
            return fail(r, "expected no digit after a leading zero");
    } else if (!read_digits(r, &n)) {
        return false;
    }
    if (next_is(r, '.')) {
        const char *point = r->p;
        if (!read_digits(r, &n))
            return false;
        n.scale = point - r->p;
        real = true;
    }
    if (next_is(r, 'e') || next_is(r, 'E')) {
        if (!read_exponent(r, &n))
            return false;
        real = true;
    }
    uint64_t limit = (uint64_t)INT64_MAX + n.negative;
    if (!real && n.digits_fit && n.digits <= limit) {
        j->type = JSON_INT;
        j->i = (int64_t)(n.negative ? -n.digits : n.digits);
        return true;
    }
    j->type = JSON_REAL;
    return to_double(r, &n, &j->d);
}

/* --- arrays and objects --- */

static bool enter(struct reader *r, struct json *j, enum json_type type)
{
    if (r->depth == JSON_DEPTH_MAX)
        return fail(r, "expected fewer levels of nesting");
    r->depth++;
    r->p++;
    j->type = type;
    j->child = NULL;
    skip_space(r);
    return true;
}

/* A fresh child at the end of j; *tail is where its address goes. */
static struct json *add_child(struct reader *r, struct json *j, const struct json ***tail)
{
    struct json *child = arena_alloc(r->arena, sizeof(*child));
    child->count = 0;
    child->key = STR_NULL;
    child->next = NULL;
    **tail = child;
    *tail = &child->next;
    j->count++;
    return child;
}

/* Commas up to the bracket that comes first, which an array of numbers ends with. */
static size_t count_commas(const char *p, const char *end)
{
    size_t count = 0;
    const char *close = memchr(p, ']', (size_t)(end - p));
    for (end = close ? close : p; end - p >= 16; p += 16)
        count += (size_t)__builtin_popcount(bytes16_bits(bytes16_load(p) == ','));
    while (p < end)
        count += *p++ == ',';
    return count;
}

/* After the bracket and the blanks behind it: reads all of an array of numbers. False, with r where
 * it was: it is another one, or wrong. */
static bool read_floats(struct reader *r, struct json *j)
{
    const char *from = r->p;
    if (from == r->end || (!ascii_is_digit(*from) && *from != '-' && *from != 'n'))
        return false;
    struct arena_mark before = arena_mark(r->arena);
    size_t room = count_commas(r->p, r->end) + 1, count = 0;
    float *floats = arena_alloc(r->arena, room * sizeof *floats);
    do {
        skip_space(r);
        const char *end = count < room ? json_float(r->p, r->end, &floats[count]) : NULL;
        if (!end)
            break;
        count++;
        r->p = end;
        skip_space(r);
    } while (next_is(r, ','));
    if (count == room && next_is(r, ']')) {
        j->type = JSON_FLOATS;
        j->count = (uint32_t)count;
        j->floats = floats;
        return true;
    }
    arena_reset(r->arena, before);
    r->p = from;
    return false;
}

static bool read_array(struct reader *r, struct json *j)
{
    if (!enter(r, j, JSON_ARRAY))
        return false;
    if (r->packs && read_floats(r, j)) {
        r->depth--;
        return true;
    }
    const struct json **tail = &j->child;
    while (!next_is(r, ']')) {
        if (j->count) {
            if (!next_is(r, ','))
                return fail(r, "expected ',' or ']'");
            skip_space(r);
        }
        if (!read_value(r, add_child(r, j, &tail)))
            return false;
        skip_space(r);
    }
    r->depth--;
    return true;
}

/* Whether an earlier member of j has the name of its latest one. */
static bool is_repeated(const struct json *j, const struct json *latest, struct map **names)
{
    if (j->count <= NAMES_COMPARED_MAX) {
        json_each (other, j)
            if (other != latest && str_eq(other->key, latest->key))
                return true;
        return false;
    }
    if (!*names) {
        *names = map_new();
        json_each (other, j)
            if (other != latest)
                map_add(*names, other->key);
    }
    return !map_add(*names, latest->key);
}

static bool read_name(struct reader *r, struct json *j, struct json *member, struct map **names)
{
    const char *from = r->p;
    if (!next_is(r, '"'))
        return fail(r, j->count == 1 ? "expected '}' or a name in quotes"
                                     : "expected a name in quotes");
    if (!read_string(r, &member->key))
        return false;
    if (is_repeated(j, member, names)) {
        r->p = from;
        return fail(r, "expected every name once, but this one is repeated");
    }
    skip_space(r);
    if (!next_is(r, ':'))
        return fail(r, "expected ':'");
    skip_space(r);
    return true;
}

static bool read_members(struct reader *r, struct json *j, struct map **names)
{
    const struct json **tail = &j->child;
    while (!next_is(r, '}')) {
        if (j->count) {
            if (!next_is(r, ','))
                return fail(r, "expected ',' or '}'");
            skip_space(r);
        }
        struct json *member = add_child(r, j, &tail);
        if (!read_name(r, j, member, names) || !read_value(r, member))
            return false;
        skip_space(r);
    }
    return true;
}

static bool read_object(struct reader *r, struct json *j)
{
    if (!enter(r, j, JSON_OBJECT))
        return false;
    struct map *names = NULL;
    bool fine = read_members(r, j, &names);
    map_free(names);
    r->depth--;
    return fine;
}

/* --- values --- */

static bool read_word(struct reader *r, struct json *j, struct str word, enum json_type type)
{
    if (!str_starts(str_from(r->p, (size_t)(r->end - r->p)), word))
        return fail(r, "expected a value");
    r->p += word.n;
    j->type = type;
    return true;
}

static bool read_value(struct reader *r, struct json *j)
{
    if (r->p == r->end)
        return fail(r, "expected a value");
    switch (*r->p) {
    case '"':
        r->p++;
        j->type = JSON_STRING;
        return read_string(r, &j->s);
    case '{':
        return read_object(r, j);
    case '[':
        return read_array(r, j);
    case 't':
        return read_word(r, j, STR("true"), JSON_TRUE);
    case 'f':
        return read_word(r, j, STR("false"), JSON_FALSE);
    case 'n':
        return read_word(r, j, STR("null"), JSON_NULL);
    case '-':
    case '0' ... '9':
        return read_number(r, j);
    default:
        return fail(r, "expected a value");
    }
}

static void locate(const struct reader *r, struct json_error *e)
{
    *e = (struct json_error){.line = 1, .column = 1, .message = r->message};
    for (const char *p = r->start; p < r->p; p++) {
        if (*p == '\n') {
            e->line++;
            e->column = 1;
        } else if ((*p & 0xC0) != 0x80) {
            e->column++; /* characters, not bytes: as editors count */
        }
    }
}

static bool read_text(struct reader *r, struct json *root)
{
    if (r->end - r->start > UINT32_MAX)
        return fail(r, "expected less than 4 GB of text");
    skip_space(r);
    if (!read_value(r, root))
        return false;
    skip_space(r);
    return r->p == r->end || fail(r, "expected nothing after the value");
}

static int parse(struct arena *a, struct str text, bool packs, const struct json **out,
                 struct json_error *e)
{
    if (!text.p)
        text = STR("");
    struct reader r = {
        .arena = a, .start = text.p, .p = text.p, .end = text.p + text.n, .packs = packs};
    struct arena_mark before = arena_mark(a);
    struct json *root = ARENA_NEW(a, struct json);
    if (!read_text(&r, root)) {
        arena_reset(a, before);
        if (e)
            locate(&r, e);
        return ERR_INVALID;
    }
    *out = root;
    return 0;
}

int json_parse(struct arena *a, struct str text, const struct json **out, struct json_error *e)
{
    return parse(a, text, false, out, e);
}

int json_parse_floats(struct arena *a, struct str text, const struct json **out,
                      struct json_error *e)
{
    return parse(a, text, true, out, e);
}
