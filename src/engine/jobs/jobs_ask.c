/* How many jobs of a kind that calls the AI are asking at once, and how many besides are prepared
 * for that, or write what the AI has said.
 *
 * A slot that waited for the next job to be taken, and for its document to be read, would stand
 * idle after each answer. So some jobs are taken ahead: they do what comes before their first
 * question, and wait in line for a slot. And a job that has its last answer leaves its slot before
 * it writes and pays.
 *
 *   taken -> EARLY -> IN_LINE -> ASKS -> ASKED -> released
 *                                at most concurrency
 *            at most concurrency + ahead
 *            at most concurrency + 2 * spare, of all stages
 *
 * A job that waits in line could be worked on by another node. So ahead grows only while answers
 * come within AHEAD_MS, shrinks with each that takes longer, and is no more than this node's part
 * of the jobs that wait in Redis; and a job that is in line for LINE_MS is given back. */
#include "engine/jobs/jobs_private.h"

#define AHEAD_MS 1000
#define LINE_MS  3000

static int64_t spare_of(const struct jobs_queue *q)
{
    return q->kind->concurrency < JOBS_SPARE_MAX ? q->kind->concurrency : JOBS_SPARE_MAX;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t jobs_room(const struct jobs_queue *q)
{
    int64_t most = q->kind->concurrency;
    if (!q->kind->calls_ai)
        return most - (int64_t)q->count;
    const struct members *m = q->jobs->claimant.members;
    int64_t ahead = least(q->ahead, q->line / (m && m->count ? (int64_t)m->count : 1));
    return least(most + ahead - (int64_t)q->early, most + 2 * spare_of(q) - (int64_t)q->count);
}

/* --- slots --- */

static int await_slot(struct task *t, struct jobs_hand *h)
{
    struct jobs_queue *q = h->queue;
    int64_t old = task_deadline(t, LINE_MS);
    h->stage = JOBS_IN_LINE;
    int err = q->jobs->draining ? ERR_CANCELED : sem_get(t, &q->slots);
    h->stage = JOBS_EARLY;
    task_deadline_restore(t, old);
    if (err != ERR_TIMEOUT || task_time_left_ms(t) <= 0)
        return err;
    q->ahead = 0;
    return task_fail(t, ERR_CANCELED, "no slot was free for it");
}

static void leave_slot(struct jobs_queue *q)
{
    sem_put(&q->slots);
    jobs_wake(q);
}

int job_ask_begin(struct task *t, const struct job *job)
{
    struct jobs_hand *h = job->hand;
    if (!h || !h->queue->kind->calls_ai)
        return 0;
    struct jobs_queue *q = h->queue;
    check(h->stage == JOBS_EARLY);
    int err = sem_try(&q->slots) ? 0 : await_slot(t, h);
    if (err)
        return err;
    err = job->uid ? jobs_claim(t, q->jobs, job) : 0;
    if (err) {
        leave_slot(q);
        return err;
    }
    h->stage = JOBS_ASKS;
    h->asks = true;
    h->asks_ms = loop_now_ms(q->jobs->group->loop);
    return 0;
}

void job_ask_end(const struct job *job)
{
    struct jobs_hand *h = job->hand;
    if (!h || h->stage != JOBS_ASKS)
        return;
    struct jobs_queue *q = h->queue;
    bool quick = loop_now_ms(q->jobs->group->loop) - h->asks_ms <= AHEAD_MS;
    q->ahead = quick ? least(q->ahead + 1, spare_of(q)) : q->ahead / 2;
    h->stage = JOBS_ASKED;
    h->asks = false;
    q->early--;
    if (job->uid)
        jobs_unclaim(q->jobs, job->uid);
    leave_slot(q);
}

void jobs_ask_over(struct task *t, struct jobs_hand *h)
{
    job_ask_end(&h->job);
    if (h->stage == JOBS_ASKED && h->job.uid) /* it had a claim */
        jobs_claim_settle(t, h->queue->jobs, h->job.uid);
}

void jobs_drop_line(struct jobs *j)
{
    for (size_t i = 0; i < j->count; i++)
        list_each (it, &j->queues[i]->hands) {
            struct jobs_hand *h = list_entry(it, struct jobs_hand, link);
            if (h->stage == JOBS_IN_LINE)
                task_cancel(h->task);
        }
}
