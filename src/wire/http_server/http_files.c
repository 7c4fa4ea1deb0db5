#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/time.h"
#include "wire/http_server/http_exchange.h"
#include "wire/http_server/http_field.h"
#include "wire/http_server/http_type.h"

struct http_files {
    int root;
};

/* A file that is open to be sent. */
struct file {
    int fd;
    struct stat st;
    const char *coding; /* NULL: as it is */
};

struct http_files *http_files_new(const char *root)
{
    int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct http_files *f = check_memory(malloc(sizeof(*f)));
    f->root = fd;
    return f;
}

void http_files_free(struct http_files *f)
{
    if (!f)
        return;
    close(f->root);
    free(f);
}

/* Not O_RDONLY alone: a FIFO would wait for its writer. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* For kernels and sandboxes without openat2: step by step, through no link at all. */
static int open_by_steps(int root, struct arena *a, struct str path)
{
    int dir = root;
    while (path.p) {
        char *name = str_z(a, str_cut(&path, '/'));
        int flags = OPEN_FLAGS | O_NOFOLLOW | (path.p ? O_DIRECTORY : 0);
        int fd = openat(dir, name, flags), failed = errno;
        if (dir != root)
            close(dir);
        errno = failed;
        if (fd < 0)
            return -1;
        dir = fd;
    }
    return dir;
}

static int open_beneath(int root, struct arena *a, struct str path)
{
    struct open_how how = {
        .flags = OPEN_FLAGS,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, root, str_z(a, path), &how, sizeof(how));
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return open_by_steps(root, a, path);
    return fd;
}

/* Neither empty parts nor "..", nor names that begin with a dot. */
static bool path_allowed(struct str path)
{
    if (path.n && memchr(path.p, '\0', path.n))
        return false;
    while (path.p) {
        struct str part = str_cut(&path, '/');
        if (part.n == 0 || part.p[0] == '.')
            return false;
    }
    return true;
}

static int open_failed(struct task *t)
{
    switch (errno) {
    case EMFILE:
    case ENFILE:
        return task_fail(t, ERR_BUSY, "open: %s", strerror(errno));
    case EIO:
    case ENOMEM:
        return task_fail(t, ERR_IO, "open: %s", strerror(errno));
    default:
        return task_fail(t, ERR_NOT_FOUND, "there is no such file");
    }
}

static int open_file(struct task *t, const struct http_files *f, struct str path, struct file *out)
{
    struct file file = {.fd = open_beneath(f->root, task_arena(t), path)};
    if (file.fd < 0)
        return open_failed(t);
    if (fstat(file.fd, &file.st) == 0 && (S_ISREG(file.st.st_mode) || S_ISDIR(file.st.st_mode))) {
        *out = file;
        return 0;
    }
    close(file.fd);
    return task_fail(t, ERR_NOT_FOUND, "there is no such file");
}

/* Opens what *path means; a folder stands for its index.html. */
static int find(struct task *t, const struct http_files *f, struct str *path, struct file *out)
{
    struct str name = *path;
    bool folder = name.n == 0 || name.p[name.n - 1] == '/';
    if (folder)
        name = str_printf(task_arena(t), "%.*sindex.html", STR_ARG(name));
    if (!path_allowed(name))
        return task_fail(t, ERR_NOT_FOUND, "there is no such file");
    struct file file;
    int err = open_file(t, f, name, &file);
    if (err)
        return err;
    if (!S_ISDIR(file.st.st_mode)) {
        *path = name;
        *out = file;
        return 0;
    }
    close(file.fd);
    if (folder)
        return task_fail(t, ERR_NOT_FOUND, "there is no such file");
    struct str inside = str_printf(task_arena(t), "%.*s/", STR_ARG(name));
    err = find(t, f, &inside, out);
    if (!err)
        *path = inside;
    return err;
}

static bool older(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec < b->st_mtim.tv_sec
                                                  : a->st_mtim.tv_nsec < b->st_mtim.tv_nsec;
}

/* Replaces the file by its compressed form if there is one at least as new. */
static bool use_coding(struct task *t, const struct http_files *f, struct str path,
                       enum http_coding coding, struct file *file)
{
    static const char *const endings[] = {".br", ".gz"}, *const names[] = {"br", "gzip"};
    struct file packed;
    struct str name = str_printf(task_arena(t), "%.*s%s", STR_ARG(path), endings[coding]);
    if (open_file(t, f, name, &packed) != 0)
        return false;
    if (!S_ISREG(packed.st.st_mode) || older(&packed.st, &file->st)) {
        close(packed.fd);
        return false;
    }
    close(file->fd);
    *file = packed;
    file->coding = names[coding];
    return true;
}

/* What the client wants most; of equals the shortest. A client that takes nothing there is gets the
 * file as it is. */
