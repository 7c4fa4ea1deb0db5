#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "tool/sample/sample.h"

/* The marker's first line names the command; the last one is added when everything is written. */
#define MARKER       ".millrace-sample"
#define MARKER_ASIDE MARKER ".part" /* while it is written; a killed process leaves nothing else */
#define MARKER_FIRST "millrace sample 1\n"
#define MARKER_LAST  "complete\n"
#define MARKER_BYTES 256

static const char *marker_path(const struct sample_options *o)
{
    return arena_printf(o->arena, "%s/" MARKER, o->dir);
}

static struct str marker_text(const struct sample_options *o)
{
    return str_printf(o->arena, MARKER_FIRST "papers %lld\nseed %lld\n", (long long)o->papers,
                      (long long)o->seed);
}

/* Absent, unreadable or not a marker: empty. */
static struct str read_marker(const struct sample_options *o)
{
    char *p = arena_alloc(o->arena, MARKER_BYTES);
    int fd = open(marker_path(o), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return STR("");
    ssize_t n = read(fd, p, MARKER_BYTES);
    close(fd);
    struct str s = str_from(p, n > 0 ? (size_t)n : 0);
    return str_starts(s, STR(MARKER_FIRST)) ? s : STR("");
}

static int write_marker(const char *path, int flags, struct str text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
    if (fd < 0)
        return sample_complain(path, strerror(errno));
    ssize_t n = write(fd, text.p, text.n);
    int why = n < 0 ? errno : n < (ssize_t)text.n ? ENOSPC : 0;
    if (close(fd) < 0 && !why)
        why = errno;
    return why ? sample_complain(path, strerror(why)) : 0;
}

/* 1, 0, or an error that has been reported. */
static int is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return sample_complain(dir, strerror(errno));
    const struct dirent *e;
    bool empty = true;
    while (empty && (e = readdir(d)))
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                strcmp(e->d_name, MARKER_ASIDE) == 0;
    closedir(d);
    return empty;
}

static int refuse_other(const struct sample_options *o, struct str marker)
{
    bool complete = str_ends(marker, STR(MARKER_LAST));
    fprintf(stderr,
            "millrace sample: %s: holds %s sample; nothing was replaced. --force replaces it\n",
            o->dir, complete ? "another" : "an unfinished");
    return ERR_EXISTS;
}

/* The directory is not empty: is it a sample, and the one asked for? */
static int judge(const struct sample_options *o, enum sample_found *found)
{
    struct str marker = read_marker(o);
    if (marker.n == 0)
        return sample_complain(o->dir, "is not empty, and not a sample; nothing was touched");
    if (o->force)
        return sample_tree_remove(o);
    struct str want = marker_text(o);
    if (!str_eq(marker, str_printf(o->arena, "%.*s" MARKER_LAST, STR_ARG(want))))
        return refuse_other(o, marker);
    *found = SAMPLE_DIR_PRESENT;
    return 0;
}

int sample_dir_prepare(const struct sample_options *o, enum sample_found *found)
{
    *found = SAMPLE_DIR_READY;
    if (mkdir(o->dir, 0777) < 0) {
        if (errno != EEXIST)
            return sample_complain(o->dir, strerror(errno));
        int empty = is_empty(o->dir);
        int err = empty < 0 ? empty : 0;
        if (empty == 0)
            err = judge(o, found);
        if (err || *found == SAMPLE_DIR_PRESENT)
            return err;
    }
    const char *aside = arena_printf(o->arena, "%s/" MARKER_ASIDE, o->dir);
    int err = write_marker(aside, O_TRUNC, marker_text(o));
    if (!err && rename(aside, marker_path(o)) < 0)
        err = sample_complain(aside, strerror(errno));
    return err;
}

int sample_dir_complete(const struct sample_options *o)
{
    return write_marker(marker_path(o), O_APPEND, STR(MARKER_LAST));
}
