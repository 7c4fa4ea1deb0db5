#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/err.h"
#include "base/json_float.h"
#include "tests/tap.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct json *parse(struct arena *a, struct str text)
{
    const struct json *j = NULL;
    struct json_error e;
    if (json_parse(a, text, &j, &e))
        return NULL;
    return j;
}

static const char *const accepted[] = {
    "null",
    "true",
    "false",
    " \t\r\n1 \t\r\n",
    "[]",
    "[ ]",
    "{}",
    "{ }",
    "[[]   ]",
    "[1,2 , 3]",
    "[null, 1, \"1\", {}]",
    "{\"a\":1,\"b\":[2]}",
    "{ \"a\" : 1 , \"b\" : 2 }",
    "{\"\":0}",
    "{\"a\":{\"a\":{\"a\":1}}}",
    "{\"a\":1,\"A\":2}",
    "0",
    "-0",
    "-1",
    "0.5",
    "-0.0",
    "1e5",
    "1E+5",
    "1E-5",
    "0e1",
    "0e+1",
    "1.25e-3",
    "123456789012345678901234567890",
    "1e-400",
    "\"\"",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\u0041\\u00e9\\u4e2d\\uD83D\\uDE00\"",
    "\"\\u0000\"",
    "\"\\uFFFF\"",
    "\"\\\\u0041\"",
    "\"a\\\\\"",
    "\"\x7F\"",
    "\"\xE4\xB8\xAD\xE6\x96\x87\"",
    "\"\xF0\x9F\x98\x80\"",
    "\"\xEF\xBF\xBF\"",
    "\"\xE2\x80\xA8\"",
};

static void accepts(struct arena *a)
{
    for (size_t i = 0; i < COUNT(accepted); i++)
        ok(parse(a, str_of(accepted[i])), "takes case %zu", i);
}

/* With a length each, so that NUL can be among the bytes. */
static const struct str rejected[] = {
    STR(""),
    STR(" "),
    STR("nul"),
    STR("nulll"),
    STR("True"),
    STR("NaN"),
    STR("Infinity"),
    STR("-Infinity"),
    STR("undefined"),
    STR("1 2"),
    STR("[] []"),
    STR("1,"),
    STR("null\0"),
    STR("\0"),
    STR("\xEF\xBB\xBF[]"),
    STR("\x0C[]"),
    STR("\xC2\xA0[]"),
    STR("// comment\n1"),
    STR("/**/1"),
    STR("#1"),
    /* arrays */
    STR("["),
    STR("]"),
    STR("[1"),
    STR("[1,"),
    STR("[1,]"),
    STR("[,1]"),
    STR("[,]"),
    STR("[1,,2]"),
    STR("[1 2]"),
    STR("[1:2]"),
    STR("[1}"),
    STR("[1]]"),
    STR("[\"a\", 4,"),
    STR("[*]"),
    /* objects */
    STR("{"),
    STR("}"),
    STR("{\"a\""),
    STR("{\"a\":"),
    STR("{\"a\":1"),
    STR("{\"a\":1,"),
    STR("{\"a\":1,}"),
    STR("{,\"a\":1}"),
    STR("{\"a\":1,,\"b\":2}"),
    STR("{\"a\" 1}"),
    STR("{\"a\",1}"),
    STR("{\"a\"::1}"),
    STR("{\"a\":1 \"b\":2}"),
    STR("{a:1}"),
    STR("{'a':1}"),
    STR("{1:1}"),
    STR("{null:1}"),
    STR("{\"a\":1]"),
    STR("{\"a\":1}}"),
    STR("{\"a\":1,\"a\":1}"),
    STR("{\"a\":1,\"\\u0061\":2}"),
    STR("{\"\":1,\"\":2}"),
    /* numbers */
    STR("-"),
    STR("+1"),
    STR("--1"),
    STR("- 1"),
    STR("01"),
    STR("-01"),
    STR("00"),
    STR("1."),
    STR(".5"),
    STR("-.5"),
    STR("1.e5"),
    STR("1e"),
    STR("1e+"),
    STR("1e-"),
    STR("1e1.5"),
    STR("1.2.3"),
    STR("0x10"),
    STR("1_000"),
    STR("1a"),
    STR("1e400"),
    STR("-1e400"),
    STR("\xEF\xBC\x91"), /* a full-width 1 */
    /* strings */
    STR("\""),
    STR("\"a"),
    STR("'a'"),
    STR("\"\\"),
    STR("\"\\\""),
    STR("\"a\\\\\\\""),
    STR("\"\\a\""),
    STR("\"\\x41\""),
    STR("\"\\'\""),
    STR("\"\\0\""),
    STR("\"\\\0\""),
    STR("\"\\U0041\""),
    STR("\"\\u\""),
    STR("\"\\u004\""),
    STR("\"\\u004g\""),
    STR("\"\\u+041\""),
    STR("\"\\uD800\""),
    STR("\"\\uDC00\""),
    STR("\"\\uD800\\uD800\""),
    STR("\"\\uD800\\u0041\""),
    STR("\"\\uD800\\n\""),
    STR("\"\\uD800x\""),
    STR("\"\\uDC00\\uD800\""),
    STR("\"\\uDC00\\uDC00\""),
    STR("\"\n\""),
    STR("\"\t\""),
    STR("\"\0\""),
    STR("\"\x1F\""),
    STR("\"12345678\x1F\""),
    STR("\"\x80\""),
    STR("\"\xC0\xAF\""),
    STR("\"\xED\xA0\x80\""),
    STR("\"\xF4\x90\x80\x80\""),
    STR("\"\xE4\xB8\""),
    STR("\"\xE4\xB8"),
    STR("\"\\n\xFF\""),
    STR("{\"\xFF\":1}"),
};

