/* packed.h -- files of a backup: compressed with zstd, with their SHA-256. They block: for
 * commands, between two waits. */
#ifndef TOOL_BACKUP_PACKED_H
#define TOOL_BACKUP_PACKED_H

#include <zstd.h>

#include "base/buf.h"
#include "tool/backup/backup.h"

struct packed {
    const char *path; /* borrowed */
    int fd;
    ZSTD_CCtx *zstd; /* NULL: not compressed */
    struct sha256 sum;
    int64_t bytes, file_bytes; /* before and after */
    struct buf out;
};

/* A new file, 0600. ERR_IO with path and reason, as for the others; after an error packed_close. */
MUST_CHECK int packed_create(struct task *t, struct packed *p, const char *path, bool compress);
MUST_CHECK int packed_add(struct task *t, struct packed *p, struct str s);
/* Writes the rest, and makes sure that it is on the disk. */
MUST_CHECK int packed_finish(struct task *t, struct packed *p, struct backup_file *out);
void packed_close(struct packed *p);

/* Calls fn for every line of a compressed file, without its newline; fn may wait. *bytes: of all
 * lines. ERR_INVALID: sum or size are not those of f (its name is in the text), or it cannot be
 * decompressed. fn's errors end it. Lines are handed out before the sum is known. */
typedef int packed_line(struct task *t, struct str line, void *arg);
MUST_CHECK int packed_lines(struct task *t, const char *path, const struct backup_file *f,
                            packed_line *fn, void *arg, int64_t *bytes);
#endif
