/* downloads_private.h -- what the files of downloads know of each other.
 *
 *   downloads.c        asking for one, looking at it, sending it
 *   build.c  rows of a run to pieces of a file
 *   piece.c  pieces as Redis holds them
 *   work.c   what is done for one download
 *   name.c   what its file is called */
#ifndef APP_DOWNLOAD_DOWNLOADS_PRIVATE_H
#define APP_DOWNLOAD_DOWNLOADS_PRIVATE_H

#include "app/download/downloads.h"
#include "loop/sync.h"

struct downloads {
    struct downloads_options options;
    struct blocks *blocks; /* owned: papers come over the connection for downloads */
    struct job_kind kind;  /* its queue */
    struct sem turn; /* files grow side by side, but one batch at a time: see download_build */
    uint64_t takes;  /* numbers leases */
    int64_t streaming[DOWNLOAD_STREAMS_MAX]; /* uids whose file is built while sent; 0: free */
    int64_t *created_count, *ready_count, *streamed_count, *failed_count, *bytes_count;
    struct histogram *seconds;
};

/* Builds the file of a wish. fn gets its pieces, each of DOWNLOAD_PIECE_BYTES but for the last; far
 * gets the rows and bytes so far after each batch. It is NULL when the pieces go to the client at
 * once. Other than 0 from either ends it. The task's arena is reset between batches.
 *
 * Builders take turns, batch by batch: ten at once would keep every core of a small machine busy
 * with files, and other requests would wait for a core (measured: p99 of GET /api/me 31 ms without
 * turns, 10 ms with them). */
typedef int download_far_fn(struct task *t, int64_t rows, int64_t bytes, void *arg);
MUST_CHECK int download_build(struct task *t, struct downloads *d, const struct download_wish *w,
                              download_fn *fn, download_far_fn *far, void *arg);

/* work.c: of the queue. */
#define DOWNLOAD_QUEUE "download"
job_fn download_work;
MUST_CHECK int download_give_up(struct task *t, void *arg, const struct job *j, const char *why);
/* "<uid>:<id>" */
MUST_CHECK int download_push(struct task *t, struct downloads *d, int64_t uid, struct str id);

/* Runs fn on a helper thread, or here if their queue is full. */
MUST_CHECK int download_offload(struct task *t, void (*fn)(void *arg), void *arg);

/* Redis holds a piece packed: a megabyte of text is a quarter of one there, and in its log on disk.
 * Both on a helper thread, the result in the task's arena. */
MUST_CHECK int download_pack(struct task *t, struct str piece, struct str *out);
MUST_CHECK int download_unpack(struct task *t, struct str packed, struct str *out);
#endif
