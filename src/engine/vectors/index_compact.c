/* Compaction copies what counts into a new file while changes go on in the old one: that only
 * grows, so a view of it stays as it is.
 *
 *   1. all that counts at first is copied; `moved` notes where each row went;
 *   2. rounds: what has come since is copied, what has gone since is deleted there, too. Each round
 *      has less to do than the one before;
 *   3. in the turn of a writer: the last such round, a sync, and the new file takes the name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/vectors/index_private.h"

#define MEAN_ROWS   65536 /* at most so many are looked at for the mean */
#define COPY_ROWS   1024  /* in one step */
#define ROUNDS_MAX  8
#define FEW_CHANGES 1000 /* are left for the turn */
#define NOT_MOVED   UINT32_MAX

struct compaction {
    struct index_view *from; /* all of it has been copied */
    struct sink to;
    uint32_t *moved; /* of each row of `from`: its new number */
    struct point points[COPY_ROWS];
    float *vectors;
    size_t count; /* of points that wait */
};

/* The mean, rotated; of how many. */
static uint64_t mean_of(const struct index_view *v, float *rotated)
{
    const struct code *c = &v->file->code;
    double *sums = check_memory(calloc(c->floats, sizeof(*sums)));
    float *mean = check_memory(calloc(c->floats, sizeof(*mean)));
    uint32_t step = v->state.rows / MEAN_ROWS + 1;
    uint64_t points = v->state.rows - v->state.deletions;
    size_t seen = 0;
    for (uint32_t row = 0; row < v->state.rows; row += step) {
        const float *floats = row_floats(v->file, row);
        if (!view_has(v, row))
            continue;
        seen++;
        for (size_t i = 0; i < c->dimension; i++)
            sums[i] += (double)floats[i];
    }
    for (size_t i = 0; seen && i < c->dimension; i++)
        mean[i] = (float)(sums[i] / (double)seen);
    code_rotate(c, mean, rotated);
    free(mean);
    free(sums);
    return points;
}

static int open_new(struct compaction *c, const char *path, const char **why)
{
    const struct index_file *old = c->from->file;
    struct header head = old->head;
    struct index_file *f;
    float *rotated = check_memory(calloc(old->code.floats, sizeof(*rotated)));
    head.generation++;
    head.mean_rows = mean_of(c->from, rotated);
    unlink(path); /* of a compaction that died */
    int err = index_file_make(path, &head, rotated, why);
    free(rotated);
    if (err)
        return err;
    err = index_file_open(path, &f, why);
    if (err)
        return err;
    err = sink_open(&c->to, f, why);
    index_file_put(f); /* the sink has its own reference */
    return err;
}

static int flush(struct compaction *c, const char **why)
{
    int err = sink_begin(&c->to, why);
    if (!err)
        err = sink_add(&c->to, c->points, c->vectors, c->count, why);
    if (!err)
        err = sink_commit(&c->to, why);
    c->count = 0;
    return err;
}

/* Rows of v from `first` on; they are noted in c->moved, which has room for all of them. */
static int copy_rows(struct compaction *c, const struct index_view *v, uint32_t first,
                     const char **why)
{
    struct index_file *f = v->file;
    size_t n = f->head.dimension;
    uint32_t next = c->to.state.rows;
    int err = 0;
    for (uint32_t row = first; !err && row < v->state.rows; row++) {
        struct row_head h;
        c->moved[row] = NOT_MOVED;
        if (!view_has(v, row))
            continue;
        if (!row_verify(f, row, &h))
            return index_file_damaged(f, "a row of the index is damaged", why);
        c->points[c->count] = (struct point){h.owner, h.version, h.part, h.tags};
        memcpy(c->vectors + c->count * n, row_floats(f, row), n * sizeof(float));
        c->moved[row] = next++;
        if (++c->count == COPY_ROWS)
            err = flush(c, why);
    }
    return err || !c->count ? err : flush(c, why);
}

