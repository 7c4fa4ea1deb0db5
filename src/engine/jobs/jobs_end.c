#include <stdio.h>

#include "base/log.h"
#include "engine/jobs/jobs_private.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define END_MAX        256 /* jobs in one transaction */
#define BACKOFF_MAX_MS 60000
#define DONE_ARGS      3
#define AGAIN_ARGS     6
#define ASIDE          (-1) /* as the delay of a job that is given back */

/* --- what becomes of it --- */

static void again(struct jobs_hand *h, bool tried, int64_t delay_ms)
{
    h->outcome = JOBS_AGAIN;
    h->tried = tried;
    h->delay_ms = delay_ms;
}

/* The first delay, jittered, doubled with each try. */
static int64_t backoff_of(const struct jobs_hand *h, int64_t jitter_ms)
{
    int64_t ms = jitter_ms;
    for (int64_t i = 1; i < h->job.tries && ms < BACKOFF_MAX_MS; i++)
        ms *= 2;
    return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

void jobs_decide(struct jobs_hand *h, int result, const char *why, int64_t jitter_ms)
{
    snprintf(h->error, sizeof h->error, "%s", result < 0 ? why : "");
    if (h->lost)
        h->outcome = JOBS_LOST;
    else if (result == 0)
        h->outcome = JOBS_COMPLETED;
    else if (result == JOB_WRITTEN)
        h->outcome = JOBS_GONE;
    else if (result == ERR_CANCELED)
        again(h, false, 0);
    else if (result == ERR_FUNDS || result == ERR_RATE)
        h->outcome = JOBS_HELD;
    else if (result == ERR_UNAVAILABLE)
        again(h, false, backoff_of(h, jitter_ms));
    else if ((err_may_pass(result) || result == ERR_CLOSED) &&
             h->job.tries < h->queue->kind->tries_max)
        again(h, true, backoff_of(h, jitter_ms));
    else
        h->outcome = JOBS_FAILED;
}

/* --- Redis --- */

static int64_t priority_of(const struct jobs_hand *h)
{
    int64_t p = h->job.priority + (h->outcome == JOBS_AGAIN && h->tried ? h->queue->kind->step : 0);
    return p < JOB_PRIORITY_MAX ? p : JOB_PRIORITY_MAX;
}

static bool leaves(const struct jobs_hand *h)
{
    return h->outcome == JOBS_COMPLETED || h->outcome == JOBS_GONE || h->outcome == JOBS_FAILED;
}

static int tell_done(struct task *t, struct jobs_queue *q, struct jobs_hand **hands, size_t count)
{
    struct arena *a = task_arena(t);
    const struct jobs_keys *k = &q->keys;
    struct str *args = ARENA_ARRAY(a, struct str, count * DONE_ARGS);
    int64_t *out = ARENA_ARRAY(a, int64_t, count);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!leaves(hands[i]))
            continue;
        args[n * DONE_ARGS] = hands[i]->job.id;
        args[n * DONE_ARGS + 1] = str_of(hands[i]->lease);
        args[n * DONE_ARGS + 2] = hands[i]->outcome == JOBS_FAILED ? STR("failed") : STR("done");
        n++;
    }
    return n == 0 ? 0
                  : SCRIPT_NUMBERS(t, q->jobs->options.redis, jobs_done, n, out,
                                   .waiting = k->waiting, .leases = k->leases, .info = k->info,
                                   .users = k->users, .probes = k->probes, .state = k->state,
                                   .jobs = {args, n * DONE_ARGS});
}

static int tell_again(struct task *t, struct jobs_queue *q, struct jobs_hand **hands, size_t count)
{
    struct arena *a = task_arena(t);
    const struct jobs_keys *k = &q->keys;
    struct str *args = ARENA_ARRAY(a, struct str, count * AGAIN_ARGS);
    int64_t *out = ARENA_ARRAY(a, int64_t, count);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct jobs_hand *h = hands[i];
        struct str *at = args + n * AGAIN_ARGS;
        if (h->outcome != JOBS_AGAIN && h->outcome != JOBS_HELD && h->outcome != JOBS_ASIDE)
            continue;
        at[0] = h->job.id;
        at[1] = str_of(h->lease);
        at[2] = str_int(a, h->outcome == JOBS_ASIDE ? ASIDE : h->delay_ms);
        at[3] = str_int(a, priority_of(h));
        at[4] = h->tried ? STR("1") : STR("0");
        at[5] = str_int(a, h->outcome == JOBS_HELD ? JOBS_HOLD_MS : 0);
        n++;
    }
    return n == 0 ? 0
                  : SCRIPT_NUMBERS(t, q->jobs->options.redis, jobs_again, n, out,
                                   .waiting = k->waiting, .delays = k->delays, .leases = k->leases,
                                   .info = k->info, .held = k->held, .probes = k->probes,
                                   .state = k->state, .aside = k->aside, .wake = k->wake,
                                   .jobs = {args, n * AGAIN_ARGS});
}

/* --- a batch --- */

struct batch {
    struct jobs_hand *begun[END_MAX], *ended[END_MAX];
    size_t begun_count, ended_count;
};

/* A job that has begun and ended by now is told of once. */
static void gather(struct jobs_queue *q, struct batch *b)
{
    b->begun_count = b->ended_count = 0;
    list_each (it, &q->ended)
        if (b->ended_count < END_MAX) {
            struct jobs_hand *h = list_entry(it, struct jobs_hand, ended);
            list_del(&h->begun);
            b->ended[b->ended_count++] = h;
        }
    while (b->begun_count < END_MAX && !list_empty(&q->begun)) {
        struct jobs_hand *h = list_entry(list_pop(&q->begun), struct jobs_hand, begun);
        b->begun[b->begun_count++] = h;
    }
}

