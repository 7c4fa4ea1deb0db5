#include "serve/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/setup/config.h"
#include "loop/backoff.h"

#define BACKLOG  4096
#define RETRY_MS 50

static int try_open(const char *listen_at)
{
    struct sockaddr_storage address;
    socklen_t len;
    check(config_address(str_of(listen_at), &address, &len));
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int listener_open(struct task *t, const char *listen_at, int64_t retry_ms, int *out)
{
    int64_t until = loop_now_ms(task_loop(t)) + retry_ms;
    while ((*out = try_open(listen_at)) < 0) {
        const char *hint = errno == EADDRINUSE ? "; choose another with --listen or MILLRACE_LISTEN"
                           : errno == EACCES   ? "; ports below 1024 are for root"
                                               : "";
        if (errno != EADDRINUSE || loop_now_ms(task_loop(t)) >= until)
            return task_fail(t, ERR_IO, "cannot listen at %s: %s%s", listen_at, strerror(errno),
                             hint);
        int err = backoff_wait(t, &(struct backoff){.ms = RETRY_MS});
        if (err)
            return err;
    }
    return 0;
}

const char *listener_url(struct arena *a, int fd)
{
    struct sockaddr_storage s;
    socklen_t len = sizeof s;
    char host[INET6_ADDRSTRLEN] = "";
    check(getsockname(fd, (struct sockaddr *)&s, &len) == 0);
    if (s.ss_family == AF_INET) {
        struct sockaddr_in *in = (struct sockaddr_in *)&s;
        if (in->sin_addr.s_addr == htonl(INADDR_ANY))
            in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        return arena_printf(a, "http://%s:%d", host, ntohs(in->sin_port));
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&s;
    if (IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
        in6->sin6_addr = in6addr_loopback;
    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
    return arena_printf(a, "http://[%s]:%d", host, ntohs(in6->sin6_port));
}