static void negotiate(struct task *t, const struct http_exchange *x, const struct http_files *f,
                      struct str path, struct file *file)
{
    struct http_weights w = http_weights_parse(http_header_list(x, "accept-encoding"));
    bool gzip_first = w.of[HTTP_GZIP] > w.of[HTTP_BROTLI];
    enum http_coding order[] = {gzip_first ? HTTP_GZIP : HTTP_BROTLI,
                                gzip_first ? HTTP_BROTLI : HTTP_GZIP};
    for (size_t i = 0; i < 2; i++) {
        int weight = w.of[order[i]];
        if (weight > 0 && weight >= w.of[HTTP_IDENTITY] && use_coding(t, f, path, order[i], file))
            return;
    }
}

static struct str etag_of(struct arena *a, const struct file *file)
{
    uint64_t ns =
        (uint64_t)file->st.st_mtim.tv_sec * 1000000000u + (uint64_t)file->st.st_mtim.tv_nsec;
    return str_printf(a, "\"%" PRIx64 "-%" PRIx64 "%s%s\"", ns, (uint64_t)file->st.st_size,
                      file->coding ? "-" : "", file->coding ? file->coding : "");
}

static bool unchanged(const struct http_exchange *x, const struct file *file, struct str etag)
{
    struct str tags = http_header(x, "if-none-match"), date = http_header(x, "if-modified-since");
    int64_t since;
    if (tags.p)
        return http_etag_matches(tags, etag);
    return date.p && http_date_parse(date, &since) && file->st.st_mtim.tv_sec <= since;
}

static int send_part(struct task *t, struct http_exchange *x, const char *type,
                     const struct file *file, const struct http_part *p)
{
    struct buf *b = &x->conn->kit->json;
    if (p->count > HTTP_COPY_BYTES_MAX) {
        http_add_head(x, p->status, type, true, p->count);
        return x->headless ? 0 : http_send_file(t, x->conn, file->fd, p->first, p->count);
    }
    buf_clear(b);
    ssize_t n = pread(file->fd, buf_reserve(b, p->count + 1), p->count, (off_t)p->first);
    if (n != (ssize_t)p->count)
        return task_fail(t, ERR_IO, "a file became shorter while it was read");
    return http_reply(t, x, p->status, type, str_from(b->p, (size_t)p->count));
}

#define HASH_CHARS 8

/* "assets/index-BfK1s2xZ.js", as Vite names what it builds: another content has another name. Eight
 * lower-case letters may be a word, so a hash has a digit or a capital; one that has neither, of a
 * thousand, is only revalidated. */
static bool is_hashed(struct str path)
{
    if (!str_starts(path, STR("assets/")))
        return false;
    size_t n = path.n;
    while (n > 0 && path.p[n - 1] != '.' && path.p[n - 1] != '/')
        n--;
    if (n <= HASH_CHARS + 2 || path.p[n - 1] != '.' || path.p[n - HASH_CHARS - 2] != '-')
        return false;
    bool telling = false;
    for (const char *p = path.p + n - HASH_CHARS - 1; p < path.p + n - 1; p++) {
        if (!ascii_is_word(*p) && *p != '-' && *p != '_')
            return false;
        telling |= ascii_is_digit(*p) || (*p >= 'A' && *p <= 'Z');
    }
    return telling;
}

static int reply_open(struct task *t, struct http_exchange *x, struct str path,
                      const struct file *file)
{
    char modified[TIME_HTTP_BYTES];
    time_http((int64_t)file->st.st_mtim.tv_sec * 1000000, modified);
    struct str etag = etag_of(task_arena(t), file);
    http_set_header(x, "ETag", etag);
    http_set_header(x, "Last-Modified", str_of(modified));
    http_set_header(x, "Vary", STR("Accept-Encoding"));
    if (!http_is_set(x, "cache-control"))
        http_set_header(x, "Cache-Control",
                        is_hashed(path) ? STR("public, max-age=31536000, immutable")
                                        : STR("no-cache")); /* cached, but revalidated */
    if (unchanged(x, file, etag))
        return http_reply(t, x, 304, NULL, STR(""));
    struct http_part part = http_part_range(x, etag, str_of(modified), (uint64_t)file->st.st_size);
    http_part_announce(x, &part);
    if (part.status == 416)
        return http_reply(t, x, 416, NULL, STR(""));
    if (file->coding)
        http_set_header(x, "Content-Encoding", str_of(file->coding));
    return send_part(t, x, http_type_of(path), file, &part);
}

int http_reply_file(struct task *t, struct http_exchange *x, const struct http_files *f,
                    struct str path)
{
    struct file file;
    int err = find(t, f, &path, &file);
    if (err)
        return err;
    negotiate(t, x, f, path, &file);
    err = reply_open(t, x, path, &file);
    close(file.fd);
    return err;
}
