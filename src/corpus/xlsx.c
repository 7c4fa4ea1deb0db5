#include "corpus/xlsx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "corpus/xlsx_text.h"
#include "corpus/zip.h"

#define XML_HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
#define SCHEMAS  "http://schemas.openxmlformats.org/"
#define MAIN_NS  "xmlns=\"" SCHEMAS "spreadsheetml/2006/main\""
#define REL_NS   "xmlns=\"" SCHEMAS "package/2006/relationships\""
#define REL_TYPE SCHEMAS "officeDocument/2006/relationships/"
#define TYPE     "application/vnd.openxmlformats-officedocument.spreadsheetml."

#define EXACT_INT_MAX    999999999999999 /* fifteen digits: what a spreadsheet keeps */
#define COLUMN_NAME      4               /* XFD and NUL */
#define DAY_SECONDS      86400
#define DAY_ZERO         25569 /* 1970-01-01, counted as the programs do */
#define FIRST_DAY        61    /* 1900-03-01: before, they count a day that never was */
#define LAST_DAY         2958465
#define SHEET_BYTES_MORE 512 /* head and end of a sheet's file, besides its columns */
#define COLUMN_BYTES     80  /* of XML */

enum style { PLAIN, HEADER, DATE, DATE_TIME }; /* the order of cellXfs in STYLES */

static const char STYLES[] =
    XML_HEAD "<styleSheet " MAIN_NS "><numFmts count=\"2\">"
             "<numFmt numFmtId=\"164\" formatCode=\"yyyy\\-mm\\-dd\"/>"
             "<numFmt numFmtId=\"165\" formatCode=\"yyyy\\-mm\\-dd\\ hh:mm:ss\"/></numFmts>"
             "<fonts count=\"2\"><font><sz val=\"11\"/><name val=\"Calibri\"/></font>"
             "<font><b/><sz val=\"11\"/><name val=\"Calibri\"/></font></fonts>"
             "<fills count=\"2\"><fill><patternFill patternType=\"none\"/></fill>"
             "<fill><patternFill patternType=\"gray125\"/></fill></fills>"
             "<borders count=\"1\"><border><left/><right/><top/><bottom/><diagonal/></border>"
             "</borders><cellStyleXfs count=\"1\"><xf/></cellStyleXfs><cellXfs count=\"4\">"
             "<xf/><xf fontId=\"1\" applyFont=\"1\"/>"
             "<xf numFmtId=\"164\" applyNumberFormat=\"1\"/>"
             "<xf numFmtId=\"165\" applyNumberFormat=\"1\"/></cellXfs></styleSheet>";

struct sheet {
    struct str name;
    size_t columns;
    int64_t rows; /* the header is one */
};

struct xlsx {
    struct zip *zip;
    struct arena arena; /* names of sheets */
    uint64_t bytes_max;
    struct buf row; /* cells of the row that is not ended */
    size_t cells;
    struct sheet sheets[XLSX_SHEETS_MAX];
    size_t sheet_count;
    bool ended;
};

struct xlsx *xlsx_new(struct buf *out)
{
    struct xlsx *x = check_memory(calloc(1, sizeof *x));
    x->zip = zip_new(out);
    x->bytes_max = ZIP_BYTES_MAX;
    arena_init(&x->arena);
    buf_init(&x->row);
    return x;
}

void xlsx_free(struct xlsx *x)
{
    if (!x)
        return;
    zip_free(x->zip);
    arena_release(&x->arena);
    buf_release(&x->row);
    free(x);
}

void xlsx_limit(struct xlsx *x, uint64_t bytes_max)
{
    x->bytes_max = bytes_max;
}

/* --- cells --- */

/* A, B … Z, AA …: digits from 1 to 26. */
static struct str column_name(size_t column, char space[COLUMN_NAME])
{
    size_t at = COLUMN_NAME;
    for (size_t n = column + 1; n && at; n = (n - 1) / 26)
        space[--at] = (char)('A' + (n - 1) % 26);
    return str_from(space + at, COLUMN_NAME - at);
}

static struct sheet *last_sheet(struct xlsx *x)
{
    check(x->sheet_count > 0 && !x->ended);
    return &x->sheets[x->sheet_count - 1];
}

