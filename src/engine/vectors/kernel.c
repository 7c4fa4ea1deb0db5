#include "engine/vectors/kernel.h"

#include <math.h>
#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Eight floats: one register of AVX2, two of SSE2 or NEON. */
typedef float lanes __attribute__((vector_size(32)));

ALWAYS_INLINE float sum_of(const lanes *v)
{
    return (((*v)[0] + (*v)[4]) + ((*v)[2] + (*v)[6])) +
           (((*v)[1] + (*v)[5]) + ((*v)[3] + (*v)[7]));
}

#define LOAD(into, from) memcpy(&(into), (from), sizeof(lanes))

ALWAYS_INLINE float dot_any(const float *a, const float *b, size_t n)
{
    lanes sum[4] = {{0}}, x, y;
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (size_t j = 0; j < 4; j++) {
            LOAD(x, a + i + 8 * j);
            LOAD(y, b + i + 8 * j);
            sum[j] += x * y;
        }
    for (; i < n; i += 8) {
        LOAD(x, a + i);
        LOAD(y, b + i);
        sum[0] += x * y;
    }
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    return sum_of(&sum[0]);
}

ALWAYS_INLINE void hadamard_any(float *v, size_t n)
{
    const float scale = 1.0f / sqrtf((float)n);
    for (size_t i = 0; i < n; i += 8) { /* within eight */
        float *p = v + i;
        float a0 = p[0] + p[1], a1 = p[0] - p[1], a2 = p[2] + p[3], a3 = p[2] - p[3];
        float a4 = p[4] + p[5], a5 = p[4] - p[5], a6 = p[6] + p[7], a7 = p[6] - p[7];
        float b0 = a0 + a2, b1 = a1 + a3, b2 = a0 - a2, b3 = a1 - a3;
        float b4 = a4 + a6, b5 = a5 + a7, b6 = a4 - a6, b7 = a5 - a7;
        lanes low = {b0, b1, b2, b3, b0, b1, b2, b3}, high = {b4, b5, b6, b7, -b4, -b5, -b6, -b7};
        low = (low + high) * scale;
        memcpy(p, &low, sizeof(low));
    }
    for (size_t half = 8; half < n; half *= 2)
        for (size_t i = 0; i < n; i += 2 * half)
            for (size_t j = i; j < i + half; j += 8) {
                lanes x, y, sum, difference;
                LOAD(x, v + j);
                LOAD(y, v + j + half);
                sum = x + y;
                difference = x - y;
                memcpy(v + j, &sum, sizeof(sum));
                memcpy(v + j + half, &difference, sizeof(difference));
            }
}

/* --- plain --- */

static void costs_plain(const uint8_t *table, const uint8_t *codes, size_t bytes, size_t blocks,
                        uint16_t *out)
{
    for (size_t i = 0; i < blocks; i++, out += KERNEL_BLOCK) {
        memset(out, 0, KERNEL_BLOCK * sizeof(*out));
        for (size_t j = 0; j < bytes; j++, codes += KERNEL_BLOCK) {
            const uint8_t *low = table + 32 * j, *high = low + 16;
            for (size_t k = 0; k < KERNEL_BLOCK; k++)
                out[k] = (uint16_t)(out[k] + low[codes[k] & 15] + high[codes[k] >> 4]);
        }
    }
}

static size_t at_most_plain(const uint16_t *values, size_t count, uint16_t most, uint16_t *out)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        out[found] = (uint16_t)i;
        found += values[i] <= most;
    }
    return found;
}

static int32_t dot_small_plain(const int16_t *query, const int8_t *row, size_t n)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += query[i] * row[i];
    return sum;
}

static float dot_plain(const float *a, const float *b, size_t n)
{
    return dot_any(a, b, n);
}

static void hadamard_plain(float *v, size_t n)
{
    hadamard_any(v, n);
}

const struct kernel kernel_plain = {
    .name = "plain",
    .costs = costs_plain,
    .at_most = at_most_plain,
    .dot_small = dot_small_plain,
    .dot = dot_plain,
    .hadamard = hadamard_plain,
};

/* --- AVX2 --- */

#ifdef __x86_64__
#include <immintrin.h>

