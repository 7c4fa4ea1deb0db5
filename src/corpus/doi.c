#include "corpus/doi.h"

#include "base/ascii.h"
#include "base/map.h"
#include "corpus/text.h"
#include "corpus/text_html.h"

#define FIELD_BYTES_MAX  4096                 /* no DOI is looked for beyond this */
#define EXTENT_BYTES_MAX (DOI_BYTES_MAX + 64) /* so much punctuation at most is trimmed off */

/* Reading a field happens in two steps: undress() removes LaTeX and HTML, cut() finds the DOI in
 * what remains. text_plain() would not do, because it turns -- and _{2} into something else. */

static size_t take_escape(struct str s, char *out, size_t *out_n)
{
    static const struct {
        struct str name;
        char means;
    } words[] = {{{"\\textless", 9}, '<'}, {{"\\textgreater", 12}, '>'}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (str_starts(s, words[i].name)) {
            *out = words[i].means;
            *out_n = 1;
            return words[i].name.n;
        }
    *out_n = 0; /* the escaped character follows as it is */
    return 1;
}

static struct str undress(struct arena *a, struct str s)
{
    /* An entity stands for fewer bytes than its name has. */
    char *out = arena_alloc(a, s.n + HTML_ENTITY_BYTES_MAX);
    size_t len = 0, n, out_n;
    for (; s.n; s = str_skip(s, n)) {
        n = out_n = 1;
        if (s.p[0] == '\\')
            n = take_escape(s, out + len, &out_n);
        else if (s.p[0] == '{' || s.p[0] == '}')
            out_n = 0;
        else if (s.p[0] != '&' || (n = html_entity(s, out + len, &out_n)) == 0) {
            n = out_n = 1;
            out[len] = s.p[0];
        }
        check(out_n <= n);
        len += out_n;
    }
    return str_from(out, len);
}

/* Addresses write the slash as %2F. */
static struct str decode_percent(struct arena *a, struct str s)
{
    char *out = arena_alloc(a, s.n + 1);
    size_t len = 0;
    for (; s.n; s = str_skip(s, 1)) {
        int high = s.n > 2 && s.p[0] == '%' ? ascii_hex(s.p[1]) : -1;
        int value = high < 0 || ascii_hex(s.p[2]) < 0 ? -1 : high * 16 + ascii_hex(s.p[2]);
        out[len++] = value < 0 ? s.p[0] : (char)value;
        if (value >= 0)
            s = str_skip(s, 2);
    }
    return str_from(out, len);
}

/* The length of "10.1234/" at the start of s; 0 when something else stands there. */
static size_t prefix(struct str s)
{
    if (!str_starts(s, STR("10.")))
        return 0;
    size_t n = 3;
    while (n < s.n && ascii_is_digit(s.p[n]))
        n++;
    if (n - 3 < 4 || n - 3 > 9)
        return 0;
    while (n + 1 < s.n && s.p[n] == '.' &&
           ascii_is_digit(s.p[n + 1])) /* a registrant's divisions */
        for (n++; n < s.n && ascii_is_digit(s.p[n]);)
            n++;
    return n < s.n && s.p[n] == '/' ? n + 1 : 0;
}

/* Spaces beyond ASCII, and the punctuation of Chinese lists and of quotations. */
static bool is_separator(struct str c)
{
    static const char *const all[] = {"\u00A0", "\u2003", "\u2009", "\u200B", "\u201C",
                                      "\u201D", "\u2018", "\u2019", "\u3000", "\u3001",
                                      "\u3002", "\uFEFF", "\uFF0C", "\uFF1B", "\uFF09"};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (str_eq(c, str_of(all[i])))
            return true;
    return false;
}

static bool another_begins(struct str s) /* behind a comma or semicolon */
{
    return prefix(s) || str_ieq(str_from(s.p, s.n < 4 ? s.n : 4), STR("doi:")) ||
           str_ieq(str_from(s.p, s.n < 4 ? s.n : 4), STR("http"));
}

/* How far the DOI at the start of s goes. In an address, a query may follow it. */
static size_t extent(struct str s, bool address)
{
    size_t n = 0;
    while (n < s.n && n <= EXTENT_BYTES_MAX) {
        struct str here = str_skip(s, n);
        size_t step = str_utf8_step(here);
        unsigned char c = (unsigned char)here.p[0];
        if (step == 0 || c <= ' ' || c == 127 || c == '"')
            break;
        if (address && (c == '&' || c == '?' || c == '#'))
            break;
        if ((c == ',' || c == ';') && another_begins(str_skip(here, 1)))
            break;
        if (step > 1 && is_separator(str_from(here.p, step)))
            break;
        n += step;
    }
    return n;
}

static bool unbalanced(struct str s, char open, char close)
{
    int depth = 0;
    for (size_t i = 0; i < s.n; i++)
        depth += (s.p[i] == open) - (s.p[i] == close);
    return depth < 0;
}

static bool may_end(struct str s)
{
    switch (s.p[s.n - 1]) {
    case ')':
        return !unbalanced(s, '(', ')');
    case ']':
        return !unbalanced(s, '[', ']');
    case '>':
        return !unbalanced(s, '<', '>');
    default:
        return !strchr(".,;:'`", s.p[s.n - 1]);
    }
}

/* The first DOI in s; p == NULL when there is none. */
static struct str cut(struct str s, bool address)
{
    for (size_t i = 0; i < s.n; i++) {
        bool in_word = i && (ascii_is_word(s.p[i - 1]) || s.p[i - 1] == '.');
        if (in_word && !str_ends(str_from(s.p, i), STR("doi")))
            continue;
        struct str found = str_skip(s, i);
        size_t least = prefix(found);
        if (least == 0)
            continue;
        found.n = extent(found, address);
        while (found.n > least && !may_end(found))
            found.n--;
        if (found.n > least && found.n <= DOI_BYTES_MAX)
            return found;
    }
    return STR_NULL;
}

bool doi_normal(struct arena *a, struct str raw, struct str *out)
{
    struct arena_mark mark = arena_mark(a);
    raw.n = raw.n < FIELD_BYTES_MAX ? raw.n : FIELD_BYTES_MAX;
    struct str s = str_lower(a, undress(a, raw));
    struct str found = cut(s, false);
    struct str before = found.p ? str_from(s.p, (size_t)(found.p - s.p)) : s;
    if (str_find(before, STR("://")) >= 0 || str_find(before, STR("doi.org/")) >= 0)
        found = str_lower(a, cut(decode_percent(a, s), true));
    char kept[DOI_BYTES_MAX];
    check(found.n <= sizeof(kept));
    if (found.n)
        memcpy(kept, found.p, found.n);
    arena_reset(a, mark);
    if (found.n)
        *out = str_dup(a, str_from(kept, found.n));
    return found.n > 0;
}

/* Made-up keys. */

static uint32_t decode(struct str c) /* one valid character */
{
    static const unsigned char mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    check(c.n > 0 && c.n < sizeof(mask));
    uint32_t code = (unsigned char)c.p[0] & mask[c.n];
    for (size_t i = 1; i < c.n; i++)
        code = code << 6 | ((unsigned char)c.p[i] & 0x3F);
    return code;
}

static bool is_punctuation(uint32_t c)
{
    return (c >= 0x80 && c <= 0xBF && c != 0xAA && c != 0xB5 && c != 0xBA) ||
           (c >= 0x2000 && c <= 0x206F) || (c >= 0x3000 && c <= 0x303F && c != 0x3007) ||
           (c >= 0xFF00 && c <= 0xFF0F) || (c >= 0xFF1A && c <= 0xFF20) || c == 0xFEFF;
}

/* Where capitals and small letters stand side by side, or a fixed distance apart. A few odd pairs
 * are missing; all that matters is that the answer never changes. */
static uint32_t small_letter(uint32_t c)
{
    static const struct {
        uint16_t first, last, distance, step;
    } ranges[] = {
        {0x00C0, 0x00D6, 32, 1}, {0x00D8, 0x00DE, 32, 1}, {0x0100, 0x0136, 1, 2},
        {0x0139, 0x0147, 1, 2},  {0x014A, 0x0176, 1, 2},  {0x0179, 0x017D, 1, 2},
        {0x0391, 0x03A9, 32, 1}, {0x0400, 0x040F, 80, 1}, {0x0410, 0x042F, 32, 1},
        {0x1E00, 0x1E94, 1, 2},  {0x1EA0, 0x1EFE, 1, 2},  {0xFF21, 0xFF3A, 32, 1},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (c >= ranges[i].first && c <= ranges[i].last &&
            (c - ranges[i].first) % ranges[i].step == 0)
            return c + ranges[i].distance;
    return c;
}

/* Letters and digits only, in small letters. Where others stood between them there is one gap,
 * unless gap is 0: a title reads the same without, but issue 1-2 is not issue 12. */
static struct str fold(struct arena *a, struct str text, char gap)
{
    size_t len = 0, cap = text.n + 4;
    char *out = arena_alloc(a, cap);
    bool apart = false;
    while (text.n) {
        size_t n = str_utf8_step(text);
        struct str c = str_from(text.p, n ? n : 1);
        text = str_skip(text, c.n);
        bool counts = c.n == 1 ? ascii_is_word(*c.p) : !is_punctuation(decode(c));
        if (counts && apart && gap && len)
            out[len++] = gap;
        apart = !counts;
        if (counts && c.n == 1)
            out[len++] = ascii_lower(*c.p);
        else if (counts)
            len += str_utf8_put(out + len, small_letter(decode(c)));
        check(len + text.n <= cap); /* small letters take no more bytes than capitals */
    }
    return str_from(out, len);
}

struct str doi_made_up(struct arena *a, const struct doi_source *source)
{
    static const uint8_t keys[2][16] = {"millrace entry 1", "millrace entry 2"};
    struct str title = fold(a, text_plain(a, source->title), 0);
    bool titled = title.n > 0;
    if (!titled)
        title = fold(a, source->entry, 0);
    struct str journal = fold(a, text_plain(a, source->journal), 0);
    struct str year = fold(a, text_plain(a, source->year), 0);
    struct str volume = fold(a, text_plain(a, source->volume), '-');
    struct str number = fold(a, text_plain(a, source->number), '-');
    struct str pages = fold(a, text_plain(a, source->pages), '-');
    struct str all = str_printf(a, "%.*s\n%.*s\n%.*s\n%.*s\n%.*s\n%s\n%.*s", STR_ARG(journal),
                                STR_ARG(year), STR_ARG(volume), STR_ARG(number), STR_ARG(pages),
                                titled ? "title" : "entry", STR_ARG(title));
    return str_printf(a, DOI_MADE_UP_MARK "%016llx%016llx",
                      (unsigned long long)siphash(keys[0], all),
                      (unsigned long long)siphash(keys[1], all));
}

bool doi_is_made_up(struct str doi)
{
    return str_starts(doi, STR(DOI_MADE_UP_MARK));
}
