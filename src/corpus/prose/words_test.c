/* The words of texts in several languages, and that those of texts and questions are the same. */
#include "corpus/prose/words.h"

#include <stdio.h>
#include <time.h>

#include "base/buf.h"
#include "tests/tap.h"

static struct str words_of(struct str text, struct buf *b)
{
    buf_clear(b);
    (void)words_write(text, 1000, b);
    return buf_str(b);
}

static const struct {
    const char *text, *words;
} cases[] = {
    {"Photocatalytic water splitting", "photocatalytic water splitting "},
    {"water-splitting, WATER/Splitting.", "water splitting water splitting "},
    {"", ""},
    {" \n\t...", ""},
    /* Short ones and those that InnoDB leaves out have a tail. */
    {"pH 7 of Ti and C60", "phzq 7zq tizq c60 "},
    {"WHO www.who.int", "whozq wwwzq whozq int "},
    {"und com", "undzq comzq "},
    {"the of to IS What where", ""},
    {"them here noon", "them here noon "},
    /* Accents. */
    {"Müller naïve café ÅNGSTRÖM", "muller naive cafe angstrom "},
    {"e\xcc\x81tude étude", "etude etude "},
    {"søren Łódź Straße œuvre", "soren lodz strass oeuvre "},
    {"soft\xc2\xadhyphen zero\xe2\x80\x8djoiner", "softhyphen zerojoiner "},
    /* What NFKC makes of it. */
    {"TiO₂ x² ﬁne ＡＢＣ１２３", "tio2 x2zq fine abc123 "},
    {"𝐁𝐨𝐥𝐝 ①", "bold 1zq "},
    /* Plurals. */
    {"proteins protein", "protein protein "},
    {"studies study ties tie", "study study tie tie "},
    {"boxes box processes process", "box box process process "},
    {"gases gas viruses virus", "gas gas virus virus "},
    {"analyses analysis hypotheses hypothesis", "analysis analysis hypothesis hypothesis "},
    {"caches cache approaches approach", "cach cach approach approach "},
    {"H2S DNAs class bus", "h2s dna class bus "},
    {"Alzheimer's disease, Newton\xe2\x80\x99s, don't", "alzheimer diseas newton don "},
    {"s t", "szq tzq "},
    /* Pairs. */
    {"光催化", "0g21fxo 0fxogeu "},
};

static void test_cases(void)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_str(words_of(str_of(cases[i].text), &b), str_of(cases[i].words), "%s", cases[i].text);
    buf_release(&b);
}

/* Pairs are codes: what counts is which texts give the same ones, and how many. */
static size_t count(const char *text)
{
    struct buf b;
    buf_init(&b);
    size_t n = words_write(str_of(text), 1000, &b);
    buf_release(&b);
    return n;
}

static bool same(const char *x, const char *y)
{
    struct buf a, b;
    buf_init(&a);
    buf_init(&b);
    bool equal = str_eq(words_of(str_of(x), &a), words_of(str_of(y), &b));
    buf_release(&a);
    buf_release(&b);
    return equal;
}

/* All words of y are among those of x. */
static bool has(const char *x, const char *y)
{
    struct buf a, b;
    buf_init(&a);
    buf_init(&b);
    buf_add_char(&a, ' ');
    (void)words_write(str_of(x), 1000, &a);
    (void)words_write(str_of(y), 1000, &b);
    bool all = true;
    for (struct str rest = buf_str(&b); rest.n;) {
        struct str word = str_cut(&rest, ' ');
        char framed[WORDS_BYTES_MAX + 3];
        snprintf(framed, sizeof framed, " %.*s ", STR_ARG(word));
        all &= str_find(buf_str(&a), str_of(framed)) >= 0;
    }
    buf_release(&a);
    buf_release(&b);
    return all;
}

static void test_pairs(void)
{
    is_int((int64_t)count("光催化水分解"), 5, "six characters are five pairs");
    is_int((int64_t)count("水"), 1, "one is a word");
    is_int((int64_t)count("水，油"), 2, "of a run each");
    ok(has("二氧化钛的光催化水分解研究", "光催化"), "a part is found");
    ok(has("二氧化钛的光催化水分解研究", "水分解"), "another one");
    ok(!has("二氧化钛的光催化水分解研究", "分解水"), "not what is not there");
    ok(!same("光催化", "化光催"), "the order counts");
    is_int((int64_t)count("TiO2光催化2024年"), 5, "letters end a run: tio2, two pairs, 2024, 年");
    ok(same("TiO2光催化", "tio₂ 光催化"), "however they are written");
    is_int((int64_t)count("什么"), 0, "what asks is left out");
    is_int((int64_t)count("什么是光"), 2, "but not what follows it");
    ok(has("半導体の光触媒カタカナ", "光触媒") && has("半導体の光触媒カタカナ", "カタカナ"),
       "Japanese");
    ok(same("カタカナ", "ｶﾀｶﾅ") && same("ガ", "ｶﾞ"), "in half width, with its marks");
    ok(has("태양전지의 효율", "태양전지") &&
           same("효율", "\xe1\x84\x92\xe1\x85\xad\xe1\x84\x8b\xe1\x85\xb2\xe1\x86\xaf"),
       "Korean, composed or not");
    ok(has("การสังเคราะห์แสง", "สังเคราะห์"), "Thai");
    is_int((int64_t)count("𠀀𠀁𠀂"), 2, "beyond the basic plane");
    ok(has("研究 々 時々", "時々"), "a mark of repetition is a character");
}

