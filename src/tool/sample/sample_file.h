/* sample_file.h -- a new file, written through a buffer. Errors are told with the path. */
#ifndef TOOL_SAMPLE_FILE_H
#define TOOL_SAMPLE_FILE_H

#include "base/buf.h"

struct sample_file {
    const char *path; /* borrowed */
    int fd;
    struct buf buf; /* fill it, then call spill */
    int64_t bytes;  /* written so far */
};

/* The file must not exist: nothing is ever overwritten. */
MUST_CHECK int sample_file_open(struct sample_file *f, const char *path);
/* Writes the buffer out if it has become large. */
MUST_CHECK int sample_file_spill(struct sample_file *f);
/* err is what happened so far. Without an error the rest is written; in any case the file is closed
 * and the memory given back. Returns err or what went wrong here. */
MUST_CHECK int sample_file_close(struct sample_file *f, int err);
#endif
