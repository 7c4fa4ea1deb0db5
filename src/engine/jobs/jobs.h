/* jobs.h -- work that is one document at a time: queues of leased jobs (JOB-1).
 *
 * A queue is a row of one table (struct job_kind): its name, its limits, and the function that does
 * one job. A job has an id, unique in its queue, a user, a priority (0 is the most urgent), an
 * order within the priority, and a version. Where a kind has rows in MySQL, the row is the promise,
 * and Redis only says which job is next: what it loses is pushed again from the rows.
 *
 *   1. The application writes the row, in a transaction of its own, state pending; then jobs_push.
 *      If the node dies in between, or Redis does not answer, jobs_refill_role finds the row.
 *   2. A node takes jobs in batches, as many as it has room for, with a lease (jobs_take.lua), and
 *      starts a task for each, which calls the kind's function. Of kinds that call the AI some are
 *      taken ahead, so that the next question is ready when an answer comes (jobs_ask.c).
 *   3. While the task works, the lease is renewed (jobs_keep_role). A job whose lease is over waits
 *      again at its old place: the node died or stood still.
 *   4. The function returns: the row is brought to completed or failed, in batches, and only then
 *      does the job leave the queue (jobs_done.lua); or it waits again (jobs_again.lua).
 *
 * Always true, whatever dies when:
 *   - a job whose row is pending is worked on some time, and a job leaves its queue only after its
 *     row is final. So a job may be worked on twice: when its holder died after the row was
 *     written, or when Redis came back older. The function looks at its row first, and ends at once
 *     if that is final; what it does besides must be idempotent by the job's id (JOB-2: the payment
 *     is). So a job is done once in effect;
 *   - a row is brought to its end only in the version that was worked on;
 *   - a job is in its queue once. A later version that is pushed while it waits takes its place;
 *     one that is pushed while it is in work waits for its end, and that end comes soon: the task
 *     of the older one is cancelled within a third of the lease;
 *   - all scripts compare the lease, a fencing token: a late holder changes nothing in Redis;
 *   - nothing is taken from a Redis that was restarted before all rows that are not final are in
 *     its queue again. So the order holds then, too.
 *
 * A user whose jobs may not be worked on now, for lack of permission or money, has them held: all
 * the user's jobs are set aside, without a look at each, and one is tried again after JOBS_HOLD_MS,
 * and when one of the user's jobs has ended. They lose no try, and do not hold up other users.
 *
 * A job whose row cannot be written, for an error of MySQL that lasts, is tried again like one
 * whose work failed, at most tries_max times. Then it is set aside: its row stays as it is, and it
 * is worked on again when a later version is pushed, when failures are retried, or after a restart
 * of Redis. Other jobs that ended with it are not affected. */
#ifndef ENGINE_JOBS_JOBS_H
#define ENGINE_JOBS_JOBS_H

#include "base/metrics.h"
#include "engine/store/generation.h"
#include "engine/store/role.h"
#include "wire/sql.h"

#define JOBS_QUEUES_MAX   16
#define JOBS_ID_BYTES_MAX 64
#define JOB_PRIORITY_MAX  255
#define JOB_ORDER_MAX     ((1LL << 45) - 1)
#define JOBS_HOLD_MS      5000
#define JOBS_KEEP_EACH_MS 250
#define JOBS_FILL_EACH_MS 2000
#define JOBS_SOON_EACH_MS 250
#define JOBS_WAKE_MS      40000
#define JOBS_SPARE_MAX    256

struct jobs;

/* Where the rows of a kind are. Names and words are constants of the program, never from outside.
 * The table needs keys on (state, position) and on (state, changed). */
struct job_rows {
    const char *table;
    const char *id;
    const char *uid;      /* column; or "0": jobs without a user, whom no permission limits */
    const char *position; /* BIGINT, at most JOB_ORDER_MAX: the order within a priority */
    const char *version, *priority; /* columns, or numbers: "1" */
    const char *created, *changed;  /* DATETIME(3): when the row, and when this version was made */
    const char *state, *error;      /* columns */
    const char *reason; /* column: error by a word, for programs (job_reason); NULL: none */
    const char *cents;  /* column: what the job costs when it is completed; NULL: nothing (pay.h) */
    const char
        *paid_as; /* column: the id of its payment, where that is not the job's; NULL: it is */
    bool kept;    /* a row is more than a job: failed ones are never deleted */
    const char *pending, *working, *completed, *failed; /* words of state */
};

