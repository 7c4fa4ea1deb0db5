/* Most bytes are looked at by the vector, sixteen at a time: how many tokens they are, and whether
 * there is a line end, the end of a sentence, or a blank. Only where there is one is it looked
 * closer, so that a chunk costs about as much as reading it twice. */
#include "corpus/prose/split.h"

#include <unigbrk.h>
#include <unistr.h>

#include "base/bytes16.h"
#include "base/check.h"
#include "corpus/prose/sentence.h"
#include "corpus/prose/tokens.h"

#define BLANKS_MAX   64  /* that are looked past: two between paragraphs, more before code */
#define CLOSINGS_MAX 8   /* quotes and parentheses behind the end of a sentence */
#define FLAGS_MAX    256 /* halves of flags that stand side by side; more may be cut wrongly */
#define REACH        (BLANKS_MAX + 3 * CLOSINGS_MAX + 1) /* from what makes a place to the place */

/* How good a place is, before a byte that is not blank. A heading of level n has HEADING - n. */
enum place {
    PLACE_NONE,
    PLACE_CHARACTER,
    PLACE_WORD,
    PLACE_SENTENCE,
    PLACE_LINE,
    PLACE_PARAGRAPH,
    PLACE_HEADING = PLACE_PARAGRAPH + SPLIT_LEVELS + 1,
};

static inline bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* --- bytes of a kind --- */

enum kind { LINE_END, STOP, BLANK };

/* The last bytes of 。！？； ” ’ 」 』 ） are among many others; a stop is looked at closer. */
static inline uint32_t bits_of(bytes16 v, enum kind kind)
{
    switch (kind) {
    case LINE_END:
        return bytes16_bits(v == '\n');
    case STOP:
        return bytes16_bits((v == '.') | (v == '!') | (v == '?') | (v == (signed char)0x82) |
                            (v == (signed char)0x81) | (v == (signed char)0x9F) |
                            (v == (signed char)0x9B));
    default:
        return bytes16_bits((v == ' ') | bytes16_within(v, '\t', '\r'));
    }
}

static inline bytes16 load(const char *p, size_t n) /* zeros behind the n-th byte */
{
    bytes16 v = {0};
    if (n >= sizeof v)
        return bytes16_load(p);
    memcpy(&v, p, n);
    return v;
}

/* The last byte of a kind in [from, to); to: there is none. */
static inline size_t last_of(struct str text, size_t from, size_t to, enum kind kind)
{
    size_t end = to;
    while (end > from) {
        size_t n = end - from < 16 ? end - from : 16;
        uint32_t bits = bits_of(load(text.p + end - n, n), kind);
        if (bits)
            return end - n + (size_t)(31 - __builtin_clz(bits));
        end -= n;
    }
    return to;
}

static inline size_t first_of(struct str text, size_t from, size_t to, enum kind kind)
{
    for (size_t at = from; at < to; at += 16) {
        uint32_t bits = bits_of(load(text.p + at, to - at), kind);
        if (bits)
            return at + (size_t)__builtin_ctz(bits);
    }
    return to;
}

/* --- characters --- */

static size_t char_before(struct str text, size_t at) /* where it begins */
{
    size_t n = str_utf8_back(str_from(text.p, at));
    return at - (n ? n : 1);
}

static ucs4_t char_at(struct str text, size_t at)
{
    ucs4_t c;
    u8_mbtouc(&c, (const uint8_t *)text.p + at, text.n - at);
    return c;
}

static bool is_regional(ucs4_t c) /* two of them are a flag */
{
    return c >= 0x1F1E6 && c <= 0x1F1FF;
}

/* Whether an even number of them stands before. */
static bool is_after_flag(struct str text, size_t at)
{
    size_t n = 0;
    for (; at > 0 && n < FLAGS_MAX; n++) {
        at = char_before(text, at);
        if (!is_regional(char_at(text, at)))
            break;
    }
    return n % 2 == 0;
}

/* Whether a text may be cut here: between two characters, as people see them. */
static bool is_border(struct str text, size_t at)
{
    const ucs4_t joiner = 0x200D;
    if (!((unsigned char)text.p[at] & 0x80))
        return true;
    if (((unsigned char)text.p[at] & 0xC0) == 0x80)
        return false;
    ucs4_t next = char_at(text, at), before = char_at(text, char_before(text, at));
    if (is_regional(before) && is_regional(next))
        return is_after_flag(text, at);
    return before != joiner && uc_is_grapheme_break(before, next);
}

/* --- lines --- */

/* The level of the heading that begins here, where a line does; 0: it is none. */
static int heading_level(struct str text, size_t at)
{
    size_t n = 0;
    while (n <= SPLIT_LEVELS && at + n < text.n && text.p[at + n] == '#')
        n++;
    bool heading = n > 0 && n <= SPLIT_LEVELS && at + n < text.n && text.p[at + n] == ' ';
    return heading ? (int)n : 0;
}

