/* TLS of a connection: its beginning and its end. HTTP/1.1 goes through it in http_io.c; HTTP/2
 * takes it over (http2_conn.c). */
#include <errno.h>
#include <sys/socket.h>

#include "base/log.h"
#include "wire/http_server/http_exchange.h"

#define RECORD_OF_HANDSHAKE 22 /* the first byte of a client that speaks TLS */

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

static int handshake(struct task *t, struct http_conn *c)
{
    unsigned char first;
    int err = peek(t, c, &first);
    if (!err && first != RECORD_OF_HANDSHAKE)
        return ERR_INVALID;
    if (!err && c->server->options.tls_delay_ms > 0)
        err = task_sleep(t, c->server->options.tls_delay_ms);
    if (err)
        return err;
    return tls_task_accept(t, c->server->options.tls, &c->watch, &c->tls);
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

void http_tls_end(struct task *t, struct http_conn *c)
{
    if (!c->tls)
        return;
    /* Amid an exchange the client must see a cut, not an end. */
    if (c->broken && c->kit)
        (void)shutdown(c->watch.fd, SHUT_WR);
    tls_task_end(t, c->tls);
    c->tls = NULL;
}
