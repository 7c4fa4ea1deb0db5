#include "corpus/quote_fold.h"

#include <unicase.h>
#include <unictype.h>
#include <uninorm.h>
#include <unistr.h>

#include "base/ascii.h"
#include "base/bytes16.h"

#define DROPPED      0
#define FORMS_MAX    4 /* characters of what a character is compatible with; more: it stays */
#define UNFOLD_DEPTH 4

bool quote_is_mark(uint32_t code)
{
    return code >= 0x300 && code <= 0x36F;
}

/* --- characters that are folded by hand --- */

/* By code; 0: dropped. */
static const char ascii[128] = {[' '] = DROPPED,
                                '!',
                                DROPPED,
                                '#',
                                '$',
                                '%',
                                '&',
                                DROPPED,
                                '(',
                                ')',
                                DROPPED,
                                '+',
                                ',',
                                '-',
                                '.',
                                '/',
                                '0',
                                '1',
                                '2',
                                '3',
                                '4',
                                '5',
                                '6',
                                '7',
                                '8',
                                '9',
                                ':',
                                ';',
                                '<',
                                '=',
                                '>',
                                '?',
                                '@',
                                'a',
                                'b',
                                'c',
                                'd',
                                'e',
                                'f',
                                'g',
                                'h',
                                'i',
                                'j',
                                'k',
                                'l',
                                'm',
                                'n',
                                'o',
                                'p',
                                'q',
                                'r',
                                's',
                                't',
                                'u',
                                'v',
                                'w',
                                'x',
                                'y',
                                'z',
                                '[',
                                '\\',
                                ']',
                                DROPPED,
                                DROPPED,
                                DROPPED,
                                'a',
                                'b',
                                'c',
                                'd',
                                'e',
                                'f',
                                'g',
                                'h',
                                'i',
                                'j',
                                'k',
                                'l',
                                'm',
                                'n',
                                'o',
                                'p',
                                'q',
                                'r',
                                's',
                                't',
                                'u',
                                'v',
                                'w',
                                'x',
                                'y',
                                'z',
                                '{',
                                '|',
                                '}',
                                '~',
                                DROPPED};

static bool is_dash(uint32_t c)
{
    return c == '-' || (c >= 0x2010 && c <= 0x2015) || c == 0x2212 || c == 0x2043 || c == 0xFE58 ||
           c == 0xFE63;
}

static bool is_quotation_mark(uint32_t c)
{
    return (c >= 0x2018 && c <= 0x201F) || c == 0xAB || c == 0xBB || c == 0x2039 || c == 0x203A ||
           (c >= 0x2032 && c <= 0x2037) || c == 0x2BC || (c >= 0x300C && c <= 0x300F) ||
           (c >= 0x301D && c <= 0x301F);
}

static bool is_dropped(uint32_t c)
{
    if (c < 0x80)
        return ascii[c] == DROPPED;
    return (c >= 0x80 && c < 0xA0) || quote_is_mark(c) || is_quotation_mark(c) ||
           uc_is_property_white_space(c) || uc_is_property_default_ignorable_code_point(c);
}

/* Characters that look like others and that Unicode does not call compatible. */
static uint32_t look_alike(uint32_t c)
{
    static const uint32_t pairs[][2] = {
        {0xD7, 'x'},    {0x3002, '.'},    {0x2044, '/'},    {0x2215, '/'},    {0x223C, '~'},
        {0x301C, '~'},  {0x2A7D, 0x2264}, {0x2266, 0x2264}, {0x2A7E, 0x2265}, {0x2267, 0x2265},
        {0x2219, 0xB7}, {0x22C5, 0xB7},   {0x2022, 0xB7},   {0x30FB, 0xB7},   {0x2206, 0x3B4},
        {0x2715, 'x'},  {0x2236, ':'},    {0x3001, ','},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][0] == c)
            return pairs[i][1];
    return c;
}

/* Through the capital: ς and σ, ı and i have the same one. */
static uint32_t small(uint32_t c)
{
    return c < 0x80 ? (uint32_t)ascii_lower((char)c) : uc_tolower(uc_toupper(c));
}

/* --- compatible forms --- */

/* Appends what c is compatible with, in full. False: more than there is room for. */
static bool unfold(uint32_t c, int depth, uint32_t *forms, size_t *n)
{
    ucs4_t parts[UC_DECOMPOSITION_MAX_LENGTH];
    int tag, count = depth ? uc_decomposition(c, &tag, parts) : -1;
    if (count <= 0) {
        if (*n == FORMS_MAX)
            return false;
        forms[(*n)++] = c;
        return true;
    }
    for (int i = 0; i < count; i++)
        if (!unfold(parts[i], depth - 1, forms, n))
            return false;
    return true;
}

/* Writes c if it fits the room that is left. */
static bool put(struct quote_piece *out, uint32_t c, size_t room)
{
    char bytes[4];
    size_t n = str_utf8_put(bytes, c);
    if (out->n + n > room)
        return false;
    memcpy(out->p + out->n, bytes, n);
    out->n += n;
    return true;
}

static void put_simple(struct quote_piece *out, uint32_t c, size_t room)
{
    out->n = 0;
    if (!put(out, small(c), room))
        put(out, c, room);
}

