#include "base/base64.h"

#define NONE 0x80 /* of characters that are no digit; digits have six bits */

/* The digit of each character, plus one: 0 is none. */
static const unsigned char digits[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

/* Its six bits, or NONE and more. */
static inline uint32_t digit_of(char c)
{
    return (uint32_t)digits[(unsigned char)c] - 1;
}

static size_t padding_of(struct str text)
{
    if (text.n == 0 || text.p[text.n - 1] != '=')
        return 0;
    return text.p[text.n - 2] == '=' ? 2 : 1;
}

size_t base64_bytes(struct str text)
{
    return text.n % 4 ? 0 : text.n / 4 * 3 - padding_of(text);
}

/* The last group, which has padding. Its digits have no bits that no byte takes. */
static bool decode_end(const char *p, size_t padding, unsigned char *out)
{
    uint32_t a = digit_of(p[0]), b = digit_of(p[1]), c = padding == 1 ? digit_of(p[2]) : 0;
    uint32_t three = a << 18 | b << 12 | c << 6;
    out[0] = (unsigned char)(three >> 16);
    if (padding == 1)
        out[1] = (unsigned char)(three >> 8);
    return (a | b | c) < NONE && (three & (padding == 1 ? 0xFF : 0xFFFF)) == 0;
}

bool base64_decode(struct str text, void *out)
{
    unsigned char *to = out;
    size_t padding = text.n % 4 ? 0 : padding_of(text), whole = text.n - (padding ? 4 : 0);
    uint32_t bad = text.n % 4 ? NONE : 0;
    for (size_t i = 0; i < whole && bad < NONE; i += 4, to += 3) {
        const char *p = text.p + i;
        uint32_t a = digit_of(p[0]), b = digit_of(p[1]), c = digit_of(p[2]), d = digit_of(p[3]);
        uint32_t three = a << 18 | b << 12 | c << 6 | d;
        bad = a | b | c | d;
        to[0] = (unsigned char)(three >> 16);
        to[1] = (unsigned char)(three >> 8);
        to[2] = (unsigned char)three;
    }
    return bad < NONE && (!padding || decode_end(text.p + whole, padding, to));
}
