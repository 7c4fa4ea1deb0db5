#include "corpus/prose/tokens.h"

#include "base/bytes16.h"

/* Beyond ASCII eight bytes at a time; their top bits are counted by a multiplication. */
int64_t tokens_estimate(struct str s)
{
    const uint64_t tops = 0x8080808080808080u, ones = 0x0101010101010101u;
    uint64_t high = 0, inner = 0, four = 0;
    for (size_t i = 0; i < s.n; i += 8) {
        i += bytes16_ascii(s.p + i, s.n - i);
        uint64_t w = 0;
        memcpy(&w, s.p + i, s.n - i < 8 ? s.n - i : 8);
        uint64_t top = w & tops;
        if (!top)
            continue;
        uint64_t second = (w << 1) & tops, third = (w << 2) & tops, fourth = (w << 3) & tops;
        high += ((top >> 7) * ones) >> 56;
        inner += (((top & ~second) >> 7) * ones) >> 56;
        four += (((top & second & third & fourth) >> 7) * ones) >> 56;
    }
    return (int64_t)((s.n - high) / 3 + 1 + (high - inner) + four);
}

/* --- what fits: counted in thirds of a token, of which 3 * most - 1 are left --- */

#define BLOCK 64

static int64_t cost_of(char c)
{
    static const unsigned char costs[16] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 3, 3, 3, 6};
    return costs[(unsigned char)c >> 4];
}

static inline bytes16 costs_of(bytes16 v)
{
    bytes16 high = v < 0, inner = v < -64, four = high & (v >= -16); /* 0 or -1 */
    return 1 - high - high + inner + inner + inner - four - four - four;
}

static inline int64_t cost_of_block(const char *p)
{
    bytes16 a = bytes16_load(p), b = bytes16_load(p + 16), c = bytes16_load(p + 32),
            d = bytes16_load(p + 48);
    if (!bytes16_bits((a | b | c | d) < 0))
        return BLOCK;
    return bytes16_sum(costs_of(a) + costs_of(b) + costs_of(c) + costs_of(d));
}

size_t tokens_fit(struct str s, int64_t most)
{
    int64_t left = 3 * most - 1, cost;
    size_t i = 0;
    for (; s.n - i >= BLOCK && (cost = cost_of_block(s.p + i)) <= left; i += BLOCK)
        left -= cost;
    for (; i < s.n && (cost = cost_of(s.p[i])) <= left; i++)
        left -= cost;
    return i;
}

size_t tokens_fit_end(struct str s, int64_t most)
{
    int64_t left = 3 * most - 1, cost;
    size_t i = s.n;
    for (; i >= BLOCK && (cost = cost_of_block(s.p + i - BLOCK)) <= left; i -= BLOCK)
        left -= cost;
    for (; i > 0 && (cost = cost_of(s.p[i - 1])) <= left; i--)
        left -= cost;
    while (i < s.n && i > 0 && ((unsigned char)s.p[i] & 0xC0) == 0x80) /* of one that is too much */
        i++;
    return s.n - i;
}
