/* password_line.h -- a password from the terminal, asked for twice, or from standard input. */
#ifndef TOOL_PASSWORD_LINE_H
#define TOOL_PASSWORD_LINE_H

#include "engine/people/user.h"

#define PASSWORD_LINE_BYTES (USER_PASSWORD_BYTES_MAX + 3) /* a newline, one byte too many, NUL */

/* What is wrong, for whoever typed it; NULL: nothing. The caller wipes line. */
const char *password_line_read(char line[PASSWORD_LINE_BYTES]);
#endif
