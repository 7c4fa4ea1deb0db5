/* bibtex_scan.h -- finds the few bytes that matter to BibTeX among the many that do not.
 *
 * Blocks of 16 bytes with SSE2, of 8 in a plain word without; nothing is read beyond end. */
#ifndef CORPUS_BIBTEX_SCAN_H
#define CORPUS_BIBTEX_SCAN_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static inline bool scan_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline const char *scan_skip_space(const char *p, const char *end)
{
    while (p < end && scan_is_space(*p))
        p++;
    return p;
}

#ifdef __SSE2__
#define SCAN_BLOCK 16
#define SCAN_SHIFT 0 /* bits of a mark per byte, as a power of two */

static inline __m128i scan_load(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* One bit for each byte of the block that is a, b or c. */
static inline uint64_t scan_marks3(const char *p, char a, char b, char c)
{
    __m128i v = scan_load(p);
    __m128i hit = _mm_or_si128(
        _mm_cmpeq_epi8(v, _mm_set1_epi8(a)),
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(b)), _mm_cmpeq_epi8(v, _mm_set1_epi8(c))));
    return (uint64_t)(unsigned)_mm_movemask_epi8(hit);
}

/* One bit for each control character, and each space with a space behind it. Reads p[16] too. */
static inline uint64_t scan_marks_blank(const char *p)
{
    __m128i v = scan_load(p), space = _mm_set1_epi8(' ');
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
    __m128i two = _mm_and_si128(_mm_cmpeq_epi8(v, space), _mm_cmpeq_epi8(scan_load(p + 1), space));
    return (uint64_t)(unsigned)_mm_movemask_epi8(_mm_or_si128(control, two));
}

static inline uint64_t scan_newlines(const char *p)
{
    __m128i hit = _mm_cmpeq_epi8(scan_load(p), _mm_set1_epi8('\n'));
    __m128i sums = _mm_sad_epu8(_mm_sub_epi8(_mm_setzero_si128(), hit), _mm_setzero_si128());
    return (uint64_t)(_mm_cvtsi128_si64(sums) + _mm_cvtsi128_si64(_mm_srli_si128(sums, 8)));
}
#else
#define SCAN_BLOCK    8
#define SCAN_SHIFT    3
#define SCAN_EVERY(c) ((uint64_t)(unsigned char)(c)*0x0101010101010101u)

static inline uint64_t scan_load(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return le64toh(word);
}

/* The top bit of each byte that is zero, and of no other. */
static inline uint64_t scan_zero(uint64_t v)
{
    uint64_t low = SCAN_EVERY(0x7f);
    return ~(((v & low) + low) | v | low);
}

static inline uint64_t scan_marks3(const char *p, char a, char b, char c)
{
    uint64_t v = scan_load(p);
    return scan_zero(v ^ SCAN_EVERY(a)) | scan_zero(v ^ SCAN_EVERY(b)) |
           scan_zero(v ^ SCAN_EVERY(c));
}

static inline uint64_t scan_marks_blank(const char *p)
{
    uint64_t v = scan_load(p), control = scan_zero(v & SCAN_EVERY(0xe0));
    uint64_t here = scan_zero(v ^ SCAN_EVERY(' '));
    return control | (here & scan_zero(scan_load(p + 1) ^ SCAN_EVERY(' ')));
}

static inline uint64_t scan_newlines(const char *p)
{
    return (scan_zero(scan_load(p) ^ SCAN_EVERY('\n')) >> 7) * SCAN_EVERY(1) >> 56;
}
#endif

static inline const char *scan_first(const char *p, uint64_t marks)
{
    return p + (__builtin_ctzll(marks) >> SCAN_SHIFT);
}

/* The first a, b or c in [p, end); end when there is none. */
static inline const char *scan_any3(const char *p, const char *end, char a, char b, char c)
{
    for (; end - p >= SCAN_BLOCK; p += SCAN_BLOCK) {
        uint64_t marks = scan_marks3(p, a, b, c);
        if (marks)
            return scan_first(p, marks);
    }
    while (p < end && *p != a && *p != b && *p != c)
        p++;
    return p;
}

/* The first byte in [p, end) that collapsing white space may change: a control character or a
 * space followed by a space. end when there is none. */
static inline const char *scan_blank(const char *p, const char *end)
{
    for (; end - p > SCAN_BLOCK; p += SCAN_BLOCK) {
        uint64_t marks = scan_marks_blank(p);
        if (marks)
            return scan_first(p, marks);
    }
    while (p < end && (unsigned char)*p >= ' ' && !(*p == ' ' && p + 1 < end && p[1] == ' '))
        p++;
    return p;
}

static inline uint64_t scan_count_newlines(const char *p, const char *end)
{
    uint64_t n = 0;
    for (; end - p >= SCAN_BLOCK; p += SCAN_BLOCK)
        n += scan_newlines(p);
    for (; p < end; p++)
        n += *p == '\n';
    return n;
}
#endif
