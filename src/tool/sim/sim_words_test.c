#include "tool/sim/sim_words.h"

#include "base/buf.h"
#include "tests/tap.h"

static struct arena arena;

/* The words of text, each in brackets if it counts. */
static struct str words_of(const char *text)
{
    struct sim_words words;
    struct sim_word word;
    struct str out = STR("");
    sim_words_init(&words, str_of(text));
    while (sim_words_next(&words, &word))
        out = str_printf(&arena, "%.*s%s%.*s%s", STR_ARG(out), word.counts ? "[" : "(",
                         STR_ARG(word.text), word.counts ? "]" : ")");
    return out;
}

static struct str match(const char *question, const char *text)
{
    struct sim_word_set set;
    sim_word_set_init(&arena, &set, str_of(question));
    struct str word = STR_NULL;
    bool found = sim_word_set_match(&set, str_of(text), &word);
    return found ? word : STR("-");
}

static void test_words(void)
{
    is_str(words_of(""), STR(""), "nothing has no words");
    is_str(words_of("a bad word, here"), STR("(a)(bad)[word][here]"), "four letters count");
    is_str(words_of("2024 CO2 COVID19 H2O2"), STR("(2024)(CO2)[COVID19](H2O2)"),
           "digits belong to words but are not letters");
    is_str(words_of("large-scale model's end_to_end"),
           STR("[large][scale][model](s)(end)(to)(end)"), "signs part words");
    is_str(words_of("na\xC3\xAFve \xC3\xA9t\xC3\xA9 \xCE\xB1\xCE\xB2\xCE\xB3\xCE\xB4"),
           STR("[na\xC3\xAFve](\xC3\xA9t\xC3\xA9)[\xCE\xB1\xCE\xB2\xCE\xB3\xCE\xB4]"),
           "letters are counted, not bytes");
    is_str(words_of("石墨烯。水"), STR("[石墨][墨烯](烯)(水)"), "Han characters go in pairs");
    is_str(words_of("用graphene做的"), STR("(用)[graphene][做的](的)"), "Han ends a word");
    is_str(words_of("“word”—next\xE3\x80\x80then"), STR("[word][next][then]"),
           "signs above ASCII part words too");
    is_str(words_of("ab\xFF\xE7\x9F"
                    "cdef\xC3"),
           STR("(ab)[cdef]"), "bytes that are not UTF-8 are gaps");
    is_str(words_of("\xE4\xBF\xBF\xE5\x80\x80\xE9\xBF\xBF\xEA\x80\x80"),
           STR("[\xE4\xBF\xBF\xE5\x80\x80][\xE5\x80\x80\xE9\xBF\xBF](\xE9\xBF\xBF)(\xEA\x80\x80)"),
           "where the Han characters begin and end");
    is_str(words_of("\xE5\x80wide\xE9word\xE7\x9F\xC3"), STR("[wide][word]"),
           "half a Han character is a gap");
}

static void test_match(void)
{
    is_str(match("Which catalysts split water?", "Alkaline WATER"), STR("WATER"),
           "case is ignored");
    is_str(match("É\xC3\x89tudes", "\xC3\xA9\xC3\xA9tudes"), STR("\xC3\xA9\xC3\xA9tudes"),
           "so it is in Latin-1");
    is_str(match("waters", "water"), STR("-"), "a word is not part of another");
    is_str(match("water", "waters underwater"), STR("-"), "in neither direction");
    is_str(match("the use of it", "the use of it"), STR("-"), "short words do not count");
    is_str(match("graphite", "graphene"), STR("-"), "a common beginning is not enough");
    is_str(match("water", "\xCE\xB1water water\xCE\xB1"), STR("-"),
           "letters beyond ASCII belong to a word, before and after");
    is_str(match("water", "–water"), STR("water"), "a dash does not");
    is_str(match("water", "石water"), STR("water"), "nor does a Han character");
    is_str(match("water", "\xB1water"), STR("water"), "nor a byte that is no character");
    is_str(match("石墨烯电池", "新型电池材料"), STR("电池"), "a Han pair as part of the text");
    is_str(match("石墨", "石 墨"), STR("-"), "a pair has no gap in it");
    is_str(match("What is it about?", "What is it about?"), STR("-"), "stop words do not count");
    is_str(match("ABOUT Whether water", "about whether the WATER"), STR("WATER"),
           "in either case, and others do");
    is_str(match("论文是否研究石墨", "研究电池的论文"), STR("-"), "Han pairs among them");
    is_str(match("", "anything"), STR("-"), "an empty question has no words");
    is_str(match("water", ""), STR("-"), "so has an empty text");
    is_str(match("split water", "first water then split"), STR("water"),
           "the text's first word is named");
}

/* Many words that share beginning and length must still be told apart. */
static void test_crowd(void)
{
    struct str question = STR("");
    for (int i = 0; i < 500; i += 2)
        question = str_printf(&arena, "%.*s same%04d", STR_ARG(question), i);
    struct sim_word_set set;
    sim_word_set_init(&arena, &set, question);
    int wrong = 0;
    for (int i = 0; i < 500; i++) {
        struct str word;
        bool found = sim_word_set_match(&set, str_printf(&arena, "SAME%04d", i), &word);
        wrong += found != (i % 2 == 0);
    }
    is_int(wrong, 0, "a crowded set finds what is in it and nothing else");
}

