#include "engine/vectors/code.h"

#include "engine/vectors/index_fixture.h"
#include "tests/tap.h"

static const size_t dimensions[] = {8, 31, 33, 64, 96, 100, 256, 384, 768, 1000, 4096};

#define DIMENSIONS (sizeof(dimensions) / sizeof(*dimensions))
#define BLOCKS     5

static void test_same_costs(const struct kernel *a, const struct kernel *b)
{
    static uint8_t table[512 * 32], codes[512 * KERNEL_BLOCK * BLOCKS], code[512];
    uint16_t x[KERNEL_BLOCK * BLOCKS], y[KERNEL_BLOCK * BLOCKS];
    uint64_t seed = 1;
    int wrong = 0, plain = 0;
    for (size_t bytes = 8; bytes <= 512; bytes += 8) {
        uint64_t most = CODE_COST_MOST / (bytes * 2);
        most = most < KERNEL_TABLE_MOST ? most : KERNEL_TABLE_MOST;
        struct code c = {.bytes = bytes};
        for (size_t i = 0; i < bytes * 32; i++)
            table[i] = (uint8_t)(next_bits(&seed) % (most + 1));
        for (size_t row = 0; row < KERNEL_BLOCK * BLOCKS; row++) {
            for (size_t i = 0; i < bytes; i++)
                code[i] = (uint8_t)next_bits(&seed);
            code_put(&c, code, row, codes);
        }
        a->costs(table, codes, bytes, BLOCKS, x);
        b->costs(table, codes, bytes, BLOCKS, y);
        wrong += memcmp(x, y, sizeof(x)) != 0;
        for (size_t row = 0; row < KERNEL_BLOCK * BLOCKS; row++) {
            unsigned sum = 0;
            code_get(&c, codes, row, code);
            for (size_t i = 0; i < bytes; i++)
                sum += (unsigned)table[32 * i + (code[i] & 15)] +
                       (unsigned)table[32 * i + 16 + (code[i] >> 4)];
            plain += sum != x[row];
        }
    }
    is_int(wrong, 0, "both kernels find the same costs");
    is_int(plain, 0, "which are the sums of the table's numbers");
    memset(table, CODE_COST_MOST / 1024, sizeof(table));
    a->costs(table, codes, 512, BLOCKS, x);
    b->costs(table, codes, 512, BLOCKS, y);
    ok(x[0] == CODE_COST_MOST / 1024 * 1024 && y[0] == x[0], "the largest sum fits");
    memset(table, KERNEL_TABLE_MOST, sizeof(table));
    b->costs(table, codes, 32, BLOCKS, y);
    is_int(y[KERNEL_BLOCK], 64 * KERNEL_TABLE_MOST, "also of the largest numbers");
}

static void test_same_places(const struct kernel *a, const struct kernel *b)
{
    static uint16_t values[1000], x[1000], y[1000];
    uint64_t seed = 2;
    int wrong = 0;
    size_t found = 0;
    for (size_t i = 0; i < 1000; i++)
        values[i] = i % 3 ? (uint16_t)next_bits(&seed) : UINT16_MAX;
    for (size_t count = 0; count <= 1000; count += 37)
        for (uint32_t most = 0; most <= UINT16_MAX; most += 13107) {
            size_t n = a->at_most(values, count, (uint16_t)most, x);
            wrong += n != b->at_most(values, count, (uint16_t)most, y);
            wrong += memcmp(x, y, n * sizeof(*x)) != 0;
            found += n;
        }
    is_int(wrong, 0, "both find the same places");
    ok(found > 1000, "and some");
}

static void test_same_sums(const struct kernel *a, const struct kernel *b)
{
    static int16_t query[4096];
    static int8_t row[4096];
    static float u[4096], v[4096], w[4096];
    uint64_t seed = 3;
    int ints = 0, floats = 0, turned = 0;
    for (size_t n = 32; n <= 4096; n += 32) {
        for (size_t i = 0; i < n; i++) {
            query[i] = (int16_t)((int)(next_bits(&seed) % 4095) - 2047);
            row[i] = (int8_t)((int)(next_bits(&seed) % 255) - 127);
            u[i] = next_normal(&seed);
            v[i] = next_normal(&seed);
        }
        ints += a->dot_small(query, row, n) != b->dot_small(query, row, n);
        float x = a->dot(u, v, n - 8), y = b->dot(u, v, n - 8);
        floats += memcmp(&x, &y, sizeof(x)) != 0;
    }
    for (size_t n = 8; n <= 4096; n *= 2) {
        memcpy(w, v, sizeof(v));
        a->hadamard(w, n);
        memcpy(u, v, sizeof(v));
        b->hadamard(u, n);
        turned += memcmp(u, w, n * sizeof(*u)) != 0;
    }
    is_int(ints, 0, "the same integers");
    is_int(floats, 0, "the same floats, to the last bit");
    is_int(turned, 0, "the same transforms, to the last bit");
    for (size_t i = 0; i < 4096; i++) {
        query[i] = 2047;
        row[i] = 127;
    }
    is_int(a->dot_small(query, row, 4096), 2047 * 127 * 4096, "the largest sum fits");
}

