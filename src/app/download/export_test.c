#include "app/download/export.h"

#include "corpus/csv.h"
#include "tests/tap.h"

static struct arena arena;

struct paper_row {
    const char *doi, *bibtex, *reason; /* bibtex NULL: gone */
    bool relevant, failed, simulated, not_judged, withdrawn;
};

static struct str file_of(enum export_format f, const struct paper_row *papers, size_t count)
{
    struct buf out;
    buf_init(&out);
    struct exporter *e = export_new(f, &out);
    for (size_t i = 0; i < count; i++) {
        const struct paper_row *p = &papers[i];
        struct result_row row = {
            .doi = str_of(p->doi),
            .result = {.outcome = p->failed     ? OUTCOME_FAILED
                                  : p->relevant ? OUTCOME_HIT
                                                : OUTCOME_MISS,
                       .simulated = p->simulated,
                       .not_judged = p->not_judged,
                       .withdrawn = p->withdrawn,
                       .reason = p->reason ? str_of(p->reason) : STR("")},
            .journal = STR("NATURE"),
            .year = 2024,
        };
        export_add(e, &row, str_of(p->bibtex));
    }
    export_free(e);
    struct str text = str_dup(&arena, buf_str(&out));
    buf_release(&out);
    return text;
}

#define FILE_OF(f, papers) file_of((f), (papers), sizeof(papers) / sizeof *(papers))

static const struct paper_row hostile[] = {
    {"10.1/a", "@article{a, title = {=cmd|' /C calc'!A0}, author = {+Eve and -Bob}, year = 2024}",
     "\n\t =HYPERLINK(\"http://x\")", true, false, false, false, false},
    {"10.1/b",
     "@article{b, title = \"Say {\"}hello{\"}, \n world\",\n abstract={二氧化碳，😀\r\n50\\%}}",
     "he said \"no\",\r\nthen left", false, false, false, false, false},
    {"10.1/c",
     "@article{c, title = {Unbalanced \\textbf{x and $\\frac{1}{}, @}}, journal={中文期刊}}",
     "timeout", false, true, false, false, false},
    {"made-up/0123456789abcdef0123456789abcdef", NULL, "@SUM(1)", true, false, false, false, false},
};

static void csv_cells(void)
{
    static const char *const want[][8] = {
        {"10.1/a", "'=cmd|' /C calc'!A0", "'+Eve and -Bob", "NATURE", "2024", "relevant",
         "'=HYPERLINK(\"http://x\")", ""},
        {"10.1/b", "Say \"hello\", world", "", "NATURE", "2024", "not relevant",
         "he said \"no\",  then left", "二氧化碳，😀 50%"},
        {"10.1/c", NULL, "", "中文期刊", "2024", "failed", "timeout", ""},
        {"made-up/0123456789abcdef0123456789abcdef", "", "", "NATURE", "2024", "relevant",
         "'@SUM(1)", ""},
    };
    struct str text = FILE_OF(EXPORT_CSV, hostile);
    struct csv c;
    struct csv_row row;
    ok(str_starts(text,
                  STR("\xef\xbb\xbf"
                      "doi,title,authors,journal,year,verdict,reason,abstract,simulated\r\n")),
       "a byte order mark, the columns");
    check(csv_open(&c, &arena, text) == 0);
    for (size_t i = 0; i < 4; i++) {
        is_int(csv_next(&c, &arena, &row), 0, "row %zu", i);
        for (size_t k = 0; k < 8; k++)
            if (want[i][k])
                is_str(row.cells[k], str_of(want[i][k]), "cell %zu", k);
    }
    is_int(csv_next(&c, &arena, &row), ERR_NOT_FOUND, "no more rows");
    ok(str_utf8_valid(text), "UTF-8");
}

static void csv_long(void)
{
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "@article{x, title={Long}, author={");
    for (int i = 0; i < 5000; i++)
        buf_printf(&b, "%sAuthor %d", i ? " and " : "", i);
    buf_add_lit(&b, "}}");
    struct paper_row p = {"10.1/long", str_z(&arena, buf_str(&b)), "", true, false, false, false,
                          false};
    struct csv c;
    struct csv_row row;
    check(csv_open(&c, &arena, file_of(EXPORT_CSV, &p, 1)) == 0);
    check(csv_next(&c, &arena, &row) == 0);
    ok(row.cells[2].n < 32767 && str_ends(row.cells[2], STR("…")), "a cell that Excel can hold");
    buf_release(&b);
}

