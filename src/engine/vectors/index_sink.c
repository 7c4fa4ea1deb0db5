/* Writing: columns of rows behind those that count, then the word that makes them count. Rows are
 * written by pwrite, so that a full disk is an error and no signal; words and tables of owners are
 * stored in memory whose blocks the file has already. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/vectors/index_private.h"

static struct live *live_of(struct sink *s)
{
    return (struct live *)(void *)s->live.at;
}

static int not_written(const char **why)
{
    *why = "the file of the index cannot be written";
    return ERR_IO;
}

static off_t segment_at(const struct index_file *f, size_t segment)
{
    return SEGMENTS_AT + (off_t)(segment * f->at.bytes);
}

/* --- tables of owners --- */

static size_t table_bytes(const struct index_file *f)
{
    return f->head.segment_rows * SEGMENT_TABLES * sizeof(uint32_t);
}

/* The file has blocks for it from now on: a store cannot find the disk full. */
static int allot_table(const struct index_file *f, size_t segment, const char **why)
{
    off_t at = segment_at(f, segment) + (off_t)f->at.table;
    errno = posix_fallocate(f->fd, at, (off_t)table_bytes(f));
    return errno ? not_written(why) : 0;
}

static int map_table(struct sink *s, size_t segment, const char **why)
{
    struct index_file *f = s->file;
    if (s->table.at && s->table_segment == segment)
        return 0;
    mapping_close(&s->table);
    int err = allot_table(f, segment, why);
    if (err)
        return err;
    off_t at = segment_at(f, segment) + (off_t)f->at.table;
    err = mapping_open(&s->table, f->fd, at, table_bytes(f), true, &f->damaged);
    *why = err ? "the index cannot be mapped" : *why;
    s->table_segment = segment;
    return err;
}

static int note_rows(struct sink *s, uint32_t from, uint32_t to, const char **why)
{
    struct index_file *f = s->file;
    for (uint32_t row = from; row < to; row++) {
        int err = map_table(s, row / f->head.segment_rows, why);
        if (err)
            return err;
        if (owner_note(f, (uint32_t *)(void *)s->table.at, row))
            return index_file_damaged(f, "the table of owners in the index is damaged", why);
    }
    struct pair filled = {.rows = to};
    __atomic_store_n(&live_of(s)->filled, pair_pack(f, filled), __ATOMIC_RELEASE);
    return 0;
}

/* --- after a power failure --- */

static bool end_is_whole(struct index_file *f, struct pair synced, struct pair state)
{
    const char *why;
    struct row_head h;
    if (index_file_map(f, state, &why))
        return false;
    for (uint32_t row = synced.rows; row < state.rows; row++)
        if (!row_verify_all(f, row, &h))
            return false;
    for (uint32_t i = synced.deletions; i < state.deletions; i++) {
        uint64_t entry = *(const uint64_t *)column(f, f->at.deletions, sizeof(entry), i);
        if (entry != deletion_pack(f, (uint32_t)entry, i))
            return false;
    }
    return true;
}

/* Rows from `synced` on will be others: the tables must not name them. Each store leaves a state
 * from which this can begin again. */
static int go_back(struct sink *s, struct pair synced, const char **why)
{
    struct index_file *f = s->file;
    uint32_t from = synced.rows / f->head.segment_rows * f->head.segment_rows;
    struct pair filled = {.rows = from};
    __atomic_store_n(&live_of(s)->filled, pair_pack(f, filled), __ATOMIC_RELEASE);
    for (size_t i = from / f->head.segment_rows; i < f->mapped; i++) {
        int err = map_table(s, i, why);
        if (err)
            return err;
        memset(s->table.at, 0, s->table.bytes);
    }
    __atomic_store_n(&live_of(s)->state, pair_pack(f, synced), __ATOMIC_RELEASE);
    return 0;
}

static int recover(struct sink *s, const char **why)
{
    struct index_file *f = s->file;
    struct pair state, synced;
    int err = index_file_state(f, &state, why);
    if (err)
        return err;
    if (!pair_unpack(f, live_of(s)->synced, &synced))
        return index_file_damaged(f, "the index is damaged where it counts what is synced", why);
    /* A word that went to the disk later than its rows. */
    bool behind = state.rows < synced.rows || state.deletions < synced.deletions;
    if (!behind && end_is_whole(f, synced, state))
        return 0;
    __atomic_store_n(&f->damaged, false, __ATOMIC_SEQ_CST);
    err = index_file_map(f, synced, why);
    return err ? err : go_back(s, synced, why);
}

int sink_open(struct sink *s, struct index_file *f, const char **why)
{
    *s = (struct sink){.file = f};
    __atomic_add_fetch(&f->refs, 1, __ATOMIC_RELAXED);
    s->codes = check_memory(malloc((SINK_ROWS + KERNEL_BLOCK) * f->code.bytes));
    s->small = check_memory(malloc(SINK_ROWS * f->code.small_bytes));
    s->heads = check_memory(malloc(SINK_ROWS * sizeof(struct row_head)));
    s->floats = check_memory(malloc(SINK_ROWS * f->code.floats * sizeof(float)));
    s->rotated = check_memory(malloc(f->code.floats * sizeof(float)));
    int err = mapping_open(&s->live, f->fd, 0, PAGE_MAX, true, &f->damaged);
    *why = err ? "the index cannot be mapped for writing" : *why;
    if (!err)
        err = recover(s, why);
    if (err)
        sink_close(s);
    return err;
}

