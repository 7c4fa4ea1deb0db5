/* json_scan.h -- finds the end of the plain part of a JSON string, for reader and writer. */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include <stdbool.h>

#include "base/bytes16.h"

static inline bool json_is_plain(char c) /* ASCII but control characters, " and \ */
{
    return c >= 0x20 && !(c & 0x80) && c != '"' && c != '\\';
}

/* A bit for each of the 16 bytes that is not plain. */
static inline uint32_t json_not_plain(bytes16 v)
{
    return bytes16_bits(bytes16_within(v, INT8_MIN, 0x1F) | (v == '"') | (v == '\\'));
}

/* The first byte in [p, end) that is not plain; end when all are. */
static inline const char *json_skip_plain(const char *p, const char *end)
{
    for (; end - p >= 16; p += 16) {
        uint32_t marks = json_not_plain(bytes16_load(p));
        if (marks)
            return p + __builtin_ctz(marks);
    }
    while (p < end && json_is_plain(*p))
        p++;
    return p;
}

#define JSON_COPY_SLACK 16

/* The same, and copies what it skips to at. Overwrites up to JSON_COPY_SLACK bytes behind. */
static inline const char *json_copy_plain(const char *p, const char *end, char *at)
{
    for (; end - p >= 16; p += 16, at += 16) {
        bytes16 v = bytes16_load(p);
        memcpy(at, &v, sizeof(v));
        uint32_t marks = json_not_plain(v);
        if (marks)
            return p + __builtin_ctz(marks);
    }
    while (p < end && json_is_plain(*p))
        *at++ = *p++;
    return p;
}
#endif
