#include "corpus/charset.h"

#include <errno.h>
#include <iconv.h>

#include "base/ascii.h"
#include "base/bytes16.h"
#include "base/err.h"
#include "corpus/text_out.h"

/* Telling the encodings apart.
 *
 * 1. A byte order mark decides.
 * 2. Valid UTF-8 is UTF-8; so is what has at least as many valid characters beyond ASCII as
 *    invalid places, because neither GBK nor Latin-1 makes many valid sequences by chance.
 * 3. Chinese text in GBK is pairs of high bytes, nearly all of them among the 3,755 common
 *    characters or the punctuation. Latin-1 has single high bytes between ASCII letters, and
 *    where two meet (ção) they look like rare characters.
 * 4. The rest is Windows-1252. Sequences that are valid UTF-8 are still read as such: files glued
 *    together from several exports have both. */
#define STRAY 10 /* valid characters per invalid one */

struct census {
    size_t utf8_good, utf8_bad;
    size_t common, rare; /* pairs */
    size_t alone;        /* high bytes that are part of no Chinese pair */
};

static bool is_high(char c)
{
    return (c & 0x80) != 0;
}

static size_t ascii_run(struct str s)
{
    size_t n = bytes16_ascii(s.p, s.n);
    while (n < s.n && !is_high(s.p[n]))
        n++;
    return n;
}

/* Bytes at the start of s that are high and not valid UTF-8, up to where a character could begin
 * again: a lead byte and what continues it, or continuation bytes in a row. */
static size_t invalid_run(struct str s)
{
    size_t n = 1;
    while (n < s.n && n < 4 && (s.p[n] & 0xC0) == 0x80)
        n++;
    return n;
}

static void count_utf8(struct str s, struct census *c)
{
    while ((s = str_skip(s, ascii_run(s))).n) {
        size_t n = str_utf8_step(s);
        c->utf8_good += n > 0;
        c->utf8_bad += n == 0;
        s = str_skip(s, n ? n : invalid_run(s));
    }
}

static bool is_common_pair(unsigned char lead, unsigned char trail)
{
    return trail >= 0xA1 && trail != 0xFF &&
           ((lead >= 0xB0 && lead <= 0xD7) || /* frequent Hanzi */
            (lead >= 0xA1 && lead <= 0xA3));  /* punctuation */
}

static void count_pairs(struct str s, struct census *c)
{
    const char *start = s.p;
    while ((s = str_skip(s, ascii_run(s))).n) {
        if (s.n < 2 || !is_high(s.p[1]) || s.p[0] == '\x80' || s.p[0] == '\xFF') {
            c->alone++;
            s = str_skip(s, 1);
            continue;
        }
        bool in_word =
            s.p > start && ascii_is_letter(s.p[-1]) && s.n > 2 && ascii_is_letter(s.p[2]);
        if (in_word) /* as in AÇÃO */
            c->alone += 2;
        else if (is_common_pair((unsigned char)s.p[0], (unsigned char)s.p[1]))
            c->common++;
        else
            c->rare++;
        s = str_skip(s, 2);
    }
}

/* Many pairs of GBK are valid UTF-8 by chance (both bytes of "医" and of "学" are), so a text that
 * makes sense as Chinese and has more than a stray byte that is no UTF-8 is not UTF-8. */
static enum charset detect(struct str s, bool utf8_bom)
{
    struct census c = {0};
    count_utf8(s, &c);
    if (utf8_bom || c.utf8_bad == 0)
        return CHARSET_UTF8;
    count_pairs(s, &c);
    bool chinese = c.common > 2 * (c.rare + c.alone);
    if (chinese && c.utf8_bad * STRAY > c.utf8_good)
        return CHARSET_GB18030;
    return c.utf8_good >= c.utf8_bad ? CHARSET_UTF8 : CHARSET_1252;
}

uint32_t charset_1252(unsigned char c)
{
    static const uint16_t upper[32] = {
        0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
        0x2039, 0x0152, 0xFFFD, 0x017D, 0xFFFD, 0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
        0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178};
    return c >= 0x80 && c < 0xA0 ? upper[c - 0x80] : c;
}

