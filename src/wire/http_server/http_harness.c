#include "wire/http_server/http_harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/metrics.h"
#include "wire/http_server/http_chunk.h"

#define PATIENCE_MS (3600 * 1000)

static void serve(struct task *t, void *arg)
{
    struct site *s = arg;
    s->result = http_server_run(t, s->server, s->fd);
}

static int listen_local(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    check(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(sa_family_t)) == 0); /* any name */
    check(listen(fd, 1024) == 0);
    return fd;
}

static int listen_tcp(uint16_t *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    check(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 1024) == 0);
    check(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void start(struct task *t, struct site *s, struct http_options options,
                  const struct http_route *routes, size_t n, void *ctx)
{
    if (options.limits.connections_max == 0)
        options.limits = http_limits_default;
    s->metrics = metrics_open(-1, 1, 0);
    options.metrics = s->metrics;
    s->server = http_server_new(task_loop(t), &options);
    http_server_add(s->server, routes, n, ctx);
    s->result = 1;
    group_init(&s->group, task_loop(t));
    check(task_go(&s->group, "site", serve, s) == 0);
}

void site_open(struct task *t, struct site *s, struct http_options options,
               const struct http_route *routes, size_t n, void *ctx)
{
    *s = (struct site){.fd = listen_local()};
    start(t, s, options, routes, n, ctx);
}

void site_open_tcp(struct task *t, struct site *s, struct http_options options,
                   const struct http_route *routes, size_t n, void *ctx)
{
    *s = (struct site){.port = 0};
    s->fd = listen_tcp(&s->port);
    start(t, s, options, routes, n, ctx);
}

void site_close(struct task *t, struct site *s)
{
    group_cancel(&s->group);
    check(group_join(t, &s->group) == 0);
    http_server_free(s->server);
    metrics_close(s->metrics);
    close(s->fd);
}

int64_t site_metric(const struct site *s, const char *name_and_labels)
{
    struct buf b;
    buf_init(&b);
    metrics_render(s->metrics, &b);
    int64_t v = -1;
    struct str rest = buf_str(&b);
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');
        if (!str_starts(line, str_of(name_and_labels)))
            continue;
        (void)str_cut(&line, ' ');
        check(str_to_i64(line, &v));
        break;
    }
    buf_release(&b);
    return v;
}

void client_open(struct task *t, struct site *s, struct client *c)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof(a);
    check(getsockname(s->fd, (struct sockaddr *)&a, &n) == 0);
    int fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fd >= 0 && connect(fd, (struct sockaddr *)&a, n) == 0);
    int flags = 1;
    check(ioctl(fd, FIONBIO, &flags) == 0);
    watch_init(&c->watch, task_loop(t), fd);
    buf_init(&c->in);
}

void client_close(struct client *c)
{
    int fd = c->watch.fd;
    watch_release(&c->watch);
    close(fd);
    buf_release(&c->in);
}

/* The server may close while the client still sends. */
void client_send(struct task *t, struct client *c, struct str bytes)
{
    int err = watch_write(t, &c->watch, bytes.p, bytes.n);
    check(err == 0 || err == ERR_CLOSED);
}

/* 1, 0 at the end, -1 when nothing comes. */
static int fill(struct task *t, struct client *c)
{
    size_t got = 0;
    int64_t old = task_deadline(t, PATIENCE_MS);
    char *at = buf_reserve(&c->in, 4096);
    int err = watch_read(t, &c->watch, at, buf_room(&c->in), &got);
    task_deadline_restore(t, old);
    buf_added(&c->in, got);
    if (err == ERR_TIMEOUT)
        return -1;
    return err || got == 0 ? 0 : 1;
}

struct str client_read(struct task *t, struct client *c)
{
    if (c->in.len == 0) {
        int more = fill(t, c);
        if (more <= 0)
            return more < 0 ? STR_NULL : STR("");
    }
    struct str s = str_dup(task_arena(t), buf_str(&c->in));
    buf_clear(&c->in);
    return s;
}

bool client_at_end(struct task *t, struct client *c)
{
    return c->in.len == 0 && fill(t, c) == 0;
}

struct str reply_header(const struct reply *r, const char *name)
{
    struct str rest = r->head;
    while (rest.p) {
        struct str value = str_cut(&rest, '\n');
        struct str found = str_cut(&value, ':');
        if (value.p && value.n && str_ieq(found, str_of(name)))
            return str_trim(str_from(value.p, value.n - 1));
    }
    return STR_NULL;
}

bool reply_has(const struct reply *r, const char *text)
{
    return str_find(r->body, str_of(text)) >= 0;
}

static void read_chunked(struct task *t, struct client *c, struct reply *r)
{
    struct http_chunks chunks = {0};
    struct buf body;
    buf_init(&body);
    for (;;) {
        size_t used;
        struct str data = STR("");
        enum http_chunk_verdict v = http_chunk_next(&chunks, buf_str(&c->in), &used, &data);
        buf_add_str(&body, data);
        buf_consume(&c->in, used);
        if (v == HTTP_CHUNK_DATA)
            continue;
        r->cut = v != HTTP_CHUNK_END;
        if (v != HTTP_CHUNK_MORE || fill(t, c) <= 0)
            break;
    }
    r->body = str_dup(task_arena(t), buf_str(&body));
    buf_release(&body);
}

static void read_body(struct task *t, struct client *c, struct reply *r)
{
    int64_t n = INT64_MAX;
    struct str length = reply_header(r, "content-length");
    if (r->status == 204 || r->status == 304 || r->status == 100)
        return;
    if (str_eq(reply_header(r, "transfer-encoding"), STR("chunked"))) {
        read_chunked(t, c, r);
        return;
    }
    check(!length.p || str_to_i64(length, &n));
    while ((int64_t)c->in.len < n && fill(t, c) > 0)
        ;
    r->cut = length.p && (int64_t)c->in.len < n;
    size_t have = (int64_t)c->in.len < n ? c->in.len : (size_t)n;
    r->body = str_dup(task_arena(t), str_from(buf_str(&c->in).p, have));
    buf_consume(&c->in, have);
}

struct reply client_reply_to_head(struct task *t, struct client *c)
{
    ptrdiff_t end;
    while ((end = str_find(buf_str(&c->in), STR("\r\n\r\n"))) < 0) {
        int more = fill(t, c);
        if (more <= 0)
            return (struct reply){.status = more, .head = STR(""), .body = STR("")};
    }
    struct reply r = {.body = STR("")};
    r.head = str_dup(task_arena(t), str_from(buf_str(&c->in).p, (size_t)end + 4));
    buf_consume(&c->in, r.head.n);
    check(str_starts(r.head, STR("HTTP/1.1 ")));
    int64_t status;
    check(r.head.n > 12 && str_to_i64(str_from(r.head.p + 9, 3), &status));
    r.status = (int)status;
    return r;
}

struct reply client_reply(struct task *t, struct client *c)
{
    struct reply r = client_reply_to_head(t, c);
    if (r.status > 0)
        read_body(t, c, &r);
    return r;
}

struct reply ask(struct task *t, struct site *s, struct str request)
{
    struct client c;
    client_open(t, s, &c);
    client_send(t, &c, request);
    struct reply r = client_reply(t, &c);
    client_close(&c);
    return r;
}
