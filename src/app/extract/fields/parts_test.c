/* Documents cut into parts: nothing is lost, none is too large, and each ends at the best place
 * that there is. */
#include "app/extract/fields/parts.h"

#include "base/buf.h"
#include "base/time.h"
#include "corpus/prose/tokens.h"
#include "tests/tap.h"

#define SEEDS 300

static struct arena arena;

static uint64_t next(uint64_t *state) /* xorshift: the same texts at every run */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* --- properties --- */

static const char *const pieces[] = {
    "# Title\n",      "## Methods\n",   "2 Methods\n", "2.1 Data\n", "\n",       "\n\n",
    "A sentence. ",   "word ",          "方法。",      "结果，",     "𝒳",        "\f",
    "long-word-here", "et al. 2020 ",   "é",           "Abstract\n", "======\n", "\r\n",
    "\xff\x80",       "III. RESULTS\n", "二、方法\n",  "\t",         "?! ",      "x",
};
#define PIECES (sizeof pieces / sizeof *pieces)

static bool holds(struct str text, int64_t most, const struct extract_part *parts, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        struct str part = str_from(text.p + parts[i].begin, parts[i].end - parts[i].begin);
        if (parts[i].begin != at || parts[i].end <= at || tokens_estimate(part) > most)
            return false;
        at = parts[i].end;
    }
    return at == text.n;
}

static void test_properties(void)
{
    size_t wrong = 0, cuts = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t state = seed * 0x9E3779B97F4A7C15u;
        struct extract_part *parts;
        struct buf b;
        buf_init(&b);
        for (size_t i = next(&state) % 400; i > 0; i--)
            buf_add_str(&b, str_of(pieces[next(&state) % PIECES]));
        int64_t most = EXTRACT_PART_TOKENS_MIN + (int64_t)(next(&state) % 100);
        size_t count = extract_parts(&arena, buf_str(&b), most, &parts);
        wrong += !holds(buf_str(&b), most, parts, count);
        cuts += count;
        buf_release(&b);
    }
    is_int((int64_t)wrong, 0, "no text of %d lost a byte, or got a part that is too large", SEEDS);
    ok(cuts > 5 * SEEDS, "and they were cut: %zu parts", cuts);
}

/* --- where --- */

/* Cuts a text in two or more, and says how the second part begins. */
static struct str second(struct str text, int64_t most)
{
    struct extract_part *parts;
    size_t count = extract_parts(&arena, text, most, &parts);
    if (!ok(count > 1 && holds(text, most, parts, count), "it is cut"))
        return STR("");
    return str_skip(text, parts[1].begin);
}

/* filler, then what is looked at, then more filler: 200 tokens reach a bit beyond the middle. */
static struct str around(const char *middle)
{
    struct buf b;
    buf_init(&b);
    for (int i = 0; i < 70; i++)
        buf_add_lit(&b, "filler, ");
    buf_add_str(&b, str_of(middle));
    for (int i = 0; i < 200; i++)
        buf_add_lit(&b, "filler, ");
    struct str text = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return text;
}

static const struct {
    const char *what, *middle, *begins;
} places[] = {
    {"a heading before a later paragraph", "\n## Two\nText.\n\nMore", "## Two"},
    {"a section before a later subsection", "\n# Two\nText.\n### Three\nMore", "# Two"},
    {"the later of two sections", "\n## One\nText.\n## Two\nMore", "## Two"},
    {"a numbered section of a PDF", "end.\n\n2 Methods\n\nNext.\n\nMore", "2 Methods"},
    {"indented by pdftotext", "end.\n\n   2.1. Data\nNext.\n\nMore", "   2.1. Data"},
    {"a Roman one", "end.\n\nIII. RESULTS\nNext.\n\nMore", "III. RESULTS"},
    {"a known one", "end.\nReferences\nNext.\n\nMore", "References"},
    {"an underlined one", "end.\nMy Own\n------\nNext.\n\nMore", "My Own"},
    {"a Chinese one", "end.\n二、方法\n接着。\n\nMore", "二、方法"},
    {"a Chinese chapter", "end.\n第十二章 结果\n接着。\n\nMore", "第十二章"},
    {"a Chinese one with digits", "end.\n\n3 结果\n接着。\n\nMore", "3 结果"},
    {"a paragraph before a later sentence", "end.\n\nNext one. Then another, more ", "Next one."},
    {"a paragraph, and no number in a text", "A.\n\nNext\n2 Mice were seen. More ", "Next"},
    {"the end of a page", "end\fNext page. Then another, more ", "Next page"},
    {"a sentence before a later line", "One ends. Another begins\nand goes on ", "Another"},
    {"a sentence with a quote", "He said \"no.\" Another begins\nand goes on ", "Another"},
    {"no abbreviation", "One\nas et al. showed in Fig. 2 and so ", "as et al."},
    {"a Chinese sentence", "一句话。另一句话，后面", "另一句话"},
    {"a Chinese quote", "他说：“不。”另一句话，后面", "另一句话"},
    {"a line before a later word", "words\nmore words ", "more words"},
};

static void test_places(void)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct str got = second(around(places[i].middle), 220);
        struct str want = str_of(places[i].begins);
        is_str(str_from(got.p, got.n < want.n ? got.n : want.n), want, "%s", places[i].what);
    }
    struct str got = second(around("x"), 220);
    ok(str_starts(got, STR("filler")) && got.p[-1] == ' ', "else a word");
}

static struct str of_char(const char *c, size_t count)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < count; i++)
        buf_add_str(&b, str_of(c));
    struct str text = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return text;
}

static void test_limits(void)
{
    struct extract_part *parts;
    is_int((int64_t)extract_parts(&arena, STR(""), 100, &parts), 0, "an empty text has no part");
    is_int((int64_t)extract_parts(&arena, STR("short"), 100, &parts), 1, "a short one has one");
    struct str plain = of_char("x", 3 * 99 + 2);
    is_int((int64_t)extract_parts(&arena, plain, 100, &parts), 1, "all that fits is one");
    plain = of_char("x", 3 * 99 + 3);
    is_int((int64_t)extract_parts(&arena, plain, 100, &parts), 2, "one byte more is two");
    is_int((int64_t)parts[0].end, 3 * 99 + 2, "and the first is full");
    struct str han = of_char("字", 1000);
    is_int((int64_t)extract_parts(&arena, han, 101, &parts), 10, "Chinese has a token each");
    ok(parts[0].end % 3 == 0, "and no character is cut");
    is_int((int64_t)extract_parts(&arena, of_char("𝒳", 100), 21, &parts), 10, "or two");
    ok(extract_parts(&arena, han, 0, &parts) == 1000 / (EXTRACT_PART_TOKENS_MIN - 1) + 1,
       "there is a smallest size");
}

/* Texts that might make it look at the same bytes again and again. */
static void test_time(void)
{
    static const char *const units[] = {" ", "\n", " \n", "2 ", "# x\n", "x", ".\n", "字", "一"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct str small = of_char(units[i], 200000), large = of_char(units[i], 1600000);
        struct extract_part *parts;
        int64_t began = time_mono_us();
        extract_parts(&arena, small, 6000, &parts);
        int64_t first = time_mono_us() - began;
        began = time_mono_us();
        extract_parts(&arena, large, 6000, &parts);
        int64_t eightfold = time_mono_us() - began;
        ok(eightfold < 24 * first + 100000, "eight times the text: %lld and %lld us",
           (long long)first, (long long)eightfold);
    }
}

int main(void)
{
    test_properties();
    test_places();
    test_limits();
    test_time();
    arena_release(&arena);
    return tap_done();
}
