/* code.h -- a vector in three sizes: what a search reads of all, of many, and of few of them.
 *
 *   float32   of length one, as it came; compared last
 *   int8      rotated, with a scale of its own; a quarter of the size
 *   code      a bit per dimension: on which side of the mean the rotated vector is; 1/32
 *
 * The rotation spreads what a vector has in few dimensions over all, so that signs and small
 * numbers say as much of each vector. It is three rounds of: seeded signs, a Walsh-Hadamard
 * transform of as many dimensions as a power of two has (the first ones, then the last ones), and a
 * turn of each pair from the two halves. Angles and lengths stay as they are. */
#ifndef ENGINE_VECTORS_CODE_H
#define ENGINE_VECTORS_CODE_H

#include "base/check.h"
#include "engine/vectors/kernel.h"

struct code {
    const struct kernel *kernel;
    size_t dimension;
    size_t floats;      /* with zeros behind, so that kernels need no rest: % 8 == 0 */
    size_t small;       /* of int8: % 32 == 0 */
    size_t small_bytes; /* these and the scale */
    size_t bytes;       /* of a code: % 8 == 0 */
    float *signs;       /* 3 × floats */
    float *mean;        /* rotated; floats */
};

void code_init(struct code *c, const struct kernel *k, size_t dimension);
void code_release(struct code *c);

/* v[0 … dimension - 1] scaled to length one, with zeros behind it. ERR_INVALID: it has no direction
 * (all zeros, or not finite). */
MUST_CHECK int code_normalise(const struct code *c, const float *v, float *out);
void code_rotate(const struct code *c, const float *v, float *out); /* floats each */

void code_signs(const struct code *c, const float *rotated, uint8_t *out);
/* Codes of 32 rows stand in a block: byte 0 of each of them, byte 1 of each of them, and so on. */
static inline size_t code_place(const struct code *c, size_t row)
{
    return row / KERNEL_BLOCK * c->bytes * KERNEL_BLOCK + row % KERNEL_BLOCK;
}
static inline void code_put(const struct code *c, const uint8_t *code, size_t row, uint8_t *blocks)
{
    uint8_t *to = blocks + code_place(c, row);
    for (size_t i = 0; i < c->bytes; i++)
        to[i * KERNEL_BLOCK] = code[i];
}
static inline void code_get(const struct code *c, const uint8_t *blocks, size_t row, uint8_t *code)
{
    const uint8_t *from = blocks + code_place(c, row);
    for (size_t i = 0; i < c->bytes; i++)
        code[i] = from[i * KERNEL_BLOCK];
}
void code_small(const struct code *c, const float *rotated, int8_t *out); /* small_bytes */
float code_small_scale(const struct code *c, const int8_t *small);

/* The query's side of codes: for each four bits of a code, what each value of them costs, 32 *
 * bytes in all. The query itself is not cut down to signs: with its numbers, codes say about twice
 * as much. Sums are at most CODE_COST_MOST; the less, the nearer. */
#define CODE_COST_MOST 16383
void code_table(const struct code *c, const float *rotated, uint8_t *out);

/* The query's side of dot_small, finer than the rows': at most 2047 each, of which 4096 products
 * fit into 32 bits. Returns its scale. */
float code_query(const struct code *c, const float *rotated, int16_t *out);
#endif
