/* kernel.h -- the loops over vectors: as AVX2 has them, and plainly for every other processor.
 *
 * Always true: both give the same results, bit by bit. Integers are exact, and sums of floats are
 * made in the same order. */
#ifndef ENGINE_VECTORS_KERNEL_H
#define ENGINE_VECTORS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_BLOCK      32   /* rows whose codes lie between each other */
#define KERNEL_ROWS       4096 /* at a time, at most */
#define KERNEL_TABLE_MOST 63   /* four numbers of a query's table fit into a byte */

struct kernel {
    const char *name;
    /* What each row of these blocks of codes (code.h) costs: the sum of what the query's table has
     * for each four bits of it. bytes: of a row's code; bytes % 8 == 0. */
    void (*costs)(const uint8_t *table, const uint8_t *codes, size_t bytes, size_t blocks,
                  uint16_t *out);
    /* Puts the places of those that are at most `most` into out, in order; how many. */
    size_t (*at_most)(const uint16_t *values, size_t count, uint16_t most, uint16_t *out);
    int32_t (*dot_small)(const int16_t *query, const int8_t *row, size_t n); /* n % 32 == 0 */
    float (*dot)(const float *a, const float *b, size_t n);                  /* n % 8 == 0 */
    /* Walsh-Hadamard transform of 2^k values, scaled so that lengths stay; n >= 8. */
    void (*hadamard)(float *v, size_t n);
};

extern const struct kernel kernel_plain;
const struct kernel *kernel_avx2(void); /* NULL: not on this processor */
const struct kernel *kernel_best(void);
#endif
