/* sample_random.h -- random numbers that depend on the seed only: the same on every machine and in
 * every version, unlike the loop's. (SplitMix64.) */
#ifndef TOOL_SAMPLE_RANDOM_H
#define TOOL_SAMPLE_RANDOM_H

#include <stdint.h>

struct sample_random {
    uint64_t state;
};

static inline uint64_t sample_random_next(struct sample_random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A stream of its own for every seed and number. */
static inline struct sample_random sample_random_stream(uint64_t seed, uint64_t number)
{
    struct sample_random r = {seed};
    r.state = sample_random_next(&r) ^ (number * 0xd1342543de82ef95u);
    r.state = sample_random_next(&r);
    return r;
}

/* 0 to below - 1; the upper half of the bits times below, so that no division is needed. */
static inline unsigned sample_random_below(struct sample_random *r, unsigned below)
{
    return (unsigned)(((sample_random_next(r) >> 32) * below) >> 32);
}
#endif