static void note_repair(struct charset_text *out, size_t at)
{
    if (out->repaired++ == 0)
        out->first_repaired = at;
}

/* A single stray byte in UTF-8 was pasted from Windows; half a character cannot be recovered. */
static void repair(struct text_out *o, struct str broken, bool is_1252)
{
    if (!is_1252 && broken.n > 1) {
        text_put_z(o, "\uFFFD");
        return;
    }
    char utf8[4];
    for (size_t i = 0; i < broken.n; i++)
        text_put(o, utf8, str_utf8_put(utf8, charset_1252((unsigned char)broken.p[i])));
}

static void from_8_bit(struct arena *a, struct str s, struct charset_text *out)
{
    bool is_1252 = out->charset == CHARSET_1252;
    if (!is_1252 && str_utf8_valid(s)) {
        out->utf8 = s;
        return;
    }
    struct text_out o;
    text_out_init(&o, a, s.n + s.n / 8 + 16);
    const char *start = s.p;
    while (s.n) {
        size_t n = ascii_run(s);
        n = n ? n : str_utf8_step(s);
        if (n) {
            text_put(&o, s.p, n);
        } else {
            n = invalid_run(s);
            repair(&o, str_from(s.p, n), is_1252);
            if (!is_1252)
                note_repair(out, (size_t)(s.p - start));
        }
        s = str_skip(s, n);
    }
    out->utf8 = str_from(o.p, o.len);
}

/* What iconv does not take becomes U+FFFD, unit bytes at a time. */
static int from_iconv(struct arena *a, struct str s, size_t unit, struct charset_text *out)
{
    iconv_t cd = iconv_open("UTF-8", charset_name(out->charset));
    if (cd == (iconv_t)-1)
        return ERR_UNAVAILABLE;
    struct text_out o;
    text_out_init(&o, a, s.n + s.n / 2 + 16);
    char *in = (char *)(uintptr_t)s.p; /* iconv does not write there */
    size_t left = s.n;
    while (left) {
        char utf8[4096], *to = utf8;
        size_t room = sizeof(utf8);
        bool fine = iconv(cd, &in, &left, &to, &room) != (size_t)-1 || errno == E2BIG;
        text_put(&o, utf8, sizeof(utf8) - room);
        if (fine)
            continue;
        note_repair(out, s.n - left);
        text_put_z(&o, "\uFFFD");
        size_t skip = left < unit ? left : unit;
        in += skip;
        left -= skip;
    }
    iconv_close(cd);
    out->utf8 = str_from(o.p, o.len);
    return 0;
}

int charset_to_utf8(struct arena *a, struct str bytes, struct charset_text *out)
{
    static const struct {
        struct str mark;
        enum charset charset;
    } marks[] = {
        {{"\xEF\xBB\xBF", 3}, CHARSET_UTF8},
        {{"\xFF\xFE", 2}, CHARSET_UTF16LE},
        {{"\xFE\xFF", 2}, CHARSET_UTF16BE},
    };
    *out = (struct charset_text){.charset = CHARSET_UTF8};
    if (!bytes.p)
        bytes = STR("");
    size_t skipped = 0;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]) && !out->bom; i++) {
        out->bom = str_starts(bytes, marks[i].mark);
        if (out->bom) {
            out->charset = marks[i].charset;
            skipped = marks[i].mark.n;
        }
    }
    bytes = str_skip(bytes, skipped);
    if (out->charset == CHARSET_UTF8)
        out->charset = detect(bytes, out->bom);
    int err = 0;
    if (out->charset == CHARSET_UTF8 || out->charset == CHARSET_1252)
        from_8_bit(a, bytes, out);
    else
        err = from_iconv(a, bytes, out->charset == CHARSET_GB18030 ? 1 : 2, out);
    if (out->repaired)
        out->first_repaired += skipped;
    return err;
}

const char *charset_name(enum charset c)
{
    static const char *const names[] = {"UTF-8", "UTF-16LE", "UTF-16BE", "GB18030", "Windows-1252"};
    check(c < sizeof(names) / sizeof(names[0]));
    return names[c];
}
