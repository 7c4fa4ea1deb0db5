/* What wakes a node without work when another node pushes. Each queue has a stream of one entry in
 * Redis, which the scripts replace when jobs wait where none did; a call that blocks (XREAD) waits
 * for the streams of all queues, on a connection of its own. So a job begins within a round trip,
 * on any node, and a node without work asks Redis twice a minute for this, and each queue once in
 * JOBS_IDLE_MS in case that a wake was lost: an entry says no more than "look". */
#include <string.h>

#include "base/log.h"
#include "engine/jobs/jobs_private.h"
#include "loop/backoff.h"

#define BLOCK_MS   STR("30000") /* less than JOBS_WAKE_MS */
#define ID_BYTES   48
#define WORDS      4 /* XREAD BLOCK ms STREAMS */
#define FIRST_ID   "0"
#define RETRY_MS   100
#define RETRY_MOST 5000

struct waker {
    struct jobs *jobs;
    uint64_t epoch;                      /* of the connection that ids were read on */
    char ids[JOBS_QUEUES_MAX][ID_BYTES]; /* of the entry seen last, by queue */
};

/* After a restart of Redis entries may begin anew. */
static void forget(struct waker *w)
{
    w->epoch = redis_epoch(w->jobs->options.redis_wake);
    for (size_t i = 0; i < w->jobs->count; i++)
        memcpy(w->ids[i], FIRST_ID, sizeof FIRST_ID);
}

/* {stream, {{id, fields}, …}}: the last id. */
static struct str last_id(const struct redis_reply *stream)
{
    if (stream->type != REDIS_ARRAY || stream->count != 2 || stream->items[1]->count == 0)
        return STR_NULL;
    const struct redis_reply *entry = stream->items[1]->items[stream->items[1]->count - 1];
    return entry->count >= 1 && entry->items[0]->type == REDIS_STRING ? entry->items[0]->str
                                                                      : STR_NULL;
}

static void note(struct waker *w, const struct redis_reply *stream)
{
    struct str id = last_id(stream);
    for (size_t i = 0; id.p && id.n < ID_BYTES && i < w->jobs->count; i++) {
        struct jobs_queue *q = w->jobs->queues[i];
        if (!str_eq(stream->items[0]->str, q->keys.wake))
            continue;
        memcpy(w->ids[i], id.p, id.n + 1);
        jobs_wake(q);
    }
}

static int await_entries(struct task *t, struct waker *w)
{
    struct jobs *j = w->jobs;
    const struct redis_reply *r;
    struct str argv[WORDS + 2 * JOBS_QUEUES_MAX] = {STR("XREAD"), STR("BLOCK"), BLOCK_MS,
                                                    STR("STREAMS")};
    if (w->epoch != redis_epoch(j->options.redis_wake))
        forget(w);
    for (size_t i = 0; i < j->count; i++) {
        argv[WORDS + i] = j->queues[i]->keys.wake;
        argv[WORDS + j->count + i] = str_of(w->ids[i]);
    }
    int err = redis_argv(t, j->options.redis_wake, j->queues[0]->keys.wake, WORDS + 2 * j->count,
                         argv, &r);
    for (size_t i = 0; !err && r->type == REDIS_ARRAY && i < r->count; i++)
        note(w, r->items[i]);
    return err;
}

void jobs_waker(struct task *t, void *arg)
{
    struct waker w = {.jobs = arg};
    struct backoff retry = {.ms = RETRY_MS, .ms_max = RETRY_MOST};
    int err = 0;
    forget(&w);
    while (err != ERR_CANCELED) {
        struct task_scope scope = task_scope(t);
        err = await_entries(t, &w);
        if (err && err != ERR_CANCELED)
            log_debug("jobs", "Redis does not say when jobs are pushed: %s", task_error(t));
        task_scope_end(t, scope);
        if (err && err != ERR_CANCELED)
            err = backoff_wait(t, &retry);
        else
            retry = (struct backoff){.ms = RETRY_MS, .ms_max = RETRY_MOST};
    }
}
