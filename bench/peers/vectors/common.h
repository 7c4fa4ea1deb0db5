/* common.h -- what all programs of bench/vectors do alike: vectors out of files, times, recall. For
 * C and C++. A folder has base.f32 (rows), queries.f32, and truth-ROWS.bin, the K nearest rows of
 * each query among the first ROWS; truth5-ROWS.bin: among those of which row % 20 == 3. */
#ifndef BENCH_VECTORS_COMMON_H
#define BENCH_VECTORS_COMMON_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define K        10
#define FILTERED 3     /* row % 20 */
#define ALIKE    1e-5f /* scores that differ by less are the same */

static inline double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Both clocks: of the wall, and of this thread's work, which others on the machine hardly touch. */
struct stopwatch {
    double wall, cpu;
};

static inline struct stopwatch watch_now(void)
{
    struct stopwatch w = {seconds_of(CLOCK_MONOTONIC), seconds_of(CLOCK_THREAD_CPUTIME_ID)};
    return w;
}

static inline struct stopwatch watch_since(struct stopwatch from)
{
    struct stopwatch now = watch_now();
    now.wall -= from.wall;
    now.cpu -= from.cpu;
    return now;
}

static inline const void *map_file(const char *folder, const char *name, size_t *bytes)
{
    char path[500];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st)) {
        perror(path);
        exit(1);
    }
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    close(fd);
    *bytes = (size_t)st.st_size;
    return p;
}

struct world {
    const float *base, *queries;
    const uint32_t *truth, *truth5;
    size_t rows, dimension, count; /* of queries */
};

static inline struct world world_of(const char *folder, size_t rows, size_t dimension)
{
    struct world w;
    size_t bytes;
    char name[64];
    w.rows = rows;
    w.dimension = dimension;
    w.base = (const float *)map_file(folder, "base.f32", &bytes);
    if (bytes < rows * dimension * sizeof(float)) {
        fprintf(stderr, "base.f32 has too few rows\n");
        exit(1);
    }
    w.queries = (const float *)map_file(folder, "queries.f32", &bytes);
    w.count = bytes / sizeof(float) / dimension;
    snprintf(name, sizeof(name), "truth-%zu.bin", rows);
    w.truth = (const uint32_t *)map_file(folder, name, &bytes);
    snprintf(name, sizeof(name), "truth5-%zu.bin", rows);
    w.truth5 = (const uint32_t *)map_file(folder, name, &bytes);
    return w;
}

static inline float score_of(const struct world *w, size_t query, uint32_t row)
{
    const float *a = w->queries + query * w->dimension, *b = w->base + row * w->dimension;
    double sum = 0;
    for (size_t i = 0; i < w->dimension; i++)
        sum += (double)a[i] * (double)b[i];
    return (float)sum;
}

/* How many of K rows are among the nearest, or as near as the last of those. */
static inline size_t hits_of(const struct world *w, const uint32_t *truth, size_t query,
                             const uint32_t *found, size_t count)
{
    size_t hits = 0;
    float last = score_of(w, query, truth[query * K + K - 1]);
    for (size_t i = 0; i < count; i++)
        hits += score_of(w, query, found[i]) >= last - ALIKE;
    return hits;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double share_of(double *values, size_t count, double share)
{
    size_t at = (size_t)((double)count * share);
    qsort(values, count, sizeof(*values), by_size);
    return values[at < count ? at : count - 1];
}

/* A search that is measured: the rows that it finds. */
typedef size_t (*search_fn)(void *arg, const float *query, uint32_t *found);

/* Each query once to warm up and for recall, then `rounds` times; prints members of a JSON object
 * that begin with `name`. */
static inline void measure(const struct world *w, const char *name, const uint32_t *truth,
                           search_fn search, void *arg, size_t rounds)
{
    uint32_t found[K];
    size_t hits = 0, at = 0, all = w->count * rounds;
    double *cpu = (double *)malloc(all * sizeof(double));
    double *wall = (double *)malloc(all * sizeof(double));
    for (size_t q = 0; q < w->count; q++) {
        size_t n = search(arg, w->queries + q * w->dimension, found);
        hits += hits_of(w, truth, q, found, n);
    }
    for (size_t r = 0; r < rounds; r++)
        for (size_t q = 0; q < w->count; q++, at++) {
            struct stopwatch from = watch_now();
            search(arg, w->queries + q * w->dimension, found);
            struct stopwatch took = watch_since(from);
            cpu[at] = took.cpu * 1e3;
            wall[at] = took.wall * 1e3;
        }
    printf("\"%s_recall\": %.4f, \"%s_p50_ms\": %.4f, \"%s_p99_ms\": %.4f, ", name,
           (double)hits / (double)(w->count * K), name, share_of(cpu, all, 0.5), name,
           share_of(cpu, all, 0.99));
    printf("\"%s_wall_p50_ms\": %.4f, \"%s_wall_p99_ms\": %.4f, ", name, share_of(wall, all, 0.5),
           name, share_of(wall, all, 0.99));
    free(cpu);
    free(wall);
}

static inline size_t resident_bytes(void)
{
    size_t pages = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*s %zu %zu", &pages, &shared) != 2)
        exit(1);
    fclose(f);
    return (pages - shared) *
           (size_t)sysconf(_SC_PAGESIZE); /* files that are mapped do not count */
}
#endif
