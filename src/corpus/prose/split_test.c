/* Texts cut into chunks, compared with a plain model that looks at every byte as the header tells
 * it; places by name; headings; and texts that might take long. */
#include "corpus/prose/split.h"

#include <time.h>

#include "base/buf.h"
#include "corpus/prose/sentence.h"
#include "corpus/prose/tokens.h"
#include "tests/tap.h"

#define SEEDS      4000
#define CHUNKS_MAX 4000

static uint64_t next(uint64_t *state) /* xorshift: the same texts at every run */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t split_all(struct str text, struct split_limits l, struct split_chunk *out)
{
    struct split s;
    size_t n = 0;
    split_init(&s, text, l);
    while (n < CHUNKS_MAX && split_next(&s, &out[n]))
        n++;
    return n;
}

/* --- the model --- */

static bool is_blank(char c)
{
    return c && strchr(" \t\r\n\f\v", c);
}

static bool is_inner(struct str text, size_t at)
{
    return at < text.n && ((unsigned char)text.p[at] & 0xC0) == 0x80;
}

static bool is_inside(struct str text, size_t at) /* a character, or one with its mark */
{
    return is_inner(text, at) || (unsigned char)text.p[at] ==
                                     0xCC; /* U+0300 to U+033F are the marks that are made here */
}

static int heading(struct str text, size_t at)
{
    int n = 0;
    while (at < text.n && text.p[at] == '#' && n < 7) {
        at++;
        n++;
    }
    return n <= 6 && at < text.n && text.p[at] == ' ' ? n : 0;
}

/* 0: none; then characters, words, sentences, lines, paragraphs, headings of level 6 to 1. */
static int rank(struct str text, size_t at)
{
    if (is_blank(text.p[at]) || is_inside(text, at))
        return 0;
    size_t before = at, ends = 0, line;
    while (before > 0 && is_blank(text.p[before - 1]))
        ends += text.p[--before] == '\n';
    if (text.p[at - 1] == '\n' && heading(text, at))
        return 12 - heading(text, at);
    for (line = before; line > 0 && text.p[line - 1] != '\n';)
        line--;
    if (ends > 1)
        return heading(text, line) ? 4 : 5;
    if (ends == 1)
        return 4;
    struct str rest = str_skip(text, at), head = str_from(text.p, at);
    bool closing = before == at && (str_starts(rest, STR("”")) || str_starts(rest, STR("）")));
    if (!closing && before > 0 && (sentence_begins(text, at) || sentence_begins(text, before)))
        return 3;
    if (before < at || str_ends(head, STR("，")) || str_ends(head, STR("、")))
        return 2;
    return 1;
}

static int64_t tokens_of(struct str text, size_t from, size_t to)
{
    return tokens_estimate(str_from(text.p + from, to - from));
}

static size_t model_end(struct str text, size_t begin, size_t fresh, int64_t most)
{
    size_t limit = begin, best = 0;
    for (size_t at = begin; at <= text.n && tokens_of(text, begin, at) <= most; at++)
        if (!is_inner(text, at))
            limit = at;
    if (limit == text.n)
        return limit;
    size_t least = fresh + (limit - fresh) / 2 + 1, end = limit;
    while (is_blank(text.p[limit]))
        limit++;
    for (size_t at = least; at <= limit; at++) {
        size_t r = (size_t)rank(text, at);
        if (r && r >= best) {
            best = r;
            end = at;
        }
    }
    while (is_blank(text.p[end - 1]))
        end--;
    return end;
}

/* The first of the best places from from to to; to + 1: there is none. */
static size_t first_best(struct str text, size_t from, size_t to)
{
    size_t best = to + 1;
    for (size_t at = to; at >= from; at--)
        if (rank(text, at) && (best > to || rank(text, at) >= rank(text, best)))
            best = at;
    return best;
}

