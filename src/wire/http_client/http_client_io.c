/* The bytes of a connection, plain or over TLS, for the task that has it. */
#include <errno.h>
#include <sys/socket.h>

#include "wire/http_client/http_client_private.h"

/* OpenSSL runs on the loop's stack. */
struct aside {
    struct httpc_conn *conn;
    struct tls_peer peer;
    void *p;
    size_t n;
    enum tls_step step;
    ssize_t result;
    int error; /* errno */
};

static void shake_hands(void *arg)
{
    struct aside *a = arg;
    struct httpc_conn *k = a->conn;
    if (!k->tls)
        k->tls = tls_new(k->host->client->tls, k->watch.fd, &a->peer);
    a->step = tls_handshake(k->tls);
}

int httpc_conn_secure(struct task *t, struct httpc_conn *k, bool h2)
{
    struct httpc_host *h = k->host;
    struct aside a = {.conn = k, .peer = {.host = h->name, .h2 = h2, .resume = &h->resume}};
    int err = 0;
    for (;;) {
        task_aside(t, shake_hands, &a);
        if (a.step == TLS_DONE)
            return 0;
        if (a.step == TLS_FAILED)
            return task_fail(t, ERR_UNAVAILABLE, "%s: TLS: %s", h->origin, tls_problem(k->tls));
        watch_drained(&k->watch, tls_wants(k->tls));
        err = watch_wait(t, &k->watch, tls_wants(k->tls));
        if (err)
            return err;
    }
}

static void receive(void *arg)
{
    struct aside *a = arg;
    a->result = tls_recv(a->conn->tls, a->p, a->n);
    a->error = errno;
}

ssize_t httpc_conn_recv(struct task *t, struct httpc_conn *k, void *p, size_t n)
{
    ssize_t r;
    if (k->tls) {
        struct aside a = {.conn = k, .p = p, .n = n};
        task_aside(t, receive, &a);
        r = a.result;
        errno = a.error;
    } else {
        do
            r = recv(k->watch.fd, p, n, MSG_DONTWAIT);
        while (r < 0 && errno == EINTR);
    }
    if (r < 0 && errno == EAGAIN)
        watch_drained(&k->watch, WATCH_READ | (k->tls ? tls_wants(k->tls) : 0));
    return r;
}

static void transmit(void *arg)
{
    struct aside *a = arg;
    a->result = tls_send(a->conn->tls, a->p, a->n);
    a->error = errno;
}

ssize_t httpc_conn_send(struct task *t, struct httpc_conn *k, struct iovec parts[2])
{
    ssize_t r;
    if (k->tls) {
        struct aside a = {.conn = k, .p = parts[0].iov_base, .n = parts[0].iov_len};
        task_aside(t, transmit, &a);
        r = a.result;
        errno = a.error;
    } else {
        struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
        do
            r = sendmsg(k->watch.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (r < 0 && errno == EINTR);
    }
    if (r < 0 && errno == EAGAIN)
        watch_drained(&k->watch, WATCH_WRITE);
    return r;
}

/* After a step that returned -1: waits for the next one. */
static int wait_for(struct task *t, struct httpc_conn *k, int events)
{
    if (errno == EAGAIN)
        return watch_wait(t, &k->watch, k->tls ? tls_wants(k->tls) : events);
    if (k->tls)
        return task_fail(t, ERR_CLOSED, "TLS: %s", tls_problem(k->tls));
    return task_fail(t, ERR_CLOSED, "%s", strerror(errno));
}

int httpc_conn_read(struct task *t, struct httpc_conn *k, void *p, size_t n, size_t *got)
{
    ssize_t r;
    while ((r = httpc_conn_recv(t, k, p, n)) < 0) {
        int err = wait_for(t, k, WATCH_READ);
        if (err)
            return err;
    }
    *got = (size_t)r;
    return 0;
}

int httpc_conn_write(struct task *t, struct httpc_conn *k, struct str text)
{
    while (text.n > 0) {
        struct iovec parts[2] = {{(void *)(uintptr_t)text.p, text.n}, {NULL, 0}};
        ssize_t r = httpc_conn_send(t, k, parts);
        int err = r < 0 ? wait_for(t, k, WATCH_WRITE) : 0;
        if (err)
            return err;
        if (r > 0)
            text = str_skip(text, (size_t)r);
    }
    return 0;
}
