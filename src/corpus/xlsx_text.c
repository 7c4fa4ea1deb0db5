#include "corpus/xlsx_text.h"

#include <unicase.h>
#include <uninorm.h>

#include "base/ascii.h"
#include "base/buf.h"
#include "corpus/xlsx.h"

#define NAME_UNITS_MAX 31
#define ELLIPSIS       "\u2026"
#define REPLACEMENT    "\uFFFD"

/* --- characters --- */

/* One character of UTF-8; a byte that is not is taken alone, and becomes U+FFFD. */
struct character {
    struct str utf8;
    size_t bytes, units;
};

static struct character first_of(struct str s)
{
    size_t n = str_utf8_step(s);
    if (n == 0)
        return (struct character){STR(REPLACEMENT), 1, 1};
    return (struct character){str_from(s.p, n), n, n == 4 ? 2 : 1};
}

static bool is_forbidden(struct str c)
{
    unsigned char first = (unsigned char)c.p[0];
    if (c.n == 1)
        return first < ' ' && first != '\t' && first != '\n' && first != '\r';
    return str_eq(c, STR("\xef\xbf\xbe")) || str_eq(c, STR("\xef\xbf\xbf"));
}

size_t xlsx_units(struct str s)
{
    size_t units = 0;
    while (s.n) {
        struct character c = first_of(s);
        units += c.units;
        s = str_skip(s, c.bytes);
    }
    return units;
}

/* The beginning of s that has so many units at most. */
static struct str cut(struct str s, size_t units)
{
    size_t n = 0;
    while (n < s.n) {
        struct character c = first_of(str_skip(s, n));
        if (c.units > units)
            break;
        units -= c.units;
        n += c.bytes;
    }
    return str_from(s.p, n);
}

/* --- XML --- */

static bool is_plain(char c)
{
    return (unsigned char)c >= ' ' && (unsigned char)c < 0x80 && c != '<' && c != '>' && c != '&' &&
           c != '"' && c != '_';
}

static bool looks_escaped(struct str s)
{
    return s.n >= 7 && s.p[0] == '_' && s.p[1] == 'x' && s.p[6] == '_' && ascii_hex(s.p[2]) >= 0 &&
           ascii_hex(s.p[3]) >= 0 && ascii_hex(s.p[4]) >= 0 && ascii_hex(s.p[5]) >= 0;
}

static void put_character(struct buf *out, struct str c)
{
    switch (c.p[0]) {
    case '<':
        buf_add_lit(out, "&lt;");
        break;
    case '>':
        buf_add_lit(out, "&gt;");
        break;
    case '&':
        buf_add_lit(out, "&amp;");
        break;
    case '"':
        buf_add_lit(out, "&quot;");
        break;
    default:
        if (!is_forbidden(c))
            buf_add_str(out, c);
    }
}

static void put_text(struct buf *out, struct str s)
{
    while (s.n) {
        size_t n = 0;
        while (n < s.n && is_plain(s.p[n]))
            n++;
        buf_add(out, s.p, n);
        s = str_skip(s, n);
        if (s.n == 0)
            return;
        if (looks_escaped(s))
            buf_add_lit(out, "_x005F");
        struct character c = first_of(s);
        bool pair = s.n > 1 && s.p[0] == '\r' && s.p[1] == '\n';
        if (s.p[0] != '\r')
            put_character(out, c.utf8);
        else if (!pair)
            buf_add_char(out, '\n');
        s = str_skip(s, c.bytes);
    }
}

void xlsx_put_cell_text(struct buf *out, struct str text)
{
    if (text.n <= XLSX_TEXT_MAX || xlsx_units(text) <= XLSX_TEXT_MAX) {
        put_text(out, text);
        return;
    }
    put_text(out, cut(text, XLSX_TEXT_MAX - 1));
    buf_add_lit(out, ELLIPSIS);
}

void xlsx_put_attribute(struct buf *out, struct str text)
{
    while (text.n) {
        struct character c = first_of(text);
        put_character(out, c.utf8);
        text = str_skip(text, c.bytes);
    }
}

/* --- names of sheets --- */

static bool is_outer(char c)
{
    return c == ' ' || c == '\'';
}

struct str xlsx_sheet_name(struct arena *a, struct str name)
{
    struct buf b;
    buf_init(&b);
    while (name.n) {
        struct character c = first_of(name);
        if (memchr("[]:*?/\\", c.utf8.p[0], 7))
            buf_add_char(&b, '_');
        else if ((unsigned char)c.utf8.p[0] >= ' ' && c.utf8.p[0] != 127 && !is_forbidden(c.utf8))
            buf_add_str(&b, c.utf8);
        name = str_skip(name, c.bytes);
    }
    struct str clean = str_trim_if(buf_str(&b), is_outer);
    clean = str_trim_if(cut(clean, NAME_UNITS_MAX), is_outer);
    if (clean.n == 0)
        clean = STR("Sheet");
    bool reserved = xlsx_same_name(clean, STR("History"));
    struct str out = STR_JOIN(a, clean, reserved ? STR("_") : STR(""));
    buf_release(&b);
    return out;
}

struct str xlsx_numbered_name(struct arena *a, struct str name, size_t number)
{
    struct str end = str_printf(a, " (%zu)", number);
    return STR_JOIN(a, cut(name, NAME_UNITS_MAX - end.n), end);
}

bool xlsx_same_name(struct str a, struct str b)
{
    int order = 1;
    const uint8_t *p = (const uint8_t *)a.p, *q = (const uint8_t *)b.p;
    return u8_casecmp(p, a.n, q, b.n, NULL, UNINORM_NFC, &order) == 0 && order == 0;
}
