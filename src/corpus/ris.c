#include "corpus/ris.h"

#include "corpus/doi.h"
#include "corpus/text.h"

#define NAME_WORDS_MAX 64

struct writer {
    struct arena *arena;
    struct bibtex *reader;
    struct buf *out;
};

/* --- lines --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '~';
}

/* Length of a character that some reader takes for the end of a line, or for none at all. */
static size_t breaks_line(struct str s)
{
    unsigned char c = (unsigned char)s.p[0];
    if (c < 0x20 || c == 0x7f)
        return 1;
    if (s.n >= 2 && c == 0xc2 && (unsigned char)s.p[1] < 0xa0)
        return 2; /* U+0080 to U+009F, NEL among them */
    bool separator = s.n >= 3 && (memcmp(s.p, "\xe2\x80\xa8", 3) == 0 || /* U+2028 */
                                  memcmp(s.p, "\xe2\x80\xa9", 3) == 0);
    return separator ? 3 : 0;
}

/* How many bytes from the start of s can be written as they are. */
static size_t fine_bytes(struct str s)
{
    size_t at = 0;
    while (at < s.n) {
        unsigned char c = (unsigned char)s.p[at];
        struct str rest = str_skip(s, at);
        size_t n = c >= 0x20 && c < 0x7f ? 1 : breaks_line(rest) ? 0 : str_utf8_step(rest);
        if (n == 0)
            break;
        at += n;
    }
    return at;
}

/* One line; nothing for an empty value. */
static void put(struct writer *w, const char *tag, struct str value)
{
    if (value.n == 0)
        return;
    check(strlen(tag) == 2);
    buf_add(w->out, tag, 2);
    buf_add_lit(w->out, "  - ");
    while (value.n) {
        size_t n = fine_bytes(value);
        buf_add(w->out, value.p, n);
        value = str_skip(value, n);
        if (value.n == 0)
            break;
        n = breaks_line(value);
        buf_add_str(w->out, n ? STR(" ") : STR("\xef\xbf\xbd")); /* U+FFFD for what is no UTF-8 */
        n += n == 0;
        value = str_skip(value, n);
    }
    buf_add_lit(w->out, "\r\n");
}

static void put_latex(struct writer *w, const char *tag, struct str latex)
{
    put(w, tag, text_plain(w->arena, latex));
}

static struct str field(const struct writer *w, const char *name)
{
    return bibtex_field(w->reader, str_of(name));
}

/* The first of these fields that is there; the list ends with NULL. */
static struct str first_of(const struct writer *w, const char *const *names)
{
    struct str value = STR_NULL;
    for (; *names && value.n == 0; names++)
        value = field(w, *names);
    return value;
}

/* --- names --- */

/* How deep in braces the text is behind c. */
static int depth_after(int depth, char c)
{
    if (c == '{')
        return depth + 1;
    return c == '}' && depth > 0 ? depth - 1 : depth;
}

static bool and_here(struct str s, size_t at)
{
    return at + 5 <= s.n && is_blank(s.p[at]) && is_blank(s.p[at + 4]) &&
           str_ieq(str_from(s.p + at + 1, 3), STR("and"));
}

/* Cuts the next name off *rest, which has p == NULL after the last. */
static struct str cut_name(struct str *rest)
{
    struct str s = *rest;
    int depth = 0;
    for (size_t i = 0; i < s.n; i++) {
        depth = depth_after(depth, s.p[i]);
        if (depth == 0 && and_here(s, i)) {
            *rest = str_from(s.p + i + 4, s.n - i - 4);
            return str_trim_if(str_from(s.p, i), is_blank);
        }
    }
    *rest = STR_NULL;
    return str_trim_if(s, is_blank);
}

/* Pieces between commas, or words between blanks, outside of braces. The last takes the rest. */
static size_t split(struct str s, bool at_commas, struct str *out, size_t max)
{
    size_t count = 0, begin = 0;
    int depth = 0;
    for (size_t i = 0; i <= s.n; i++) {
        bool end = i == s.n;
        if (!end)
            depth = depth_after(depth, s.p[i]);
        bool cut = !end && depth == 0 && (at_commas ? s.p[i] == ',' : is_blank(s.p[i]));
        if (!end && (!cut || count + 1 == max))
            continue;
        struct str piece = str_trim_if(str_from(s.p + begin, i - begin), is_blank);
        if (piece.n || at_commas)
            out[count++] = piece;
        begin = i + 1;
    }
    return count;
}

