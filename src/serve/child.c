#include "serve/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/close_range.h>

#include "base/check.h"
#include "base/log.h"

#define LOG_BYTES_MAX    (16 * 1024 * 1024)
#define HIGH_FD          100 /* above all descriptors that a child gets */
#define KILLED_WAIT_MS   10000
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS  10000
#define BACKOFF_RESET_MS 30000

/* --- between fork and exec: async-signal-safe calls only --- */

struct birth {
    const struct child_spec *spec;
    pid_t parent;
    int pid_fd;    /* -1: none */
    int report_fd; /* closed by exec; errno goes here when it fails */
};

static void write_pid(int fd)
{
    char digits[16];
    size_t at = sizeof digits;
    digits[--at] = '\n';
    for (pid_t pid = getpid(); pid > 0; pid /= 10)
        digits[--at] = (char)('0' + pid % 10);
    ssize_t ignored = write(fd, digits + at, sizeof digits - at);
    (void)ignored;
}

static bool arrange_files(const struct birth *b)
{
    const struct child_spec *s = b->spec;
    int high[CHILD_FDS_MAX];
    for (size_t i = 0; i < s->fd_count; i++)
        if ((high[i] = fcntl(s->fds[i], F_DUPFD_CLOEXEC, HIGH_FD)) < 0)
            return false;
    int in = s->in_fd > 0 ? s->in_fd : open("/dev/null", O_RDONLY);
    if (in < 0 || dup2(in, 0) < 0)
        return false;
    if ((s->out_fd >= 0 && dup2(s->out_fd, 1) < 0) || (s->err_fd >= 0 && dup2(s->err_fd, 2) < 0))
        return false;
    /* Libraries may have opened files without close-on-exec. */
    if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        return false;
    for (size_t i = 0; i < s->fd_count; i++)
        if (dup2(high[i], 3 + (int)i) < 0)
            return false;
    return true;
}