static size_t model_begin(struct str text, size_t from, size_t fresh, int64_t most)
{
    size_t far = fresh;
    for (size_t at = fresh - 1; at >= from; at--)
        if (!is_inner(text, at) && tokens_estimate(str_from(text.p + at, fresh - at)) <= most)
            far = at;
    if (far == fresh || most == 0)
        return fresh;
    size_t middle = far + (fresh - far) / 2, early = first_best(text, far, middle);
    if (early <= middle && rank(text, early) > 1)
        return early;
    size_t late = middle + 1 < fresh ? first_best(text, middle + 1, fresh - 1) : fresh;
    if (late < fresh && rank(text, late) > 1)
        return late;
    return early <= middle ? early : late;
}

/* --- properties --- */

static const char *const pieces[] = {
    "# Title\n\n",
    "## Methods\n\n",
    "###### Deep\n\n",
    "\n\n",
    "\n",
    "- item\n",
    "A sentence. ",
    "word ",
    "方法。",
    "结果，",
    "𝒳",
    "longer-word-here",
    "et al. 2020 ",
    "é",
    "e\u0301",
    "“好。”",
    "（对！）",
    "\"No.\" ",
    "\n    code",
    "x",
    "#tag ",
    "####### no",
    "\t",
    "  ",
};
#define PIECES (sizeof pieces / sizeof *pieces)

static struct str text_of(struct buf *b, uint64_t *state)
{
    size_t kinds = 1 + next(state) % PIECES, first = next(state) % PIECES;
    buf_clear(b);
    for (size_t i = next(state) % 300; i > 0; i--)
        buf_add_str(b, str_of(pieces[(first + next(state) % kinds) % PIECES]));
    return buf_str(b);
}

static struct str without_end(struct str text)
{
    while (text.n && is_blank(text.p[text.n - 1]))
        text.n--;
    return text;
}

/* Whether all is as the model has it. */
static bool as_modelled(struct str text, struct split_limits l, const struct split_chunk *c,
                        size_t count)
{
    size_t end = 0, fresh = 0;
    text = without_end(text);
    for (size_t i = 0; i < count; i++) {
        size_t from = fresh + 1, begin;
        for (fresh = end; fresh < text.n && is_blank(text.p[fresh]);)
            fresh++;
        begin = i ? model_begin(text, from, fresh, l.overlap_tokens) : fresh;
        end = model_end(text, begin, fresh, l.tokens_max);
        if (c[i].fresh != fresh || c[i].begin != begin || c[i].end != end)
            return false;
    }
    return end == text.n;
}

/* What must be true whatever the model says. */
static bool holds(struct str text, struct split_limits l, const struct split_chunk *c, size_t count)
{
    size_t past = 0; /* of all that is in a chunk */
    for (size_t i = 0; i < count; i++) {
        for (; past < c[i].fresh; past++)
            if (!is_blank(text.p[past]))
                return false;
        struct str chunk = str_from(text.p + c[i].begin, c[i].end - c[i].begin);
        struct str again = str_from(text.p + c[i].begin, c[i].fresh - c[i].begin);
        if (chunk.n == 0 || !str_utf8_valid(chunk) || is_blank(chunk.p[0]) ||
            is_blank(chunk.p[chunk.n - 1]) || tokens_estimate(chunk) > l.tokens_max ||
            (again.n && tokens_estimate(again) > l.overlap_tokens) || c[i].fresh < c[i].begin ||
            c[i].end <= c[i].fresh ||
            (i > 0 && (c[i].begin <= c[i - 1].begin || c[i].fresh < c[i - 1].end)) ||
            (i > 1 && c[i].begin < c[i - 2].end))
            return false;
        past = c[i].end;
    }
    return without_end(text).n == past;
}