static void bib_bytes(void)
{
    struct str text = FILE_OF(EXPORT_BIB, hostile), want = STR("");
    for (size_t i = 0; i < 3; i++)
        want = str_printf(&arena, "%.*s%s\n\n", STR_ARG(want), hostile[i].bibtex);
    want = str_printf(&arena, "%.*s%% not in the corpus any more: %s\n\n", STR_ARG(want),
                      hostile[3].doi);
    is_str(text, want, "entries byte for byte");
    static const struct paper_row gone[] = {{.doi = "10.1/@article{x,"}};
    text = FILE_OF(EXPORT_BIB, gone);
    ok(!memchr(text.p, '@', text.n), "a comment is no entry");
}

#define N1 "@string{n = \"Nature\"}"
#define N2 "@STRING( N = {Neuron} )"
#define X1 "@string{x = n # \" A\"}"
#define E1 "@article{one, journal = n}"
#define E2 "@article{two, journal = N}"
#define E3 "@article{three, journal = x}"

static void bib_strings(void)
{
    static const struct paper_row papers[] = {
        {.doi = "1", .bibtex = N1 "\n" E1},         {.doi = "2", .bibtex = N1 "\n" E1},
        {.doi = "3", .bibtex = N1 "\n" X1 "\n" E3}, {.doi = "4", .bibtex = N2 "\n" E2},
        {.doi = "5", .bibtex = N2 "\n" X1 "\n" E3}, {.doi = "6", .bibtex = N1 "\n" E1},
        {.doi = "7", .bibtex = N1 "\n" E1},
    };
    is_str(FILE_OF(EXPORT_BIB, papers),
           STR(N1 "\n" E1 "\n\n" E1 "\n\n" X1 "\n" E3 "\n\n" N2 "\n" E2 "\n\n" X1 "\n" E3 "\n\n" N1
                  "\n" E1 "\n\n" E1 "\n\n"),
           "an @string once, and again where its name means something else");
}

static void ris(void)
{
    struct str text = FILE_OF(EXPORT_RIS, hostile), rest = text;
    int ends = 0, begins = 0;
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');
        begins += str_starts(line, STR("TY  - "));
        ends += str_eq(line, STR("ER  - \r"));
    }
    ok(begins == 4 && ends == 4, "four records");
    ok(str_find(text, STR("made-up")) < 0, "no made-up DOI");
}

/* Marked in each format, and readers of the format survive. */
static void simulated(void)
{
    static const struct paper_row papers[] = {
        {.doi = "10.1/s", .bibtex = N1 "\n" E1, .relevant = true, .simulated = true},
        {.doi = "10.1/r", .bibtex = N1 "\n" E1, .relevant = true},
        {.doi = "10.1/n", .bibtex = E2, .failed = true, .not_judged = true, .reason = "blank"},
        {.doi = "10.1/w", .failed = true, .withdrawn = true, .reason = "left"},
    };
    static const char *const cells[4][2] = {
        {"relevant", "yes"}, {"relevant", "no"}, {"not judged", ""}, {"withdrawn", ""}};
    struct csv c;
    struct csv_row row;
    check(csv_open(&c, &arena, FILE_OF(EXPORT_CSV, papers)) == 0);
    for (size_t i = 0; i < 4; i++) {
        check(csv_next(&c, &arena, &row) == 0);
        is_str(row.cells[5], str_of(cells[i][0]), "verdict of row %zu", i);
        is_str(row.cells[8], str_of(cells[i][1]), "whether it is simulated");
    }
    struct str text = FILE_OF(EXPORT_BIB, papers);
    ok(str_starts(text, STR("% the verdict on the next entry is simulated: ")), "a comment");
    struct str rest = text;
    (void)str_cut(&rest, '\n');
    is_str(rest, STR(N1 "\n" E1 "\n\n" E1 "\n\n" E2 "\n\n% not in the corpus any more: 10.1/w\n\n"),
           "before its entry only, and the entries stay as they are");
    text = FILE_OF(EXPORT_RIS, papers);
    ptrdiff_t note = str_find(text, STR("N1  - The verdict is simulated: "));
    ptrdiff_t end = str_find(text, STR("ER  - "));
    ok(note > 0 && note < end, "a note of the first record");
    ok(str_find(str_from(text.p + end, text.n - (size_t)end), STR("simulated")) < 0,
       "and of no other");
}

static void names(void)
{
    enum export_format f;
    ok(export_parse(STR("ris"), &f) && f == EXPORT_RIS && !export_parse(STR("pdf"), &f), "names");
    is_str(file_of(EXPORT_BIB, NULL, 0), STR(""), "no papers");
}

int main(void)
{
    arena_init(&arena);
    csv_cells();
    csv_long();
    bib_bytes();
    bib_strings();
    ris();
    simulated();
    names();
    arena_release(&arena);
    return tap_done();
}
