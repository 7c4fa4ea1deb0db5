#include "loop/sync.h"

#include <stdlib.h>

#include "base/check.h"

/* Lives on the waiting task's stack. */
struct waiter {
    struct list link; /* points to itself once it has been woken */
    struct task *task;
};

static void wake_first(struct list *waiters)
{
    struct list *it = list_pop(waiters);
    if (it)
        task_wake(list_entry(it, struct waiter, link)->task);
}

void waitq_init(struct waitq *q)
{
    list_init(&q->waiters);
}

int waitq_wait(struct task *t, struct waitq *q)
{
    struct waiter w = {.task = t};
    list_push(&q->waiters, &w.link);
    int err = task_wait(t);
    bool woken = list_empty(&w.link);
    list_del(&w.link);
    if (err && woken)
        wake_first(&q->waiters); /* this waiter cannot use the wake-up: pass it on */
    return err;
}

void waitq_wake_one(struct waitq *q)
{
    wake_first(&q->waiters);
}

void waitq_wake_all(struct waitq *q)
{
    while (!list_empty(&q->waiters))
        wake_first(&q->waiters);
}

void sem_init(struct sem *s, size_t permits)
{
    list_init(&s->waiters);
    s->free = permits;
}

bool sem_try(struct sem *s)
{
    if (s->free == 0)
        return false;
    s->free--;
    return true;
}

/* A permit is handed to the first waiter directly, so no other task can overtake it. */
void sem_put(struct sem *s)
{
    if (list_empty(&s->waiters))
        s->free++;
    else
        wake_first(&s->waiters);
}

int sem_get(struct task *t, struct sem *s)
{
    if (sem_try(s))
        return 0;
    struct waiter w = {.task = t};
    list_push(&s->waiters, &w.link);
    int err = 0;
    while (!list_empty(&w.link) && err == 0)
        err = task_wait(t);
    if (!err)
        return 0;
    bool handed = list_empty(&w.link);
    list_del(&w.link);
    if (handed)
        sem_put(s);
    return err;
}

void chan_init(struct chan *c, size_t cap)
{
    check(cap > 0);
    *c = (struct chan){.cap = cap, .ring = check_memory(malloc(cap * sizeof(void *)))};
    waitq_init(&c->readers);
    waitq_init(&c->writers);
}

void chan_release(struct chan *c)
{
    free(c->ring);
    c->ring = NULL;
}

int chan_send(struct task *t, struct chan *c, void *p)
{
    while (!c->closed && c->count == c->cap) {
        int err = waitq_wait(t, &c->writers);
        if (err)
            return err;
    }
    if (c->closed)
        return ERR_CLOSED;
    c->ring[(c->head + c->count++) % c->cap] = p;
    waitq_wake_one(&c->readers);
    return 0;
}

int chan_recv(struct task *t, struct chan *c, void **out)
{
    while (c->count == 0) {
        if (c->closed)
            return ERR_CLOSED;
        int err = waitq_wait(t, &c->readers);
        if (err)
            return err;
    }
    *out = c->ring[c->head];
    c->head = (c->head + 1) % c->cap;
    c->count--;
    waitq_wake_one(&c->writers);
    return 0;
}

void chan_close(struct chan *c)
{
    c->closed = true;
    waitq_wake_all(&c->readers);
    waitq_wake_all(&c->writers);
}
