#include "tool/sim/sim_embed.h"

#include <math.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "tool/sim/sim_words.h"

#define PLACES          4 /* of a feature */
#define SHORT_BYTES_MAX 4 /* no word of the list below is longer */
#define PLURAL_MIN      5 /* bytes of a word whose last s may be a plural's */

/* --- weights --- */

enum weight {
    WEIGHT_GRAMMAR = 1,
    WEIGHT_CHARACTER = 3,
    WEIGHT_NUMBER = 4,
    WEIGHT_SHORT = 5,
    WEIGHT_WORD = 8,
    WEIGHT_PAIR = 10, /* of characters */
    WEIGHT_LONG = 12,
};

/* Words of grammar, too short for the list of sim_words.c. Sorted. */
static const char *const short_words[] = {
    "a",   "all", "an",  "and", "any", "are", "as",  "at",  "be",  "but", "by",  "can",
    "did", "do",  "due", "for", "get", "had", "has", "he",  "her", "his", "how", "i",
    "if",  "in",  "is",  "it",  "its", "may", "new", "no",  "nor", "not", "of",  "off",
    "on",  "one", "or",  "our", "out", "own", "per", "she", "so",  "the", "to",  "too",
    "two", "up",  "us",  "use", "via", "was", "we",  "who", "why", "you",
};

static int compare_short(const void *key, const void *entry)
{
    const struct str *word = key;
    return str_compare(*word, str_of(*(const char *const *)entry));
}

static bool is_grammar(struct str word)
{
    char low[SHORT_BYTES_MAX];
    if (word.n > sizeof low)
        return sim_word_is_stop(word);
    for (size_t i = 0; i < word.n; i++)
        low[i] = ascii_lower(word.p[i]);
    struct str folded = str_from(low, word.n);
    return bsearch(&folded, short_words, sizeof short_words / sizeof *short_words,
                   sizeof *short_words, compare_short) ||
           sim_word_is_stop(word);
}

/* word is text without the s of a plural. */
static int32_t weight_of(struct str text, struct str word)
{
    if (is_grammar(text))
        return WEIGHT_GRAMMAR;
    if (ascii_is_digit(word.p[0]))
        return WEIGHT_NUMBER;
    return word.n < 5 ? WEIGHT_SHORT : word.n < 9 ? WEIGHT_WORD : WEIGHT_LONG;
}

/* --- features --- */

struct sums {
    int32_t at[SIM_DIMENSIONS_MAX];
    size_t count;
};

static void add_feature(struct sums *s, uint64_t hash, int32_t weight)
{
    for (int i = 0; i < PLACES; i++) {
        uint64_t place = (hash & 0xFFFF) >> 1;
        s->at[place % s->count] += hash & 1 ? weight : -weight;
        hash >>= 16;
    }
}

/* Without the s of a plural; "gas", "virus", "analysis" and "glass" keep theirs. */
static struct str singular(struct str word)
{
    char last = ascii_lower(word.p[word.n - 1]), before = '\0';
    if (word.n >= PLURAL_MIN)
        before = ascii_lower(word.p[word.n - 2]);
    bool plural = last == 's' && before && before != 's' && before != 'u' && before != 'i';
    return plural ? str_from(word.p, word.n - 1) : word;
}

/* A character, and if another one follows the pair of both. */
static void add_han(struct sums *s, struct str text)
{
    size_t first = str_utf8_step(text);
    add_feature(s, sim_word_hash(str_from(text.p, first), 0), WEIGHT_CHARACTER);
    if (first < text.n)
        add_feature(s, sim_word_hash(text, 0),
                    sim_word_is_stop(text) ? WEIGHT_GRAMMAR : WEIGHT_PAIR);
}

struct last { /* the word before, if it says something */
    uint64_t hash;
    int32_t weight; /* 0: there is none */
};

/* The pair of both words counts half as much as one of them. */
static void add_word(struct sums *s, struct last *last, struct str text)
{
    struct str word = singular(text);
    uint64_t hash = sim_word_hash(word, 0);
    int32_t weight = weight_of(text, word);
    add_feature(s, hash, weight);
    if (weight == WEIGHT_GRAMMAR)
        return;
    if (last->weight)
        add_feature(s, sim_word_hash(word, last->hash), (last->weight + weight) / 4);
    *last = (struct last){hash, weight};
}

static void add_text(struct sums *s, struct str text)
{
    struct last last = {.weight = 0};
    struct sim_words words;
    struct sim_word word;
    sim_words_init(&words, text);
    while (sim_words_next(&words, &word)) {
        if (!word.han) {
            add_word(s, &last, word.text);
            continue;
        }
        add_han(s, word.text);
        last.weight = 0;
    }
}

/* --- vectors --- */

void sim_embed(struct str text, float *out, size_t dimensions)
{
    check(dimensions > 0 && dimensions <= SIM_DIMENSIONS_MAX);
    struct sums s;
    s.count = dimensions;
    memset(s.at, 0, dimensions * sizeof *s.at);
    add_text(&s, text);
    int64_t squares = 0;
    for (size_t i = 0; i < dimensions; i++)
        squares += (int64_t)s.at[i] * s.at[i];
    if (squares == 0) { /* no words, or they cancel out */
        s.at[sim_word_hash(text, 1) % dimensions] = 1;
        squares = 1;
    }
    double length = sqrt((double)squares);
    for (size_t i = 0; i < dimensions; i++)
        out[i] = (float)(s.at[i] / length);
}

/* Eight decimals: more than a float of this size tells apart. */
static void add_number(struct buf *out, float v)
{
    int64_t scaled = (int64_t)(fabsf(v) * 1e8f + 0.5f);
    char text[11] = "0.00000000";
    text[0] = (char)('0' + scaled / 100000000);
    for (int i = 9; i >= 2; i--) {
        text[i] = (char)('0' + scaled % 10);
        scaled /= 10;
    }
    if (v < 0)
        buf_add_char(out, '-');
    buf_add(out, text, sizeof(text) - 1);
}

void sim_embed_write(const float *v, size_t dimensions, struct buf *out)
{
    buf_add_char(out, '[');
    for (size_t i = 0; i < dimensions; i++) {
        if (i)
            buf_add_char(out, ',');
        add_number(out, v[i]);
    }
    buf_add_char(out, ']');
}

void sim_embed_write_base64(const float *v, size_t dimensions, struct buf *out)
{
    buf_add_char(out, '"');
    buf_add_base64(out, v, dimensions * sizeof(*v));
    buf_add_char(out, '"');
}
