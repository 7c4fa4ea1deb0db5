/* Searches beside a comparison of everything with everything. */
#include "engine/vectors/index_fixture.h"
#include "tests/tap.h"

#define DIMENSION 96
#define SEGMENT   4096
#define POINTS    24000 /* more than INDEX_EXACT_ROWS */
#define K         10
#define QUERIES   60

static float *vectors; /* of length one */

struct judge {
    bool (*fits)(uint64_t owner);
    uint64_t owners[QUERIES][K]; /* the best, in order */
    float scores[QUERIES][K];
};

static bool
    off_topic; /* queries that are near nothing: the nearest are hardly nearer than others */

static void query_vector(size_t q, float *out)
{
    uint64_t seed = q + 4711;
    for (size_t i = 0; off_topic && i < DIMENSION; i++)
        out[i] = next_normal(&seed);
    if (off_topic)
        return;
    topic_vector(1000000 + q * 31, DIMENSION, out);
}

static void make_vectors(void)
{
    struct code c;
    float raw[DIMENSION];
    code_init(&c, kernel_best(), DIMENSION);
    vectors = check_memory(malloc(POINTS * DIMENSION * sizeof(*vectors)));
    for (size_t i = 0; i < POINTS; i++) {
        topic_vector(i, DIMENSION, raw);
        check(code_normalise(&c, raw, vectors + i * DIMENSION) == 0);
    }
    code_release(&c);
}

static bool fits_all(uint64_t owner)
{
    (void)owner;
    return true;
}

static void judge_all(struct judge *j, bool (*fits)(uint64_t owner))
{
    struct code c;
    float raw[DIMENSION], q[DIMENSION];
    code_init(&c, kernel_best(), DIMENSION);
    j->fits = fits;
    for (size_t n = 0; n < QUERIES; n++) {
        size_t count = 0;
        query_vector(n, raw);
        check(code_normalise(&c, raw, q) == 0);
        for (uint64_t i = 0; i < POINTS; i++) {
            if (!fits(i))
                continue;
            float score = c.kernel->dot(q, vectors + i * DIMENSION, DIMENSION);
            size_t at = count < K ? count++ : K;
            for (; at > 0 && (at == K || score > j->scores[n][at - 1]); at--)
                if (at < K) {
                    j->scores[n][at] = j->scores[n][at - 1];
                    j->owners[n][at] = j->owners[n][at - 1];
                } else if (score <= j->scores[n][K - 1]) {
                    break;
                }
            if (at < K) {
                j->scores[n][at] = score;
                j->owners[n][at] = i;
            }
        }
    }
    code_release(&c);
}

/* The share of the best that are found; -1: a hit that may not be, or hits out of order. */
static double recall(struct index *x, const struct judge *j, const struct point_filter *filter,
                     bool exact, bool *approximate)
{
    struct point_hit hits[K];
    struct points_answer answer;
    const char *why = "";
    float q[DIMENSION];
    int found = 0;
    for (size_t n = 0; n < QUERIES; n++) {
        query_vector(n, q);
        struct points_query query = {
            .space = {NULL, DIMENSION}, .vector = q, .k = K, .filter = filter, .exact = exact};
        check(index_search(x, &query, hits, &answer, &why) == 0);
        if (answer.count != K)
            return -1;
        *approximate = answer.approximate;
        for (size_t i = 0; i < K; i++) {
            if (!j->fits(hits[i].point.owner) || (i && hits[i].score > hits[i - 1].score))
                return -1;
            for (size_t k = 0; k < K; k++)
                found += j->owners[n][k] == hits[i].point.owner;
        }
    }
    return found / (double)(QUERIES * K);
}

static struct judge judge; /* of all points */

static void test_recall(struct index *x)
{
    bool approximate;
    double r = recall(x, &judge, NULL, false, &approximate);
    ok(r >= 0.99 && approximate, "%d points by codes: recall@10 is %.4f", POINTS, r);
    r = recall(x, &judge, NULL, true, &approximate);
    ok(r >= 0.999 && !approximate, "exactly: %.4f", r);
}

