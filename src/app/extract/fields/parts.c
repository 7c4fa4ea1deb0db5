#include "app/extract/fields/parts.h"

#include "base/ascii.h"
#include "base/check.h"
#include "corpus/prose/tokens.h"

#define HEADING_BYTES_MAX 160 /* longer lines are text */
#define TOKENS_MAX        1000000000
#define LEVELS            6 /* of headings; deeper ones count as the last */

/* How good a place is, behind which a part may end. A heading of level n has HEADING - n. */
enum place {
    PLACE_NONE,
    PLACE_CHARACTER,
    PLACE_WORD,
    PLACE_LINE,
    PLACE_SENTENCE,
    PLACE_PARAGRAPH, /* also the end of a page */
    PLACE_HEADING = PLACE_PARAGRAPH + LEVELS + 1,
};

/* --- lines --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* The line that begins at a place, without its end; n is HEADING_BYTES_MAX + 1 if it is longer than
 * a heading. */
static struct str line_at(struct str text, size_t at)
{
    struct str rest = str_skip(text, at);
    size_t most = rest.n < HEADING_BYTES_MAX + 1 ? rest.n : HEADING_BYTES_MAX + 1;
    const char *end = most ? memchr(rest.p, '\n', most) : NULL;
    return str_from(rest.p, end ? (size_t)(end - rest.p) : most);
}

/* Whether the line before the one that begins at a place is empty, or ends a page. */
static bool is_after_gap(struct str text, size_t at)
{
    size_t i = at - 1; /* the line end */
    while (i > 0 && is_blank(text.p[i - 1]))
        if (text.p[--i] == '\f')
            return true;
    return i == 0 || text.p[i - 1] == '\n';
}

/* --- headings --- */

static bool is_han(struct str s) /* it begins with a character from U+3000 to U+9FFF */
{
    return s.n >= 3 && (unsigned char)s.p[0] >= 0xE3 && (unsigned char)s.p[0] <= 0xE9;
}

static int markdown_level(struct str line)
{
    size_t n = 0;
    while (n < line.n && line.p[n] == '#')
        n++;
    bool heading = n > 0 && n <= LEVELS && n < line.n && is_blank(line.p[n]);
    return heading ? (int)n : 0;
}

/* "=====" or "-----" under a line. */
static int underline_level(struct str line, struct str under)
{
    under = str_trim_if(under, is_blank);
    if (line.n == 0 || under.n < 3 || (under.p[0] != '=' && under.p[0] != '-'))
        return 0;
    for (size_t i = 1; i < under.n; i++)
        if (under.p[i] != under.p[0])
            return 0;
    return under.p[0] == '=' ? 1 : 2;
}

/* Behind the number of a heading: a capital letter or a Chinese character, and no sentence. */
static bool is_title(struct str s)
{
    if (s.n == 0 || is_one_of(s.p[s.n - 1], ".,;:"))
        return false;
    return (s.p[0] >= 'A' && s.p[0] <= 'Z') || (unsigned char)s.p[0] >= 0x80;
}

/* "2 Methods", "2.1. Data", "3、结果": the level is that of the number. */
static int numbered_level(struct str line)
{
    int level = 0;
    size_t digits, i = 0;
    do {
        for (digits = 0; i < line.n && ascii_is_digit(line.p[i]) && digits < 3; i++)
            digits++;
        level += digits > 0;
    } while (digits > 0 && digits < 3 && i < line.n && line.p[i] == '.' && ++i);
    struct str rest = str_skip(line, i);
    if (digits > 2 || level == 0)
        return 0;
    if (str_starts(rest, STR("、")) || str_starts(rest, STR("．")))
        return is_title(str_trim(str_skip(rest, STR("、").n))) ? level : 0;
    bool apart = rest.n && (is_blank(rest.p[0]) || is_han(rest));
    return apart && is_title(str_trim(rest)) ? level : 0;
}

