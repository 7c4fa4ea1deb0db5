/* The bytes of a connection, plain or over TLS, for the task that has it. */
#include <errno.h>
#include <sys/socket.h>

#include "wire/http_client/http_client_private.h"

int httpc_conn_secure(struct task *t, struct httpc_conn *k, bool h2)
{
    struct httpc_host *h = k->host;
    struct tls_peer peer = {.host = h->name, .h2 = h2, .resume = &h->resume};
    int err = tls_task_connect(t, h->client->tls, &peer, &k->watch, &k->tls);
    if (err == ERR_CLOSED)
        return task_fail(t, ERR_UNAVAILABLE, "%s: %s", h->origin, task_error(t));
    return err;
}

ssize_t httpc_conn_recv(struct task *t, struct httpc_conn *k, void *p, size_t n)
{
    ssize_t r;
    if (k->tls) {
        r = tls_task_recv(t, k->tls, p, n);
    } else {
        do
            r = recv(k->watch.fd, p, n, MSG_DONTWAIT);
        while (r < 0 && errno == EINTR);
    }
    if (r < 0 && errno == EAGAIN)
        watch_drained(&k->watch, WATCH_READ | (k->tls ? tls_wants(k->tls) : 0));
    return r;
}

ssize_t httpc_conn_send(struct task *t, struct httpc_conn *k, struct iovec parts[2])
{
    ssize_t r;
    if (k->tls) {
        r = tls_task_send(t, k->tls, str_from(parts[0].iov_base, parts[0].iov_len));
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
