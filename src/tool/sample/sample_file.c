#include "tool/sample/sample_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tool/sample/sample.h"

#define SPILL_BYTES (256 * 1024)

int sample_file_open(struct sample_file *f, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return sample_complain(path, strerror(errno));
    *f = (struct sample_file){.path = path, .fd = fd};
    buf_init(&f->buf);
    return 0;
}

static int write_all(struct sample_file *f)
{
    while (f->buf.len) {
        struct str s = buf_str(&f->buf);
        ssize_t n = write(f->fd, s.p, s.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sample_complain(f->path, strerror(errno));
        f->bytes += n;
        buf_consume(&f->buf, (size_t)n);
    }
    return 0;
}

int sample_file_spill(struct sample_file *f)
{
    return f->buf.len < SPILL_BYTES ? 0 : write_all(f);
}

int sample_file_close(struct sample_file *f, int err)
{
    if (!err)
        err = write_all(f);
    if (close(f->fd) < 0 && !err)
        err = sample_complain(f->path, strerror(errno));
    buf_release(&f->buf);
    return err;
}
