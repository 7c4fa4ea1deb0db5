#include <stdlib.h>

#include "wire/redis/redis_private.h"

#define CAP_MIN 64

static struct redis_place *place_at(const struct redis_queue *q, uint64_t n)
{
    return &q->ring[n & (q->cap - 1)];
}

static void grow(struct redis_queue *q)
{
    struct redis_queue bigger = *q;
    bigger.cap = q->cap ? 2 * q->cap : CAP_MIN;
    bigger.ring = check_memory(malloc(bigger.cap * sizeof(*bigger.ring)));
    for (uint64_t n = q->head; n != q->tail; n++)
        *place_at(&bigger, n) = *place_at(q, n);
    free(q->ring);
    *q = bigger;
}

static void set_waiting(struct redis *r, size_t n)
{
    /* The connections of a cluster share the number. */
    metric_add(r->metrics.waiting, (int64_t)n - (int64_t)r->waiting);
    r->waiting = n;
}

void redis_queue_put(struct redis *r, struct redis_wait *w, size_t count, size_t bytes,
                     size_t first_bytes)
{
    struct redis_queue *q = &r->queue;
    if (q->tail - q->head == q->cap)
        grow(q);
    w->place = q->tail++;
    w->first_end = r->queued + first_bytes;
    *place_at(q, w->place) = (struct redis_place){w, count};
    r->queued += bytes;
    if (r->waiting == 0)
        redis_link_expects_answer(r);
    set_waiting(r, r->waiting + count);
    metric_add(r->metrics.commands, (int64_t)count);
}

void redis_queue_abandon(struct redis *r, struct redis_wait *w)
{
    struct redis_place *p = place_at(&r->queue, w->place);
    check(p->wait == w);
    p->wait = NULL;
}

static void finish(struct redis_wait *w, int err)
{
    w->done = true;
    w->err = err;
    task_wake(w->task);
}

int redis_queue_answer(struct redis *r, const char *p)
{
    struct redis_queue *q = &r->queue;
    if (q->head == q->tail)
        return ERR_PROTO;
    struct redis_place *place = place_at(q, q->head);
    struct redis_wait *w = place->wait;
    if (w)
        w->replies[w->got++] = redis_build(task_arena(w->task), &r->scan, p);
    if (--place->left == 0) {
        q->head++;
        if (w)
            finish(w, 0);
    }
    set_waiting(r, r->waiting - 1);
    return 0;
}

void redis_queue_fail_all(struct redis *r)
{
    struct redis_queue *q = &r->queue;
    for (; q->head != q->tail; q->head++) {
        struct redis_wait *w = place_at(q, q->head)->wait;
        /* A command that the kernel has not taken whole cannot have run. */
        if (w)
            finish(w, r->written < w->first_end ? ERR_UNAVAILABLE : ERR_UNCERTAIN);
    }
    set_waiting(r, 0);
}
