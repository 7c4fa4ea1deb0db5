/* The steps of a connection for the task that has it: OpenSSL runs on the loop's stack. */
#include <errno.h>

#include "loop/offload.h"
#include "loop/watch.h"
#include "wire/tls/tls_private.h"

struct aside {
    struct tls *tls;
    void *p;
    size_t n;
    ssize_t result;
    int error; /* errno */
};

/* --- the handshake --- */

struct handshake {
    struct tls_context *context; /* NULL: of the server */
    const struct tls_peer *peer;
    struct tls_server *server;
    int fd;
    struct tls *tls; /* NULL: the first step makes it */
    enum tls_step step;
};

static void step(void *arg)
{
    struct handshake *h = arg;
    if (!h->tls)
        h->tls = h->context ? tls_new(h->context, h->fd, h->peer) : tls_accept(h->server, h->fd);
    h->step = tls_handshake(h->tls);
}

/* A client's began when it connected. */
static int step_on_loop(struct task *t, struct handshake *h)
{
    int err = task_stand_back(t, h->tls || h->context);
    if (!err)
        task_aside(t, step, h);
    return err;
}

/* Nothing is shared with the loop meanwhile but what OpenSSL guards itself, the SSL_CTX and its
 * certificates: only this task has h->tls, and it waits until the thread is done with it, also if
 * it is cancelled. The error queue is the thread's, and is read before the step ends. */
static int step_on_helper(struct task *t, struct handshake *h)
{
    struct sem *helper = h->tls->helper;
    int err = sem_get(t, helper);
    if (err)
        return err;
    err = offload(t, step, h);
    sem_put(helper);
    return err == ERR_BUSY ? ERR_CLOSED : err;
}

static int shake_hands(struct task *t, struct handshake *h, struct watch *w)
{
    int err = step_on_loop(t, h);
    while (!err && h->step != TLS_DONE) {
        if (h->step == TLS_FAILED)
            return task_fail(t, ERR_CLOSED, "TLS: %s", tls_problem(h->tls));
        if (h->step == TLS_HEAVY) {
            err = step_on_helper(t, h);
            continue;
        }
        watch_drained(w, tls_wants(h->tls));
        err = watch_wait(t, w, tls_wants(h->tls));
        if (!err)
            err = step_on_loop(t, h);
    }
    return err;
}

int tls_task_connect(struct task *t, struct tls_context *c, const struct tls_peer *peer,
                     struct watch *w, struct tls **out)
{
    struct handshake h = {.context = c, .peer = peer, .fd = w->fd};
    int err = shake_hands(t, &h, w);
    *out = h.tls;
    return err;
}

int tls_task_accept(struct task *t, struct tls_server *s, struct watch *w, struct tls **out)
{
    struct handshake h = {.server = s, .fd = w->fd};
    int err = shake_hands(t, &h, w);
    *out = h.tls;
    return err;
}

/* --- bytes --- */

static void receive(void *arg)
{
    struct aside *a = arg;
    a->result = tls_recv(a->tls, a->p, a->n);
    a->error = errno;
}

ssize_t tls_task_recv(struct task *t, struct tls *s, void *p, size_t n)
{
    struct aside a = {.tls = s, .p = p, .n = n};
    task_aside(t, receive, &a);
    errno = a.error;
    return a.result;
}

/* Another task may be waiting to write: this one waits for input only. Without renegotiation
 * OpenSSL has nothing else to wait for. */
int tls_task_read(struct task *t, struct tls *s, struct watch *w, void *p, size_t n, size_t *got)
{
    for (;;) {
        int err = watch_wait(t, w, WATCH_READ);
        if (err)
            return err;
        ssize_t r = tls_task_recv(t, s, p, n);
        if (r >= 0) {
            *got = (size_t)r;
            return 0;
        }
        if (errno != EAGAIN)
            return task_fail(t, ERR_CLOSED, "TLS: %s", tls_problem(s));
        watch_drained(w, WATCH_READ);
    }
}

static void transmit(void *arg)
{
    struct aside *a = arg;
    a->result = tls_send(a->tls, a->p, a->n);
    a->error = errno;
}

ssize_t tls_task_send(struct task *t, struct tls *s, struct str text)
{
    struct aside a = {.tls = s, .p = (void *)(uintptr_t)text.p, .n = text.n};
    task_aside(t, transmit, &a);
    errno = a.error;
    return a.result;
}

static void end(void *arg)
{
    tls_end(arg);
}

void tls_task_end(struct task *t, struct tls *s)
{
    task_aside(t, end, s);
}
