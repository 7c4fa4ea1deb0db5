/* bytes16.h -- sixteen bytes at a time, for the few loops that look at every byte of a text.
 *
 * Comparing with < or == gives 0 or -1 in each byte; bytes16_bits packs those into a bit mask.
 * Bytes are signed: those beyond ASCII are negative. */
#ifndef BASE_BYTES16_H
#define BASE_BYTES16_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef signed char bytes16 __attribute__((vector_size(16)));
typedef unsigned char bytes16_plus __attribute__((vector_size(16)));
typedef uint64_t bytes16_words __attribute__((vector_size(16)));

static inline bytes16 bytes16_load(const void *p)
{
    bytes16 v;
    memcpy(&v, p, sizeof(v));
    return v;
}

/* Bit i of the mask is byte i. Every byte must be 0 or -1. */
static inline uint32_t bytes16_bits(bytes16 v)
{
#ifdef __SSE2__
    return (uint32_t)_mm_movemask_epi8((__m128i)v);
#else
    const bytes16 bit = {1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128};
    bytes16_words w = (bytes16_words)(v & bit) * 0x0101010101010101u >> 56; /* sums eight */
    return (uint32_t)(w[0] | w[1] << 8);
#endif
}

/* -1 in each byte from low to high, inclusive. All bytes are shifted so that high becomes INT8_MAX:
 * one signed comparison is enough. */
static inline bytes16 bytes16_within(bytes16 v, int low, int high)
{
    bytes16 moved = (bytes16)((bytes16_plus)v + (unsigned char)(INT8_MAX - high));
    return moved > (signed char)(INT8_MAX - 1 - (high - low));
}

/* Length of the ASCII prefix of the n bytes at p, or up to 15 less. */
static inline size_t bytes16_ascii(const char *p, size_t n)
{
    size_t i = 0;
    for (; n - i >= 64; i += 64) {
        bytes16 v = bytes16_load(p + i) | bytes16_load(p + i + 16) | bytes16_load(p + i + 32) |
                    bytes16_load(p + i + 48);
        if (bytes16_bits(v < 0))
            break;
    }
    while (n - i >= 16 && !bytes16_bits(bytes16_load(p + i) < 0))
        i += 16;
    while (n - i < 16 && i < n && !(p[i] & 0x80))
        i++;
    return i;
}

/* No byte may be negative, and neither half may sum to more than 255. */
static inline uint32_t bytes16_sum(bytes16 v)
{
    bytes16_words w = (bytes16_words)v;
    return (uint32_t)((w[0] * 0x0101010101010101u >> 56) + (w[1] * 0x0101010101010101u >> 56));
}
#endif
