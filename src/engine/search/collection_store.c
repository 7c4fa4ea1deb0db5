/* Where the stores of points are, which they are, and whose turn it is to write to them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/search/collection_private.h"
#include "engine/setup/config.h"
#include "engine/vectors/embedded.h"
#include "engine/vectors/qdrant.h"
#include "loop/backoff.h"

#define ID_BYTES     33 /* with a NUL */
#define PATH_BYTES   400
#define TURN_MS      10000 /* the longest wait for a turn: a batch takes tens of milliseconds */
#define TURN_LOOK_MS 2

/* --- the choice --- */

static void store_path(const struct collections *c, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/vectors/%s", c->options.config->data_dir, name);
}

static struct points_store *on_server(const struct collections *c, enum collection which,
                                      int64_t space)
{
    const struct config *g = c->options.config;
    const char *why;
    struct points_store *s =
        qdrant_new(&(struct qdrant_options){.client = c->options.qdrant,
                                            .url = g->vectors_url,
                                            .api_key = g->vectors_api_key,
                                            .collection = collection_name(which),
                                            .space = space,
                                            .papers = which == COLLECTION_PAPERS,
                                            .timeout_ms = g->vectors_timeout_ms},
                   &why);
    check(s); /* the settings are looked at before */
    return s;
}

struct points_store *store_new(const struct collections *c, enum collection which, int64_t space)
{
    if (c->options.qdrant)
        return on_server(c, which, space);
    char name[64], path[PATH_BYTES];
    snprintf(name, sizeof name, "%s-%lld.index", collection_name(which), (long long)space);
    store_path(c, name, path);
    return embedded_new(path);
}

bool store_is_local(const struct points_store *s)
{
    return strcmp(s->ops->name, "embedded") == 0;
}

bool store_has_payload(const struct points_store *s)
{
    return !store_is_local(s);
}

/* --- the folder, and its name --- */

static int io_error(struct task *t, const char *path)
{
    return task_fail(t, ERR_IO, "%s: %s", path, strerror(errno));
}

static int make_folder(struct task *t, const struct collections *c)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/vectors", c->options.config->data_dir);
    return mkdir(path, 0700) && errno != EEXIST ? io_error(t, path) : 0;
}

static int write_id(struct task *t, const char *path)
{
    char aside[PATH_BYTES + 40], id[ID_BYTES];
    loop_token(task_loop(t), id, sizeof id);
    snprintf(aside, sizeof aside, "%s.%s", path, id);
    int fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write(fd, id, sizeof id - 1) == sizeof id - 1 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    /* Of several nodes that do this at once, one is first; the name never has half a file. */
    done = done && (link(aside, path) == 0 || errno == EEXIST);
    int err = done ? 0 : io_error(t, path);
    unlink(aside);
    return err;
}

/* The random name of a folder of stores: it goes where the folder goes. Hosts may be renamed. */
static int folder_id(struct task *t, const struct collections *c, struct str *out)
{
    char path[PATH_BYTES];
    int err = make_folder(t, c);
    if (err)
        return err;
    store_path(c, "id", path);
    for (int i = 0; i < 2; i++) {
        err = file_read(task_arena(t), path, ID_BYTES, out);
        if (!err && out->n == ID_BYTES - 1)
            return 0;
        if (!err) /* by another hand: the folder counts as a new one */
            unlink(path);
        else if (errno != ENOENT)
            return io_error(t, path);
        err = write_id(t, path);
        if (err)
            return err;
    }
    err = file_read(task_arena(t), path, ID_BYTES, out);
    return err ? io_error(t, path) : 0;
}

int place_know(struct task *t, struct collections *c)
{
    struct str id;
    if (c->place)
        return 0;
    if (c->options.qdrant) { /* all machines share it */
        const char *url = c->options.config->vectors_url;
        c->place = check_memory(strdup(arena_printf(task_arena(t), "qdrant %.240s", url)));
        return 0;
    }
    int err = folder_id(t, c, &id);
    if (!err && !c->place)
        c->place = check_memory(strdup(arena_printf(task_arena(t), "embedded %.*s", STR_ARG(id))));
    return err;
}

/* --- turns --- */

/* Of the file: nodes that wait share a lock of the second one, so that one that has much to do, and
 * need not do it now, lets them go first. */
enum byte { BYTE_TURN, BYTE_WAITS };

static int lock_file(struct task *t, const struct shelf *s, const char *what, int *fd)
{
    char name[64], path[PATH_BYTES];
    if (*fd >= 0)
        return 0;
    snprintf(name, sizeof name, "%s.%s", collection_name(s->which), what);
    store_path(s->all, name, path);
    int err = make_folder(t, s->all);
    if (err)
        return err;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return *fd < 0 ? io_error(t, path) : 0;
}

/* Locks of the open file: gone with its process. */
static bool lock_set(int fd, enum byte which, short kind)
{
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static bool others_wait(int fd)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = BYTE_WAITS, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static int lock_wait(struct task *t, struct shelf *s, bool wait)
{
    struct backoff b = {.ms = TURN_LOOK_MS, .ms_max = TURN_LOOK_MS * 8};
    int64_t until_ms = loop_now_ms(task_loop(t)) + TURN_MS;
    int err = 0;
    if (!wait && others_wait(s->turn_fd))
        return task_fail(t, ERR_BUSY, "vectors: another node waits for the stores");
    if (wait)
        (void)lock_set(s->turn_fd, BYTE_WAITS, F_RDLCK);
    while (!err && !lock_set(s->turn_fd, BYTE_TURN, F_WRLCK)) {
        if (errno != EAGAIN && errno != EACCES)
            err = task_fail(t, ERR_IO, "vectors: the file of turns cannot be locked");
        else if (!wait || loop_now_ms(task_loop(t)) >= until_ms)
            err = task_fail(t, ERR_BUSY, "vectors: another node writes to the stores");
        else
            err = backoff_wait(t, &b);
    }
    if (wait)
        (void)lock_set(s->turn_fd, BYTE_WAITS, F_UNLCK);
    return err;
}

int turn_get(struct task *t, struct shelf *s, bool wait)
{
    if (!wait && !s->turn.free)
        return task_fail(t, ERR_BUSY, "vectors: another task writes to the stores");
    int err = sem_get(t, &s->turn);
    if (err)
        return err;
    err = lock_file(t, s, "turn", &s->turn_fd);
    if (!err)
        err = lock_wait(t, s, wait);
    if (err)
        sem_put(&s->turn);
    return err;
}

void turn_put(struct shelf *s)
{
    check(lock_set(s->turn_fd, BYTE_TURN, F_UNLCK));
    sem_put(&s->turn);
}

bool tending_get(struct task *t, struct shelf *s)
{
    return lock_file(t, s, "tend", &s->tend_fd) == 0 && lock_set(s->tend_fd, BYTE_TURN, F_WRLCK);
}
