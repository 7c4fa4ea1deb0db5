/* Workbooks are read back: entries by the directory, inflated and checked, as XML. With the name of
 * a file, the program writes a sample there instead, for tests/readers. */
#include "corpus/xlsx.h"

#include <math.h>
#include <stdio.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "corpus/xlsx_text.h"
#include "corpus/zip.h"
#include "tests/tap.h"

static struct arena arena;

/* --- reading a ZIP file --- */

static uint64_t number(struct str s, size_t at, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | (unsigned char)s.p[at + (size_t)i];
    return v;
}

static struct str inflated(struct str packed, size_t raw)
{
    char *out = arena_alloc(&arena, raw + 1);
    z_stream z = {.next_in = (Bytef *)(uintptr_t)packed.p,
                  .avail_in = (uInt)packed.n,
                  .next_out = (Bytef *)out,
                  .avail_out = (uInt)raw + 1};
    check(inflateInit2(&z, -15) == Z_OK);
    int got = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    bool whole = got == Z_STREAM_END && z.total_out == raw && z.avail_in == 0;
    return whole ? str_from(out, raw) : STR_NULL;
}

/* The content of the entry whose line in the directory is at `at`; p == NULL: something is wrong.
 * Sizes and checksum are behind it, too. */
static struct str entry_at(struct str file, size_t at)
{
    uint64_t crc = number(file, at + 16, 4), packed = number(file, at + 20, 4);
    uint64_t raw = number(file, at + 24, 4), name = number(file, at + 28, 2);
    size_t head = number(file, at + 42, 4), begin = head + 30 + name, end = begin + packed;
    if (!str_starts(str_skip(file, head), STR("PK\3\4")) || number(file, head + 26, 2) != name ||
        memcmp(file.p + head + 30, file.p + at + 46, name) != 0 ||
        number(file, head + 6, 2) != 0x808)
        return STR_NULL;
    if (!str_starts(str_skip(file, end), STR("PK\7\10")) || number(file, end + 4, 4) != crc ||
        number(file, end + 8, 4) != packed || number(file, end + 12, 4) != raw)
        return STR_NULL;
    struct str content = inflated(str_from(file.p + begin, packed), raw);
    bool same = content.p && crc32(0, (const Bytef *)content.p, (uInt)content.n) == crc;
    return same ? content : STR_NULL;
}

/* The content of an entry, and how many there are. */
static struct str entry(struct str file, struct str name, size_t *count)
{
    struct str found = STR_NULL;
    size_t end = file.n - 22, at = number(file, end + 16, 4);
    *count = number(file, end + 10, 2);
    if (!str_starts(str_skip(file, end), STR("PK\5\6")) || number(file, end + 12, 4) != end - at)
        return STR_NULL;
    for (size_t i = 0; i < *count; i++) {
        size_t n = number(file, at + 28, 2);
        struct str content = entry_at(file, at);
        if (!content.p)
            return STR_NULL;
        if (str_eq(str_from(file.p + at + 46, n), name))
            found = content;
        at += 46 + n;
    }
    return at == end ? found : STR_NULL;
}

static struct str part(const struct buf *b, const char *name)
{
    size_t count;
    return entry(buf_str(b), str_of(name), &count);
}

static bool has(struct str text, const char *what)
{
    return text.p && str_find(text, str_of(what)) >= 0;
}

/* --- workbooks --- */

static const struct xlsx_column columns[] = {{STR("Text"), 40}, {STR("A & <b>"), 0}};

