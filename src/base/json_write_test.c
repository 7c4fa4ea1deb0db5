#include "base/json.h"

#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void writes(void)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    jw_put_str(&w, "s", STR("x\"\\\b\f\n\r\t\x01\x7F/\xE4\xB8\xAD"));
    jw_put_str(&w, "absent", STR_NULL);
    jw_put_str(&w, "empty", STR(""));
    jw_put_int(&w, "i", INT64_MIN);
    jw_put_bool(&w, "b", true);
    jw_key(&w, STR("a\n"));
    jw_array(&w);
    jw_int(&w, 1);
    jw_bool(&w, false);
    jw_null(&w);
    jw_raw(&w, STR("{\"raw\":1}"));
    jw_array(&w);
    jw_end_array(&w);
    jw_array(&w);
    jw_int(&w, 2);
    jw_end_array(&w);
    jw_object(&w);
    jw_put_int(&w, "c", 3);
    jw_end_object(&w);
    jw_end_array(&w);
    jw_end_object(&w);
    is_str(buf_str(&b),
           STR("{\"s\":\"x\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7F/"
               "\xE4\xB8\xAD\",\"absent\":null,\"empty\":\"\","
               "\"i\":-9223372036854775808,\"b\":true,"
               "\"a\\n\":[1,false,null,{\"raw\":1},[],[2],{\"c\":3}]}"),
           "everything the writer knows");
    buf_release(&b);
}

static void writes_broken_utf8(void)
{
    static const struct {
        struct str s, want;
    } cases[] = {
        {STR("\xFF"), STR("\xEF\xBF\xBD")},
        {STR("a\xE4\xB8"), STR("a\xEF\xBF\xBD\xEF\xBF\xBD")},
        {STR("\xE4\xB8\xAD\xED\xA0\x80z"),
         STR("\xE4\xB8\xAD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz")},
        {STR("\xC3\"\xC3\n"), STR("\xEF\xBF\xBD\\\"\xEF\xBF\xBD\\n")},
        {STR("12345678\x80"), STR("12345678\xEF\xBF\xBD")},
        {STR_NULL, STR("")},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf b;
        buf_init(&b);
        json_escape(&b, cases[i].s);
        is_str(buf_str(&b), cases[i].want, "broken UTF-8, case %zu", i);
        buf_release(&b);
    }
}

static struct str real_text(struct buf *b, double v)
{
    struct json_writer w;
    buf_clear(b);
    jw_init(&w, b);
    jw_real(&w, v);
    return buf_str(b);
}

static bool real_survives(struct arena *a, struct buf *b, double v)
{
    struct arena_mark m = arena_mark(a);
    const struct json *j = parse(a, real_text(b, v));
    bool same = j && j->type == JSON_REAL && memcmp(&j->d, &v, sizeof(v)) == 0;
    arena_reset(a, m);
    return same;
}

/* As printf has it, with the fewest digits. */
static struct str printed(char *out, size_t size, double v)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            break;
    }
    if (!strpbrk(out, ".e"))
        strcat(out, ".0");
    return str_of(out);
}

static void writes_fractions(struct buf *b)
{
    unsigned seed = 7;
    int wrong = 0;
    for (int i = 0; i < 20000; i++) {
        char want[48];
        double v = (double)(rand_r(&seed) >> (i % 31));
        for (int places = i % 12; places > 0; places--)
            v /= 10; /* rounds each time: some need 17 digits */
        v = i & 1 ? -v : v;
        wrong += v != 0 && !str_eq(real_text(b, v), printed(want, sizeof want, v));
    }
    ok(wrong == 0, "20000 fractions are written with the fewest digits, as printf would");
}

static void writes_reals(struct arena *a)
{
    static const struct {
        double v;
        const char *want;
    } cases[] = {
        {0.1, "0.1"},
        {0.5, "0.5"},
        {1, "1.0"},
        {-0.0, "-0.0"},
        {100000, "100000.0"},
        {1e20, "1e+20"},
        {0.1 + 0.2, "0.30000000000000004"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {9007199254740992, "9007199254740992.0"},
        {(double)NAN, "null"},
        {(double)INFINITY, "null"},
        {-(double)INFINITY, "null"},
    };
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < COUNT(cases); i++)
        is_str(real_text(&b, cases[i].v), str_of(cases[i].want), "real %s", cases[i].want);

    bool same = true;
    unsigned seed = 3;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits =
            (uint64_t)rand_r(&seed) << 42 ^ (uint64_t)rand_r(&seed) << 21 ^ (uint64_t)rand_r(&seed);
        double v;
        memcpy(&v, &bits, sizeof(v));
        same &= !isfinite(v) || real_survives(a, &b, v);
    }
    ok(same, "20000 random bit patterns survive writing and reading");

    writes_fractions(&b);
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "de_DE")) {
        ok(real_survives(a, &b, 0.30000000000000004), "also where the point is a comma");
        setlocale(LC_NUMERIC, "C");
    }
    buf_release(&b);
}

static void value_without_key(struct json_writer *w)
{
    jw_object(w);
    jw_int(w, 1);
}

static void key_in_array(struct json_writer *w)
{
    jw_array(w);
    jw_key(w, STR("a"));
}

static void key_after_key(struct json_writer *w)
{
    jw_object(w);
    jw_key(w, STR("a"));
    jw_key(w, STR("b"));
}

static void end_after_key(struct json_writer *w)
{
    jw_object(w);
    jw_key(w, STR("a"));
    jw_end_object(w);
}

static void wrong_end(struct json_writer *w)
{
    jw_array(w);
    jw_end_object(w);
}

static void end_too_many(struct json_writer *w)
{
    jw_array(w);
    jw_end_array(w);
    jw_end_array(w);
}

static void two_roots(struct json_writer *w)
{
    jw_int(w, 1);
    jw_int(w, 2);
}

static void too_deep(struct json_writer *w)
{
    for (int i = 0; i < JSON_DEPTH_MAX + 1; i++)
        jw_array(w);
}

static bool aborts(void (*fn)(struct json_writer *w))
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        struct buf b;
        struct json_writer w;
        buf_init(&b);
        jw_init(&w, &b);
        close(STDERR_FILENO);
        fn(&w);
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void writer_checks(struct arena *a)
{
    ok(aborts(value_without_key), "a value in an object needs a name");
    ok(aborts(key_in_array), "arrays have no names");
    ok(aborts(key_after_key), "a name needs a value");
    ok(aborts(end_after_key), "also at the end");
    ok(aborts(wrong_end), "an array does not end like an object");
    ok(aborts(end_too_many), "what is closed is closed");
    ok(aborts(two_roots), "one text, one value");
    ok(aborts(too_deep), "the depth has a limit");

    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        jw_array(&w);
    jw_int(&w, 1);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        jw_end_array(&w);
    ok(parse(a, buf_str(&b)), "at the limit it reads back");
    buf_release(&b);
}

static void writes_by_itself(struct arena *a)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_put_array(&w, "list");
    jw_end_array(&w);
    jw_put_object(&w, "inner");
    jw_end_object(&w);
    ok(str_eq(jw_finish(&w, a), STR("{\"list\":[],\"inner\":{}}")), "an object by itself");
    ok(b.len == 0 && b.cap == 0, "its buffer is released");
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    writes();
    writes_by_itself(&a);
    writes_broken_utf8();
    writes_reals(&a);
    writer_checks(&a);
    arena_release(&a);
    return tap_done();
}
