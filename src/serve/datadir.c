#include "serve/datadir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/str.h"

#define SECRET_BYTES 24
#define DEPTH_MAX    16

static int fail(struct arena *a, const char *path, const char *what, const char **why)
{
    *why = arena_printf(a, "%s: %s: %s", path, what, strerror(errno));
    return ERR_IO;
}

/* --- walking --- */

typedef int visit_fn(int parent, const char *name, bool folder, void *arg);

/* Calls fn for every entry of a folder, depth first, without following links. Stops when fn does
 * not return 0, and returns that. */
static int walk(int parent, const char *name, int depth, visit_fn *fn, void *arg)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int status = 0;
    for (struct dirent *e; status == 0 && (e = readdir(d));) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        bool folder = fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
        if (folder && depth > 0)
            status = walk(fd, e->d_name, depth - 1, fn, arg);
        if (status == 0)
            status = fn(fd, e->d_name, folder, arg);
    }
    closedir(d);
    return status;
}

static int remove_entry(int parent, const char *name, bool folder, void *arg)
{
    (void)arg;
    unlinkat(parent, name, folder ? AT_REMOVEDIR : 0);
    return 0;
}

void datadir_remove(const char *path)
{
    walk(AT_FDCWD, path, DEPTH_MAX, remove_entry, NULL);
    rmdir(path);
}

struct owner {
    uid_t uid;
    gid_t gid;
};

static int give_entry(int parent, const char *name, bool folder, void *arg)
{
    (void)folder;
    const struct owner *o = arg;
    return fchownat(parent, name, o->uid, o->gid, AT_SYMLINK_NOFOLLOW);
}

static int any_entry(int parent, const char *name, bool folder, void *arg)
{
    (void)parent, (void)name, (void)folder, (void)arg;
    return 1;
}

/* --- making it --- */

static int make_folders(struct arena *a, const char *path, const char **why)
{
    char *part = arena_strdup(a, path);
    for (char *p = part + 1;; p++) {
        if (*p && *p != '/')
            continue;
        char saved = *p;
        *p = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return fail(a, part, "cannot make the data directory", why);
        *p = saved;
        if (!saved)
            return 0;
    }
}

/* Sets owner and rights of the folder, and of what is in it if the owner changes. */
static int claim(struct arena *a, const char *path, struct owner o, const char **why)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return fail(a, path, "cannot stat the data directory", why);
    if (!S_ISDIR(st.st_mode)) {
        *why = arena_printf(a, "%s: is not a folder, and cannot be the data directory", path);
        return ERR_INVALID;
    }
    bool give = geteuid() == 0 && st.st_uid != o.uid;
    if (!give && (st.st_mode & 07777) == 0700)
        return 0;
    const char *lock = arena_printf(a, "%s/lock", path);
    if (walk(AT_FDCWD, path, 0, any_entry, NULL) > 0 && access(lock, F_OK) < 0) {
        *why = arena_printf(a,
                            "%s: is neither empty nor a data directory of millrace; set another "
                            "data_dir",
                            path);
        return ERR_INVALID;
    }
    if (give && (walk(AT_FDCWD, path, DEPTH_MAX, give_entry, &o) || chown(path, o.uid, o.gid)))
        return fail(a, path, "cannot give the data directory to the configured user", why);
    if (chmod(path, 0700) < 0)
        return fail(a, path, "cannot set the rights of the data directory", why);
    return 0;
}

static int make_inside(struct arena *a, const char *path, struct owner o, const char **why)
{
    static const char *const names[] = {"run", "secret", "log", "redis", "mariadb"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *folder = arena_printf(a, "%s/%s", path, names[i]);
        if (mkdir(folder, 0700) < 0 && errno != EEXIST)
            return fail(a, folder, "cannot make the folder", why);
        if (geteuid() == 0 && chown(folder, o.uid, o.gid) < 0)
            return fail(a, folder, "cannot give the folder to the configured user", why);
    }
    return 0;
}

/* --- the lock --- */

static int refuse_second(struct arena *a, const char *path, int fd, const char **why)
{
    char pid[32] = "";
    ssize_t n = read(fd, pid, sizeof pid - 1);
    pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
    *why =
        arena_printf(a, "another millrace (pid %s) is running on %s", *pid ? pid : "unknown", path);
    return ERR_BUSY;
}

static int take_lock(struct arena *a, const char *path, struct owner o, int *out, const char **why)
{
    const char *file = arena_printf(a, "%s/lock", path);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fail(a, file, "cannot open the lock", why);
    int err = 0;
    char pid[32];
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        err = errno == EWOULDBLOCK ? refuse_second(a, path, fd, why)
                                   : fail(a, file, "cannot lock", why);
    else if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
        err = fail(a, file, "cannot write", why);
    else if (geteuid() == 0 && fchown(fd, o.uid, o.gid) < 0)
        err = fail(a, file, "cannot give the lock to the configured user", why);
    if (err)
        close(fd);
    else
        *out = fd;
    return err;
}

int datadir_open(struct arena *a, const char *path, uid_t uid, gid_t gid, struct datadir *out,
                 const char **why)
{
    char real[PATH_MAX];
    struct owner o = {uid, gid};
    int err = make_folders(a, path, why);
    if (!err && !realpath(path, real))
        err = fail(a, path, "cannot find the data directory", why);
    if (!err)
        err = claim(a, real, o, why);
    if (!err)
        err = take_lock(a, real, o, &out->lock_fd, why);
    if (err)
        return err;
    out->path = arena_strdup(a, real);
    err = make_inside(a, real, o, why);
    if (err)
        close(out->lock_fd);
    return err;
}

/* --- what is in it --- */

int datadir_space(struct arena *a, const char *path, int64_t bytes, const char *what,
                  const char **why)
{
    struct statvfs st;
    if (statvfs(path, &st) < 0)
        return fail(a, path, "cannot read the free space", why);
    int64_t free_bytes = (int64_t)st.f_bavail * (int64_t)st.f_frsize;
    if (free_bytes >= bytes)
        return 0;
    *why = arena_printf(a, "%s: the disk is full: %lld MB are free, %s needs %lld MB", path,
                        (long long)free_bytes >> 20, what, (long long)bytes >> 20);
    return ERR_IO;
}

int datadir_write(struct arena *a, const char *path, const char *text, const char **why)
{
    const char *fresh = arena_printf(a, "%s.new", path);
    size_t n = strlen(text);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail(a, fresh, "cannot make the file", why);
    int err = 0;
    if (write(fd, text, n) != (ssize_t)n || fsync(fd) < 0)
        err = fail(a, fresh, "cannot write", why);
    if (close(fd) < 0 && !err)
        err = fail(a, fresh, "cannot write", why);
    if (!err && rename(fresh, path) < 0)
        err = fail(a, path, "cannot replace the file", why);
    return err;
}

int datadir_secret(struct arena *a, struct loop *l, const char *dir, const char *store,
                   const char **secret, const char **why)
{
    const char *path = arena_printf(a, "%s/secret/%s", dir, store);
    char text[2 * SECRET_BYTES + 1];
    if (file_head(path, text, sizeof text).n == sizeof text) {
        *secret = str_z(a, str_from(text, 2 * SECRET_BYTES));
        return 0;
    }
    uint8_t bytes[SECRET_BYTES];
    loop_secret(l, bytes, sizeof bytes);
    hex_write(bytes, sizeof bytes, text);
    *secret = arena_strdup(a, text);
    return datadir_write(a, path, arena_printf(a, "%s\n", text), why);
}
