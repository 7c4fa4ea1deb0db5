#include "tool/sim/sim_embed.h"

#include <math.h>

#include "base/json.h"
#include "tests/tap.h"

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static double cosine(const char *one, const char *two, size_t n)
{
    static float a[SIM_DIMENSIONS_MAX], b[SIM_DIMENSIONS_MAX];
    sim_embed(str_of(one), a, n);
    sim_embed(str_of(two), b, n);
    return dot(a, b, n);
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-4;
}

static void test_length(void)
{
    const char *texts[] = {"", "word", "...", "many words are in this longer text", "石墨烯"};
    int wrong = 0;
    for (size_t i = 0; i < 5; i++)
        for (size_t n = 1; n <= SIM_DIMENSIONS_MAX; n *= 4)
            wrong += !near(cosine(texts[i], texts[i], n), 1);
    is_int(wrong, 0, "every vector has length one");
}

static void test_nearness(void)
{
    const char *a = "nickel catalysts split water in alkaline media";
    const char *b = "water is split by catalysts of nickel";
    const char *c = "a history of medieval trade routes across Europe";
    double ab = cosine(a, b, 256), ac = cosine(a, c, 256);
    ok(ab > 0.4, "shared words make texts near (%.2f)", ab);
    ok(fabs(ac) < 0.25, "other words do not (%.2f)", ac);
    ok(near(cosine("Nickel WATER", "water, nickel", 256), 1), "case and order do not matter");
    ok(cosine("石墨烯电池", "电池中的石墨烯", 256) > 0.3, "Chinese texts share pairs");
}

static double nearness(const struct sim_idf *idf, const char *one, const char *two, size_t n)
{
    static float a[SIM_DIMENSIONS_MAX], b[SIM_DIMENSIONS_MAX];
    memset(a, 0, sizeof(a));
    memset(b, 0, sizeof(b));
    sim_embed_add(idf, str_of(one), a, n);
    sim_embed_add(idf, str_of(two), b, n);
    sim_embed_finish(a, n);
    sim_embed_finish(b, n);
    return dot(a, b, n);
}

static void test_idf(void)
{
    struct sim_idf *idf = sim_idf_new();
    for (int i = 0; i < 500; i++)
        sim_idf_learn(idf, STR("the results of this study show that the method is better"));
    sim_idf_learn(idf, STR("perovskite cells"));
    const char *a = "this study is of perovskite cells", *b = "perovskite cells were made";
    const char *c = "this study is of medieval trade";
    for (size_t n = 256; n <= 768; n += 512) {
        double near_by = nearness(idf, a, b, n), far = nearness(idf, a, c, n);
        ok(near_by > far + 0.2, "%zu: rare words say more than frequent ones (%.2f, %.2f)", n,
           near_by, far);
        near_by = nearness(NULL, "deep neural networks", "deep neural networks learn", n);
        far = nearness(NULL, "deep neural networks", "neural learn networks deep", n);
        ok(near_by > far + 0.05, "pairs of words count (%.2f, %.2f)", near_by, far);
        ok(near(nearness(NULL, "Deep networks", "NETWORKS deep", n), 1), "in either order");
        ok(fabs(nearness(idf, "alpha beta gamma", "one two three", n)) < 0.25, "others are far");
        ok(near(nearness(idf, "", "", n), 1), "also no text has a length");
    }
    float both[256] = {0}, parts[256] = {0};
    sim_embed_add(idf, STR("solar"), parts, 256);
    sim_embed_add(idf, STR("perovskite cells"), parts, 256);
    sim_embed_add(idf, STR("perovskite cells"), both, 256);
    sim_embed_add(idf, STR("solar"), both, 256);
    sim_embed_finish(both, 256);
    sim_embed_finish(parts, 256);
    ok(near(dot(both, parts, 256), 1), "texts add up");
    sim_idf_free(idf);
}

static void test_text(void)
{
    struct arena a;
    struct buf out;
    arena_init(&a);
    buf_init(&out);
    float v[64], worst = 0;
    sim_embed(STR("some words to embed"), v, 64);
    sim_embed_write(v, 64, &out);
    const struct json *j;
    check(json_parse(&a, buf_str(&out), &j, NULL) == 0);
    is_int(j->count, 64, "an array of all the numbers");
    size_t i = 0;
    json_each (number, j) {
        float differs = fabsf((float)number->d - v[i++]);
        worst = differs > worst ? differs : worst;
    }
    ok(worst < 1e-7f, "which read back");
    buf_clear(&out);
    sim_embed_write((float[]){1.0f, -1.0f, 0.0f, -0.5f}, 4, &out);
    is_str(buf_str(&out), STR("[1.00000000,-1.00000000,0.00000000,-0.50000000]"), "signs and ones");
    buf_release(&out);
    arena_release(&a);
}

static void test_base64(void)
{
    struct buf out;
    buf_init(&out);
    sim_embed_write_base64((float[]){1.0f}, 1, &out);
    is_str(buf_str(&out), STR("\"AACAPw==\""), "four bytes");
    buf_clear(&out);
    sim_embed_write_base64((float[]){1.0f, -2.0f}, 2, &out);
    is_str(buf_str(&out), STR("\"AACAPwAAAMA=\""), "eight bytes");
    buf_clear(&out);
    sim_embed_write_base64((float[]){1.0f, -2.0f, 0.5f}, 3, &out);
    is_str(buf_str(&out), STR("\"AACAPwAAAMAAAAA/\""), "twelve bytes");
    buf_release(&out);
}

int main(void)
{
    test_length();
    test_nearness();
    test_idf();
    test_text();
    test_base64();
    return tap_done();
}
