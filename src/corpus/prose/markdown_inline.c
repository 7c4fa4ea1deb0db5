/* The text is copied in runs of plain bytes. Marks are copied, too; when it turns out that one was
 * a mark, GONE is written over it, and at the end all of those are dropped at once. So nothing is
 * looked for ahead but the ends of code and of addresses. */
#include "corpus/prose/markdown_inline.h"

#include "base/ascii.h"
#include "base/bytes16.h"
#include "base/map.h"
#include "corpus/prose/markdown_line.h"
#include "corpus/prose/markdown_tag.h"
#include "corpus/text_html.h"

#define GONE       '\1' /* control characters of the text become blanks */
#define LINE       '\2' /* a line begins, which must not look like a heading */
#define PARENS_MAX 32   /* within an address */

struct delimiter {
    size_t at; /* in the output */
    size_t count;
};

struct link {
    size_t at;   /* of the bracket in the output */
    size_t from; /* behind it in the source */
    bool image;
    bool has_inner; /* brackets, so it is no label */
};

struct pass {
    struct markdown_inline *m;
    struct str src;
    size_t at; /* in src */
    char *out; /* has room for all that can come of src */
    size_t len;
    bool single, marked; /* something is GONE, or a LINE */
    bool runs_known;
    unsigned endless; /* see markdown_hidden */
};

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7F;
}

static bool is_punctuation(char c)
{
    return c > ' ' && c < 0x7F && !ascii_is_word(c);
}

static void put(struct pass *p, const char *from, size_t n)
{
    memcpy(p->out + p->len, from, n);
    p->len += n;
}

static void put_char(struct pass *p, char c)
{
    p->out[p->len++] = c;
}

/* Of what is dropped here; blanks on both sides of it become one. */
static void put_gone(struct pass *p)
{
    put_char(p, GONE);
    p->marked = true;
}

static bool at_line_start(const struct pass *p)
{
    return p->len == 0 || p->out[p->len - 1] == LINE;
}

static void put_blank(struct pass *p)
{
    if (!at_line_start(p) && p->out[p->len - 1] != ' ')
        put_char(p, ' ');
}

/* Blanks and line ends become one blank. */
static void put_words(struct pass *p, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (is_blank(s.p[i]))
            put_blank(p);
        else
            put_char(p, s.p[i]);
}

/* Ends the line; of a paragraph, if it is one. */
static void put_line_end(struct pass *p, bool paragraph)
{
    if (p->single) {
        put_blank(p);
        return;
    }
    while (p->len && p->out[p->len - 1] == ' ')
        p->len--;
    if (at_line_start(p))
        return;
    put_char(p, '\n');
    if (paragraph)
        put_char(p, '\n');
    put_char(p, LINE);
    p->marked = true;
}

static char char_at(const struct pass *p, size_t at) /* a blank beyond the ends */
{
    return at < p->src.n ? p->src.p[at] : ' ';
}

/* --- plain bytes --- */

static inline bool is_special(char c, char next)
{
    switch (c) {
    case ' ':
        return next == ' ';
    case '&':
    case '*':
    case '<':
    case '[':
    case '\\':
    case ']':
    case '_':
    case '`':
    case '~':
        return true;
    default:
        return is_blank(c);
    }
}

/* Copies what stands before the next special byte: sixteen at a time, of which those behind it are
 * written over again. */
static void take_plain(struct pass *p)
{
    const char *from = p->src.p + p->at;
    char *to = p->out + p->len;
    size_t n = p->src.n - p->at, i = 0;
    uint32_t bits = 0;
    for (; n - i > 16 && !bits; i += bits ? (size_t)__builtin_ctz(bits) : 16) {
        bytes16 v = bytes16_load(from + i), next = bytes16_load(from + i + 1);
        memcpy(to + i, &v, sizeof v);
        bits = bytes16_bits(bytes16_within(v, 0, 0x1F) | ((v == ' ') & (next == ' ')) | (v == '&') |
                            (v == '*') | (v == '<') | bytes16_within(v, '[', ']') |
                            bytes16_within(v, '_', '`') | bytes16_within(v, '~', 0x7F));
    }
    for (; !bits && i < n && !is_special(from[i], i + 1 < n ? from[i + 1] : ' '); i++)
        to[i] = from[i];
    p->at += i;
    p->len += i;
}

