#include "corpus/doi.h"

#include "tests/tap.h"

static void normal(void)
{
    static const struct {
        const char *raw, *doi;
    } cases[] = {
        {"10.3390/f8050161", "10.3390/f8050161"},
        {"{10.1088/1748-9326/7/4/044015}", "10.1088/1748-9326/7/4/044015"},
        {"  10.1162/TACL_a_00296 \n", "10.1162/tacl_a_00296"},
        {"10.1162/tacl{\\_}a\\_00296", "10.1162/tacl_a_00296"},
        {"https://doi.org/10.1/x", NULL},
        {"https://doi.org/10.1000/ABC", "10.1000/abc"},
        {"HTTP://DX.DOI.ORG/10.1000/abc", "10.1000/abc"},
        {"doi.org/10.1000/abc", "10.1000/abc"},
        {"doi:10.1000/abc", "10.1000/abc"},
        {"DOI 10.1000/abc", "10.1000/abc"},
        {"DOI10.1000/abc", "10.1000/abc"},
        {"doi: https://www.doi.org/10.1000/abc?nosfx=y", "10.1000/abc"},
        {"https://x.org/r?doi=10.1155%2F2021%2f25&id=40", "10.1155/2021/25"},
        {"https://doi.org/10.1000/a%28B%29", "10.1000/a(b)"},
        {"10.1000/a%2fb?c&d#e", "10.1000/a%2fb?c&d#e"},
        {"10.1000/abc.", "10.1000/abc"},
        {"\"10.1000/abc\",", "10.1000/abc"},
        {"(10.1000/abc).", "10.1000/abc"},
        {"<10.1000/abc>", "10.1000/abc"},
        {"10.1016/S0140-6736(20)30183-5", "10.1016/s0140-6736(20)30183-5"},
        {"10.1002/(SICI)1097(1998)17:15<1661::AID-SIM968>3.0.CO;2-2",
         "10.1002/(sici)1097(1998)17:15<1661::aid-sim968>3.0.co;2-2"},
        {"10.1002/(SICI)17:15&lt;1661::A&gt;3.0.CO;2-2", "10.1002/(sici)17:15<1661::a>3.0.co;2-2"},
        {"10.1002/17{\\textless}1661{\\textgreater}3", "10.1002/17<1661>3"},
        {"10.1000/a, 10.1000/b", "10.1000/a"},
        {"10.1000/a;10.1000/b", "10.1000/a"},
        {"10.1000/a,https://doi.org/10.1000/b", "10.1000/a"},
        {"10.1000/a\uFF0C10.1000/b", "10.1000/a"},
        {"10.1000/a,b", "10.1000/a,b"},
        {"10.1000.10/123", "10.1000.10/123"},
        {"10.123456789/x", "10.123456789/x"},
        {"10.1234567890/x", NULL},
        {"10.123/x", NULL},
        {"10.1000/", NULL},
        {"10.1000/...", NULL},
        {"10.1000", NULL},
        {"11.1000/x", NULL},
        {"210.1000/x", NULL},
        {"4.10.1000/x", NULL},
        {"10.1000/ x", NULL},
        {"10.1000/a\tb", "10.1000/a"},
        {"", NULL},
    };
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str got = STR("untouched");
        bool found = doi_normal(&a, str_of(cases[i].raw), &got);
        is_str(got, str_of(cases[i].doi ? cases[i].doi : "untouched"), "%s", cases[i].raw);
        ok(found == (cases[i].doi != NULL), "and says whether");
    }
    arena_release(&a);
}

static void length(void)
{
    struct arena a;
    arena_init(&a);
    char text[DOI_BYTES_MAX + 1];
    memset(text, 'x', sizeof(text));
    memcpy(text, "10.1000/", 8);
    struct str got;
    ok(doi_normal(&a, str_from(text, DOI_BYTES_MAX), &got), "the longest DOI");
    is_int((int64_t)got.n, DOI_BYTES_MAX, "is kept whole");
    ok(!doi_normal(&a, str_from(text, DOI_BYTES_MAX + 1), &got), "one byte more is none");
    ok(!doi_normal(&a, STR_NULL, &got), "an absent field has none");
    arena_release(&a);
}

