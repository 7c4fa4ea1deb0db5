#include "corpus/paper.h"

#include "base/err.h"
#include "corpus/doi.h"
#include "tests/tap.h"

/* The first entry of a text as a paper of the journal "J", from "a.bib". */
static int of_text(struct arena *a, struct bibtex *b, struct str text, struct paper *p,
                   const char **why)
{
    struct bibtex_entry e;
    size_t used;
    bibtex_reset(b);
    check(bibtex_next(b, text, true, &e, &used) == BIBTEX_ENTRY);
    return paper_of_entry(a, b, &e, STR("J"), STR("a.bib"), p, why);
}

static void years(struct arena *a, struct bibtex *b)
{
    static const struct {
        const char *field, *why;
        int64_t year;
    } cases[] = {
        {"year = 2024", NULL, 2024},
        {"year = {2024}", NULL, 2024},
        {"year = {{2024}}", NULL, 2024},
        {"year = {2024a}", NULL, 2024},
        {"year = {c2024}", NULL, 2024},
        {"year = {12 May 2024}", NULL, 2024},
        {"year = {2019/2020}", NULL, 2019},
        {"year = {20190101, 2020}", NULL, 2020},
        {"date = {2024-05-01}", NULL, 2024},
        {"year = 1400", NULL, PAPER_YEAR_MIN},
        {"year = 2200", NULL, PAPER_YEAR_MAX},
        {"year = 1399", "year out of range", 0},
        {"year = 2201", "year out of range", 0},
        {"year = 0000", "year out of range", 0},
        {"year = {in press}", "no year", 0},
        {"year = {}", "no year", 0},
        {"year = {99}", "no year", 0},
        {"year = {20240}", "no year", 0},
        {"note = {2024}", "no year", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct paper p = {.year = 0};
        const char *why = NULL;
        struct str text = str_printf(a, "@a{k, title = {T}, %s}", cases[i].field);
        is_int(of_text(a, b, text, &p, &why), cases[i].why ? ERR_INVALID : 0, "%s", cases[i].field);
        is_int(p.year, cases[i].year, "its year");
        is_str(str_of(why), str_of(cases[i].why), "and why not");
    }
}

static void dois(struct arena *a, struct bibtex *b)
{
    static const struct {
        const char *fields, *doi; /* NULL: made up */
    } cases[] = {
        {"doi = {https://doi.org/10.1000/ABC}", "10.1000/abc"},
        {"doi = {10.1000/a}, url = {https://doi.org/10.1000/b}", "10.1000/a"},
        {"doi = {none}, url = {https://doi.org/10.1000/b}", "10.1000/b"},
        {"url = {HTTP://DX.DOI.ORG/10.1000/b}", "10.1000/b"},
        {"url = {doi.org/10.1000/b}", "10.1000/b"},
        {"url = {https://x.org/10.1000/a https://doi.org/10.1000/b}", "10.1000/b"},
        {"url = {https://x.org/?doi=10.1000/b}", NULL},
        {"url = {https://notdoi.org/10.1000/b}", NULL},
        {"note = {https://doi.org/10.1000/b}", NULL},
        {"note = {x}", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct paper p;
        const char *why;
        struct str text = str_printf(a, "@a{k, title = {T}, year = 2024, %s}", cases[i].fields);
        check(of_text(a, b, text, &p, &why) == 0);
        if (cases[i].doi)
            is_str(p.doi, str_of(cases[i].doi), "%s", cases[i].fields);
        else
            ok(doi_is_made_up(p.doi), "%s: made up", cases[i].fields);
    }
}

static struct str doi_of(struct arena *a, struct bibtex *b, const char *fields)
{
    struct paper p;
    const char *why;
    check(of_text(a, b, str_printf(a, "@a{k, %s}", fields), &p, &why) == 0);
    return p.doi;
}

static void made_up(struct arena *a, struct bibtex *b)
{
    struct str one = doi_of(a, b, "title={Editorial}, year=2024, volume=1, number=2, pages={3--4}");
    is_str(doi_of(a, b, "pages=\"3-4\", number={2}, year={2024a}, title={EDITORIAL.}, volume=1"),
           one, "the same entry in another spelling");
    ok(!str_eq(doi_of(a, b, "title={Editorial}, year=2024, volume=1, number=3, pages={3--4}"), one),
       "another issue is another editorial");
    ok(!str_eq(doi_of(a, b, "title={Editorial}, year=2024, volume=2, number=2, pages={3--4}"), one),
       "another volume too");
    ok(!str_eq(doi_of(a, b, "title={Editorial}, year=2024, volume=1, number=2, pages={5--6}"), one),
       "other pages too");
}

static const char with_strings[] = "@string{a = {Acta}}@string{unused = {x}}\n"
                                   "@string(b = a # { Botanica})\n"
                                   "@Article{k, title = {G\\\"odel \\& Co}, journal = b,\n"
                                   " year = 2024, author = {A {\\'E}b and C}, doi = {10.1000/X}}\n";

static void two_forms(struct arena *a, struct bibtex *b)
{
    struct paper p, back;
    const char *why;
    check(of_text(a, b, str_of(with_strings), &p, &why) == 0);
    is_str(p.strings, STR("@string{a = {Acta}}\n@string(b = a # { Botanica})\n"),
           "the strings it needs, a line each");
    ok(str_starts(p.bib, STR("@Article{k,")) && str_ends(p.bib, STR("10.1000/X}}")), "the entry");
    is_str(p.doi, STR("10.1000/x"), "its DOI");
    is_str(p.file, STR("a.bib"), "its file");

    struct buf json;
    buf_init(&json);
    paper_write_json(&json, &p);
    ok(str_starts(buf_str(&json), STR("{\"journal\":\"J\",\"year\":2024,\"file\":\"a.bib\",\"bib\":"
                                      "\"@Article{k, title")),
       "JSON, its short members first");
    is_int(paper_read_json(a, p.doi, buf_str(&json), &back), 0, "and read back");
    is_str(back.strings, p.strings, "the same strings");
    is_str(back.bib, p.bib, "the same entry");
    ok(str_eq(back.journal, p.journal) && str_eq(back.file, p.file) && back.year == p.year &&
           str_eq(back.doi, p.doi),
       "the same in all else");

    struct str text = paper_bibtex(a, &p), strings, bib;
    is_int(paper_split_bibtex(a, b, text, &strings, &bib), 0, "BibTeX, cut again");
    is_str(strings, p.strings, "into the strings");
    is_str(bib, p.bib, "and the entry");
    ok(strings.p == text.p && bib.p + bib.n == text.p + text.n, "nothing is copied");
    p.strings = STR("");
    buf_clear(&json);
    paper_write_json(&json, &p);
    ok(str_find(buf_str(&json), STR("strings")) < 0, "no strings, no member");
    is_int(paper_read_json(a, p.doi, buf_str(&json), &back), 0, "which is read");
    ok(back.strings.p && back.strings.n == 0, "as none");
    buf_release(&json);
}

/* An @string defined anew between two that use it must come out in an order that works. */
static void strings_anew(struct arena *a, struct bibtex *b)
{
    struct paper p;
    const char *why;
    struct paper_fields f;
    struct str text = STR("@string{a={1}}@string{b=a}@string{a={2}}@x{k, year=2024, title=a # b}");
    check(of_text(a, b, text, &p, &why) == 0);
    is_int(paper_read_bibtex(a, b, paper_bibtex(a, &p), &f), 0, "a string defined anew");
    is_str(f.title, STR("21"), "means what it meant in the file");
}

static void fields(struct arena *a, struct bibtex *b)
{
    struct paper p;
    const char *why;
    struct paper_fields f;
    check(of_text(a, b, str_of(with_strings), &p, &why) == 0);
    char *text = str_z(a, paper_bibtex(a, &p));
    is_int(paper_read_bibtex(a, b, str_of(text), &f), 0, "fields");
    memset(text, 'x', strlen(text));
    bibtex_reset(b);
    is_str(f.title, STR("Gödel & Co"), "title, which outlives text and reader");
    is_str(f.authors, STR("A Éb and C"), "authors");
    is_str(f.printed_in, STR("Acta Botanica"), "printed in, by the strings");
    is_str(f.type, STR("Article"), "type");
    is_str(f.key, STR("k"), "key");
    ok(!f.abstract.p, "no abstract");

    struct str title, abstract;
    is_int(paper_read_shown(a, b, paper_bibtex(a, &p), &title, &abstract), 0, "for a prompt");
    is_str(title, STR("Gödel & Co"), "the title");
    ok(!abstract.p, "no abstract");
    is_int(paper_read_shown(a, b, STR("@x{k, abstract = {An {\\\"o} in it}"), &title, &abstract),
           ERR_PROTO, "half an entry is none");
    is_int(paper_read_shown(a, b, STR("@x{k, abstract = {An {\\\"o} in it}}"), &title, &abstract),
           0, "another one");
    ok(!title.p && str_eq(abstract, STR("An ö in it")), "with an abstract alone");

    is_int(paper_read_bibtex(a, b, STR("@x{, journal = {}, title = b, booktitle = {B}}"), &f), 0,
           "another text with the same reader");
    is_str(f.title, STR("b"), "which has forgotten the strings");
    is_str(f.printed_in, STR("B"), "a book, where no journal is named");
    ok(f.key.p && f.key.n == 0 && !f.authors.p, "an empty key is there, authors are not");

    struct str strings, bib;
    is_int(paper_read_bibtex(a, b, STR("@a{k, title = {x}"), &f), ERR_PROTO, "half an entry");
    is_int(paper_read_bibtex(a, b, STR(""), &f), ERR_PROTO, "nothing");
    is_int(paper_split_bibtex(a, b, STR("@string{a={b}}"), &strings, &bib), ERR_PROTO, "no entry");
    is_str(f.title, STR("b"), "and nothing changes");
    is_int(paper_read_bibtex(a, b, STR("@a{k, title = {x}}"), &f), 0, "an entry after damage");
}

static void bad_json(struct arena *a)
{
    static const char *const cases[] = {
        "",
        "[]",
        "null",
        "{",
        "{\"year\":2024,\"file\":\"f\",\"bib\":\"b\"}",
        "{\"journal\":\"j\",\"file\":\"f\",\"bib\":\"b\"}",
        "{\"journal\":\"j\",\"year\":2024,\"bib\":\"b\"}",
        "{\"journal\":\"j\",\"year\":2024,\"file\":\"f\"}",
        "{\"journal\":null,\"year\":2024,\"file\":\"f\",\"bib\":\"b\"}",
        "{\"journal\":\"j\",\"year\":\"2024\",\"file\":\"f\",\"bib\":\"b\"}",
        "{\"journal\":\"j\",\"year\":24,\"file\":\"f\",\"bib\":\"b\"}",
        "{\"journal\":\"j\",\"year\":2024,\"file\":\"f\",\"bib\":\"b\",\"strings\":1}",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct paper p = {.year = 7};
        is_int(paper_read_json(a, STR("d"), str_of(cases[i]), &p), ERR_PROTO, "not: %s", cases[i]);
        ok(p.year == 7, "and nothing changes");
    }
}

static void digests(void)
{
    const struct paper p = {STR("d"), STR("j"), 2024, STR("f"), STR("b"), STR("s")};
    int64_t digest = paper_digest(&p);
    is_int(digest, 4546603847535848678, "never changes: it is stored");
    struct paper others[] = {p, p, p, p, p, p};
    others[0].doi = STR("e");
    others[1].journal = STR("k");
    others[2].year = 2025;
    others[3].bib = STR("c");
    others[4].strings = STR("");
    others[5].bib = STR("sb");
    others[5].strings = STR("");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        int64_t other = paper_digest(&others[i]);
        ok(other != digest && other >= 0, "content %zu counts", i);
    }
    struct paper same = p;
    same.file = STR("g");
    is_int(paper_digest(&same), digest, "the file does not");
}

static void names(struct arena *a, struct bibtex *b)
{
    char name[PAPER_NAME_BYTES_MAX + 1];
    memset(name, 'n', sizeof(name));
    struct str fits = str_from(name, PAPER_NAME_BYTES_MAX), long_one = str_from(name, sizeof(name));
    struct bibtex_entry e;
    struct paper p;
    const char *why;
    size_t used;
    bibtex_reset(b);
    check(bibtex_next(b, STR("@a{k, year = 2024}"), true, &e, &used) == BIBTEX_ENTRY);
    is_int(paper_of_entry(a, b, &e, fits, fits, &p, &why), 0, "the longest names");
    is_int(paper_of_entry(a, b, &e, long_one, fits, &p, &why), ERR_INVALID, "a longer journal");
    is_str(str_of(why), STR("name of the journal too long"), "is told");
    is_int(paper_of_entry(a, b, &e, fits, long_one, &p, &why), ERR_INVALID, "a longer file");
    is_str(str_of(why), STR("name of the file too long"), "is told");
}

/* Through all forms; what is not UTF-8 cannot come back from JSON and is only read. */
static void odd_text(struct arena *a, struct bibtex *b, const char *what, struct str text)
{
    struct paper p, back;
    struct paper_fields f;
    const char *why;
    struct buf json;
    buf_init(&json);
    is_int(of_text(a, b, text, &p, &why), 0, "%s: a paper", what);
    paper_write_json(&json, &p);
    is_int(paper_read_json(a, p.doi, buf_str(&json), &back), 0, "%s: through JSON", what);
    if (str_utf8_valid(text))
        ok(str_eq(back.bib, text), "%s: unchanged", what);
    is_int(paper_read_bibtex(a, b, paper_bibtex(a, &back), &f), 0, "%s: fields", what);
    ok(f.title.n && str_utf8_valid(f.title), "%s: its title is text", what);
    buf_release(&json);
}

static void odd_texts(struct arena *a, struct bibtex *b)
{
    odd_text(a, b, "NUL bytes", STR("@a{k\0, title = {x\0y}, year = 2024, note = {\0}}"));
    odd_text(a, b, "GBK bytes", STR("@a{k, title = {\xd6\xd0\xce\xc4 x}, year = 2024}"));
    struct str head = STR("@a{k, year = 2024, abstract = {"), tail = STR("}, title = {x}}");
    char *p = arena_alloc(a, BIBTEX_ENTRY_BYTES_MAX);
    memset(p, 'x', BIBTEX_ENTRY_BYTES_MAX);
    for (size_t i = 0; i < BIBTEX_ENTRY_BYTES_MAX; i += 80)
        p[i] = i % 3 ? '\n' : '&';
    memcpy(p, head.p, head.n);
    memcpy(p + BIBTEX_ENTRY_BYTES_MAX - tail.n, tail.p, tail.n);
    odd_text(a, b, "the longest entry", str_from(p, BIBTEX_ENTRY_BYTES_MAX));
}

/* Two @strings that are nearly all white space, and an entry: each within its own limit. */
static void too_long(struct arena *a, struct bibtex *b)
{
    struct buf text;
    buf_init(&text);
    buf_printf(&text, "@string{s = {x}%*s}\n", 4000000, "");
    buf_printf(&text, "@string{t = {x}%*s}\n", 4000000, "");
    buf_printf(&text, "@a{k, year = 2024, note = s # t # {%*s}}", 1000000, "x");
    struct paper p;
    const char *why = NULL;
    is_int(of_text(a, b, buf_str(&text), &p, &why), ERR_INVALID, "too long");
    is_str(str_of(why), STR("too long with its @strings"), "is told");
    buf_release(&text);
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    struct bibtex *b = bibtex_new(NULL, NULL);
    years(&a, b);
    dois(&a, b);
    made_up(&a, b);
    two_forms(&a, b);
    strings_anew(&a, b);
    fields(&a, b);
    bad_json(&a);
    digests();
    names(&a, b);
    odd_texts(&a, b);
    too_long(&a, b);
    bibtex_free(b);
    arena_release(&a);
    return tap_done();
}
