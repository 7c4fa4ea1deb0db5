#include "corpus/prose/words.h"

#include <unicase.h>
#include <unictype.h>
#include <uninorm.h>
#include <unistr.h>

#include "base/check.h"

#define TAIL          "zq" /* ends no word of any language */
#define CLUSTER_BYTES 64 /* of one character and its marks; the marks behind them are a next one */
#define FOLDED_BYTES  512

/* A text is read from its beginning to its end, with one word or one run of pairs begun. */
struct scan {
    struct str text;
    words_fn *each;
    void *arg;
    bool ended;
    char word[WORDS_BYTES_MAX]; /* that has begun; word[0] is for the mark of coded ones */
    size_t n;                   /* its bytes from word[1] on */
    bool coded;                 /* it has letters that are not of ASCII */
    size_t begin, end;
    ucs4_t last; /* of the run of pairs; 0: none has begun */
    size_t last_begin, last_end;
    bool alone; /* it is the first of its run */
};

/* --- words that are left out --- */

/* What says nothing about a text, or asks. */
static const char *const stop_words[26][12] = {
    ['a' - 'a'] = {"a", "about", "an", "and", "are", "as", "at"},
    ['b' - 'a'] = {"be", "been", "but", "by"},
    ['c' - 'a'] = {"can"},
    ['d' - 'a'] = {"do", "does"},
    ['f' - 'a'] = {"for", "from"},
    ['h' - 'a'] = {"had", "has", "have", "how"},
    ['i' - 'a'] = {"if", "in", "into", "is", "it", "its"},
    ['o' - 'a'] = {"of", "on", "or", "our"},
    ['s' - 'a'] = {"such"},
    ['t' - 'a'] = {"than", "that", "the", "their", "then", "there", "these", "this", "those", "to"},
    ['w' - 'a'] = {"was", "we", "were", "what", "when", "where", "which", "why", "will", "with"},
};
/* What InnoDB leaves out besides. */
static const char *const inno_words[] = {"com", "und", "who", "www"};
static const ucs4_t stop_pairs[][2] = {
    {0x4EC0, 0x4E48}, {0x600E, 0x4E48},
    {0x600E, 0x6837}, {0x5982, 0x4F55}, /* 什么 怎么 怎样 如何 */
    {0x54EA, 0x4E9B}, {0x54EA, 0x4E2A},
    {0x662F, 0x5426}, {0x4E3A, 0x4F55}, /* 哪些 哪个 是否 为何 */
};

static bool is_stop(struct str w)
{
    if (w.n > 5 || w.p[0] < 'a')
        return false;
    for (const char *const *s = stop_words[w.p[0] - 'a']; *s; s++)
        if (str_eq(w, str_of(*s)))
            return true;
    return false;
}

static bool is_inno_stop(struct str w)
{
    if (w.n == 3)
        for (size_t i = 0; i < sizeof inno_words / sizeof *inno_words; i++)
            if (memcmp(w.p, inno_words[i], 3) == 0)
                return true;
    return is_stop(w);
}

/* --- a plural s --- */

#define ENDS(w, lit) ((w).n >= sizeof(lit) && str_ends((w), STR(lit))) /* with more before it */

/* "analyses" is "analysis", "studies" "study", "boxes" "box", "gases" "gas". An e that a plural may
 * have added goes from singulars, too: "cache" and "caches" are "cach". */
static size_t without_plural(char *p, size_t n)
{
    struct str w = {p, n};
    if (n < 4)
        return n;
    if (p[n - 1] == 's' && !ENDS(w, "ss") && !ENDS(w, "us") && !ENDS(w, "is")) {
        if (ENDS(w, "yses") || ENDS(w, "eses")) {
            p[n - 2] = 'i';
            return n;
        }
        if (n > 4 && ENDS(w, "ies") && !ENDS(w, "eies") && !ENDS(w, "aies")) {
            p[n - 3] = 'y';
            return n - 2;
        }
        w.n = --n;
    }
    bool added =
        ENDS(w, "se") || ENDS(w, "xe") || ENDS(w, "che") || ENDS(w, "she") || ENDS(w, "oe");
    return n > 3 && added ? n - 1 : n;
}