static void test_properties(void)
{
    static struct split_chunk chunks[CHUNKS_MAX], again[CHUNKS_MAX];
    size_t wrong = 0, differs = 0, repeated = 0, cuts = 0, overlaps = 0;
    struct buf b;
    buf_init(&b);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t state = seed * 0x9E3779B97F4A7C15u;
        struct str text = text_of(&b, &state);
        int64_t most = SPLIT_TOKENS_MIN + (int64_t)(next(&state) % 100);
        struct split_limits l = {most, (int64_t)(next(&state) % (uint64_t)(most / 4 + 1))};
        size_t count = split_all(text, l, chunks);
        bool good = holds(text, l, chunks, count), same = as_modelled(text, l, chunks, count);
        if ((!good || !same) && wrong + differs < 3)
            ok(false, "seed %llu", (unsigned long long)seed);
        wrong += !good;
        differs += !same;
        repeated += split_all(text, l, again) != count ||
                    memcmp(chunks, again, count * sizeof *chunks) != 0;
        cuts += count;
        for (size_t i = 0; i < count; i++)
            overlaps += chunks[i].begin < chunks[i].fresh;
    }
    buf_release(&b);
    is_int((int64_t)wrong, 0, "no text of %d lost a character, or got a wrong chunk", SEEDS);
    is_int((int64_t)differs, 0, "all are cut as the model cuts them");
    is_int((int64_t)repeated, 0, "and again in the same way");
    ok(cuts > 5 * SEEDS && overlaps > 3 * SEEDS, "%zu chunks, of which %zu overlap", cuts,
       overlaps);
}

/* --- where --- */

/* filler, then what is looked at, then more filler: a chunk reaches a bit beyond the middle. */
static struct str around(struct buf *b, const char *middle)
{
    buf_clear(b);
    for (int i = 0; i < 70; i++)
        buf_add_lit(b, "filler, ");
    buf_add_str(b, str_of(middle));
    for (int i = 0; i < 200; i++)
        buf_add_lit(b, "filler, ");
    return buf_str(b);
}

static const struct {
    const char *what, *middle, *begins;
} places[] = {
    {"a heading before a later paragraph", "\n\n## Two\n\nText.\n\nMore", "## Two"},
    {"a section before a later subsection", "\n\n# Two\n\nText.\n\n### Three\n\nMore", "# Two"},
    {"the later of two sections", "\n\n## One\n\nText.\n\n## Two\n\nMore", "## Two"},
    {"a heading, not what is behind it", "\n\n## One\n\nText, more ", "## One"},
    {"a paragraph before a later item", "\n\nNext one\n- item\n- item, more ", "Next one"},
    {"a paragraph before a later sentence", "end.\n\nNext one. Then another ", "Next one."},
    {"no heading without a blank", "end.\n\nNext\n#tag and more ", "Next"},
    {"an item before a later sentence", "as:\n- First. Second. Third ", "- First"},
    {"the last item", "as:\n- First\n- Second\n- Third ", "- Third"},
    {"a line of code", "as:\n    if (x)\n        return 1. Or ", "return 1"},
    {"a sentence before a later word", "One ends. Another begins and goes on ", "Another"},
    {"a sentence with a quote", "He said \"no.\" Another begins and goes on ", "Another"},
    {"no abbreviation", "One ends. As et al. showed in Fig. 2 and so ", "As et al."},
    {"a Chinese sentence", "一句话。另一句话，后面", "另一句话"},
    {"a question", "一句话？另一句话，后面", "另一句话"},
    {"a Chinese quote", "他说：“不。”另一句话，后面", "另一句话"},
    {"a Chinese parenthesis", "他说（不！）另一句话，后面", "另一句话"},
    {"a sentence behind a Chinese one", "一句话。 Another one ", "Another one"},
};

/* What is new in the second chunk. */
static struct str second(struct str text, int64_t most)
{
    static struct split_chunk chunks[CHUNKS_MAX];
    struct split_limits l = {most, 0};
    size_t count = split_all(text, l, chunks);
    if (!ok(count > 1 && holds(text, l, chunks, count), "it is cut"))
        return STR("");
    return str_skip(text, chunks[1].fresh);
}

