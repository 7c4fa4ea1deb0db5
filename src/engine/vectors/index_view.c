/* What of an index counts at one moment. Views do not change: a search keeps its own while changes
 * go on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/vectors/index_private.h"

static int replay(struct index_view *v, uint32_t from, const char **why)
{
    struct index_file *f = v->file;
    for (uint32_t i = from; i < v->state.deletions; i++) {
        const uint64_t *entry = column(f, f->at.deletions, sizeof(*entry), i);
        uint64_t found = *entry;
        uint32_t row = (uint32_t)found;
        if (row >= v->state.rows || found != deletion_pack(f, row, i))
            return index_file_damaged(f, "a deletion of the index is damaged", why);
        v->dead[row / 64] |= (uint64_t)1 << row % 64;
    }
    return 0;
}

/* Of the file, at this state. What former (may be NULL) has of it is not read again. */
static int view_new(struct index_file *f, struct pair state, const struct index_view *former,
                    struct index_view **out, const char **why)
{
    int err = index_file_map(f, state, why);
    if (err)
        return err;
    size_t words = bitmap_words(state.rows), known = 0;
    struct index_view *v = check_memory(calloc(1, sizeof(*v) + words * sizeof(uint64_t)));
    *v = (struct index_view){.file = f, .state = state, .refs = 1};
    __atomic_add_fetch(&f->refs, 1, __ATOMIC_RELAXED);
    if (former) {
        known = bitmap_words(former->state.rows);
        memcpy(v->dead, former->dead, known * sizeof(uint64_t));
    }
    err = replay(v, former ? former->state.deletions : 0, why);
    if (err)
        index_view_put(v);
    else
        *out = v;
    return err;
}

