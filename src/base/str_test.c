#include "base/str.h"

#include <stdlib.h>

#include "tests/tap.h"

static void comparing(void)
{
    ok(str_eq(STR(""), STR_NULL), "an empty string equals an absent one in bytes");
    ok(str_eq(STR("ab"), STR("ab")) && !str_eq(STR("ab"), STR("ac")), "eq");
    ok(str_ieq(STR("Content-LENGTH"), STR("content-length")), "ieq ignores case");
    ok(!str_ieq(STR("@[`{"), STR("`{@[")), "ieq changes letters only");
    ok(!str_ieq(STR("a"), STR("ab")), "ieq compares lengths");
    ok(str_starts(STR("abc"), STR("ab")) && !str_starts(STR("a"), STR("ab")), "starts");
    ok(str_starts(STR("abc"), STR("")) && !str_starts(STR("abc"), STR("b")), "starts, edges");
    ok(str_ends(STR("abc"), STR("bc")) && !str_ends(STR("c"), STR("bc")), "ends");
    ok(str_ends(STR_NULL, STR("")) && !str_ends(STR("abc"), STR("b")), "ends, edges");
    ok(str_eq_secret(STR("key"), STR("key")), "eq_secret holds");
    ok(!str_eq_secret(STR("key"), STR("kex")), "eq_secret sees the last byte");
    ok(!str_eq_secret(STR("key"), STR("Key")), "eq_secret sees the first byte");
    ok(!str_eq_secret(STR("key"), STR("keys")), "eq_secret sees the length");
}

static bool same_letter(int a, int b)
{
    bool letters = ((a | 0x20) >= 'a') && ((a | 0x20) <= 'z') && a < 0x80 && b < 0x80;
    return a == b || (letters && (a | 0x20) == (b | 0x20));
}

/* Every byte against every other, at places that are compared one by one and eight at a time. */
static void comparing_bytes(void)
{
    bool fine = true;
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++)
            for (size_t n = 1; n < 20; n += 6) { /* 1, 7, 13 and 19 */
                char x[20] = "kkkkkkkkkkkkkkkkkkk", y[20] = "KKKKKKKKKKKKKKKKKKK";
                size_t at = (size_t)(a + b) % n;
                x[at] = (char)a;
                y[at] = (char)b;
                fine = fine && str_ieq(str_from(x, n), str_from(y, n)) == same_letter(a, b);
            }
    ok(fine, "ieq, all bytes");
}

static void finding(void)
{
    is_int(str_find(STR("hello"), STR("l")), 2, "find gives the first place");
    is_int(str_find(STR("hello"), STR("lo")), 3, "find at the end");
    is_int(str_find(STR("hello"), STR("x")), -1, "find nothing");
    is_int(str_find(STR("he"), STR("hello")), -1, "find something longer");
    is_int(str_find(STR_NULL, STR("")), 0, "the empty string is everywhere");
    is_str(str_trim(STR(" \t a b\t ")), STR("a b"), "trim");
    is_str(str_trim(STR(" \t ")), STR(""), "trim leaves an empty string");
    is_str(str_trim(STR("\na\n")), STR("\na\n"), "trim leaves line ends");
}

static void cutting(void)
{
    struct str rest = STR("a,,b,");
    const struct str want[] = {STR("a"), STR(""), STR("b"), STR("")};
    size_t n = 0;
    while (rest.p) {
        struct str part = str_cut(&rest, ',');
        if (n < 4)
            is_str(part, want[n], "part %zu", n);
        n++;
    }
    is_int((int64_t)n, 4, "cut visits every part");
    rest = STR("");
    is_str(str_cut(&rest, ','), STR(""), "an empty string has one part");
    ok(!rest.p, "and no more");
}

static void integers(void)
{
    static const struct {
        const char *text;
        bool fine;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"42", true, 42},
        {"-42", true, -42},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"0x10", false, 0},
        {"--1", false, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t v = 12345;
        bool fine = str_to_i64(str_of(cases[i].text), &v);
        ok(fine == cases[i].fine, "\"%s\" is %san integer", cases[i].text,
           cases[i].fine ? "" : "not ");
        is_int(v, cases[i].fine ? cases[i].value : 12345, "\"%s\" leaves the right value",
               cases[i].text);
    }
}

/* Texts of characters and of bytes that are nearly some, against one step after the other. */
static void utf8_prefix(void)
{
    static const struct str parts[] = {
        STR("a"),
        STR("abcdefgh"),
        STR("\u00e4"),
        STR("\u4e2d\u6587"),
        STR("\u4e2d"),
        STR("\u0e01"),
        STR("\ud55c"),
        STR("\U0001f600"),
        STR("\x80"),
        STR("\xC3"),
        STR("\xE4\xB8"),
        STR("\xC0\x80"),
        STR("\xED\xA0\x80"),
        STR("\xE0\x80\x80"),
        STR("\xF0\x80\x80\x80"),
        STR("\xF5\x80\x80\x80"),
    };
    unsigned seed = 7;
    int wrong = 0;
    for (int i = 0; i < 100000; i++) {
        char text[80];
        size_t n = 0, want = 0, step;
        while (n < 64) {
            int valid = rand_r(&seed) % 16;
            struct str part = parts[(unsigned)rand_r(&seed) % (valid ? 8 : 16)];
            memcpy(text + n, part.p, part.n);
            n += part.n;
        }
        n -= (unsigned)rand_r(&seed) % 40;
        while ((step = str_utf8_step(str_from(text + want, n - want))) > 0)
            want += step;
        wrong += str_utf8_prefix(str_from(text, n)) != want;
    }
    is_int(wrong, 0, "UTF-8 is valid up to the same byte, step by step or sixteen at a time");
    is_int((int64_t)str_utf8_prefix(STR_NULL), 0, "and in nothing");
}

