#include "engine/vectors/code.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/vectors/points.h"

#define ROUNDS      3
#define SMALL_MOST  127.0f
#define QUERY_MOST  2047.0f
#define HALF_SQRT_2 0.70710678f

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* splitmix64, of a constant seed: the rotation is the same in every file and process. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void code_init(struct code *c, const struct kernel *k, size_t dimension)
{
    *c = (struct code){.kernel = k,
                       .dimension = dimension,
                       .floats = round_up(dimension, 8),
                       .small = round_up(dimension, 32),
                       .small_bytes = round_up(dimension, 32) + sizeof(float),
                       .bytes = round_up(dimension, 64) / 8};
    c->signs = check_memory(calloc(c->floats * ROUNDS, sizeof(float)));
    c->mean = check_memory(calloc(c->floats, sizeof(float)));
    uint64_t state = 0x6D696C6C72616365u, bits = 0;
    for (size_t i = 0; i < c->floats * ROUNDS; i++) {
        bits = i % 64 ? bits >> 1 : next_random(&state);
        c->signs[i] = bits & 1 ? 1.0f : -1.0f;
    }
}

void code_release(struct code *c)
{
    free(c->signs);
    free(c->mean);
}

int code_normalise(const struct code *c, const float *v, float *out)
{
    double sum = 0;
    for (size_t i = 0; i < c->dimension; i++)
        sum += (double)v[i] * (double)v[i];
    if (!isfinite(sum) || sum < 1e-30)
        return ERR_INVALID;
    double scale = 1 / sqrt(sum);
    for (size_t i = 0; i < c->dimension; i++)
        out[i] = (float)(v[i] * scale);
    memset(out + c->dimension, 0, (c->floats - c->dimension) * sizeof(float));
    return 0;
}

/* Turns each pair from the two halves by an eighth of a circle. The middle one of an odd number
 * stays. */
static void turn_halves(float *v, size_t n)
{
    size_t half = n / 2;
    float *far = v + (n - half);
    for (size_t i = 0; i < half; i++) {
        float a = v[i], b = far[i];
        v[i] = (a + b) * HALF_SQRT_2;
        far[i] = (a - b) * HALF_SQRT_2;
    }
}

void code_rotate(const struct code *c, const float *v, float *out)
{
    size_t n = c->dimension, power = 8;
    while (power * 2 <= n)
        power *= 2;
    memcpy(out, v, c->floats * sizeof(float));
    for (size_t round = 0; round < ROUNDS; round++) {
        const float *signs = c->signs + round * c->floats;
        for (size_t i = 0; i < n; i++)
            out[i] *= signs[i];
        c->kernel->hadamard(out, power);
        if (power == n)
            continue;
        turn_halves(out, n);
        c->kernel->hadamard(out + n - power, power);
    }
}

void code_signs(const struct code *c, const float *rotated, uint8_t *out)
{
    memset(out, 0, c->bytes);
    for (size_t i = 0; i < c->dimension; i++)
        out[i / 8] |= (uint8_t)((rotated[i] > c->mean[i]) << i % 8);
}

/* Where a row's bit is not the sign of the query's number, that number is missing from the sum. */
void code_table(const struct code *c, const float *rotated, uint8_t *out)
{
    size_t groups = c->bytes * 2;
    size_t most = CODE_COST_MOST / groups;
    float parts[POINTS_DIMENSION_MAX + 64] = {0}, widest = 0;
    most = most < KERNEL_TABLE_MOST ? most : KERNEL_TABLE_MOST;
    for (size_t i = 0; i < c->dimension; i++)
        parts[i] = rotated[i] - c->mean[i];
    for (size_t g = 0; g < groups; g++) {
        const float *p = parts + 4 * g;
        float width = fabsf(p[0]) + fabsf(p[1]) + fabsf(p[2]) + fabsf(p[3]);
        widest = width > widest ? width : widest;
    }
    float times = widest > 0 ? (float)most / widest : 0;
    for (size_t g = 0; g < groups; g++)
        for (unsigned bits = 0; bits < 16; bits++) {
            float missing = 0;
            for (unsigned i = 0; i < 4; i++) {
                float part = parts[4 * g + i];
                missing += (part > 0) == (bits >> i & 1) ? 0 : fabsf(part);
            }
            out[16 * g + bits] = (uint8_t)(missing * times + 0.5f);
        }
}

static float most_of(const struct code *c, const float *v)
{
    float most = 0;
    for (size_t i = 0; i < c->dimension; i++)
        most = fabsf(v[i]) > most ? fabsf(v[i]) : most;
    return most > 0 ? most : 1;
}

/* To the nearest; halves away from zero. */
static int nearest(float v)
{
    return (int)(v + (v < 0 ? -0.5f : 0.5f));
}

void code_small(const struct code *c, const float *rotated, int8_t *out)
{
    float most = most_of(c, rotated), times = SMALL_MOST / most, scale = most / SMALL_MOST;
    for (size_t i = 0; i < c->dimension; i++)
        out[i] = (int8_t)nearest(rotated[i] * times);
    memset(out + c->dimension, 0, c->small - c->dimension);
    memcpy(out + c->small, &scale, sizeof(scale));
}

float code_small_scale(const struct code *c, const int8_t *small)
{
    float scale;
    memcpy(&scale, small + c->small, sizeof(scale));
    return scale;
}

float code_query(const struct code *c, const float *rotated, int16_t *out)
{
    float most = most_of(c, rotated), times = QUERY_MOST / most;
    for (size_t i = 0; i < c->dimension; i++)
        out[i] = (int16_t)nearest(rotated[i] * times);
    memset(out + c->dimension, 0, (c->small - c->dimension) * sizeof(*out));
    return most / QUERY_MOST;
}