static void count_ends(struct jobs_queue *q, struct batch *b)
{
    for (size_t i = 0; i < b->ended_count; i++) {
        const struct jobs_hand *h = b->ended[i];
        metric_add(q->done, h->outcome == JOBS_COMPLETED || h->outcome == JOBS_GONE);
        metric_add(q->failed, h->outcome == JOBS_FAILED);
        metric_add(q->again, h->outcome == JOBS_AGAIN);
        metric_add(q->held, h->outcome == JOBS_HELD);
        metric_add(q->aside, h->outcome == JOBS_ASIDE);
        if (h->outcome == JOBS_ASIDE)
            log_error(
                "jobs",
                "%s of queue %s is set aside after %lld tries: its row cannot be written: %s; "
                "retry the failures of the queue when that is mended",
                h->id, q->kind->name, (long long)h->job.tries, h->error);
        else if (h->outcome == JOBS_FAILED || (h->outcome == JOBS_AGAIN && h->tried))
            log_warn("jobs", "%s of queue %s was not done: %s; %s", h->id, q->kind->name, h->error,
                     h->outcome == JOBS_FAILED ? "it is given up" : "it is tried again");
    }
}

static int give_up(struct task *t, struct jobs_queue *q, struct batch *b)
{
    int err = 0;
    for (size_t i = 0; !err && q->kind->give_up && i < b->ended_count; i++)
        if (b->ended[i]->outcome == JOBS_FAILED)
            err = q->kind->give_up(t, q->arg, &b->ended[i]->job, b->ended[i]->error);
    return err_may_pass(err) || err == ERR_CANCELED ? err : 0;
}

/* --- rows that cannot be written --- */

/* An error of the server, or of what it is sent, that comes again with each repeat. */
static bool lasts(int err)
{
    return err && err != ERR_CANCELED && err != ERR_CLOSED && err != ERR_CONFLICT &&
           !err_may_pass(err);
}

/* A job that would leave its queue is tried again, as if its work had failed, and set aside in the
 * end. One that waits again does so, whatever its row says. */
static void refuse(struct jobs_hand *h, const char *why, int64_t jitter_ms)
{
    if (!leaves(h))
        return;
    snprintf(h->error, sizeof h->error, "%s", why);
    h->reason = NULL;
    if (h->job.tries < h->queue->kind->tries_max)
        again(h, true, backoff_of(h, jitter_ms));
    else
        h->outcome = JOBS_ASIDE;
}

/* Each by itself, so that one does not keep the others. That jobs have begun is left out: their
 * rows say so no later than their end. */
static int write_each(struct task *t, struct jobs_queue *q, struct batch *b)
{
    for (size_t i = 0; i < b->ended_count; i++) {
        struct jobs_hand *h = b->ended[i];
        struct task_scope scope = task_scope(t);
        int err = h->unwritten ? 0 : jobs_rows_write(t, q, NULL, 0, &h, 1);
        h->unwritten |= lasts(err);
        if (lasts(err)) {
            refuse(h, task_error(t), loop_jitter(task_loop(t), q->kind->backoff_ms));
            err = 0;
        }
        task_scope_end(t, scope);
        if (err)
            return err;
    }
    return 0;
}

static int write_rows(struct task *t, struct jobs_queue *q, struct batch *b)
{
    if (!q->kind->rows)
        return 0;
    int err = jobs_rows_write(t, q, b->begun, b->begun_count, b->ended, b->ended_count);
    return lasts(err) ? write_each(t, q, b) : err;
}

/* Rows first: a job leaves its queue only when its row is final. */
static int tell(struct task *t, struct jobs_queue *q, struct batch *b)
{
    int err = give_up(t, q, b);
    if (!err)
        err = write_rows(t, q, b);
    if (!err)
        err = tell_done(t, q, b->ended, b->ended_count);
    if (!err)
        err = tell_again(t, q, b->ended, b->ended_count);
    return err;
}

/* While MySQL is away it is tried again; leases are kept meanwhile. What Redis is not told, it
 * finds out: the lease ends, and the job is taken again and found done. */
static void end_some(struct task *t, struct jobs_queue *q, struct batch *b)
{
    struct backoff wait = {.ms = 50, .ms_max = 2000};
    int err;
    gather(q, b);
    for (;;) {
        struct task_scope scope = task_scope(t);
        err = tell(t, q, b);
        bool away = err_may_pass(err) && q->kind->rows && sql_pool_away(q->jobs->options.sql);
        if (err && !away && err != ERR_CANCELED)
            log_warn("jobs", "queue %s is not told what has ended: %s; it is done again",
                     q->kind->name, *task_error(t) ? task_error(t) : err_name(err));
        task_scope_end(t, scope);
        if (!away || backoff_wait(t, &wait))
            break;
    }
    if (!err)
        count_ends(q, b);
    for (size_t i = 0; i < b->ended_count; i++)
        jobs_release(b->ended[i]);
}

void jobs_ender(struct task *t, void *arg)
{
    struct jobs_queue *q = arg;
    struct batch *b = ARENA_ARRAY(task_arena(t), struct batch, 1);
    while (!task_canceled(t)) {
        if (!list_empty(&q->begun) || !list_empty(&q->ended))
            end_some(t, q, b);
        else if (waitq_wait(t, &q->end))
            return;
    }
}