/* Whether the line that ends with the byte before end is a heading, of a usual length. */
static bool is_behind_heading(struct str text, size_t end)
{
    size_t from = end < SPLIT_HEADING_BYTES_MAX ? 0 : end - SPLIT_HEADING_BYTES_MAX;
    const char *line = memrchr(text.p + from, '\n', end - from);
    if (!line && from > 0)
        return false;
    return heading_level(text, line ? (size_t)(line - text.p) + 1 : 0) > 0;
}

static size_t blanks_before(struct str text, size_t at)
{
    size_t n = 0;
    while (n < BLANKS_MAX && n < at && is_blank(text.p[at - n - 1]))
        n++;
    return n;
}

static size_t past_blanks(struct str text, size_t at) /* not beyond the last byte */
{
    for (size_t n = 0; n < BLANKS_MAX && at + 1 < text.n && is_blank(text.p[at]); n++)
        at++;
    return at;
}

/* What the line is that begins at a place, or before it and the blanks there. */
static enum place line_place(struct str text, size_t at)
{
    int level = text.p[at - 1] == '\n' ? heading_level(text, at) : 0;
    if (level)
        return (enum place)(PLACE_HEADING - level);
    size_t before = at - blanks_before(text, at), ends = 0;
    for (size_t i = before; i < at; i++)
        ends += text.p[i] == '\n';
    if (ends == 0 || is_blank(text.p[at]) || !is_border(text, at))
        return PLACE_NONE;
    return ends > 1 && !is_behind_heading(text, before) ? PLACE_PARAGRAPH : PLACE_LINE;
}

/* --- sentences and words --- */

static bool has_at(struct str text, size_t at, const char *what)
{
    size_t n = strlen(what);
    return at + n <= text.n && memcmp(text.p + at, what, n) == 0;
}

/* Closing quotes and parentheses: Chinese ones behind a Chinese stop. */
static bool is_closing(struct str text, size_t at, bool chinese)
{
    if (!chinese)
        return text.p[at] && strchr("\"')]", text.p[at]);
    return has_at(text, at, "”") || has_at(text, at, "」") || has_at(text, at, "』") ||
           has_at(text, at, "）") || has_at(text, at, "’");
}

static bool is_sentence(struct str text, size_t at)
{
    size_t before = at - blanks_before(text, at);
    if (is_blank(text.p[at]) || !is_border(text, at) || before == 0)
        return false;
    return sentence_begins(text, at) || (before < at && sentence_begins(text, before));
}

/* Where a sentence may begin, behind the stop whose last byte is at i. */
static size_t behind_stop(struct str text, size_t i)
{
    bool chinese = (unsigned char)text.p[i] >= 0x80;
    if (chinese && !(i >= 2 && (has_at(text, i - 2, "。") || has_at(text, i - 2, "！") ||
                                has_at(text, i - 2, "？") || has_at(text, i - 2, "；"))))
        return 0;
    size_t at = i + 1;
    for (int n = 0; n < CLOSINGS_MAX && at < text.n && is_closing(text, at, chinese); n++)
        at += chinese ? 3 : 1;
    return at < text.n ? past_blanks(text, at) : 0;
}

/* Behind a blank, or a Chinese comma. */
static bool is_word(struct str text, size_t at)
{
    char last = text.p[at - 1];
    bool comma = last == (char)0x8C || last == (char)0x81; /* their last bytes */
    if (!is_blank(last) &&
        !(comma && at >= 3 && (has_at(text, at - 3, "，") || has_at(text, at - 3, "、"))))
        return false;
    return !is_blank(text.p[at]) && is_border(text, at);
}

/* --- the best place --- */

struct best {
    enum place place;
    size_t at;
};

/* Of the lines that begin in [from, to]: the last one of the best. */
static struct best last_line(struct str text, size_t from, size_t to)
{
    struct best best = {PLACE_NONE, 0};
    size_t first = from < REACH ? 0 : from - REACH, i, end = to;
    while (best.place < PLACE_HEADING - 1 && (i = last_of(text, first, end, LINE_END)) != end) {
        end = i;
        if (best.place >= PLACE_PARAGRAPH && text.p[i + 1] != '#')
            continue;
        size_t at = past_blanks(text, i + 1);
        enum place place = at >= from && at <= to ? line_place(text, at) : PLACE_NONE;
        if (place > best.place)
            best = (struct best){place, at};
    }
    return best;
}

static struct best last_place(struct str text, size_t from, size_t to)
{
    struct best best = last_line(text, from, to);
    if (best.place)
        return best;
    size_t first = from < REACH ? 0 : from - REACH, i, at;
    for (size_t end = to; (i = last_of(text, first, end, STOP)) != end; end = i) {
        at = behind_stop(text, i);
        if (at >= from && at <= to && is_sentence(text, at))
            return (struct best){PLACE_SENTENCE, at};
    }
    for (at = to; at >= from; at--)
        if (is_word(text, at))
            return (struct best){PLACE_WORD, at};
    for (at = to, i = 0; at >= from && i <= SPLIT_MARKS_MAX; at = char_before(text, at), i++)
        if (!is_blank(text.p[at]) && is_border(text, at))
            return (struct best){PLACE_CHARACTER, at};
    return (struct best){PLACE_NONE, to};
}

