#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "engine/jobs/jobs_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define PUSH_MAX      500 /* jobs in one call */
#define PUSH_ARGS     7
#define USER_FULL     (-1) /* of jobs_push.lua */
#define DELAYED_LOOKS "99" /* the index of the last delayed job that is asked for its age */

/* --- the whole --- */

struct jobs *jobs_new(const struct jobs_options *o)
{
    struct jobs *j = check_memory(calloc(1, sizeof *j));
    j->options = *o;
    arena_init(&j->arena);
    waitq_init(&j->idle);
    return j;
}

void jobs_free(struct jobs *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->count; i++) {
        check(j->queues[i]->count == 0); /* jobs_task has ended */
        free(j->queues[i]);
    }
    jobs_claims_free(j);
    arena_release(&j->arena);
    free(j);
}

static struct jobs_keys keys_of(struct arena *a, const char *queue)
{
    return (struct jobs_keys){.waiting = key_jobs(a, queue),
                              .delays = key_jobs_part(a, queue, "delays"),
                              .leases = key_jobs_part(a, queue, "leases"),
                              .info = key_jobs_part(a, queue, "info"),
                              .users = key_jobs_part(a, queue, "users"),
                              .held = key_jobs_part(a, queue, "held"),
                              .probes = key_jobs_part(a, queue, "probes"),
                              .state = key_jobs_part(a, queue, "state"),
                              .aside = key_jobs_part(a, queue, "aside"),
                              .wake = key_jobs_part(a, queue, "wake")};
}

static void add_metrics(struct jobs_queue *q)
{
    struct metrics *m = q->jobs->options.metrics;
    const char *labels = arena_printf(&q->jobs->arena, "queue=\"%s\"", q->kind->name);
    q->waiting = metric(m, METRIC_GAUGE, "millrace_jobs_waiting", labels,
                        "Jobs that wait to be taken, as this node saw it last.");
    q->working = metric(m, METRIC_GAUGE, "millrace_jobs_working", labels, "Jobs in hand.");
    q->done = metric(m, METRIC_COUNTER, "millrace_jobs_done_total", labels,
                     "Jobs that this node has done.");
    q->failed = metric(m, METRIC_COUNTER, "millrace_jobs_failed_total", labels,
                       "Jobs that this node has given up.");
    q->again = metric(m, METRIC_COUNTER, "millrace_jobs_retried_total", labels,
                      "Jobs that this node has given back, to be tried again.");
    q->held = metric(m, METRIC_COUNTER, "millrace_jobs_held_total", labels,
                     "Jobs given back because their user lacks permission or money.");
    q->aside = metric(m, METRIC_COUNTER, "millrace_jobs_aside_total", labels,
                      "Jobs that this node has set aside because their row cannot be written.");
    q->work_us = metric(m, METRIC_COUNTER_US, "millrace_jobs_work_seconds_total", labels,
                        "Time that jobs were worked on.");
    q->wait_us = metric(m, METRIC_COUNTER_US, "millrace_jobs_wait_seconds_total", labels,
                        "Time from the push of a job to the begin of its last try.");
}

void jobs_add(struct jobs *j, const struct job_kind *k, void *arg)
{
    check(j->count < JOBS_QUEUES_MAX && !j->group && !jobs_find(j, str_of(k->name)));
    check(k->concurrency > 0 && k->lease_ms > 0 && k->deadline_ms > 0 && k->tries_max > 0);
    struct jobs_queue *q = check_memory(calloc(1, sizeof *q));
    q->jobs = j;
    q->kind = k;
    q->arg = arg;
    q->keys = keys_of(&j->arena, k->name);
    list_init(&q->hands);
    list_init(&q->begun);
    list_init(&q->ended);
    sem_init(&q->slots, (size_t)k->concurrency);
    waitq_init(&q->wake);
    waitq_init(&q->end);
    add_metrics(q);
    j->queues[j->count++] = q;
}

struct jobs_queue *jobs_find(const struct jobs *j, struct str name)
{
    for (size_t i = 0; i < j->count; i++)
        if (str_eq(name, str_of(j->queues[i]->kind->name)))
            return j->queues[i];
    return NULL;
}

