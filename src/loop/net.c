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

/* The outcome of a connect that is under way. */
static int finish_connect(struct task *t, struct watch *w)
{
    watch_drained(w, WATCH_READ | WATCH_WRITE); /* the edge comes with the outcome */
    int err = watch_wait(t, w, WATCH_WRITE);
    int why = 0;
    socklen_t n = sizeof why;
    if (!err)
        getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &why, &n);
    errno = why;
    return why ? ERR_UNAVAILABLE : err;
}

int net_connect(struct task *t, const struct sockaddr *addr, socklen_t n, struct watch *w)
{
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return ERR_IO;
    int why = connect(fd, addr, n) == 0 ? 0 : errno;
    watch_init(w, task_loop(t), fd);
    int err = why == EINPROGRESS ? finish_connect(t, w) : why ? ERR_UNAVAILABLE : 0;
    if (!err)
        return 0;
    why = why == EINPROGRESS ? errno : why;
    watch_release(w);
    close(fd);
    errno = why;
    return err;
}

static int connect_to(struct task *t, const struct sockaddr *addr, socklen_t n, const char *where,
                      int *fd)
{
    struct watch w;
    int err = net_connect(t, addr, n, &w);
    if (err == ERR_IO)
        return task_fail(t, err, "socket: %s", strerror(errno));
    if (err == ERR_UNAVAILABLE)
        return task_fail(t, err, "cannot connect to %s: %s", where, strerror(errno));
    if (err)
        return err;
    watch_release(&w);
    *fd = w.fd;
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