/* --- lines and blanks --- */

/* Whether what stands at a place is of a script that has no blanks between words: U+3000 to U+9FFF
 * and full-width forms. */
static bool is_han(struct str s)
{
    unsigned char c = s.n >= 3 ? (unsigned char)s.p[0] : 0;
    return (c >= 0xE3 && c <= 0xE9) ||
           (c == 0xEF && ((unsigned char)s.p[1] == 0xBC || (unsigned char)s.p[1] == 0xBD));
}

static bool is_mark(char c)
{
    return c == '*' || c == '_' || c == '~';
}

/* Whether the line end at a place is between two Chinese characters; marks are looked past. */
static bool joins_han(const struct pass *p, size_t at)
{
    size_t before = at, behind = at + 1;
    for (int i = 0; i < 4 && before > 0 && is_mark(p->src.p[before - 1]); i++)
        before--;
    for (int i = 0; i < 4 && is_mark(char_at(p, behind)); i++)
        behind++;
    return before >= 3 && behind < p->src.n && is_han(str_skip(p->src, before - 3)) &&
           is_han(str_skip(p->src, behind));
}

static void take_line_end(struct pass *p)
{
    bool hard = p->at >= 2 && p->src.p[p->at - 1] == ' ' && p->src.p[p->at - 2] == ' ';
    if (hard)
        put_line_end(p, false);
    else if (!joins_han(p, p->at))
        put_blank(p);
    p->at++;
}

static void take_blanks(struct pass *p)
{
    while (p->at < p->src.n && is_blank(p->src.p[p->at]) && p->src.p[p->at] != '\n')
        p->at++;
    put_blank(p);
}

static void take_escape(struct pass *p)
{
    char c = char_at(p, p->at + 1);
    if (p->at + 1 < p->src.n && c == '\n') {
        put_line_end(p, false);
        p->at += 2;
    } else if (is_punctuation(c)) {
        put_char(p, c);
        p->at += 2;
    } else {
        put_char(p, '\\');
        p->at++;
    }
}

static void take_entity(struct pass *p)
{
    char text[HTML_ENTITY_BYTES_MAX];
    size_t n, used = html_entity(str_skip(p->src, p->at), text, &n);
    if (used == 0)
        put_char(p, '&');
    else
        put_words(p, str_from(text, n));
    p->at += used ? used : 1;
}

/* --- code --- */

static size_t run_of(struct str s, size_t at)
{
    size_t n = at;
    while (n < s.n && s.p[n] == s.p[at])
        n++;
    return n - at;
}

static size_t next_backtick(struct str s, size_t at)
{
    const char *found = at < s.n ? memchr(s.p + at, '`', s.n - at) : NULL;
    return found ? (size_t)(found - s.p) : s.n;
}

static void know_runs(struct pass *p)
{
    memset(p->m->last_run, 0, sizeof p->m->last_run);
    for (size_t at = next_backtick(p->src, p->at), n; at < p->src.n;
         at = next_backtick(p->src, at + n)) {
        n = run_of(p->src, at);
        if (n < MARKDOWN_RUNS)
            p->m->last_run[n] = at + n;
    }
    p->runs_known = true;
}

