/* str.h -- borrowed byte strings with a length. Not NUL-terminated unless said so. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

struct str {
    const char *p; /* NULL means absent; an empty string has n == 0 and p != NULL */
    size_t n;
};

#define STR(lit)   ((struct str){"" lit, sizeof(lit) - 1})
#define STR_NULL   ((struct str){NULL, 0})
#define STR_ARG(s) (int)(s).n, (s).p /* for "%.*s" */

static inline struct str str_of(const char *z)
{
    return (struct str){z, z ? strlen(z) : 0};
}

static inline struct str str_from(const char *p, size_t n)
{
    return (struct str){p, n};
}

static inline struct str str_skip(struct str s, size_t n) /* without its first n bytes */
{
    return (struct str){s.p + n, s.n - n};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline int str_compare(struct str a, struct str b) /* by bytes; a prefix comes first */
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

bool str_ieq(struct str a, struct str b); /* ASCII case-insensitive */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
ptrdiff_t str_find(struct str hay, struct str needle); /* -1 when absent */
struct str str_trim(struct str s);                     /* spaces and tabs, both ends */
static inline struct str str_trim_if(struct str s, bool (*is_blank)(char c))
{
    while (s.n && is_blank(s.p[0]))
        s = str_skip(s, 1);
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Cuts the part before sep off *rest and returns it; the whole rest when there is no sep.
 * After the last part *rest has p == NULL, so `while (rest.p)` visits every part. */
struct str str_cut(struct str *rest, char sep);

/* Decimal integers, whole string, no sign but '-', no spaces. False leaves *out alone. */
bool str_to_i64(struct str s, int64_t *out);

/* For secrets: constant time for equal lengths. */
bool str_eq_secret(struct str a, struct str b);

size_t str_utf8_prefix(struct str s); /* bytes up to the first that is not valid UTF-8 */
bool str_utf8_valid(struct str s);    /* no overlong forms, no surrogates; NUL is allowed */
/* Bytes of the valid UTF-8 character that s begins with; 0 when there is none. */
size_t str_utf8_step(struct str s);
size_t str_utf8_back(struct str s); /* the same of the character that s ends with */
/* Writes a code point and returns its length; surrogates and what lies beyond Unicode become
 * U+FFFD. */
size_t str_utf8_put(char out[4], uint32_t code);

struct str str_dup(struct arena *a, struct str s);   /* NUL-terminated copy */
char *str_z(struct arena *a, struct str s);          /* the same, as char * */
struct str str_lower(struct arena *a, struct str s); /* a copy, ASCII letters in lower case */
struct str str_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
#define STR_INT_BYTES 20
struct str str_digits(char space[STR_INT_BYTES], int64_t v); /* in decimal, at the end of space */
struct str str_int(struct arena *a, int64_t v);
/* The concatenation: cheaper than str_printf on hot paths. */
struct str str_join(struct arena *a, size_t count, const struct str *parts);
#define STR_JOIN(a, ...)                                                                           \
    str_join((a), sizeof((struct str[]){__VA_ARGS__}) / sizeof(struct str),                        \
             (const struct str[]){__VA_ARGS__})
#endif