static void test_places(void)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct str got = second(around(&b, places[i].middle), 220);
        struct str want = str_of(places[i].begins);
        is_str(str_from(got.p, got.n < want.n ? got.n : want.n), want, "%s", places[i].what);
    }
    struct str got = second(around(&b, "x"), 220);
    ok(str_starts(got, STR("filler")) && got.p[-1] == ' ', "else a word");
    buf_release(&b);
}

/* --- characters --- */

static struct str of_unit(struct buf *b, const char *unit, size_t count)
{
    buf_clear(b);
    for (size_t i = 0; i < count; i++)
        buf_add_str(b, str_of(unit));
    return buf_str(b);
}

/* Whether all cuts of a text of nothing but this are between two of it. */
static bool is_kept(struct buf *b, const char *unit)
{
    static struct split_chunk chunks[CHUNKS_MAX];
    struct split_limits l = {40, 10};
    struct str text = of_unit(b, unit, 100);
    size_t count = split_all(text, l, chunks), n = strlen(unit);
    bool kept = count > 2 && holds(text, l, chunks, count);
    for (size_t i = 0; i < count; i++)
        kept &= chunks[i].begin % n == 0 && chunks[i].end % n == 0;
    return kept;
}

static void test_characters(void)
{
    static const char *const units[] = {
        "字",       "𝒳",  "e\u0301", "a\u0323\u0307", "👨\u200d👩\u200d👧", "🇩🇪",
        "👍🏽", "한", "क\u093f", "ก\u0e33",       "☺\ufe0f",
    };
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        ok(is_kept(&b, units[i]), "%s is not cut", units[i]);
    buf_clear(&b);
    buf_add_lit(&b, "x");
    for (int i = 0; i < 1000; i++)
        buf_add_lit(&b, "\u0301");
    static struct split_chunk chunks[CHUNKS_MAX];
    struct split_limits l = {100, 20};
    size_t count = split_all(buf_str(&b), l, chunks);
    ok(count > 10 && holds(buf_str(&b), l, chunks, count), "but among marks without end");
    buf_release(&b);
}

/* --- limits --- */

static void test_limits(void)
{
    static struct split_chunk c[CHUNKS_MAX];
    struct split_limits l = {100, 20};
    struct buf b;
    buf_init(&b);
    is_int((int64_t)split_all(STR(""), l, c), 0, "an empty text has no chunk");
    is_int((int64_t)split_all(STR_NULL, l, c), 0, "nor has none");
    is_int((int64_t)split_all(STR(" \n\n\t "), l, c), 0, "nor have blanks");
    is_int((int64_t)split_all(STR("\n short \n"), l, c), 1, "a short one has one");
    ok(c[0].begin == 2 && c[0].fresh == 2 && c[0].end == 7, "without the blanks at its ends");
    is_int((int64_t)split_all(of_unit(&b, "x", 299), l, c), 1, "all that fits is one");
    is_int((int64_t)split_all(of_unit(&b, "x", 300), l, c), 2, "one byte more is two");
    is_int((int64_t)c[0].end, 299, "and the first is full");
    is_int((int64_t)c[1].begin, 299 - 59, "and the second begins with its last twenty tokens");
    split_all(of_unit(&b, "字", 300), l, c);
    is_int((int64_t)c[0].end, 3 * 99, "Chinese has a token each");
    is_int((int64_t)(c[0].end - c[1].begin), 3 * 19, "and overlaps likewise");
    struct split_limits none = {0, 1000};
    split_all(of_unit(&b, "字", 300), none, c);
    is_int((int64_t)c[0].end, 3 * (SPLIT_TOKENS_MIN - 1), "there is a smallest size");
    is_int((int64_t)(c[0].end - c[1].begin), 3 * (SPLIT_TOKENS_MIN / 4 - 1),
           "and a largest overlap");
    buf_clear(&b);
    buf_add_lit(&b, "before");
    for (int i = 0; i < 5000; i++)
        buf_add_char(&b, ' ');
    buf_add_lit(&b, "behind");
    is_int((int64_t)split_all(buf_str(&b), l, c), 2, "a gap that is too large is in no chunk");
    ok(c[0].end == 6 && c[1].begin == 5006, "and nothing overlaps over it");
    buf_release(&b);
}

