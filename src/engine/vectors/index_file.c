#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/vectors/index_private.h"

#define MAGIC           "MILLVEC1"
#define PAIR_BITS       24
#define PAIR_MASK       0xFFFFFFu
#define HEADER_BYTES(f) (sizeof(struct header) + (f)->code.floats * sizeof(float))

_Static_assert(sizeof(struct row_head) == 64, "a cache line");
_Static_assert((uint64_t)INDEX_SEGMENTS_MAX *INDEX_SEGMENT_ROWS <= PAIR_MASK, "fits into a pair");
_Static_assert(sizeof(struct header) + POINTS_DIMENSION_MAX * sizeof(float) + 8 <= PAGE_MAX,
               "the header has room");

/* --- checksums --- */

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
}

/* Four sums beside each other. A word that differs always makes a sum differ: each step is a
 * permutation. */
uint64_t check_of(const void *p, size_t n, uint64_t seed)
{
    uint64_t sums[4] = {seed, seed + 1, seed + 2, seed + 3}, words[4];
    const char *at = p;
    size_t left = n;
    for (; left >= sizeof(words); at += sizeof(words), left -= sizeof(words)) {
        memcpy(words, at, sizeof(words));
        for (size_t i = 0; i < 4; i++)
            sums[i] = mix(sums[i], words[i]);
    }
    memset(words, 0, sizeof(words));
    memcpy(words, at, left);
    uint64_t all = mix(seed, n);
    for (size_t i = 0; i < 4; i++)
        all = mix(all, mix(sums[i], words[i]));
    return all;
}

static uint64_t seed_of(const struct index_file *f, uint64_t number)
{
    return mix(f->head.generation, number + 1);
}

/* Sixteen bits of check; one of them is always set, so that zeros are not a pair. */
uint64_t pair_pack(const struct index_file *f, struct pair p)
{
    uint64_t both = (uint64_t)p.deletions << PAIR_BITS | p.rows;
    return both | (mix(seed_of(f, both), both) | 1) << 2 * PAIR_BITS;
}

bool pair_unpack(const struct index_file *f, uint64_t word, struct pair *out)
{
    *out = (struct pair){.rows = word & PAIR_MASK, .deletions = word >> PAIR_BITS & PAIR_MASK};
    return pair_pack(f, *out) == word && out->deletions <= out->rows &&
           out->rows <= INDEX_SEGMENTS_MAX * f->head.segment_rows;
}

/* The row, and 32 bits of check over it and its place. */
uint64_t deletion_pack(const struct index_file *f, uint32_t row, uint32_t number)
{
    uint64_t check = mix(seed_of(f, number), (uint64_t)number << 32 | row);
    return (check | 1) << 32 | row;
}

uint64_t head_check(const struct index_file *f, const struct row_head *h, uint32_t row)
{
    return check_of(h, offsetof(struct row_head, check), seed_of(f, row));
}

uint64_t vector_check(const struct index_file *f, const float *floats)
{
    return check_of(floats, f->code.floats * sizeof(*floats), 1);
}

uint64_t small_check(const struct index_file *f, const uint8_t *code, const int8_t *small)
{
    return check_of(small, f->code.small_bytes, check_of(code, f->code.bytes, 1));
}

bool row_head_read(const struct index_file *f, uint32_t row, struct row_head *out)
{
    memcpy(out, row_head(f, row), sizeof(*out));
    return out->check == head_check(f, out, row);
}

bool row_verify(const struct index_file *f, uint32_t row, struct row_head *out)
{
    return row_head_read(f, row, out) &&
           memcmp(&out->tags, row_tags(f, row), sizeof(out->tags)) == 0 &&
           out->vector_check == vector_check(f, row_floats(f, row));
}

bool row_verify_all(const struct index_file *f, uint32_t row, struct row_head *out)
{
    uint8_t code[POINTS_DIMENSION_MAX / 8];
    uint32_t within = row % KERNEL_BLOCK;
    code_get(&f->code, row_codes(f, row - within), within, code);
    return row_verify(f, row, out) && out->small_check == small_check(f, code, row_small(f, row));
}

int index_file_damaged(struct index_file *f, const char *what, const char **why)
{
    __atomic_store_n(&f->damaged, true, __ATOMIC_SEQ_CST);
    *why = what;
    return ERR_PROTO;
}

/* --- layout --- */

static size_t place(size_t *end, size_t bytes)
{
    size_t at = *end;
    *end = (at + bytes + PAGE_MAX - 1) / PAGE_MAX * PAGE_MAX;
    return at;
}

static void lay_out(struct index_file *f)
{
    const struct code *c = &f->code;
    struct layout *at = &f->at;
    size_t rows = f->head.segment_rows, end = 0;
    at->codes = place(&end, rows * c->bytes);
    at->small = place(&end, rows * c->small_bytes);
    at->tags = place(&end, rows * sizeof(struct point_tags));
    at->heads = place(&end, rows * sizeof(struct row_head));
    at->floats = place(&end, rows * c->floats * sizeof(float));
    at->deletions = place(&end, rows * sizeof(uint64_t));
    at->table = place(&end, rows * SEGMENT_TABLES * sizeof(uint32_t));
    at->bytes = end;
    at->hot_bytes = c->bytes + c->small_bytes;
    at->row_bytes = at->hot_bytes + sizeof(struct point_tags) + sizeof(struct row_head) +
                    c->floats * sizeof(float) + SEGMENT_TABLES * sizeof(uint32_t);
}

static bool header_fits(const struct header *h)
{
    return memcmp(h->magic, MAGIC, sizeof(h->magic)) == 0 && h->dimension >= POINTS_DIMENSION_MIN &&
           h->dimension <= POINTS_DIMENSION_MAX && h->segment_rows && h->segment_rows % 64 == 0 &&
           h->segment_rows <= INDEX_SEGMENT_ROWS && !h->model[INDEX_MODEL_BYTES_MAX];
}