static void default_signals(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    for (int signo = 1; signo < NSIG; signo++)
        sigaction(signo, &dfl, NULL); /* fails for some, which have no handlers either */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void become(const struct birth *b)
{
    const struct child_spec *s = b->spec;
    setsid();
    if (s->death_signal) {
        prctl(PR_SET_PDEATHSIG, s->death_signal);
        if (getppid() != b->parent)
            _exit(1); /* the parent died before prctl */
    }
    /* report_fd may have a number that arrange_files assigns. */
    int report = fcntl(b->report_fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (b->pid_fd >= 0)
        write_pid(b->pid_fd);
    if ((!s->dir || chdir(s->dir) == 0) && arrange_files(b)) {
        default_signals();
        execv(s->path, (char *const *)(uintptr_t)s->argv);
    }
    int error = errno;
    ssize_t ignored = write(report, &error, sizeof error);
    (void)ignored;
    _exit(127);
}

/* --- starting --- */

/* 0 when the program runs, else the errno of the child. Returns when exec has closed the pipe. */
static int read_report(int fd)
{
    int error = 0;
    ssize_t n;
    do
        n = read(fd, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof error ? error : 0;
}

/* With signals blocked: a handler must not run in the new process. */
static pid_t fork_quietly(const struct birth *b)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid_t pid = fork();
    if (pid == 0)
        become(b);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return pid;
}

static int spawn(const struct child_spec *s, pid_t *pid)
{
    int report[2];
    struct birth b = {.spec = s, .parent = getpid(), .pid_fd = -1};
    if (s->pid_path) {
        b.pid_fd = open(s->pid_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (b.pid_fd < 0)
            return errno;
    }
    int error = 0;
    if (pipe2(report, O_CLOEXEC) < 0) {
        error = errno;
    } else {
        b.report_fd = report[1];
        *pid = fork_quietly(&b);
        error = *pid < 0 ? errno : 0;
        close(report[1]);
        if (!error && (error = read_report(report[0])) != 0)
            waitpid(*pid, NULL, 0);
        close(report[0]);
    }
    if (b.pid_fd >= 0)
        close(b.pid_fd);
    return error;
}

/* --- waiting --- */

void supervision_init(struct supervision *s, struct loop *l, const char *binary)
{
    *s = (struct supervision){.loop = l, .binary = binary};
    waitq_init(&s->changed);
}

void supervision_wake(struct supervision *s)
{
    waitq_wake_all(&s->changed);
}

void supervision_wait(struct task *t, struct supervision *s, int64_t at_ms)
{
    check(!task_canceled(t)); /* or the caller's loop would spin */
    int64_t now = loop_now_ms(s->loop);
    int64_t old = task_deadline(t, at_ms > now ? at_ms - now : 0);
    int err = waitq_wait(t, &s->changed);
    (void)err; /* the caller tests its clock and its conditions anyway */
    task_deadline_restore(t, old);
}

void supervision_pause(struct task *t, struct supervision *s, int64_t ms, const bool *stop)
{
    int64_t until = loop_now_ms(s->loop) + ms;
    while (!*stop && loop_now_ms(s->loop) < until)
        supervision_wait(t, s, until);
}

/* --- watching --- */

static void on_end(void *arg, int fd, int events)
{
    (void)events;
    struct child *c = arg;
    siginfo_t info = {0};
    c->status = -1;
    /* Until waitpid its pid and process group cannot be reused. */
    if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOWAIT) == 0) {
        kill(-c->pid, SIGKILL);
        waitpid(c->pid, &c->status, 0);
    }
    child_release(c);
    supervision_wake(c->shared);
}

int child_adopt(struct child *c, struct supervision *shared, pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return ERR_NOT_FOUND;
    *c = (struct child){.shared = shared, .pid = pid, .running = true, .status = -1, .pidfd = fd};
    poller_init(&c->poller, shared->loop, fd, on_end, c);
    poller_set(&c->poller, WATCH_READ);
    return 0;
}

int child_start(struct task *t, struct child *c, struct supervision *shared,
                const struct child_spec *s)
{
    pid_t pid = 0;
    check(s->fd_count <= CHILD_FDS_MAX);
    int error = spawn(s, &pid);
    if (error)
        return task_fail(t, ERR_IO, "cannot start %s: %s", s->path, strerror(error));
    check(child_adopt(c, shared, pid) == 0); /* a child exists until waitpid */
    return 0;
}

void child_release(struct child *c)
{
    if (!c->running)
        return;
    c->running = false;
    poller_release(&c->poller);
    close(c->pidfd);
}

/* --- stopping --- */

void child_signal(struct child *c, int signo)
{
    if (c->running)
        syscall(SYS_pidfd_send_signal, c->pidfd, signo, NULL, 0);
}

void child_finish(struct task *t, struct child *c, int64_t grace_ms, int level)
{
    if (!c->running)
        return;
    struct supervision *s = c->shared;
    int64_t kill_at = loop_now_ms(s->loop) + grace_ms;
    while (c->running && loop_now_ms(s->loop) < kill_at && s->hurry < level)
        supervision_wait(t, s, kill_at);
    if (!c->running)
        return;
    log_warn("child", "process %d has not ended in time; killing it", (int)c->pid);
    child_signal(c, SIGKILL);
    int64_t say_at = loop_now_ms(s->loop) + KILLED_WAIT_MS;
    while (c->running) {
        supervision_wait(t, s, say_at);
        if (c->running && loop_now_ms(s->loop) >= say_at) {
            /* It hangs in the kernel, on a broken disk for instance. A second store on the same
             * data would be worse than waiting. */
            log_error("child",
                      "process %d was killed but has not ended; waiting for it, look at its disk",
                      (int)c->pid);
            say_at += KILLED_WAIT_MS;
        }
    }
}

void child_stop(struct task *t, struct child *c, int64_t grace_ms, int level)
{
    child_signal(c, SIGTERM);
    child_finish(t, c, grace_ms, level);
}

/* --- outcome, log, backoff --- */

const char *child_outcome(const struct child *c, struct arena *a)
{
    if (c->running)
        return "running";
    if (c->status == -1)
        return "an unknown outcome";
    if (WIFSIGNALED(c->status))
        return arena_printf(a, "signal %d (%s)", WTERMSIG(c->status),
                            strsignal(WTERMSIG(c->status)));
    return arena_printf(a, "exit status %d", WEXITSTATUS(c->status));
}

int child_log_open(const char *path)
{
    struct stat st;
    char aside[4096];
    if (stat(path, &st) == 0 && st.st_size > LOG_BYTES_MAX &&
        snprintf(aside, sizeof aside, "%s.old", path) < (int)sizeof aside)
        rename(path, aside);
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

int64_t respawn_after(struct respawn *b, int64_t ran_ms)
{
    if (ran_ms >= BACKOFF_RESET_MS || b->delay_ms == 0)
        b->delay_ms = BACKOFF_FIRST_MS;
    else
        b->delay_ms = b->delay_ms * 2 < BACKOFF_MOST_MS ? b->delay_ms * 2 : BACKOFF_MOST_MS;
    return b->delay_ms;
}