static void test_recall_off_topic(struct index *x)
{
    static struct judge hard;
    bool approximate;
    off_topic = true;
    judge_all(&hard, fits_all);
    double r = recall(x, &hard, NULL, false, &approximate);
    ok(r >= 0.97 && approximate, "queries that are near nothing, by codes: %.4f", r);
    r = recall(x, &hard, NULL, true, &approximate);
    ok(r >= 0.999, "exactly: %.4f", r);
    off_topic = false;
}

static bool fits_few(uint64_t owner)
{
    return owner % 20 == 3;
}

static bool fits_most(uint64_t owner)
{
    return owner % 13 >= 1;
}

static void test_recall_with_filter(struct index *x)
{
    static struct judge few, most;
    bool approximate;
    uint16_t journal = 3;
    judge_all(&few, fits_few);
    judge_all(&most, fits_most);
    struct point_filter filter = {.journals = &journal, .journal_count = 1};
    double r = recall(x, &few, &filter, false, &approximate);
    ok(r >= 0.999 && !approximate, "a filter that leaves 5 %%: %.4f", r);
    filter = (struct point_filter){.year_from = 2001};
    r = recall(x, &most, &filter, false, &approximate);
    ok(r >= 0.99 && approximate, "one that leaves 92 %%, by codes: %.4f", r);
}

static void test_kernels_agree(struct index *x)
{
    struct index_view *v;
    const char *why = "";
    struct point_hit a[100], b[100];
    struct points_answer answer, other;
    struct point_filter filter = {.year_from = 2002, .year_to = 2010, .without = 1};
    float q[DIMENSION];
    int wrong = 0;
    check(index_view_get(x, &v, &why) == 0);
    for (size_t n = 0; n < 20; n++) {
        query_vector(n, q);
        for (size_t way = 0; way < 4; way++) {
            struct points_query query = {.space = {NULL, DIMENSION},
                                         .vector = q,
                                         .k = way % 2 ? 100 : 7,
                                         .exact = n % 5 == 0,
                                         .filter = way / 2 ? &filter : NULL};
            check(view_search(v, &kernel_plain, &query, a, &answer, &why) == 0);
            check(view_search(v, kernel_best(), &query, b, &other, &why) == 0);
            wrong += answer.count != query.k || other.count != query.k;
            for (size_t i = 0; i < query.k; i++)
                wrong += a[i].point.owner != b[i].point.owner ||
                         memcmp(&a[i].score, &b[i].score, sizeof(float)) != 0;
        }
    }
    is_int(wrong, 0, "plain code answers as %s does, to the last bit", kernel_best()->name);
    index_view_put(v);
}

static size_t among(struct index *x, struct point_filter filter)
{
    static struct point_hit hits[POINTS_HITS_MAX];
    struct points_answer answer;
    const char *why = "";
    float q[DIMENSION];
    query_vector(1, q);
    struct points_query query = {
        .space = {NULL, DIMENSION}, .vector = q, .k = POINTS_HITS_MAX, .filter = &filter};
    check(index_search(x, &query, hits, &answer, &why) == 0);
    size_t expected = answer.among < POINTS_HITS_MAX ? answer.among : POINTS_HITS_MAX;
    check(answer.count == expected);
    for (size_t i = 0; i < answer.count; i++) {
        const struct point *p = &hits[i].point;
        check(p->tags.year >= filter.year_from &&
              (!filter.year_to || p->tags.year <= filter.year_to));
        check(p->tags.journal == p->owner % 20 && p->tags.year == 2000 + p->owner % 13);
    }
    return answer.among;
}

