#include "corpus/number.h"

#include <math.h>
#include <stdio.h>

#include "base/time.h"
#include "tests/tap.h"

static const struct reading {
    const char *text;
    double value;
    const char *rest;
} readings[] = {
    {"5", 5, ""},
    {"5.2 mg", 5.2, " mg"},
    {"n = 1,234,567 cells", 1234567, " cells"},
    {"1,234.5", 1234.5, ""},
    {"1\u2009234\u2009567", 1234567, ""},
    {"1\u202f234,5", 1234.5, ""},
    {"1\u00a0234", 1234, ""},
    {"1 234", 1, " 234"},
    {"1.234,5", 1234.5, ""},
    {"1.234.567", 1234567, ""},
    {"1.234", 1.234, ""},
    {"3,5 mg", 3.5, " mg"},
    {"0,123", 0.123, ""},
    {"1,2,3", 1, ",2,3"},
    {"1,2345", 1.2345, ""},
    {"1234,567", 1234, ",567"},
    {"1,234,5", 1, ",234,5"},
    {"p = .05", 0.05, ""},
    {"0·05", 0.05, ""},
    {"2·10^3", 2000, ""},
    {"-3", -3, ""},
    {"−3.5", -3.5, ""},
    {"–3", -3, ""},
    {"p=-3", -3, ""},
    {"+3", 3, ""},
    {"±0.3", 0.3, ""},
    {"温度-5℃", -5, "℃"},
    {"1.2e3", 1200, ""},
    {"1.2E-3x", 1.2, "E-3x"},
    {"1.2 × 10^3", 1200, ""},
    {"1.2×10³ kg", 1200, " kg"},
    {"1.2 x 10^{-4}", 1.2e-4, ""},
    {"1.2 \\times 10^{-4}$", 1.2e-4, "$"},
    {"1.2×10⁻⁴", 1.2e-4, ""},
    {"1.2 × 10−4", 1.2e-4, ""},
    {"1.2 × 103", 1.2, " × 103"},
    {"10^-4", 1e-4, ""},
    {"10⁻⁴", 1e-4, ""},
    {"10^(5)", 1e5, ""},
    {"10-4", 10, "-4"},
    {"2⁵", 2, "⁵"},
    {"１２．５％", 12.5, "％"},
    {"－１２", -12, ""},
    {"3.5万人", 35000, "人"},
    {"2 亿", 2e8, ""},
    {"3千万", 3e7, ""},
    {"5千克", 5, "千克"},
    {"1.2 million people", 1.2e6, " people"},
    {"1.2 millionaires", 1.2, " millionaires"},
    {"50 %", 50, " %"},
    {"H2O at 20 °C", 20, " °C"},
    {"HbA1c 7.2", 7.2, ""},
    {"PM2.5: 35", 35, ""},
    {"β2 is 4", 4, ""},
    {"共12例", 12, "例"},
    {"000", 0, ""},
    {"-0.0", 0, ""},
    {"1e999 or 7", 7, ""},
    {"\xff\xfe 8\xff", 8, "\xff"},
    {"0.1", 0.1, ""},
    {"9007199254740993", 9007199254740993.0, ""},
    {"2.2250738585072014e-308", 2.2250738585072014e-308, ""},
};

static void reads(void)
{
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        const struct reading *r = &readings[i];
        double v = NAN;
        struct str rest = STR_NULL;
        bool got = number_read(str_of(r->text), &v, &rest);
        ok(got && v == r->value, "%s is %.17g, got %.17g", r->text, r->value, v);
        is_str(rest, str_of(r->rest), "behind %s", r->text);
    }
    static const char *const none[] = {"", "no number", "H2O", "-", ".", "m²", "1e999", "\xef\xbc"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        double v = 77;
        struct str rest = STR("as it was");
        ok(!number_read(str_of(none[i]), &v, &rest), "no number in \"%s\"", none[i]);
        ok(v == 77 && str_eq(rest, STR("as it was")), "and nothing is written");
    }
}

static void finds(void)
{
    static const struct {
        const char *text;
        double value;
        bool there;
    } cases[] = {
        {"between 5–10 mg", 10, true},
        {"between 5–10 mg", -10, false},
        {"between 5--10 mg", 10, true},
        {"COVID-19", 19, true},
        {"COVID-19", -19, false},
        {"5%-10%", 10, true},
        {"(5)-10 mg", 10, true},
        {"5℃–10℃", 10, true},
        {"5℃–10℃", -10, false},
        {"fell by −3.5 points", -3.5, true},
        {"fell by −3.5 points", 3.5, false},
        {"1,234 patients", 1234, true},
        {"1,234 mm", 1.234, true},
        {"1,234 patients", 234, false},
        {"15 mg", 5, false},
        {"1.5 mg", 5, false},
        {"12 345 patients", 12345, true},
        {"12 345 patients", 345, true},
        {"1.2 × 103 cells", 1200, true},
        {"1.2 × 103 cells", 103, true},
        {"5 × 105", 5e5, true},
        {"3 × 100 ml", 3, true},
        {"2 × 10-15 minutes", 2, true},
        {"3.5万人", 3.5, true},
        {"3.5万人", 35000, true},
        {"doses of 1,2 and 4 mg", 2, true},
        {"doses of 1,2 and 4 mg", 1.2, true},
        {"1.234 g", 1234, true},
        {"0.30000000001", 0.3, true},
        {"0.3000001", 0.3, false},
        {"0", 0, true},
        {"0.0000001", 0, false},
        {"x", 0, false},
        {"2020-03-15", 15, true},
        {"5.2±0.3", 0.3, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ok(number_in(str_of(cases[i].text), cases[i].value) == cases[i].there, "%.10g is%s in %s",
           cases[i].value, cases[i].there ? "" : " not", cases[i].text);
}

/* Numbers that were printed are read as they were. */
static void round_trip(void)
{
    uint64_t seed = 12345;
    bool same = true, in = true;
    for (int i = 0; i < 20000 && same && in; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double v = (double)(int64_t)(seed >> 11) / pow(10, (double)(seed % 31)), got = NAN;
        char text[64];
        snprintf(text, sizeof text, i % 2 ? "is %.17g kg" : "is %.16e kg", v);
        same = number_read(str_of(text), &got, NULL) && got == v;
        in = number_in(str_of(text), v);
        if (!same || !in)
            printf("# %s: %.17g\n", text, got);
    }
    ok(same && in, "printed numbers are read as they were");
}

/* Texts that would take hours if a reading began anew at every byte. */
static void is_linear(void)
{
    static const char *const parts[] = {"1",     "1,",     "1,234",        "1 234 ", "234 ", "234,",
                                        "1.",    "1 × 10", "10^",          "-",      ".1",   "1,1",
                                        "1.234", "×",      "\xef\xbc\x91", "1e",     "万"};
    struct arena a;
    arena_init(&a);
    size_t n = 1 << 17;
    char *text = arena_alloc(&a, n);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct str part = str_of(parts[i]);
        for (size_t at = 0; at < n; at++)
            text[at] = part.p[at % part.n];
        int64_t from = time_mono_us();
        number_in(str_from(text, n), 0.5);
        double v;
        number_read(str_from(text, n), &v, NULL);
        int64_t ms = (time_mono_us() - from) / 1000;
        ok(ms < 10000, "128 KB of \"%s\" takes %lld ms", parts[i], (long long)ms);
    }
    arena_release(&a);
}

int main(void)
{
    reads();
    finds();
    round_trip();
    is_linear();
    return tap_done();
}
