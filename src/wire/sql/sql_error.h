/* sql_error.h -- what the database's error numbers mean to us, and how much of its words we repeat.
 *
 * The server quotes values in its messages ("Duplicate entry 'bob' for key …"). Those were bound
 * and may be secrets, so they are taken out; names of columns, keys and tables stay. */
#ifndef WIRE_SQL_ERROR_H
#define WIRE_SQL_ERROR_H

#include "base/err.h"
#include "base/str.h"

/* ERR_UNCERTAIN: the connection was lost after the command was sent; ERR_UNAVAILABLE: lost or
 * refused while nothing had been done, or there is no room on the server's disk. */
int sql_error_kind(unsigned int code);

/* After this error the connection is of no more use. */
bool sql_error_breaks(unsigned int code);

/* The server's text without the values in it, in a. */
const char *sql_error_text(struct arena *a, const char *text);

/* Running it twice does no harm, because it only reads. */
bool sql_reads_only(const char *statement);
#endif
