#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/jobs/jobs_private.h"
#include "engine/store/scripts.h"

#define POLL_MS      200  /* between looks for jobs that could not be taken */
#define GIVE_BACK_MS 1000 /* of the time to drain, for jobs that are given back */
#define INFO_WORDS   8

/* --- one job --- */

void jobs_release(struct jobs_hand *h)
{
    struct jobs_queue *q = h->queue;
    list_del(&h->link);
    list_del(&h->begun);
    list_del(&h->ended);
    q->count--;
    q->early -= h->stage != JOBS_ASKED;
    metric_set(q->working, (int64_t)q->count);
    jobs_wake(q);
    if (q->count == 0)
        waitq_wake_all(&q->jobs->idle);
    free(h);
}

static int lost_always(struct task *t, const struct jobs_queue *q, const struct job *job)
{
    job_reason(job, JOB_LOST);
    return task_fail(t, ERR_INTERNAL, "each of %" PRId64 " tries was lost with its node",
                     q->kind->tries_max);
}

static void work_task(struct task *t, void *arg)
{
    struct jobs_hand *h = arg;
    struct jobs_queue *q = h->queue;
    const struct job_kind *k = q->kind;
    struct task_scope scope = task_scope(t);
    int err;
    h->task = t;
    (void)task_deadline(t, k->deadline_ms);
    if (h->lost)
        err = ERR_CANCELED;
    else if (h->job.tries > k->tries_max)
        err = lost_always(t, q, &h->job);
    else
        err = k->work(t, q->arg, &h->job);
    jobs_ask_over(t, h);
    const char *why = *task_error(t) ? task_error(t) : err_name(err);
    jobs_decide(h, err, why, loop_jitter(task_loop(t), k->backoff_ms));
    metric_add(q->work_us, loop_now_us(task_loop(t)) - h->began_us);
    h->task = NULL;
    task_scope_end(t, scope);
    list_push(&q->ended, &h->ended);
    waitq_wake_one(&q->end);
}

/* "version tries priority order uid since lease next" */
bool jobs_info_read(struct str text, struct job *out)
{
    int64_t v[INFO_WORDS - 2];
    for (size_t i = 0; i < INFO_WORDS - 2; i++)
        if (!text.p || !str_to_i64(str_cut(&text, ' '), &v[i]))
            return false;
    out->version = v[0];
    out->tries = v[1];
    out->priority = v[2];
    out->uid = v[4];
    out->since_ms = v[5];
    return true;
}

static void begin(struct task *t, struct jobs_queue *q, struct str id, struct str info,
                  const char *lease)
{
    struct job job = {.generation = generation_at(q->jobs->options.redis, q->keys.state)};
    if (id.n > JOBS_ID_BYTES_MAX || !jobs_info_read(info, &job)) {
        log_error("jobs", "queue %s has a job that cannot be read: '%.*s'; it is left aside",
                  q->kind->name, STR_ARG(id));
        return;
    }
    struct jobs_hand *h = check_memory(calloc(1, sizeof *h));
    memcpy(h->id, id.p, id.n);
    memcpy(h->lease, lease, sizeof h->lease);
    h->queue = q;
    h->job = job;
    h->job.id = str_from(h->id, id.n);
    h->job.reason = &h->reason;
    h->job.hand = h;
    h->job.asks = &h->asks;
    h->began_us = loop_now_us(task_loop(t));
    list_init(&h->begun);
    list_init(&h->ended);
    list_push(&q->hands, &h->link);
    q->count++;
    q->early++;
    metric_set(q->working, (int64_t)q->count);
    metric_add(q->wait_us, (loop_wall_ms(task_loop(t)) - job.since_ms) * 1000);
    if (task_go(q->jobs->group, q->kind->name, work_task, h)) {
        jobs_decide(h, ERR_CANCELED, "no stack is free", 0);
        list_push(&q->ended, &h->ended);
    } else if (q->kind->rows) {
        list_push(&q->begun, &h->begun);
    }
    waitq_wake_one(&q->end);
}

/* --- taking --- */

/* *wait_ms: until there may be more. */
static int take(struct task *t, struct jobs_queue *q, int64_t room, int64_t *wait_ms)
{
    struct jobs *j = q->jobs;
    const struct jobs_keys *k = &q->keys;
    struct arena *a = task_arena(t);
    char lease[JOBS_LEASE_BYTES] = "";
    const struct redis_reply *r;
    int64_t count = room < JOBS_TAKE_MAX ? room : JOBS_TAKE_MAX;
    snprintf(lease, sizeof lease, "%016" PRIx64 ":%" PRIu64, j->options.incarnation, ++j->takes);
    int err = SCRIPT(t, j->options.redis, jobs_take, &r, .waiting = k->waiting, .delays = k->delays,
                     .leases = k->leases, .info = k->info, .held = k->held, .probes = k->probes,
                     .aside = k->aside, .state = k->state, .count = str_int(a, count),
                     .work_max = str_int(a, q->kind->concurrency_all), .lease = str_of(lease),
                     .ms = str_int(a, q->kind->lease_ms));
    if (err)
        return err;
    if (r->type != REDIS_ARRAY || r->count < 3 || r->count % 2 == 0)
        return task_fail(t, ERR_PROTO, "script jobs_take returned something else");
    q->line = r->items[1]->integer;
    metric_set(q->waiting, q->line);
    for (size_t i = 3; i < r->count; i += 2)
        begin(t, q, r->items[i]->str, r->items[i + 1]->str, lease);
    int64_t soonest_ms = r->items[2]->integer;
    int64_t poll_ms = j->options.redis_wake && q->line == 0 ? JOBS_IDLE_MS : POLL_MS;
    bool more = (int64_t)(r->count - 3) / 2 == count && q->line > 0;
    *wait_ms = more ? 0 : soonest_ms >= 0 && soonest_ms < poll_ms ? soonest_ms + 1 : poll_ms;
    return 0;
}

