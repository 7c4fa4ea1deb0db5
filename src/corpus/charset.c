#include "corpus/charset.h"

#include <errno.h>
#include <iconv.h>

#include "base/err.h"

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

static struct str from(struct str s, size_t n)
{
    return str_from(s.p + n, s.n - n);
}

static bool is_high(char c)
{
    return (c & 0x80) != 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t ascii_run(struct str s)
{
    size_t n = 0;
    for (uint64_t word; n + 8 <= s.n; n += 8) {
        memcpy(&word, s.p + n, 8);
        if (word & 0x8080808080808080u)
            break;
    }
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
    while ((s = from(s, ascii_run(s))).n) {
        size_t n = str_utf8_step(s);
        c->utf8_good += n > 0;
        c->utf8_bad += n == 0;
        s = from(s, n ? n : invalid_run(s));
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
    while ((s = from(s, ascii_run(s))).n) {
        if (s.n < 2 || !is_high(s.p[1]) || s.p[0] == '\x80' || s.p[0] == '\xFF') {
            c->alone++;
            s = from(s, 1);
            continue;
        }
        bool in_word = s.p > start && is_letter(s.p[-1]) && s.n > 2 && is_letter(s.p[2]);
        if (in_word) /* as in AÇÃO */
            c->alone += 2;
        else if (is_common_pair((unsigned char)s.p[0], (unsigned char)s.p[1]))
            c->common++;
        else
            c->rare++;
        s = from(s, 2);
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

size_t charset_put(char out[4], uint32_t code)
{
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        code = 0xFFFD;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)((0xF00u >> n & 0xF0) | code);
    return n;
}

/* A growing output in the arena. */
struct output {
    struct arena *arena;
    char *p;
    size_t len, cap;
};

static void output_room(struct output *o, size_t n)
{
    if (o->cap - o->len >= n)
        return;
    size_t cap = (o->cap + n) + o->cap / 2;
    o->p = arena_grow(o->arena, o->p, o->cap, cap);
    o->cap = cap;
}

static void output_add(struct output *o, struct str s)
{
    output_room(o, s.n);
    if (s.n)
        memcpy(o->p + o->len, s.p, s.n);
    o->len += s.n;
}

static void output_code(struct output *o, uint32_t code)
{
    output_room(o, 4);
    o->len += charset_put(o->p + o->len, code);
}

static void output_start(struct output *o, struct arena *a, size_t n)
{
    *o = (struct output){.arena = a, .cap = n + 16};
    o->p = arena_alloc(a, o->cap);
}

static void note_repair(struct charset_text *out, size_t at)
{
    if (out->repaired++ == 0)
        out->first_repaired = at;
}

/* A single stray byte in UTF-8 was pasted from Windows; half a character cannot be recovered. */
static void repair(struct output *o, struct str broken, bool is_1252)
{
    if (!is_1252 && broken.n > 1) {
        output_code(o, 0xFFFD);
        return;
    }
    for (size_t i = 0; i < broken.n; i++)
        output_code(o, charset_1252((unsigned char)broken.p[i]));
}

static void from_8_bit(struct arena *a, struct str s, struct charset_text *out)
{
    bool is_1252 = out->charset == CHARSET_1252;
    if (!is_1252 && str_utf8_valid(s)) {
        out->utf8 = s;
        return;
    }
    struct output o;
    output_start(&o, a, s.n + s.n / 8);
    const char *start = s.p;
    while (s.n) {
        size_t n = ascii_run(s);
        n = n ? n : str_utf8_step(s);
        if (n) {
            output_add(&o, str_from(s.p, n));
        } else {
            n = invalid_run(s);
            repair(&o, str_from(s.p, n), is_1252);
            if (!is_1252)
                note_repair(out, (size_t)(s.p - start));
        }
        s = from(s, n);
    }
    out->utf8 = str_from(o.p, o.len);
}

/* What iconv does not take becomes U+FFFD, unit bytes at a time. */
static int from_iconv(struct arena *a, struct str s, size_t unit, struct charset_text *out)
{
    iconv_t cd = iconv_open("UTF-8", charset_name(out->charset));
    if (cd == (iconv_t)-1)
        return ERR_UNAVAILABLE;
    struct output o;
    output_start(&o, a, s.n + s.n / 2);
    char *in = (char *)(uintptr_t)s.p; /* iconv does not write there */
    size_t left = s.n;
    while (left) {
        output_room(&o, 16);
        char *to = o.p + o.len;
        size_t room = o.cap - o.len;
        size_t done = iconv(cd, &in, &left, &to, &room);
        o.len = o.cap - room;
        if (done != (size_t)-1 || errno == E2BIG)
            continue;
        note_repair(out, s.n - left);
        output_code(&o, 0xFFFD);
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
    bytes = from(bytes, skipped);
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
    return names[c];
}