static void put_person(struct writer *w, const char *tag, struct str last, struct str first,
                       struct str suffix)
{
    struct str parts[] = {text_plain(w->arena, last), text_plain(w->arena, first),
                          text_plain(w->arena, suffix)};
    struct str name = parts[0];
    for (size_t i = 1; i < 3; i++)
        if (parts[i].n)
            name = str_printf(w->arena, "%.*s%s%.*s", STR_ARG(name), name.n ? ", " : "",
                              STR_ARG(parts[i]));
    put(w, tag, name);
}

/* "Ludwig van Beethoven": the last name begins with the first word in lower case, or is the last
 * word. A group in braces is one word. */
static void put_words(struct writer *w, const char *tag, struct str name)
{
    struct str words[NAME_WORDS_MAX];
    size_t count = split(name, false, words, NAME_WORDS_MAX), last = count - 1;
    check(count > 0); /* cut_name has trimmed it, and it is not empty */
    for (size_t i = count - 1; i-- > 0;)
        if (words[i].p[0] >= 'a' && words[i].p[0] <= 'z')
            last = i;
    const char *begin = words[last].p;
    put_person(w, tag, str_from(begin, (size_t)(name.p + name.n - begin)),
               str_trim_if(str_from(name.p, (size_t)(begin - name.p)), is_blank), STR_NULL);
}

static void put_name(struct writer *w, const char *tag, struct str name)
{
    struct str parts[3];
    if (name.n == 0 || str_ieq(name, STR("others")))
        return;
    size_t count = split(name, true, parts, 3);
    if (count == 1)
        put_words(w, tag, name);
    else if (count == 2)
        put_person(w, tag, parts[0], parts[1], STR_NULL);
    else
        put_person(w, tag, parts[0], parts[2], parts[1]);
}

static void put_names(struct writer *w, const char *tag, struct str names)
{
    while (names.p)
        put_name(w, tag, cut_name(&names));
}

/* --- other fields --- */

/* Where a dash joins two pages, and its bytes; 0: nowhere. A hyphen joins only if it is the only
 * one: "E12-3-4" may be one page. */
static size_t find_dash(struct str s, size_t *at)
{
    static const struct str dashes[] = {
        {"---", 3}, {"--", 2}, {"\xe2\x80\x93", 3}, {"\xe2\x80\x94", 3}};
    for (size_t i = 0; i < sizeof dashes / sizeof *dashes; i++) {
        ptrdiff_t found = str_find(s, dashes[i]);
        if (found >= 0) {
            *at = (size_t)found;
            return dashes[i].n;
        }
    }
    const char *hyphen = s.n ? memchr(s.p, '-', s.n) : NULL;
    if (!hyphen || memrchr(s.p, '-', s.n) != hyphen)
        return 0;
    *at = (size_t)(hyphen - s.p);
    return 1;
}

static void put_pages(struct writer *w)
{
    static const char *const names[] = {"pages", "eid", "articleno", "article-number", NULL};
    struct str pages = first_of(w, names);
    size_t at = 0, n = pages.n && !memchr(pages.p, ',', pages.n) ? find_dash(pages, &at) : 0;
    if (n == 0) {
        put_latex(w, "SP", pages);
        return;
    }
    put_latex(w, "SP", str_from(pages.p, at));
    put_latex(w, "EP", str_from(pages.p + at + n, pages.n - at - n));
}

/* In an address only escapes and braces are LaTeX. */
static void put_address(struct writer *w, struct str url)
{
    if (url.n == 0)
        return;
    char *plain = arena_alloc(w->arena, url.n);
    size_t n = 0;
    for (size_t i = 0; i < url.n; i++) {
        bool escape = url.p[i] == '\\' && i + 1 < url.n && memchr("_%&#$~{}\\", url.p[i + 1], 9);
        i += escape;
        if (escape || (url.p[i] != '{' && url.p[i] != '}'))
            plain[n++] = url.p[i];
    }
    put(w, "UR", str_from(plain, n));
}

