/* jobs_private.h -- what the files of this room know of each other.
 *
 *   jobs.c         queues, pushing, looking
 *   jobs_work.c    taking jobs, the task of each, leases
 *   jobs_ask.c     how many jobs ask the AI at once, and how many are prepared for that
 *   jobs_claim.c   jobs that call the AI count against their user's permission
 *   jobs_wake.c    being told that another node has pushed
 *   jobs_end.c     what becomes of jobs that have ended: rows first, then Redis, in batches
 *   jobs_rows.c    rows of MySQL
 *   jobs_refill.c  rows that Redis has not heard of
 *   jobs_admin.c   what admins do with a queue
 *   jobs_list.c    the jobs of a queue, one by one
 *   pay.c          what jobs cost
 *   limits.c       how many of them a user may start */
#ifndef ENGINE_JOBS_JOBS_PRIVATE_H
#define ENGINE_JOBS_JOBS_PRIVATE_H

#include "base/list.h"
#include "engine/crew/claims.h"
#include "engine/jobs/jobs.h"
#include "loop/gather.h"
#include "loop/sync.h"

#define JOBS_TAKE_MAX    128  /* at once */
#define JOBS_IDLE_MS     1000 /* between looks at a queue that was empty; jobs_wake.c */
#define JOBS_LEASE_BYTES 48
#define JOBS_ERROR_BYTES 256

struct jobs_keys {
    struct str waiting, delays, leases, info, users, held, probes, state, aside, wake;
};

struct jobs_queue {
    struct jobs *jobs;
    const struct job_kind *kind;
    void *arg;
    struct jobs_keys keys;
    struct list hands;        /* struct jobs_hand, owned: all that this node holds */
    struct list begun, ended; /* of them: what MySQL, and what both stores have to be told */
    size_t count;             /* of hands */
    size_t early;             /* of hands: those that have not asked the AI; see jobs_ask.c */
    struct sem slots;         /* of those that ask */
    int64_t ahead;            /* how many may wait for a slot */
    int64_t line;             /* jobs that waited in Redis after the last take */
    struct waitq wake;        /* the pump: something was pushed, or has ended */
    struct waitq end;         /* the ender: something has begun, or ended */
    bool woken;               /* since the pump last took */
    int64_t kept_ms;          /* when leases were renewed */
    int64_t whole_ms;         /* when all rows were pushed, by this node */
    int64_t *waiting, *working, *done, *failed, *again, *held, *aside, *work_us, *wait_us;
};

enum jobs_outcome {
    JOBS_COMPLETED, /* the row is still to be told */
    JOBS_GONE,      /* the row is final already */
    JOBS_FAILED,
    JOBS_AGAIN,
    JOBS_HELD,
    JOBS_ASIDE, /* its row cannot be written */
    JOBS_LOST,  /* another holder has it */
};

/* A job that this node holds. */
struct jobs_hand {
    struct list link, begun, ended;
    struct jobs_queue *queue;
    struct job job;
    char id[JOBS_ID_BYTES_MAX + 1];
    char lease[JOBS_LEASE_BYTES];
    struct task *task;                                              /* while its function runs */
    enum { JOBS_EARLY, JOBS_IN_LINE, JOBS_ASKS, JOBS_ASKED } stage; /* jobs_ask.c */
    int64_t asks_ms;                                                /* when it got its slot */
    bool asks;                                                      /* stage is JOBS_ASKS */
    bool lost;                                                      /* another holder has it */
    int64_t began_us;
    enum jobs_outcome outcome;
    bool tried; /* JOBS_AGAIN: the try counts */
    int64_t delay_ms;
    bool unwritten; /* its row cannot be written */
    char error[JOBS_ERROR_BYTES];
    const char *reason; /* the same by a word; NULL: JOB_OTHER */
};

struct jobs {
    struct jobs_options options;
    struct jobs_queue *queues[JOBS_QUEUES_MAX];
    size_t count;
    struct arena arena; /* names of keys */
    struct group *group;
    struct waitq idle; /* woken when a node that drains has nothing in hand */
    uint64_t takes;    /* numbers leases */
    bool draining;
    struct claimant claimant;
    struct map *claims;     /* uid -> struct jobs_claim, owned; NULL before jobs_cap */
    uint64_t claims_epoch;  /* of the connection to Redis that was told of them */
    struct gather tellings; /* by user: what Redis is to be told; while group is there */
    size_t claims_told;     /* calls about them */
};

struct jobs_queue *jobs_find(const struct jobs *j, struct str name); /* NULL: there is none */

#define JOBS_PAUSED "jobs.paused:" /* and the name of a queue: a row of table setting */

/* jobs_work.c */
bool jobs_info_read(struct str text, struct job *out); /* what info has of a job; jobs_push.lua */
void jobs_pump(struct task *t, void *queue);
void jobs_release(struct jobs_hand *h);            /* this node holds it no more */
static inline void jobs_wake(struct jobs_queue *q) /* there may be something to take */
{
    q->woken = true;
    waitq_wake_one(&q->wake);
}

/* jobs_wake.c: a task_fn with a struct jobs. */
void jobs_waker(struct task *t, void *jobs);

/* jobs_ask.c: how many may be taken now. */
int64_t jobs_room(const struct jobs_queue *q);
/* The function of the job has returned, or is not called. */
void jobs_ask_over(struct task *t, struct jobs_hand *h);
void jobs_drop_line(struct jobs *j); /* jobs that wait for a slot are given back: the node drains */

/* jobs_claim.c: one AI call of the job's user. ERR_RATE: the permission is used up. */
MUST_CHECK int jobs_claim(struct task *t, struct jobs *j, const struct job *job);
void jobs_unclaim(struct jobs *j, int64_t uid);
void jobs_claim_settle(struct task *t, struct jobs *j, int64_t uid); /* Redis knows of all ends */
MUST_CHECK int jobs_claims_keep(struct task *t, struct jobs *j);     /* tells Redis of all again */
void jobs_claims_open(struct jobs *j, struct group *g);
void jobs_claims_free(struct jobs *j);

/* jobs_end.c */
void jobs_decide(struct jobs_hand *h, int result, const char *why, int64_t jitter_ms);
void jobs_ender(struct task *t, void *queue);

/* jobs_rows.c: ", reason = '<word>'" for a statement, where the kind has that column, else "".
 * word: NULL: none. */
const char *jobs_set_reason(struct task *t, const struct job_rows *r, const char *word);
/* States of rows, in one transaction; only where they are in the version of the job, and not
 * final. */
MUST_CHECK int jobs_rows_write(struct task *t, struct jobs_queue *q, struct jobs_hand **begun,
                               size_t begun_count, struct jobs_hand **ended, size_t ended_count);
/* A page of rows that are not final, in the task's arena, by position above *after, which is
 * advanced: count < JOBS_BATCH on the last page. since.p: only those changed at or after it. */
MUST_CHECK int jobs_rows_open(struct task *t, const struct jobs_queue *q, bool working,
                              struct str since, int64_t *after, struct job_push **out,
                              size_t *count);
#endif