void index_view_put(struct index_view *v)
{
    if (!v || __atomic_sub_fetch(&v->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    index_file_put(v->file);
    free(v);
}

/* What a power failure may have taken, and the last rows in any case. */
static int verify_end(struct index_file *f, struct pair state, const char **why)
{
    const struct live *live = (const void *)f->live.at;
    struct pair synced;
    struct row_head h;
    if (!pair_unpack(f, __atomic_load_n(&live->synced, __ATOMIC_ACQUIRE), &synced))
        return index_file_damaged(f, "the index is damaged where it counts what is synced", why);
    uint32_t from = state.rows > 16 ? state.rows - 16 : 0;
    for (uint32_t row = synced.rows < from ? synced.rows : from; row < state.rows; row++)
        if (!row_verify_all(f, row, &h))
            return index_file_damaged(f, "one of the last rows of the index is damaged", why);
    return 0;
}

static int open_view(const char *path, struct index_view **out, const char **why)
{
    struct index_file *f;
    struct pair state;
    struct index_view *v = NULL;
    int err = index_file_open(path, &f, why);
    if (err)
        return err;
    err = index_file_state(f, &state, why);
    if (!err)
        err = view_new(f, state, NULL, &v, why);
    if (!err)
        err = verify_end(f, state, why);
    index_file_put(f);
    if (err)
        index_view_put(v);
    else
        *out = v;
    return err;
}

/* The present view, as far as it goes; or a newer one of its file. */
static int renew(struct index *x, const char **why)
{
    struct index_view *now = x->now, *next;
    struct pair state;
    int err = index_file_state(now->file, &state, why);
    if (err || (state.rows == now->state.rows && state.deletions == now->state.deletions))
        return err;
    /* A writer went back after a power failure: nothing known holds any more. */
    bool back = state.rows < now->state.rows || state.deletions < now->state.deletions;
    err = view_new(now->file, state, back ? NULL : now, &next, why);
    if (err)
        return err;
    index_view_put(now);
    x->now = next;
    return 0;
}

/* Makes x->now the newest view. */
static int look(struct index *x, const char **why)
{
    struct stat st;
    struct index_file *f = x->now ? x->now->file : NULL;
    bool missing = stat(x->path, &st) != 0 && errno == ENOENT;
    if (f && __atomic_load_n(&f->damaged, __ATOMIC_SEQ_CST))
        f = NULL; /* a writer may have mended it */
    if (f && missing) {
        if (fstat(f->fd, &st)) {
            *why = "the index cannot be read";
            return ERR_IO;
        }
        __atomic_store_n(&x->now->detached, true, __ATOMIC_RELAXED);
    }
    if (f && st.st_dev == f->dev && st.st_ino == f->ino) {
        size_t needed = SEGMENTS_AT + f->mapped * f->at.bytes;
        if ((size_t)st.st_size < needed)
            return index_file_damaged(f, "the file of the index was cut", why);
        int err = renew(x, why);
        __atomic_store_n(&x->now->detached, missing, __ATOMIC_RELAXED);
        return err;
    }
    struct index_view *next;
    int err = open_view(x->path, &next, why);
    if (err)
        return err;
    index_view_put(x->now);
    x->now = next;
    return 0;
}

int view_now(struct index *x, struct index_view **out, const char **why)
{
    pthread_mutex_lock(&x->lock);
    int err = look(x, why);
    if (!err) {
        *out = x->now;
        __atomic_add_fetch(&x->now->refs, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&x->lock);
    return err;
}

int index_new(const char *path, struct index **out, const char **why)
{
    size_t n = strlen(path);
    if (n > INDEX_PATH_BYTES_MAX) {
        *why = "the path of the index is too long";
        return ERR_LIMIT;
    }
    struct index *x = check_memory(calloc(1, sizeof(*x)));
    memcpy(x->path, path, n + 1);
    check(pthread_mutex_init(&x->lock, NULL) == 0);
    *out = x;
    return 0;
}

int index_open(const char *path, struct index **out, const char **why)
{
    struct index *x;
    int err = index_new(path, &x, why);
    if (err)
        return err;
    err = look(x, why);
    if (err)
        index_close(x);
    else
        *out = x;
    return err;
}

void index_close(struct index *x)
{
    if (!x)
        return;
    index_view_put(x->now);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

int index_view_get(struct index *x, struct index_view **out, const char **why)
{
    return view_now(x, out, why);
}

int index_view_next(struct index_view *v, uint32_t *at, struct point *point, float *vector)
{
    struct row_head h;
    while (*at < v->state.rows && !view_has(v, *at))
        ++*at;
    if (*at >= v->state.rows)
        return ERR_NOT_FOUND;
    const char *why;
    if (!row_verify(v->file, *at, &h))
        return index_file_damaged(v->file, "a row of the index is damaged", &why);
    *point = (struct point){.owner = h.owner, .version = h.version, .part = h.part, .tags = h.tags};
    memcpy(vector, row_floats(v->file, *at), v->file->head.dimension * sizeof(float));
    ++*at;
    return 0;
}

int index_info(struct index *x, struct index_info *out, const char **why)
{
    struct index_view *v;
    int err = view_now(x, &v, why);
    if (err)
        return err;
    const struct index_file *f = v->file;
    uint64_t rows = v->state.rows, points = rows - v->state.deletions;
    *out = (struct index_info){
        .dimension = f->head.dimension,
        .points = points,
        .deleted = v->state.deletions,
        .bytes = SEGMENTS_AT + rows * f->at.row_bytes + v->state.deletions * sizeof(uint64_t),
        .hot_bytes = rows * f->at.hot_bytes + bitmap_words(v->state.rows) * sizeof(uint64_t),
        .generation = f->head.generation,
        .wants_compaction = v->state.deletions * 4 > rows ||
                            (points > INDEX_EXACT_ROWS / 2 && f->head.mean_rows * 4 < points)};
    memcpy(out->model, f->head.model, sizeof(out->model));
    index_view_put(v);
    return 0;
}

/* A row, and that its owner leads to it. */
struct wanted {
    uint32_t row;
    bool found;
};

static void see(void *arg, uint32_t row)
{
    struct wanted *w = arg;
    w->found = w->found || row == w->row;
}

int index_verify(struct index *x, uint32_t *from, uint32_t rows, const char **why)
{
    struct index_view *v;
    int err = view_now(x, &v, why);
    if (err)
        return err;
    struct index_file *f = v->file;
    uint32_t noted, row = *from;
    uint32_t end = rows < v->state.rows - row ? row + rows : v->state.rows;
    err = owners_noted(f, &noted, why);
    for (; !err && row < end; row++) {
        struct row_head h;
        struct wanted w = {.row = row, .found = row >= noted};
        if (!row_verify_all(f, row, &h) || owner_rows(f, h.owner, v->state.rows, see, &w) ||
            !w.found)
            err = index_file_damaged(f, "a row of the index is damaged", why);
    }
    if (!err && __atomic_load_n(&f->damaged, __ATOMIC_SEQ_CST))
        err = index_file_damaged(f, "the file of the index was cut", why);
    if (!err)
        *from = end < v->state.rows ? end : 0;
    index_view_put(v);
    return err;
}
