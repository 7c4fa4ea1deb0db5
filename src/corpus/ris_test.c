#include "corpus/ris.h"

#include "tests/tap.h"

static struct arena arena;
static struct bibtex *reader;

static struct str record(struct str bibtex, struct str doi)
{
    struct buf out;
    struct ris_paper p = {.doi = doi, .year = 2024, .journal = STR("NATURE")};
    buf_init(&out);
    int err = ris_write(&arena, reader, bibtex, &p, &out);
    struct str text = err ? STR("an error") : str_dup(&arena, buf_str(&out));
    buf_release(&out);
    return text;
}

/* The values of a tag, with " | " between them; "" if there are none. */
static struct str values(struct str text, const char *tag)
{
    struct str all = STR(""), rest = text, head = str_printf(&arena, "%s  - ", tag);
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');
        if (!str_starts(line, head))
            continue;
        struct str value = str_from(line.p + head.n, line.n - head.n - 1);
        all = str_printf(&arena, "%.*s%s%.*s", STR_ARG(all), all.n ? " | " : "", STR_ARG(value));
    }
    return all;
}

static void whole(void)
{
    struct str text =
        STR("@string{n = \"Nature {\\&} Co\"}\n"
            "@Article{key2024,\n"
            "  author = {Kurt G{\\\"o}del and {World Health Organization} and others},\n"
            "  title = {On {Formally}\n   Undecidable $\\alpha$},\n"
            "  journal = n, volume = 12, number = {3}, pages = {173--198}, year = 1931,\n"
            "  issn = {0028-0836}, doi = {10.1000/ABC}, publisher = {Springer},\n"
            "  url = {https://example.org/a\\_b~c?x=1\\&y=2},\n"
            "  keywords = {logic; proof, formal}, abstract = {First line.\n\nSecond 50\\%.}}");
    is_str(record(text, STR("10.1000/abc")),
           STR("TY  - JOUR\r\n"
               "TI  - On Formally Undecidable α\r\n"
               "AU  - Gödel, Kurt\r\n"
               "AU  - World Health Organization\r\n"
               "T2  - Nature & Co\r\n"
               "JO  - Nature & Co\r\n"
               "PY  - 2024\r\n"
               "VL  - 12\r\n"
               "IS  - 3\r\n"
               "SP  - 173\r\n"
               "EP  - 198\r\n"
               "PB  - Springer\r\n"
               "SN  - 0028-0836\r\n"
               "DO  - 10.1000/abc\r\n"
               "UR  - https://example.org/a_b~c?x=1&y=2\r\n"
               "KW  - logic\r\n"
               "KW  - proof, formal\r\n"
               "AB  - First line. Second 50%.\r\n"
               "ID  - key2024\r\n"
               "ER  - \r\n\r\n"),
           "an article");
    is_str(record(STR_NULL, STR("10.1000/gone")),
           STR("TY  - JOUR\r\nT2  - NATURE\r\nJO  - NATURE\r\nPY  - 2024\r\n"
               "DO  - 10.1000/gone\r\nER  - \r\n\r\n"),
           "a paper whose entry is gone");
    is_str(record(STR("no entry"), STR("10.1000/x")), STR("an error"), "not an entry");
}

static void names(void)
{
    static const struct {
        const char *field, *want;
    } cases[] = {
        {"Knuth, Donald E. and Lamport, Leslie", "Knuth, Donald E. | Lamport, Leslie"},
        {"Donald E. Knuth AND Leslie Lamport", "Knuth, Donald E. | Lamport, Leslie"},
        {"Ludwig van Beethoven", "van Beethoven, Ludwig"},
        {"van Beethoven, Ludwig", "van Beethoven, Ludwig"},
        {"King, Jr., Martin Luther", "King, Martin Luther, Jr."},
        {"de la Vall{\\'e}e Poussin, Charles", "de la Vallée Poussin, Charles"},
        {"jean de la fontaine", "jean de la fontaine"},
        {"Plato", "Plato"},
        {"{Barnes and Noble, Inc.}", "Barnes and Noble, Inc."},
        {"{Barnes and Noble} and {IEEE}", "Barnes and Noble | IEEE"},
        {"{Apple} {Inc.}", "Inc., Apple"},
        {"Maria {de la Cruz Gomez}", "de la Cruz Gomez, Maria"},
        {"Andersson, Anders and Sandra Andover", "Andersson, Anders | Andover, Sandra"},
        {"王小明 and 李, 四", "王小明 | 李, 四"},
        {"A. One\n and\n B. Two", "One, A. | Two, B."},
        {"Smith, J. and others", "Smith, J."},
        {"and", "and"},
        {"Smith, ", "Smith"},
        {", John", "John"},
        {"M.~Curie", "Curie, M."},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str text = str_printf(&arena, "@misc{k, author = {%s}}", cases[i].field);
        is_str(values(record(text, STR("10.1/x")), "AU"), str_of(cases[i].want), "names: %s",
               cases[i].field);
    }
    struct str text = STR("@incollection{k, editor = {A. One and B. Two}, author = {C. Three}}");
    is_str(values(record(text, STR("10.1/x")), "ED"), STR("One, A. | Two, B."), "editors");
}

