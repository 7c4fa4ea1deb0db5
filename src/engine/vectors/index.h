/* index.h -- the embedded index of vectors: one file per collection, read by every process of a
 * machine through mapped memory, written by one at a time. No server, no graph.
 *
 * A search of up to INDEX_EXACT_ROWS points (all, or those that the filter leaves) compares small
 * integers with each of them, and the best in full. A search of more compares a bit per dimension
 * first (code.h), which leaves one point in 500, or 2,000.
 *
 * The file grows only, until it is compacted into a new one that takes its name. Rows are written
 * once, behind those that are there; a point that goes is named in a list of deletions, behind
 * those that are there. One atomic word says how many of both count:
 *
 *      rows, deletions ── a change is visible when this word is stored ──┐
 *      ┌──────┬────────┬───────────┬───────────┬───────────┬┄┄           │
 *      │ live │ header │ segment 0 │ segment 1 │ segment 2 │             │
 *      └──────┴────────┴───────────┴───────────┴───────────┴┄┄           ▼
 *      segment: codes │ int8 │ tags │ rows' heads │ float32 │ deletions │ table of owners
 *
 * Segments are parts of the one file, so that a collection is copied, replaced and lost as a whole.
 * They are of a fixed number of rows each, and sparse: what is not used takes no space. Each is
 * mapped when its first row counts, so that nothing that is mapped ever moves.
 *
 * Always true, whatever dies when:
 *   - a search sees all of a change or nothing of it, and one point of an id at most;
 *   - a writer that dies leaves the file as it was before its change, or as it is after it; its
 *     lock is gone with it (file locks), and the next writer repairs the table of owners;
 *   - every row, deletion and word has a checksum over what it is and where: what a search returns
 *     has been verified. Damage is ERR_PROTO, never a crash (mapping.h) and never a made-up point;
 *   - a file that was replaced is noticed by the next search of each process, by its inode.
 *
 * What a power failure takes: changes since the last index_sync, or all of them but not a part: the
 * next writer falls back to what was synced if a later row is damaged.
 *
 * Nothing here waits for the loop: searches take up to some milliseconds, changes and compaction
 * more. Tasks call them by embedded.h. An index may be used by several threads at a time, a
 * writer by one. Constant strings in *why say what was wrong. */
#ifndef ENGINE_VECTORS_INDEX_H
#define ENGINE_VECTORS_INDEX_H

#include "base/check.h"
#include "engine/vectors/points.h"

#define INDEX_EXACT_ROWS      20000
#define INDEX_SEGMENT_ROWS    65536
#define INDEX_SEGMENTS_MAX    128 /* of INDEX_SEGMENT_ROWS rows, deleted ones included */
#define INDEX_MODEL_BYTES_MAX 127
#define INDEX_PATH_BYTES_MAX  400

struct index;
struct index_writer;
struct index_view;

struct index_spec {
    const char *model; /* the name of what embeds: vectors of another one are not comparable */
    uint32_t dimension;
    /* The mean of the vectors, scaled to length one each, if it is known; NULL: compaction finds
     * it. Searches of more than INDEX_EXACT_ROWS points find more with it. */
    const float *mean;
    uint64_t mean_rows;    /* of so many vectors */
    uint32_t segment_rows; /* 0: INDEX_SEGMENT_ROWS; a multiple of 64 */
};

/* Makes an empty collection, or empties it: the new file takes the place of what is there, damaged
 * or not. ERR_INVALID: the spec; ERR_BUSY: a writer is at work on it. */
MUST_CHECK int index_create(const char *path, const struct index_spec *spec, const char **why);
/* The file at `from` takes the place of the one at `path`, and its name: for a collection that was
 * made anew beside the old one. */
MUST_CHECK int index_replace(const char *path, const char *from, const char **why);

/* --- readers --- */

/* ERR_NOT_FOUND: there is none; ERR_PROTO: it is damaged, make it anew. */
MUST_CHECK int index_open(const char *path, struct index **out, const char **why);
void index_close(struct index *x); /* may be NULL; no call may be under way */

struct index_info {
    char model[INDEX_MODEL_BYTES_MAX + 1];
    uint32_t dimension;
    uint64_t points;
    uint64_t deleted;   /* rows that compaction would drop */
    uint64_t bytes;     /* of the file, as its columns fill it */
    uint64_t hot_bytes; /* of those, what a search of all points reads at least in part */
    uint64_t generation;
    bool wants_compaction; /* a quarter is deleted, or the mean is of far fewer points */
};
MUST_CHECK int index_info(struct index *x, struct index_info *out, const char **why);

/* hits has room for q->k. ERR_NOT_FOUND and ERR_PROTO as above; ERR_CONFLICT: the index is of
 * another space; ERR_INVALID: the query's vector has no direction, or k or the filter is beyond its
 * limit; ERR_IO. */
MUST_CHECK int index_search(struct index *x, const struct points_query *q, struct point_hit *hits,
                            struct points_answer *answer, const char **why);

/* Verifies up to `rows` rows from *from on, with all that belongs to them, and moves *from on; done
 * when it is 0 again. ERR_PROTO: damaged. */
MUST_CHECK int index_verify(struct index *x, uint32_t *from, uint32_t rows, const char **why);

/* The points as they are now, whatever happens meanwhile. */
MUST_CHECK int index_view_get(struct index *x, struct index_view **out, const char **why);
void index_view_put(struct index_view *v);
/* The next one from *at on (begin with 0), in the order they came; vector has room for dimension.
 * ERR_NOT_FOUND: there is none; ERR_PROTO: damaged. */
MUST_CHECK int index_view_next(struct index_view *v, uint32_t *at, struct point *point,
                               float *vector);

/* --- writers --- */

/* As index_open. Many processes may have one; they take turns, change by change. */
MUST_CHECK int index_writer_open(const char *path, struct index_writer **out, const char **why);
void index_writer_close(struct index_writer *w);

/* Each waits up to wait_ms for its turn: ERR_BUSY. After any other error nothing has changed:
 * ERR_CONFLICT: the index is of another space; ERR_INVALID: a vector has no direction, or an id is
 * there twice; ERR_LIMIT: the collection is
 * full; ERR_PROTO: damaged; ERR_IO with errno (no space …). */
MUST_CHECK int index_put(struct index_writer *w, const struct points_change *c, int wait_ms,
                         const char **why);
/* The points of an owner get other tags, in one step; no error if there are none. */
MUST_CHECK int index_tag(struct index_writer *w, uint64_t owner, struct point_tags tags,
                         int wait_ms, const char **why);
/* What was put before this call survives a power failure. */
MUST_CHECK int index_sync(struct index_writer *w, const char **why);

/* Writes what counts into a new file, with a mean and codes anew, and puts it in the place of this
 * one. Searches and changes go on meanwhile; only at the end changes wait for some milliseconds,
 * and a sync. ERR_BUSY: another one compacts. */
MUST_CHECK int index_compact(struct index_writer *w, int wait_ms, const char **why);
#endif
