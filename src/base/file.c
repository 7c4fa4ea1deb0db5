#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

static ssize_t read_at(int fd, char *p, size_t n, size_t at)
{
    ssize_t got;
    do {
        got = pread(fd, p, n, (off_t)at);
        if (got < 0 && errno == ESPIPE)
            got = read(fd, p, n);
    } while (got < 0 && errno == EINTR);
    return got;
}

int file_read_fd(struct arena *a, int fd, size_t most, struct str *out)
{
    struct stat st = {.st_size = 0};
    (void)!fstat(fd, &st);
    if (S_ISDIR(st.st_mode)) { /* whose size is not that of a file */
        errno = EISDIR;
        return ERR_IO;
    }
    size_t size = st.st_size > 0 ? (size_t)st.st_size : 0;
    if (size > most)
        return ERR_LIMIT;
    size_t n = 0, cap = size + 4096; /* a file may have grown, and /proc tells no sizes */
    char *p = arena_alloc(a, cap);
    for (ssize_t got; (got = read_at(fd, p + n, cap - n, n)) != 0;) {
        if (got < 0)
            return ERR_IO;
        n += (size_t)got;
        if (n > most)
            return ERR_LIMIT;
        if (n == cap) {
            p = arena_grow(a, p, cap, 2 * cap);
            cap *= 2;
        }
    }
    p[n] = '\0';
    *out = str_from(p, n);
    return 0;
}

int file_read(struct arena *a, const char *path, size_t most, struct str *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ERR_IO;
    int err = file_read_fd(a, fd, most, out);
    int why = errno;
    close(fd);
    errno = why;
    return err;
}

struct str file_head(const char *path, char *out, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read_at(fd, out, cap, 0);
    if (fd >= 0)
        close(fd);
    return str_from(out, n > 0 ? (size_t)n : 0);
}