static bool all_letters(struct str w)
{
    for (size_t i = 0; i < w.n; i++)
        if (w.p[i] < 'a')
            return false;
    return true;
}

/* --- what is found --- */

static void tell(struct scan *s, struct str word, size_t begin, size_t end)
{
    if (!s->ended)
        s->ended = !s->each(s->arg, word, begin, end);
}

/* What follows an apostrophe: "Newton's", "don't". */
static bool is_rest(const struct scan *s, struct str w)
{
    struct str before = str_from(s->text.p, s->begin);
    return w.n == 1 && (w.p[0] == 's' || w.p[0] == 't') &&
           (str_ends(before, STR("'")) || str_ends(before, STR("\xe2\x80\x99")));
}

static void end_word(struct scan *s)
{
    if (s->n == 0)
        return;
    struct str w = {s->word + 1, s->n};
    s->n = 0;
    if (s->coded) {
        s->coded = false;
        s->word[0] = '0';
        tell(s, str_from(s->word, w.n + 1), s->begin, s->end);
        return;
    }
    if (is_stop(w) || is_rest(s, w))
        return;
    if (w.n >= 4 && all_letters(w))
        w.n = without_plural(s->word + 1, w.n);
    if (w.n < WORDS_BYTES_MIN || is_inno_stop(w)) {
        memcpy(s->word + 1 + w.n, TAIL, sizeof TAIL - 1);
        w.n += sizeof TAIL - 1;
    }
    tell(s, w, s->begin, s->end);
}

/* Three digits of base 36 for what is common, z and four of them for all else. */
static size_t code_write(char *out, ucs4_t c)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    size_t n = c < 35 * 36 * 36 ? 3 : 5;
    out[0] = 'z';
    for (size_t i = n; i > (n == 5 ? 1 : 0); i--, c /= 36)
        out[i - 1] = digits[c % 36];
    return n;
}

static void tell_pair(struct scan *s, ucs4_t c, size_t end)
{
    for (size_t i = 0; i < sizeof stop_pairs / sizeof *stop_pairs; i++)
        if (s->last == stop_pairs[i][0] && c == stop_pairs[i][1])
            return;
    char word[1 + 5 + 5] = {'0'};
    size_t n = 1 + code_write(word + 1, s->last);
    if (c)
        n += code_write(word + n, c);
    tell(s, str_from(word, n), s->last_begin, end);
}

static void end_run(struct scan *s)
{
    if (s->last && s->alone)
        tell_pair(s, 0, s->last_end);
    s->last = 0;
}

static void end_all(struct scan *s)
{
    end_word(s);
    end_run(s);
}

static void add_to_run(struct scan *s, ucs4_t c, size_t begin, size_t end)
{
    end_word(s);
    s->alone = s->last == 0;
    if (s->last)
        tell_pair(s, c, end);
    s->last = c;
    s->last_begin = begin;
    s->last_end = end;
}

static void add_to_word(struct scan *s, const char *p, size_t n, size_t begin, size_t end)
{
    end_run(s);
    if (s->n == 0)
        s->begin = begin;
    s->end = end;
    if (s->n + n <= WORDS_BYTES_MAX - sizeof TAIL) { /* else it is cut */
        memcpy(s->word + 1 + s->n, p, n);
        s->n += n;
    }
}

/* --- characters --- */

struct range {
    ucs4_t first, last;
};

static bool within(const struct range *ranges, size_t count, ucs4_t c)
{
    for (size_t i = 0; i < count; i++)
        if (c <= ranges[i].last)
            return c >= ranges[i].first;
    return false;
}
#define WITHIN(ranges, c) within(ranges, sizeof(ranges) / sizeof *(ranges), (c))