static struct best first_line(struct str text, size_t from, size_t to)
{
    struct best best = {PLACE_NONE, 0};
    size_t i = from < REACH ? 0 : from - REACH;
    while (best.place < PLACE_HEADING - 1 && (i = first_of(text, i, to, LINE_END)) != to) {
        size_t at = past_blanks(text, ++i);
        enum place place = at >= from && at <= to ? line_place(text, at) : PLACE_NONE;
        if (place > best.place)
            best = (struct best){place, at};
    }
    return best;
}

static struct best first_place(struct str text, size_t from, size_t to)
{
    struct best best = first_line(text, from, to);
    if (best.place)
        return best;
    size_t i = from < REACH ? 0 : from - REACH, at;
    for (; (i = first_of(text, i, to, STOP)) != to; i++) {
        at = behind_stop(text, i);
        if (at >= from && at <= to && is_sentence(text, at))
            return (struct best){PLACE_SENTENCE, at};
    }
    for (at = from; at <= to; at++)
        if (is_word(text, at))
            return (struct best){PLACE_WORD, at};
    for (at = from; at <= to; at++)
        if (!is_blank(text.p[at]) && is_border(text, at))
            return (struct best){PLACE_CHARACTER, at};
    return (struct best){PLACE_NONE, to};
}

/* --- chunks --- */

/* Where a chunk begins whose new part begins at fresh: between from and there. */
static size_t begin_of(const struct split *s, size_t from, size_t fresh)
{
    struct str before = str_from(s->text.p + from, fresh - from);
    size_t far = fresh - tokens_fit_end(before, s->limits.overlap_tokens);
    if (far == fresh)
        return fresh;
    size_t middle = far + (fresh - far) / 2;
    struct best early = first_place(s->text, far, middle);
    if (early.place > PLACE_CHARACTER || middle + 1 == fresh)
        return early.place ? early.at : fresh;
    struct best late = first_place(s->text, middle + 1, fresh - 1);
    if (early.place && late.place <= PLACE_CHARACTER)
        return early.at;
    return late.place ? late.at : fresh;
}

static size_t end_of(const struct split *s, size_t begin, size_t fresh)
{
    size_t limit = begin + tokens_fit(str_skip(s->text, begin), s->limits.tokens_max);
    check(limit > fresh);
    if (limit == s->text.n)
        return limit;
    size_t from = fresh + (limit - fresh) / 2 + 1;
    size_t end = last_place(s->text, from, past_blanks(s->text, limit)).at;
    while (is_blank(s->text.p[end - 1]))
        end--;
    return end;
}

/* --- headings --- */

static void take_heading(struct split *s, size_t at)
{
    int level = heading_level(s->text, at);
    if (level == 0)
        return;
    struct str line = str_skip(s->text, at + (size_t)level + 1);
    size_t most = SPLIT_HEADING_BYTES_MAX;
    while (line.n > most && most && ((unsigned char)line.p[most] & 0xC0) == 0x80)
        most--;
    line.n = line.n < most ? line.n : most;
    const char *end = memchr(line.p, '\n', line.n);
    line.n = end ? (size_t)(end - line.p) : line.n;
    s->path[level - 1] = str_trim(line);
    for (int i = level; i < SPLIT_LEVELS; i++)
        s->path[i] = STR_NULL;
}

/* Takes those that begin at fresh or before. */
static void take_headings(struct split *s, size_t fresh)
{
    for (size_t at = s->told; at < fresh; at += 16) {
        size_t n = fresh - at;
        uint32_t bits =
            bytes16_bits((load(s->text.p + at, n) == '\n') & (load(s->text.p + at + 1, n) == '#'));
        for (; bits; bits &= bits - 1)
            take_heading(s, at + (size_t)__builtin_ctz(bits) + 1);
    }
    s->told = fresh;
}

/* --- the text --- */

static int64_t within(int64_t v, int64_t least, int64_t most)
{
    return v < least ? least : v > most ? most : v;
}

void split_init(struct split *s, struct str text, struct split_limits limits)
{
    while (text.n && is_blank(text.p[text.n - 1]))
        text.n--;
    limits.tokens_max = within(limits.tokens_max, SPLIT_TOKENS_MIN, SPLIT_TOKENS_MAX);
    limits.overlap_tokens = within(limits.overlap_tokens, 0, limits.tokens_max / 4);
    *s = (struct split){.text = text, .limits = limits};
    take_heading(s, 0);
}

bool split_next(struct split *s, struct split_chunk *out)
{
    size_t fresh = s->end;
    while (fresh < s->text.n && is_blank(s->text.p[fresh]))
        fresh++;
    if (fresh == s->text.n)
        return false;
    size_t begin = s->end ? begin_of(s, s->fresh + 1, fresh) : fresh;
    s->end = end_of(s, begin, fresh);
    s->fresh = fresh;
    take_headings(s, fresh);
    *out = (struct split_chunk){begin, s->end, fresh};
    return true;
}

size_t split_path(const struct split *s, struct str out[SPLIT_LEVELS])
{
    size_t n = 0;
    for (int i = 0; i < SPLIT_LEVELS; i++)
        if (s->path[i].n)
            out[n++] = s->path[i];
    return n;
}
