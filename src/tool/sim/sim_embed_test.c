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
    test_text();
    test_base64();
    return tap_done();
}
