#include "corpus/prose/markdown_tag.h"

#include <stdlib.h>

#include "base/ascii.h"

#define NAME_BYTES_MAX 16

/* --- names --- */

static const struct element {
    const char *name;
    enum markdown_tag kind;
} elements[] = {
    /* sorted */
    {"a", MARKDOWN_TAG_NOTHING},        {"abbr", MARKDOWN_TAG_NOTHING},
    {"acronym", MARKDOWN_TAG_NOTHING},  {"address", MARKDOWN_TAG_BLOCK},
    {"article", MARKDOWN_TAG_BLOCK},    {"aside", MARKDOWN_TAG_BLOCK},
    {"audio", MARKDOWN_TAG_NOTHING},    {"b", MARKDOWN_TAG_NOTHING},
    {"bdi", MARKDOWN_TAG_NOTHING},      {"bdo", MARKDOWN_TAG_NOTHING},
    {"big", MARKDOWN_TAG_NOTHING},      {"blockquote", MARKDOWN_TAG_BLOCK},
    {"body", MARKDOWN_TAG_BLOCK},       {"br", MARKDOWN_TAG_LINE},
    {"button", MARKDOWN_TAG_BLANK},     {"canvas", MARKDOWN_TAG_NOTHING},
    {"caption", MARKDOWN_TAG_BLOCK},    {"center", MARKDOWN_TAG_BLOCK},
    {"cite", MARKDOWN_TAG_NOTHING},     {"code", MARKDOWN_TAG_NOTHING},
    {"col", MARKDOWN_TAG_NOTHING},      {"colgroup", MARKDOWN_TAG_NOTHING},
    {"data", MARKDOWN_TAG_NOTHING},     {"dd", MARKDOWN_TAG_LINE},
    {"del", MARKDOWN_TAG_NOTHING},      {"details", MARKDOWN_TAG_BLOCK},
    {"dfn", MARKDOWN_TAG_NOTHING},      {"dialog", MARKDOWN_TAG_BLOCK},
    {"div", MARKDOWN_TAG_BLOCK},        {"dl", MARKDOWN_TAG_BLOCK},
    {"dt", MARKDOWN_TAG_LINE},          {"em", MARKDOWN_TAG_NOTHING},
    {"embed", MARKDOWN_TAG_NOTHING},    {"fieldset", MARKDOWN_TAG_BLOCK},
    {"figcaption", MARKDOWN_TAG_BLOCK}, {"figure", MARKDOWN_TAG_BLOCK},
    {"font", MARKDOWN_TAG_NOTHING},     {"footer", MARKDOWN_TAG_BLOCK},
    {"form", MARKDOWN_TAG_BLOCK},       {"h1", MARKDOWN_TAG_BLOCK},
    {"h2", MARKDOWN_TAG_BLOCK},         {"h3", MARKDOWN_TAG_BLOCK},
    {"h4", MARKDOWN_TAG_BLOCK},         {"h5", MARKDOWN_TAG_BLOCK},
    {"h6", MARKDOWN_TAG_BLOCK},         {"head", MARKDOWN_TAG_BLOCK},
    {"header", MARKDOWN_TAG_BLOCK},     {"hr", MARKDOWN_TAG_BLOCK},
    {"html", MARKDOWN_TAG_BLOCK},       {"i", MARKDOWN_TAG_NOTHING},
    {"iframe", MARKDOWN_TAG_NOTHING},   {"img", MARKDOWN_TAG_NOTHING},
    {"input", MARKDOWN_TAG_BLANK},      {"ins", MARKDOWN_TAG_NOTHING},
    {"kbd", MARKDOWN_TAG_NOTHING},      {"label", MARKDOWN_TAG_NOTHING},
    {"legend", MARKDOWN_TAG_BLOCK},     {"li", MARKDOWN_TAG_LINE},
    {"link", MARKDOWN_TAG_NOTHING},     {"main", MARKDOWN_TAG_BLOCK},
    {"mark", MARKDOWN_TAG_NOTHING},     {"menu", MARKDOWN_TAG_BLOCK},
    {"meta", MARKDOWN_TAG_NOTHING},     {"nav", MARKDOWN_TAG_BLOCK},
    {"noscript", MARKDOWN_TAG_BLOCK},   {"object", MARKDOWN_TAG_NOTHING},
    {"ol", MARKDOWN_TAG_BLOCK},         {"option", MARKDOWN_TAG_LINE},
    {"p", MARKDOWN_TAG_BLOCK},          {"param", MARKDOWN_TAG_NOTHING},
    {"picture", MARKDOWN_TAG_NOTHING},  {"pre", MARKDOWN_TAG_BLOCK},
    {"q", MARKDOWN_TAG_NOTHING},        {"rp", MARKDOWN_TAG_NOTHING},
    {"rt", MARKDOWN_TAG_NOTHING},       {"ruby", MARKDOWN_TAG_NOTHING},
    {"s", MARKDOWN_TAG_NOTHING},        {"samp", MARKDOWN_TAG_NOTHING},
    {"script", MARKDOWN_TAG_NOTHING},   {"section", MARKDOWN_TAG_BLOCK},
    {"select", MARKDOWN_TAG_BLANK},     {"small", MARKDOWN_TAG_NOTHING},
    {"source", MARKDOWN_TAG_NOTHING},   {"span", MARKDOWN_TAG_NOTHING},
    {"strike", MARKDOWN_TAG_NOTHING},   {"strong", MARKDOWN_TAG_NOTHING},
    {"style", MARKDOWN_TAG_NOTHING},    {"sub", MARKDOWN_TAG_NOTHING},
    {"summary", MARKDOWN_TAG_BLOCK},    {"sup", MARKDOWN_TAG_NOTHING},
    {"svg", MARKDOWN_TAG_NOTHING},      {"table", MARKDOWN_TAG_BLOCK},
    {"tbody", MARKDOWN_TAG_NOTHING},    {"td", MARKDOWN_TAG_BLANK},
    {"template", MARKDOWN_TAG_NOTHING}, {"textarea", MARKDOWN_TAG_BLANK},
    {"tfoot", MARKDOWN_TAG_NOTHING},    {"th", MARKDOWN_TAG_BLANK},
    {"thead", MARKDOWN_TAG_NOTHING},    {"time", MARKDOWN_TAG_NOTHING},
    {"title", MARKDOWN_TAG_BLOCK},      {"tr", MARKDOWN_TAG_LINE},
    {"track", MARKDOWN_TAG_NOTHING},    {"tt", MARKDOWN_TAG_NOTHING},
    {"u", MARKDOWN_TAG_NOTHING},        {"ul", MARKDOWN_TAG_BLOCK},
    {"var", MARKDOWN_TAG_NOTHING},      {"video", MARKDOWN_TAG_NOTHING},
    {"wbr", MARKDOWN_TAG_NOTHING},
};

