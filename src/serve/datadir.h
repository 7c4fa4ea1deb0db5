/* datadir.h -- the folder of the private stores: made, owned, locked. its contents are in
 * engine/setup/stores.h.
 *
 * Only its owner may enter it. A folder that is not empty and never was a data directory is not
 * touched: a wrong data_dir must not change the rights of a home folder. */
#ifndef SERVE_DATADIR_H
#define SERVE_DATADIR_H

#include <sys/types.h>

#include "base/arena.h"
#include "loop/loop.h"

struct datadir {
    const char *path; /* absolute, in the arena of datadir_open */
    int lock_fd;      /* the lock is held while this is open, across exec too */
};

/* Makes what is missing and takes the lock. When run as root, all of it is given to uid and gid.
 * ERR_IO, ERR_INVALID or ERR_BUSY (another supervisor holds the lock) with *why, in a. */
MUST_CHECK int datadir_open(struct arena *a, const char *path, uid_t uid, gid_t gid,
                            struct datadir *out, const char **why);

/* 0 when at least so many bytes are free, else ERR_IO with *why. */
MUST_CHECK int datadir_space(struct arena *a, const char *path, int64_t bytes, const char *what,
                             const char **why);

/* The password of a store; the first call makes and saves it. */
MUST_CHECK int datadir_secret(struct arena *a, struct loop *l, const char *dir, const char *store,
                              const char **secret, const char **why);
/* Replaces a file atomically, readable by its owner only. */
MUST_CHECK int datadir_write(struct arena *a, const char *path, const char *text, const char **why);
/* Removes a folder and everything in it, as far as possible. */
void datadir_remove(const char *path);
#endif
