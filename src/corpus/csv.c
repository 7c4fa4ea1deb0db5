#include "corpus/csv.h"

#include "base/buf.h"
#include "base/err.h"

#define CELL_UNITS_MAX 32000 /* of UTF-16; Excel's own limit is 32,767 */

static int fail(struct csv *c, int err, int64_t line, const char *why)
{
    c->error = why;
    c->error_line = line;
    return err;
}

/* --- cells --- */

static bool at_end(const struct csv *c)
{
    return c->at == c->text.n;
}

/* Length of the line end at `at`: 0, 1 or 2. */
static size_t line_end(const struct csv *c)
{
    const char *p = c->text.p + c->at;
    size_t left = c->text.n - c->at;
    if (left && p[0] == '\n')
        return 1;
    return left > 1 && p[0] == '\r' && p[1] == '\n' ? 2 : 0;
}

static struct str plain_cell(struct csv *c)
{
    size_t start = c->at;
    while (!at_end(c) && c->text.p[c->at] != ',' && !line_end(c))
        c->at++;
    return str_from(c->text.p + start, c->at - start);
}

/* Without the doubled quotes; stays in the text when there are none. */
static struct str unquote(struct arena *a, struct str raw)
{
    if (str_find(raw, STR("\"\"")) < 0)
        return raw;
    char *p = arena_alloc(a, raw.n);
    size_t n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        p[n++] = raw.p[i];
        i += raw.p[i] == '"';
    }
    return str_from(p, n);
}

/* Stands at the opening quote; ends behind the closing one. */
static int quoted_cell(struct csv *c, struct arena *a, struct str *out)
{
    int64_t line = c->line;
    size_t start = ++c->at;
    for (; !at_end(c); c->at++) {
        if (c->text.p[c->at] == '\n')
            c->line++;
        if (c->at - start > CSV_ROW_BYTES_MAX)
            return fail(c, ERR_LIMIT, line, "a quoted cell is too long, or its quote never closes");
        if (c->text.p[c->at] != '"')
            continue;
        if (c->at + 1 < c->text.n && c->text.p[c->at + 1] == '"') {
            c->at++;
            continue;
        }
        *out = unquote(a, str_from(c->text.p + start, c->at - start));
        c->at++;
        if (at_end(c) || c->text.p[c->at] == ',' || line_end(c))
            return 0;
        return fail(c, ERR_INVALID, c->line, "text behind a closing quote");
    }
    return fail(c, ERR_INVALID, line, "a quote that is never closed");
}

/* --- rows --- */

/* Reads to the end of the row; the line end is left unread. */
static int read_cells(struct csv *c, struct arena *a, size_t *count)
{
    size_t start = c->at, n = 0;
    int64_t line = c->line;
    for (;;) {
        struct str cell;
        int err = 0;
        if (!at_end(c) && c->text.p[c->at] == '"')
            err = quoted_cell(c, a, &cell);
        else
            cell = plain_cell(c);
        if (err)
            return err;
        if (cell.n > CSV_CELL_BYTES_MAX)
            return fail(c, ERR_LIMIT, line, "a cell is too long");
        if (c->at - start > CSV_ROW_BYTES_MAX)
            return fail(c, ERR_LIMIT, line, "the row is too long");
        if (n == CSV_COLUMNS_MAX)
            return fail(c, ERR_LIMIT, line, "too many columns");
        c->row_cells[n++] = cell;
        if (at_end(c) || line_end(c))
            break;
        c->at++; /* the comma */
    }
    *count = n;
    return 0;
}

static void skip_line_end(struct csv *c)
{
    size_t n = line_end(c);
    c->at += n;
    c->line += n > 0;
}

static void skip_line(struct csv *c)
{
    plain_cell(c);
    while (!at_end(c) && !line_end(c)) {
        c->at++;
        plain_cell(c);
    }
    skip_line_end(c);
}

/* A broken row may have swallowed good ones through a stray quote, so reading goes on at the line
 * after the one it began on. What is read twice that way is limited to one more round through
 * the text; beyond that, the reader goes on where it stopped. */
static void recover(struct csv *c, size_t start, int64_t line)
{
    check(c->at >= start);
    size_t again = c->at - start;
    if (again <= c->again_left) {
        c->again_left -= again;
        c->at = start;
        c->line = line;
    }
    skip_line(c);
}

/* A row that the next piece may complete. What is longer than a row may be is broken. */
static bool is_unfinished(const struct csv *c, size_t start)
{
    return c->more && at_end(c) && c->at - start <= CSV_ROW_BYTES_MAX;
}

/* The cells of the next row that is not an empty line. */
static int read_row(struct csv *c, struct arena *a, int64_t *line, size_t *count)
{
    while (line_end(c))
        skip_line_end(c);
    if (at_end(c))
        return ERR_NOT_FOUND;
    size_t start = c->at;
    *line = c->line;
    int err = read_cells(c, a, count);
    if (is_unfinished(c, start)) {
        c->at = start;
        c->line = *line;
        return ERR_NOT_FOUND;
    }
    if (err)
        recover(c, start, *line);
    else
        skip_line_end(c);
    return err;
}

