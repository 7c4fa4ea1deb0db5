#include "tool/sim/sim_embed.h"

#include <math.h>

#include "tool/sim/sim_words.h"

#define PLACES 4 /* per word */

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
