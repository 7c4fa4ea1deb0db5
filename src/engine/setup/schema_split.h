/* schema_split.h -- a file of SQL, one statement after the other.
 *
 * Knows strings, quoted names and comments: a semicolon inside of them ends no statement.
 * There is no DELIMITER: migrations create no procedures. */
#ifndef ENGINE_SETUP_SCHEMA_SPLIT_H
#define ENGINE_SETUP_SCHEMA_SPLIT_H

#include "base/str.h"

/* Cuts the first statement off *rest: without its semicolon, and without the comments and the
 * space around it. p == NULL when there are no more. ERR_INVALID: a string, a comment or the last
 * statement has no end; nothing has changed then. */
MUST_CHECK int schema_split(struct str *rest, struct str *statement);

/* The text in the words of one server: @TEXT@ and @EXACT@ become names of collations. */
char *schema_dialect(struct arena *a, const char *text, bool mariadb);

/* The table that a statement creates; p == NULL when it does something else. */
struct str schema_created_table(struct str statement);
#endif