static void test_alphabets(void)
{
    ok(same("Фотокатализ", "фотокатализ") && count("Фотокатализ воды") == 2, "Cyrillic");
    ok(same("ё", "е") && same("ΆΛΦΑ", "αλφα"), "accents there, too");
    ok(same("Σίσυφος", "ΣΊΣΥΦΟΣ"), "both small sigmas");
    ok(!same("вода", "voda") && !same("μ", "m"), "alphabets are not mixed up");
    ok(same("µm", "μm"), "but for two codes of one letter");
    ok(count("β-catenin") == 2 && !same("β-catenin", "b-catenin"), "a Greek letter is a word");
    ok(same("مُحَمَّد", "محمد") && same("שָׁלוֹם", "שלום"), "points of Arabic and Hebrew");
    ok(count("हिन्दी भाषा") == 2, "marks of Hindi are part of a word");
}

/* --- bounds --- */

struct seen {
    size_t count, wrong;
    struct str text;
    char said[200];
};

static bool see(void *arg, struct str word, size_t begin, size_t end)
{
    struct seen *s = arg;
    s->count++;
    s->wrong +=
        word.n < WORDS_BYTES_MIN || word.n > WORDS_BYTES_MAX || begin >= end || end > s->text.n;
    size_t n = strlen(s->said);
    snprintf(s->said + n, sizeof s->said - n, "%.*s|", (int)(end - begin), s->text.p + begin);
    return s->count < 8;
}

static void test_bounds(void)
{
    struct buf b;
    buf_init(&b);
    is_int((int64_t)words_write(STR("one two three four"), 2, &b), 2, "at most so many");
    is_str(buf_str(&b), STR("one two "), "the first ones");
    is_int((int64_t)words_write(STR("one"), 0, &b), 0, "none");
    is_str(buf_str(&b), STR("one two "), "appended");
    char lots[1000];
    memset(lots, 'a', sizeof lots);
    struct str word = words_of(str_from(lots, sizeof lots), &b);
    ok(word.n <= WORDS_BYTES_MAX + 1 && word.n > 50, "a long word is cut: %zu", word.n);
    for (size_t i = 0; i + 2 <= sizeof lots; i += 2)
        memcpy(lots + i, "д", 2);
    word = words_of(str_from(lots, sizeof lots), &b);
    ok(word.n <= WORDS_BYTES_MAX + 1 && word.n > 50, "of another alphabet, too: %zu", word.n);
    is_str(words_of(STR("ab\xff\xc3xyz\xe5\x85"), &b), STR("abzq xyz "),
           "what is no UTF-8 divides");
    buf_release(&b);
    struct seen s = {.text = STR("Café-Müller, the 光催化 of TiO₂")};
    words_each(s.text, see, &s);
    is_str(str_of(s.said), STR("Café|Müller|光催|催化|TiO₂|"), "each with its place");
    is_int((int64_t)s.wrong, 0, "all within bounds");
}

/* A bound that no machine misses, with sanitizers: for what it takes, see the bench. */
static void test_linear(void)
{
    struct buf text, b;
    buf_init(&text);
    buf_init(&b);
    for (int i = 0; i < 20000; i++)
        buf_add_lit(&text, "a\xcc\x81\xcc\x82\xcc\x83\xcc\x84\xcc\x85\xcc\x86\xcc\x87\xcc\x88");
    clock_t from = clock();
    size_t n = words_write(buf_str(&text), 1000, &b);
    double s = (double)(clock() - from) / CLOCKS_PER_SEC;
    ok(n == 1 && s < 5, "accents upon accents: %zu word, %.2f s", n, s);
    buf_release(&text);
    buf_release(&b);
}

int main(void)
{
    test_cases();
    test_pairs();
    test_alphabets();
    test_bounds();
    test_linear();
    return tap_done();
}
