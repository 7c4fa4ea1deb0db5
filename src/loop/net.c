#include "loop/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop/offload.h"
#include "loop/watch.h"

static int connect_error(struct task *t, const char *where)
{
    return task_fail(t, ERR_UNAVAILABLE, "cannot connect to %s: %s", where, strerror(errno));
}

/* Waits until the connection is established. Closes fd when it fails. */
static int finish_connect(struct task *t, int fd, const char *where)
{
    struct watch w;
    watch_init(&w, task_loop(t), fd);
    watch_drained(&w, WATCH_WRITE); /* the edge comes with the outcome */
    int err = watch_wait(t, &w, WATCH_WRITE);
    watch_release(&w);
    if (!err) {
        int so_error = 0;
        socklen_t n = sizeof so_error;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &so_error, &n);
        errno = so_error;
        if (so_error)
            err = connect_error(t, where);
    }
    if (err)
        close(fd);
    return err;
}

static int connect_to(struct task *t, const struct sockaddr *addr, socklen_t n, const char *where,
                      int *out)
{
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return task_fail(t, ERR_IO, "socket: %s", strerror(errno));
    if (connect(fd, addr, n) != 0) {
        if (errno != EINPROGRESS) {
            int err = connect_error(t, where);
            close(fd);
            return err;
        }
        int err = finish_connect(t, fd, where);
        if (err)
            return err;
    }
    *out = fd;
    return 0;
}

int net_connect_unix(struct task *t, const char *path, int *fd)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof addr.sun_path)
        return task_fail(t, ERR_INVALID, "socket path is longer than %zu bytes: %s",
                         sizeof addr.sun_path - 1, path);
    memcpy(addr.sun_path, path, strlen(path));
    return connect_to(t, (struct sockaddr *)&addr, sizeof addr, path, fd);
}

struct lookup {
    const char *host;
    struct net_addresses *out;
    int err; /* of getaddrinfo */
};

/* On a helper thread: may take seconds. */
static void look_up(void *arg)
{
    struct lookup *k = arg;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    k->err = getaddrinfo(k->host, NULL, &hints, &found);
    if (k->err)
        return;
    for (struct addrinfo *a = found; a && k->out->count < NET_ADDRESSES_MAX; a = a->ai_next)
        if (getnameinfo(a->ai_addr, a->ai_addrlen, k->out->text[k->out->count],
                        sizeof k->out->text[0], NULL, 0, NI_NUMERICHOST) == 0)
            k->out->count++;
    freeaddrinfo(found);
}

static bool is_address(const char *host)
{
    struct in6_addr ignored;
    return inet_pton(AF_INET, host, &ignored) == 1 || inet_pton(AF_INET6, host, &ignored) == 1;
}

int net_look_up(struct task *t, const char *host, struct net_addresses *out)
{
    out->count = 0;
    if (is_address(host)) {
        snprintf(out->text[out->count++], sizeof out->text[0], "%s", host);
        return 0;
    }
    struct lookup k = {.host = host, .out = out};
    int err = offload(t, look_up, &k);
    if (err)
        return err;
    if (k.err || out->count == 0)
        return task_fail(t, ERR_UNAVAILABLE, "cannot find %s: %s", host,
                         gai_strerror(k.err ? k.err : EAI_NONAME));
    return 0;
}

static int connect_to_address(struct task *t, const char *address, const char *port, int *fd)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *a;
    int bad = getaddrinfo(address, port, &hints, &a);
    if (bad)
        return task_fail(t, ERR_INVALID, "%s, port %s: %s", address, port, gai_strerror(bad));
    int err = connect_to(t, a->ai_addr, a->ai_addrlen, address, fd);
    freeaddrinfo(a);
    return err;
}

int net_connect_tcp(struct task *t, const char *host, const char *port, int *fd)
{
    struct net_addresses found;
    int err = net_look_up(t, host, &found);
    if (err)
        return err;
    for (size_t i = 0; i < found.count; i++) {
        err = connect_to_address(t, found.text[i], port, fd);
        if (err != ERR_UNAVAILABLE)
            break;
    }
    if (err == 0) {
        int on = 1;
        setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(*fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    return err;
}