void jobs_task(struct task *t, void *arg)
{
    struct jobs *j = arg;
    struct group g;
    group_init(&g, task_loop(t));
    j->group = &g;
    jobs_claims_open(j, &g);
    for (size_t i = 0; i < j->count; i++) {
        check(task_go(&g, "jobs", jobs_pump, j->queues[i]) == 0);
        check(task_go(&g, "jobs-end", jobs_ender, j->queues[i]) == 0);
    }
    if (j->options.redis_wake && j->count)
        check(task_go(&g, "jobs-wake", jobs_waker, j) == 0);
    int err = group_join(t, &g);
    (void)err; /* it ends when it is cancelled */
    for (size_t i = 0; i < j->count; i++)
        while (!list_empty(&j->queues[i]->hands))
            jobs_release(list_entry(j->queues[i]->hands.next, struct jobs_hand, link));
    j->group = NULL;
}

/* --- pushing --- */

static int push_some(struct task *t, struct jobs_queue *q, const struct job_push *list,
                     size_t count, enum jobs_room *room)
{
    struct arena *a = task_arena(t);
    struct str *args = ARENA_ARRAY(a, struct str, count * PUSH_ARGS);
    for (size_t i = 0; i < count; i++) {
        const struct job_push *p = &list[i];
        struct str *at = args + i * PUSH_ARGS;
        check(p->id.n > 0 && p->id.n <= JOBS_ID_BYTES_MAX && p->uid >= 0 && p->version >= 0);
        check(p->priority >= 0 && p->priority <= JOB_PRIORITY_MAX);
        check(p->order >= 0 && p->order <= JOB_ORDER_MAX && p->delay_ms >= 0);
        at[0] = p->id;
        at[1] = str_int(a, p->uid);
        at[2] = str_int(a, p->version);
        at[3] = str_int(a, p->priority);
        at[4] = str_int(a, p->order);
        at[5] = str_int(a, p->since_ms > 0 ? p->since_ms : 0);
        at[6] = str_int(a, p->delay_ms);
    }
    int64_t *out = ARENA_ARRAY(a, int64_t, count + 1);
    int err = SCRIPT_NUMBERS(
        t, q->jobs->options.redis, jobs_push, count, out, .waiting = q->keys.waiting,
        .delays = q->keys.delays, .info = q->keys.info, .users = q->keys.users,
        .aside = q->keys.aside, .wake = q->keys.wake,
        .all_max = str_int(a, room ? q->kind->all_max : 0),
        .user_max = str_int(a, room ? q->kind->user_max : 0), .jobs = {args, count * PUSH_ARGS});
    for (size_t i = 0; !err && room && i < count; i++)
        if (out[i] < 0)
            *room = out[i] == USER_FULL ? JOBS_USER_FULL : JOBS_QUEUE_FULL;
    return err;
}

int jobs_push(struct task *t, struct jobs *j, const char *queue, const struct job_push *list,
              size_t count, enum jobs_room *room)
{
    struct jobs_queue *q = jobs_find(j, str_of(queue));
    check(q);
    int err = 0;
    if (room)
        *room = JOBS_ROOM;
    for (size_t done = 0; !err && done < count; done += PUSH_MAX) {
        struct arena_mark mark = arena_mark(task_arena(t));
        size_t some = count - done < PUSH_MAX ? count - done : PUSH_MAX;
        err = push_some(t, q, list + done, some, room);
        arena_reset(task_arena(t), mark);
        jobs_wake(q);
    }
    return err;
}

/* --- looking --- */

size_t jobs_count(const struct jobs *j)
{
    return j->count;
}

/* When a job was made that info tells of; 0: it tells of none. */
static int64_t since_of(const struct redis_reply *info)
{
    struct str rest = info->type == REDIS_STRING ? info->str : STR("");
    int64_t since_ms = 0;
    for (int i = 0; i < 5; i++)
        (void)str_cut(&rest, ' ');
    return rest.p && str_to_i64(str_cut(&rest, ' '), &since_ms) ? since_ms : 0;
}

/* The oldest of those that wait to be taken: by order within each priority, so the first of each is
 * asked. */
