/* The steps of a connection for the task that has it: OpenSSL runs on the loop's stack. */
#include <errno.h>

#include "loop/watch.h"
#include "wire/tls/tls_private.h"

struct aside {
    struct tls *tls;
    void *p;
    size_t n;
    enum tls_step step;
    ssize_t result;
    int error; /* errno */
};

static void shake_hands(void *arg)
{
    struct aside *a = arg;
    a->step = tls_handshake(a->tls);
}

int tls_task_handshake(struct task *t, struct tls *s, struct watch *w)
{
    struct aside a = {.tls = s};
    for (;;) {
        task_aside(t, shake_hands, &a);
        if (a.step == TLS_DONE)
            return 0;
        if (a.step == TLS_FAILED)
            return task_fail(t, ERR_CLOSED, "TLS: %s", tls_problem(s));
        int wants = tls_wants(s);
        watch_drained(w, wants);
        int err = watch_wait(t, w, wants);
        if (err)
            return err;
    }
}

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
