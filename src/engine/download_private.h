/* download_private.h -- what the files of downloads know of each other.
 *
 *   download.c        asking for one, looking at it, sending it
 *   download_build.c  rows of a run to pieces of a file
 *   download_work.c   the workers
 *   download_name.c   what its file is called */
#ifndef ENGINE_DOWNLOAD_PRIVATE_H
#define ENGINE_DOWNLOAD_PRIVATE_H

#include "engine/download.h"
#include "loop/sync.h"

struct downloads {
    struct downloads_options options;
    struct blocks *blocks; /* ours: its papers come over our connection */
    struct waitq created;  /* wakes a worker of this node */
    struct sem asking;     /* one idle worker asks for all of them */
    struct sem saving;     /* one piece at a time: Redis answers nobody while it takes a megabyte */
    uint64_t takes;        /* numbers leases */
    bool draining;
    size_t busy;       /* workers that ask, or have something */
    struct waitq idle; /* for whoever waits until there are none */
    int64_t streaming
        [DOWNLOAD_STREAMS_MAX]; /* uids of those who are sent what is being built; 0: free */
    int64_t *created_count, *ready_count, *streamed_count, *failed_count, *bytes_count, *waiting;
    struct histogram *seconds;
};

/* Runs a script that answers with a number. */
MUST_CHECK int download_script(struct task *t, struct downloads *d, const struct redis_script *s,
                               size_t keys, size_t argc, const struct str *argv, int64_t *out);

/* Builds the file of a wish. fn gets its pieces, each of DOWNLOAD_PIECE_BYTES but for the last; far (may be NULL) is
 * told after each batch how many rows and bytes there are so far. Other than 0 from either ends it. The task's
 * arena is reset between batches. */
typedef int download_far_fn(struct task *t, int64_t rows, int64_t bytes, void *arg);
MUST_CHECK int download_build(struct task *t, struct downloads *d, const struct download_wish *w,
                              download_fn *fn, download_far_fn *far, void *arg);
#endif
