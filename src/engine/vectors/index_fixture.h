/* index_fixture.h -- what tests of the index share: a file of their own, and made-up vectors. */
#ifndef ENGINE_VECTORS_INDEX_FIXTURE_H
#define ENGINE_VECTORS_INDEX_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/vectors/index_private.h"

#define WAIT_MS 20000

static inline uint64_t next_bits(uint64_t *seed)
{
    uint64_t z = *seed += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline float next_normal(uint64_t *seed) /* nearly: a sum of four */
{
    float sum = 0;
    uint64_t bits = next_bits(seed);
    for (int i = 0; i < 4; i++, bits >>= 16)
        sum += (float)(bits & 0xFFFF) / 65536.0f - 0.5f;
    return sum * 1.7f;
}

/* Texts of one topic are near each other, and nearer to those of the same few subtopics; all share
 * a part, as those of real models do. */
static inline void topic_vector(uint64_t number, size_t dimension, float *out)
{
    uint64_t common = 77, topic = number % 50 + 1000, sub = number % 700 + 9000;
    uint64_t own = number * 7919 + 1;
    for (size_t i = 0; i < dimension; i++)
        out[i] = 0.5f * next_normal(&common) + 0.7f * next_normal(&topic) +
                 0.5f * next_normal(&sub) + 0.5f * next_normal(&own);
}

struct fixture {
    char folder[64], path[96];
};

static inline void fixture_begin(struct fixture *x)
{
    const char *base = getenv("TMPDIR");
    snprintf(x->folder, sizeof(x->folder), "%s/millrace-index.XXXXXX", base ? base : "/tmp");
    check(mkdtemp(x->folder));
    snprintf(x->path, sizeof(x->path), "%s/points", x->folder);
}

static inline void fixture_end(struct fixture *x)
{
    static const char *const ends[] = {"", ".lock", ".compact", ".other", ".other.lock"};
    char name[128];
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        snprintf(name, sizeof(name), "%s%s", x->path, ends[i]);
        unlink(name);
    }
    check(rmdir(x->folder) == 0);
}

static inline void fixture_create(const struct fixture *x, uint32_t dimension, uint32_t segment)
{
    const char *why = "";
    struct index_spec spec = {.model = "made-up", .dimension = dimension, .segment_rows = segment};
    int err = index_create(x->path, &spec, &why);
    if (err)
        fprintf(stderr, "index_create: %s: %s\n", err_name(err), why);
    check(!err);
}

static inline struct index *fixture_open(const struct fixture *x)
{
    struct index *index;
    const char *why = "";
    int err = index_open(x->path, &index, &why);
    if (err)
        fprintf(stderr, "index_open: %s: %s\n", err_name(err), why);
    check(!err);
    return index;
}

static inline struct index_writer *fixture_writer(const struct fixture *x)
{
    struct index_writer *w;
    const char *why = "";
    int err = index_writer_open(x->path, &w, &why);
    if (err)
        fprintf(stderr, "index_writer_open: %s: %s\n", err_name(err), why);
    check(!err);
    return w;
}

/* Points `first` … of one part each, whose vectors and tags follow from their numbers. */
static inline void fixture_fill(struct index_writer *w, size_t dimension, uint64_t first,
                                size_t count)
{
    enum { STEP = 1000 };
    struct point *points = check_memory(calloc(STEP, sizeof(*points)));
    float *vectors = check_memory(calloc(STEP * dimension, sizeof(*vectors)));
    while (count) {
        size_t n = count < STEP ? count : STEP;
        const char *why = "";
        for (size_t i = 0; i < n; i++) {
            uint64_t number = first + i;
            points[i] = (struct point){.owner = number,
                                       .version = 1,
                                       .tags = {.flags = number % 7 == 0,
                                                .journal = (uint16_t)(number % 20),
                                                .year = (uint16_t)(2000 + number % 13)}};
            topic_vector(number, dimension, vectors + i * dimension);
        }
        struct points_change c = {
            .space = {NULL, dimension}, .points = points, .vectors = vectors, .count = n};
        int err = index_put(w, &c, WAIT_MS, &why);
        if (err)
            fprintf(stderr, "index_put: %s: %s\n", err_name(err), why);
        check(!err);
        first += n;
        count -= n;
    }
    free(points);
    free(vectors);
}
#endif
