#include "engine/api/file_name.h"

#include "base/ascii.h"
#include "base/buf.h"
#include "base/time.h"

#define WORDS_CHARS_MAX 48

static bool is_plain(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c);
}

static uint32_t code_point(struct str s)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)s.p[0] & masks[s.n];
    for (size_t i = 1; i < s.n; i++)
        c = c << 6 | ((unsigned char)s.p[i] & 0x3f);
    return c;
}

/* Letters, and signs that stand for words. No spaces of any kind, no characters that are invisible,
 * change the direction of text, or look like a full stop or a slash. */
static bool is_word(struct str c)
{
    if (c.n == 1)
        return is_plain(c.p[0]);
    uint32_t code = code_point(c);
    bool punctuation = (code >= 0x2000 && code <= 0x2bff) || (code >= 0x3000 && code <= 0x303f) ||
                       (code >= 0xfe00 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff0f) ||
                       (code >= 0xff1a && code <= 0xff20) || (code >= 0xff3b && code <= 0xff40) ||
                       (code >= 0xff5b && code <= 0xff65);
    bool strange = code < 0xc0 || code == 0x61c || code == 0x180e || code == 0xfeff ||
                   (code >= 0xe000 && code <= 0xf8ff) || code >= 0xe0000 ||
                   (code >= 0xfff0 && code <= 0xffff);
    return !punctuation && !strange;
}

/* The first words, with hyphens between them. */
static struct str words_of(struct arena *a, struct str about)
{
    char *out = arena_alloc(a, about.n + 1);
    size_t n = 0, chars = 0, word_end = 0;
    for (size_t i = 0, step; i < about.n && chars < WORDS_CHARS_MAX; i += step ? step : 1) {
        step = str_utf8_step(str_from(about.p + i, about.n - i));
        struct str c = str_from(about.p + i, step);
        if (step && is_word(c)) {
            memcpy(out + n, c.p, step);
            n += step;
            chars++;
        } else if (n && out[n - 1] != '-') {
            word_end = n;
            out[n++] = '-';
            chars++;
        }
    }
    bool cut = chars == WORDS_CHARS_MAX && word_end > 0; /* perhaps within a word */
    n = cut ? word_end : n;
    while (n && out[n - 1] == '-')
        n--;
    return str_from(out, n);
}

struct str file_name(struct arena *a, struct str about, int64_t wall_ms, struct str end)
{
    char date[TIME_ISO_BYTES];
    struct str words = words_of(a, about);
    time_iso(wall_ms * 1000, date);
    return str_printf(a, "millrace%s%.*s-%.10s%.*s", words.n ? "-" : "", STR_ARG(words), date,
                      STR_ARG(end));
}

struct str file_disposition(struct arena *a, struct str name)
{
    struct buf b;
    bool plain = true, gap = false;
    buf_init(&b);
    buf_add_lit(&b, "attachment; filename=\"");
    for (size_t i = 0; i < name.n; i++) {
        bool good = is_plain(name.p[i]) || name.p[i] == '-' || name.p[i] == '.';
        plain = plain && good;
        if (good && !(gap && name.p[i] == '-'))
            buf_add_char(&b, name.p[i]);
        gap = good ? name.p[i] == '-' : gap;
    }
    buf_add_char(&b, '"');
    if (!plain) {
        buf_add_lit(&b, "; filename*=UTF-8''");
        for (size_t i = 0; i < name.n; i++)
            if (is_plain(name.p[i]) || name.p[i] == '-' || name.p[i] == '.')
                buf_add_char(&b, name.p[i]);
            else
                buf_printf(&b, "%%%02X", (unsigned char)name.p[i]);
    }
    struct str value = str_dup(a, buf_str(&b));
    buf_release(&b);
    return value;
}
