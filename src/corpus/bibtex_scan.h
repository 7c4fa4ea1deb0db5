/* bibtex_scan.h -- finds the few bytes that matter to BibTeX among the many that do not. Nothing is
 * read beyond end. */
#ifndef CORPUS_BIBTEX_SCAN_H
#define CORPUS_BIBTEX_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes16.h"

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

/* The first a, b or c in [p, end); end when there is none. */
static inline const char *scan_any3(const char *p, const char *end, char a, char b, char c)
{
    for (; end - p >= 16; p += 16) {
        bytes16 v = bytes16_load(p);
        uint32_t marks =
            bytes16_bits((v == (signed char)a) | (v == (signed char)b) | (v == (signed char)c));
        if (marks)
            return p + __builtin_ctz(marks);
    }
    while (p < end && *p != a && *p != b && *p != c)
        p++;
    return p;
}

/* The first byte in [p, end) that collapsing white space may change: a control character or a
 * space followed by a space. end when there is none. */
static inline const char *scan_blank(const char *p, const char *end)
{
    for (; end - p > 16; p += 16) {
        bytes16 v = bytes16_load(p), next = bytes16_load(p + 1);
        uint32_t marks = bytes16_bits(bytes16_within(v, 0, 0x1F) | ((v == ' ') & (next == ' ')));
        if (marks)
            return p + __builtin_ctz(marks);
    }
    while (p < end && (unsigned char)*p >= ' ' && !(*p == ' ' && p + 1 < end && p[1] == ' '))
        p++;
    return p;
}

static inline uint64_t scan_count_newlines(const char *p, const char *end)
{
    enum { BLOCKS_MAX = 31 }; /* eight bytes then sum to at most 248 */
    uint64_t n = 0;
    while (end - p >= 16) {
        bytes16 sums = {0};
        for (int i = 0; i < BLOCKS_MAX && end - p >= 16; i++, p += 16)
            sums -= bytes16_load(p) == '\n';
        n += bytes16_sum(sums);
    }
    for (; p < end; p++)
        n += *p == '\n';
    return n;
}
#endif
