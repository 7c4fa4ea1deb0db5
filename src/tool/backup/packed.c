#include "tool/backup/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEVEL          3
#define IO_BYTES       (1024 * 1024)
#define LINE_BYTES_MAX (512u << 20) /* a value of 64 MB, all of it escaped, several times */
#define WINDOW_LOG_MAX 27

static int fail(struct task *t, const char *path)
{
    return task_fail(t, ERR_IO, "%s: %s", path, strerror(errno));
}

/* --- writing --- */

int packed_create(struct task *t, struct packed *p, const char *path, bool compress)
{
    *p = (struct packed){.path = path};
    buf_init(&p->out);
    sha256_begin(&p->sum);
    p->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (p->fd < 0)
        return fail(t, path);
    if (!compress)
        return 0;
    p->zstd = check_memory(ZSTD_createCCtx());
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
    return 0;
}

static int write_out(struct task *t, struct packed *p)
{
    struct str s = buf_str(&p->out);
    sha256_add(&p->sum, s);
    p->file_bytes += (int64_t)s.n;
    while (s.n) {
        ssize_t n = write(p->fd, s.p, s.n);
        if (n < 0 && errno != EINTR)
            return fail(t, p->path);
        s = str_skip(s, n > 0 ? (size_t)n : 0);
    }
    buf_clear(&p->out);
    return 0;
}

static int compress(struct task *t, struct packed *p, struct str s, ZSTD_EndDirective how)
{
    ZSTD_inBuffer in = {s.p, s.n, 0};
    for (;;) {
        size_t room = ZSTD_CStreamOutSize();
        ZSTD_outBuffer out = {buf_reserve(&p->out, room), room, 0};
        size_t left = ZSTD_compressStream2(p->zstd, &out, &in, how);
        check(!ZSTD_isError(left));
        buf_added(&p->out, out.pos);
        int err = p->out.len >= IO_BYTES ? write_out(t, p) : 0;
        if (err || (how == ZSTD_e_end ? left == 0 : in.pos == in.size))
            return err;
    }
}

int packed_add(struct task *t, struct packed *p, struct str s)
{
    p->bytes += (int64_t)s.n;
    if (p->zstd)
        return compress(t, p, s, ZSTD_e_continue);
    buf_add_str(&p->out, s);
    return p->out.len >= IO_BYTES ? write_out(t, p) : 0;
}

int packed_finish(struct task *t, struct packed *p, struct backup_file *out)
{
    uint8_t sum[SHA256_BYTES];
    int err = p->zstd ? compress(t, p, STR(""), ZSTD_e_end) : 0;
    if (!err)
        err = write_out(t, p);
    if (!err && fsync(p->fd) < 0)
        err = fail(t, p->path);
    if (err)
        return err;
    (void)posix_fadvise(p->fd, 0, 0, POSIX_FADV_DONTNEED); /* it is read back from the disk */
    sha256_end(&p->sum, sum);
    out->bytes = p->file_bytes;
    hex_write(sum, sizeof sum, out->sha256);
    return 0;
}

void packed_close(struct packed *p)
{
    if (p->fd >= 0)
        close(p->fd);
    ZSTD_freeCCtx(p->zstd);
    buf_release(&p->out);
}

/* --- reading --- */

struct reader {
    const char *path;
    const struct backup_file *file;
    int fd;
    ZSTD_DCtx *zstd;
    struct sha256 sum;
    int64_t bytes, file_bytes;
    bool whole; /* the frame has ended */
    char *block;
    struct buf text; /* of lines that were not handed out yet */
    packed_line *fn;
    void *arg;
};

static int damaged(struct task *t, const struct reader *r, const char *how)
{
    return task_fail(t, ERR_INVALID, "%s is damaged: %s", r->path, how);
}

static int hand_out(struct task *t, struct reader *r)
{
    struct str rest = buf_str(&r->text);
    const char *end;
    int err = 0;
    while (!err && rest.n && (end = memchr(rest.p, '\n', rest.n))) {
        size_t n = (size_t)(end - rest.p);
        struct arena_mark mark = arena_mark(task_arena(t));
        err = r->fn(t, str_from(rest.p, n), r->arg);
        arena_reset(task_arena(t), mark);
        rest = str_skip(rest, n + 1);
    }
    buf_consume(&r->text, r->text.len - rest.n);
    if (!err && r->text.len > LINE_BYTES_MAX)
        err = damaged(t, r, "a line is too long");
    return err;
}

static int decompress(struct task *t, struct reader *r, struct str s)
{
    ZSTD_inBuffer in = {s.p, s.n, 0};
    bool full = true; /* of what zstd holds back */
    while (in.pos < in.size || full) {
        size_t room = ZSTD_DStreamOutSize();
        ZSTD_outBuffer out = {buf_reserve(&r->text, room), room, 0};
        if (r->whole)
            return in.pos < in.size ? damaged(t, r, "something follows its end") : 0;
        size_t left = ZSTD_decompressStream(r->zstd, &out, &in);
        if (ZSTD_isError(left))
            return damaged(t, r, ZSTD_getErrorName(left));
        buf_added(&r->text, out.pos);
        r->bytes += (int64_t)out.pos;
        r->whole = left == 0;
        full = out.pos == out.size;
        int err = hand_out(t, r);
        if (err)
            return err;
    }
    return 0;
}

/* Signals are noticed between two blocks. */
static int read_block(struct task *t, struct reader *r, bool *end)
{
    ssize_t n = read(r->fd, r->block, IO_BYTES);
    if (n < 0)
        return errno == EINTR ? 0 : fail(t, r->path);
    *end = n == 0;
    struct str s = str_from(r->block, (size_t)n);
    sha256_add(&r->sum, s);
    r->file_bytes += n;
    int err = n ? decompress(t, r, s) : 0;
    return err ? err : task_yield(t);
}

static int compare(struct task *t, struct reader *r)
{
    uint8_t sum[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];
    sha256_end(&r->sum, sum);
    hex_write(sum, sizeof sum, hex);
    if (r->file_bytes < r->file->bytes)
        return task_fail(t, ERR_INVALID, "%s is damaged: it has %lld bytes of %lld", r->path,
                         (long long)r->file_bytes, (long long)r->file->bytes);
    if (strcmp(hex, r->file->sha256) != 0)
        return damaged(t, r, "its SHA-256 is not that of the manifest");
    return r->whole && r->text.len == 0 ? 0 : damaged(t, r, "it ends in mid-line");
}

static int read_all(struct task *t, struct reader *r)
{
    bool end = false;
    int err = 0;
    while (!err && !end)
        err = read_block(t, r, &end);

    return err ? err : compare(t, r);
}

int packed_lines(struct task *t, const char *path, const struct backup_file *f, packed_line *fn,
                 void *arg, int64_t *bytes)
{
    struct reader r = {.path = path, .file = f, .fn = fn, .arg = arg};
    r.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (r.fd < 0)
        return fail(t, path);
    sha256_begin(&r.sum);
    buf_init(&r.text);
    r.block = check_memory(malloc(IO_BYTES));
    r.zstd = check_memory(ZSTD_createDCtx());
    ZSTD_DCtx_setParameter(r.zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    int err = read_all(t, &r);
    *bytes = r.bytes;
    ZSTD_freeDCtx(r.zstd);
    free(r.block);
    buf_release(&r.text);
    close(r.fd);
    return err;
}
