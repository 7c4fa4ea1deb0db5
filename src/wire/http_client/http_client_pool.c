/* The connections of HTTP/1.1 to a host: opened, lent to one call at a time, kept for the next.
 *
 * Each call holds one of the host's permits, and a connection is opened only when none idles: so
 * used and idle ones together are never more than the permits. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/http_client/http_client_private.h"

#define UNREACHABLE_MS 200 /* at most five attempts a second */

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

/* --- opening --- */

/* Bytes of the address; 0: invalid. */
static socklen_t make_address(const char *text, const char *port, struct sockaddr_storage *out)
{
    struct sockaddr_in *in = (struct sockaddr_in *)out;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
    in_port_t number = htons((uint16_t)strtoul(port, NULL, 10));
    *out = (struct sockaddr_storage){.ss_family = AF_INET};
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        in->sin_port = number;
        return sizeof *in;
    }
    out->ss_family = AF_INET6;
    in6->sin6_port = number;
    return inet_pton(AF_INET6, text, &in6->sin6_addr) == 1 ? sizeof *in6 : 0;
}

static void set_option(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

/* Without these a call over a connection whose peer has vanished would wait for its deadline. */
static void set_options(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, DEAD_PEER_MS);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_S);
}

static int no_connection(struct task *t, const struct httpc_host *h, const char *why)
{
    return task_fail(t, ERR_UNAVAILABLE, "%s: no connection: %s", h->origin, why);
}

/* One address. */
struct opening {
    const char *step; /* what was not done in time, if that is the error */
    bool reached;     /* a server was there, and TLS has failed */
};

static int open_to(struct task *t, struct httpc_host *h, const char *address, bool h2,
                   struct opening *o, struct httpc_conn **out)
{
    o->step = "no answer in time";
    struct sockaddr_storage a;
    socklen_t n = make_address(address, h->port, &a);
    if (n == 0)
        return no_connection(t, h, "its address cannot be used");
    struct httpc_conn *k = check_memory(calloc(1, sizeof *k));
    int err = net_connect(t, (struct sockaddr *)&a, n, &k->watch);
    if (err == ERR_UNAVAILABLE || err == ERR_IO)
        err = no_connection(t, h, strerror(errno));
    if (err) {
        free(k);
        return err;
    }
    k->host = h;
    list_init(&k->link);
    set_options(k->watch.fd);
    o->step = "the TLS handshake was not done in time";
    o->reached = true;
    err = h->tls ? httpc_conn_secure(t, k, h2) : 0;
    if (err)
        httpc_conn_close(k);
    else
        *out = k;
    return err;
}

/* The address's share of the time there is for all of them. */
static int open_within(struct task *t, struct httpc_host *h, const char *address, bool h2,
                       int64_t ms, struct opening *o, struct httpc_conn **out)
{
    int64_t old = task_deadline(t, ms);
    int err = open_to(t, h, address, h2, o, out);
    task_deadline_restore(t, old);
    if (err == ERR_TIMEOUT && task_time_left_ms(t) > 0)
        return no_connection(t, h, o->step);
    return err;
}

/* The address that has answered is the first to be tried, until the next lookup. */
static void prefer(struct net_addresses *known, const char *address)
{
    char first[sizeof known->text[0]];
    for (size_t i = 1; i < known->count; i++) {
        if (strcmp(known->text[i], address) != 0)
            continue;
        memcpy(first, known->text[0], sizeof first);
        memcpy(known->text[0], known->text[i], sizeof first);
        memcpy(known->text[i], first, sizeof first);
    }
}

int httpc_conn_open(struct task *t, struct httpc_host *h, bool h2, struct httpc_conn **out)
{
    if (loop_now_ms(h->client->loop) < h->unreachable_until_ms)
        return task_fail(t, ERR_UNAVAILABLE, "%s", h->unreachable);
    struct net_addresses to = h->names.found; /* a lookup may replace them during a wait */
    struct loop *l = h->client->loop;
    /* One more, because the loop's milliseconds are truncated. */
    int64_t until_ms = loop_now_ms(l) + h->client->options.connect_ms + 1;
    int err = ERR_UNAVAILABLE;
    const char *why =
        NULL; /* TLS has failed with one address: says more than that none is at others */
    for (size_t i = 0; i < to.count && err == ERR_UNAVAILABLE; i++) {
        int64_t left_ms = until_ms - loop_now_ms(l);
        struct opening o = {.reached = false};
        err = open_within(t, h, to.text[i], h2, left_ms / (int64_t)(to.count - i), &o, out);
        if (!err)
            prefer(&h->names.found, to.text[i]);
        else if (o.reached && !why)
            why = arena_strdup(task_arena(t), task_error(t));
    }
    if (err == ERR_UNAVAILABLE && why)
        (void)task_fail(t, err, "%s", why);
    if (err == ERR_UNAVAILABLE) {
        h->names.suspect = true;
        h->unreachable_until_ms = loop_now_ms(l) + UNREACHABLE_MS;
        snprintf(h->unreachable, sizeof h->unreachable, "%s", task_error(t));
    }
    return err;
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
        if (!too_old(k) && is_silent(t, k)) {
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
