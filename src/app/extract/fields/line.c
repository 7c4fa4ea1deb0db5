#include "app/extract/fields/line.h"

#include <stdlib.h>
#include <unicase.h>
#include <uninorm.h>

size_t line_chars(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

/* Bytes of the control character that s begins with: C0, DEL, C1, and the two line ends of Unicode;
 * else 0. */
static size_t control_bytes(struct str s)
{
    unsigned char c = (unsigned char)s.p[0];
    if (c < 0x20 || c == 0x7F)
        return 1;
    if (c == 0xC2 && s.n > 1 && (unsigned char)s.p[1] < 0xA0)
        return 2;
    return str_starts(s, STR("\u2028")) || str_starts(s, STR("\u2029")) ? 3 : 0;
}

static size_t blank_bytes(struct str s)
{
    return s.p[0] == ' ' ? 1 : control_bytes(s);
}

bool line_has_control(struct str s)
{
    for (; s.n; s = str_skip(s, 1))
        if (control_bytes(s))
            return true;
    return false;
}

/* Nothing to do: neither control characters, nor two blanks, nor one at either end. */
static bool is_clean(struct str s)
{
    bool blank = true;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c == 0x7F || c == 0xC2 || c == 0xE2 || (c == ' ' && blank))
            return false;
        blank = c == ' ';
    }
    return s.n == 0 || !blank;
}

struct str line_clean(struct arena *a, struct str s)
{
    if (is_clean(s))
        return s;
    char *out = arena_alloc(a, s.n + 1);
    size_t n = 0;
    bool blank = false;
    while (s.n) {
        size_t skip = blank_bytes(s);
        if (!skip && blank && n)
            out[n++] = ' ';
        if (!skip)
            out[n++] = s.p[0];
        blank = skip > 0;
        s = str_skip(s, skip ? skip : 1);
    }
    out[n] = '\0';
    return str_from(out, n);
}

struct str line_folded(struct arena *a, struct str s)
{
    size_t n;
    uint8_t *p = check_memory(u8_casefold((const uint8_t *)s.p, s.n, NULL, UNINORM_NFKC, NULL, &n));
    struct str out = str_dup(a, str_from((const char *)p, n));
    free(p);
    return out;
}
