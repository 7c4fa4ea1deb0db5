#include "base/json.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/decimal.h"
#include "base/json_scan.h"

#define FRACTION_PLACES 6
#define FRACTION_LEAST  1e-3 /* %g writes what is much less with an exponent */
#define FRACTION_MOST   1e12
#define DIGITS_SAFE     1000000000000000 /* less: 15 digits */

static void add_escaped_byte(struct buf *out, char c)
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: the byte, its letter */
    for (const char *pair = shorts; *pair; pair += 2) {
        if (*pair == c) {
            buf_add_char(out, '\\');
            buf_add_char(out, pair[1]);
            return;
        }
    }
    buf_printf(out, "\\u%04x", (unsigned char)c);
}

/* Appends s, valid UTF-8, up to the first byte that needs an escape; returns the rest. */
static struct str add_as_is(struct buf *out, struct str s)
{
    char *at = buf_reserve(out, s.n + 16);
    size_t i = 0;
    for (; s.n - i >= 16; i += 16) {
        bytes16 v = bytes16_load(s.p + i);
        memcpy(at + i, &v, sizeof(v)); /* bytes behind the mark are overwritten later */
        uint32_t marks = bytes16_bits(bytes16_within(v, 0, 0x1F) | (v == '"') | (v == '\\'));
        if (marks) {
            i += (size_t)__builtin_ctz(marks);
            buf_added(out, i);
            return str_skip(s, i);
        }
    }
    for (; i < s.n && (unsigned char)s.p[i] >= 0x20 && s.p[i] != '"' && s.p[i] != '\\'; i++)
        at[i] = s.p[i];
    buf_added(out, i);
    return str_skip(s, i);
}

struct str json_escape_line(struct buf *out, struct str s)
{
    while (s.n && (s = add_as_is(out, s)).n && (unsigned char)*s.p >= 0x20) {
        add_escaped_byte(out, *s.p);
        s = str_skip(s, 1);
    }
    return s;
}

static void escape_valid(struct buf *out, struct str s)
{
    while ((s = json_escape_line(out, s)).n) {
        add_escaped_byte(out, *s.p);
        s = str_skip(s, 1);
    }
}

/* Appends s up to its first byte beyond ASCII; returns the rest. */
static struct str escape_ascii(struct buf *out, struct str s)
{
    while (s.n) {
        char *at = buf_reserve(out, s.n + JSON_COPY_SLACK);
        size_t n = (size_t)(json_copy_plain(s.p, s.p + s.n, at) - s.p);
        buf_added(out, n);
        s = str_skip(s, n);
        if (s.n == 0 || *s.p & 0x80)
            break;
        add_escaped_byte(out, *s.p);
        s = str_skip(s, 1);
    }
    return s;
}

void json_escape(struct buf *out, struct str s)
{
    size_t n;
    s = escape_ascii(out, s);
    while ((n = str_utf8_prefix(s)) < s.n) {
        escape_valid(out, str_from(s.p, n));
        buf_add_lit(out, "\xEF\xBF\xBD");
        s = str_skip(s, n + 1);
    }
    escape_valid(out, s);
}

void jw_init(struct json_writer *w, struct buf *out)
{
    *w = (struct json_writer){.out = out};
}

static uint64_t level_bit(const struct json_writer *w)
{
    return (uint64_t)1 << (w->depth - 1);
}

static void comma(struct json_writer *w)
{
    if (w->started & level_bit(w))
        buf_add_char(w->out, ',');
    w->started |= level_bit(w);
}

/* Before any value: the comma if one is due, and whether a value may stand here at all. */
static void before_value(struct json_writer *w)
{
    if (w->depth == 0) {
        check(!w->root_done);
        w->root_done = true;
    } else if (w->objects & level_bit(w)) {
        check(w->after_key);
        w->after_key = false;
    } else {
        comma(w);
    }
}

static void open_level(struct json_writer *w, bool object)
{
    before_value(w);
    check(w->depth < JSON_DEPTH_MAX);
    w->depth++;
    w->started &= ~level_bit(w);
    w->objects &= ~level_bit(w);
    if (object)
        w->objects |= level_bit(w);
    buf_add_char(w->out, object ? '{' : '[');
}

static void close_level(struct json_writer *w, bool object)
{
    check(w->depth > 0 && !w->after_key);
    check(object == !!(w->objects & level_bit(w)));
    w->depth--;
    buf_add_char(w->out, object ? '}' : ']');
}

void jw_object(struct json_writer *w)
{
    open_level(w, true);
}

void jw_array(struct json_writer *w)
{
    open_level(w, false);
}

void jw_end_object(struct json_writer *w)
{
    close_level(w, true);
}