/* "III. RESULTS" */
static int roman_level(struct str line)
{
    size_t n = 0;
    while (n < line.n && is_one_of(line.p[n], "IVX"))
        n++;
    bool number = n > 0 && n <= 5 && n + 1 < line.n && line.p[n] == '.' && line.p[n + 1] == ' ';
    return number && is_title(str_trim(str_skip(line, n + 1))) ? 1 : 0;
}

/* 二、方法 and 第二章 结果, 第三节. */
static int chinese_level(struct str line)
{
    static const struct str digits[] = {STR("一"), STR("二"), STR("三"), STR("四"), STR("五"),
                                        STR("六"), STR("七"), STR("八"), STR("九"), STR("十")};
    bool part = str_starts(line, STR("第"));
    size_t n = 0, i = 0;
    line = str_skip(line, part ? STR("第").n : 0);
    while (n <= 3 && i < sizeof digits / sizeof *digits) {
        bool digit = str_starts(line, digits[i]);
        line = str_skip(line, digit ? digits[i].n : 0);
        n += digit;
        i = digit ? 0 : i + 1;
    }
    if (n == 0 || n > 3)
        return 0;
    if (part)
        return str_starts(line, STR("章")) ? 1 : str_starts(line, STR("节")) ? 2 : 0;
    return str_starts(line, STR("、")) ? 1 : 0;
}

static int known_level(struct str line)
{
    static const struct str names[] = {
        STR("abstract"),
        STR("introduction"),
        STR("background"),
        STR("methods"),
        STR("materials and methods"),
        STR("methods and materials"),
        STR("method"),
        STR("experimental"),
        STR("experimental section"),
        STR("results"),
        STR("results and discussion"),
        STR("discussion"),
        STR("conclusion"),
        STR("conclusions"),
        STR("references"),
        STR("bibliography"),
        STR("acknowledgements"),
        STR("acknowledgments"),
        STR("acknowledgment"),
        STR("appendix"),
        STR("supplementary material"),
        STR("related work"),
        STR("摘要"),
        STR("引言"),
        STR("前言"),
        STR("方法"),
        STR("材料与方法"),
        STR("资料与方法"),
        STR("结果"),
        STR("结果与讨论"),
        STR("讨论"),
        STR("结论"),
        STR("参考文献"),
        STR("致谢"),
        STR("附录"),
    };
    if (line.n && line.p[line.n - 1] == ':')
        line.n--;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_ieq(line, names[i]))
            return 1;
    return 0;
}

/* The level of the heading that begins at a place, which begins a line; 0: it is none. */
static int heading_level(struct str text, size_t at)
{
    struct str whole = line_at(text, at), line = str_trim_if(whole, is_blank);
    if (line.n == 0 || whole.n > HEADING_BYTES_MAX)
        return 0;
    int level = markdown_level(line);
    if (!level)
        level = known_level(line);
    if (!level)
        level = chinese_level(line);
    if (!level && at + whole.n < text.n)
        level = underline_level(line, line_at(text, at + whole.n + 1));
    if (!level && (ascii_is_digit(line.p[0]) || is_one_of(line.p[0], "IVX")) &&
        is_after_gap(text, at)) {
        level = numbered_level(line);
        level = level ? level : roman_level(line);
    }
    return level < LEVELS ? level : LEVELS;
}

/* --- sentences --- */

static bool ends_with_one_of(struct str s, const struct str *marks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_ends(s, marks[i]))
            return true;
    return false;
}

/* Behind the full stop of a Chinese sentence, with or without closing quotes. */
static bool is_after_stop(struct str before)
{
    static const struct str stops[] = {STR("。"), STR("！"), STR("？"), STR("；")};
    static const struct str closing[] = {STR("”"), STR("」"), STR("』"), STR("）"), STR("’")};
    for (int i = 0; i < 2 && ends_with_one_of(before, closing, 5); i++)
        before.n -= STR("”").n;
    return ends_with_one_of(before, stops, 4);
}