static bool all_empty(const struct str *cells, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_trim(cells[i]).n)
            return false;
    return true;
}

static struct str *copy_cells(struct arena *a, const struct csv *c, size_t n)
{
    struct str *cells = ARENA_ARRAY(a, struct str, n);
    memcpy(cells, c->row_cells, n * sizeof *cells);
    return cells;
}

int csv_next(struct csv *c, struct arena *a, struct csv_row *row)
{
    check(c->column_count > 0);
    int64_t line;
    size_t n;
    int err = read_row(c, a, &line, &n);
    if (err)
        return err;
    size_t want = c->column_count;
    if (n < want || (n > want && !all_empty(c->row_cells + want, n - want))) {
        const char *why = arena_printf(a, "%zu cells, the header has %zu", n, want);
        return fail(c, ERR_INVALID, line, why);
    }
    *row = (struct csv_row){.cells = copy_cells(a, c, want), .line = line};
    return 0;
}

/* --- header --- */

static bool is_utf16(struct str s)
{
    return str_starts(s, STR("\xff\xfe")) || str_starts(s, STR("\xfe\xff"));
}

int csv_open(struct csv *c, struct arena *a, struct str text)
{
    *c = (struct csv){.text = text, .line = 1, .again_left = text.n};
    if (is_utf16(text))
        return fail(c, ERR_INVALID, 1, "the file is UTF-16; save it as UTF-8");
    if (str_starts(text, STR("\xef\xbb\xbf")))
        c->at = 3;
    int64_t line;
    size_t n;
    int err = read_row(c, a, &line, &n);
    if (err == ERR_NOT_FOUND)
        return fail(c, ERR_INVALID, 1, "no header row");
    if (err)
        return ERR_INVALID;
    while (n > 1 && str_trim(c->row_cells[n - 1]).n == 0)
        n--;
    c->columns = copy_cells(a, c, n);
    for (size_t i = 0; i < n; i++)
        c->columns[i] = str_trim(c->columns[i]);
    c->column_count = n;
    return 0;
}

void csv_go_on(struct csv *c, struct str text, size_t columns, int64_t line)
{
    check(columns > 0 && columns <= CSV_COLUMNS_MAX);
    *c = (struct csv){.text = text, .line = line, .again_left = text.n, .column_count = columns};
}

int csv_column(const struct csv *c, struct str name)
{
    for (size_t i = 0; i < c->column_count; i++)
        if (str_ieq(c->columns[i], name))
            return (int)i;
    return -1;
}

/* --- writing --- */

static bool is_formula(struct str cell)
{
    return cell.n && memchr("=+-@\t\r", cell.p[0], 6);
}

/* Blanks at the ends are quoted too: some readers would drop them. */
static bool needs_quotes(struct str cell)
{
    for (size_t i = 0; i < cell.n; i++)
        if (memchr(",\"\r\n", cell.p[i], 4))
            return true;
    return str_trim(cell).n < cell.n;
}

static void begin_cell(struct csv_writer *w)
{
    if (w->cells++)
        buf_add_char(w->out, ',');
}

void csv_add(struct csv_writer *w, struct str cell)
{
    /* A row of one empty cell would be an empty line, which readers skip. */
    bool quotes = needs_quotes(cell) || (cell.n == 0 && w->cells == 0);
    begin_cell(w);
    if (quotes)
        buf_add_char(w->out, '"');
    if (is_formula(cell))
        buf_add_char(w->out, '\'');
    for (size_t i = 0; i < cell.n; i++) {
        if (cell.p[i] == '"')
            buf_add_char(w->out, '"');
        buf_add_char(w->out, cell.p[i]);
    }
    if (quotes)
        buf_add_char(w->out, '"');
}

void csv_add_int(struct csv_writer *w, int64_t v)
{
    begin_cell(w);
    buf_add_int(w->out, v);
}

void csv_add_number(struct csv_writer *w, struct str digits)
{
    for (size_t i = 0; i < digits.n; i++) /* else it could begin a formula */
        check(memchr("0123456789+-.eE", digits.p[i], 15));
    begin_cell(w);
    buf_add_str(w->out, digits);
}

void csv_end_row(struct csv_writer *w)
{
    check(w->cells > 0); /* readers skip empty lines */
    buf_add_lit(w->out, "\r\n");
    w->cells = 0;
}

struct str csv_fit(struct arena *a, struct str cell)
{
    size_t units = 0, at = 0;
    while (at < cell.n && units < CELL_UNITS_MAX) {
        size_t n = str_utf8_step(str_skip(cell, at));
        units += n == 4 ? 2 : 1;
        at += n ? n : 1;
    }
    return at == cell.n ? cell : str_printf(a, "%.*s…", (int)at, cell.p);
}
