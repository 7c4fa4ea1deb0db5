#include "corpus/text_html.h"

#include "base/ascii.h"
#include "corpus/charset.h"

#define NAME_BYTES_MAX       40
#define ATTRIBUTES_BYTES_MAX 256
#define DIGITS_MAX           8

/* Everything under a namespace of JATS or MathML is a tag; others must be known by name. */
static bool tag_kind(struct str name, enum text_tag_kind *out)
{
    static const char *const spaces[] = {"jats:", "mml:", "m:", "ce:"};
    *out = TAG_INLINE;
    bool spaced = false;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]) && !spaced; i++) {
        struct str space = str_of(spaces[i]);
        spaced = str_starts(name, space);
        if (spaced)
            name = str_skip(name, space.n);
    }
    const struct text_tag *tag = text_tag_find(name);
    if (tag)
        *out = tag->kind;
    return tag || spaced;
}

/* The bytes up to and with close; 0 when it is not near. What stands before it must be empty, the
 * slash of <br/>, or attributes: a space, and an equals sign somewhere. */
static size_t attributes(struct str s, struct str close)
{
    struct str near = str_from(s.p, s.n < ATTRIBUTES_BYTES_MAX ? s.n : ATTRIBUTES_BYTES_MAX);
    ptrdiff_t at = str_find(near, close);
    if (at < 0)
        return 0;
    struct str inside = str_trim(str_from(s.p, (size_t)at));
    bool empty = inside.n == 0 || str_eq(inside, STR("/"));
    bool spaced = s.p[0] == ' ' || s.p[0] == '\n' || s.p[0] == '\t';
    if (!empty && (!spaced || str_find(inside, STR("=")) < 0 || str_find(inside, STR("<")) >= 0))
        return 0;
    return (size_t)at + close.n;
}

size_t html_tag(struct str s, struct str close, struct html_tag *out)
{
    size_t n = s.n && s.p[0] == '/';
    struct str name = str_skip(s, n);
    size_t name_n = 0;
    while (name_n < name.n && name_n < NAME_BYTES_MAX &&
           (ascii_is_word(name.p[name_n]) || name.p[name_n] == ':' || name.p[name_n] == '-'))
        name_n++;
    name.n = name_n;
    if (name.n == 0 || !tag_kind(name, &out->kind))
        return 0;
    out->closes = n == 1;
    size_t rest = attributes(str_skip(s, n + name.n), close);
    return rest ? n + name.n + rest : 0;
}

/* s is what stands between &# and the semicolon. */
static bool code_point(struct str s, uint32_t *out)
{
    uint32_t base = s.n && (s.p[0] == 'x' || s.p[0] == 'X') ? 16 : 10, code = 0;
    if (base == 16)
        s = str_skip(s, 1);
    if (s.n == 0 || s.n > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        int digit = ascii_hex(s.p[i]);
        if (digit < 0 || (uint32_t)digit >= base)
            return false;
        code = code * base + (uint32_t)digit;
    }
    if (code >= 0x80 && code < 0xA0) /* the number was a byte */
        code = charset_1252((unsigned char)code);
    *out = code < 0x20 || code == 0x7F || code == 0xA0 ? ' ' : code;
    return true;
}

/* s begins behind the ampersand. */
static size_t entity(struct str s, char out[HTML_ENTITY_BYTES_MAX], size_t *out_n)
{
    size_t n = s.n && s.p[0] == '#';
    while (n < s.n && n < NAME_BYTES_MAX && ascii_is_word(s.p[n]))
        n++;
    if (n == 0 || n == s.n || s.p[n] != ';')
        return 0;
    if (s.p[0] == '#') {
        uint32_t code;
        if (!code_point(str_from(s.p + 1, n - 1), &code))
            return 0;
        *out_n = str_utf8_put(out, code);
        return n + 1;
    }
    const struct text_entity *known = text_entity_find(str_from(s.p, n));
    if (!known)
        return 0;
    *out_n = strlen(known->out);
    check(*out_n <= HTML_ENTITY_BYTES_MAX);
    memcpy(out, known->out, *out_n);
    return n + 1;
}

size_t html_entity(struct str s, char out[HTML_ENTITY_BYTES_MAX], size_t *out_n)
{
    check(s.n > 0 && s.p[0] == '&');
    size_t n = entity(str_skip(s, 1), out, out_n);
    if (n == 0)
        return 0;
    if (*out_n == 1 && out[0] == '&') {
        char again[HTML_ENTITY_BYTES_MAX];
        size_t again_n, more = entity(str_skip(s, 1 + n), again, &again_n);
        if (more) {
            memcpy(out, again, again_n);
            *out_n = again_n;
            n += more;
        }
    }
    return 1 + n;
}
