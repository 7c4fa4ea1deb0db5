#include "wire/http_client/http_client_test_proxy.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/net.h"

#define PIECE_BYTES 16384

struct tunnel {
    struct proxy *proxy;
    struct watch client, server;
    bool connected;
    int users; /* tasks */
};

bool proxy_was_told(const struct proxy *p, const char *text)
{
    return str_find(buf_str(&p->last), str_of(text)) >= 0;
}

/* --- CONNECT --- */

static int read_head(struct task *t, struct tunnel *k)
{
    struct buf *in = &k->proxy->last;
    buf_clear(in);
    while (str_find(buf_str(in), STR("\r\n\r\n")) < 0) {
        char byte; /* what follows is for the tunnel */
        size_t got;
        int err = watch_read(t, &k->client, &byte, 1, &got);
        if (err || got == 0)
            return err ? err : ERR_CLOSED;
        buf_add(in, &byte, 1);
    }
    return 0;
}

static int say(struct task *t, struct tunnel *k, const char *text)
{
    size_t n = strlen(text), step = k->proxy->step ? k->proxy->step : n;
    int err = 0;
    for (size_t at = 0; at < n && !err; at += step) {
        err = watch_write(t, &k->client, text + at, n - at < step ? n - at : step);
        if (!err && at + step < n)
            err = task_sleep(t, 1);
    }
    return err;
}

static int until_gone(struct task *t, struct tunnel *k)
{
    char byte;
    size_t got;
    int err = 0;
    do
        err = watch_read(t, &k->client, &byte, 1, &got);
    while (!err && got > 0);
    return err;
}

static const char *answer_of(struct proxy *p)
{
    if (p->answer)
        return p->answer;
    if (p->login && !proxy_was_told(p, p->login))
        return "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n"
               "Content-Length: 5\r\n\r\nlogin";
    return NULL;
}

static int connect_on(struct task *t, struct tunnel *k)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)k->proxy->to_port)};
    int err = net_connect(t, (struct sockaddr *)&a, sizeof a, &k->server);
    k->connected = !err;
    return err ? err : say(t, k, "HTTP/1.1 200 Connection established\r\n\r\n");
}

/* 0: the tunnel stands. */
static int greet(struct task *t, struct tunnel *k)
{
    struct proxy *p = k->proxy;
    int err = read_head(t, k);
    if (!err && p->delay_ms)
        err = task_sleep(t, p->delay_ms);
    if (err)
        return err;
    if (p->silent)
        return until_gone(t, k), ERR_CLOSED;
    const char *answer = answer_of(p);
    if (!answer)
        return connect_on(t, k);
    err = say(t, k, answer);
    if (!err && p->stays)
        err = until_gone(t, k);
    return err ? err : ERR_CLOSED;
}

/* --- the tunnel --- */

static void move(struct task *t, struct watch *from, struct watch *to)
{
    char in[PIECE_BYTES];
    size_t n;
    while (watch_read(t, from, in, sizeof in, &n) == 0 && n > 0)
        if (watch_write(t, to, in, n))
            return;
}

static void let_go(struct tunnel *k)
{
    if (k->users > 1) { /* wakes the other task */
        k->users--;
        shutdown(k->client.fd, SHUT_RDWR);
        shutdown(k->server.fd, SHUT_RDWR);
        return;
    }
    watch_release(&k->client);
    close(k->client.fd);
    if (k->connected) {
        watch_release(&k->server);
        close(k->server.fd);
    }
    k->proxy->open--;
    free(k);
}

static void serve_down(struct task *t, void *arg)
{
    struct tunnel *k = arg;
    move(t, &k->server, &k->client);
    let_go(k);
}

static void serve(struct task *t, void *arg)
{
    struct tunnel *k = arg;
    if (greet(t, k) == 0) {
        k->proxy->tunnels++;
        k->users++;
        check(task_go(&k->proxy->group, "proxy down", serve_down, k) == 0);
        move(t, &k->client, &k->server);
    }
    let_go(k);
}

static void accept_all(struct task *t, void *arg)
{
    struct proxy *p = arg;
    while (watch_wait(t, &p->watch, WATCH_READ) == 0) {
        int fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            watch_drained(&p->watch, WATCH_READ);
            continue;
        }
        struct tunnel *k = calloc(1, sizeof *k);
        check(k);
        k->proxy = p;
        k->users = 1;
        watch_init(&k->client, task_loop(t), fd);
        p->accepted++;
        p->open++;
        check(task_go(&p->group, "proxy", serve, k) == 0);
    }
}

void proxy_open(struct proxy *p, struct loop *l, int to_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    *p = (struct proxy){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                        .to_port = to_port};
    check(p->fd >= 0 && bind(p->fd, (struct sockaddr *)&a, n) == 0 && listen(p->fd, 4096) == 0);
    check(getsockname(p->fd, (struct sockaddr *)&a, &n) == 0);
    p->port = ntohs(a.sin_port);
    buf_init(&p->last);
    group_init(&p->group, l);
    watch_init(&p->watch, l, p->fd);
    check(task_go(&p->group, "proxy accepts", accept_all, p) == 0);
}

void proxy_close(struct task *t, struct proxy *p)
{
    group_cancel(&p->group);
    check(group_join(t, &p->group) == 0);
    check(p->open == 0);
    watch_release(&p->watch);
    close(p->fd);
    buf_release(&p->last);
}