static int compare(const void *name, const void *element)
{
    return strcmp(name, ((const struct element *)element)->name);
}

static const struct element *element_of(struct str name)
{
    char lower[NAME_BYTES_MAX + 1];
    for (size_t i = 0; i < name.n; i++)
        lower[i] = ascii_lower(name.p[i]);
    lower[name.n] = '\0';
    return bsearch(lower, elements, sizeof elements / sizeof *elements, sizeof *elements, compare);
}

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

static struct str name_of(struct str s)
{
    size_t n = 0;
    while (n < s.n && n < NAME_BYTES_MAX && ascii_is_word(s.p[n]))
        n++;
    return str_from(s.p, n);
}

/* --- tags --- */

/* Behind the ">" that ends the attributes which begin here; 0: they do not end. */
static size_t past_attributes(struct str s, size_t at)
{
    for (; at < s.n && s.p[at] != '<'; at++) {
        if (s.p[at] == '>')
            return at + 1;
        if (s.p[at] != '"' && s.p[at] != '\'')
            continue;
        const char *end = memchr(s.p + at + 1, s.p[at], s.n - at - 1);
        if (!end)
            return 0;
        at = (size_t)(end - s.p);
    }
    return 0;
}

/* "https://example.org>", "jane@example.org>": no blanks, a scheme or an @. */
static size_t past_address(struct str s)
{
    size_t at = 0, colon = 0, sign = 0;
    for (; at < s.n && !is_blank(s.p[at]) && s.p[at] != '<' && s.p[at] != '>'; at++) {
        if (s.p[at] == ':' && !colon)
            colon = at;
        if (s.p[at] == '@' && !sign)
            sign = at;
    }
    if (at >= s.n || s.p[at] != '>' || !ascii_is_word(s.p[0]))
        return 0;
    for (size_t i = 0; i < colon; i++)
        if (!ascii_is_word(s.p[i]) && !strchr("+.-", s.p[i]))
            return 0;
    return colon > 1 || (sign && sign + 1 < at) ? at + 1 : 0;
}