static void cells(void)
{
    struct buf b;
    buf_init(&b);
    struct xlsx *x = xlsx_new(&b);
    is_int(xlsx_begin_sheet(x, STR("One"), columns, 2), 0, "a sheet");
    xlsx_add_text(x, STR("=1+1"));
    xlsx_add_int(x, -42);
    is_int(xlsx_end_row(x), 0, "a row");
    xlsx_add_empty(x);
    xlsx_add_real(x, 0.1);
    xlsx_add_bool(x, true);
    xlsx_add_date(x, STR("2026-01-31"));
    xlsx_add_date(x, STR("2026-01"));
    xlsx_add_time(x, 1769860800000000);
    xlsx_add_real(x, NAN);
    xlsx_add_int(x, 1234567890123456789);
    is_int(xlsx_end_row(x), 0, "another one");
    xlsx_end(x);
    xlsx_free(x);
    is_str(part(&b, "xl/worksheets/sheet1.xml"),
           STR("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
               "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\">"
               "<sheetViews><sheetView tabSelected=\"1\" workbookViewId=\"0\"><pane ySplit=\"1\" "
               "topLeftCell=\"A2\" activePane=\"bottomLeft\" state=\"frozen\"/></sheetView>"
               "</sheetViews><cols><col min=\"1\" max=\"1\" width=\"40\" customWidth=\"1\"/></cols>"
               "<sheetData><row r=\"1\"><c r=\"A1\" s=\"1\" t=\"inlineStr\"><is>"
               "<t xml:space=\"preserve\">Text</t></is></c><c r=\"B1\" s=\"1\" t=\"inlineStr\">"
               "<is><t xml:space=\"preserve\">A &amp; &lt;b&gt;</t></is></c></row>"
               "<row r=\"2\"><c r=\"A2\" t=\"inlineStr\"><is><t xml:space=\"preserve\">=1+1</t>"
               "</is></c><c r=\"B2\"><v>-42</v></c></row>"
               "<row r=\"3\"><c r=\"B3\"><v>0.1</v></c><c r=\"C3\" t=\"b\"><v>1</v></c>"
               "<c r=\"D3\" s=\"2\"><v>46053</v></c><c r=\"E3\" t=\"inlineStr\"><is>"
               "<t xml:space=\"preserve\">2026-01</t></is></c><c r=\"F3\" s=\"3\"><v>46053.5</v>"
               "</c><c r=\"H3\" t=\"inlineStr\"><is><t xml:space=\"preserve\">"
               "1234567890123456789</t></is></c></row>"
               "</sheetData><autoFilter ref=\"A1:B3\"/></worksheet>"),
           "cells as they were added");
    size_t count;
    entry(buf_str(&b), STR("x"), &count);
    is_int((int64_t)count, 6, "files in it");
    ok(has(part(&b, "_rels/.rels"), "xl/workbook.xml"), "it says where the workbook is");
    ok(has(part(&b, "[Content_Types].xml"), "/xl/worksheets/sheet1.xml"), "and what each file is");
    ok(has(part(&b, "xl/styles.xml"), "<b/>"), "the header has a style");
    ok(has(part(&b, "xl/workbook.xml"), ">'One'!$A$1:$B$3</definedName>"), "and a filter");
    buf_release(&b);
}

static void dates(void)
{
    static const struct {
        const char *iso, *cell;
    } days[] = {
        {"1900-03-01", "<v>61</v>"},    {"1900-02-28", "t xml"}, {"1969-12-31", "<v>25568</v>"},
        {"2024-02-29", "<v>45351</v>"}, {"2023-02-29", "t xml"}, {"9999-12-31", "<v>2958465</v>"},
        {"2024-13-01", "t xml"},        {"2024-1-1", "t xml"},   {"2024-01-01T00:00", "t xml"},
        {"20-0-01-01", "t xml"},        {"2024-01--1", "t xml"}, {"2024", "t xml"}};
    for (size_t i = 0; i < sizeof days / sizeof *days; i++) {
        struct buf b;
        buf_init(&b);
        struct xlsx *x = xlsx_new(&b);
        check(xlsx_begin_sheet(x, STR("d"), columns, 1) == 0);
        xlsx_add_date(x, str_of(days[i].iso));
        check(xlsx_end_row(x) == 0);
        xlsx_end(x);
        xlsx_free(x);
        struct str xml = part(&b, "xl/worksheets/sheet1.xml");
        ptrdiff_t at = str_find(xml, STR("<row r=\"2\">"));
        ok(at >= 0 && has(str_skip(xml, (size_t)at), days[i].cell), "%s has %s", days[i].iso,
           days[i].cell);
        buf_release(&b);
    }
}

static struct str put(void (*fn)(struct buf *out, struct str text), struct str text)
{
    struct buf b;
    buf_init(&b);
    fn(&b, text);
    struct str out = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return out;
}

static void texts(void)
{
    is_str(put(xlsx_put_cell_text, STR("a<b>&\"c\" 中😀")), STR("a&lt;b&gt;&amp;&quot;c&quot; 中😀"),
           "signs of XML");
    is_str(put(xlsx_put_cell_text, STR("a\0\1\x1f\tb\x7f\uFFFE\uFFFF")), STR("a\tb\x7f"),
           "characters that XML forbids are gone");
    is_str(put(xlsx_put_cell_text, STR("a\xff\xe4\xb8z")), STR("a\uFFFD\uFFFD\uFFFDz"),
           "bad UTF-8");
    is_str(put(xlsx_put_cell_text, STR("a\r\nb\rc\nd")), STR("a\nb\nc\nd"), "line ends");
    is_str(put(xlsx_put_cell_text, STR("_x0041_ _x_ _x00g1_")), STR("_x005F_x0041_ _x_ _x00g1_"),
           "what looks like an escape stays as it is");
    struct buf b;
    buf_init(&b);
    for (int i = 0; i < XLSX_TEXT_MAX - 1; i++)
        buf_add_char(&b, 'a');
    buf_add_lit(&b, "中");
    is_str(put(xlsx_put_cell_text, buf_str(&b)), buf_str(&b), "as much as a cell holds");
    buf_add_char(&b, 'z');
    struct str long_one = put(xlsx_put_cell_text, buf_str(&b));
    ok(xlsx_units(long_one) == XLSX_TEXT_MAX && str_ends(long_one, STR("a…")), "one more is cut");
    buf_clear(&b);
    for (int i = 0; i < XLSX_TEXT_MAX; i++)
        buf_add_lit(&b, "😀");
    long_one = put(xlsx_put_cell_text, buf_str(&b));
    is_int((int64_t)xlsx_units(long_one), XLSX_TEXT_MAX, "pairs of UTF-16 count twice");
    ok(str_utf8_valid(long_one) && str_ends(long_one, STR("😀…")), "and are not cut in two");
    buf_release(&b);
}