/* <c r="B7", for the caller to go on with. The cells of a row that is too long are not kept. */
static void begin_cell(struct xlsx *x, int64_t row, enum style style)
{
    char space[COLUMN_NAME];
    if (x->cells >= XLSX_COLUMNS_MAX)
        buf_clear(&x->row);
    buf_add_lit(&x->row, "<c r=\"");
    buf_add_str(&x->row, column_name(x->cells++ % XLSX_COLUMNS_MAX, space));
    buf_add_int(&x->row, row);
    buf_add_char(&x->row, '"');
    if (style != PLAIN)
        buf_printf(&x->row, " s=\"%d\"", (int)style);
}

static void put_text(struct xlsx *x, int64_t row, struct str text, enum style style)
{
    begin_cell(x, row, style);
    buf_add_lit(&x->row, " t=\"inlineStr\"><is><t xml:space=\"preserve\">");
    xlsx_put_cell_text(&x->row, text);
    buf_add_lit(&x->row, "</t></is></c>");
}

static int64_t row_number(struct xlsx *x)
{
    return last_sheet(x)->rows + 1;
}

void xlsx_add_empty(struct xlsx *x)
{
    check(x->sheet_count > 0 && !x->ended);
    x->cells++;
}

void xlsx_add_text(struct xlsx *x, struct str text)
{
    if (text.n)
        put_text(x, row_number(x), text, PLAIN);
    else
        xlsx_add_empty(x);
}

static void put_real(struct xlsx *x, double v, enum style style)
{
    struct json_writer w;
    begin_cell(x, row_number(x), style);
    buf_add_lit(&x->row, "><v>");
    jw_init(&w, &x->row); /* JSON and XML write numbers alike */
    jw_real(&w, v);
    buf_add_lit(&x->row, "</v></c>");
}

static void put_int(struct xlsx *x, int64_t v, enum style style)
{
    begin_cell(x, row_number(x), style);
    buf_add_lit(&x->row, "><v>");
    buf_add_int(&x->row, v);
    buf_add_lit(&x->row, "</v></c>");
}

void xlsx_add_int(struct xlsx *x, int64_t v)
{
    if (v > EXACT_INT_MAX || v < -EXACT_INT_MAX) {
        char space[STR_INT_BYTES];
        put_text(x, row_number(x), str_digits(space, v), PLAIN);
    } else {
        put_int(x, v, PLAIN);
    }
}

void xlsx_add_real(struct xlsx *x, double v)
{
    if (isfinite(v))
        put_real(x, v, PLAIN);
    else
        xlsx_add_empty(x);
}

void xlsx_add_bool(struct xlsx *x, bool v)
{
    begin_cell(x, row_number(x), PLAIN);
    buf_add_lit(&x->row, " t=\"b\"><v>");
    buf_add_char(&x->row, v ? '1' : '0');
    buf_add_lit(&x->row, "</v></c>");
}

/* The programs' number of a day "2026-01-31"; false: it is none, or not one of theirs. */
static bool day_number(struct str iso, int64_t *out)
{
    int64_t year, month, day;
    struct str rest = iso, y = str_cut(&rest, '-'), m = rest.p ? str_cut(&rest, '-') : STR("");
    if (!rest.p || y.n != 4 || m.n != 2 || rest.n != 2 || !str_to_i64(y, &year) ||
        !str_to_i64(m, &month) || !str_to_i64(rest, &day))
        return false;
    struct tm tm = {.tm_year = (int)year - 1900, .tm_mon = (int)month - 1, .tm_mday = (int)day},
              was = tm;
    *out = timegm(&tm) / DAY_SECONDS + DAY_ZERO;
    return tm.tm_mon == was.tm_mon && tm.tm_mday == was.tm_mday && *out >= FIRST_DAY &&
           *out <= LAST_DAY;
}

void xlsx_add_date(struct xlsx *x, struct str iso)
{
    int64_t number;
    if (day_number(iso, &number))
        put_int(x, number, DATE);
    else
        xlsx_add_text(x, iso);
}

void xlsx_add_time(struct xlsx *x, int64_t wall_us)
{
    put_real(x, (double)wall_us / 1e6 / DAY_SECONDS + DAY_ZERO, DATE_TIME);
}

/* --- rows --- */

