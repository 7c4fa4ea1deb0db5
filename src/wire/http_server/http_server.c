#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "loop/backoff.h"
#include "wire/http_server/http2_conn.h"
#include "wire/http_server/http_exchange.h"

/* Accepted in one go, before the acceptor yields. */
#define ACCEPT_BATCH 64
#define BACKOFF_MS   100
/* More connections than this over the limit are closed without a reply. */
#define REFUSING_COUNT_MAX 1000

const struct http_limits http_limits_default = {
    .connections_max = 10000,
    .header_bytes_max = 16 * 1024,
    .headers_max = 64,
    .target_bytes_max = 8 * 1024,
    .idle_ms = 75000,
    .header_ms = 10000,
    .body_ms = 60000,
    .handler_ms = 30000,
    .write_ms = 30000,
};

static void register_counts(struct http_server *s)
{
    struct http_counts *n = &s->counts;
    struct metrics *m = s->options.metrics;
    char labels[64];
    for (int hundreds = 1; hundreds <= 5; hundreds++) {
        snprintf(labels, sizeof(labels), "code=\"%dxx\"", hundreds);
        n->by_class[hundreds] =
            metric(m, METRIC_COUNTER, "millrace_http_requests_total", labels, "Requests answered.");
    }
    for (enum http_refusal why = 0; why < HTTP_REFUSALS; why++) {
        snprintf(labels, sizeof(labels), "reason=\"%s\"", http_refused[why].code);
        n->refused[why] = metric(m, METRIC_COUNTER, "millrace_http_refused_total", labels,
                                 "Requests that no handler has seen.");
    }
    n->connections =
        metric(m, METRIC_GAUGE, "millrace_http_connections", "", "Connections being served.");
    n->seconds = histogram_new(m, "millrace_http_request_seconds",
                               "From the end of the request's head to its reply.");
}

struct http_server *http_server_new(struct loop *l, const struct http_options *o)
{
    struct http_server *s = check_memory(calloc(1, sizeof(*s)));
    s->loop = l;
    s->options = *o;
    s->router = http_router_new();
    s->body_max = HTTP_SKIP_BYTES_MAX;
    list_init(&s->conns);
    list_init(&s->wakes);
    register_counts(s);
    signal(SIGPIPE, SIG_IGN); /* sendfile has no MSG_NOSIGNAL */
    return s;
}

void http_server_free(struct http_server *s)
{
    if (!s)
        return;
    check(!s->acceptor && list_empty(&s->conns));
    http_router_free(s->router);
    http_kits_free(s);
    http2_wakes_free(s);
    histogram_free(s->counts.seconds);
    free(s);
}

void http_server_add(struct http_server *s, const struct http_route *routes, size_t n, void *ctx)
{
    for (size_t i = 0; i < n; i++) {
        http_router_add(s->router, &routes[i], ctx);
        if (routes[i].body_max > s->body_max)
            s->body_max = routes[i].body_max;
    }
}

size_t http_server_connections(const struct http_server *s)
{
    return s->conn_count;
}

struct str http_date(struct http_server *s)
{
    int64_t now_ms = loop_now_ms(s->loop);
    if (now_ms >= s->date_expired_ms) {
        int64_t wall_ms = loop_wall_ms(s->loop);
        time_http(wall_ms * 1000, s->date);
        s->date_expired_ms = now_ms + 1000 - wall_ms % 1000;
    }
    return str_from(s->date, sizeof(s->date) - 1);
}

static void name_peer(struct http_conn *c, const struct sockaddr_in6 *a)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)a;
    if (a->sin6_family == AF_INET)
        inet_ntop(AF_INET, &v4->sin_addr, c->peer, sizeof(c->peer));
    else if (a->sin6_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->sin6_addr))
        inet_ntop(AF_INET, &a->sin6_addr.s6_addr[12], c->peer, sizeof(c->peer));
    else if (a->sin6_family == AF_INET6)
        inet_ntop(AF_INET6, &a->sin6_addr, c->peer, sizeof(c->peer));
    else
        snprintf(c->peer, sizeof(c->peer), "unix");
}

static void start(struct http_server *s, struct group *g, int fd, const struct sockaddr_in6 *peer)
{
    bool over = s->conn_count >= s->options.limits.connections_max;
    if (over && (s->options.tls || s->refusing_count >= REFUSING_COUNT_MAX)) {
        close(fd);
        return;
    }
    int on = 1;
    if (peer->sin6_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct http_conn *c = http_conn_new(s, fd);
    c->refused = over;
    name_peer(c, peer);
    if (task_go(g, "http", http_conn_task, c) != 0) {
        http_conn_close(c); /* no stack is left */
        return;
    }
    if (over)
        s->refusing_count++;
    else
        metric_set(s->counts.connections, (int64_t)++s->conn_count);
}

static bool out_of_resources(int e)
{
    return e == EMFILE || e == ENFILE || e == ENOBUFS || e == ENOMEM;
}

/* After a failed accept. 0: go on. */
static int accept_failed(struct task *t, struct http_server *s)
{
    if (errno == EAGAIN) {
        watch_drained(s->listening, WATCH_READ);
        s->out_of_fds = false;
        return 0;
    }
    if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK || errno == EOPNOTSUPP)
        return task_fail(t, ERR_IO, "accept: %s", strerror(errno));
    if (!out_of_resources(errno))
        return 0; /* closed before it was accepted */
    if (!s->out_of_fds)
        log_warn("http",
                 "cannot accept connections: %s; clients wait until others end; raise the limit of "
                 "open files",
                 strerror(errno));
    s->out_of_fds = true;
    return backoff_wait(t, &(struct backoff){.ms = BACKOFF_MS});
}

static int accept_batch(struct task *t, struct http_server *s, struct group *g)
{
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_in6 peer = {0};
        socklen_t n = sizeof(peer);
        int fd =
            accept4(s->listening->fd, (struct sockaddr *)&peer, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return accept_failed(t, s);
        start(s, g, fd, &peer);
    }
    return task_yield(t);
}

int http_server_run(struct task *t, struct http_server *s, int fd)
{
    check(!s->acceptor);
    struct watch listening;
    watch_init(&listening, s->loop, fd);
    struct group conns;
    group_init(&conns, s->loop);
    s->group = &conns;
    s->acceptor = t;
    s->listening = &listening;
    int err = 0;
    while (!err && !s->draining) {
        err = watch_wait(t, &listening, WATCH_READ);
        if (!err && !s->draining)
            err = accept_batch(t, s, &conns);
    }
    s->acceptor = NULL;
    watch_release(&listening);
    if (err)
        group_cancel(&conns);
    int joined = group_join(t, &conns);
    s->group = NULL;
    return err ? err : joined;
}

static void rouse(struct watch *w, struct task *t)
{
    w->ready |= WATCH_READ;
    task_wake(t);
}

void http_server_drain(struct http_server *s)
{
    s->draining = true;
    if (s->acceptor)
        rouse(s->listening, s->acceptor);
    list_each (it, &s->conns) {
        struct http_conn *c = list_entry(it, struct http_conn, link);
        if (c->waiting)
            rouse(&c->watch, c->task);
        else if (c->http2)
            http2_conn_drain(c->http2);
    }
}