static void take_code(struct pass *p)
{
    size_t n = run_of(p->src, p->at), from = p->at + n, to = from, run;
    if (!p->runs_known)
        know_runs(p);
    if (n >= MARKDOWN_RUNS || p->m->last_run[n] <= from) { /* it does not end */
        put(p, p->src.p + p->at, n);
        p->at = from;
        return;
    }
    for (to = next_backtick(p->src, from); (run = run_of(p->src, to)) != n;)
        to = next_backtick(p->src, to + run);
    struct str code = str_from(p->src.p + from, to - from);
    if (code.n > 2 && is_blank(code.p[0]) && is_blank(code.p[code.n - 1]))
        code = str_from(code.p + 1, code.n - 2);
    put_words(p, code);
    p->at = to + n;
}

/* --- emphasis --- */

static struct delimiter *last_of(struct buf *b)
{
    return b->len ? (struct delimiter *)(void *)(b->p + b->len) - 1 : NULL;
}

/* Takes as many of the run as were opened; returns how many are left. */
static size_t close_run(struct pass *p, struct buf *open, size_t count)
{
    struct delimiter *d;
    while (count && (d = last_of(open))) {
        size_t n = d->count < count ? d->count : count;
        memset(p->out + d->at + d->count - n, GONE, n);
        memset(p->out + p->len, GONE, n);
        p->len += n;
        p->marked = true;
        count -= n;
        d->count -= n;
        if (d->count == 0)
            open->len -= sizeof *d;
    }
    return count;
}

static void take_delimiters(struct pass *p)
{
    char c = p->src.p[p->at];
    size_t count = run_of(p->src, p->at);
    char before = p->at ? p->src.p[p->at - 1] : ' ', next = char_at(p, p->at + count);
    bool punctuated = is_punctuation(before) || is_blank(before) || (before & 0x80);
    bool opens = !is_blank(next) && (!is_punctuation(next) || punctuated);
    punctuated = is_punctuation(next) || is_blank(next) || (next & 0x80);
    bool closes = !is_blank(before) && (!is_punctuation(before) || punctuated);
    if (c == '_') { /* not within a word */
        bool both = opens && closes;
        opens = opens && (!both || is_punctuation(before));
        closes = closes && (!both || is_punctuation(next));
    }
    if (c == '~' && count != 2)
        opens = closes = false;
    struct buf *open = c == '*' ? &p->m->stars : c == '_' ? &p->m->lines : &p->m->waves;
    p->at += count;
    if (closes)
        count = close_run(p, open, count);
    if (opens && count) {
        struct delimiter d = {p->len, count};
        buf_add(open, &d, sizeof d);
    }
    memset(p->out + p->len, c, count);
    p->len += count;
}

/* --- links --- */

static bool is_label(const struct pass *p, struct str label)
{
    char as_compared[MARKDOWN_LABEL_BYTES_MAX];
    size_t n = p->m->labels ? line_label(label, as_compared) : 0;
    return n && map_get(p->m->labels, str_from(as_compared, n));
}

static size_t past_blanks(struct str s, size_t at)
{
    while (at < s.n && is_blank(s.p[at]))
        at++;
    return at;
}

/* Behind an address that begins here; 0: it is none. */
static size_t past_address(struct str s, size_t at)
{
    int parens = 0;
    if (at < s.n && s.p[at] == '<') {
        for (at++; at < s.n && !strchr("<>\n", s.p[at]); at++)
            at += s.p[at] == '\\';
        return at < s.n && s.p[at] == '>' ? at + 1 : 0;
    }
    for (; at < s.n && !is_blank(s.p[at]); at++) {
        if (s.p[at] == '\\' && at + 1 < s.n && is_punctuation(s.p[at + 1])) {
            at++;
            continue;
        }
        parens += s.p[at] == '(';
        if (s.p[at] == ')' && parens-- == 0)
            return at;
        if (parens > PARENS_MAX)
            return 0;
    }
    return parens ? 0 : at;
}

