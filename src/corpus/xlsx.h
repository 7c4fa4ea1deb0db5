/* xlsx.h -- writes a workbook for spreadsheet programs (Office Open XML), row by row.
 *
 * Bytes are appended to a buffer that the caller may drain at any time; nothing that was written is
 * needed again. A workbook is sheets one after the other, each with a header row, which is bold,
 * frozen and has a filter, and then rows of cells.
 * Always true:
 *   - text is a string in the file and never a formula, whatever it begins with;
 *   - characters that XML forbids are dropped, bytes that are not UTF-8 become U+FFFD, and text of
 *     more than XLSX_TEXT_MAX characters is cut and ends in an ellipsis;
 *   - a call that fails with ERR_LIMIT has written nothing, and the workbook can still be ended.
 * The file is a ZIP without the ZIP64 extension, so it ends below 4 GB. */
#ifndef CORPUS_XLSX_H
#define CORPUS_XLSX_H

#include "base/str.h"

struct buf;
struct xlsx;

#define XLSX_ROWS_MAX    1048576 /* of a sheet, the header among them: the programs' limit */
#define XLSX_COLUMNS_MAX 16384   /* the same */
#define XLSX_TEXT_MAX    32767   /* UTF-16 units of a cell: the same */
#define XLSX_SHEETS_MAX  255

struct xlsx_column {
    struct str title;
    int width; /* in characters; 0: as the program likes */
};

/* out is borrowed until xlsx_end, or xlsx_free, which may come at any time. */
struct xlsx *xlsx_new(struct buf *out);
void xlsx_free(struct xlsx *x); /* NULL is fine */

/* Refuses what would make the file larger than this, which is less than the format allows. About
 * 1.5 MB of it are kept free for the end of the file. */
void xlsx_limit(struct xlsx *x, uint64_t bytes_max);

/* Ends the sheet before, if there is one, and begins another. What the programs do not allow in its
 * name becomes _, it is cut to 31 characters, and gets a number where another sheet has it. At
 * least one column. ERR_LIMIT: too many sheets or columns, or the file would be too large. */
MUST_CHECK int xlsx_begin_sheet(struct xlsx *x, struct str name, const struct xlsx_column *columns,
                                size_t count);

/* The next cell of the row. */
void xlsx_add_empty(struct xlsx *x);
void xlsx_add_text(struct xlsx *x, struct str text);
void xlsx_add_int(struct xlsx *x, int64_t v); /* as text beyond 15 digits: programs round them */
void xlsx_add_real(struct xlsx *x, double v); /* empty when it is not finite */
void xlsx_add_bool(struct xlsx *x, bool v);
/* "2026-01-31" is a real date, from 1900-03-01 to 9999-12-31; else it is text as it stands. */
void xlsx_add_date(struct xlsx *x, struct str iso);
void xlsx_add_time(struct xlsx *x, int64_t wall_us); /* since 1970, UTC: date and time */

/* Writes the cells that were added as a row. ERR_LIMIT: the sheet is full, the row has too many
 * cells, or the file would be too large; the cells are dropped. */
MUST_CHECK int xlsx_end_row(struct xlsx *x);

/* Writes the end of the file; at least one sheet was begun. Only xlsx_free may follow. */
void xlsx_end(struct xlsx *x);
#endif
