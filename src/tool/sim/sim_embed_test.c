#include "tool/sim/sim_embed.h"

#include <math.h>

#include "base/json.h"
#include "tests/tap.h"
#include "tool/sample/sample_paper.h"

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
    ok(near(cosine("Nickel WATER", "nickel water", 256), 1), "case does not matter");
    double turned = cosine("heart failure drug", "drug failure heart", 768);
    ok(turned > 0.6 && turned < 0.99, "pairs of words do (%.2f)", turned);
    ok(near(cosine("old catalysts", "old catalyst", 256), 1), "a plural does not");
    ok(cosine("virus", "viru", 768) < 0.5, "but not every s is a plural's");
    double prose = cosine("the results of this study", "the mice of this study", 768);
    ok(prose < 0.5, "words of grammar and of any paper's prose weigh little (%.2f)", prose);
    double grammar = cosine("gold in the sea", "the gold of a sea", 768);
    ok(grammar > 0.9, "so what says something decides (%.2f)", grammar);
    double chinese = cosine("石墨烯电池", "电池中的石墨烯", 256);
    ok(chinese > 0.5, "Chinese texts share characters and pairs (%.2f)", chinese);
    ok(fabs(cosine("石墨烯电池", "中世纪贸易路线", 768)) < 0.2, "or do not");
    ok(cosine("石墨烯", "烯墨石", 768) < 0.5, "characters alone are not enough");
}

/* The same on every machine: integers, then one division. */
static void test_bits(void)
{
    float v[8];
    uint32_t bits[8];
    uint64_t hash = 0;
    sim_embed(STR("Nickel catalysts of 2019 split water 石墨烯"), v, 8);
    memcpy(bits, v, sizeof bits);
    for (size_t i = 0; i < 8; i++)
        hash = (hash ^ bits[i]) * 0x100000001B3u;
    is_int((int64_t)hash, -4349847550458097804, "to the bit");
}

/* Papers of one theme are nearer to each other than to those of others. */
#define JOURNALS 12
#define PAPERS   20 /* of each */

static void test_sample(void)
{
    static float all[JOURNALS * PAPERS][SIM_DIMENSIONS_DEFAULT];
    struct buf text;
    buf_init(&text);
    for (size_t i = 0; i < JOURNALS; i++) {
        struct sample_random r = sample_random_stream(1, i);
        for (size_t n = 0; n < PAPERS; n++) {
            const struct sample_journal *journal =
                &sample_journals[i * (size_t)sample_journal_count / JOURNALS];
            struct sample_theme theme = sample_theme(&r, journal);
            buf_clear(&text);
            sample_title(&text, &theme);
            buf_add_char(&text, ' ');
            sample_abstract(&text, &theme);
            sim_embed(buf_str(&text), all[i * PAPERS + n], SIM_DIMENSIONS_DEFAULT);
        }
    }
    int same = 0;
    for (size_t i = 0; i < JOURNALS * PAPERS; i++) {
        size_t best = i;
        double best_dot = -1;
        for (size_t j = 0; j < JOURNALS * PAPERS; j++) {
            double d = j == i ? -1 : dot(all[i], all[j], SIM_DIMENSIONS_DEFAULT);
            best = d > best_dot ? j : best;
            best_dot = d > best_dot ? d : best_dot;
        }
        same += best / PAPERS == i / PAPERS;
    }
    int percent = 100 * same / (JOURNALS * PAPERS);
    ok(percent >= 60, "%d %% of papers have one of their journal nearest (by chance: 8 %%)",
       percent);
    buf_release(&text);
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
    test_bits();
    test_sample();
    test_text();
    test_base64();
    return tap_done();
}