/* Folds what is no ASCII character, into no more than room bytes, which are its own. */
static void fold(uint32_t c, size_t room, struct quote_piece *out)
{
    uint32_t forms[FORMS_MAX];
    size_t count = 0;
    out->n = 0;
    if (c == 0xDF || c == 0x1E9E) { /* ß and ẞ */
        put(out, 's', room);
        put(out, 's', room);
        return;
    }
    if (!unfold(look_alike(c), UNFOLD_DEPTH, forms, &count)) {
        put_simple(out, c, room);
        return;
    }
    if (count == 1 && is_dash(forms[0])) {
        put(out, '-', room);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t form = look_alike(forms[i]);
        if (is_dropped(form) || is_dash(form))
            continue;
        if (!put(out, small(form), room)) {
            put_simple(out, c, room);
            return;
        }
    }
}

/* Ideographs, kana and syllables of Hangul: each is its own form. */
static bool is_east_asian(uint32_t c)
{
    return (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xAC00 && c <= 0xD7A3) ||
           (c >= 0x3041 && c <= 0x3096) || (c >= 0x30A1 && c <= 0x30FA);
}

/* --- piece by piece --- */

/* Folds the character at f->at, and moves behind it. out->n == 0: it is dropped. */
static void fold_one(struct quote_fold *f, struct quote_piece *out)
{
    const char *p = f->text.p + f->at;
    out->begin = f->at;
    if ((unsigned char)*p < 0x80) {
        out->p[0] = ascii[(unsigned char)*p];
        out->n = out->p[0] != DROPPED;
        out->end = ++f->at;
        return;
    }
    size_t bytes = str_utf8_step(str_skip(f->text, f->at));
    ucs4_t c = 0xFFFD;
    if (bytes)
        u8_mbtouc_unsafe(&c, (const uint8_t *)p, bytes);
    out->end = f->at += bytes ? bytes : 1;
    if (c == 0xFFFD) {
        out->p[0] = QUOTE_BAD;
        out->n = 1;
    } else if (is_east_asian(c)) {
        memcpy(out->p, p, bytes);
        out->n = bytes;
    } else if (is_dropped(c)) {
        out->n = 0;
    } else {
        fold(c, bytes, out);
    }
}

/* The dash that waits: it is the next piece if a digit follows, which is then read once more. */
static void end_dash(struct quote_fold *f, struct quote_piece *out)
{
    if (ascii_is_digit(out->p[0])) {
        f->at = out->begin;
        *out = (struct quote_piece){.p = "-", .n = 1, .begin = f->dash, .end = f->dash_end};
    }
    f->dash = f->dash_end;
}

/* Whether a dash is kept is known at the next character that is not dropped. Several in a row are
 * one. */
bool quote_fold_next(struct quote_fold *f, struct quote_piece *out)
{
    while (f->at < f->text.n) {
        fold_one(f, out);
        if (out->n == 0)
            continue;
        if (out->n == 1 && out->p[0] == '-') {
            if (f->dash == f->dash_end) {
                f->dash = out->begin;
                f->dash_end = out->end;
            }
            continue;
        }
        if (f->dash != f->dash_end)
            end_dash(f, out);
        return true;
    }
    return false;
}

size_t quote_fold_ascii(struct quote_fold *f, char *out, size_t most)
{
    size_t n = 0, at = f->at;
    if (f->dash != f->dash_end)
        return 0;
    for (; n < most && at < f->text.n; at++) {
        unsigned char c = (unsigned char)f->text.p[at];
        if (c >= 0x80 || c == '-')
            break;
        out[n] = ascii[c];
        n += ascii[c] != DROPPED;
    }
    f->at = at;
    return n;
}

static bytes16 lower(bytes16 v)
{
    return v | (bytes16_within(v, 'A', 'Z') & 0x20);
}

/* A bit for each of the bytes, all of ASCII, that table ascii drops. */
static uint32_t dropped_of(bytes16 v)
{
    return bytes16_bits((v <= ' ') | (v == '"') | (v == '\'') | (v == '*') |
                        bytes16_within(v, '^', '`') | (v == 0x7F));
}

/* What is between the dropped bytes is copied, with up to 15 bytes behind it, which are overwritten
 * later: they stay within the room, since the text has another block. */
size_t quote_fold_block(struct quote_fold *f, char *out)
{
    const char *p = f->text.p + f->at;
    if (f->text.n - f->at < 2 * QUOTE_FOLD_BLOCK)
        return quote_fold_ascii(f, out, QUOTE_FOLD_BLOCK);
    if (f->dash != f->dash_end)
        return 0;
    bytes16 v = bytes16_load(p);
    uint32_t other = bytes16_bits((v < 0) | (v == '-'));
    size_t end = other ? (size_t)__builtin_ctz(other) : QUOTE_FOLD_BLOCK, n = 0;
    uint32_t ends = (dropped_of(v) & ((1u << end) - 1)) | 1u << end;
    for (size_t begin = 0; ends; ends &= ends - 1) {
        size_t to = (size_t)__builtin_ctz(ends);
        v = lower(bytes16_load(p + begin));
        memcpy(out + n, &v, sizeof v);
        n += to - begin;
        begin = to + 1;
    }
    f->at += end;
    return n;
}
