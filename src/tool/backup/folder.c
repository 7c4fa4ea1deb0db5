#include "tool/backup/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/time.h"
#include "serve/datadir.h"

#define NAME_PREFIX "millrace-"
#define NAME_BYTES  (sizeof NAME_PREFIX "20261117T024700Z" - 1)

static int fail(struct task *t, const char *path)
{
    return task_fail(t, ERR_IO, "%s: %s", path, strerror(errno));
}

/* --- opening --- */

/* "millrace-20261117T024700Z" */
static const char *name_now(struct task *t)
{
    char iso[TIME_ISO_BYTES], *name = arena_strdup(task_arena(t), NAME_PREFIX "20261117T024700Z");
    char *out = name + strlen(NAME_PREFIX);
    time_iso(loop_wall_ms(task_loop(t)) * 1000, iso);
    for (const char *p = iso; *p && *p != '.'; p++)
        if (*p != '-' && *p != ':')
            *out++ = *p;
    return name;
}

/* The first name in a folder; NULL: it is empty. */
static const char *anything(struct task *t, int fd)
{
    DIR *d = fdopendir(dup(fd));
    const char *name = NULL;
    if (!d)
        return "(it cannot be read)";
    rewinddir(d);
    for (struct dirent *e; !name && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strcmp(e->d_name, "lost+found") != 0)
            name = arena_strdup(task_arena(t), e->d_name);
    closedir(d);
    return name;
}

static int make(struct task *t, const char *path, bool *made)
{
    *made = mkdir(path, 0700) == 0;
    return *made || errno == EEXIST ? 0 : fail(t, path);
}

/* Two backups into one folder would mix, and one would remove what the other writes. */
static int lock(struct task *t, const char *path, int *out)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail(t, path);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *out = fd;
        return 0;
    }
    int err = errno == EWOULDBLOCK
                  ? task_fail(t, ERR_BUSY, "%s: another backup is being written there", path)
                  : fail(t, path);
    close(fd);
    return err;
}

static int refuse_full(struct task *t, const char *path, int fd)
{
    const char *name = anything(t, fd);
    if (!name)
        return 0;
    if (strcmp(name, BACKUP_PARTIAL) == 0)
        return task_fail(t, ERR_EXISTS,
                         "%s: is not empty: an interrupted backup has left \"" BACKUP_PARTIAL
                         "\" there; remove it, or name another folder",
                         path);
    return task_fail(t, ERR_EXISTS,
                     "%s: is not empty (\"%s\"): name a new folder, or a parent of backups with "
                     "--keep N",
                     path, name);
}

static int open_below(struct task *t, struct folder *f)
{
    bool made;
    int err = make(t, f->parent, &made);
    if (!err)
        err = lock(t, f->parent, &f->lock_fd);
    if (err)
        return err;
    f->path = arena_printf(task_arena(t), "%s/%s", f->parent, name_now(t));
    if (mkdir(f->path, 0700) < 0)
        return fail(t, f->path);
    f->made = true;
    return 0;
}

static int open_one(struct task *t, struct folder *f)
{
    int err = make(t, f->path, &f->made);
    if (!err)
        err = lock(t, f->path, &f->lock_fd);
    return err ? err : refuse_full(t, f->path, f->lock_fd);
}

int folder_open(struct task *t, const char *path, bool keep, struct folder *out)
{
    *out = (struct folder){.path = path, .parent = keep ? path : NULL, .lock_fd = -1};
    int err = keep ? open_below(t, out) : open_one(t, out);
    out->partial = arena_printf(task_arena(t), "%s/" BACKUP_PARTIAL, out->path);
    if (!err && mkdir(out->partial, 0700) < 0)
        err = fail(t, out->partial);
    if (err && out->made)
        rmdir(out->path);
    if (err)
        folder_close(out);
    return err;
}

/* --- the end --- */

static int sync_folder(struct task *t, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = fd < 0 || fsync(fd) < 0 ? fail(t, path) : 0;
    if (fd >= 0)
        close(fd);
    return err;
}