void jw_end_array(struct json_writer *w)
{
    close_level(w, false);
}

static void add_quoted(struct buf *out, struct str s)
{
    buf_add_char(out, '"');
    json_escape(out, s);
    buf_add_char(out, '"');
}

void jw_key(struct json_writer *w, struct str name)
{
    check(w->depth > 0 && (w->objects & level_bit(w)) && !w->after_key);
    comma(w);
    add_quoted(w->out, name);
    buf_add_char(w->out, ':');
    w->after_key = true;
}

void jw_raw(struct json_writer *w, struct str json)
{
    check(json.n > 0);
    before_value(w);
    buf_add_str(w->out, json);
}

void jw_null(struct json_writer *w)
{
    jw_raw(w, STR("null"));
}

void jw_bool(struct json_writer *w, bool v)
{
    jw_raw(w, v ? STR("true") : STR("false"));
}

void jw_str(struct json_writer *w, struct str s)
{
    if (!s.p) {
        jw_null(w);
        return;
    }
    before_value(w);
    add_quoted(w->out, s);
}

void jw_int(struct json_writer *w, int64_t v)
{
    before_value(w);
    buf_add_int(w->out, v);
}

/* The fewest digits that read back as v. 15 digits survive the way through a normal double
 * unchanged, and %g drops zeros at the end, so only the tiniest numbers must start at one digit. */
static void print_shortest(char *out, size_t size, double v)
{
    for (int digits = fabs(v) < DBL_MIN ? 1 : DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
        snprintf(out, size, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            return;
    }
}

/* Of numbers with few digits, as nearly all are. Up to 15 digits survive the way through a double,
 * so the first fraction that reads back as v is what print_shortest would find. */
static bool write_fraction(struct json_writer *w, double v)
{
    double size = fabs(v), back;
    uint64_t scale = 1;
    if (size < FRACTION_LEAST || size >= FRACTION_MOST)
        return false;
    for (int places = 0; places <= FRACTION_PLACES; places++, scale *= 10) {
        uint64_t digits = (uint64_t)(size * (double)scale + 0.5);
        if (digits >= DIGITS_SAFE || !decimal_exact(digits, -places, &back) || back != size)
            continue;
        before_value(w);
        if (v < 0)
            buf_add_char(w->out, '-');
        buf_add_int(w->out, (int64_t)(digits / scale));
        buf_add_char(w->out, '.');
        for (scale /= 10; scale; scale /= 10)
            buf_add_char(w->out, (char)('0' + digits / scale % 10));
        if (places == 0)
            buf_add_char(w->out, '0'); /* so that it reads back as JSON_REAL */
        return true;
    }
    return false;
}

void jw_real(struct json_writer *w, double v)
{
    if (!isfinite(v)) {
        jw_null(w);
        return;
    }
    if (write_fraction(w, v))
        return;
    char text[40];
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), former = uselocale(c);
    print_shortest(text, sizeof(text), v);
    uselocale(former);
    freelocale(c);
    jw_raw(w, str_of(text));
    if (!strpbrk(text, ".e")) /* so that it reads back as JSON_REAL */
        buf_add_lit(w->out, ".0");
}

void jw_begin(struct json_writer *w, struct buf *out)
{
    buf_init(out);
    jw_init(w, out);
    jw_object(w);
}

struct str jw_finish(struct json_writer *w, struct arena *a)
{
    jw_end_object(w);
    check(w->depth == 0);
    struct str text = str_dup(a, buf_str(w->out));
    buf_release(w->out);
    return text;
}

static void write_children(struct json_writer *w, const struct json *parent)
{
    json_each (j, parent) {
        if (parent->type == JSON_OBJECT)
            jw_key(w, j->key);
        jw_json(w, j);
    }
}

void jw_json(struct json_writer *w, const struct json *j)
{
    switch (j->type) {
    case JSON_NULL:
        jw_null(w);
        break;
    case JSON_FALSE:
    case JSON_TRUE:
        jw_bool(w, j->type == JSON_TRUE);
        break;
    case JSON_INT:
        jw_int(w, j->i);
        break;
    case JSON_REAL:
        jw_real(w, j->d);
        break;
    case JSON_STRING:
        jw_str(w, j->s);
        break;
    case JSON_ARRAY:
        jw_array(w);
        write_children(w, j);
        jw_end_array(w);
        break;
    case JSON_OBJECT:
        jw_object(w);
        write_children(w, j);
        jw_end_object(w);
        break;
    case JSON_FLOATS:
        jw_array(w);
        for (uint32_t i = 0; i < j->count; i++)
            jw_real(w, (double)j->floats[i]);
        jw_end_array(w);
        break;
    }
}