static double angle_cosine(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void test_rotation(void)
{
    static float u[4096], v[4096], ru[4096], rv[4096];
    double worst = 0, most = 0;
    for (size_t d = 0; d < DIMENSIONS; d++) {
        struct code c;
        size_t n = dimensions[d];
        code_init(&c, kernel_best(), n);
        for (uint64_t i = 0; i < 5; i++) {
            topic_vector(i, n, ru);
            check(code_normalise(&c, ru, u) == 0);
            topic_vector(i + 50, n, ru);
            check(code_normalise(&c, ru, v) == 0);
            code_rotate(&c, u, ru);
            code_rotate(&c, v, rv);
            double apart = fabs(angle_cosine(u, v, n) - angle_cosine(ru, rv, n));
            worst = apart > worst ? apart : worst;
        }
        memset(u, 0, sizeof(u));
        u[n / 2] = 1;
        code_rotate(&c, u, ru);
        for (size_t i = 0; n >= 64 && i < n; i++) {
            double part = fabs((double)ru[i]) * sqrt((double)n);
            most = part > most ? part : most;
        }
        code_release(&c);
    }
    ok(worst < 1e-5, "angles stay as they are (%.1e)", worst);
    ok(most < 7, "what one dimension has is spread over all (%.1f times even)", most);
}

/* How well costs say cosines: 1 is as well as can be. */
static double correlation(const double *a, const double *b, size_t n)
{
    double sa = 0, sb = 0, aa = 0, bb = 0, ab = 0, m = (double)n;
    for (size_t i = 0; i < n; i++) {
        sa += a[i];
        sb += b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
        ab += a[i] * b[i];
    }
    return (ab - sa * sb / m) / sqrt((aa - sa * sa / m) * (bb - sb * sb / m));
}

static void test_sizes_of_a_vector(void)
{
    enum { N = 768, ROWS = 160 };
    static float u[N], r[N], v[N];
    static int16_t query[N];
    static int8_t small[N + 4];
    static uint8_t table[N * 4], code[N / 8], codes[N / 8 * ROWS];
    uint16_t costs[ROWS];
    double worst = 0, cosines[ROWS], negative[ROWS];
    struct code c;
    code_init(&c, kernel_best(), N);
    topic_vector(0, N, r);
    check(code_normalise(&c, r, u) == 0);
    code_rotate(&c, u, r);
    float scale = code_query(&c, r, query);
    code_table(&c, r, table);
    for (size_t i = 0; i < ROWS; i++) {
        topic_vector(i + 1, N, r);
        check(code_normalise(&c, r, v) == 0);
        cosines[i] = angle_cosine(u, v, N);
        code_rotate(&c, v, r);
        code_signs(&c, r, code);
        code_put(&c, code, i, codes);
        code_small(&c, r, small);
        double found = (double)c.kernel->dot_small(query, small, c.small) * (double)scale *
                       (double)code_small_scale(&c, small);
        worst = fabs(found - cosines[i]) > worst ? fabs(found - cosines[i]) : worst;
    }
    ok(worst < 0.004, "int8 gives the cosine but for %.4f", worst);
    c.kernel->costs(table, codes, c.bytes, ROWS / KERNEL_BLOCK, costs);
    for (size_t i = 0; i < ROWS; i++)
        negative[i] = -(double)costs[i];
    double follow = correlation(cosines, negative, ROWS);
    ok(follow > 0.9, "costs of codes follow the cosines (correlation %.3f)", follow);
    memset(u, 0, sizeof(u));
    is_int(code_normalise(&c, u, v), ERR_INVALID, "zeros have no direction");
    u[5] = NAN;
    is_int(code_normalise(&c, u, v), ERR_INVALID, "nor has what is no number");
    u[5] = INFINITY;
    is_int(code_normalise(&c, u, v), ERR_INVALID, "nor what is infinite");
    u[5] = 1e-9f;
    ok(code_normalise(&c, u, v) == 0 && v[5] == 1, "a short one has");
    code_release(&c);
}

int main(void)
{
    const struct kernel *fast = kernel_avx2();
    ok(true, "kernel of this processor: %s", kernel_best()->name);
    test_same_costs(&kernel_plain, fast ? fast : &kernel_plain);
    test_same_places(&kernel_plain, fast ? fast : &kernel_plain);
    test_same_sums(&kernel_plain, fast ? fast : &kernel_plain);
    test_rotation();
    test_sizes_of_a_vector();
    return tap_done();
}
