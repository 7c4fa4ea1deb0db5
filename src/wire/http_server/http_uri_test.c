#include "wire/http_server/http_uri.h"

#include "tests/tap.h"

static struct arena arena;

static struct str decode(struct str raw, bool plus)
{
    struct str out = STR_NULL;
    return http_uri_decode(&arena, raw, plus, &out) ? out : STR_NULL;
}

static void decoding(void)
{
    struct str raw = STR("/plain/path");
    ok(decode(raw, false).p == raw.p, "nothing to decode: nothing is copied");
    is_str(decode(STR("/a%20b%2Fc"), false), STR("/a b/c"), "hex digits of both cases");
    is_str(decode(STR("%e4%BD%A0"), false), STR("\xE4\xBD\xA0"), "UTF-8");
    is_str(decode(STR("a+b"), false), STR("a+b"), "a plus is a plus in a path");
    is_str(decode(STR("a+b%2B"), true), STR("a b+"), "a plus is a space in a query");
    is_str(decode(STR(""), false), STR(""), "nothing");
    is_str(decode(STR("%2541"), false), STR("%41"), "once, not twice");
}

static void refusing(void)
{
    static const char *const bad[] = {"%",   "%4",    "a%",  "%4g",    "%g4",       "%-1",
                                      "%00", "a%00b", "%ff", "%C0%80", "%ED%A0%80", "%e4%bd"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok(!decode(str_of(bad[i]), false).p, "%s is refused", bad[i]);
    ok(!decode(str_from("%41", 2), false).p, "the byte behind the end is not looked at");
    struct str out = STR("before");
    ok(!http_uri_decode(&arena, STR("%zz"), false, &out) && str_eq(out, STR("before")),
       "a refusal leaves the result alone");
}

static void paths(void)
{
    ok(http_path_valid(STR("/")) && http_path_valid(STR("/a/b.c/...d/.e")), "good paths");
    ok(!http_path_valid(STR("")) && !http_path_valid(STR("a")), "a path begins with a slash");
    ok(!http_path_valid(STR("/a/../b")) && !http_path_valid(STR("/..")), "no way up");
    ok(!http_path_valid(STR("/./a")) && !http_path_valid(STR("/a/.")), "no way nowhere");
    ok(!http_path_valid(STR("/a\nb")) && !http_path_valid(STR("/\x7f")), "no control characters");
}

static struct str query(struct str q, const char *name, size_t nth)
{
    struct str out = STR_NULL;
    return http_query_find(&arena, q, str_of(name), nth, &out) ? out : STR_NULL;
}

static void queries(void)
{
    struct str q = STR("tag=a+b&match=all&tag=%E4%BD%A0&empty=&bare&t%61g=third&x=1=2");
    is_str(query(q, "tag", 0), STR("a b"), "the first value");
    is_str(query(q, "tag", 1), STR("\xE4\xBD\xA0"), "the second, decoded");
    is_str(query(q, "tag", 2), STR("third"), "names are decoded too");
    is_str(query(q, "tag", 3), STR_NULL, "there is no fourth");
    is_str(query(q, "empty", 0), STR(""), "an empty value");
    is_str(query(q, "bare", 0), STR(""), "no value at all");
    is_str(query(q, "x", 0), STR("1=2"), "only the first = separates");
    is_str(query(q, "ta", 0), STR_NULL, "names match as a whole");
    is_str(query(STR_NULL, "tag", 0), STR_NULL, "no query");
    is_str(query(STR(""), "tag", 0), STR_NULL, "an empty query");
    is_str(query(STR("a=%zz&a=2"), "a", 0), STR("2"), "what cannot be decoded is passed over");
}

int main(void)
{
    arena_init(&arena);
    decoding();
    refusing();
    paths();
    queries();
    arena_release(&arena);
    return tap_done();
}