static void put_keywords(struct writer *w)
{
    static const char *const names[] = {"keywords", "keyword", "author-keywords", NULL};
    struct str rest = first_of(w, names);
    char sep = rest.n && memchr(rest.p, ';', rest.n) ? ';' : ',';
    while (rest.p)
        put_latex(w, "KW", str_cut(&rest, sep));
}

static const char *type_of(struct str type)
{
    static const struct {
        const char *bibtex, *ris;
    } types[] = {
        {"article", "JOUR"},     {"inproceedings", "CONF"}, {"conference", "CONF"},
        {"proceedings", "CONF"}, {"book", "BOOK"},          {"mvbook", "BOOK"},
        {"collection", "BOOK"},  {"reference", "BOOK"},     {"manual", "BOOK"},
        {"inbook", "CHAP"},      {"incollection", "CHAP"},  {"inreference", "CHAP"},
        {"phdthesis", "THES"},   {"mastersthesis", "THES"}, {"thesis", "THES"},
        {"techreport", "RPRT"},  {"report", "RPRT"},        {"booklet", "PAMP"},
        {"unpublished", "UNPB"}, {"patent", "PAT"},         {"online", "ELEC"},
        {"electronic", "ELEC"},  {"www", "ELEC"},           {"dataset", "DATA"},
        {"software", "COMP"},    {"periodical", "JFULL"},   {"suppperiodical", "JOUR"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_ieq(type, str_of(types[i].bibtex)))
            return types[i].ris;
    return "GEN";
}

/* --- the record --- */

/* Where it was printed. JO is for journals only: readers take it for the abbreviated form of T2. */
static void put_host(struct writer *w, const struct bibtex_entry *e, const char *type,
                     struct str journal)
{
    bool article = strcmp(type, "JOUR") == 0;
    struct str host = e->journal.n ? e->journal : e->booktitle;
    if (host.n == 0 && article)
        host = journal;
    put_latex(w, "T2", host);
    if (article)
        put_latex(w, "JO", host);
    put_latex(w, "T3", field(w, "series"));
}

static void put_entry(struct writer *w, const struct bibtex_entry *e, const struct ris_paper *p)
{
    static const char *const publishers[] = {"publisher", "school", "institution", "organization",
                                             NULL};
    static const char *const places[] = {"address", "location", NULL};
    static const char *const numbers[] = {"number", "issue", NULL};
    static const char *const serials[] = {"issn", "isbn", NULL};
    const char *type = type_of(e->type);
    put(w, "TY", str_of(type));
    put_latex(w, "TI", e->title);
    put_names(w, "AU", e->authors);
    put_names(w, "ED", field(w, "editor"));
    put_host(w, e, type, p->journal);
    put(w, "PY", str_int(w->arena, p->year));
    put_latex(w, "VL", field(w, "volume"));
    put_latex(w, "IS", first_of(w, numbers));
    put_pages(w);
    put_latex(w, "ET", field(w, "edition"));
    put_latex(w, "PB", first_of(w, publishers));
    put_latex(w, "CY", first_of(w, places));
    put_latex(w, "SN", first_of(w, serials));
    if (!doi_is_made_up(p->doi))
        put(w, "DO", p->doi);
    put_address(w, field(w, "url"));
    put_latex(w, "LA", field(w, "language"));
    put_keywords(w);
    put_latex(w, "AB", e->abstract);
    put(w, "ID", e->key);
}

static void put_rest(struct writer *w, const struct ris_paper *p)
{
    put(w, "TY", STR("JOUR"));
    put(w, "T2", p->journal);
    put(w, "JO", p->journal);
    put(w, "PY", str_int(w->arena, p->year));
    if (!doi_is_made_up(p->doi))
        put(w, "DO", p->doi);
}

int ris_write(struct arena *a, struct bibtex *b, struct str bibtex, const struct ris_paper *p,
              struct buf *out)
{
    struct writer w = {a, b, out};
    struct bibtex_entry e;
    if (bibtex.p) {
        if (!bibtex_only(b, bibtex, &e))
            return ERR_PROTO;
        put_entry(&w, &e, p);
    } else {
        put_rest(&w, p);
    }
    put(&w, "N1", p->note);
    buf_add_lit(out, "ER  - \r\n\r\n");
    return 0;
}
