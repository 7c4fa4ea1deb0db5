/* line.h -- texts of templates and values: cleaned, counted, compared. */
#ifndef APP_EXTRACT_FIELDS_LINE_H
#define APP_EXTRACT_FIELDS_LINE_H

#include "base/str.h"

size_t line_chars(struct str s); /* characters */
/* Whether there is a control character in it, line ends and tabs included. */
bool line_has_control(struct str s);
/* One line: trimmed, and one blank for every run of blanks and control characters. s itself if it
 * is one already, else in a. */
struct str line_clean(struct arena *a, struct str s);
/* The form in which texts are equal that differ in case or in compatible characters only (Ａ and A).
 * In a. s is valid UTF-8. */
struct str line_folded(struct arena *a, struct str s);
#endif