static void write_row(struct xlsx *x)
{
    struct sheet *s = last_sheet(x);
    char head[32];
    int n = snprintf(head, sizeof head, "<row r=\"%lld\">", (long long)++s->rows);
    zip_add(x->zip, str_from(head, (size_t)n));
    buf_add_lit(&x->row, "</row>");
    zip_add(x->zip, buf_str(&x->row));
}

static void drop_row(struct xlsx *x)
{
    buf_clear(&x->row);
    x->cells = 0;
}

int xlsx_end_row(struct xlsx *x)
{
    const struct sheet *s = last_sheet(x);
    bool fits = x->cells <= XLSX_COLUMNS_MAX && s->rows < XLSX_ROWS_MAX &&
                zip_fits(x->zip, x->row.len + SHEET_BYTES_MORE, x->bytes_max);
    if (fits)
        write_row(x);
    drop_row(x);
    return fits ? 0 : ERR_LIMIT;
}

/* --- sheets --- */

static struct str free_name(struct xlsx *x, struct str wanted)
{
    struct str first = xlsx_sheet_name(&x->arena, wanted), name = first;
    size_t number = 2;
    for (size_t i = 0; i < x->sheet_count;) {
        if (xlsx_same_name(x->sheets[i].name, name)) {
            name = xlsx_numbered_name(&x->arena, first, number++);
            i = 0;
        } else {
            i++;
        }
    }
    return name;
}

static void end_sheet(struct xlsx *x)
{
    const struct sheet *s = last_sheet(x);
    char space[COLUMN_NAME];
    drop_row(x); /* cells without an end */
    buf_printf(&x->row, "</sheetData><autoFilter ref=\"A1:%.*s%lld\"/></worksheet>",
               STR_ARG(column_name(s->columns - 1, space)), (long long)s->rows);
    zip_add(x->zip, buf_str(&x->row));
    zip_end_entry(x->zip);
    drop_row(x);
}

static void put_sheet_head(struct xlsx *x, const struct xlsx_column *columns, size_t count)
{
    buf_add_lit(&x->row, XML_HEAD "<worksheet " MAIN_NS "><sheetViews><sheetView");
    if (x->sheet_count == 1)
        buf_add_lit(&x->row, " tabSelected=\"1\"");
    buf_add_lit(&x->row, " workbookViewId=\"0\"><pane ySplit=\"1\" topLeftCell=\"A2\" "
                         "activePane=\"bottomLeft\" state=\"frozen\"/></sheetView></sheetViews>");
    bool open = false;
    for (size_t i = 0; i < count; i++) {
        if (columns[i].width <= 0)
            continue;
        if (!open)
            buf_add_lit(&x->row, "<cols>");
        open = true;
        int width = columns[i].width > 255 ? 255 : columns[i].width; /* the programs' limit */
        buf_printf(&x->row, "<col min=\"%zu\" max=\"%zu\" width=\"%d\" customWidth=\"1\"/>", i + 1,
                   i + 1, width);
    }
    if (open)
        buf_add_lit(&x->row, "</cols>");
    buf_add_lit(&x->row, "<sheetData>");
}

/* Bytes of XML that the head of a sheet has at most; a character has six bytes at most. */
static uint64_t head_most(const struct xlsx_column *columns, size_t count)
{
    uint64_t bytes = SHEET_BYTES_MORE;
    for (size_t i = 0; i < count; i++)
        bytes += 2 * COLUMN_BYTES + 7 * columns[i].title.n;
    return bytes;
}

int xlsx_begin_sheet(struct xlsx *x, struct str name, const struct xlsx_column *columns,
                     size_t count)
{
    check(count > 0 && !x->ended);
    if (x->sheet_count == XLSX_SHEETS_MAX || count > XLSX_COLUMNS_MAX ||
        !zip_fits(x->zip, head_most(columns, count), x->bytes_max))
        return ERR_LIMIT;
    if (x->sheet_count > 0)
        end_sheet(x);
    struct str free = free_name(x, name);
    x->sheets[x->sheet_count++] = (struct sheet){.name = free, .columns = count};
    zip_begin(x->zip, str_printf(&x->arena, "xl/worksheets/sheet%zu.xml", x->sheet_count));
    put_sheet_head(x, columns, count);
    zip_add(x->zip, buf_str(&x->row));
    drop_row(x);
    for (size_t i = 0; i < count; i++)
        put_text(x, 1, columns[i].title, HEADER);
    write_row(x);
    drop_row(x);
    return 0;
}

