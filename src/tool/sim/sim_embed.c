#include "tool/sim/sim_embed.h"

#include <math.h>
#include <stdlib.h>

#include "tool/sim/sim_words.h"

#define PLACES      4 /* per word */
#define IDF_SLOTS   (1u << 18)
#define PAIR_WEIGHT 0.5f
#define LESS_WEIGHT 0.25f

struct sim_idf {
    uint32_t texts;
    uint32_t counts[IDF_SLOTS]; /* of texts, by the word's hash */
    uint32_t last[IDF_SLOTS];   /* the text that was counted last */
};

static void add_hash(uint64_t hash, float *out, size_t dimensions)
{
    for (int i = 0; i < PLACES; i++) {
        uint64_t place = (hash & 0xFFFF) >> 1;
        out[place % dimensions] += hash & 1 ? 1.0f : -1.0f;
        hash >>= 16;
    }
}

static float length(const float *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return (float)sqrt(sum);
}

void sim_embed(struct str text, float *out, size_t dimensions)
{
    check(dimensions > 0);
    for (size_t i = 0; i < dimensions; i++)
        out[i] = 0;
    struct sim_words words;
    struct sim_word word;
    sim_words_init(&words, text);
    while (sim_words_next(&words, &word))
        add_hash(sim_word_hash(word.text, 0), out, dimensions);

    float len = length(out, dimensions);
    if (len == 0) { /* no words, or they cancel out */
        out[sim_word_hash(text, 1) % dimensions] = 1;
        return;
    }
    for (size_t i = 0; i < dimensions; i++)
        out[i] /= len;
}

/* --- with idf and pairs --- */

struct sim_idf *sim_idf_new(void)
{
    return check_memory(calloc(1, sizeof(struct sim_idf)));
}

void sim_idf_free(struct sim_idf *idf)
{
    free(idf);
}

/* Words, and after each but the first the pair with the one before. */
struct features {
    struct sim_words words;
    uint64_t before, pair;
    bool counts;
};

static struct features features_of(struct str text)
{
    struct features f = {.before = 0};
    sim_words_init(&f.words, text);
    return f;
}

static bool next_feature(struct features *f, uint64_t *hash, float *weight)
{
    struct sim_word word;
    if (f->pair) {
        *hash = f->pair;
        *weight = PAIR_WEIGHT;
        f->pair = 0;
        return true;
    }
    if (!sim_words_next(&f->words, &word))
        return false;
    *hash = sim_word_hash(word.text, 0);
    *weight = 1;
    f->counts = word.counts;
    if (f->before)
        f->pair = (*hash + f->before) * 0x9E3779B97F4A7C15u;
    f->before = *hash;
    return true;
}

static uint32_t slot_of(uint64_t hash)
{
    return (uint32_t)(hash >> 40) % IDF_SLOTS;
}

void sim_idf_learn(struct sim_idf *idf, struct str text)
{
    struct features f = features_of(text);
    uint64_t hash;
    float weight;
    idf->texts++;
    while (next_feature(&f, &hash, &weight)) {
        uint32_t slot = slot_of(hash);
        idf->counts[slot] += idf->last[slot] != idf->texts;
        idf->last[slot] = idf->texts;
    }
}

/* A sign at each place, from the word's hash (splitmix64). */
static void add_signs(uint64_t hash, float weight, float *sums, size_t dimensions)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < dimensions; i++, bits >>= 1) {
        if (i % 64 == 0) {
            bits = hash += 0x9E3779B97F4A7C15u;
            bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
            bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
            bits ^= bits >> 31;
        }
        sums[i] += bits & 1 ? weight : -weight;
    }
}

void sim_embed_add(const struct sim_idf *idf, struct str text, float *sums, size_t dimensions)
{
    struct features f = features_of(text);
    uint64_t hash;
    float weight;
    while (next_feature(&f, &hash, &weight)) {
        if (idf)
            weight *= logf(1 + (float)idf->texts / (float)(1 + idf->counts[slot_of(hash)]));
        else if (!f.counts)
            weight *= LESS_WEIGHT;
        add_signs(hash, weight, sums, dimensions);
    }
}

void sim_embed_finish(float *sums, size_t dimensions)
{
    float len = length(sums, dimensions);
    if (len == 0) {
        sums[0] = 1;
        return;
    }
    for (size_t i = 0; i < dimensions; i++)
        sums[i] /= len;
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
