/* Turns of writers: locks of the system on a file beside the index, which stays when the index is
 * replaced. They belong to the open file, so that threads exclude each other, too, and are gone
 * when their process is. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

#include "base/err.h"
#include "engine/vectors/index_private.h"

int turn_open(const char *path, int *fd, const char **why)
{
    char name[INDEX_PATH_BYTES_MAX + 8];
    snprintf(name, sizeof(name), "%s.lock", path);
    *fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd >= 0)
        return 0;
    *why = "the lock file of the index cannot be opened";
    return ERR_IO;
}

static bool set(int fd, enum turn which, short kind)
{
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Asks every millisecond: a wait in the kernel would have no end. */
int turn_take(int fd, enum turn which, int wait_ms, const char **why)
{
    while (!set(fd, which, F_WRLCK)) {
        if (errno != EAGAIN && errno != EACCES) {
            *why = "the index cannot be locked";
            return ERR_IO;
        }
        if (wait_ms-- <= 0) {
            *why = "another writer is at work on the index";
            return ERR_BUSY;
        }
        poll(NULL, 0, 1);
    }
    return 0;
}

void turn_drop(int fd, enum turn which)
{
    check(set(fd, which, F_UNLCK));
}