static struct str made_up(struct arena *a, const char *journal, const char *year, const char *title,
                          const char *entry)
{
    struct doi_source s = {.journal = str_of(journal),
                           .year = str_of(year),
                           .title = str_of(title),
                           .entry = str_of(entry)};
    return doi_made_up(a, &s);
}

static void making_up(void)
{
    struct arena a;
    arena_init(&a);
    struct str key = made_up(&a, "Nature", "2020", "The {DNA} of G{\\\"o}del", "@article{x}");
    is_str(key, STR("made-up/6fb43615dbb9321bd92fb1c870d8e184"), "never changes: it is stored");
    ok(doi_is_made_up(key) && !doi_is_made_up(STR("10.1000/x")), "is marked");
    struct str other;
    ok(!doi_normal(&a, key, &other), "and is no DOI");
    is_str(made_up(&a, "NATURE", "{2020}", " the dna\n of  G\\\"ODEL.", "@misc{y}"), key,
           "white space, case, braces and the entry do not matter");
    is_str(made_up(&a, "Nature", "2020", "The {DNA} of GÖDEL", NULL), key,
           "nor the case of letters beyond ASCII");
    ok(!str_eq(made_up(&a, "Nature", "2020", "The RNA of Gödel", NULL), key), "the title does");
    ok(!str_eq(made_up(&a, "Nature", "2021", "The DNA of Gödel", NULL), key), "the year does");
    ok(!str_eq(made_up(&a, "Science", "2020", "The DNA of Gödel", NULL), key), "the journal does");
    ok(!str_eq(made_up(&a, "ab", "c", "t", NULL), made_up(&a, "a", "bc", "t", NULL)),
       "fields do not flow together");
    struct str untitled = made_up(&a, "J", "2020", "{}", "@misc{k, note = {A b}}");
    is_str(made_up(&a, "J", "2020", NULL, "@MISC{k,\n note={a B}}"), untitled,
           "without a title the entry counts, whatever its formatting");
    ok(!str_eq(made_up(&a, "J", "2020", NULL, "@misc{k, note = {A c}}"), untitled),
       "and another entry has another key");
    ok(!str_eq(made_up(&a, "J", "2020", "a", NULL), made_up(&a, "J", "2020", NULL, "a")),
       "a title is no entry");
    ok(!str_eq(made_up(&a, "J", "2020", "中文", NULL), made_up(&a, "J", "2020", "英文", NULL)),
       "Chinese titles count");
    arena_release(&a);
}

static struct str issue(struct arena *a, const char *volume, const char *number, const char *pages)
{
    struct doi_source s = {.journal = STR("J"),
                           .year = STR("2020"),
                           .title = STR("Editorial"),
                           .volume = str_of(volume),
                           .number = str_of(number),
                           .pages = str_of(pages)};
    return doi_made_up(a, &s);
}

static void issues(void)
{
    struct arena a;
    arena_init(&a);
    struct str key = issue(&a, "7", "1-2", "12--19");
    is_str(issue(&a, " {7} ", "1/2", "12-19"), key, "one spelling of volume, number and pages");
    is_str(issue(&a, "7", "{1}--{2}", "12 – 19."), key, "and another");
    ok(!str_eq(issue(&a, "8", "1-2", "12--19"), key), "the volume counts");
    ok(!str_eq(issue(&a, "7", "12", "12--19"), key), "the number, and 12 is not 1-2");
    ok(!str_eq(issue(&a, "7", "1-2", "121--9"), key), "the pages");
    ok(!str_eq(issue(&a, "7", NULL, NULL), issue(&a, NULL, "7", NULL)) &&
           !str_eq(issue(&a, NULL, "7", NULL), issue(&a, NULL, NULL, "7")),
       "they do not flow together");
    is_str(issue(&a, "S7", "", NULL), issue(&a, "s7", NULL, "{}"), "empty is as good as absent");
    arena_release(&a);
}

int main(void)
{
    normal();
    length();
    making_up();
    issues();
    return tap_done();
}
