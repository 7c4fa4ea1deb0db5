/* Snippets: the right place, whole sentences, and marks where the words are. */
#include "app/embed/search/snippet.h"

#include "base/buf.h"
#include "tests/tap.h"

static struct arena arena;

static int64_t chars(struct str s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

/* "…text with [marks] in brackets…" */
static struct str made(const char *text, const char *question)
{
    struct snippet_words w;
    struct buf b;
    snippet_words(&w, &arena, str_of(question));
    struct snippet s = snippet_of(&arena, str_of(text), &w);
    int64_t at = 0;
    buf_init(&b);
    for (size_t i = 0, m = 0; i <= s.text.n; i++) {
        bool begins = i == s.text.n || ((unsigned char)s.text.p[i] & 0xC0) != 0x80;
        if (begins && m < s.mark_count && s.marks[m].end == at) {
            buf_add_char(&b, ']');
            m++;
        }
        if (begins && m < s.mark_count && s.marks[m].begin == at)
            buf_add_char(&b, '[');
        if (i < s.text.n)
            buf_add_char(&b, s.text.p[i]);
        at += begins;
    }
    struct str shown = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return shown;
}

#define FILLER  "Some other sentence that nobody asks for stands here. "
#define FILLER5 FILLER FILLER FILLER FILLER FILLER
#define FULLER  "这里有一句没有人问的话，它只是占地方。"
#define FULLER8 FULLER FULLER FULLER FULLER FULLER FULLER FULLER FULLER

static void test_short(void)
{
    is_str(made("Water is split by light.", "splitting of light"),
           STR("Water is split by [light]."), "a short text is shown whole");
    is_str(made("Proteins and a protein.", "protein"), STR("[Proteins] and a [protein]."),
           "plurals, too");
    is_str(made("Café Müller, TiO₂", "muller tio2"), STR("Café [Müller], [TiO₂]"),
           "as it is written there");
    is_str(made("二氧化钛的光催化性能", "光催化"), STR("二氧化钛的[光催化]性能"),
           "pairs that overlap are one mark");
    is_str(made("# Methods\n\nOne\ttwo\n\n\n- three  four", "four"),
           STR("Methods One two - three [four]"), "one line");
    is_str(made("no word of it", "zebra"), STR("no word of it"), "without a word");
    is_str(made("", "zebra"), STR(""), "no text");
    is_str(made("ab\xff zebra\xe5\x85", "zebra"),
           STR("ab\xef\xbf\xbd [zebra]\xef\xbf\xbd\xef\xbf\xbd"), "what is no UTF-8");
}

static void test_long(void)
{
    struct str s =
        made(FILLER5 FILLER5 "The zebra drinks water in the evening. " FILLER5, "zebra water");
    ok(str_starts(s, STR("The [zebra] drinks [water] in the evening. Some other")),
       "it begins with the sentence: %.*s", STR_ARG(s));
    ok(str_ends(s, STR("here.")), "and ends with one: %.*s", STR_ARG(s));
    s = made(FILLER "A zebra. " FILLER5 FILLER5 "The lion and a zebra. " FILLER5, "zebra lion");
    ok(str_starts(s, STR("The [lion] and a [zebra].")), "where most words are: %.*s", STR_ARG(s));
    s = made(FILLER5 FILLER5, "zebra");
    ok(str_starts(s, STR("Some other")) && str_ends(s, STR("here.")), "else the beginning");
    s = made(FULLER8 FULLER8 "斑马晚上喝水。" FULLER8 FULLER8, "斑马");
    ok(str_starts(s, STR("[斑马]晚上喝水。这里")) && str_ends(s, STR("。")), "Chinese: %.*s",
       STR_ARG(s));
    s = made(FILLER5 "\n\n## Zebras\n\nThey are striped. " FILLER5, "zebra");
    ok(str_starts(s, STR("[Zebras] They are striped.")), "a heading: %.*s", STR_ARG(s));
}

/* Sentences that are longer than a snippet. */
static void test_cut(void)
{
    struct buf b;
    buf_init(&b);
    for (int i = 0; i < 200; i++)
        buf_add_lit(&b, "word after word ");
    buf_add_lit(&b, "zebra ");
    for (int i = 0; i < 200; i++)
        buf_add_lit(&b, "word after word ");
    struct str s = made(str_z(&arena, buf_str(&b)), "zebra");
    ok(str_starts(s, STR("…")) && str_ends(s, STR("…")) && str_find(s, STR("[zebra]")) > 0,
       "dots at both ends: %.*s", STR_ARG(s));
    ok(str_find(s, STR("…word")) == 0 || str_find(s, STR("…after")) == 0, "no word is cut");
    buf_clear(&b);
    for (int i = 0; i < 400; i++)
        buf_add_lit(&b, "占");
    buf_add_lit(&b, "斑马");
    for (int i = 0; i < 400; i++)
        buf_add_lit(&b, "占");
    s = made(str_z(&arena, buf_str(&b)), "斑马");
    ok(str_starts(s, STR("…占")) && str_ends(s, STR("占…")) && str_find(s, STR("[斑马]")) > 0,
       "nor a character");
    buf_clear(&b);
    for (int i = 0; i < 3000; i++)
        buf_add_lit(&b, "x");
    s = made(str_z(&arena, buf_str(&b)), "zebra");
    ok(chars(s) <= SNIPPET_CHARS_MAX && chars(s) > 250, "one word of 3000 letters");
    buf_release(&b);
}

static uint64_t next(uint64_t *state) /* xorshift: the same texts at every run */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Always within bounds, whatever the text is. */
static void test_any(void)
{
    static const char *const pieces[] = {"zebra ", "word ", ". ",   "光催化", "。",   "\n\n",
                                         "# ",     "é",     "\xff", "x",      "zebra"};
    int64_t wrong = 0;
    struct buf b;
    buf_init(&b);
    struct snippet_words w;
    snippet_words(&w, &arena, STR("zebra 光催化"));
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint64_t state = seed * 0x9E3779B97F4A7C15u;
        buf_clear(&b);
        for (uint64_t n = next(&state) % 500; n > 0; n--)
            buf_add_str(&b, str_of(pieces[next(&state) % 11]));
        struct snippet s = snippet_of(&arena, buf_str(&b), &w);
        int64_t n = chars(s.text), at = -1;
        wrong += n > SNIPPET_CHARS_MAX || !str_utf8_valid(s.text);
        wrong += snippet_has(&w, buf_str(&b)) != (s.mark_count > 0);
        for (size_t i = 0; i < s.mark_count; at = s.marks[i++].begin)
            wrong +=
                s.marks[i].begin <= at || s.marks[i].end <= s.marks[i].begin || s.marks[i].end > n;
    }
    is_int(wrong, 0, "400 texts");
    buf_release(&b);
}

int main(void)
{
    arena_init(&arena);
    test_short();
    test_long();
    test_cut();
    test_any();
    arena_release(&arena);
    return tap_done();
}
