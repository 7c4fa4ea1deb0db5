#include "loop/watch.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "loop/loop_private.h"

static void notice_gone(struct watch *w)
{
    if (w->gone)
        return;
    w->gone = true;
    if (w->on_gone)
        w->on_gone(w->arg);
}

/* libevent reports a reset as readable and writable, not as closed. No task is reading, so peek
 * whether there is anything to read. */
static bool was_reset(const struct watch *w)
{
    char c;
    ssize_t n = recv(w->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTSOCK);
}

static void on_event(int fd, short what, void *arg)
{
    (void)fd;
    struct watch *w = arg;
    /* So that the reader sees the end; and the writer, too: a Unix socket that was shut down while
     * its buffer was full is never reported as writable. */
    if (what & EV_CLOSED)
        what |= EV_READ | EV_WRITE;
    if (what & EV_READ)
        w->ready |= WATCH_READ;
    if (what & EV_WRITE)
        w->ready |= WATCH_WRITE;
    if (w->reader && (what & EV_READ))
        task_wake(w->reader);
    if (w->writer && (what & EV_WRITE))
        task_wake(w->writer);
    if ((what & EV_CLOSED) || (w->on_gone && !w->reader && (what & EV_READ) && was_reset(w)))
        notice_gone(w);
}

void watch_init(struct watch *w, struct loop *l, int fd)
{
    struct stat st;
    *w = (struct watch){.loop = l, .fd = fd, .ready = WATCH_READ | WATCH_WRITE};
    w->socket = fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
    w->ev = event_new(l->base, fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_event, w);
    check(w->ev && event_add(w->ev, NULL) == 0);
}

void watch_release(struct watch *w)
{
    if (!w->ev)
        return;
    check(!w->reader && !w->writer);
    event_free(w->ev);
    if (w->write_ev)
        event_free(w->write_ev);
    w->ev = w->write_ev = NULL;
}

/* Once; at once if it is writable already. */
static void await_writable(struct watch *w)
{
    if (!w->write_ev)
        w->write_ev = event_new(w->loop->base, w->fd, EV_WRITE | EV_ET, on_event, w);
    check(w->write_ev && event_add(w->write_ev, NULL) == 0);
}

int watch_wait(struct task *t, struct watch *w, int events)
{
    int err = 0;
    check(!((events & WATCH_READ) && w->reader) && !((events & WATCH_WRITE) && w->writer));
    if (events & WATCH_READ)
        w->reader = t;
    if (events & WATCH_WRITE)
        w->writer = t;
    bool writable = (events & WATCH_WRITE) && !(w->ready & events);
    if (writable)
        await_writable(w);
    while (!(w->ready & events) && !err)
        err = task_wait(t);
    if (writable)
        event_del(w->write_ev);
    if (events & WATCH_READ)
        w->reader = NULL;
    if (events & WATCH_WRITE)
        w->writer = NULL;
    return err;
}

static int io_error(struct task *t, const char *what)
{
    if (errno == ECONNRESET || errno == EPIPE || errno == ETIMEDOUT || errno == ENOTCONN)
        return ERR_CLOSED;
    return task_fail(t, ERR_IO, "%s: %s", what, strerror(errno));
}

int watch_read(struct task *t, struct watch *w, void *p, size_t n, size_t *got)
{
    for (;;) {
        int err = watch_wait(t, w, WATCH_READ);
        if (err)
            return err;
        ssize_t r = read(w->fd, p, n);
        if (r >= 0) {
            /* A short read has emptied a socket: the next byte brings a new edge. The end of a
             * pipe may have come with the same edge, so only EAGAIN is proof there. */
            if ((size_t)r < n && r > 0 && !w->gone && w->socket)
                watch_drained(w, WATCH_READ);
            *got = (size_t)r;
            return 0;
        }
        if (errno == EAGAIN)
            watch_drained(w, WATCH_READ);
        else if (errno != EINTR)
            return io_error(t, "read");
    }
}

int watch_write(struct task *t, struct watch *w, const void *p, size_t n)
{
    for (size_t done = 0; done < n;) {
        int err = watch_wait(t, w, WATCH_WRITE);
        if (err)
            return err;
        ssize_t r = write(w->fd, (const char *)p + done, n - done);
        if (r >= 0)
            done += (size_t)r;
        else if (errno == EAGAIN)
            watch_drained(w, WATCH_WRITE);
        else if (errno != EINTR)
            return io_error(t, "write");
    }
    return 0;
}

static void on_poll(int fd, short what, void *arg)
{
    struct poller *p = arg;
    int events = ((what & EV_READ) ? WATCH_READ : 0) | ((what & EV_WRITE) ? WATCH_WRITE : 0);
    p->fn(p->arg, fd, events);
}

void poller_init(struct poller *p, struct loop *l, int fd, void (*fn)(void *, int, int), void *arg)
{
    *p = (struct poller){.loop = l, .fd = fd, .fn = fn, .arg = arg};
}

void poller_set(struct poller *p, int events)
{
    if (events == p->events)
        return;
    poller_release(p);
    p->events = events;
    if (events == 0)
        return;
    int what = ((events & WATCH_READ) ? EV_READ : 0) | ((events & WATCH_WRITE) ? EV_WRITE : 0);
    p->ev = event_new(p->loop->base, p->fd, (short)(what | EV_PERSIST), on_poll, p);
    check(p->ev && event_add(p->ev, NULL) == 0);
}

void poller_release(struct poller *p)
{
    if (p->ev)
        event_free(p->ev);
    p->ev = NULL;
    p->events = 0;
}