static void utf8(void)
{
    static const char *const valid[] = {
        "",
        "plain ascii, longer than eight bytes",
        "\xC2\x80",
        "\xDF\xBF",
        "\xE0\xA0\x80",
        "\xED\x9F\xBF",
        "\xEE\x80\x80",
        "\xEF\xBF\xBF",
        "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF",
        "12345678\xE4\xB8\xAD\xE6\x96\x87 and more",
    };
    static const char *const invalid[] = {
        "\x80",
        "\xBF",
        "\xC0\x80", /* overlong */
        "\xC1\xBF", /* overlong */
        "\xC2",     /* cut off */
        "\xC2\x41",
        "\xE0\x9F\xBF", /* overlong */
        "\xE4\xB8",     /* cut off */
        "\xE4\x41\x80",
        "\xE4\xB8\x41",
        "\xED\xA0\x80",     /* surrogate */
        "\xED\xBF\xBF",     /* surrogate */
        "\xF0\x8F\xBF\xBF", /* overlong */
        "\xF0\x90\x80",     /* cut off */
        "\xF0\x90\x41\x80",
        "\xF0\x90\x80\x41",
        "\xF4\x90\x80\x80", /* beyond U+10FFFF */
        "\xF5\x80\x80\x80",
        "\xFF",
        "plain ascii, longer than eight bytes \xFE",
    };
    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
        ok(str_utf8_valid(str_of(valid[i])), "valid UTF-8, case %zu", i);
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
        ok(!str_utf8_valid(str_of(invalid[i])), "invalid UTF-8, case %zu", i);
    char text[64];
    int wrong = 0;
    for (size_t at = 0; at < sizeof(text) - 4;
         at++) { /* wherever it meets what is read at a time */
        memset(text, 'a', sizeof(text));
        memcpy(text + at, "\xF0\x90\x80\x80", 4);
        wrong += !str_utf8_valid(str_from(text, sizeof(text)));
        wrong += str_utf8_valid(str_from(text, at + 3));
        text[at] = 'a';
        wrong += str_utf8_valid(str_from(text, sizeof(text)));
    }
    is_int(wrong, 0, "valid and invalid UTF-8 at all places of a text");
    utf8_prefix();
    ok(str_utf8_valid(STR("a\0b")), "NUL is allowed");
    is_int((int64_t)str_utf8_step(STR("\xE4\xB8\xAD\xE6")), 3, "a step is one character");
    is_int((int64_t)str_utf8_step(STR_NULL), 0, "no step in nothing");
    is_int((int64_t)str_utf8_back(STR("\xE6\xE4\xB8\xAD")), 3, "a step back is one, too");
    is_int((int64_t)str_utf8_back(STR("a")), 1, "of ASCII");
    is_int((int64_t)str_utf8_back(STR("\xE4\xB8")), 0, "no step back over half a character");
    is_int((int64_t)str_utf8_back(STR("a\xAD")), 0, "nor over a byte that continues nothing");
    is_int((int64_t)str_utf8_back(STR("")), 0, "nor in nothing");
}

static void utf8_put(void)
{
    static const struct {
        uint32_t code;
        const char *utf8;
    } cases[] = {{'a', "a"},     {0x7FF, "\xDF\xBF"}, {0x800, "\xE0\xA0\x80"},
                 {0x1F600, "😀"}, {0xD800, "\uFFFD"},  {0x110000, "\uFFFD"}};
    char out[4];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        is_str(str_from(out, str_utf8_put(out, cases[i].code)), str_of(cases[i].utf8), "U+%04X",
               cases[i].code);
}

static void copies(void)
{
    struct arena a;
    arena_init(&a);
    struct str s = STR("abc");
    struct str copy = str_dup(&a, str_from(s.p, 2));
    is_str(copy, STR("ab"), "dup");
    ok(copy.p != s.p && copy.p[2] == '\0', "dup is a copy and ends in NUL");
    is_str(str_of(str_z(&a, STR_NULL)), STR(""), "z of nothing");
    is_str(str_printf(&a, "%s=%d", "n", 3), STR("n=3"), "printf");
    is_str(str_lower(&a, STR("@AZ[`az{\xC3\x84")), STR("@az[`az{\xC3\x84"), "lower case of ASCII");
    arena_release(&a);
}

int main(void)
{
    comparing();
    comparing_bytes();
    finding();
    cutting();
    integers();
    utf8();
    utf8_put();
    copies();
    return tap_done();
}