/* A job in hand. */
struct job {
    struct str id;
    int64_t uid, version, priority;
    int64_t tries;                /* this one included */
    int64_t since_ms;             /* when it was made */
    struct generation generation; /* of the Redis that it was taken from */
    const char **reason;          /* set by job_reason; NULL: it is not kept */
    struct jobs_hand *hand;       /* for job_ask_begin; NULL: there is none */
    const bool *asks;             /* for struct ai_request: true from job_ask_begin on */
};

/* Words of the engine for what it says in error; a kind may have others, of its own. */
#define JOB_NO_MONEY        "no_money"
#define JOB_STOPPED         "account_stopped" /* until the operator has looked at it */
#define JOB_NO_PERMISSION   "no_permission"   /* the user's permission is 0 */
#define JOB_PERMISSION_USED "permission_used" /* by other work of the user */
#define JOB_LOST            "node_lost"       /* the nodes that worked on it died, at every try */
#define JOB_OTHER           "other"           /* the function named none */
#define JOB_REASONS                                                                                \
    JOB_NO_MONEY "|" JOB_STOPPED "|" JOB_NO_PERMISSION "|" JOB_PERMISSION_USED "|" JOB_LOST        \
                 "|" JOB_OTHER
/* Called by whatever makes a job's function return an error: word is a constant, and is written
 * with the text of the error. The last one counts; NULL: JOB_OTHER. */
static inline void job_reason(const struct job *j, const char *word)
{
    if (j->reason)
        *j->reason = word;
}

/* Does one job, in a scope and with a deadline of its own. Looks at its row first.
 *   0: completed; the row is brought to that.
 *   JOB_WRITTEN: nothing is left to do: the function has brought the row to its end itself, with
 *       its results, or has found it so.
 *   ERR_FUNDS, ERR_RATE: held, as told above; the row's error says why.
 *   ERR_UNAVAILABLE: a store or a service is away: tried again after a backoff, and no try is lost.
 *   any other error that may pass (err_may_pass): likewise, but at most tries_max times;
 *   ERR_CANCELED: the node ends, the lease is lost, or a later version waits: tried again;
 *   any other: failed. task_error is for the user to read. */
#define JOB_WRITTEN 1
typedef int job_fn(struct task *t, void *arg, const struct job *j);

/* Of a kind that calls the AI, for its function: before its first call, and after its last one.
 * Between them the job counts against its user's permission, and against the concurrency of its
 * queue on this node. Jobs that read before, or write and pay after that, do so beside those that
 * ask: up to JOBS_SPARE_MAX of each, and no more of each than the concurrency.
 *   Waits until a slot is free. ERR_RATE: the permission is used up. ERR_CANCELED: also when no
 *   slot was free for long, and another node may have one. The function returns both as they are.
 * job_ask_end never waits; if it is not called, the function's end counts. job.asks is true between
 * them, if the kind calls the AI: ai_ask looks at it. */
MUST_CHECK int job_ask_begin(struct task *t, const struct job *j);
void job_ask_end(const struct job *j);

struct job_kind {
    const char *name;              /* "download": of its queue, and in metrics */
    int64_t concurrency;           /* of one node: jobs in hand, or if calls_ai those that ask */
    int64_t concurrency_all;       /* jobs in hand of all nodes together; 0: no such limit */
    int64_t lease_ms, deadline_ms; /* of one try */
    int64_t tries_max;
    int64_t backoff_ms; /* after the first try; doubles */
    /* Its function calls job_ask_begin, and needs the user's permission (jobs_cap), if the job has
     * a user. */
    bool calls_ai;
    /* Its rows are written where there is no Redis, too, and nothing pushes them: they are looked
     * for every JOBS_SOON_EACH_MS. */
    bool soon;
    int64_t step;                /* added to the priority with each try */
    int64_t user_max, all_max;   /* jobs in the queue; 0: no limit; refused by jobs_push */
    const struct job_rows *rows; /* NULL: losing one costs a repeat, nothing is refilled */
    job_fn *work;
    /* NULL, or called when a job is given up, before its row is failed: for kinds that have no
     * rows. Errors other than those that may pass count for nothing. */
    int (*give_up)(struct task *t, void *arg, const struct job *j, const char *why);
};