/* --- open, map, put --- */

static bool read_all(int fd, void *into, size_t n, off_t at)
{
    for (char *to = into; n;) {
        ssize_t got = pread(fd, to, n, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static int read_header(struct index_file *f, const char **why)
{
    uint64_t check;
    if (!read_all(f->fd, &f->head, sizeof(f->head), HEADER_AT) || !header_fits(&f->head))
        return index_file_damaged(f, "the file is not an index, or its header is damaged", why);
    code_init(&f->code, kernel_best(), f->head.dimension);
    size_t mean_bytes = f->code.floats * sizeof(float);
    off_t at = HEADER_AT + (off_t)sizeof(f->head);
    if (!read_all(f->fd, f->code.mean, mean_bytes, at) ||
        !read_all(f->fd, &check, sizeof(check), at + (off_t)mean_bytes) ||
        check != check_of(f->code.mean, mean_bytes, check_of(&f->head, sizeof(f->head), 2)))
        return index_file_damaged(f, "the header of the index is damaged", why);
    lay_out(f);
    return 0;
}

int index_file_open(const char *path, struct index_file **out, const char **why)
{
    struct stat st;
    struct index_file *f = check_memory(calloc(1, sizeof(*f)));
    f->refs = 1;
    f->fd = open(path, O_RDWR | O_CLOEXEC);
    if (f->fd < 0 && (errno == EACCES || errno == EROFS))
        f->fd = open(path, O_RDONLY | O_CLOEXEC);
    int err = 0;
    if (f->fd < 0) {
        *why = errno == ENOENT ? "there is no such index" : "the index cannot be opened";
        err = errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
    } else if (fstat(f->fd, &st) || !S_ISREG(st.st_mode) || st.st_size < SEGMENTS_AT) {
        err = index_file_damaged(f, "the file of the index is too short", why);
    }
    if (!err)
        err = read_header(f, why);
    if (!err) {
        err = mapping_open(&f->live, f->fd, 0, PAGE_MAX, false, &f->damaged);
        *why = err ? "the index cannot be mapped" : *why;
    }
    if (err) {
        index_file_put(f);
        return err;
    }
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    *out = f;
    return 0;
}

void index_file_put(struct index_file *f)
{
    if (!f || __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < f->mapped; i++)
        mapping_close(&f->segments[i]);
    mapping_close(&f->live);
    code_release(&f->code);
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

int index_file_map(struct index_file *f, struct pair state, const char **why)
{
    size_t needed = (state.rows + f->head.segment_rows - 1) / f->head.segment_rows;
    struct stat st;
    if (fstat(f->fd, &st) || st.st_size < SEGMENTS_AT ||
        (size_t)(st.st_size - SEGMENTS_AT) / f->at.bytes < needed)
        return index_file_damaged(f, "the file of the index was cut", why);
    while (f->mapped < needed) {
        off_t from = SEGMENTS_AT + (off_t)(f->mapped * f->at.bytes);
        int err =
            mapping_open(&f->segments[f->mapped], f->fd, from, f->at.bytes, false, &f->damaged);
        if (err) {
            *why = "the index cannot be mapped";
            return err;
        }
        f->mapped++;
    }
    return 0;
}

int index_file_state(struct index_file *f, struct pair *out, const char **why)
{
    const struct live *live = (const void *)f->live.at;
    if (!pair_unpack(f, __atomic_load_n(&live->state, __ATOMIC_ACQUIRE), out))
        return index_file_damaged(f, "the index is damaged where it counts its rows", why);
    return 0;
}

int index_file_is_of(const struct index_file *f, const struct points_space *s, const char **why)
{
    if (s->dimension == f->head.dimension && (!s->model || strcmp(s->model, f->head.model) == 0))
        return 0;
    *why = "the index is of another model or dimension";
    return ERR_CONFLICT;
}

/* --- make --- */

bool index_file_write(int fd, const void *p, size_t n, off_t at)
{
    for (const char *from = p; n;) {
        ssize_t put = pwrite(fd, from, n, at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        from += put;
        at += put;
        n -= (size_t)put;
    }
    return true;
}

int index_file_make(const char *path, const struct header *head, const float *rotated_mean,
                    const char **why)
{
    struct index_file f = {.head = *head};
    memcpy(f.head.magic, MAGIC, sizeof(f.head.magic));
    if (!header_fits(&f.head)) {
        *why = "an index cannot have this dimension, model or size of segments";
        return ERR_INVALID;
    }
    size_t mean_bytes = (f.head.dimension + 7) / 8 * 8 * sizeof(float);
    uint64_t nothing = pair_pack(&f, (struct pair){0, 0});
    char *bytes = check_memory(calloc(1, SEGMENTS_AT));
    memcpy(bytes, &(struct live){.state = nothing, .synced = nothing, .filled = nothing},
           sizeof(struct live));
    memcpy(bytes + HEADER_AT, &f.head, sizeof(f.head));
    memcpy(bytes + HEADER_AT + sizeof(f.head), rotated_mean, mean_bytes);
    uint64_t check = check_of(rotated_mean, mean_bytes, check_of(&f.head, sizeof(f.head), 2));
    memcpy(bytes + HEADER_AT + sizeof(f.head) + mean_bytes, &check, sizeof(check));

    int err = 0, fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || !index_file_write(fd, bytes, SEGMENTS_AT, 0) || fdatasync(fd)) {
        *why = "the file of an index cannot be written";
        err = ERR_IO;
    }
    free(bytes);
    int kept = errno;
    if (fd >= 0)
        close(fd);
    errno = kept;
    return err;
}