/* Behind "address "title")"; 0: that is not what stands here. */
static size_t past_link(struct str s, size_t at)
{
    at = past_address(s, past_blanks(s, at));
    if (at == 0)
        return 0;
    size_t title = past_blanks(s, at);
    if (title > at && title < s.n && strchr("\"'(", s.p[title])) {
        char end = s.p[title] == '(' ? ')' : s.p[title];
        for (at = title + 1; at < s.n && s.p[at] != end && (end != ')' || s.p[at] != '('); at++)
            at += s.p[at] == '\\';
        title = at < s.n && s.p[at] == end ? past_blanks(s, at + 1) : s.n;
    }
    return title < s.n && s.p[title] == ')' ? title + 1 : 0;
}

/* The label in brackets that begins at a place, and how many bytes it takes with them; 0: none. */
static size_t label_at(struct str s, size_t at, struct str *label)
{
    if (at >= s.n || s.p[at] != '[')
        return 0;
    size_t end = at + 1;
    while (end < s.n && end - at <= MARKDOWN_LABEL_BYTES_MAX && s.p[end] != ']' && s.p[end] != '[')
        end += s.p[end] == '\\' && end + 1 < s.n ? 2 : 1;
    if (end >= s.n || s.p[end] != ']')
        return 0;
    *label = str_from(s.p + at + 1, end - at - 1);
    return end + 1 - at;
}

static void take_opening(struct pass *p)
{
    struct str label;
    size_t n = char_at(p, p->at + 1) == '^' ? label_at(p->src, p->at, &label) : 0;
    if (n && is_label(p, label)) { /* a footnote */
        p->at += n;
        put_gone(p);
        return;
    }
    bool image =
        p->at > 0 && p->src.p[p->at - 1] == '!' && !(p->at > 1 && p->src.p[p->at - 2] == '\\');
    struct link l = {.at = p->len, .from = p->at + 1, .image = image};
    buf_add(&p->m->links, &l, sizeof l);
    put_char(p, '[');
    p->at++;
}

/* Where the source goes on behind a link whose text ends with the bracket here; 0: it is none. */
static size_t behind_link(struct pass *p, const struct link *l)
{
    struct str own = str_from(p->src.p + l->from, p->at - l->from), label;
    if (char_at(p, p->at + 1) == '(') {
        size_t past = past_link(p->src, p->at + 2);
        if (past)
            return past;
    }
    if (!p->m->labels)
        return 0;
    size_t n = label_at(p->src, p->at + 1, &label);
    if (n && is_label(p, label.n ? label : own))
        return p->at + 1 + n;
    return n == 0 && !l->has_inner && is_label(p, own) ? p->at + 1 : 0;
}

static void take_closing(struct pass *p)
{
    struct buf *links = &p->m->links;
    size_t past = 0;
    if (links->len) {
        struct link *top = (struct link *)(void *)(links->p + links->len) - 1, l = *top;
        past = behind_link(p, &l);
        links->len -= sizeof l;
        if (links->len)
            top[-1].has_inner = true;
        if (past)
            memset(p->out + l.at - l.image, GONE, 1 + (size_t)l.image);
    }
    if (past)
        p->marked = true;
    else
        put_char(p, ']');
    p->at = past ? past : p->at + 1;
}

/* --- HTML --- */

static void take_tag(struct pass *p)
{
    struct str s = str_skip(p->src, p->at + 1);
    enum markdown_tag kind = MARKDOWN_TAG_NOTHING;
    size_t n = markdown_hidden(s, &p->endless);
    if (n == 0)
        n = markdown_tag(s, &kind);
    switch (n ? kind : MARKDOWN_TAG_TEXT) {
    case MARKDOWN_TAG_TEXT:
        put_char(p, '<');
        break;
    case MARKDOWN_TAG_NOTHING:
        put_gone(p);
        break;
    case MARKDOWN_TAG_BLANK:
        put_blank(p);
        break;
    case MARKDOWN_TAG_ADDRESS:
        put_words(p, str_from(s.p, n - 1));
        break;
    default:
        put_line_end(p, kind == MARKDOWN_TAG_BLOCK);
    }
    p->at += 1 + n;
}