static void rejects(struct arena *a)
{
    for (size_t i = 0; i < COUNT(rejected); i++) {
        const struct json *j = (const void *)a;
        struct arena_mark before = arena_mark(a);
        is_int(json_parse(a, rejected[i], &j, NULL), ERR_INVALID, "refuses case %zu", i);
        ok(j == (const void *)a && arena_mark(a).next == before.next, "and changes nothing");
    }
}

static void errors(struct arena *a)
{
    static const struct {
        const char *text;
        size_t line, column;
        const char *message;
    } cases[] = {
        {"", 1, 1, "expected a value"},
        {"[1,\n  x]", 2, 3, "expected a value"},
        {"[1 2]", 1, 4, "expected ',' or ']'"},
        {"{\"a\":1;}", 1, 7, "expected ',' or '}'"},
        {"{a:1}", 1, 2, "expected '}' or a name in quotes"},
        {"{\"a\":1,}", 1, 8, "expected a name in quotes"},
        {"{\"a\"=1}", 1, 5, "expected ':'"},
        {"{\n\"a\": 1,\n  \"a\": 2}", 3, 3, "expected every name once, but this one is repeated"},
        {"{} 1", 1, 4, "expected nothing after the value"},
        {"01", 1, 2, "expected no digit after a leading zero"},
        {"[-]", 1, 3, "expected a digit"},
        {"\"abc", 1, 5, "expected the closing quote of a string"},
        {"\"\\n", 1, 4, "expected the closing quote of a string"},
        {"\"\xE4\xB8\xAD\\x\"", 1, 4, "expected one of \"\\/bfnrtu after a backslash"},
        {"\"\\u12x4\"", 1, 6, "expected four hexadecimal digits after \\u"},
        {"\"\xE4\xB8\xAD\n\"", 1, 3,
         "expected an escape instead of a control character in a string"},
        {"\"\xFF\"", 1, 2, "expected valid UTF-8"},
        {"1e999", 1, 6, "expected a number within the range of a double"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct json *j;
        struct json_error e = {0};
        is_int(json_parse(a, str_of(cases[i].text), &j, &e), ERR_INVALID, "error case %zu", i);
        is_int((int64_t)e.line, (int64_t)cases[i].line, "its line");
        is_int((int64_t)e.column, (int64_t)cases[i].column, "its column");
        is_str(str_of(e.message), str_of(cases[i].message), "its message");
    }
}

static struct str nested(struct arena *a, int depth, const char *open, const char *close)
{
    struct str s = STR("1");
    for (int i = 0; i < depth; i++)
        s = str_printf(a, "%s%.*s%s", open, STR_ARG(s), close);
    return s;
}

static void depth(struct arena *a)
{
    ok(parse(a, nested(a, 64, "[", "]")), "64 arrays");
    ok(!parse(a, nested(a, 65, "[", "]")), "not 65");
    ok(parse(a, nested(a, 64, "{\"a\":", "}")), "64 objects");
    ok(!parse(a, nested(a, 65, "{\"a\":", "}")), "not 65");
    ok(parse(a, nested(a, 32, "[{\"a\":", "}]")), "64 of both");
    ok(!parse(a, nested(a, 33, "[{\"a\":", "}]")), "not 66");
    struct str wide = nested(a, 40, "[[[],{\"b\":{}}],", "]");
    ok(parse(a, wide), "siblings do not add to the depth");

    struct buf b;
    buf_init(&b);
    for (int i = 0; i < 100000; i++)
        buf_add_char(&b, '[');
    ok(!parse(a, buf_str(&b)), "100000 open brackets are harmless");
    buf_release(&b);
}

static void trees(struct arena *a)
{
    struct str text =
        STR("{\"s\":\"plain\",\"e\":\"a\\nb\",\"n\":[1,-2,2.5,null],\"t\":true,\"f\":false}");
    const struct json *j = parse(a, text);
    if (!ok(j, "a tree"))
        return;
    is_int(j->type, JSON_OBJECT, "an object");
    is_int(j->count, 5, "of five members");
    ok(!j->key.p && !j->next, "the root has no name and no sibling");
    is_str(j->child->key, STR("s"), "members come in order");

    struct str s = json_str(json_get(j, "s"));
    is_str(s, STR("plain"), "a string");
    ok(s.p > text.p && s.p < text.p + text.n, "which is borrowed from the text");
    is_str(json_str(json_get(j, "e")), STR("a\nb"), "a string with an escape");

    const struct json *n = json_get(j, "n");
    is_int(n->count, 4, "an array of four");
    const enum json_type types[] = {JSON_INT, JSON_INT, JSON_REAL, JSON_NULL};
    int at = 0;
    json_each (it, n) {
        is_int(it->type, types[at++], "element type");
        ok(!it->key.p, "elements have no name");
    }
    is_int(n->child->next->i, -2, "the second");
    ok(n->child->next->next->d == 2.5, "the third");

    bool b = false;
    ok(json_bool(json_get(j, "t"), &b) && b, "true");
    ok(json_bool(json_get(j, "f"), &b) && !b, "false");
}

static void accessors(struct arena *a)
{
    const struct json *j =
        parse(a, STR("{\"s\":\"x\",\"i\":7,\"r\":7.0,\"n\":null,\"a\":[],\"b\":true}"));
    int64_t i = 1;
    bool b = true;
    ok(json_int(json_get(j, "i"), &i) && i == 7, "int");
    ok(!json_int(json_get(j, "r"), &i) && !json_int(json_get(j, "s"), &i) && !json_int(NULL, &i) &&
           i == 7,
       "int of something else");
    ok(!json_bool(json_get(j, "n"), &b) && !json_bool(NULL, &b) && b, "bool of something else");
    is_str(json_str(json_get(j, "i")), STR_NULL, "str of something else");
    is_str(json_str(NULL), STR_NULL, "str of nothing");
    ok(!json_get(j, "nope") && !json_get(json_get(j, "s"), "x") && !json_get(NULL, "x"),
       "get of nothing");
    ok(!json_first(NULL) && !json_first(json_get(j, "s")) && !json_first(json_get(j, "a")),
       "first of nothing");
    is_str(str_of(json_type_name(j)), STR("object"), "object");
    is_str(str_of(json_type_name(json_get(j, "a"))), STR("array"), "array");
    is_str(str_of(json_type_name(json_get(j, "s"))), STR("string"), "string");
    is_str(str_of(json_type_name(json_get(j, "i"))), STR("number"), "number");
    is_str(str_of(json_type_name(json_get(j, "r"))), STR("number"), "number, too");
    is_str(str_of(json_type_name(json_get(j, "b"))), STR("boolean"), "boolean");
    is_str(str_of(json_type_name(json_get(j, "n"))), STR("null"), "null");
    is_str(str_of(json_type_name(NULL)), STR("nothing"), "nothing");
}

static void escapes(struct arena *a)
{
    static const struct {
        const char *text;
        struct str want;
    } cases[] = {
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", STR("\"\\/\b\f\n\r\t")},
        {"\"\\u0000\\u007f\"", STR("\0\x7F")},
        {"\"\\u0080\\u07FF\"", STR("\xC2\x80\xDF\xBF")},
        {"\"\\u0800\\uffff\"", STR("\xE0\xA0\x80\xEF\xBF\xBF")},
        {"\"\\uD800\\uDC00\\udbff\\udfff\"", STR("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF")},
        {"\"before \\u4E2D after \xE6\x96\x87 \\\\ end\"",
         STR("before \xE4\xB8\xAD after \xE6\x96\x87 \\ end")},
        {"\"\\\\\\\\\"", STR("\\\\")},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        is_str(json_str(parse(a, str_of(cases[i].text))), cases[i].want, "escapes, case %zu", i);
}

