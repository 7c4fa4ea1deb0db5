/* index_private.h -- the file of an index, and what a process has of it. */
#ifndef ENGINE_VECTORS_INDEX_PRIVATE_H
#define ENGINE_VECTORS_INDEX_PRIVATE_H

#include <pthread.h>
#include <sys/stat.h>

#include "engine/vectors/code.h"
#include "engine/vectors/index.h"
#include "engine/vectors/mapping.h"

/* Parts that are mapped by themselves begin at multiples of this: a page is no larger anywhere. */
#define PAGE_MAX       65536
#define HEADER_AT      PAGE_MAX
#define SEGMENTS_AT    (2 * PAGE_MAX)
#define SEGMENT_TABLES 2 /* slots of a table of owners for each row */

/* At the beginning of the file. Words are pairs of lengths with a check (pair_pack). */
struct live {
    uint64_t state;  /* rows and deletions that count */
    uint64_t synced; /* those that a power failure leaves */
    uint64_t filled; /* rows that the tables of owners know */
};

struct pair {
    uint32_t rows, deletions; /* 24 bits each */
};

/* Behind it stand the mean's floats, and a check of all. */
struct header {
    char magic[8];
    uint32_t dimension, segment_rows;
    uint64_t generation; /* one more with each compaction */
    uint64_t mean_rows;  /* of which the mean is */
    char model[INDEX_MODEL_BYTES_MAX + 1];
};

/* What is true of one row, in 64 bytes. */
struct row_head {
    uint64_t owner, version;
    struct point_tags tags;
    uint32_t part;
    uint32_t before;       /* the row before of this owner in this segment, from 1; 0: none */
    uint64_t vector_check; /* of the float32 */
    uint64_t small_check;  /* of the code and int8 */
    uint64_t spare;
    uint64_t check; /* of all this, the row's number and the generation */
};

struct layout { /* places in a segment, in bytes */
    size_t codes, small, tags, heads, floats, deletions, table, bytes;
    size_t hot_bytes, row_bytes; /* of a row */
};

/* One open file, used by views; ends with the last of them. */
struct index_file {
    int fd;
    int refs;
    bool damaged; /* once it is, it stays so */
    dev_t dev;
    ino_t ino;
    struct header head;
    struct code code;
    struct layout at;
    struct mapping live;
    struct mapping segments[INDEX_SEGMENTS_MAX]; /* the first `mapped` of them */
    size_t mapped;
};

struct index_view {
    struct index_file *file;
    struct pair state;
    int refs;
    bool detached;
    uint64_t dead[]; /* a bit for each row */
};

struct index {
    pthread_mutex_t lock; /* of what follows, and of file->segments while they are mapped */
    char path[INDEX_PATH_BYTES_MAX + 1];
    struct index_view *now; /* NULL: none could be made */
};

/* A file that is written to: mapped once more, where words are stored. */
struct sink {
    struct index_file *file; /* NULL: none */
    struct mapping live, table;
    size_t table_segment; /* whose table that is */
    struct pair state;    /* with what was added since the last commit */
    /* Rows, as the columns have them, until they are written. */
    uint8_t *codes; /* whole blocks */
    int8_t *small;
    struct row_head *heads;
    float *floats, *rotated;
};

struct index_writer {
    struct index *index;
    int lock_fd;
    struct sink sink;
};

/* --- index_file.c --- */

uint64_t check_of(const void *p, size_t n, uint64_t seed);
uint64_t pair_pack(const struct index_file *f, struct pair p);
MUST_CHECK bool pair_unpack(const struct index_file *f, uint64_t word, struct pair *out);
uint64_t deletion_pack(const struct index_file *f, uint32_t row, uint32_t number);
uint64_t head_check(const struct index_file *f, const struct row_head *h, uint32_t row);
uint64_t vector_check(const struct index_file *f, const float *floats);
uint64_t small_check(const struct index_file *f, const uint8_t *code, const int8_t *small);

MUST_CHECK bool index_file_write(int fd, const void *p, size_t n, off_t at);
MUST_CHECK int index_file_open(const char *path, struct index_file **out, const char **why);
/* Writes an empty file at path, which must not be there. */
MUST_CHECK int index_file_make(const char *path, const struct header *head,
                               const float *rotated_mean, const char **why);
void index_file_put(struct index_file *f);
/* Maps the segments that so many rows and deletions need. ERR_PROTO: the file is shorter. */
MUST_CHECK int index_file_map(struct index_file *f, struct pair state, const char **why);
MUST_CHECK int index_file_damaged(struct index_file *f, const char *what, const char **why);
MUST_CHECK int index_file_is_of(const struct index_file *f, const struct points_space *s,
                                const char **why);
MUST_CHECK int index_file_state(struct index_file *f, struct pair *out, const char **why);

static inline const char *segment_of(const struct index_file *f, uint32_t row, uint32_t *within)
{
    *within = row % f->head.segment_rows;
    return f->segments[row / f->head.segment_rows].at;
}

static inline const void *column(const struct index_file *f, size_t column_at, size_t bytes,
                                 uint32_t row)
{
    uint32_t within;
    const char *segment = segment_of(f, row, &within);
    return segment + column_at + within * bytes;
}