/* Behind ". " and the like, unless a small letter or a digit follows: "et al. showed", "Fig. 2". */
static bool is_after_point(struct str before, char next)
{
    if (before.n == 0 || !(is_blank(before.p[before.n - 1]) || before.p[before.n - 1] == '\n') ||
        ascii_is_digit(next) || (next >= 'a' && next <= 'z') || next == ' ' || next == '\n')
        return false;
    size_t n = before.n - 1;
    while (n > 0 && before.n - n < 4 && (before.p[n - 1] == '\n' || is_blank(before.p[n - 1])))
        n--;
    while (n > 0 && before.n - n < 8 && is_one_of(before.p[n - 1], "\"')]"))
        n--;
    return n > 0 && is_one_of(before.p[n - 1], ".!?");
}

/* --- places --- */

static enum place place_at(struct str text, size_t at)
{
    struct str before = str_from(text.p, at);
    char last = text.p[at - 1], next = text.p[at];
    if (((unsigned char)next & 0xC0) == 0x80)
        return PLACE_NONE;
    if (last == '\f')
        return PLACE_PARAGRAPH;
    if (last == '\n') {
        int level = heading_level(text, at);
        if (level)
            return (enum place)(PLACE_HEADING - level);
        if (is_after_gap(text, at))
            return PLACE_PARAGRAPH;
    }
    if (is_after_point(before, next) || ((unsigned char)last >= 0x80 && is_after_stop(before)))
        return PLACE_SENTENCE;
    if (last == '\n')
        return PLACE_LINE;
    bool comma = str_ends(before, STR("，")) || str_ends(before, STR("、"));
    return is_blank(last) || comma ? PLACE_WORD : PLACE_CHARACTER;
}

/* The best place in the later half of what fits; of equal ones the last. */
static size_t cut_before(struct str text, size_t begin, size_t limit)
{
    size_t best_at = limit;
    enum place best = PLACE_NONE;
    for (size_t at = limit; at > begin + (limit - begin) / 2; at--) {
        if (best && ascii_is_word(text.p[at - 1])) /* not better than a character: most are */
            continue;
        enum place place = place_at(text, at);
        if (place > best) {
            best = place;
            best_at = at;
        }
    }
    return best_at;
}

/* Where the text stops to fit, counted as tokens_estimate does: a third of a token for each byte of
 * ASCII, one for each character beyond, two for those of four bytes, and one more. In thirds. */
static size_t fits_until(struct str text, size_t begin, int64_t tokens_max)
{
    static const unsigned char cost[16] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 3, 3, 3, 6};
    int64_t left = 3 * tokens_max;
    for (size_t i = begin; i < text.n; i++) {
        left -= cost[(unsigned char)text.p[i] >> 4];
        if (left <= 0)
            return i;
    }
    return text.n;
}

size_t extract_parts(struct arena *a, struct str text, int64_t tokens_max,
                     struct extract_part **out)
{
    size_t count = 0, room = 0;
    bool whole = tokens_estimate(text) <= tokens_max; /* as most are: this is faster */
    if (tokens_max < EXTRACT_PART_TOKENS_MIN)
        tokens_max = EXTRACT_PART_TOKENS_MIN;
    if (tokens_max > TOKENS_MAX)
        tokens_max = TOKENS_MAX;
    *out = NULL;
    for (size_t begin = 0; begin < text.n; count++) {
        size_t end = whole ? text.n : fits_until(text, begin, tokens_max);
        end = end == text.n ? end : cut_before(text, begin, end);
        check(end > begin);
        if (count == room) {
            *out = arena_grow(a, *out, room * sizeof **out, (2 * room + 4) * sizeof **out);
            room = 2 * room + 4;
        }
        (*out)[count] = (struct extract_part){begin, end};
        begin = end;
    }
    return count;
}