static int oldest_waiting(struct task *t, const struct jobs_queue *q, int64_t *first_ms)
{
    struct redis *r = q->jobs->options.redis;
    struct arena *a = task_arena(t);
    int64_t priority = 0;
    for (int err = 0; priority <= JOB_PRIORITY_MAX; priority++) {
        const struct redis_reply *found, *info;
        err = redis_call(t, r, q->keys.waiting, &found, STR("ZRANGEBYSCORE"), q->keys.waiting,
                         str_int(a, priority * (JOB_ORDER_MAX + 1)), STR("+inf"), STR("WITHSCORES"),
                         STR("LIMIT"), STR("0"), STR("1"));
        if (!err && found->count < 2)
            break;
        if (!err)
            err = redis_call(t, r, q->keys.info, &info, STR("HGET"), q->keys.info,
                             found->items[0]->str);
        if (err)
            return err;
        int64_t since_ms = since_of(info);
        if (since_ms && since_ms < *first_ms)
            *first_ms = since_ms;
        double score = strtod(found->items[1]->str.p, NULL);
        priority = (int64_t)(score / (double)(JOB_ORDER_MAX + 1));
    }
    return 0;
}

/* The oldest of those that are tried again next: while a service is away all jobs are here, and
 * come round within a minute. */
static int oldest_delayed(struct task *t, const struct jobs_queue *q, int64_t *first_ms)
{
    struct redis *r = q->jobs->options.redis;
    const struct redis_reply *found, *infos;
    int err = redis_call(t, r, q->keys.delays, &found, STR("ZRANGE"), q->keys.delays, STR("0"),
                         STR(DELAYED_LOOKS));
    if (err || found->count == 0)
        return err;
    struct str *words = ARENA_ARRAY(task_arena(t), struct str, found->count + 2);
    words[0] = STR("HMGET");
    words[1] = q->keys.info;
    for (size_t i = 0; i < found->count; i++)
        words[i + 2] = found->items[i]->str;
    err = redis_argv(t, r, q->keys.info, found->count + 2, words, &infos);
    for (size_t i = 0; !err && i < infos->count; i++) {
        int64_t since_ms = since_of(infos->items[i]);
        if (since_ms && since_ms < *first_ms)
            *first_ms = since_ms;
    }
    return err;
}

static int oldest(struct task *t, const struct jobs_queue *q, struct jobs_look *out)
{
    int64_t now_ms = loop_wall_ms(task_loop(t)), first_ms = now_ms;
    int err = oldest_waiting(t, q, &first_ms);
    if (!err && out->delayed)
        err = oldest_delayed(t, q, &first_ms);
    out->oldest_ms = now_ms - first_ms;
    return err;
}

int jobs_look(struct task *t, struct jobs *j, size_t n, struct jobs_look *out)
{
    check(n < j->count);
    const struct jobs_queue *q = j->queues[n];
    const struct jobs_keys *k = &q->keys;
    struct redis_batch b;
    const struct redis_reply *const *r;
    redis_batch_init(&b, t, j->options.redis);
    redis_batch_add(&b, k->waiting, STR("ZCARD"), k->waiting);
    redis_batch_add(&b, k->delays, STR("ZCARD"), k->delays);
    redis_batch_add(&b, k->held, STR("ZCARD"), k->held);
    redis_batch_add(&b, k->leases, STR("ZCARD"), k->leases);
    redis_batch_add(&b, k->state, STR("HMGET"), k->state, STR("run"), STR("paused"), STR("done"),
                    STR("failed"));
    int err = redis_batch_run(&b, &r);
    if (err)
        return err;
    if (r[4]->type != REDIS_ARRAY || r[4]->count != 4)
        return task_fail(t, ERR_PROTO, "the state of queue %s is no hash", q->kind->name);
    const struct redis_reply *const *state = r[4]->items;
    *out =
        (struct jobs_look){.name = q->kind->name,
                           .waiting = redis_number(r[0], 0),
                           .delayed = redis_number(r[1], 0),
                           .held = redis_number(r[2], 0),
                           .working = redis_number(r[3], 0),
                           .refilled = generation_is_at(j->options.redis, k->state, state[0]->str),
                           .paused = redis_number(state[1], 0) == 1,
                           .done = redis_number(state[2], 0),
                           .failed = redis_number(state[3], 0)};
    return oldest(t, q, out);
}