/* --- headings --- */

static struct str path_of(const struct split *s, struct buf *b)
{
    struct str path[SPLIT_LEVELS];
    size_t n = split_path(s, path);
    buf_clear(b);
    for (size_t i = 0; i < n; i++) {
        buf_add_str(b, i ? STR(" > ") : STR(""));
        buf_add_str(b, path[i]);
    }
    return buf_str(b);
}

static void test_path(void)
{
    static const char *const text = "# Guide\n\nOne two three four five six seven eight.\n\n"
                                    "## Install\n\nOne two three four five six seven eight.\n\n"
                                    "#### On Debian\n\nOne two three four five six seven.\n\n"
                                    "## 使用 #1\n\nOne two three four five six seven eight.\n\n"
                                    "# Other\n\nOne two three four five six seven eight.";
    static const char *const want[] = {"Guide", "Guide > Install", "Guide > Install > On Debian",
                                       "Guide > 使用 #1", "Other"};
    struct split s;
    struct split_chunk c;
    struct buf b;
    size_t i = 0;
    buf_init(&b);
    split_init(&s, str_of(text), (struct split_limits){22, 4});
    for (; i < 5 && split_next(&s, &c); i++) {
        is_str(path_of(&s, &b), str_of(want[i]), "the headings of chunk %zu", i);
        ok(text[c.fresh] == '#', "which begins with one");
    }
    ok(i == 5 && !split_next(&s, &c), "and that is all");
    split_init(&s, STR("No heading at all."), (struct split_limits){22, 4});
    ok(split_next(&s, &c) && path_of(&s, &b).n == 0, "a text without headings has no path");
    buf_clear(&b);
    buf_add_lit(&b, "# ");
    for (int k = 0; k < 500; k++)
        buf_add_lit(&b, "标题");
    struct str path[SPLIT_LEVELS];
    split_init(&s, buf_str(&b), (struct split_limits){22, 4});
    ok(split_next(&s, &c) && split_path(&s, path) == 1 && path[0].n == 255 &&
           str_utf8_valid(path[0]),
       "a long heading is told in part");
    buf_release(&b);
}

/* --- time --- */

static int64_t time_of(struct str text)
{
    struct split s;
    struct split_chunk c;
    clock_t began = clock(); /* of this process: others may be at work */
    split_init(&s, text, (struct split_limits){500, 100});
    while (split_next(&s, &c))
        ;
    return (int64_t)(clock() - began) * 1000000 / CLOCKS_PER_SEC;
}

/* Texts that might make it look at the same bytes again and again. */
static void test_time(void)
{
    static const char *const units[] = {
        " ",    "\n",     "x",    "字",    "a\n\n", "# x\n", "# x\n\n", "#",       "\n#",
        ". ",   ".",      "。",   "。”",   "\"",    "）",    ".\"",     "\u0301",  "🇩🇪",
        "\x80", "\n    ", "\r\n", "- x\n", "，",    "word ", "\xF0",    "👨\u200d", "\n \n x",
    };
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t bytes = strlen(units[i]);
        int64_t small = time_of(of_unit(&b, units[i], 200000 / bytes));
        int64_t large = time_of(of_unit(&b, units[i], 1600000 / bytes));
        ok(large < 24 * small + 100000, "eight times the text of unit %zu: %lld and %lld us", i,
           (long long)small, (long long)large);
    }
    buf_release(&b);
}

int main(void)
{
    test_properties();
    test_places();
    test_characters();
    test_limits();
    test_path();
    test_time();
    return tap_done();
}
