/* pay.h -- what jobs cost (JOB-2).
 *
 * A job has a price, frozen when it is promised, and paid once, when it is done: by a deduction
 * whose request id is "<queue>:<id>", so that a job that is worked on twice finds it paid. Always
 * true, whatever dies when:
 *   - from its promise to its end a job has a row in job_reserve, so that its price is not free to
 *     be promised again (runs/reserve.h). The row is written with the row of the job
 *     (runs/promise.h), and removed in the transaction that brings that one to its end;
 *   - a job is paid before its row is completed. So a completed one is paid, and one that fails or
 *     is cancelled before has cost nothing. A job that was paid, and whose row was not completed
 *     because its node died, is worked on again, and completed without another payment.
 *
 * jobs_paid_role looks for what contradicts this, once a minute, and mends it: completed rows
 * whose payment MySQL lacks (a database that was restored) are charged by the same id; what is
 * reserved for jobs that are final, or gone, is free again.
 *
 * A job that is done again and again for the same id (a text that is changed) is paid each time: a
 * column of its row says as what (job_rows.paid_as), and job_pay is called with that as id. */
#ifndef ENGINE_JOBS_PAY_H
#define ENGINE_JOBS_PAY_H

#include "engine/jobs/jobs.h"

struct ledger;

/* In the transaction that writes the row of the job. Idempotent. */
MUST_CHECK int job_reserve(struct task *t, struct sql *c, const char *queue, struct str id,
                           int64_t uid, int64_t cents);
/* The same for all rows that are pending, whose positions are from first to last: one statement for
 * any number of jobs. */
MUST_CHECK int jobs_reserve(struct task *t, struct sql *c, const char *queue,
                            const struct job_rows *r, int64_t first, int64_t last);
/* In the transaction that brings the row of the job to its end, where the engine does not do that:
 * JOB_WRITTEN, a cancellation. Idempotent. */
MUST_CHECK int job_free(struct task *t, struct sql *c, const char *queue, struct str id);

/* The same for all rows that are final, from first to last. */
MUST_CHECK int jobs_free_ended(struct task *t, struct sql *c, const char *queue,
                               const struct job_rows *r, int64_t first, int64_t last);

/* Returns when the payment is in MySQL. 0 cents cost nothing. ERR_FUNDS: too little is left; as the
 * result of a job_fn it holds the user's jobs; so does ERR_RATE: the account is stopped until the
 * operator has looked at it. ERR_UNAVAILABLE: a store is away, nothing was taken.
 * ERR_UNCERTAIN: perhaps taken; the next try finds out. */
MUST_CHECK int job_pay(struct task *t, struct ledger *l, const char *queue, const struct job *j,
                       int64_t cents);

#define JOBS_PAID_EACH_MS 60000
struct jobs_paid {
    struct jobs *jobs;
    struct ledger *ledger;
    int64_t *charged; /* metric; NULL: none */
};
role_fn jobs_paid_role; /* arg: a struct jobs_paid */
#endif
