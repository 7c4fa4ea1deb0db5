/* datadir.h -- the folder of the private stores: made, owned, locked. See engine/setup/stores.h for what is in it.
 *
 * Entered by its owner only. A folder that is somebody else's, not empty and never was a data
 * directory is left alone: a wrong data_dir must not change the rights of a home folder. */
#ifndef SERVE_DATADIR_H
#define SERVE_DATADIR_H

#include <sys/types.h>

#include "base/arena.h"
#include "loop/loop.h"

struct datadir {
    const char *path; /* absolute, in the arena of datadir_open */
    int lock_fd;      /* the lock lasts as long as this is open, exec included */
};

/* Makes what is missing and takes the lock. Everything below is given to uid and gid when we are
 * root and they are not. ERR_IO, ERR_INVALID or ERR_BUSY (another supervisor has it) with the
 * message in *why, in a. */
MUST_CHECK int datadir_open(struct arena *a, const char *path, uid_t uid, gid_t gid,
                            struct datadir *out, const char **why);

/* Whether at least so many bytes are free; if not, *why. */
MUST_CHECK int datadir_space(struct arena *a, const char *path, int64_t bytes, const char *what,
                             const char **why);

/* The password of a store, made and kept at the first call. */
MUST_CHECK int datadir_secret(struct arena *a, struct loop *l, const char *dir, const char *store,
                              const char **secret, const char **why);
/* Replaces a file as a whole, readable by us only. */
MUST_CHECK int datadir_write(struct arena *a, const char *path, const char *text, const char **why);
/* Removes a folder and everything in it, as far as possible. */
void datadir_remove(const char *path);
#endif
