#include "wire/http_client/http_client_test_front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/net.h"

#define PIECE_BYTES 16384

struct pipe {
    struct front *front;
    SSL *ssl;
    struct watch client, server;
    bool connected;
    int users; /* tasks */
};

/* True: the call that returned r is to be repeated after a wait, which went well. */
static bool wait_for(struct task *t, struct pipe *k, int r)
{
    int why = SSL_get_error(k->ssl, r);
    int event = why == SSL_ERROR_WANT_READ    ? WATCH_READ
                : why == SSL_ERROR_WANT_WRITE ? WATCH_WRITE
                                              : 0;
    if (!event)
        return false;
    watch_drained(&k->client, event);
    return watch_wait(t, &k->client, event) == 0;
}

static bool shake_hands(struct task *t, struct pipe *k)
{
    int r;
    if (k->front->delay_ms && task_sleep(t, k->front->delay_ms))
        return false;
    while (ERR_clear_error(), (r = SSL_accept(k->ssl)) != 1)
        if (!wait_for(t, k, r))
            return false;
    k->front->resumed += SSL_session_reused(k->ssl) == 1;
    return true;
}

static bool connect_on(struct task *t, struct pipe *k)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)k->front->to_port)};
    int on = 1;
    k->connected = net_connect(t, (struct sockaddr *)&a, sizeof a, &k->server) == 0;
    if (k->connected)
        check(setsockopt(k->server.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    return k->connected;
}

static bool thawed(struct task *t, struct pipe *k)
{
    while (k->front->frozen)
        if (task_sleep(t, 10))
            return false;
    return true;
}

static void up(struct task *t, struct pipe *k)
{
    char in[PIECE_BYTES];
    for (;;) {
        ERR_clear_error();
        int n = SSL_read(k->ssl, in, sizeof in);
        if (n <= 0 && !wait_for(t, k, n))
            return;
        if (n > 0 && (!thawed(t, k) || watch_write(t, &k->server, in, (size_t)n)))
            return;
    }
}

static bool say(struct task *t, struct pipe *k, const char *p, size_t n)
{
    for (size_t done = 0; done < n;) {
        ERR_clear_error();
        int r = SSL_write(k->ssl, p + done, (int)(n - done));
        if (r <= 0 && !wait_for(t, k, r))
            return false;
        done += r > 0 ? (size_t)r : 0;
    }
    return true;
}

static void down(struct task *t, struct pipe *k)
{
    char in[PIECE_BYTES];
    size_t n;
    while (watch_read(t, &k->server, in, sizeof in, &n) == 0 && n > 0)
        if (!thawed(t, k) || !say(t, k, in, n))
            return;
}

static void let_go(struct pipe *k)
{
    if (k->users == 1) { /* the other task is done */
        SSL_free(k->ssl);
        watch_release(&k->client);
        close(k->client.fd);
        if (k->connected) {
            watch_release(&k->server);
            close(k->server.fd);
        }
        k->front->open--;
        free(k);
        return;
    }
    k->users--;
    ERR_clear_error();
    SSL_shutdown(k->ssl);
    shutdown(k->client.fd, SHUT_RDWR); /* wakes the other task */
    shutdown(k->server.fd, SHUT_RDWR);
}

static void serve_down(struct task *t, void *arg)
{
    down(t, arg);
    let_go(arg);
}

static void serve_up(struct task *t, void *arg)
{
    struct pipe *k = arg;
    if (shake_hands(t, k) && connect_on(t, k)) {
        k->users++;
        check(task_go(&k->front->group, "front down", serve_down, k) == 0);
        up(t, k);
    }
    let_go(k);
}

static void accept_all(struct task *t, void *arg)
{
    struct front *f = arg;
    while (watch_wait(t, &f->watch, WATCH_READ) == 0) {
        int fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
        if (fd < 0) {
            watch_drained(&f->watch, WATCH_READ);
            continue;
        }
        check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
        struct pipe *k = calloc(1, sizeof *k);
        check(k);
        k->front = f;
        k->users = 1;
        k->ssl = SSL_new(f->server);
        check(k->ssl && SSL_set_fd(k->ssl, fd) == 1);
        watch_init(&k->client, task_loop(t), fd);
        f->accepted++;
        f->open++;
        check(task_go(&f->group, "front up", serve_up, k) == 0);
    }
}

static void make_identity(struct front *f, const char *alpn)
{
    struct test_cert root =
        test_cert_make(&(struct test_cert_spec){.name = "Front Root", .authority = true});
    struct test_cert leaf = test_cert_make(&(struct test_cert_spec){
        .name = "front", .san = "IP:127.0.0.1,DNS:localhost,DNS:api.test", .issuer = &root});
    snprintf(f->ca_file, sizeof f->ca_file, "/tmp/http_client_front.XXXXXX");
    int fd = mkstemp(f->ca_file);
    check(fd >= 0);
    close(fd);
    test_cert_save(&root, f->ca_file);
    f->server = test_server_new(&leaf, NULL, alpn);
    test_cert_free(&root);
    test_cert_free(&leaf);
}

void front_open(struct front *f, struct loop *l, int to_port, const char *alpn)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    *f = (struct front){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                        .to_port = to_port};
    check(f->fd >= 0 && bind(f->fd, (struct sockaddr *)&a, n) == 0 && listen(f->fd, 4096) == 0);
    check(getsockname(f->fd, (struct sockaddr *)&a, &n) == 0);
    f->port = ntohs(a.sin_port);
    make_identity(f, alpn);
    group_init(&f->group, l);
    watch_init(&f->watch, l, f->fd);
    check(task_go(&f->group, "front", accept_all, f) == 0);
}

void front_open_for_peer(struct front *f, struct loop *l, struct peer *p)
{
    front_open(f, l, p->port, "http/1.1");
    p->front_port = f->port;
}

void front_close(struct task *t, struct front *f)
{
    group_cancel(&f->group);
    check(group_join(t, &f->group) == 0);
    check(f->open == 0);
    watch_release(&f->watch);
    close(f->fd);
    SSL_CTX_free(f->server);
    unlink(f->ca_file);
}
