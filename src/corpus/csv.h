/* csv.h -- tables as text, after RFC 4180: read row by row, and written for spreadsheets.
 *
 * The reader takes what real files hold: a byte order mark, CRLF or LF, no newline at the end,
 * empty lines, newlines and doubled quotes in quoted cells, quotes in the middle of plain ones. The
 * first row names the columns. A row that does not fit is reported with its line and reading goes
 * on behind it. Always true:
 *   - the work is linear in the size of the text, whatever it holds;
 *   - a row that is handed out has a cell for every column, none above the limits below. */
#ifndef CORPUS_CSV_H
#define CORPUS_CSV_H

#include "base/str.h"

struct buf;

#define CSV_CELL_BYTES_MAX (1 << 20)
#define CSV_ROW_BYTES_MAX  (4 << 20) /* as it stands in the text */
#define CSV_COLUMNS_MAX    256

struct csv {
    struct str text; /* borrowed */
    size_t at;
    int64_t line;        /* at `at`, from 1 */
    size_t again_left;   /* bytes that may still be read twice after broken rows */
    struct str *columns; /* names, trimmed */
    size_t column_count; /* 0 until csv_open has succeeded */
    const char *error;   /* of the last call that failed, without the line */
    int64_t error_line;  /* where the row begins, or the mistake is */
    bool more; /* set by the caller, after csv_open: the text is a piece, another one follows */
    struct str row_cells[CSV_COLUMNS_MAX];
};

struct csv_row {
    struct str *cells; /* csv.column_count of them; in the text or in the arena */
    int64_t line;      /* it begins here */
};

/* Reads the names of the columns. text and the arena's memory are borrowed until the last call.
 * ERR_INVALID: no header, or one that cannot be read; csv->error says why. */
MUST_CHECK int csv_open(struct csv *c, struct arena *a, struct str text);

/* The column of that name, ASCII case ignored; -1 when there is none. */
int csv_column(const struct csv *c, struct str name);

/* Goes on in the next piece of a text whose header was read: it has so many columns, and begins on
 * this line. */
void csv_go_on(struct csv *c, struct str text, size_t columns, int64_t line);

/* The next row. ERR_NOT_FOUND: the text has ended; if more follows, c->at is where the first row
 * begins that has no end yet, and the next piece has to begin. ERR_INVALID, ERR_LIMIT: this row is
 * no good, error and error_line tell why; the next call goes on with the next row. Surplus cells
 * are accepted when they are empty: spreadsheets leave such. */
MUST_CHECK int csv_next(struct csv *c, struct arena *a, struct csv_row *row);

/* --- writing: cells, then the end of the row, which is CRLF --- */

struct csv_writer {
    struct buf *out; /* borrowed */
    size_t cells;    /* in the row so far */
};

/* A cell that begins with = + - @ tab or CR gets an apostrophe in front: spreadsheets would take it
 * for a formula and run it. */
void csv_add(struct csv_writer *w, struct str cell);
void csv_add_int(struct csv_writer *w, int64_t v); /* a number stays one, below zero too */
void csv_add_number(struct csv_writer *w, struct str digits); /* "-5.2", "1e-09": the same */
void csv_end_row(struct csv_writer *w);
/* A cell as long as spreadsheets can hold one; a longer one is cut, and ends in an ellipsis. Excel
 * would go on in further rows: a paper of three thousand authors would break the table. */
struct str csv_fit(struct arena *a, struct str cell);
#endif