void sink_close(struct sink *s)
{
    mapping_close(&s->live);
    mapping_close(&s->table);
    free(s->codes);
    free(s->small);
    free(s->heads);
    free(s->floats);
    free(s->rotated);
    index_file_put(s->file);
    *s = (struct sink){.file = NULL};
}

/* --- a change --- */

int sink_begin(struct sink *s, const char **why)
{
    uint32_t noted;
    int err = index_file_state(s->file, &s->state, why);
    if (!err)
        err = index_file_map(s->file, s->state, why);
    if (!err)
        err = owners_noted(s->file, &noted, why);
    if (!err && noted < s->state.rows)
        err = note_rows(s, noted, s->state.rows, why);
    return err;
}

/* The file gets as long as so many rows need; it never gets shorter. */
static int grow(struct sink *s, uint32_t rows, const char **why)
{
    struct index_file *f = s->file;
    struct stat st;
    size_t first = s->state.rows / f->head.segment_rows;
    size_t needed = (rows + f->head.segment_rows - 1) / f->head.segment_rows;
    if (fstat(f->fd, &st) ||
        (st.st_size < segment_at(f, needed) && ftruncate(f->fd, segment_at(f, needed))))
        return not_written(why);
    for (size_t i = first; i < needed; i++) {
        int err = s->table.at && s->table_segment == i ? 0 : allot_table(f, i, why);
        if (err)
            return err;
    }
    return index_file_map(f, (struct pair){.rows = rows}, why);
}

static int by_id(const void *a, const void *b, void *points)
{
    const struct point *all = points;
    const struct point *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    return (i > j) - (i < j);
}