/* Without "fma": a fused multiplication and addition rounds once, the plain loops round twice. */
#define AVX2 __attribute__((target("avx2,popcnt")))

/* What 32 rows have in the table for one byte each. */
AVX2 static inline __m256i look_up(const uint8_t *table, const uint8_t *codes)
{
    const __m256i four = _mm256_set1_epi8(15);
    const __m128i *both = (const __m128i *)(const void *)table;
    __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128(both));
    __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128(both + 1));
    __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)codes);
    __m256i first = _mm256_shuffle_epi8(low, _mm256_and_si256(c, four));
    __m256i second = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(c, 4), four));
    return _mm256_add_epi8(first, second);
}

/* Sums of two bytes' four numbers fit into a byte. `all` sums pairs of rows as they stand, with
 * what the odd row's number adds 256 times; `odd` sums that alone. */
AVX2 static void costs_avx2(const uint8_t *table, const uint8_t *codes, size_t bytes, size_t blocks,
                            uint16_t *out)
{
    for (size_t i = 0; i < blocks; i++, out += KERNEL_BLOCK) {
        __m256i all = _mm256_setzero_si256(), odd = all;
        for (size_t j = 0; j < bytes; j += 2, codes += 2 * KERNEL_BLOCK) {
            __m256i sum = _mm256_add_epi8(look_up(table + 32 * j, codes),
                                          look_up(table + 32 * j + 32, codes + KERNEL_BLOCK));
            all = _mm256_add_epi16(all, sum);
            odd = _mm256_add_epi16(odd, _mm256_srli_epi16(sum, 8));
        }
        __m256i even = _mm256_sub_epi16(all, _mm256_slli_epi16(odd, 8));
        __m256i first = _mm256_unpacklo_epi16(even, odd), second = _mm256_unpackhi_epi16(even, odd);
        __m256i *to = (__m256i *)(void *)out;
        _mm256_storeu_si256(to, _mm256_permute2x128_si256(first, second, 0x20));
        _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(first, second, 0x31));
    }
}

AVX2 static size_t at_most_avx2(const uint16_t *values, size_t count, uint16_t most, uint16_t *out)
{
    const __m256i limit = _mm256_set1_epi16((short)most);
    size_t found = 0, i = 0;
    for (; i + 16 <= count; i += 16) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(values + i));
        __m256i within = _mm256_cmpeq_epi16(_mm256_min_epu16(v, limit), v);
        uint32_t mask = (uint32_t)_mm256_movemask_epi8(within) & 0x55555555;
        for (; mask; mask &= mask - 1)
            out[found++] = (uint16_t)(i + (unsigned)__builtin_ctz(mask) / 2);
    }
    for (; i < count; i++)
        if (values[i] <= most)
            out[found++] = (uint16_t)i;
    return found;
}

AVX2 static int32_t dot_small_avx2(const int16_t *query, const int8_t *row, size_t n)
{
    __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t i = 0; i < n; i += 32)
        for (size_t j = 0; j < 2; j++) {
            const void *r = row + i + 16 * j, *q = query + i + 16 * j;
            __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)r));
            __m256i products = _mm256_madd_epi16(wide, _mm256_loadu_si256((const __m256i *)q));
            sums[j] = _mm256_add_epi32(sums[j], products);
        }
    __m256i all = _mm256_add_epi32(sums[0], sums[1]);
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
    return _mm_cvtsi128_si32(sum);
}

AVX2 static float dot_avx2(const float *a, const float *b, size_t n)
{
    return dot_any(a, b, n);
}

AVX2 static void hadamard_avx2(float *v, size_t n)
{
    hadamard_any(v, n);
}

static const struct kernel avx2 = {
    .name = "AVX2",
    .costs = costs_avx2,
    .at_most = at_most_avx2,
    .dot_small = dot_small_avx2,
    .dot = dot_avx2,
    .hadamard = hadamard_avx2,
};

const struct kernel *kernel_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") ? &avx2 : NULL;
}
#else
const struct kernel *kernel_avx2(void)
{
    return NULL;
}
#endif

const struct kernel *kernel_best(void)
{
    const struct kernel *k = kernel_avx2();
    return k ? k : &kernel_plain;
}
