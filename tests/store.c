#include "tests/store.h"

#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

#define START_MS  10000
#define EXTRA_MAX 16
#define ANSWER_MS 5000
#define STEP_MS   5

static _Noreturn void bail_out(const char *why)
{
    printf("Bail out! %s\n", why);
    fflush(stdout);
    _exit(1);
}

/* Debian's redis-tools has the server too: redis-check-rdb, started under the server's name. */
static const char *find_program(const char *name, char *out, size_t n)
{
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        int len = (int)strcspn(at, ":");
        snprintf(out, n, "%.*s/%s", len, at, name);
        if (access(out, X_OK) == 0)
            return out;
        at += len + (at[len] == ':');
    }
    return NULL;
}

static void link_server(const struct store_redis *s)
{
    char program[256], link[96];
    if (!find_program("redis-server", program, sizeof(program)) &&
        !find_program("redis-check-rdb", program, sizeof(program)))
        bail_out("neither redis-server nor redis-check-rdb is installed (Debian: redis-tools)");
    snprintf(link, sizeof(link), "%s/redis-server", s->dir);
    if (symlink(program, link) != 0)
        bail_out("cannot link redis-server");
}

int store_free_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fd >= 0 && bind(fd, (struct sockaddr *)&addr, n) == 0);
    check(getsockname(fd, (struct sockaddr *)&addr, &n) == 0);
    close(fd);
    return ntohs(addr.sin_port);
}

void store_redis_start(struct store_redis *s, const char *const *extra)
{
    *s = (struct store_redis){.port = store_free_port()};
    strcpy(s->dir, "/tmp/millrace-redis-XXXXXX");
    if (!mkdtemp(s->dir))
        bail_out("cannot make a directory under /tmp");
    link_server(s);
    snprintf(s->url_unix, sizeof(s->url_unix), "unix:%s/redis.sock", s->dir);
    snprintf(s->url_tcp, sizeof(s->url_tcp), "redis://127.0.0.1:%d", s->port);
    s->socket_path = s->url_unix + strlen("unix:");
    store_redis_spawn(s, extra);
    store_redis_await(s);
}

static _Noreturn void become_redis(const struct store_redis *s, const char *const *extra)
{
    char program[96], port[12];
    snprintf(program, sizeof(program), "%s/redis-server", s->dir);
    snprintf(port, sizeof(port), "%d", s->port);
    const char *argv[20 + EXTRA_MAX] = {
        program,
        "--port",
        port,
        "--bind",
        "127.0.0.1",
        "--unixsocket",
        s->socket_path,
        "--dir",
        s->dir,
        "--save",
        "",
        "--logfile",
        "redis.log",
        "--enable-debug-command",
        "local",
    };
    size_t n = 15;
    for (size_t i = 0; extra && extra[i] && i < EXTRA_MAX; i++)
        argv[n++] = extra[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that dies leaves no server */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execv(program, (char *const *)(const void *)argv);
    _exit(127);
}

void store_redis_spawn(struct store_redis *s, const char *const *extra)
{
    check(s->pid == 0);
    s->pid = fork();
    check(s->pid >= 0);
    if (s->pid == 0)
        become_redis(s, extra);
}

static int dial(const struct store_redis *s)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    strcpy(addr.sun_path, s->socket_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fd >= 0);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
        return fd;
    close(fd);
    return -1;
}

void store_redis_await(const struct store_redis *s)
{
    for (int ms = 0; ms < START_MS; ms += STEP_MS) {
        int fd = dial(s);
        if (fd >= 0) {
            close(fd);
            return;
        }
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid)
            bail_out("redis-server ended at once");
        usleep(STEP_MS * 1000);
    }
    bail_out("redis-server does not answer");
}

static void end(struct store_redis *s, int signo)
{
    if (s->pid == 0)
        return;
    kill(s->pid, signo);
    kill(s->pid, SIGCONT); /* a stopped one could not end */
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    s->pid = 0;
}

void store_redis_kill(struct store_redis *s)
{
    end(s, SIGKILL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void store_redis_stop(struct store_redis *s)
{
    end(s, SIGKILL);
    nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool store_redis_say(const struct store_redis *s, const char *line, char *answer, size_t n)
{
    char head[512];
    int fd = dial(s);
    if (fd < 0)
        return false;
    struct timeval limit = {ANSWER_MS / 1000, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    int len = snprintf(head, sizeof(head), "%s\r\n", line);
    ssize_t got = send(fd, head, (size_t)len, MSG_NOSIGNAL);
    got = got == len ? recv(fd, head, sizeof(head) - 1, 0) : -1;
    close(fd);
    head[got > 0 ? got : 0] = '\0';
    if (n > 0)
        snprintf(answer, n, "%s", head);
    return got > 0 && head[0] != '-';
}
