/* split_name.h -- the folder of a journal, from what an entry says. */
#ifndef TOOL_DB_SPLIT_NAME_H
#define TOOL_DB_SPLIT_NAME_H

#include "base/str.h"

#define SPLIT_NAME_BYTES_MAX 200 /* a file system takes 255 */

/* The name without LaTeX, in UTF-8, blanks joined; '/' and '\' become '-'. It is one safe part of
 * a path: no control characters, no dot in front, neither "." nor "..". A longer name is cut, and
 * ends with digits that depend on all of it. n == 0: nothing is left. In a. */
struct str split_name(struct arena *a, struct str journal);

/* Names that differ in case (ASCII) and blanks only have the same one: the same journal, and on
 * some file systems the same folder. In a. */
struct str split_fold(struct arena *a, struct str name);
#endif
