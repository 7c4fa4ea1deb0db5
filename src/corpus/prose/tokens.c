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