/* The block that begins with this row. */
static inline const uint8_t *row_codes(const struct index_file *f, uint32_t row)
{
    return column(f, f->at.codes, f->code.bytes, row);
}

static inline const int8_t *row_small(const struct index_file *f, uint32_t row)
{
    return column(f, f->at.small, f->code.small_bytes, row);
}

static inline const struct point_tags *row_tags(const struct index_file *f, uint32_t row)
{
    return column(f, f->at.tags, sizeof(struct point_tags), row);
}

static inline const struct row_head *row_head(const struct index_file *f, uint32_t row)
{
    return column(f, f->at.heads, sizeof(struct row_head), row);
}

static inline const float *row_floats(const struct index_file *f, uint32_t row)
{
    return column(f, f->at.floats, f->code.floats * sizeof(float), row);
}

/* Copies the head of a row that has been verified; false: it is damaged. row_verify: the float32
 * and the tags, too. row_verify_all: also what only leads to the row, code and int8. */
MUST_CHECK bool row_head_read(const struct index_file *f, uint32_t row, struct row_head *out);
MUST_CHECK bool row_verify(const struct index_file *f, uint32_t row, struct row_head *out);
MUST_CHECK bool row_verify_all(const struct index_file *f, uint32_t row, struct row_head *out);

/* --- index_view.c --- */

MUST_CHECK int index_new(const char *path, struct index **out, const char **why); /* not opened */

/* The newest view, with a reference. */
MUST_CHECK int view_now(struct index *x, struct index_view **out, const char **why);
static inline bool view_has(const struct index_view *v, uint32_t row)
{
    return !(v->dead[row / 64] >> row % 64 & 1);
}
static inline size_t bitmap_words(uint32_t rows)
{
    return ((size_t)rows + 63) / 64;
}

/* --- index_owner.c: which rows an owner has --- */

/* The newest row of an owner in a segment, from 1; 0: none. ERR_PROTO: damaged. */
MUST_CHECK int owner_head(const struct index_file *f, size_t segment, uint64_t owner, uint32_t rows,
                          uint32_t *out);
/* Visits the rows of an owner among the first `rows`, dead ones too; those that are not noted yet
 * (owners_noted) are not visited. */
MUST_CHECK int owner_rows(const struct index_file *f, uint64_t owner, uint32_t rows,
                          void (*visit)(void *arg, uint32_t row), void *arg);
/* So many rows are in the tables: all, but for those of a change that becomes visible now, or of a
 * writer that died then. */
MUST_CHECK int owners_noted(struct index_file *f, uint32_t *rows, const char **why);
/* Notes that a row is its owner's newest. Idempotent. */
MUST_CHECK int owner_note(const struct index_file *f, uint32_t *table, uint32_t row);

/* --- index_sink.c: needs the lock --- */

#define SINK_ROWS 256 /* written at a time */

/* Goes back to what was synced if what came later is damaged. */
MUST_CHECK int sink_open(struct sink *s, struct index_file *f, const char **why);
void sink_close(struct sink *s); /* also one that is closed */
/* Begins a change at what the file has; notes the owners of rows whose writer has died. */
MUST_CHECK int sink_begin(struct sink *s, const char **why);
/* One call for each change. ERR_INVALID as index_put. */
MUST_CHECK int sink_add(struct sink *s, const struct point *points, const float *vectors,
                        size_t count, const char **why);
MUST_CHECK int sink_delete(struct sink *s, const uint32_t *rows, size_t count, const char **why);
MUST_CHECK int sink_commit(struct sink *s, const char **why);
/* May be called without the lock. */
MUST_CHECK int sink_sync(struct sink *s, const char **why);

/* --- index_writer.c --- */

/* Takes its turn, with a view of the file as it is and a sink that has begun. */
MUST_CHECK int writer_begin(struct index_writer *w, int wait_ms, struct index_view **now,
                            const char **why);
void writer_end(struct index_writer *w, struct index_view *now);
/* Renames a file, and syncs the folder. */
MUST_CHECK int index_file_take_name(const char *path, const char *from, const char **why);

/* --- index_turn.c: turns of writers --- */

enum turn { TURN_CHANGE, TURN_COMPACT };
MUST_CHECK int turn_open(const char *path, int *fd, const char **why); /* of "<path>.lock" */
MUST_CHECK int turn_take(int fd, enum turn which, int wait_ms, const char **why);
void turn_drop(int fd, enum turn which);

/* --- index_search.c: for tests, with another kernel --- */

MUST_CHECK int view_search(const struct index_view *v, const struct kernel *k,
                           const struct points_query *q, struct point_hit *hits,
                           struct points_answer *answer, const char **why);

/* --- index_filter.c --- */

/* Sets the bits of rows that count and that the filter leaves, in a bitmap of the view's rows;
 * *left is how many. ERR_INVALID, ERR_PROTO. */
MUST_CHECK int filter_rows(const struct index_view *v, const struct point_filter *filter,
                           uint64_t *keep, uint32_t *left, const char **why);
#endif
