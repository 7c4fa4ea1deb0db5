/* files.h -- the rows of a task as a file: CSV, JSON lines or XLSX.
 *
 *   CSV    one row a document, one column a field; UTF-8 with a byte order mark, which Excel needs;
 *          no cell can start a formula. Items of a list stand together, separated by "; ".
 *   JSON   lines: each has all that is known of a document, quotes and their places, too.
 *   XLSX   the same table as CSV with numbers, dates and truth values as such; a sheet of all
 *          quotes; and one that says where the values come from.
 *
 * Fields whose value is not verified, and those that were edited by hand, are named in columns of
 * their own; values of the simulated AI are marked in each row (SCR-15). Rows that are not
 * completed are there, without values. A file is made while it is sent, page by page: it needs the
 * memory of one page, and what is edited meanwhile may be in it or not. */
#ifndef APP_EXTRACT_TASK_FILES_H
#define APP_EXTRACT_TASK_FILES_H

#include "app/extract/task/results.h"

#define EXTRACT_FORMATS "csv|jsonl|xlsx"
enum extract_format { EXTRACT_CSV, EXTRACT_JSONL, EXTRACT_XLSX };

bool extract_format_read(struct str name, enum extract_format *out);
const char *extract_format_name(enum extract_format f);  /* "csv": also the ending of its files */
const char *extract_format_media(enum extract_format f); /* for Content-Type */

typedef int extract_piece_fn(struct task *t, struct str piece, void *arg);
/* k with its counts. fn is called at least once; other than 0 ends it. The task's arena is reset
 * between pages. ERR_BUSY, before fn is called: EXTRACT_FILES_OF_USER are being made, or
 * EXTRACT_FILES_MAX. */
MUST_CHECK int extract_file(struct task *t, struct extract *x, const struct extract_task *k,
                            enum extract_format f, extract_piece_fn *fn, void *arg);

/* A row as an object of JSON, as the API shows it. */
void extract_row_put(struct json_writer *w, const struct extract_row *row);
void extract_mark_put(struct json_writer *w, const struct extract_mark *m);
#endif