size_t markdown_tag(struct str s, enum markdown_tag *kind)
{
    size_t closes = s.n && s.p[0] == '/';
    struct str name = name_of(str_skip(s, closes));
    if (name.n == 0 || !ascii_is_letter(name.p[0]))
        return 0;
    size_t at = closes + name.n;
    if (at < s.n && (is_blank(s.p[at]) || s.p[at] == '/' || s.p[at] == '>')) {
        const struct element *e = element_of(name);
        *kind = e ? e->kind : MARKDOWN_TAG_TEXT;
        return e ? past_attributes(s, at) : 0;
    }
    *kind = MARKDOWN_TAG_ADDRESS;
    return past_address(s);
}

/* --- what is hidden --- */

enum ending { END_COMMENT = 1, END_INSTRUCTION = 2, END_DECLARATION = 4, END_ELEMENT = 8 };

static size_t past(struct str s, size_t from, struct str end, enum ending e, unsigned *endless)
{
    const char *found = from < s.n ? memmem(s.p + from, s.n - from, end.p, end.n) : NULL;
    if (!found)
        *endless |= e;
    return found ? (size_t)(found - s.p) + end.n : 0;
}

/* Behind </name>. */
static size_t past_element(struct str s, struct str name, unsigned end, unsigned *endless)
{
    const char *p = s.p, *stop = s.p + s.n;
    while ((p = memchr(p, '<', (size_t)(stop - p)))) {
        p++;
        size_t left = (size_t)(stop - p);
        if (left <= name.n || *p != '/' || !str_ieq(str_from(p + 1, name.n), name))
            continue;
        const char *close = memchr(p, '>', left);
        if (close)
            return (size_t)(close - s.p) + 1;
        break;
    }
    *endless |= end;
    return 0;
}

size_t markdown_hidden(struct str s, unsigned *endless)
{
    char first = s.n ? s.p[0] : ' ';
    if (first == '!' && str_starts(s, STR("!--")))
        return *endless & END_COMMENT ? 0 : past(s, 3, STR("-->"), END_COMMENT, endless);
    if (first == '!' && s.n > 1 && (ascii_is_letter(s.p[1]) || s.p[1] == '['))
        return *endless & END_DECLARATION ? 0 : past(s, 2, STR(">"), END_DECLARATION, endless);
    if (first == '?')
        return *endless & END_INSTRUCTION ? 0 : past(s, 1, STR("?>"), END_INSTRUCTION, endless);
    if (ascii_lower(first) != 's')
        return 0;
    struct str name = name_of(s);
    unsigned end = str_ieq(name, STR("script"))  ? END_ELEMENT
                   : str_ieq(name, STR("style")) ? END_ELEMENT << 1
                                                 : 0;
    if (!end || name.n == s.n || !(is_blank(s.p[name.n]) || s.p[name.n] == '>'))
        return 0;
    return *endless & end ? 0 : past_element(s, name, end, endless);
}