static void sheet_names(void)
{
    static const struct {
        const char *name, *want;
    } names[] = {{"Results", "Results"},
                 {"a/b\\c[d]e:f*g?", "a_b_c_d_e_f_g_"},
                 {"'quoted'", "quoted"},
                 {"it's", "it's"},
                 {" \n ", "Sheet"},
                 {"", "Sheet"},
                 {"history", "history_"},
                 {"0123456789012345678901234567890123", "0123456789012345678901234567890"},
                 {"结果\x01\xff", "结果\uFFFD"},
                 {"012345678901234567890123456789😀", "012345678901234567890123456789"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is_str(xlsx_sheet_name(&arena, str_of(names[i].name)), str_of(names[i].want), "name %zu",
               i);

    struct buf b;
    buf_init(&b);
    struct xlsx *x = xlsx_new(&b);
    for (int i = 0; i < 3; i++)
        check(xlsx_begin_sheet(x, i == 1 ? STR("ÉT'É & co") : STR("ét'é & co"), columns, 1) == 0);
    xlsx_end(x);
    xlsx_free(x);
    struct str book = part(&b, "xl/workbook.xml");
    ok(has(book, "<sheet name=\"ét'é &amp; co\" sheetId=\"1\" r:id=\"rId1\"/>"), "the first name");
    ok(has(book, "<sheet name=\"ÉT'É &amp; co (2)\" "), "the second has a number");
    ok(has(book, "<sheet name=\"ét'é &amp; co (3)\" "), "and the third another one");
    ok(has(book, ">'ÉT''É &amp; co (2)'!$A$1:$A$1<"), "its filter quotes it");
    ok(part(&b, "xl/worksheets/sheet3.xml").p != NULL, "there are three");
    buf_release(&b);
}

/* --- limits --- */

static void columns_and_sheets(void)
{
    struct buf b;
    buf_init(&b);
    struct xlsx *x = xlsx_new(&b);
    struct xlsx_column *many = ARENA_ARRAY(&arena, struct xlsx_column, XLSX_COLUMNS_MAX + 1);
    for (size_t i = 0; i <= XLSX_COLUMNS_MAX; i++)
        many[i].title = STR("x");
    is_int(xlsx_begin_sheet(x, STR("a"), many, XLSX_COLUMNS_MAX + 1), ERR_LIMIT, "many columns");
    is_int(xlsx_begin_sheet(x, STR("a"), many, XLSX_COLUMNS_MAX), 0, "as many as there can be");
    for (size_t i = 0; i <= XLSX_COLUMNS_MAX; i++)
        xlsx_add_int(x, 7);
    is_int(xlsx_end_row(x), ERR_LIMIT, "a row with too many cells");
    xlsx_add_int(x, 8);
    is_int(xlsx_end_row(x), 0, "is dropped");
    for (int i = 1; i < XLSX_SHEETS_MAX; i++)
        check(xlsx_begin_sheet(x, STR("a"), columns, 1) == 0);
    is_int(xlsx_begin_sheet(x, STR("a"), columns, 1), ERR_LIMIT, "too many sheets");
    xlsx_end(x);
    xlsx_free(x);
    struct str sheet = part(&b, "xl/worksheets/sheet1.xml");
    ok(has(sheet, "<c r=\"XFD1\"") && has(sheet, "<row r=\"2\"><c r=\"A2\"><v>8</v></c></row>"),
       "the rest is there");
    ok(!has(sheet, "<v>7</v>"), "and no cell of the row that was dropped");
    ok(part(&b, "xl/worksheets/sheet255.xml").p != NULL, "so is the last sheet");
    buf_release(&b);
}

/* Drained after every row, as a server does. */
static void rows(void)
{
    struct buf b, all;
    buf_init(&b);
    buf_init(&all);
    struct xlsx *x = xlsx_new(&b);
    check(xlsx_begin_sheet(x, STR("a"), columns, 1) == 0);
    int64_t added = 1;
    size_t most = 0;
    int err = 0;
    while (!err && added <= XLSX_ROWS_MAX) {
        xlsx_add_int(x, added % 1000);
        err = xlsx_end_row(x);
        added += !err;
        most = b.len > most ? b.len : most;
        buf_add_str(&all, buf_str(&b));
        buf_consume(&b, b.len);
    }
    is_int(err, ERR_LIMIT, "a sheet is full");
    is_int(added, XLSX_ROWS_MAX, "at the limit of the programs");
    ok(most < 256 * 1024, "it never held more than %zu bytes", most);
    is_int(xlsx_begin_sheet(x, STR("b"), columns, 1), 0, "another one can follow");
    xlsx_end(x);
    xlsx_free(x);
    buf_add_str(&all, buf_str(&b));
    struct str sheet = part(&all, "xl/worksheets/sheet1.xml");
    ok(has(sheet, "<row r=\"1048576\">") && !has(sheet, "<row r=\"1048577\">"),
       "all rows are there");
    ok(has(sheet, "ref=\"A1:A1048576\""), "under the filter");
    buf_release(&b);
    buf_release(&all);
}

static void bytes(void)
{
    struct buf b, text;
    buf_init(&b);
    buf_init(&text);
    struct xlsx *x = xlsx_new(&b);
    xlsx_limit(x, 4 << 20);
    check(xlsx_begin_sheet(x, STR("a"), columns, 1) == 0);
    uint64_t seed = 7;
    int64_t added = 1;
    for (int i = 0; i < 100000; i++) {
        buf_clear(&text);
        for (int k = 0; k < 100; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            buf_printf(&text, "%llx", (unsigned long long)seed);
        }
        xlsx_add_text(x, buf_str(&text));
        if (xlsx_end_row(x))
            break;
        added++;
    }
    is_int(xlsx_begin_sheet(x, STR("b"), columns, 1), ERR_LIMIT,
           "the file is as large as it may be");
    xlsx_end(x);
    xlsx_free(x);
    ok(b.len <= 4 << 20 && b.len > 2 << 20, "it has %zu bytes", b.len);
    struct str last = str_printf(&arena, "ref=\"A1:A%lld\"", (long long)added);
    ok(has(part(&b, "xl/worksheets/sheet1.xml"), last.p), "and the rows that were taken");
    buf_release(&b);
    buf_release(&text);

    buf_init(&b);
    struct zip *z = zip_new(&b);
    ok(zip_fits(z, UINT32_MAX - (8u << 20), UINT64_MAX), "a file of nearly 4 GB fits");
    ok(!zip_fits(z, UINT32_MAX - (1u << 20), UINT64_MAX),
       "one that has no room for its end does not");
    ok(!zip_fits(z, (uint64_t)UINT32_MAX + 1, UINT64_MAX), "nor one that is larger");
    zip_free(z);
    buf_release(&b);
}

/* --- a sample for other programs --- */

static const char *const samples[] = {
    "plain",      "=1+1",       "+SUM(A1:A2)", "-2+3",       "@x",  "a \"b\" <c> & 'd'",
    "  spaces  ", "中文，标点", "𝛼 and 😀",     "two\nlines", "007", "1e5",
    "TRUE",       "2026-01-31", "comma, here"};

static int sample(const char *path)
{
    static const struct xlsx_column of[] = {{STR("text"), 30}, {STR("integer"), 0},
                                            {STR("real"), 12}, {STR("flag"), 0},
                                            {STR("day"), 12},  {STR("空"), 0}};
    struct buf b;
    buf_init(&b);
    struct xlsx *x = xlsx_new(&b);
    check(xlsx_begin_sheet(x, STR("First: [one]"), of, 6) == 0);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        xlsx_add_text(x, str_of(samples[i]));
        xlsx_add_int(x, (int64_t)i - 3);
        xlsx_add_real(x, (double)i / 8);
        xlsx_add_bool(x, i % 2);
        xlsx_add_date(x, STR("2026-01-31"));
        xlsx_add_empty(x);
        check(xlsx_end_row(x) == 0);
    }
    check(xlsx_begin_sheet(x, STR("Second"), of, 1) == 0);
    xlsx_end(x);
    xlsx_free(x);
    FILE *f = fopen(path, "wb");
    bool written = f && fwrite(b.p, 1, b.len, f) == b.len;
    written = f && fclose(f) == 0 && written;
    buf_release(&b);
    return written ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return sample(argv[1]);
    arena_init(&arena);
    cells();
    dates();
    texts();
    sheet_names();
    columns_and_sheets();
    rows();
    bytes();
    arena_release(&arena);
    return tap_done();
}