/* --- all --- */

static void take_special(struct pass *p)
{
    switch (p->src.p[p->at]) {
    case '\n':
        take_line_end(p);
        break;
    case '\\':
        take_escape(p);
        break;
    case '&':
        take_entity(p);
        break;
    case '`':
        take_code(p);
        break;
    case '*':
    case '_':
    case '~':
        take_delimiters(p);
        break;
    case '[':
        take_opening(p);
        break;
    case ']':
        take_closing(p);
        break;
    case '<':
        take_tag(p);
        break;
    default:
        take_blanks(p);
    }
}

/* Whether what is left behind a LINE looks like a heading. */
static bool is_like_heading(const char *p, size_t n)
{
    size_t i = 0, level = 0;
    for (; i < n && (p[i] == '#' || p[i] == GONE); i++)
        level += p[i] == '#';
    return level > 0 && level <= 6 && i < n && p[i] == ' ';
}

bool markdown_is_like_heading(struct str line)
{
    return is_like_heading(line.p, line.n);
}

static size_t before_control(const char *p, size_t n)
{
    size_t i = 0;
    for (; n - i >= 16; i += 16) {
        uint32_t bits = bytes16_bits(bytes16_within(bytes16_load(p + i), 0, 0x1F));
        if (bits)
            return i + (size_t)__builtin_ctz(bits);
    }
    while (i < n && (unsigned char)p[i] >= ' ')
        i++;
    return i;
}

/* Drops what is GONE, and blanks that it has left side by side. */
static void drop_marks(struct pass *p)
{
    char *out = p->out;
    size_t to = 0;
    for (size_t i = 0; i < p->len; i++) {
        size_t skip = out[i] == ' ' && (to == 0 || is_blank(out[to - 1]));
        size_t n = before_control(out + i + skip, p->len - i - skip);
        memmove(out + to, out + i + skip, n);
        to += n;
        i += skip + n;
        if (i == p->len)
            break;
        if (out[i] == LINE && is_like_heading(out + i + 1, p->len - i - 1))
            out[to++] = ' ';
        if (out[i] != '\n')
            continue;
        while (to && out[to - 1] == ' ')
            to--;
        if (to && (to == 1 || out[to - 1] != '\n' || out[to - 2] != '\n'))
            out[to++] = '\n';
    }
    p->len = to;
}

void markdown_inline_init(struct markdown_inline *m, const struct map *labels)
{
    *m = (struct markdown_inline){.labels = labels};
    struct buf *all[] = {&m->stars, &m->lines, &m->waves, &m->links};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_init(all[i]);
}

void markdown_inline_release(struct markdown_inline *m)
{
    struct buf *all[] = {&m->stars, &m->lines, &m->waves, &m->links};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_release(all[i]);
}

void markdown_inline_add(struct markdown_inline *m, struct str src, bool single, struct buf *out)
{
    struct pass p = {.m = m, .src = src, .out = buf_reserve(out, src.n + 32), .single = single};
    m->stars.len = m->lines.len = m->waves.len = m->links.len = 0;
    while (p.at < src.n) {
        while (p.len && p.out[p.len - 1] == ' ' && p.at < src.n && src.p[p.at] == ' ')
            p.at++; /* behind an entity, or code */
        take_plain(&p);
        if (p.at < src.n)
            take_special(&p);
    }
    if (p.marked)
        drop_marks(&p);
    while (p.len && is_blank(p.out[p.len - 1]))
        p.len--;
    buf_added(out, p.len);
}

void markdown_verbatim_add(struct str src, struct buf *out)
{
    size_t from = out->len;
    buf_add_str(out, src);
    for (char *c = out->p + out->head + from, *end = c + src.n; c < end; c++)
        if (is_blank(*c) && *c != '\t')
            *c = ' ';
}