static void test_filters(struct index *x)
{
    static uint64_t owners[20000];
    uint16_t journals[] = {0, 19, 65535};
    is_int((int64_t)among(x, (struct point_filter){.year_to = 0}), POINTS, "a filter of nothing");
    is_int((int64_t)among(x, (struct point_filter){.year_from = 2012}), POINTS / 13, "years from");
    is_int((int64_t)among(x, (struct point_filter){.year_to = 2000}), POINTS / 13 + 1, "years to");
    is_int((int64_t)among(x, (struct point_filter){.journals = journals, .journal_count = 3}),
           POINTS / 10, "journals");
    is_int((int64_t)among(x, (struct point_filter){.without = 1}), POINTS - POINTS / 7 - 1,
           "without a flag");
    is_int((int64_t)among(x, (struct point_filter){.without = 2}), POINTS, "that none has");
    for (size_t i = 0; i < 20000; i++)
        owners[i] = 7 * i; /* the last of them are not there; 0, 7, … have the flag */
    struct point_filter f = {.without = 1, .unless = owners, .unless_count = 2};
    is_int((int64_t)among(x, f), POINTS - POINTS / 7 - 1 + 2, "unless of some owners");
    f.unless_count = 20000;
    is_int((int64_t)among(x, f), POINTS, "or of many");
    f = (struct point_filter){.owners = owners, .owner_count = 3};
    is_int((int64_t)among(x, f), 3, "of few owners");
    f.owner_count = 20000;
    is_int((int64_t)among(x, f), POINTS / 7 + 1, "of many owners, of whom most have no points");
    f.owner_count = 0;
    is_int((int64_t)among(x, f), 0, "of no owners");
    f = (struct point_filter){.owners = owners, .owner_count = 100, .without = 1};
    is_int((int64_t)among(x, f), 0, "all that is asked for must hold");
}

static void test_refusals(struct index *x)
{
    struct point_hit hits[1];
    struct points_answer answer;
    const char *why = "";
    float q[DIMENSION] = {0};
    struct points_query query = {.space = {NULL, DIMENSION}, .vector = q, .k = 1};
    is_int(index_search(x, &query, hits, &answer, &why), ERR_INVALID, "a query of zeros");
    q[0] = 1;
    query.k = 0;
    is_int(index_search(x, &query, hits, &answer, &why), ERR_INVALID, "no hits asked for");
    query.k = POINTS_HITS_MAX + 1;
    is_int(index_search(x, &query, hits, &answer, &why), ERR_INVALID, "too many");
    query.k = 1;
    struct point_filter filter = {.owners = (uint64_t[]){1}, .owner_count = POINTS_OWNERS_MAX + 1};
    query.filter = &filter;
    is_int(index_search(x, &query, hits, &answer, &why), ERR_INVALID, "too long a list");
}

static void test_empty(const struct fixture *f)
{
    struct index *x = fixture_open(f);
    struct point_hit hits[3];
    struct points_answer answer;
    const char *why = "";
    float q[DIMENSION] = {1};
    struct points_query query = {.space = {NULL, DIMENSION}, .vector = q, .k = 3};
    is_int(index_search(x, &query, hits, &answer, &why), 0, "an empty index can be searched");
    is_int((int64_t)answer.count, 0, "and has nothing");
    index_close(x);
}

int main(void)
{
    struct fixture f;
    const char *why = "";
    fixture_begin(&f);
    fixture_create(&f, DIMENSION, SEGMENT);
    test_empty(&f);
    make_vectors();
    judge_all(&judge, fits_all);
    struct index_writer *w = fixture_writer(&f);
    fixture_fill(w, DIMENSION, 0, POINTS);
    struct index *x = fixture_open(&f);
    struct index_info info;
    check(index_info(x, &info, &why) == 0);
    ok(info.points == POINTS && info.wants_compaction, "without a mean compaction is wanted");
    is_int(index_compact(w, WAIT_MS, &why), 0, "it is done");
    check(index_info(x, &info, &why) == 0);
    ok(info.points == POINTS && !info.wants_compaction, "and wanted no more");
    test_recall(x);
    test_recall_off_topic(x);
    test_recall_with_filter(x);
    test_kernels_agree(x);
    test_filters(x);
    test_refusals(x);
    index_close(x);
    index_writer_close(w);
    fixture_end(&f);
    free(vectors);
    return tap_done();
}
