/* json_scan.h -- finds the end of the plain part of a JSON string, for reader and writer. */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool json_is_plain(char c) /* stands for itself: ASCII, no control, no " and no \ */
{
    return c >= 0x20 && !(c & 0x80) && c != '"' && c != '\\';
}

#define JSON_EVERY_BYTE(c) ((uint64_t)(c)*0x0101010101010101u)

/* The top bit of each byte of word that is not plain. A byte above a marked one may be marked
 * wrongly, because subtracting borrows; so only the lowest mark is to be trusted. */
static inline uint64_t json_not_plain(uint64_t word)
{
    uint64_t quote = word ^ JSON_EVERY_BYTE('"'), slash = word ^ JSON_EVERY_BYTE('\\');
    uint64_t control = word - JSON_EVERY_BYTE(0x20);
    quote -= JSON_EVERY_BYTE(1);
    slash -= JSON_EVERY_BYTE(1);
    return (quote | slash | control | word) & JSON_EVERY_BYTE(0x80);
}

/* The first byte in [p, end) that is not plain; end when all are. */
static inline const char *json_skip_plain(const char *p, const char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        uint64_t marks = json_not_plain(le64toh(word));
        if (marks)
            return p + __builtin_ctzll(marks) / 8;
    }
    while (p < end && json_is_plain(*p))
        p++;
    return p;
}
#endif
