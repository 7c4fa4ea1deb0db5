/* The connections of HTTP/1.1 to a host: lent to one call at a time, kept for the next.
 *
 * Each call holds one of the host's permits, and a connection is opened only when none idles: so
 * used and idle ones together are never more than the permits. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/http_client/http_client_private.h"

void httpc_conn_close(struct httpc_conn *k)
{
    if (k->tls)
        tls_end(k->tls);
    close(httpc_conn_detach(k));
}

int httpc_conn_detach(struct httpc_conn *k)
{
    int fd = k->watch.fd;
    list_del(&k->link);
    watch_release(&k->watch);
    free(k);
    return fd;
}

/* --- keeping --- */

/* On the loop's stack: the server has closed an idle connection. */
static void on_gone(void *arg)
{
    httpc_conn_close(arg);
}

void httpc_conn_keep(struct httpc_conn *k)
{
    struct httpc_host *h = k->host;
    struct http_client *c = h->client;
    if (k->watch.gone) {
        httpc_conn_close(k);
        return;
    }
    k->idle_since_ms = loop_now_ms(c->loop);
    k->watch.on_gone = on_gone;
    k->watch.arg = k;
    list_push_front(&h->idle, &k->link);
    if (c->sweep.pos == 0)
        timer_set(&c->sweep, loop_now_ms(c->loop) + c->options.idle_ms);
}

static bool too_old(const struct httpc_conn *k)
{
    const struct http_client *c = k->host->client;
    return loop_now_ms(c->loop) - k->idle_since_ms >= c->options.idle_ms;
}

/* Neither closed nor with unasked input. The loop would notice both only when it polls again, and
 * a POST that is sent into a closed connection may not be repeated. */
static bool is_silent(struct task *t, struct httpc_conn *k)
{
    char byte;
    return httpc_conn_recv(t, k, &byte, 1) < 0 && errno == EAGAIN;
}

struct httpc_conn *httpc_conn_reuse(struct task *t, struct httpc_host *h)
{
    struct list *it;
    while ((it = list_pop(&h->idle))) {
        struct httpc_conn *k = list_entry(it, struct httpc_conn, link);
        if (!too_old(k) && httpc_host_has(h, k->address) && is_silent(t, k)) {
            k->watch.on_gone = NULL;
            return k;
        }
        httpc_conn_close(k);
    }
    return NULL;
}

void httpc_pool_sweep(struct httpc_host *h)
{
    while (!list_empty(&h->idle)) {
        struct httpc_conn *k = list_entry(h->idle.prev, struct httpc_conn, link);
        if (!too_old(k))
            return;
        httpc_conn_close(k);
    }
}

void httpc_pool_release(struct httpc_host *h)
{
    while (!list_empty(&h->idle))
        httpc_conn_close(list_entry(h->idle.next, struct httpc_conn, link));
}