static int by_part(const void *a, const void *b, void *points)
{
    const struct point *all = points;
    const struct point *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

static int no_id_twice(const struct point *points, size_t count, uint32_t *order, const char **why)
{
    qsort_r(order, count, sizeof(*order), by_part, (void *)points);
    for (size_t i = 1; i < count; i++) {
        const struct point *a = &points[order[i - 1]], *b = &points[order[i]];
        if (a->owner == b->owner && a->part == b->part) {
            *why = "a change has two points of one id";
            return ERR_INVALID;
        }
    }
    return 0;
}

/* Of each new row, the row before with the same owner in its segment, from 1. */
static int link_rows(struct sink *s, const struct point *points, size_t count, uint32_t *before,
                     const char **why)
{
    struct index_file *f = s->file;
    uint32_t rows = f->head.segment_rows, *order = check_memory(malloc(count * sizeof(*order)));
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    int err = no_id_twice(points, count, order, why);
    if (!err)
        qsort_r(order, count, sizeof(*order), by_id, (void *)points);
    for (size_t i = 0; !err && i < count; i++) {
        uint32_t row = s->state.rows + order[i];
        uint32_t last = i ? s->state.rows + order[i - 1] : 0;
        if (i && points[order[i]].owner == points[order[i - 1]].owner && last / rows == row / rows)
            before[order[i]] = last % rows + 1;
        else if (owner_head(f, row / rows, points[order[i]].owner, s->state.rows,
                            &before[order[i]]))
            err = index_file_damaged(f, "the table of owners in the index is damaged", why);
    }
    free(order);
    return err;
}

/* The first block has rows already, which are written again as they are. */
static void begin_blocks(struct sink *s, uint32_t row)
{
    const struct code *c = &s->file->code;
    memset(s->codes, 0, (SINK_ROWS + KERNEL_BLOCK) * c->bytes);
    if (row % KERNEL_BLOCK)
        memcpy(s->codes, row_codes(s->file, row - row % KERNEL_BLOCK), KERNEL_BLOCK * c->bytes);
}

/* Puts point i of those that begin with this row into the buffers. */
static int encode(struct sink *s, size_t i, uint32_t row, const struct point *p,
                  const float *vector, uint32_t before, const char **why)
{
    struct index_file *f = s->file;
    const struct code *c = &f->code;
    uint8_t code[POINTS_DIMENSION_MAX / 8];
    int8_t *small = s->small + i * c->small_bytes;
    float *floats = s->floats + i * c->floats;
    if (code_normalise(c, vector, floats)) {
        *why = "a vector has no direction";
        return ERR_INVALID;
    }
    code_rotate(c, floats, s->rotated);
    code_signs(c, s->rotated, code);
    code_put(c, code, row % KERNEL_BLOCK + i, s->codes);
    code_small(c, s->rotated, small);
    struct row_head *h = &s->heads[i];
    *h = (struct row_head){.owner = p->owner,
                           .version = p->version,
                           .tags = p->tags,
                           .part = p->part,
                           .before = before,
                           .vector_check = vector_check(f, floats),
                           .small_check = small_check(f, code, small)};
    h->check = head_check(f, h, row + (uint32_t)i);
    return 0;
}

/* So many rows of the buffers, which are of one segment. */
static bool write_rows(struct sink *s, uint32_t row, size_t count)
{
    const struct index_file *f = s->file;
    const struct layout *at = &f->at;
    size_t small = f->code.small_bytes, begun = row % KERNEL_BLOCK;
    size_t codes = (begun + count + KERNEL_BLOCK - 1) / KERNEL_BLOCK * KERNEL_BLOCK * f->code.bytes;
    size_t floats = f->code.floats * sizeof(float), within = row % f->head.segment_rows;
    size_t head = sizeof(struct row_head), tag = sizeof(struct point_tags);
    off_t from = segment_at(f, row / f->head.segment_rows);
    struct point_tags tags[SINK_ROWS];
    for (size_t i = 0; i < count; i++)
        tags[i] = s->heads[i].tags;
    return index_file_write(f->fd, s->codes, codes,
                            from + (off_t)(at->codes + (within - begun) * f->code.bytes)) &&
           index_file_write(f->fd, s->small, count * small,
                            from + (off_t)(at->small + within * small)) &&
           index_file_write(f->fd, tags, count * tag, from + (off_t)(at->tags + within * tag)) &&
           index_file_write(f->fd, s->heads, count * head,
                            from + (off_t)(at->heads + within * head)) &&
           index_file_write(f->fd, s->floats, count * floats,
                            from + (off_t)(at->floats + within * floats));
}

static int write_points(struct sink *s, const struct point *points, const float *vectors,
                        size_t count, const uint32_t *before, const char **why)
{
    const struct index_file *f = s->file;
    for (size_t done = 0; done < count;) {
        uint32_t row = s->state.rows + (uint32_t)done;
        size_t chunk = count - done, room = f->head.segment_rows - row % f->head.segment_rows;
        chunk = chunk < SINK_ROWS ? chunk : SINK_ROWS;
        chunk = chunk < room ? chunk : room;
        begin_blocks(s, row);
        for (size_t i = 0; i < chunk; i++) {
            int err = encode(s, i, row, &points[done + i], vectors + (done + i) * f->head.dimension,
                             before[done + i], why);
            if (err)
                return err;
        }
        if (!write_rows(s, row, chunk))
            return not_written(why);
        done += chunk;
    }
    return 0;
}

int sink_add(struct sink *s, const struct point *points, const float *vectors, size_t count,
             const char **why)
{
    const struct index_file *f = s->file;
    if (!count)
        return 0;
    if (count > INDEX_SEGMENTS_MAX * f->head.segment_rows - s->state.rows) {
        *why = "the index is full";
        return ERR_LIMIT;
    }
    uint32_t *before = check_memory(calloc(count, sizeof(*before)));
    int err = grow(s, s->state.rows + (uint32_t)count, why);
    if (!err)
        err = link_rows(s, points, count, before, why);
    if (!err)
        err = write_points(s, points, vectors, count, before, why);
    if (!err)
        s->state.rows += (uint32_t)count;
    free(before);
    return err;
}

int sink_delete(struct sink *s, const uint32_t *rows, size_t count, const char **why)
{
    const struct index_file *f = s->file;
    for (size_t done = 0; done < count;) {
        uint64_t entries[SINK_ROWS];
        uint32_t number = s->state.deletions + (uint32_t)done;
        uint32_t within = number % f->head.segment_rows;
        size_t chunk = count - done, room = f->head.segment_rows - within;
        chunk = chunk < SINK_ROWS ? chunk : SINK_ROWS;
        chunk = chunk < room ? chunk : room;
        for (size_t i = 0; i < chunk; i++)
            entries[i] = deletion_pack(f, rows[done + i], number + (uint32_t)i);
        off_t at = segment_at(f, number / f->head.segment_rows) +
                   (off_t)(f->at.deletions + within * sizeof(*entries));
        if (!index_file_write(f->fd, entries, chunk * sizeof(*entries), at))
            return not_written(why);
        done += chunk;
    }
    s->state.deletions += (uint32_t)count;
    return 0;
}

int sink_commit(struct sink *s, const char **why)
{
    uint32_t noted;
    int err = owners_noted(s->file, &noted, why);
    if (err)
        return err;
    __atomic_store_n(&live_of(s)->state, pair_pack(s->file, s->state), __ATOMIC_RELEASE);
    /* It is visible now. What could not be noted is noted by the next writer. */
    (void)note_rows(s, noted, s->state.rows, why);
    if (__atomic_load_n(&s->file->damaged, __ATOMIC_SEQ_CST))
        return index_file_damaged(s->file, "the file of the index was damaged meanwhile", why);
    return 0;
}

int sink_sync(struct sink *s, const char **why)
{
    struct pair state;
    int err = index_file_state(s->file, &state, why);
    if (err)
        return err;
    if (fdatasync(s->file->fd))
        return not_written(why);
    __atomic_store_n(&live_of(s)->synced, pair_pack(s->file, state), __ATOMIC_RELEASE);
    return 0;
}