/* Written without blanks, or with blanks that mean little. */
static bool is_paired(ucs4_t c)
{
    static const struct range ranges[] = {
        {0x0E00, 0x0EFF}, {0x1000, 0x109F}, {0x1100, 0x11FF},   {0x1780, 0x17FF},
        {0x2E80, 0x2FDF}, {0x3005, 0x3007}, {0x3021, 0x318F},   {0x31A0, 0x31FF},
        {0x3400, 0x4DBF}, {0x4E00, 0xA4CF}, {0xA960, 0xA97F},   {0xAC00, 0xD7FF},
        {0xF900, 0xFAFF}, {0xFF66, 0xFFDC}, {0x1AFF0, 0x1B16F}, {0x20000, 0x3FFFF}};
    return WITHIN(ranges, c);
}

/* Accents, points of Hebrew and Arabic, and what is not seen. */
static bool is_dropped(ucs4_t c)
{
    static const struct range ranges[] = {
        {0x00AD, 0x00AD}, {0x0300, 0x036F}, {0x0483, 0x0487}, {0x0591, 0x05C7}, {0x0610, 0x061A},
        {0x0640, 0x0640}, {0x064B, 0x065F}, {0x0670, 0x0670}, {0x06D6, 0x06DC}, {0x06DF, 0x06E8},
        {0x06EA, 0x06ED}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200C, 0x200F}, {0x2060, 0x2064},
        {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
    return WITHIN(ranges, c);
}

/* Letters that are no base with a mark, by what they are taken for. */
static const char *plain_letter(ucs4_t c)
{
    static const struct {
        ucs4_t c;
        const char *plain;
    } letters[] = {{0xE6, "ae"}, {0xF0, "d"},  {0xF8, "o"},  {0xFE, "th"},  {0x111, "d"},
                   {0x127, "h"}, {0x131, "i"}, {0x142, "l"}, {0x153, "oe"}, {0x167, "t"}};
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].c == c)
            return letters[i].plain;
    return NULL;
}

/* The base of a letter with accents; itself if what it consists of is no accent. */
static ucs4_t base_of(ucs4_t c)
{
    ucs4_t parts[UC_DECOMPOSITION_MAX_LENGTH];
    for (int n; (n = uc_canonical_decomposition(c, parts)) > 1; c = parts[0])
        for (int i = 1; i < n; i++)
            if (!is_dropped(parts[i]))
                return c;
    return c;
}

/* One of a folded text. */
static void add_folded(struct scan *s, ucs4_t c, size_t begin, size_t end)
{
    if (is_dropped(c))
        return;
    c = c < 0x80 ? c : base_of(c);
    const char *plain = c < 0x80 ? NULL : plain_letter(c);
    char code[5];
    if (plain) {
        add_to_word(s, plain, strlen(plain), begin, end);
    } else if (c < 0x80) {
        code[0] = (char)c;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            add_to_word(s, code, 1, begin, end);
        else
            end_all(s);
    } else if (!uc_is_general_category_withtable(c, UC_CATEGORY_MASK_L | UC_CATEGORY_MASK_M |
                                                        UC_CATEGORY_MASK_N)) {
        end_all(s);
    } else if (is_paired(c)) {
        add_to_run(s, c, begin, end);
    } else {
        add_to_word(s, code, code_write(code, c), begin, end);
        s->coded = true;
    }
}

/* Composes with what stands before it. */
static bool is_mark(ucs4_t c)
{
    return c >= 0x0300 && (uc_combining_class(c) != 0 || (c >= 0x1160 && c <= 0x11FF) ||
                           c == 0xFF9E || c == 0xFF9F);
}

static size_t next_char(struct str s, ucs4_t *c)
{
    size_t n = str_utf8_step(s);
    if (n)
        u8_mbtouc_unsafe(c, (const uint8_t *)s.p, n);
    return n;
}

