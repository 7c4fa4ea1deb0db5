#include "tool/db/split_name.h"

#include "base/sha256.h"
#include "corpus/charset.h"
#include "corpus/text.h"

#define SUM_DIGITS 8

static struct str to_utf8(struct arena *a, struct str s)
{
    struct charset_text text;
    if (str_utf8_valid(s))
        return s;
    return charset_to_utf8(a, s, &text) ? STR("") : text.utf8;
}

/* Deletes control characters and joins blanks; the rest moves up. */
static struct str tidy(struct arena *a, struct str s)
{
    char *out = arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        /* U+0080 to U+009F are control characters, too. */
        bool c1 = c == 0xC2 && i + 1 < s.n && (unsigned char)s.p[i + 1] < 0xA0;
        bool blank = c <= ' ' || c == 0x7F || c1;
        i += c1;
        if (!blank)
            out[n++] = c == '/' || c == '\\' ? '-' : (char)c;
        else if (n && out[n - 1] != ' ')
            out[n++] = ' ';
    }
    return str_trim(str_from(out, n));
}

static struct str without_dots(struct str s)
{
    while (s.n && (s.p[0] == '.' || s.p[0] == ' '))
        s = str_skip(s, 1);
    return s;
}

static struct str cut(struct arena *a, struct str s)
{
    char sum[SHA256_HEX_BYTES];
    size_t most = SPLIT_NAME_BYTES_MAX - SUM_DIGITS - 2;
    if (s.n <= SPLIT_NAME_BYTES_MAX)
        return s;
    sha256_hex(s, sum);
    size_t n = str_utf8_prefix(str_from(s.p, most));
    struct str head = str_trim(str_from(s.p, n));
    return str_printf(a, "%.*s ~%.*s", STR_ARG(head), SUM_DIGITS, sum);
}

struct str split_name(struct arena *a, struct str journal)
{
    struct str plain = text_plain(a, to_utf8(a, journal));
    return cut(a, without_dots(tidy(a, plain)));
}

struct str split_fold(struct arena *a, struct str name)
{
    return str_lower(a, name);
}
