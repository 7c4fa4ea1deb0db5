/* TLS under a connection: the handshake, and the bytes of HTTP/1.1. HTTP/2 takes the TLS over
 * (http2_conn.c). OpenSSL runs on the loop's stack. */
#include <errno.h>
#include <sys/socket.h>

#include "base/log.h"
#include "wire/http_server/http_exchange.h"

#define RECORD_OF_HANDSHAKE 22 /* the first byte of a client that speaks TLS */

struct aside {
    struct http_conn *conn;
    void *p;
    size_t n;
    enum tls_step step;
    ssize_t result;
    int error; /* errno */
};

/* --- the handshake --- */

/* Looks at the first byte and leaves it there. */
static int peek(struct task *t, struct http_conn *c, unsigned char *first)
{
    for (;;) {
        int err = watch_wait(t, &c->watch, WATCH_READ);
        if (err)
            return err;
        ssize_t n = recv(c->watch.fd, first, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n == 1)
            return 0;
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return ERR_CLOSED;
        if (errno == EAGAIN)
            watch_drained(&c->watch, WATCH_READ);
    }
}

static void shake_hands(void *arg)
{
    struct aside *a = arg;
    struct http_conn *c = a->conn;
    if (!c->tls)
        c->tls = tls_accept(c->server->options.tls, c->watch.fd);
    a->step = tls_handshake(c->tls);
}

static int finish_handshake(struct task *t, struct http_conn *c)
{
    struct aside a = {.conn = c};
    for (;;) {
        task_aside(t, shake_hands, &a);
        if (a.step == TLS_DONE)
            return 0;
        if (a.step == TLS_FAILED)
            return task_fail(t, ERR_CLOSED, "%s", tls_problem(c->tls));
        watch_drained(&c->watch, tls_wants(c->tls));
        int err = watch_wait(t, &c->watch, tls_wants(c->tls));
        if (err)
            return err;
    }
}

static int handshake(struct task *t, struct http_conn *c)
{
    unsigned char first;
    int err = peek(t, c, &first);
    if (!err && first != RECORD_OF_HANDSHAKE)
        return ERR_INVALID;
    if (!err && c->server->options.tls_delay_ms > 0)
        err = task_sleep(t, c->server->options.tls_delay_ms);
    return err ? err : finish_handshake(t, c);
}

int http_tls_begin(struct task *t, struct http_conn *c)
{
    const struct http_options *o = &c->server->options;
    int64_t old = task_deadline(t, o->limits.header_ms + o->tls_delay_ms);
    int err = handshake(t, c);
    task_deadline_restore(t, old);
    if (err && err != ERR_INVALID)
        log_debug("http", "no TLS with %s: %s %s", c->peer, err_name(err), task_error(t));
    return err;
}

static void end(void *arg)
{
    struct http_conn *c = arg;
    tls_end(c->tls);
    c->tls = NULL;
}

void http_tls_end(struct task *t, struct http_conn *c)
{
    if (!c->tls)
        return;
    /* Amid an exchange the client must see a cut, not an end. */
    if (c->broken && c->kit)
        (void)shutdown(c->watch.fd, SHUT_WR);
    task_aside(t, end, c);
}

/* --- bytes --- */

static void receive(void *arg)
{
    struct aside *a = arg;
    a->result = tls_recv(a->conn->tls, a->p, a->n);
    a->error = errno;
}

ssize_t http_tls_recv(struct task *t, struct http_conn *c, void *p, size_t n)
{
    struct aside a = {.conn = c, .p = p, .n = n};
    task_aside(t, receive, &a);
    errno = a.error;
    return a.result;
}

static void transmit(void *arg)
{
    struct aside *a = arg;
    a->result = tls_send(a->conn->tls, a->p, a->n);
    a->error = errno;
}

ssize_t http_tls_send(struct task *t, struct http_conn *c, struct str s)
{
    struct aside a = {.conn = c, .p = (void *)(uintptr_t)s.p, .n = s.n};
    task_aside(t, transmit, &a);
    errno = a.error;
    return a.result;
}

int http_tls_read(struct task *t, struct http_conn *c, void *p, size_t n, size_t *got)
{
    int wants = WATCH_READ;
    for (;;) {
        int err = watch_wait(t, &c->watch, wants);
        if (err)
            return err;
        ssize_t r = http_tls_recv(t, c, p, n);
        if (r >= 0) {
            *got = (size_t)r;
            return 0;
        }
        if (errno != EAGAIN)
            return ERR_CLOSED;
        wants = tls_wants(c->tls);
        watch_drained(&c->watch, wants);
    }
}
