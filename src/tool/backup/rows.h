/* rows.h -- rows of a table as lines of text.
 *
 * Values have tabs between them, and a newline ends the row. \N is NULL; \\ \t \n \0 stand for the
 * bytes that would be misread. It is what LOAD DATA reads by default, so a backup can be loaded
 * without millrace. */
#ifndef TOOL_BACKUP_ROWS_H
#define TOOL_BACKUP_ROWS_H

#include "base/buf.h"
#include "wire/sql.h"

/* Integers, texts and blobs; no reals: they would have to be rounded. */
void rows_put(struct buf *out, const struct sql_value *cells, size_t count);

/* A line without its newline into count texts, in a. False: it has another number of values, or an
 * escape that rows_put does not write. */
bool rows_read(struct arena *a, struct str line, size_t count, struct sql_value *cells);
#endif
