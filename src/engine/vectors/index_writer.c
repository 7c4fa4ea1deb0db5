#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/vectors/index_private.h"

/* --- whole files --- */

static int sync_folder(const char *path, const char **why)
{
    char folder[INDEX_PATH_BYTES_MAX + 1];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = open(slash == path ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = fd < 0 || fsync(fd) ? ERR_IO : 0;
    if (fd >= 0)
        close(fd);
    *why = err ? "the folder of the index cannot be synced" : *why;
    return err;
}

int index_file_take_name(const char *path, const char *from, const char **why)
{
    if (rename(from, path)) {
        *why = "the new file of the index cannot take its place";
        return errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
    }
    return sync_folder(path, why);
}

static int locked_rename(const char *path, const char *from, const char **why)
{
    int fd, err = turn_open(path, &fd, why);
    if (err)
        return err;
    err = turn_take(fd, TURN_COMPACT, 0, why);
    if (!err)
        err = turn_take(fd, TURN_CHANGE, 1000, why);
    if (!err)
        err = index_file_take_name(path, from, why);
    close(fd); /* and the locks are gone */
    return err;
}

int index_replace(const char *path, const char *from, const char **why)
{
    struct index_file *f;
    int err = index_file_open(from, &f, why); /* must be one */
    if (err)
        return err;
    if (fdatasync(f->fd)) {
        *why = "the new file of the index cannot be synced";
        err = ERR_IO;
    }
    index_file_put(f);
    return err ? err : locked_rename(path, from, why);
}

static int spec_header(const struct index_spec *spec, struct header *h, const char **why)
{
    size_t n = strlen(spec->model);
    *h = (struct header){.dimension = spec->dimension,
                         .segment_rows =
                             spec->segment_rows ? spec->segment_rows : INDEX_SEGMENT_ROWS,
                         .generation = 1,
                         .mean_rows = spec->mean ? spec->mean_rows : 0};
    if (n > INDEX_MODEL_BYTES_MAX || spec->dimension < POINTS_DIMENSION_MIN ||
        spec->dimension > POINTS_DIMENSION_MAX) {
        *why = "an index cannot have this model or dimension";
        return ERR_INVALID;
    }
    memcpy(h->model, spec->model, n);
    return 0;
}

int index_create(const char *path, const struct index_spec *spec, const char **why)
{
    char fresh[INDEX_PATH_BYTES_MAX + 16];
    struct header head;
    struct code code;
    int err = spec_header(spec, &head, why);
    if (err)
        return err;
    if ((size_t)snprintf(fresh, sizeof(fresh), "%s.%d.new", path, (int)getpid()) >=
        INDEX_PATH_BYTES_MAX) {
        *why = "the path of the index is too long";
        return ERR_LIMIT;
    }
    code_init(&code, kernel_best(), head.dimension);
    float *rotated = check_memory(calloc(code.floats, sizeof(*rotated)));
    float *mean = check_memory(calloc(code.floats, sizeof(*mean)));
    if (spec->mean) {
        memcpy(mean, spec->mean, head.dimension * sizeof(*mean));
        code_rotate(&code, mean, rotated);
    }
    unlink(fresh);
    err = index_file_make(fresh, &head, rotated, why);
    if (!err)
        err = locked_rename(path, fresh, why);
    if (err)
        unlink(fresh);
    free(mean);
    free(rotated);
    code_release(&code);
    return err;
}

/* --- turns --- */

int index_writer_open(const char *path, struct index_writer **out, const char **why)
{
    struct index_writer *w = check_memory(calloc(1, sizeof(*w)));
    w->lock_fd = -1;
    int err = index_new(path, &w->index, why);
    if (!err)
        err = turn_open(path, &w->lock_fd, why);
    if (!err) {
        struct index_view *now;
        err = writer_begin(w, 1000, &now, why);
        if (!err)
            writer_end(w, now);
        else if (err == ERR_BUSY) /* then it is used, and need not be mended */
            err = 0;
    }
    if (err)
        index_writer_close(w);
    else
        *out = w;
    return err;
}

void index_writer_close(struct index_writer *w)
{
    if (!w)
        return;
    sink_close(&w->sink);
    index_close(w->index);
    if (w->lock_fd >= 0)
        close(w->lock_fd);
    free(w);
}

/* After a power failure the last rows may be damaged: a sink goes back to what was synced. */
static int mend(struct index_writer *w, const char **why)
{
    struct index_file *f;
    struct sink s;
    int err = index_file_open(w->index->path, &f, why);
    if (err)
        return err;
    err = sink_open(&s, f, why);
    if (!err)
        sink_close(&s);
    index_file_put(f);
    return err;
}

static int open_sink(struct index_writer *w, struct index_view *now, const char **why)
{
    if (w->sink.file == now->file)
        return 0;
    sink_close(&w->sink);
    return sink_open(&w->sink, now->file, why);
}

int writer_begin(struct index_writer *w, int wait_ms, struct index_view **now, const char **why)
{
    struct index_view *v = NULL;
    int err = turn_take(w->lock_fd, TURN_CHANGE, wait_ms, why);
    if (err)
        return err;
    err = view_now(w->index, &v, why);
    if (err == ERR_PROTO) {
        err = mend(w, why);
        if (!err)
            err = view_now(w->index, &v, why);
    }
    if (!err && v->detached) {
        *why = "the file of the index is gone";
        err = ERR_NOT_FOUND;
    }
    if (!err)
        err = open_sink(w, v, why);
    if (!err)
        err = sink_begin(&w->sink, why);
    if (err) {
        index_view_put(v);
        turn_drop(w->lock_fd, TURN_CHANGE);
        return err;
    }
    *now = v;
    return 0;
}

void writer_end(struct index_writer *w, struct index_view *now)
{
    index_view_put(now);
    turn_drop(w->lock_fd, TURN_CHANGE);
}

/* --- changes --- */

struct rows { /* that count, of some owners */
    const struct index_view *view;
    uint32_t *all;
    size_t count, room;
};

static void add_row(void *arg, uint32_t row)
{
    struct rows *r = arg;
    if (!view_has(r->view, row))
        return;
    if (r->count == r->room) {
        r->room = r->room ? r->room * 2 : 64;
        r->all = check_memory(realloc(r->all, r->room * sizeof(*r->all)));
    }
    r->all[r->count++] = row;
}

static int compare_rows(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Each once, although an owner may be named more than once. */
static void sort_rows(struct rows *r)
{
    size_t kept = 0;
    if (r->count)
        qsort(r->all, r->count, sizeof(*r->all), compare_rows);
    for (size_t i = 0; i < r->count; i++)
        if (!kept || r->all[kept - 1] != r->all[i])
            r->all[kept++] = r->all[i];
    r->count = kept;
}

static int former_rows(const struct index_view *v, const struct points_change *c, struct rows *out,
                       const char **why)
{
    *out = (struct rows){.view = v};
    int err = 0;
    for (size_t i = 0; !err && i < c->gone_count; i++)
        err = owner_rows(v->file, c->gone[i], v->state.rows, add_row, out);
    for (size_t i = 0; !err && i < c->count; i++)
        if (!i || c->points[i].owner != c->points[i - 1].owner)
            err = owner_rows(v->file, c->points[i].owner, v->state.rows, add_row, out);
    if (err)
        return index_file_damaged(v->file, "the table of owners in the index is damaged", why);
    sort_rows(out);
    return 0;
}

/* In the writer's turn. */
static int change(struct index_writer *w, const struct index_view *now,
                  const struct points_change *c, const char **why)
{
    struct rows former;
    int err = former_rows(now, c, &former, why);
    if (!err)
        err = sink_add(&w->sink, c->points, c->vectors, c->count, why);
    if (!err)
        err = sink_delete(&w->sink, former.all, former.count, why);
    if (!err && (c->count || former.count))
        err = sink_commit(&w->sink, why);
    free(former.all);
    return err;
}

int index_put(struct index_writer *w, const struct points_change *c, int wait_ms, const char **why)
{
    struct index_view *now;
    if (c->count > POINTS_CHANGE_MAX || c->gone_count > POINTS_CHANGE_MAX) {
        *why = "a change has too many points";
        return ERR_LIMIT;
    }
    int err = writer_begin(w, wait_ms, &now, why);
    if (err)
        return err;
    err = c->count ? index_file_is_of(now->file, &c->space, why) : 0;
    if (!err)
        err = change(w, now, c, why);
    writer_end(w, now);
    return err;
}

static int retag(struct index_writer *w, const struct index_view *now, uint64_t owner,
                 struct point_tags tags, const char **why)
{
    struct index_file *f = now->file;
    struct rows rows;
    struct points_change c = {.gone = &owner, .gone_count = 1};
    size_t n = f->head.dimension;
    int err = former_rows(now, &c, &rows, why);
    if (!err && rows.count > POINTS_CHANGE_MAX) {
        *why = "an owner has too many points";
        err = ERR_LIMIT;
    }
    struct point *points = check_memory(calloc(rows.count + 1, sizeof(*points)));
    float *vectors = check_memory(calloc(rows.count * n + 1, sizeof(*vectors)));
    for (size_t i = 0; !err && i < rows.count; i++) {
        struct row_head h;
        if (!row_verify(f, rows.all[i], &h))
            err = index_file_damaged(f, "a row of the index is damaged", why);
        points[i] = (struct point){h.owner, h.version, h.part, tags};
        memcpy(vectors + i * n, row_floats(f, rows.all[i]), n * sizeof(*vectors));
    }
    c = (struct points_change){.points = points, .vectors = vectors, .count = rows.count};
    if (!err && rows.count)
        err = change(w, now, &c, why);
    free(vectors);
    free(points);
    free(rows.all);
    return err;
}

int index_tag(struct index_writer *w, uint64_t owner, struct point_tags tags, int wait_ms,
              const char **why)
{
    struct index_view *now;
    int err = writer_begin(w, wait_ms, &now, why);
    if (err)
        return err;
    err = retag(w, now, owner, tags, why);
    writer_end(w, now);
    return err;
}

int index_sync(struct index_writer *w, const char **why)
{
    struct index_view *now;
    int err = view_now(w->index, &now, why);
    if (err)
        return err;
    /* In its turn only if the file is another one than at the last change. */
    if (w->sink.file != now->file) {
        index_view_put(now);
        err = writer_begin(w, 1000, &now, why);
        if (err)
            return err;
        turn_drop(w->lock_fd, TURN_CHANGE);
    }
    err = sink_sync(&w->sink, why);
    index_view_put(now);
    return err;
}