static bool rests(const struct jobs *j)
{
    return j->options.drained && *j->options.drained;
}

static int await_work(struct task *t, struct jobs_queue *q, int64_t ms)
{
    if (q->woken || ms == 0)
        return task_yield(t);
    int64_t old = task_deadline(t, ms);
    int err = waitq_wait(t, &q->wake);
    task_deadline_restore(t, old);
    return err == ERR_TIMEOUT ? 0 : err;
}

void jobs_pump(struct task *t, void *arg)
{
    struct jobs_queue *q = arg;
    int err = 0;
    while (!err && !q->jobs->draining) {
        struct task_scope scope = task_scope(t);
        int64_t room = jobs_room(q), wait_ms = POLL_MS;
        q->woken = false;
        if (room > 0 && !rests(q->jobs) && take(t, q, room, &wait_ms))
            log_debug("jobs", "nothing is taken from queue %s: %s", q->kind->name, task_error(t));
        task_scope_end(t, scope);
        err = await_work(t, q, wait_ms);
    }
}

/* --- leases --- */

static void keep_reply(struct jobs_hand *h, int64_t kept)
{
    if (kept == 1 || h->lost)
        return;
    h->lost = kept == 0;
    if (h->task)
        task_cancel(h->task);
}

static int keep(struct task *t, struct jobs_queue *q)
{
    struct arena *a = task_arena(t);
    size_t n = 0;
    struct jobs_hand **hands = ARENA_ARRAY(a, struct jobs_hand *, q->count);
    struct str *args = ARENA_ARRAY(a, struct str, q->count * 2);
    int64_t *kept = ARENA_ARRAY(a, int64_t, q->count);
    list_each (it, &q->hands) {
        struct jobs_hand *h = list_entry(it, struct jobs_hand, link);
        args[n * 2] = str_dup(a, h->job.id);
        args[n * 2 + 1] = str_dup(a, str_of(h->lease));
        hands[n++] = h;
    }
    int err = SCRIPT_NUMBERS(t, q->jobs->options.redis, jobs_keep, n, kept,
                             .leases = q->keys.leases, .info = q->keys.info,
                             .ms = str_int(a, q->kind->lease_ms), .jobs = {args, n * 2});
    if (err)
        return err;
    /* Hands may have been released during the call: only those that are still listed count. */
    list_each (it, &q->hands)
        for (size_t i = 0; i < n; i++) {
            struct jobs_hand *h = list_entry(it, struct jobs_hand, link);
            if (hands[i] == h && str_eq(args[i * 2], h->job.id) &&
                str_eq(args[i * 2 + 1], str_of(h->lease)))
                keep_reply(h, kept[i]);
        }
    return 0;
}

int jobs_keep_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct jobs *j = arg;
    int64_t now_ms = loop_now_ms(task_loop(t));
    int err = 0;
    (void)turn;
    for (size_t i = 0; !err && i < j->count; i++) {
        struct jobs_queue *q = j->queues[i];
        if (q->count == 0 || now_ms - q->kept_ms < q->kind->lease_ms / 4)
            continue;
        err = keep(t, q);
        if (!err)
            q->kept_ms = now_ms;
    }
    return err ? err : jobs_claims_keep(t, j);
}

/* --- draining --- */

static bool in_hand(const struct jobs *j)
{
    for (size_t i = 0; i < j->count; i++)
        if (j->queues[i]->count)
            return true;
    return false;
}

static void await_idle(struct task *t, struct jobs *j, int64_t ms)
{
    int err = 0;
    int64_t old = task_deadline(t, ms > 0 ? ms : 0);
    while (in_hand(j) && !err)
        err = waitq_wait(t, &j->idle);
    task_deadline_restore(t, old);
}

void jobs_drain(struct task *t, struct jobs *j, int64_t ms)
{
    j->draining = true;
    for (size_t i = 0; i < j->count; i++)
        waitq_wake_all(&j->queues[i]->wake);
    jobs_drop_line(j);
    await_idle(t, j, ms - GIVE_BACK_MS);
    for (size_t i = 0; i < j->count; i++)
        list_each (it, &j->queues[i]->hands) {
            struct jobs_hand *h = list_entry(it, struct jobs_hand, link);
            if (h->task)
                task_cancel(h->task);
        }
    await_idle(t, j, GIVE_BACK_MS);
}
