/* A BibTeX reader with a file behind it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "corpus/bibtex.h"

#define READ_BYTES (256u << 10)

struct bibtex_file {
    struct bibtex *reader;
    struct buf bytes;
    size_t used; /* bytes of the buffer that the entry last given out may lie in */
    int fd;
    bool ended;
};

int bibtex_open(struct bibtex_file **f, const char *path, bibtex_report *report, void *arg)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ERR_IO;
    *f = check_memory(calloc(1, sizeof(**f)));
    (*f)->fd = fd;
    (*f)->reader = bibtex_new(report, arg);
    buf_init(&(*f)->bytes);
    return 0;
}

void bibtex_close(struct bibtex_file *f)
{
    if (!f)
        return;
    close(f->fd);
    bibtex_free(f->reader);
    buf_release(&f->bytes);
    free(f);
}

struct bibtex *bibtex_reader(struct bibtex_file *f)
{
    return f->reader;
}

static int fill(struct bibtex_file *f)
{
    char *room = buf_reserve(&f->bytes, READ_BYTES);
    ssize_t n;
    do
        n = read(f->fd, room, READ_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return ERR_IO;
    buf_added(&f->bytes, (size_t)n);
    f->ended = n == 0;
    return 0;
}

int bibtex_read(struct bibtex_file *f, struct bibtex_entry *e)
{
    for (;;) {
        buf_consume(&f->bytes, f->used);
        enum bibtex_step step = bibtex_next(f->reader, buf_str(&f->bytes), f->ended, e, &f->used);
        if (step != BIBTEX_MORE)
            return step == BIBTEX_ENTRY;
        buf_consume(&f->bytes, f->used);
        f->used = 0;
        int err = fill(f);
        if (err)
            return err;
    }
}