/* --- the other files --- */

static void put_file(struct xlsx *x, struct str name, struct str content)
{
    zip_begin(x->zip, name);
    zip_add(x->zip, content);
    zip_end_entry(x->zip);
}

/* 'Name'!$A$1:$D$9, where apostrophes are doubled: what a filter is over. */
static void put_filter(struct buf *b, const struct sheet *s, size_t number)
{
    char space[COLUMN_NAME];
    buf_printf(b, "<definedName name=\"_xlnm._FilterDatabase\" localSheetId=\"%zu\" hidden=\"1\">'",
               number);
    struct str rest = s->name;
    while (rest.p) {
        xlsx_put_attribute(b, str_cut(&rest, '\''));
        buf_add_str(b, rest.p ? STR("''") : STR("'"));
    }
    buf_printf(b, "!$A$1:$%.*s$%lld</definedName>", STR_ARG(column_name(s->columns - 1, space)),
               (long long)s->rows);
}

static void put_workbook(struct xlsx *x)
{
    struct buf *b = &x->row;
    buf_add_lit(b, XML_HEAD "<workbook " MAIN_NS " xmlns:r=\"" SCHEMAS
                            "officeDocument/2006/relationships\"><bookViews><workbookView/>"
                            "</bookViews><sheets>");
    for (size_t i = 0; i < x->sheet_count; i++) {
        buf_add_lit(b, "<sheet name=\"");
        xlsx_put_attribute(b, x->sheets[i].name);
        buf_printf(b, "\" sheetId=\"%zu\" r:id=\"rId%zu\"/>", i + 1, i + 1);
    }
    buf_add_lit(b, "</sheets><definedNames>");
    for (size_t i = 0; i < x->sheet_count; i++)
        put_filter(b, &x->sheets[i], i);
    buf_add_lit(b, "</definedNames></workbook>");
    put_file(x, STR("xl/workbook.xml"), buf_str(b));
    buf_clear(b);
}

static void put_relations(struct xlsx *x)
{
    struct buf *b = &x->row;
    buf_add_lit(b, XML_HEAD "<Relationships " REL_NS ">");
    for (size_t i = 1; i <= x->sheet_count; i++)
        buf_printf(b,
                   "<Relationship Id=\"rId%zu\" Type=\"" REL_TYPE
                   "worksheet\" Target=\"worksheets/sheet%zu.xml\"/>",
                   i, i);
    buf_printf(b,
               "<Relationship Id=\"rId%zu\" Type=\"" REL_TYPE
               "styles\" Target=\"styles.xml\"/></Relationships>",
               x->sheet_count + 1);
    put_file(x, STR("xl/_rels/workbook.xml.rels"), buf_str(b));
    buf_clear(b);
}

static void put_types(struct xlsx *x)
{
    struct buf *b = &x->row;
    buf_add_lit(b, XML_HEAD
                "<Types xmlns=\"" SCHEMAS "package/2006/content-types\">"
                "<Default Extension=\"rels\" ContentType=\"application/vnd."
                "openxmlformats-package.relationships+xml\"/>"
                "<Override PartName=\"/xl/workbook.xml\" ContentType=\"" TYPE "sheet.main+xml\"/>"
                "<Override PartName=\"/xl/styles.xml\" ContentType=\"" TYPE "styles+xml\"/>");
    for (size_t i = 1; i <= x->sheet_count; i++)
        buf_printf(b,
                   "<Override PartName=\"/xl/worksheets/sheet%zu.xml\" ContentType=\"" TYPE
                   "worksheet+xml\"/>",
                   i);
    buf_add_lit(b, "</Types>");
    put_file(x, STR("[Content_Types].xml"), buf_str(b));
    buf_clear(b);
}

void xlsx_end(struct xlsx *x)
{
    end_sheet(x);
    put_workbook(x);
    put_relations(x);
    put_file(x, STR("xl/styles.xml"), str_of(STYLES));
    put_file(x, STR("_rels/.rels"),
             STR(XML_HEAD "<Relationships " REL_NS "><Relationship Id=\"rId1\" Type=\"" REL_TYPE
                          "officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"));
    put_types(x);
    zip_end(x->zip);
    x->ended = true;
}