static void pages(void)
{
    static const struct {
        const char *fields, *first, *last;
    } cases[] = {
        {"pages = {1--2}", "1", "2"},
        {"pages = {1-2}", "1", "2"},
        {"pages = {1---2}", "1", "2"},
        {"pages = {1–2}", "1", "2"},
        {"pages = {1 -- 2}", "1", "2"},
        {"pages = {S1--S12}", "S1", "S12"},
        {"pages = {E12-3--E12-9}", "E12-3", "E12-9"},
        {"pages = {E12-3-9}", "E12-3-9", ""},
        {"pages = {5}", "5", ""},
        {"pages = {1--2, 7--9}", "1–2, 7–9", ""},
        {"pages = {17+}", "17+", ""},
        {"eid = {e1002}", "e1002", ""},
        {"pages = {}, articleno = 7", "7", ""},
        {"pages = {--}", "", ""},
        {"title = {T}", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str text = record(str_printf(&arena, "@article{k, %s}", cases[i].fields), STR("x"));
        is_str(values(text, "SP"), str_of(cases[i].first), "first page of %s", cases[i].fields);
        is_str(values(text, "EP"), str_of(cases[i].last), "last page of %s", cases[i].fields);
    }
}

static void types(void)
{
    static const char *const cases[][2] = {
        {"article", "JOUR"},      {"INPROCEEDINGS", "CONF"}, {"book", "BOOK"},
        {"incollection", "CHAP"}, {"phdthesis", "THES"},     {"techreport", "RPRT"},
        {"misc", "GEN"},          {"whatever", "GEN"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_str(values(record(str_printf(&arena, "@%s{k, title={T}}", cases[i][0]), STR("x")), "TY"),
               str_of(cases[i][1]), "@%s", cases[i][0]);
    struct str text =
        record(STR("@inproceedings{k, booktitle={Proc. of X}, school={S}}"), STR("x"));
    is_str(values(text, "T2"), STR("Proc. of X"), "where a conference paper was printed");
    is_str(values(text, "JO"), STR(""), "which is no journal");
    text = record(STR("@article{k, title={T}}"), STR("made-up/0123456789abcdef0123456789abcdef"));
    is_str(values(text, "DO"), STR(""), "a made-up key is no DOI");
    is_str(values(text, "T2"), STR("NATURE"), "the journal by which it is known");
}

/* Nothing in a value can end its line, or look like another. */
static void hostile(void)
{
    struct str text = record(STR("@article{k\x01y, title = {A\r\nER  - \r\nTY  - JOUR}, abstract = "
                                 "{a\xe2\x80\xa8"
                                 "b\xc2\x85"
                                 "c \xff 😀 \\unbalanced{ $x_}},"
                                 " journal = {中文期刊}, url = {http://x/\r\nAU  - Eve}}"),
                             STR("x"));
    is_str(values(text, "TI"), STR("A ER - TY - JOUR"), "a title that looks like the end");
    is_str(values(text, "T2"), STR("中文期刊"), "Chinese");
    is_str(values(text, "AU"), STR(""), "an address that looks like an author");
    struct str abstract = values(text, "AB");
    ok(str_find(abstract, STR("a b c \xef\xbf\xbd 😀")) == 0, "separators of Unicode, broken bytes");
    ok(str_utf8_valid(text), "valid UTF-8");
    is_str(values(text, "ER"), STR(""), "one end");
}

int main(void)
{
    arena_init(&arena);
    reader = bibtex_new(NULL, NULL);
    whole();
    names();
    pages();
    types();
    hostile();
    bibtex_free(reader);
    arena_release(&arena);
    return tap_done();
}