/* The first word of text that counts and is in question, found the plain way. */
static struct str plain_match(struct str question, struct str text)
{
    struct sim_words in_text, in_question;
    struct sim_word word, other;
    sim_words_init(&in_text, text);
    while (sim_words_next(&in_text, &word)) {
        sim_words_init(&in_question, question);
        while (word.counts && sim_words_next(&in_question, &other))
            if (str_ieq(word.text, other.text))
                return word.text;
    }
    return STR_NULL;
}

static struct str random_text(uint64_t *state, size_t pieces)
{
    static const char *const alphabet[] = {"a", "B", "a",  "b",  "A",        "b",   " ",
                                           "7", ".", "石", "墨", "\xCE\xB1", "\xCE"};
    struct str out = STR("");
    for (size_t i = 0; i < pieces; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        out = str_printf(&arena, "%.*s%s", STR_ARG(out),
                         alphabet[(*state >> 33) % (i % 90 < 70 ? 9 : 13)]);
    }
    return out;
}

/* Words begin and end anywhere in the blocks that matching looks at. */
static void test_blocks(void)
{
    uint64_t state = 1;
    int wrong = 0, found = 0;
    for (int i = 0; i < 3000; i++) {
        struct arena_mark mark = arena_mark(&arena);
        /* Every second question may have words beyond ASCII. */
        struct str question = random_text(&state, i % 2 ? 60 : 80);
        struct str text = random_text(&state, (size_t)i % 260);
        struct str want = plain_match(question, text), got = STR_NULL;
        struct sim_word_set set;
        sim_word_set_init(&arena, &set, question);
        bool matched = sim_word_set_match(&set, text, &got);
        wrong += got.p != want.p || got.n != want.n || matched != !!want.p;
        found += matched;
        arena_reset(&arena, mark);
    }
    is_int(wrong, 0, "blocks find the same words as reading one by one");
    ok(found > 100 && found < 2900, "some texts match, some do not (%d)", found);
}

static void test_long_question(void)
{
    char *long_text = arena_alloc(&arena, 3 * SIM_QUESTION_BYTES_MAX);
    for (size_t i = 0; i < 3 * SIM_QUESTION_BYTES_MAX; i += 3)
        memcpy(long_text + i, i % 6 ? "石" : "墨", 3);
    struct sim_word_set set;
    sim_word_set_init(&arena, &set, str_from(long_text, 3 * SIM_QUESTION_BYTES_MAX));
    struct str word;
    ok(sim_word_set_match(&set, STR("墨石"), &word), "a very long question is read in part");
}

static void test_tokens(void)
{
    is_int(sim_tokens(STR("")), 0, "nothing costs nothing");
    is_int(sim_tokens(STR("a")), 1, "a started token counts");
    is_int(sim_tokens(STR("abcdefgh")), 2, "four ASCII characters to a token");
    is_int(sim_tokens(STR("abcdefghi")), 3, "and the rest");
    is_int(sim_tokens(STR("石墨烯石墨烯石墨")), 8, "one token per Han character");
    is_int(sim_tokens(STR("abcd石墨烯efgh")), 5, "mixed");
    is_int(sim_tokens(STR("\xC3\xA9\xC3\xA9")), 1, "other characters are halves");
    is_int(sim_tokens(STR("12345678石12345678")), 5, "words of eight and the way between them");
}

/* Tokens as the header tells them, one character after the other. */
static int64_t tokens_by_rule(struct str s)
{
    int64_t quarters = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x80)
            quarters += 1;
        else if (c >= 0xC0)
            quarters += c >= 0xE3 ? 4 : 2;
    }
    return (quarters + 3) / 4;
}

static void test_tokens_everywhere(void)
{
    const char *const pieces[] = {"a",  "\xC3\xA9",         "\xE2\x80\x93",
                                  "石", "\xF0\x9F\x98\x80", "\x7F"};
    struct buf b;
    buf_init(&b);
    bool fine = true;
    for (size_t n = 0; n < 400; n++) {
        fine = fine && sim_tokens(buf_str(&b)) == tokens_by_rule(buf_str(&b));
        /* Long stretches of ASCII, then some of everything. */
        size_t piece = n % 150 < 100 ? 0 : (n * 7 + n / 11) % 6;
        buf_add_str(&b, str_of(pieces[piece]));
    }
    buf_clear(&b);
    for (int c = 0; c < 256; c++)
        buf_add_char(&b, (char)c);
    fine = fine && sim_tokens(buf_str(&b)) == tokens_by_rule(buf_str(&b));
    buf_release(&b);
    ok(fine, "texts of any length and mixture");
}

int main(void)
{
    arena_init(&arena);
    test_words();
    test_match();
    test_crowd();
    test_blocks();
    test_long_question();
    test_tokens();
    test_tokens_everywhere();
    arena_release(&arena);
    return tap_done();
}
