#include "serve/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/setup/config.h"
#include "loop/backoff.h"

#define BACKLOG  4096
#define RETRY_MS 50
#define GIVEN_FD 3 /* sd_listen_fds(3): the first one */

/* --- at a path --- */

/* Whether a process listens there. A path without a socket counts as in use: it is not ours to
 * remove. */
static bool is_in_use(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true;
    bool refused = connect(fd, address, len) < 0 && errno == ECONNREFUSED;
    close(fd);
    return !refused;
}

static int bind_at_path(int fd, const struct sockaddr *address, socklen_t len)
{
    const char *path = ((const struct sockaddr_un *)(const void *)address)->sun_path;
    struct stat st;
    if (fchmod(fd, 0600) < 0) /* also of the file that bind makes */
        return -1;
    if (bind(fd, address, len) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return -1;
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
        errno = ENOTSOCK;
        return -1;
    }
    if (is_in_use(address, len)) {
        errno = EADDRINUSE;
        return -1;
    }
    return unlink(path) == 0 || errno == ENOENT ? bind(fd, address, len) : -1;
}

int listener_admit(struct task *t, const char *listen_at, mode_t mode, uid_t uid, gid_t gid)
{
    const char *path = config_unix_path(listen_at);
    if (!path)
        return 0;
    if ((geteuid() == 0 && lchown(path, uid, gid) < 0) || chmod(path, mode) < 0)
        return task_fail(t, ERR_IO, "%s: cannot set owner and rights: %s", path, strerror(errno));
    return 0;
}

void listener_remove(const char *listen_at)
{
    const char *path = config_unix_path(listen_at);
    if (path)
        unlink(path);
}

/* --- opening --- */

static int try_open(const char *listen_at)
{
    struct sockaddr_storage address;
    const struct sockaddr *a = (const struct sockaddr *)&address;
    socklen_t len;
    check(config_address(str_of(listen_at), &address, &len));
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int bound = a->sa_family == AF_UNIX ? bind_at_path(fd, a, len) : bind(fd, a, len);
    if (bound == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static const char *hint_of(int error, bool path)
{
    if (error == EADDRINUSE)
        return "; choose another with --listen or MILLRACE_LISTEN";
    if (error == ENOTSOCK)
        return "; the file there is not removed";
    if (error == EACCES)
        return path ? "; the folder must be writable" : "; ports below 1024 are for root";
    return error == ENOENT && path ? "; make the folder first" : "";
}

int listener_open(struct task *t, const char *listen_at, int64_t retry_ms, int *out)
{
    int64_t until = loop_now_ms(task_loop(t)) + retry_ms;
    while ((*out = try_open(listen_at)) < 0) {
        if (errno != EADDRINUSE || loop_now_ms(task_loop(t)) >= until)
            return task_fail(t, ERR_IO, "cannot listen at %s: %s%s", listen_at, strerror(errno),
                             hint_of(errno, config_unix_path(listen_at)));
        int err = backoff_wait(t, &(struct backoff){.ms = RETRY_MS});
        if (err)
            return err;
    }
    return 0;
}

/* --- passed by a service manager --- */

static int option(int fd, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

static const char *problem_of(int fd)
{
    int domain = option(fd, SO_DOMAIN);
    if (domain < 0)
        return "is not a socket";
    if (domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX)
        return "is a socket of another family than IPv4, IPv6 and unix";
    if (option(fd, SO_TYPE) != SOCK_STREAM)
        return "is not a stream socket; use ListenStream=";
    if (option(fd, SO_ACCEPTCONN) != 1)
        return "does not listen; use Accept=no";
    return NULL;
}

int listener_given(struct task *t, int *fd)
{
    const char *count_text = getenv("LISTEN_FDS"), *pid_text = getenv("LISTEN_PID");
    int64_t pid, count = 0;
    *fd = -1;
    bool ours = count_text && pid_text && str_to_i64(str_of(pid_text), &pid) && pid == getpid();
    bool valid = ours && str_to_i64(str_of(count_text), &count) && count >= 0;
    count_text = ours ? arena_strdup(task_arena(t), count_text) : NULL;
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDNAMES");
    if (!ours || (valid && count == 0))
        return 0;
    if (!valid || count != 1)
        return task_fail(t, ERR_INVALID,
                         "LISTEN_FDS is \"%s\"; expected is one socket: a socket unit for millrace "
                         "has one ListenStream=",
                         count_text);
    const char *problem = problem_of(GIVEN_FD);
    if (problem)
        return task_fail(t, ERR_INVALID, "the file %d that the service manager has passed %s",
                         GIVEN_FD, problem);
    int flags = fcntl(GIVEN_FD, F_GETFL);
    if (flags < 0 || fcntl(GIVEN_FD, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(GIVEN_FD, F_SETFD, FD_CLOEXEC) < 0)
        return task_fail(t, ERR_IO, "the socket of the service manager: %s", strerror(errno));
    *fd = GIVEN_FD;
    return 0;
}

/* --- its name --- */

const char *listener_url(struct arena *a, int fd)
{
    struct sockaddr_storage s;
    socklen_t len = sizeof s;
    char host[INET6_ADDRSTRLEN] = "";
    check(getsockname(fd, (struct sockaddr *)&s, &len) == 0);
    if (s.ss_family == AF_UNIX) {
        const struct sockaddr_un *at = (const struct sockaddr_un *)&s;
        size_t n = len > offsetof(struct sockaddr_un, sun_path)
                       ? strnlen(at->sun_path, len - offsetof(struct sockaddr_un, sun_path))
                       : 0;
        return arena_printf(a, "unix:%.*s", (int)n, at->sun_path);
    }
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

const char *listener_pages(const char *url)
{
    return config_unix_path(url) ? "https://HOST" : url;
}
