/* Connecting. See watch.h. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

/* Waits until the connection stands. Closes fd when it fails. */
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
    const char *host, *port;
    int flags;
    struct addrinfo *found;
    int err;
};

static void look_up(void *arg)
{
    struct lookup *k = arg;
    struct addrinfo hints = {.ai_flags = k->flags, .ai_socktype = SOCK_STREAM};
    k->err = getaddrinfo(k->host, k->port, &hints, &k->found);
}

static int resolve(struct task *t, struct lookup *k)
{
    k->flags = AI_NUMERICHOST | AI_NUMERICSERV;
    look_up(k);
    if (k->err == EAI_NONAME) { /* a real name: may take seconds */
        k->flags = AI_NUMERICSERV;
        int err = offload(t, look_up, k);
        if (err)
            return err;
    }
    if (k->err)
        return task_fail(t, ERR_UNAVAILABLE, "cannot find %s: %s", k->host, gai_strerror(k->err));
    return 0;
}

int net_connect_tcp(struct task *t, const char *host, const char *port, int *fd)
{
    struct lookup k = {.host = host, .port = port};
    int err = resolve(t, &k);
    if (err)
        return err;
    err = ERR_UNAVAILABLE;
    for (struct addrinfo *a = k.found; a; a = a->ai_next) {
        err = connect_to(t, a->ai_addr, a->ai_addrlen, host, fd);
        if (err == 0 || err == ERR_CANCELED || err == ERR_TIMEOUT)
            break;
    }
    freeaddrinfo(k.found);
    if (err == 0) {
        int on = 1;
        setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(*fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    return err;
}
