/* watch.h -- waiting for file descriptors.
 *
 * A watch is registered once, edge-triggered, and remembers readiness: code that
 * reads or writes until EAGAIN (or gets fewer bytes than asked for) calls
 * watch_drained(), and only then does the next wait block. That the fd is writable is asked for
 * only while a task waits for it: a Unix socket becomes writable each time the far end reads, and
 * the process would be woken for nothing.
 * At most one task reads and one writes at a time. Does not own the fd. */
#ifndef LOOP_WATCH_H
#define LOOP_WATCH_H

#include "loop/task.h"

enum { WATCH_READ = 1, WATCH_WRITE = 2 };

struct event;

struct watch {
    struct loop *loop;
    int fd;
    int ready;   /* WATCH_ bits that may succeed without waiting */
    bool gone;   /* the peer has closed or reset the connection */
    bool socket; /* not a pipe */
    struct task *reader, *writer;
    struct event *ev, *write_ev; /* write_ev: registered while a writer waits; NULL: none has yet */
    void (*on_gone)(void *arg);  /* called once, on the loop's stack; may be NULL */
    void *arg;
};

void watch_init(struct watch *w, struct loop *l, int fd); /* fd must not block */
void watch_release(struct watch *w);                      /* before closing fd; no task may wait */
/* Returns 0 when any of the events is ready. */
MUST_CHECK int watch_wait(struct task *t, struct watch *w, int events);
static inline void watch_drained(struct watch *w, int events)
{
    w->ready &= ~events;
}

/* Reads what is there, at least one byte; *got == 0 means the end. ERR_CLOSED on a reset. */
MUST_CHECK int watch_read(struct task *t, struct watch *w, void *p, size_t n, size_t *got);
/* Writes all of it, or fails with ERR_CLOSED, ERR_TIMEOUT, ERR_CANCELED. */
MUST_CHECK int watch_write(struct task *t, struct watch *w, const void *p, size_t n);

/* A level-triggered callback on the loop's own stack, for libraries that bring their own state
 * machine. events == 0 removes it. */
struct poller {
    struct loop *loop;
    int fd, events;
    struct event *ev;
    void (*fn)(void *arg, int fd, int events);
    void *arg;
};
void poller_init(struct poller *p, struct loop *l, int fd, void (*fn)(void *, int, int), void *arg);
void poller_set(struct poller *p, int events);
void poller_release(struct poller *p);
#endif
