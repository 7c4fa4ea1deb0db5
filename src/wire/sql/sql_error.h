/* sql_error.h -- ERR_ codes for the database's error numbers, and its texts without values.
 *
 * The server quotes values in its messages ("Duplicate entry 'bob' for key …"). Those were bound
 * and may be secrets, so they are taken out; names of columns, keys and tables stay. */
#ifndef WIRE_SQL_ERROR_H
#define WIRE_SQL_ERROR_H

#include "base/err.h"
#include "base/str.h"

/* ERR_UNCERTAIN: the connection was lost after the command was sent; ERR_UNAVAILABLE: lost or
 * refused while nothing had been done, there is no room on the server's disk, or it is
 * read-only. */
int sql_error_kind(unsigned int code);

/* The server takes no changes: a replica, or an operator has set it so, or it is alone of its
 * group. */
bool sql_error_read_only(unsigned int code);

/* The whole transaction has been rolled back, and may succeed if it is run again: a deadlock, or on
 * Galera and in group replication a change that another server committed first. */
bool sql_error_rolled_back(unsigned int code);

/* After this error the connection must not be used again. */
bool sql_error_breaks(unsigned int code);

/* The server's text without the values in it, in a. */
const char *sql_error_text(struct arena *a, const char *text);

/* Whether the statement only reads, and so is idempotent. */
bool sql_reads_only(const char *statement);
/* Whether a read-only server refuses it. */
bool sql_changes_rows(const char *statement);
#endif
