/* file.h -- whole files, read into memory. Blocks: for small files, and for commands. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/str.h"

/* All bytes of a file from its beginning, a NUL behind them, in a. ERR_IO with errno; ERR_LIMIT:
 * more than most. Pipes are read to their end. */
MUST_CHECK int file_read(struct arena *a, const char *path, size_t most, struct str *out);
/* The same of an open file, whose position is neither used nor moved: processes may share it. */
MUST_CHECK int file_read_fd(struct arena *a, int fd, size_t most, struct str *out);

/* As much of the beginning as fits, from one read; "" when there is none. For /proc files. */
struct str file_head(const char *path, char *out, size_t cap);
#endif