/* A character beyond ASCII with its marks. Returns their bytes. */
static size_t add_cluster(struct scan *s, size_t at)
{
    struct str rest = str_skip(s->text, at);
    ucs4_t first, c;
    size_t n = next_char(rest, &first), step;
    if (n == 0) {
        end_all(s);
        return 1;
    }
    while (n + 4 <= CLUSTER_BYTES && (step = next_char(str_skip(rest, n), &c)) > 0 && is_mark(c))
        n += step;
    if (first >= 0x4E00 && first <= 0x9FFF && n == 3) { /* folded as it stands */
        add_to_run(s, first, at, at + n);
        return n;
    }
    uint8_t folded[FOLDED_BYTES];
    size_t length = sizeof folded;
    uint8_t *p = u8_casefold((const uint8_t *)rest.p, n, NULL, UNINORM_NFKC, folded, &length);
    check(p == folded); /* a character becomes 18 at most */
    for (size_t i = 0; i < length;) {
        i += (size_t)u8_mbtouc_unsafe(&c, folded + i, length - i);
        add_folded(s, c, at, at + n);
    }
    return n;
}

/* 'A' to 'z' and digits as they are written, 0 for all else. */
static const char ascii[256] = {
    ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4', ['5'] = '5', ['6'] = '6',
    ['7'] = '7', ['8'] = '8', ['9'] = '9', ['A'] = 'a', ['B'] = 'b', ['C'] = 'c', ['D'] = 'd',
    ['E'] = 'e', ['F'] = 'f', ['G'] = 'g', ['H'] = 'h', ['I'] = 'i', ['J'] = 'j', ['K'] = 'k',
    ['L'] = 'l', ['M'] = 'm', ['N'] = 'n', ['O'] = 'o', ['P'] = 'p', ['Q'] = 'q', ['R'] = 'r',
    ['S'] = 's', ['T'] = 't', ['U'] = 'u', ['V'] = 'v', ['W'] = 'w', ['X'] = 'x', ['Y'] = 'y',
    ['Z'] = 'z', ['a'] = 'a', ['b'] = 'b', ['c'] = 'c', ['d'] = 'd', ['e'] = 'e', ['f'] = 'f',
    ['g'] = 'g', ['h'] = 'h', ['i'] = 'i', ['j'] = 'j', ['k'] = 'k', ['l'] = 'l', ['m'] = 'm',
    ['n'] = 'n', ['o'] = 'o', ['p'] = 'p', ['q'] = 'q', ['r'] = 'r', ['s'] = 's', ['t'] = 't',
    ['u'] = 'u', ['v'] = 'v', ['w'] = 'w', ['x'] = 'x', ['y'] = 'y', ['z'] = 'z',
};

static size_t add_ascii(struct scan *s, size_t at)
{
    size_t i = at, n = s->n;
    end_run(s);
    if (n == 0)
        s->begin = at;
    for (char c; i < s->text.n && (c = ascii[(unsigned char)s->text.p[i]]); i++)
        if (n < WORDS_BYTES_MAX - sizeof TAIL)
            s->word[1 + n++] = c;
    s->n = n;
    s->end = i;
    return i - at;
}

void words_each(struct str text, words_fn *each, void *arg)
{
    struct scan s = {.text = text, .each = each, .arg = arg};
    for (size_t i = 0; i < text.n && !s.ended;) {
        unsigned char c = (unsigned char)text.p[i];
        if (ascii[c]) {
            i += add_ascii(&s, i);
        } else if (c >= 0x80) {
            i += add_cluster(&s, i);
        } else {
            end_all(&s);
            i++;
        }
    }
    end_all(&s);
}

struct writing {
    struct buf *out;
    size_t count, most;
};

static bool write_word(void *arg, struct str word, size_t begin, size_t end)
{
    (void)begin, (void)end;
    struct writing *w = arg;
    if (w->count == w->most)
        return false;
    char *p = buf_reserve(w->out, WORDS_BYTES_MAX + 1);
    memcpy(p, word.p, word.n);
    p[word.n] = ' ';
    buf_added(w->out, word.n + 1);
    return ++w->count < w->most;
}

size_t words_write(struct str text, size_t most, struct buf *out)
{
    struct writing w = {.out = out, .most = most};
    words_each(text, write_word, &w);
    return w.count;
}