/* The scan for the end looks at sixteen bytes at once: every kind at every place. */
static void every_place(struct arena *a)
{
    static const char *const refused[] = {"\x01", "\x1F", "\xFF", "\xE4\xB8"};
    bool fine = true;
    for (int before = 0; before < 20; before++) {
        for (int after = 0; after < 20; after++) {
            struct str pad = str_printf(a, "%.*s", before, "!#$[]^~\x7F!#$[]^~\x7F!#$[");
            struct str tail = str_printf(a, "%.*s", after, "abcdefghijklmnopqrst");
            struct str text = str_printf(a, "\"%s\"", pad.p);
            fine &= str_eq(json_str(parse(a, text)), pad);
            text = str_printf(a, "\"%s\\t%s\"", pad.p, tail.p);
            fine &= str_eq(json_str(parse(a, text)), str_printf(a, "%s\t%s", pad.p, tail.p));
            text = str_printf(a, "\"%s\xE4\xB8\xAD%s\"", pad.p, tail.p);
            fine &=
                str_eq(json_str(parse(a, text)), str_printf(a, "%s\xE4\xB8\xAD%s", pad.p, tail.p));
            for (size_t i = 0; i < COUNT(refused); i++)
                fine &= !parse(a, str_printf(a, "\"%s%s%s\"", pad.p, refused[i], tail.p));
        }
    }
    ok(fine, "special bytes are seen at every place of a string");
}