static int move_up(struct task *t, struct folder *f, struct str name)
{
    struct arena *a = task_arena(t);
    const char *to = arena_printf(a, "%s/%.*s", f->path, STR_ARG(name));
    return rename(arena_printf(a, "%s/%.*s", f->partial, STR_ARG(name)), to) < 0 ? fail(t, to) : 0;
}

int folder_commit(struct task *t, struct folder *f, const struct backup *b)
{
    int err = 0;
    for (size_t i = 0; !err && i < b->table_count; i++)
        err = move_up(t, f, b->tables[i].file.name);
    if (!err)
        err = move_up(t, f, STR(BACKUP_REDIS));
    if (!err)
        err = move_up(t, f, STR(BACKUP_SUMS));
    if (!err)
        err = sync_folder(t, f->path);
    if (!err)
        err = move_up(t, f, STR(BACKUP_MANIFEST));
    if (!err && rmdir(f->partial) < 0)
        err = fail(t, f->partial);
    if (!err)
        err = sync_folder(t, f->path);
    return err || !f->parent ? err : sync_folder(t, f->parent);
}

static void remove_file(struct task *t, const struct folder *f, struct str name)
{
    unlink(arena_printf(task_arena(t), "%s/%.*s", f->path, STR_ARG(name)));
}

void folder_discard(struct task *t, struct folder *f, const struct backup *b)
{
    remove_file(t, f, STR(BACKUP_MANIFEST));
    remove_file(t, f, STR(BACKUP_SUMS));
    remove_file(t, f, STR(BACKUP_REDIS));
    for (size_t i = 0; i < b->table_count; i++)
        if (b->tables[i].file.name.p)
            remove_file(t, f, b->tables[i].file.name);
    datadir_remove(f->partial);
    if (f->made)
        rmdir(f->path);
}

void folder_close(struct folder *f)
{
    if (f->lock_fd >= 0)
        close(f->lock_fd);
    f->lock_fd = -1;
}

/* --- older ones --- */

static int is_ours(const struct dirent *e)
{
    struct str name = str_of(e->d_name);
    return name.n == NAME_BYTES && str_starts(name, STR(NAME_PREFIX)) &&
           e->d_name[name.n - 1] == 'Z';
}

/* 1: a whole backup, 0: an interrupted one, -1: one of another user, which counts as whole. */
static int is_whole(struct arena *a, const char *path)
{
    if (access(arena_printf(a, "%s/" BACKUP_MANIFEST, path), F_OK) == 0)
        return 1;
    return errno == ENOENT ? 0 : -1;
}

/* The backup that was just made is whole all the same: its exit status does not say this. */
static void left_alone(const char *path)
{
    fprintf(stderr, "millrace backup: %s is another user's and stays: remove it by hand\n", path);
}

/* From the newest on: the names sort by time. The lock keeps other backups out, so one without a
 * manifest was interrupted. */
int folder_prune(struct task *t, struct folder *f, int64_t keep, int64_t *removed)
{
    struct dirent **names;
    int count = scandir(f->parent, &names, is_ours, alphasort);
    if (count < 0)
        return fail(t, f->parent);
    *removed = 0;
    for (int i = count - 1; i >= 0; i--) {
        const char *path = arena_printf(task_arena(t), "%s/%s", f->parent, names[i]->d_name);
        int whole = is_whole(task_arena(t), path);
        free(names[i]);
        if (whole == 0 || keep-- <= 0) {
            datadir_remove(path);
            if (access(path, F_OK) == 0)
                left_alone(path);
            else
                *removed += whole != 0;
        }
    }
    free(names);
    return 0;
}

const char *folder_newest(struct arena *a, const char *parent)
{
    struct dirent **names;
    const char *newest = NULL;
    int count = scandir(parent, &names, is_ours, alphasort);
    for (int i = count - 1; i >= 0; i--) {
        const char *path = arena_printf(a, "%s/%s", parent, names[i]->d_name);
        if (!newest && is_whole(a, path) == 1)
            newest = path;
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return newest;
}
