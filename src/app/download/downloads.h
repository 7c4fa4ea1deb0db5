/* downloads.h -- results of a run as a file that is built in the background (DWN-1, DWN-2).
 *
 *   1. download_create writes download:<uid>:<id>:status, PENDING, and pushes "<uid>:<id>" to the
 *      queue of downloads (engine/jobs/jobs.h). There is no row: losing one costs a repeat. A Redis
 *      that comes back older may have lost the push: download_look pushes a download that waits for
 *      long once more.
 *   2. A node takes it. The status becomes PROCESSING, and gets a lease, a fencing token.
 *   3. The file is built, and saved in pieces. The scripts that save and finish compare the lease:
 *      a slow worker that lost its download can do neither.
 *   4. It is READY for DOWNLOAD_FILE_MS, or FAILED with words for the user.
 *
 * A file above DOWNLOAD_HELD_BYTES_MAX, or of a user who has DOWNLOAD_USER_BYTES_MAX held already,
 * is READY without being held: it is built while it is sent. Downloads use a connection to Redis of
 * their own, so that large values do not delay short and urgent commands. */
#ifndef APP_DOWNLOAD_DOWNLOADS_H
#define APP_DOWNLOAD_DOWNLOADS_H

#include "app/download/export.h"
#include "engine/jobs/jobs.h"

#define DOWNLOAD_WORKERS         10 /* per node */
#define DOWNLOAD_ID_BYTES        33 /* 32 random hexadecimal digits and NUL */
#define DOWNLOAD_STATUS_MS       (3600 * 1000)
#define DOWNLOAD_FILE_MS         (300 * 1000)
#define DOWNLOAD_LEASE_MS        5000
#define DOWNLOAD_DEADLINE_MS     (600 * 1000) /* of one try */
#define DOWNLOAD_TRIES_MAX       5
#define DOWNLOAD_PIECE_BYTES     (1 << 20)
#define DOWNLOAD_HELD_BYTES_MAX  (64 << 20)  /* of one file */
#define DOWNLOAD_USER_BYTES_MAX  (256 << 20) /* of all that one user has held */
#define DOWNLOADS_WAITING_MAX    20          /* of one user */
#define DOWNLOADS_QUEUED_MAX     10000       /* of all */
#define DOWNLOAD_STREAMS_MAX     16          /* files being built while they are sent, per node */
#define DOWNLOAD_STREAMS_OF_USER 2
#define DOWNLOAD_NAME_BYTES_MAX  255

struct downloads;

struct downloads_options {
    struct redis *redis; /* all borrowed; this one for downloads only */
    struct sql_pool *sql;
    struct cache *cache;
    struct ledger *ledger;
    struct metrics *metrics;
    struct jobs *jobs;
    uint64_t incarnation;   /* of this node, for leases */
    int64_t lease_ms;       /* 0: DOWNLOAD_LEASE_MS */
    int64_t held_bytes_max; /* 0: DOWNLOAD_HELD_BYTES_MAX */
    int64_t queued_max;     /* 0: DOWNLOADS_QUEUED_MAX */
};
/* Adds its queue to the jobs, which must end before downloads_free. */
struct downloads *downloads_new(const struct downloads_options *o);
void downloads_free(struct downloads *d);

struct download_wish {
    struct run_id run;
    enum export_format format;
    bool all; /* else the relevant ones only */
};
/* ERR_NOT_FOUND: the user has no such run. ERR_RATE: DOWNLOADS_WAITING_MAX of this user's wait.
 * ERR_BUSY: the queue is full. */
MUST_CHECK int download_create(struct task *t, struct downloads *d, const struct download_wish *w,
                               char id[DOWNLOAD_ID_BYTES]);

enum download_state { DOWNLOAD_PENDING, DOWNLOAD_PROCESSING, DOWNLOAD_READY, DOWNLOAD_FAILED };
#define DOWNLOAD_STATES "PENDING|PROCESSING|READY|FAILED"
const char *download_state_name(enum download_state s);

struct download {
    int64_t uid;
    struct str id;
    enum download_state state;
    struct download_wish wish;
    int64_t progress; /* 0 to 100 */
    struct str name;  /* of the file */
    struct str error; /* of a FAILED one; else p == NULL */
    bool streamed;    /* READY, but not held */
    int64_t bytes, pieces;
    int64_t expires_ms; /* READY and held: until then; else 0 */
};
/* In the task's arena. ERR_NOT_FOUND: the user has no such download. */
MUST_CHECK int download_look(struct task *t, struct downloads *d, int64_t uid, struct str id,
                             struct download *out);
/* Waits until it is READY or FAILED. ERR_TIMEOUT: the task's deadline is near. */
MUST_CHECK int download_await(struct task *t, struct downloads *d, int64_t uid, struct str id,
                              struct download *out);

/* Hands a READY file to fn, piece by piece; other than 0 ends it. begin (may be NULL) is called
 * once, before the first piece and after the errors below. ERR_CONFLICT: not READY. ERR_NOT_FOUND:
 * the file has expired. ERR_BUSY: too many are being built while they are sent. The task's arena is
 * reset between pieces. */
typedef int download_fn(struct task *t, struct str piece, void *arg);
typedef int download_begin_fn(struct task *t, void *arg);
MUST_CHECK int download_send(struct task *t, struct downloads *d, const struct download *file,
                             download_begin_fn *begin, download_fn *fn, void *arg);
/* The same for count bytes of a file that is held, from first on. */
MUST_CHECK int download_send_part(struct task *t, struct downloads *d, const struct download *file,
                                  int64_t first, int64_t count, download_begin_fn *begin,
                                  download_fn *fn, void *arg);
#endif