static int copy_deletions(struct compaction *c, const struct index_view *v, const char **why)
{
    uint32_t first = c->from->state.deletions, count = 0;
    const struct index_file *f = v->file;
    uint32_t *rows = check_memory(malloc((v->state.deletions - first + 1) * sizeof(*rows)));
    for (uint32_t i = first; i < v->state.deletions; i++) {
        uint32_t row = (uint32_t) * (const uint64_t *)column(f, f->at.deletions, 8, i);
        if (row < c->from->state.rows && c->moved[row] != NOT_MOVED)
            rows[count++] = c->moved[row];
    }
    int err = sink_begin(&c->to, why);
    if (!err)
        err = sink_delete(&c->to, rows, count, why);
    if (!err)
        err = sink_commit(&c->to, why);
    free(rows);
    return err;
}

/* What has changed from c->from to v, which takes its place. A change is not visible at once in the
 * new file, but that file is not visible at all yet. Takes v's reference. */
static int catch_up(struct compaction *c, struct index_view *v, const char **why)
{
    int err = 0;
    if (v->file != c->from->file || v->state.rows < c->from->state.rows) {
        *why = "the index was replaced while it was compacted";
        err = ERR_CONFLICT;
    }
    if (!err) {
        c->moved = check_memory(realloc(c->moved, (v->state.rows + 1) * sizeof(*c->moved)));
        err = copy_deletions(c, v, why);
    }
    if (!err)
        err = copy_rows(c, v, c->from->state.rows, why);
    index_view_put(c->from);
    c->from = v;
    return err;
}

static int rounds(struct compaction *c, struct index_writer *w, const char **why)
{
    int err = sink_sync(&c->to, why);
    for (int i = 0; !err && i < ROUNDS_MAX; i++) {
        struct index_view *v;
        err = view_now(w->index, &v, why);
        if (err)
            return err;
        uint32_t changes =
            v->state.rows - c->from->state.rows + v->state.deletions - c->from->state.deletions;
        err = catch_up(c, v, why);
        if (!err)
            err = sink_sync(&c->to, why);
        if (changes < FEW_CHANGES)
            break;
    }
    return err;
}

static int finish(struct compaction *c, struct index_writer *w, const char *fresh, int wait_ms,
                  const char **why)
{
    struct index_view *v;
    int err = writer_begin(w, wait_ms, &v, why);
    if (err)
        return err;
    __atomic_add_fetch(&v->refs, 1, __ATOMIC_RELAXED);
    err = catch_up(c, v, why);
    if (!err)
        err = sink_sync(&c->to, why);
    if (!err)
        err = index_file_take_name(w->index->path, fresh, why);
    writer_end(w, v);
    return err;
}

static int compact(struct index_writer *w, int wait_ms, const char **why)
{
    char fresh[INDEX_PATH_BYTES_MAX + 16];
    struct compaction *c = check_memory(calloc(1, sizeof(*c)));
    snprintf(fresh, sizeof(fresh), "%s.compact", w->index->path);
    int err = view_now(w->index, &c->from, why);
    if (!err) {
        const struct index_view *v = c->from;
        c->vectors = check_memory(malloc(COPY_ROWS * v->file->head.dimension * sizeof(float)));
        c->moved = check_memory(malloc((v->state.rows + 1) * sizeof(*c->moved)));
        err = open_new(c, fresh, why);
        if (!err)
            err = copy_rows(c, v, 0, why);
        if (!err)
            err = rounds(c, w, why);
        if (!err)
            err = finish(c, w, fresh, wait_ms, why);
        if (err)
            unlink(fresh);
    }
    index_view_put(c->from);
    if (c->to.file)
        sink_close(&c->to);
    free(c->moved);
    free(c->vectors);
    free(c);
    return err;
}

int index_compact(struct index_writer *w, int wait_ms, const char **why)
{
    int err = turn_take(w->lock_fd, TURN_COMPACT, 0, why);
    if (err) {
        *why = err == ERR_BUSY ? "the index is being compacted" : *why;
        return err;
    }
    err = compact(w, wait_ms, why);
    turn_drop(w->lock_fd, TURN_COMPACT);
    return err;
}
