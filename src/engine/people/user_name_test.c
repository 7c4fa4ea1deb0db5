#include "engine/people/user.h"
#include "tests/tap.h"

static const struct {
    struct str name;
    const char *why;
} good[] = {
    {STR("asher"), "plain"},
    {STR("ASHER_9-x"), "digits, '_', '-'"},
    {STR("abc"), "three characters"},
    {STR("abcdefghijabcdefghijabcdefghij12"), "thirty-two"},
    {STR("---"), "only signs that are allowed"},
    {STR("李小龙"), "three CJK characters"},
    {STR("𠀀𠀁𠀂"), "CJK of four bytes"},
    {STR("ｄａｖｉｄ"), "fullwidth"},
    {STR("José"), "composed"},
    {STR("Jose\u0301"), "decomposed, which can be composed"},
    {STR("محمد"), "right to left"},
    {STR("שלום"), "Hebrew"},
    {STR("Straße"), "folds to something longer"},
    {STR("İstanbul"), "folds to a letter and a dot"},
    {STR("٣٤٥"), "digits of another script"},
};

static const struct {
    struct str name;
    const char *why;
} bad[] = {
    {STR(""), "empty"},
    {{NULL, 0}, "absent"},
    {STR("ab"), "two characters"},
    {STR("李李"), "two characters of three bytes"},
    {STR("abcdefghijabcdefghijabcdefghij123"), "thirty-three"},
    {STR("a b c"), "spaces"},
    {STR(" asher"), "a space before"},
    {STR("asher\n"), "a newline"},
    {STR("o'brien"), "a quote"},
    {STR("\"asher\""), "double quotes"},
    {STR("' OR 1=1 --"), "SQL"},
    {STR("asher;DROP"), "more SQL"},
    {STR("*1\r\n$4\r\nPING\r\n"), "RESP"},
    {STR("user:1:info"), "a key"},
    {STR("a%00b"), "percent"},
    {STR("a{b}c"), "braces"},
    {STR("<b>bob</b>"), "HTML"},
    {STR("../../etc"), "a path"},
    {STR("ash\0er"), "NUL"},
    {STR("\0\0\0\0"), "only NUL"},
    {STR("\xff\xfe\xfd"), "no UTF-8"},
    {STR("abc\xc3"), "cut within a character"},
    {STR("\xc0\xafzzz"), "overlong"},
    {STR("\xed\xa0\x80zzz"), "a surrogate"},
    {STR("asher😀"), "an emoji"},
    {STR("q\u0301\u0323ux"), "combining marks that stay"},
    {STR("ab\u200d"
         "cd"),
     "zero width joiner"},
    {STR("\u202e"
         "evil"),
     "right-to-left override"},
    {STR("as\u3164her"), "a letter that cannot be seen"},
    {STR("ﷺﷺﷺ"), "a letter that folds to words with spaces"},
    {STR("ⅧⅧⅧ"), "number letters"},
    {STR("½½½"), "fractions"},
    {STR("a\u00a0b\u00a0c"), "no-break space"},
};

static void test_table(void)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const char *problem = user_name_problem(good[i].name);
        ok(!problem, "fine: %s%s%s", good[i].why, problem ? ": " : "", problem ? problem : "");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(user_name_problem(bad[i].name), "refused: %s", bad[i].why);
}

static void test_long(void)
{
    char name[4096];
    memset(name, 'a', sizeof name);
    ok(user_name_problem(str_from(name, sizeof name)), "four thousand characters are refused");
    struct buf b;
    buf_init(&b);
    for (int i = 0; i < USER_NAME_CHARS_MAX - 1; i++)
        buf_add_lit(&b, "ﷲ"); /* four letters of two bytes each */
    ok(!user_name_problem(buf_str(&b)), "folded to 248 bytes");
    buf_add_lit(&b, "ﷲ");
    ok(user_name_problem(buf_str(&b)), "folded to 256 bytes");
    buf_release(&b);
}

static void test_folding(void)
{
    static const struct str alike[][2] = {
        {STR("asher"), STR("ASHER")},      {STR("asher"), STR("ａｓｈｅｒ")},
        {STR("asher"), STR("ＡＳＨＥＲ")}, {STR("asher"), STR("𝐀sher")},
        {STR("José"), STR("JOSE\u0301")},  {STR("straße"), STR("STRASSE")},
        {STR("σίσυφος"), STR("ΣΊΣΥΦΟΣ")},  {STR("ﬁsh"), STR("FISH")},
        {STR("KIM"), STR("\u212aim")},
    };
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
        is_str(user_name_folded(&a, alike[i][1]), user_name_folded(&a, alike[i][0]),
               "alike: %.*s and %.*s", STR_ARG(alike[i][0]), STR_ARG(alike[i][1]));
    is_str(user_name_folded(&a, STR("Asher_9-X")), STR("asher_9-x"), "signs stay");
    ok(!str_eq(user_name_folded(&a, STR("asher")), user_name_folded(&a, STR("ashér"))),
       "an accent makes a difference");
    arena_release(&a);
}

static void test_passwords(void)
{
    char p[80];
    memset(p, 'p', sizeof p);
    ok(user_password_problem(str_from(p, 7)), "seven bytes are too few");
    ok(!user_password_problem(str_from(p, 8)), "eight are enough");
    ok(!user_password_problem(str_from(p, 72)), "72 are fine");
    ok(user_password_problem(str_from(p, 73)), "73 are too many");
    ok(user_password_problem(STR_NULL), "none is none");
    ok(user_password_problem(STR("pass\0word")), "a NUL would hide the rest");
}

int main(void)
{
    test_table();
    test_long();
    test_folding();
    test_passwords();
    return tap_done();
}