struct jobs_options {
    struct redis *redis; /* all borrowed */
    /* A connection of its own, whose command_ms is JOBS_WAKE_MS: calls on it block. NULL: what
     * another node pushes is found when it is looked for. */
    struct redis *redis_wake;
    struct sql_pool *sql;
    struct metrics *metrics;
    uint64_t incarnation; /* of this node, for leases */
    const bool *drained;  /* nothing is taken while it is true; NULL: never */
};
struct jobs *jobs_new(const struct jobs_options *o);
void jobs_free(struct jobs *j);
/* Before jobs_task. arg: for its functions. */
void jobs_add(struct jobs *j, const struct job_kind *k, void *arg);
/* For kinds that call the AI: such a job is claimed before it asks (job_ask_begin), and held while
 * its user's runs and jobs make as many calls as the permission allows, on all nodes together
 * (engine/crew/claims.h). c is copied; what it names is borrowed. Before jobs_task. */
struct claimant;
void jobs_cap(struct jobs *j, const struct claimant *c);
/* Takes and works, for ever. A task_fn with a struct jobs. */
void jobs_task(struct task *t, void *arg);
/* Nothing more is taken; waits at most ms for what is in hand. What is not done by then is given
 * back when the task is cancelled, or else taken by another node after the end of its lease. */
void jobs_drain(struct task *t, struct jobs *j, int64_t ms);

struct job_push {
    struct str id; /* at most JOBS_ID_BYTES_MAX; visible ASCII */
    int64_t uid, version, priority, order;
    int64_t since_ms; /* 0: now */
    int64_t delay_ms;
};
/* Idempotent. room: why one or more were refused, all others are pushed; NULL: the limits user_max
 * and all_max do not count. When Redis does not answer, kinds with rows need not care: the rows are
 * found later. */
enum jobs_room { JOBS_ROOM, JOBS_USER_FULL, JOBS_QUEUE_FULL };
MUST_CHECK int jobs_push(struct task *t, struct jobs *j, const char *queue,
                         const struct job_push *list, size_t count, enum jobs_room *room);

/* A queue, as admins see it. */
struct jobs_look {
    const char *name;
    int64_t waiting, delayed, held, working;
    int64_t oldest_ms; /* age of the oldest that waits to be taken or tried again; 0: none does */
    int64_t done, failed; /* since the queue was first filled */
    bool paused, refilled;
};
size_t jobs_count(const struct jobs *j);
/* Of queue n, by Redis alone. */
MUST_CHECK int jobs_look(struct task *t, struct jobs *j, size_t n, struct jobs_look *out);
/* How many jobs a queue has, those in work included. */
MUST_CHECK int jobs_length(struct task *t, struct jobs *j, const char *queue, int64_t *count);
/* The first of them that wait to be taken, in their order, or those in work; at most most. Those
 * that are delayed or held are not among them. In the task's arena. */
struct jobs_entry {
    struct str id;
    int64_t uid, version, priority, tries, since_ms;
};
MUST_CHECK int jobs_list(struct task *t, struct jobs *j, const char *queue, bool working,
                         size_t most, struct jobs_entry **out, size_t *count);
/* Of queue n: rows that are failed, and jobs that were set aside. */
MUST_CHECK int jobs_failures(struct task *t, struct jobs *j, size_t n, int64_t *count);

/* Stops a queue on all nodes, or lets it go on: jobs in hand are finished. ERR_NOT_FOUND: there is
 * no such queue. ERR_UNAVAILABLE, ERR_UNCERTAIN: a store is away; if MySQL has it, Redis follows by
 * the next round of jobs_refill_role. */
struct admin_deed;
MUST_CHECK int jobs_pause(struct task *t, struct jobs *j, struct str queue, bool paused,
                          const struct admin_deed *by);
/* Failed rows are pending again, and pushed by the next round of jobs_refill_role, and jobs that
 * were set aside wait again; or failed rows are deleted. *count of them, at most JOBS_BATCH rows at
 * a time. ERR_NOT_FOUND: there is no such queue, or it has no rows. ERR_CONFLICT: its rows are
 * kept. */
#define JOBS_BATCH 1000
MUST_CHECK int jobs_retry_failed(struct task *t, struct jobs *j, struct str queue,
                                 const struct admin_deed *by, int64_t *count);
MUST_CHECK int jobs_drop_failed(struct task *t, struct jobs *j, struct str queue,
                                const struct admin_deed *by, int64_t *count);

/* Renews the leases of what is in hand. On every node, every JOBS_KEEP_EACH_MS. */
role_fn jobs_keep_role;
/* Pushes rows that Redis has not heard of: all of them after a restart of Redis, else those that
 * were changed lately. With a lock, every JOBS_FILL_EACH_MS. arg of all: a struct jobs. */
role_fn jobs_refill_role;
/* The same of kinds that are .soon, if one has rows that wait and none in its queue. With a lock of
 * its own, every JOBS_SOON_EACH_MS. */
role_fn jobs_soon_role;
#endif
