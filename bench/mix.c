#include "bench/mix.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "tool/sim/sim_words.h"

#define IDF_SLOTS   (1u << 18)
#define PAIR_WEIGHT 0.5f
#define LESS_WEIGHT 0.25f

struct mix_idf {
    uint32_t texts;
    uint32_t counts[IDF_SLOTS]; /* of texts, by the word's hash */
    uint32_t last[IDF_SLOTS];   /* the text that was counted last */
};

static float length(const float *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return (float)sqrt(sum);
}

struct mix_idf *mix_idf_new(void)
{
    return check_memory(calloc(1, sizeof(struct mix_idf)));
}

void mix_idf_free(struct mix_idf *idf)
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

void mix_idf_learn(struct mix_idf *idf, struct str text)
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

void mix_add(const struct mix_idf *idf, struct str text, float *sums, size_t dimensions)
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

void mix_finish(float *sums, size_t dimensions)
{
    float len = length(sums, dimensions);
    if (len == 0) {
        sums[0] = 1;
        return;
    }
    for (size_t i = 0; i < dimensions; i++)
        sums[i] /= len;
}
