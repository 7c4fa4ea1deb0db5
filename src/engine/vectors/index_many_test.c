/* Searches for thousands, among a hundred thousand, beside a comparison of everything with
 * everything. */
#include "engine/vectors/index_fixture.h"
#include "tests/tap.h"

#define DIMENSION 64
#define SEGMENT   16384
#define POINTS    100000
#define K         5000
#define QUERIES   3

static float *vectors; /* of length one */

struct scored {
    float score;
    uint32_t owner;
};

static int better_first(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

static void make_vectors(const struct code *c)
{
    float raw[DIMENSION];
    vectors = check_memory(malloc(POINTS * DIMENSION * sizeof(*vectors)));
    for (size_t i = 0; i < POINTS; i++) {
        topic_vector(i, DIMENSION, raw);
        check(code_normalise(c, raw, vectors + i * DIMENSION) == 0);
    }
}

/* The score that the k-th best has; every hit must be as good. */
static float score_at(const struct code *c, const float *raw, size_t k, bool half)
{
    float q[DIMENSION];
    size_t count = 0;
    struct scored *all = check_memory(malloc(POINTS * sizeof(*all)));
    check(code_normalise(c, raw, q) == 0);
    for (uint32_t i = 0; i < POINTS; i++)
        if (!half || i % 20 < 10)
            all[count++] =
                (struct scored){c->kernel->dot(q, vectors + i * DIMENSION, DIMENSION), i};
    qsort(all, count, sizeof(*all), better_first);
    float score = all[k - 1].score;
    free(all);
    return score;
}

static void query_vector(size_t n, float *out, bool off_topic)
{
    uint64_t seed = n + 4711;
    topic_vector(1000000 + n * 31, DIMENSION, out);
    for (size_t i = 0; off_topic && i < DIMENSION; i++)
        out[i] = next_normal(&seed);
}

static void test_recall(struct index *x, const struct code *c, size_t k, bool off_topic, bool half,
                        const char *what)
{
    static struct point_hit hits[POINTS_HITS_MAX];
    uint16_t journals[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct point_filter filter = {.journals = journals, .journal_count = 10};
    struct points_answer answer;
    float q[DIMENSION];
    size_t found = 0, wrong = 0;
    const char *why = "";
    for (size_t n = 0; n < QUERIES; n++) {
        query_vector(n, q, off_topic);
        struct points_query query = {
            .space = {NULL, DIMENSION}, .vector = q, .k = k, .filter = half ? &filter : NULL};
        check(index_search(x, &query, hits, &answer, &why) == 0);
        wrong += answer.count != k;
        float last = score_at(c, q, k, half);
        for (size_t i = 0; i < answer.count; i++) {
            found += hits[i].score >= last - 1e-6f;
            wrong += (i && hits[i].score > hits[i - 1].score) ||
                     (half && hits[i].point.owner % 20 >= 10);
        }
    }
    double recall = (double)found / (double)(QUERIES * k);
    ok(recall >= 0.99 && wrong == 0, "recall@%zu, %s: %.4f", k, what, recall);
}

int main(void)
{
    struct fixture f;
    struct code c;
    const char *why = "";
    fixture_begin(&f);
    fixture_create(&f, DIMENSION, SEGMENT);
    code_init(&c, kernel_best(), DIMENSION);
    make_vectors(&c);
    struct index_writer *w = fixture_writer(&f);
    fixture_fill(w, DIMENSION, 0, POINTS);
    check(index_compact(w, WAIT_MS, &why) == 0);
    struct index *x = fixture_open(&f);
    test_recall(x, &c, K, false, false, "of all");
    test_recall(x, &c, K, true, false, "for queries that are near nothing");
    test_recall(x, &c, K, false, true, "of half the journals");
    test_recall(x, &c, POINTS_HITS_MAX, false, false, "the most that can be asked for");
    test_recall(x, &c, 1000, false, false, "of all");
    index_close(x);
    index_writer_close(w);
    code_release(&c);
    fixture_end(&f);
    free(vectors);
    return tap_done();
}
