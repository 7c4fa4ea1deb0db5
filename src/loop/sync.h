/* sync.h -- how tasks of one loop wait for each other: wait queues, semaphores, channels.
 * First come, first served. No locks: one thread. */
#ifndef LOOP_SYNC_H
#define LOOP_SYNC_H

#include "loop/task.h"

/* Tasks that wait for something to change. */
struct waitq {
    struct list waiters;
};
void waitq_init(struct waitq *q);
MUST_CHECK int waitq_wait(struct task *t, struct waitq *q); /* may wake spuriously */
void waitq_wake_one(struct waitq *q);
void waitq_wake_all(struct waitq *q);

/* A number of permits. */
struct sem {
    struct list waiters;
    size_t free;
};
void sem_init(struct sem *s, size_t permits);
MUST_CHECK int sem_get(struct task *t, struct sem *s);
bool sem_try(struct sem *s);
void sem_put(struct sem *s);

/* A bounded queue of pointers. */
struct chan {
    struct waitq readers, writers;
    void **ring;
    size_t cap, head, count;
    bool closed;
};
void chan_init(struct chan *c, size_t cap);
void chan_release(struct chan *c);
MUST_CHECK int chan_send(struct task *t, struct chan *c, void *p); /* ERR_CLOSED after chan_close */
/* ERR_CLOSED: closed and empty. */
MUST_CHECK int chan_recv(struct task *t, struct chan *c, void **out);
void chan_close(struct chan *c);
#endif