/* A string of n bytes in which an escape, or a run of backslashes, or a character beyond ASCII
 * stands at any place, and what it must be read as. */
static bool reads_at(struct arena *a, size_t n, size_t at, struct str written, struct str meant)
{
    char *dots = arena_alloc(a, n);
    memset(dots, '.', n);
    int before = (int)at, after = (int)(n - at);
    struct str text = str_printf(a, "[\"%.*s%.*s%.*s%.*s\",1]", before, dots, STR_ARG(written),
                                 after, dots, STR_ARG(written));
    struct str want = str_printf(a, "%.*s%.*s%.*s%.*s", before, dots, STR_ARG(meant), after, dots,
                                 STR_ARG(meant));
    const struct json *j = parse(a, text);
    return j && j->count == 2 && str_eq(json_str(j->child), want);
}

static void every_length(struct arena *a)
{
    const struct str cases[][2] = {
        {STR("\\n"), STR("\n")},           {STR("\\\""), STR("\"")},
        {STR("\\\\"), STR("\\")},          {STR("\\\\\\\""), STR("\\\"")},
        {STR("\\u00e9"), STR("\xC3\xA9")}, {STR("\\t\xE2\x80\x93"), STR("\t\xE2\x80\x93")},
        {STR("\\\\\\\\"), STR("\\\\")},    {STR("石\\\"墨\\\\"), STR("石\"墨\\")},
    };
    bool fine = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t n = 0; n < 50; n++)
            for (size_t at = 0; at <= n; at++) {
                struct arena_mark mark = arena_mark(a);
                fine = fine && reads_at(a, n, at, cases[i][0], cases[i][1]);
                arena_reset(a, mark);
            }
    ok(fine, "escapes are read at every place of strings of any length");
}

