/* file_name.h -- what files are called that users download.
 *
 * No character of a name is special to a file system or a shell, or changes the direction of text,
 * whatever the user has written. */
#ifndef ENGINE_API_FILE_NAME_H
#define ENGINE_API_FILE_NAME_H

#include "base/str.h"

/* "millrace-<first words of about>-<date><end>", like "millrace-Is-it-wet-2026-01-31-all.csv". */
struct str file_name(struct arena *a, struct str about, int64_t wall_ms, struct str end);
/* The value of Content-Disposition: the name in ASCII, and as it is (RFC 6266, RFC 8187). */
struct str file_disposition(struct arena *a, struct str name);
#endif
