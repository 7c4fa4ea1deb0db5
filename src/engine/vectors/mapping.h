/* mapping.h -- a part of a file in memory, whose file may become shorter at any time.
 *
 * Touching a mapped page that its file has lost raises SIGBUS, which would end the process. A check
 * of the size beforehand is not enough: the file may be cut in the middle of a search. So:
 *
 *   1. mappings are noted in a table of the process;
 *   2. on SIGBUS a handler looks for the address there. It puts pages of zeros in place of the rest
 *      of that mapping, sets its owner's `damaged`, and returns: the instruction is repeated and
 *      reads zeros;
 *   3. owners look at `damaged` after they have read, and throw away what they made of it.
 *
 * The handler jumps over no frames, so that locks and references stay as they are. A SIGBUS
 * elsewhere goes to the handler that was there before. The table is this process's only state here:
 * signals belong to processes. */
#ifndef ENGINE_VECTORS_MAPPING_H
#define ENGINE_VECTORS_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/check.h"

#define MAPPINGS_MAX 4096 /* of a process */

struct mapping {
    char *at; /* NULL: not mapped */
    size_t bytes;
    int slot;
};

/* Maps a part of a file, shared with all who map it. *damaged is set, never reset, when the file
 * turns out to be shorter; it must live as long as the mapping. ERR_IO with errno; ERR_LIMIT:
 * MAPPINGS_MAX. */
MUST_CHECK int mapping_open(struct mapping *m, int fd, off_t from, size_t bytes, bool writable,
                            bool *damaged);
void mapping_close(struct mapping *m); /* also one of zeros */
#endif