static void integers(struct arena *a)
{
    static const struct {
        const char *text;
        enum json_type type;
        int64_t value;
    } cases[] = {
        {"0", JSON_INT, 0},
        {"-0", JSON_INT, 0},
        {"9223372036854775807", JSON_INT, INT64_MAX},
        {"-9223372036854775808", JSON_INT, INT64_MIN},
        {"9223372036854775808", JSON_REAL, 0},
        {"-9223372036854775809", JSON_REAL, 0},
        {"18446744073709551616", JSON_REAL, 0},
        {"1.0", JSON_REAL, 0},
        {"1e2", JSON_REAL, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct json *j = parse(a, str_of(cases[i].text));
        ok(j && j->type == cases[i].type && (j->type != JSON_INT || j->i == cases[i].value),
           "integer %s", cases[i].text);
    }
}

static bool reads_as_strtod(struct arena *a, const char *text)
{
    const struct json *j = parse(a, str_of(text));
    double want = strtod(text, NULL);
    return j && j->type == JSON_REAL && memcmp(&j->d, &want, sizeof(want)) == 0;
}

static void reals(struct arena *a)
{
    static const char *const texts[] = {
        "0.1",
        "-0.0",
        "1e22",
        "1e23",
        "1e-22",
        "123456789.123456789e-5",
        "9007199254740993.0",
        "9007199254740992e22",
        "0.30000000000000004",
        "2.2250738585072011e-308",
        "4.9e-324",
        "2e-324",
        "1.7976931348623157e308",
        "1.00000000000000000000000000000000000000000000000000000001",
        "100000000000000000000000000000000000000000000000000",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "-0e-1",
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        ok(reads_as_strtod(a, texts[i]), "real %s", texts[i]);

    bool same = true;
    unsigned seed = 7;
    for (int i = 0; i < 20000; i++) {
        struct arena_mark m = arena_mark(a);
        const char *text =
            arena_printf(a, "%s%d.%0*de%d", i % 2 ? "-" : "", rand_r(&seed) % 1000000,
                         1 + rand_r(&seed) % 12, rand_r(&seed), rand_r(&seed) % 60 - 30);
        same &= reads_as_strtod(a, text);
        arena_reset(a, m);
    }
    ok(same, "20000 random reals read as strtod reads them");
}

static struct str members(struct buf *b, int count, const char *last)
{
    buf_clear(b);
    buf_add_char(b, '{');
    for (int i = 0; i < count; i++)
        buf_printf(b, "\"name%d\":%d,", i, i);
    buf_printf(b, "\"%s\":null}", last);
    return buf_str(b);
}

static void repeated_names(struct arena *a)
{
    struct buf b;
    buf_init(&b);
    bool fine = true;
    for (int count = 1; count < 100; count++) {
        struct arena_mark m = arena_mark(a);
        const struct json *j = parse(a, members(&b, count, "other"));
        fine &= j && j->count == (uint32_t)count + 1;
        fine &= !parse(a, members(&b, count, "name0"));
        fine &= !parse(a, members(&b, count, arena_printf(a, "name%d", count - 1)));
        fine &= !parse(a, members(&b, count, arena_printf(a, "nam\\u0065%d", count / 2)));
        arena_reset(a, m);
    }
    ok(fine, "a repeated name is found among 1 to 100");

    /* Processor time, and a ratio: neither a busy machine nor an emulated one changes it. */
    clock_t start = clock();
    ok(!parse(a, members(&b, 10000, "name9999")), "the last of 10000 names repeated");
    clock_t tenth = clock() - start;
    start = clock();
    const struct json *j = parse(a, members(&b, 100000, "other"));
    ok(j && j->count == 100001, "100000 names");
    clock_t all = clock() - start;
    ok(all < 40 * tenth + CLOCKS_PER_SEC / 10, "without quadratic time");
    ok(!parse(a, members(&b, 100000, "name99999")), "the last of them repeated");
    buf_release(&b);
}

/* --- arrays of floats --- */

static bool same_float(const char *text, size_t n, float want)
{
    float got = 0;
    const char *end = json_float(text, text + n, &got);
    return end == text + n && (isnan(want) ? isnan(got) : memcmp(&got, &want, sizeof got) == 0);
}

static void float_texts(void)
{
    static const struct {
        const char *text;
        float v;
    } right[] = {{"0", 0.0f},
                 {"-0.0", -0.0f},
                 {"1", 1.0f},
                 {"-12.5", -12.5f},
                 {"0.00000000", 0.0f},
                 {"0.015625", 0.015625f},
                 {"-0.0123456789012345678901234567890", -0.0123456789012345678901234567890f},
                 {"123456789012345678901234567890", 123456789012345678901234567890.0f},
                 {"0.0000000000000000000000000000001", 1e-31f},
                 {"1e3", 1000.0f},
                 {"1.5E-3", 0.0015f},
                 {"25e+2", 2500.0f},
                 {"1e-45", 1e-45f},
                 {"1e-46", 0.0f},
                 {"3.4028235e38", FLT_MAX},
                 {"1e39", INFINITY},
                 {"-1e400", -INFINITY},
                 {"1e999999999999999999999", INFINITY},
                 {"1e-999999999999999999999", 0.0f},
                 {"null", NAN}};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        ok(same_float(right[i].text, strlen(right[i].text), right[i].v), "%s", right[i].text);
    static const char *const wrong[] = {"",   "-",   "+1",  ".5",    "1.",  "1.e3",     "1e", "1e+",
                                        "01", "-01", "nul", "-null", "NaN", "Infinity", "x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        float v;
        const char *end = wrong[i] + strlen(wrong[i]);
        ok(!json_float(wrong[i], end, &v), "no number: \"%s\"", wrong[i]);
    }
}

/* As printf writes floats, in all lengths, at the end of the memory there is. */
static void printed_floats(void)
{
    uint64_t seed = 1;
    int off = 0;
    for (int i = 0; i < 200000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double v = (double)(int64_t)(seed >> 11) * 0x1p-53 - 0.5;
        char text[40];
        size_t n = (size_t)snprintf(text, sizeof text, i % 3 ? "%.*f" : "%.*e", i % 21, v);
        char *exact = memcpy(check_memory(malloc(n)), text, n);
        float got, want = strtof(text, NULL);
        check(json_float(exact, exact + n, &got) == exact + n);
        off += fabsf(got - want) > fabsf(want) * FLT_EPSILON;
        free(exact);
    }
    is_int(off, 0, "200000 printed numbers are read, to the last bit or the one before");
}

static void floats(struct arena *a)
{
    const struct json *j;
    check(json_parse_floats(a,
                            STR("{\"a\": [ 1.5 , -2,null,3e0 ], \"b\": [1, \"x\", 2],"
                                " \"c\": [], \"d\": [null], \"e\": [[7], [8, 9]]}"),
                            &j, NULL) == 0);
    const struct json *v = json_get(j, "a");
    ok(v->type == JSON_FLOATS && v->count == 4 && v->floats[0] == 1.5f && v->floats[1] == -2.0f &&
           isnan(v->floats[2]) && v->floats[3] == 3.0f,
       "numbers and null are floats");
    ok(!json_first(v), "and no children");
    v = json_get(j, "b");
    ok(v->type == JSON_ARRAY && v->count == 3 && json_first(v)->i == 1, "others are as ever");
    ok(json_get(j, "c")->type == JSON_ARRAY, "empty ones, too");
    v = json_get(j, "d");
    ok(v->type == JSON_FLOATS && v->count == 1 && isnan(v->floats[0]), "null alone is NaN");
    const struct json *inner = json_first(json_get(j, "e"));
    ok(inner->count == 1 && inner->next->count == 2 && inner->next->floats[1] == 9.0f,
       "arrays of arrays have floats");
    static const char *const wrong[] = {"[1,]",     "[1 2]",   "[1",    "[1,2",
                                        "[1.5,01]", "[1,NaN]", "[1,[2}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct json_error e = {0, 0, NULL}, same = {0, 0, NULL};
        ok(json_parse_floats(a, str_of(wrong[i]), &j, &e) == ERR_INVALID &&
               json_parse(a, str_of(wrong[i]), &j, &same) == ERR_INVALID &&
               e.column == same.column && e.message == same.message,
           "refused as by json_parse: %s", wrong[i]);
    }
    float_texts();
    printed_floats();
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    accepts(&a);
    rejects(&a);
    errors(&a);
    depth(&a);
    trees(&a);
    accessors(&a);
    escapes(&a);
    every_place(&a);
    every_length(&a);
    integers(&a);
    reals(&a);
    repeated_names(&a);
    floats(&a);
    arena_release(&a);
    return tap_done();
}
