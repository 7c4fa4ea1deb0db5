/* sandbox_probe.c -- tries what a sandbox must refuse. Compiled by tests/probe.c.
 *
 * `probe ACTION [ARGUMENT]` ends with 0 when it could do that, with 1 and a line when it was
 * refused, and with 2 when it does not know the action. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int refused(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

static int open_socket(int family, int type)
{
    return socket(family, type, 0) < 0 ? refused("socket") : 0;
}

static int try_tcp(const char *arg)
{
    (void)arg;
    return open_socket(AF_INET, SOCK_STREAM);
}

static int try_udp(const char *arg)
{
    (void)arg;
    return open_socket(AF_INET6, SOCK_DGRAM);
}

static int try_unix(const char *arg)
{
    (void)arg;
    return open_socket(AF_UNIX, SOCK_STREAM);
}

static int try_connect(const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((unsigned short)atoi(port)),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return refused("socket");
    return connect(fd, (struct sockaddr *)&to, sizeof to) < 0 ? refused("connect") : 0;
}

static int try_read(const char *path)
{
    char c;
    int fd = open(path, O_RDONLY);
    return fd < 0 || read(fd, &c, 1) != 1 ? refused("read") : 0;
}

static int try_list(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY) < 0 ? refused("open") : 0;
}

static int try_write(const char *path)
{
    signal(SIGXFSZ, SIG_IGN);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    return fd < 0 || write(fd, "x", 1) != 1 ? refused("write") : 0;
}

static int try_unlink(const char *path)
{
    return unlink(path) < 0 ? refused("unlink") : 0;
}

static int try_fork(const char *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return refused("fork");
        if (pid == 0)
            _exit(0);
        waitpid(pid, NULL, 0);
    }
    return 0;
}

/* A grandchild in a session of its own, which would outlive the deadline. */
static int try_outlive(const char *arg)
{
    pid_t pid = fork();
    if (pid < 0)
        return refused("fork");
    if (pid == 0) {
        setsid();
        sleep((unsigned)atoi(arg));
        _exit(0);
    }
    return 0;
}

static void *thread(void *arg)
{
    return arg;
}

static int try_thread(const char *arg)
{
    (void)arg;
    pthread_t id;
    errno = pthread_create(&id, NULL, thread, NULL);
    if (errno)
        return refused("thread");
    pthread_join(id, NULL);
    return 0;
}

static int try_ptrace(const char *arg)
{
    (void)arg;
    return ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) < 0 ? refused("ptrace") : 0;
}

static int try_traceme(const char *arg)
{
    (void)arg;
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? refused("ptrace") : 0;
}

static int try_signal(const char *pid)
{
    return kill(atoi(pid), 0) < 0 ? refused("kill") : 0;
}

static int try_owner(const char *pid)
{
    return fcntl(1, F_SETOWN, atoi(pid)) < 0 ? refused("fcntl") : 0;
}

static int try_limit(const char *pid)
{
    struct rlimit core;
    return prlimit(atoi(pid), RLIMIT_CORE, NULL, &core) < 0 ? refused("prlimit") : 0;
}

static int try_namespace(const char *arg)
{
    (void)arg;
    return unshare(CLONE_NEWUSER) < 0 ? refused("unshare") : 0;
}

static int try_uring(const char *arg)
{
    (void)arg;
    char params[120] = {0};
    return syscall(425, 1, params) < 0 ? refused("io_uring_setup") : 0;
}

static int try_keyctl(const char *arg)
{
    (void)arg;
    return syscall(SYS_keyctl, 0, -3, 0) < 0 ? refused("keyctl") : 0;
}

static int try_memory(const char *megabytes)
{
    size_t n = (size_t)atoi(megabytes) << 20;
    char *p = malloc(n);
    if (!p)
        return refused("malloc");
    memset(p, 1, n);
    return p[n - 1] == 1 ? 0 : 1;
}

static int try_files(const char *count)
{
    for (int i = 0; i < atoi(count); i++)
        if (dup(1) < 0)
            return refused("dup");
    return 0;
}

/* Ends by itself after the seconds of processor time: the limit must come first. */
static int try_spin(const char *seconds)
{
    struct rusage u;
    do
        getrusage(RUSAGE_SELF, &u);
    while (u.ru_utime.tv_sec + u.ru_stime.tv_sec < atoi(seconds));
    return 0;
}

/* Refused: it is what the kernel kills first when memory is short. */
static int try_survive(const char *arg)
{
    (void)arg;
    int adjusted = 0;
    FILE *f = fopen("/proc/self/oom_score_adj", "r");
    if (!f || fscanf(f, "%d", &adjusted) != 1)
        return refused("fopen");
    errno = ENOMEM;
    return adjusted == 1000 ? refused("survive") : 0;
}

static int try_abort(const char *arg)
{
    (void)arg;
    abort();
}

static int try_root(const char *arg)
{
    (void)arg;
    errno = EPERM;
    return geteuid() == 0 ? 0 : refused("root");
}

static const struct {
    const char *name;
    int (*try)(const char *arg);
} actions[] = {
    {"tcp", try_tcp},
    {"udp", try_udp},
    {"unix", try_unix},
    {"connect", try_connect},
    {"read", try_read},
    {"list", try_list},
    {"write", try_write},
    {"unlink", try_unlink},
    {"fork", try_fork},
    {"outlive", try_outlive},
    {"thread", try_thread},
    {"ptrace", try_ptrace},
    {"traceme", try_traceme},
    {"signal", try_signal},
    {"owner", try_owner},
    {"limit", try_limit},
    {"uring", try_uring},
    {"keyctl", try_keyctl},
    {"namespace", try_namespace},
    {"memory", try_memory},
    {"files", try_files},
    {"spin", try_spin},
    {"abort", try_abort},
    {"root", try_root},
    {"survive", try_survive},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof actions / sizeof *actions; i++)
        if (strcmp(argv[1], actions[i].name) == 0)
            return actions[i].try(argc > 2 ? argv[2] : "");
    return 2;
}
