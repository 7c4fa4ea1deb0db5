#include "loop/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "loop/sandbox_private.h"
#include "loop/watch.h"

#define PIECE_BYTES       (64 * 1024)   /* of output, read at once: what a pipe holds */
#define INPUT_PIECE_BYTES (1024 * 1024) /* copied before other tasks run */
#define CHILD_STACK_BYTES (32 * 1024)

static const char *const environment[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "LANG=C.UTF-8",
    "LC_ALL=C.UTF-8",
    "HOME=/nonexistent",
    NULL,
};

/* --- between clone and exec, on memory of the parent: system calls only --- */

struct report {
    const char *step; /* what failed: a constant */
    int error;
};

struct birth {
    const struct process *process;
    struct sandbox_plan *plan; /* NULL: none */
    pid_t parent;
    int in, out, err; /* ours; above 2 */
    int report_fd;    /* closed by exec */
};

IN_CHILD static void default_signals(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    for (int signo = 1; signo < NSIG; signo++)
        sigaction(signo, &dfl, NULL); /* fails for some, which have no handlers either */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

IN_CHILD static const char *become(const struct birth *b)
{
    if (setsid() < 0)
        return "setsid";
    if (dup2(b->in, 0) < 0 || dup2(b->out, 1) < 0 || dup2(b->err, 2) < 0 || chdir("/") < 0 ||
        syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        return "files";
    const char *failed = b->plan ? sandbox_begin(b->plan) : NULL;
    if (failed)
        return failed;
    /* A change of user forgets this. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != b->parent)
        return "parent";
    failed = b->plan ? sandbox_enter(b->plan) : NULL;
    if (failed)
        return failed;
    default_signals();
    execve(b->process->argv[0], (char *const *)(uintptr_t)b->process->argv,
           (char *const *)(uintptr_t)environment);
    return "exec";
}

IN_CHILD static int child(void *arg)
{
    const struct birth *b = arg;
    struct report r;
    r.step = become(b);
    r.error = errno;
    ssize_t ignored = write(b->report_fd, &r, sizeof r);
    (void)ignored;
    syscall(SYS_exit_group, 127);
    return 127;
}

/* --- starting --- */

struct stream {
    struct run *run;
    int fd; /* -1: at its end */
    struct poller poller;
    struct buf kept;
    size_t max;
};

struct run {
    struct task *task;
    pid_t pid;
    int pidfd, report_fd;
    int layers;
    struct poller end;
    struct stream out, err;
    bool ended, too_much;
    int status;
};

/* Memory that can be read, and not changed any more. The copy is made in pieces. */
static int input_file(struct task *t, struct str input, int *out)
{
    int fd = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int err = fd < 0 ? task_fail(t, ERR_IO, "memfd_create: %s", strerror(errno)) : 0;
    while (!err && input.n) {
        ssize_t n = write(fd, input.p, input.n < INPUT_PIECE_BYTES ? input.n : INPUT_PIECE_BYTES);
        if (n < 0)
            err = task_fail(t, ERR_IO, "the input of a program: %s", strerror(errno));
        else
            input = str_skip(input, (size_t)n);
        if (!err && input.n)
            err = task_yield(t);
    }
    if (!err && (lseek(fd, 0, SEEK_SET) < 0 ||
                 fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)))
        err = task_fail(t, ERR_IO, "the input of a program: %s", strerror(errno));
    if (err && fd >= 0)
        close(fd);
    else
        *out = fd;
    return err;
}

/* Returns when the child has called exec or has ended: until then it uses our memory, and its own
 * stack. With signals blocked: a handler must not run in it. */
static pid_t clone_quietly(struct birth *b, int flags)
{
    char *stack = malloc(CHILD_STACK_BYTES);
    check(stack);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int dumpable = prctl(PR_GET_DUMPABLE);
    pid_t pid =
        clone(child, stack + CHILD_STACK_BYTES, flags | CLONE_VM | CLONE_VFORK | SIGCHLD, b);
    int error = errno;
    /* A child that was root and is not any more has changed this for our memory. */
    if (dumpable == 1)
        prctl(PR_SET_DUMPABLE, 1);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    free(stack);
    errno = error;
    return pid;
}

static pid_t clone_in_namespaces(struct birth *b)
{
    int flags = b->plan ? b->plan->clone_flags : 0;
    pid_t pid = clone_quietly(b, flags);
    if (pid >= 0 || !flags || errno == EAGAIN || errno == ENOMEM)
        return pid;
    sandbox_without_namespaces(b->plan);
    return clone_quietly(b, 0);
}

static int start_error(struct task *t, const char *program, const struct report *r)
{
    if (r->error == ENOENT && str_eq(str_of(r->step), STR("exec")))
        return task_fail(t, ERR_NOT_FOUND, "there is no program %s", program);
    return task_fail(t, ERR_IO, "cannot start %s: %s: %s", program, r->step, strerror(r->error));
}

/* Does not wait: a child that could not call exec has written its report before clone returns. Only
 * valgrind and qemu make a plain fork of it; there it is found when the child has ended. */
static bool read_report(int fd, struct report *r)
{
    return read(fd, r, sizeof *r) == (ssize_t)sizeof *r;
}

static int spawn(struct task *t, struct birth *b, struct run *r)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
        return task_fail(t, ERR_IO, "pipe: %s", strerror(errno));
    b->report_fd = report[1];
    r->pid = clone_in_namespaces(b);
    struct report failed = {"clone", errno};
    close(report[1]);
    if (r->pid > 0 && !read_report(report[0], &failed)) {
        r->report_fd = report[0];
        return 0;
    }
    if (r->pid > 0)
        waitpid(r->pid, NULL, 0);
    close(report[0]);
    return start_error(t, b->process->argv[0], &failed);
}

static int start_sandboxed(struct task *t, const struct process *p, struct birth *b, struct run *r)
{
    struct sandbox_plan plan;
    if (!p->sandbox)
        return spawn(t, b, r);
    int error = sandbox_prepare(&plan, p->sandbox, p->argv[0]);
    if (error)
        return task_fail(t, ERR_IO, "cannot start %s: Landlock: %s", p->argv[0], strerror(error));
    b->plan = &plan;
    int err = spawn(t, b, r);
    if (err == ERR_IO && sandbox_join_no_more(&plan))
        err = spawn(t, b, r);
    if (!err) {
        sandbox_keep_namespaces(&plan, r->pid);
        sandbox_tell(&plan);
        r->layers = plan.layers;
    }
    sandbox_release(&plan);
    return err;
}

/* The reading ends of two pipes go into r. */
static int start(struct task *t, const struct process *p, struct run *r)
{
    int out[2] = {-1, -1}, errs[2] = {-1, -1};
    struct birth b = {.process = p, .parent = getpid(), .in = -1};
    int err = input_file(t, p->input, &b.in);
    if (!err && (pipe2(out, O_CLOEXEC) < 0 || pipe2(errs, O_CLOEXEC) < 0 ||
                 fcntl(out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(errs[0], F_SETFL, O_NONBLOCK) < 0))
        err = task_fail(t, ERR_IO, "pipe: %s", strerror(errno));
    if (!err) {
        check(b.in > 2 && out[1] > 2 && errs[1] > 2); /* 0, 1 and 2 are open */
        b.out = out[1];
        b.err = errs[1];
        err = start_sandboxed(t, p, &b, r);
    }
    const int used[] = {b.in, out[1], errs[1], err ? out[0] : -1, err ? errs[0] : -1};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        if (used[i] >= 0)
            close(used[i]);
    r->out.fd = err ? -1 : out[0];
    r->err.fd = err ? -1 : errs[0];
    return err;
}

/* --- waiting: these run on the loop's stack --- */

static void stream_end(struct stream *s)
{
    if (s->fd < 0)
        return;
    poller_release(&s->poller);
    close(s->fd);
    s->fd = -1;
}

/* One piece; false when there is none now, or never again. */
static bool stream_take(struct stream *s)
{
    if (s->fd < 0)
        return false;
    char *to = buf_reserve(&s->kept, PIECE_BYTES);
    ssize_t n = read(s->fd, to, PIECE_BYTES);
    if (n < 0)
        return errno == EINTR;
    if (n == 0) {
        stream_end(s);
        return false;
    }
    size_t room = s->max - s->kept.len;
    buf_added(&s->kept, (size_t)n < room ? (size_t)n : room);
    if ((size_t)n > room && s == &s->run->out) {
        s->run->too_much = true;
        stream_end(s);
        task_wake(s->run->task);
        return false;
    }
    return true;
}

static void on_output(void *arg, int fd, int events)
{
    (void)fd;
    (void)events;
    stream_take(arg);
}

static void on_end(void *arg, int fd, int events)
{
    (void)events;
    struct run *r = arg;
    siginfo_t info = {0};
    /* Until waitpid its pid and process group cannot be reused. */
    check(waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOWAIT) == 0);
    kill(-r->pid, SIGKILL);
    check(waitpid(r->pid, &r->status, 0) == r->pid);
    poller_release(&r->end);
    r->ended = true;
    /* All that the program has written is in the pipes. What others of them hold open is not waited
     * for. */
    for (size_t left = r->out.max / PIECE_BYTES + 2; left && stream_take(&r->out); left--)
        ;
    for (size_t left = r->err.max / PIECE_BYTES + 2; left && stream_take(&r->err); left--)
        ;
    task_wake(r->task);
}

static void stream_watch(struct stream *s, struct run *r, size_t max)
{
    s->run = r;
    s->max = max;
    buf_init(&s->kept);
    poller_init(&s->poller, task_loop(r->task), s->fd, on_output, s);
    poller_set(&s->poller, WATCH_READ);
}

static struct str stream_close(struct stream *s, struct arena *a)
{
    stream_end(s);
    struct str kept = str_dup(a, buf_str(&s->kept));
    buf_release(&s->kept);
    return kept;
}

/* 0, ERR_LIMIT, or the task's own; the program has ended then. */
static int await(struct task *t, struct run *r)
{
    int err = 0;
    while (!err && !r->ended)
        err = r->too_much ? ERR_LIMIT : task_wait(t);
    if (!r->ended)
        kill(-r->pid, SIGKILL);
    while (!r->ended)
        task_wait_always(t);
    return r->too_much ? ERR_LIMIT : err;
}

static void watch(struct run *r, const struct process *p)
{
    r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    check(r->pidfd >= 0); /* a child exists until waitpid */
    stream_watch(&r->out, r, p->output_max);
    stream_watch(&r->err, r, p->errors_max);
    poller_init(&r->end, task_loop(r->task), r->pidfd, on_end, r);
    poller_set(&r->end, WATCH_READ);
}

int process_run(struct task *t, const struct process *p, struct process_end *out)
{
    check(p->argv[0] && p->argv[0][0] == '/');
    struct run r = {.task = t};
    struct report failed;
    int64_t began = loop_now_us(task_loop(t));
    int err = start(t, p, &r);
    if (err)
        return err;
    int64_t started_us = loop_now_us(task_loop(t)) - began;
    watch(&r, p);
    err = await(t, &r);
    struct str output = stream_close(&r.out, task_arena(t));
    struct str errors = stream_close(&r.err, task_arena(t));
    bool ran = !read_report(r.report_fd, &failed);
    close(r.pidfd);
    close(r.report_fd);
    if (!ran)
        return start_error(t, p->argv[0], &failed);
    if (err == ERR_LIMIT)
        return task_fail(t, err, "%s wrote more than %zu bytes", p->argv[0], p->output_max);
    if (!err)
        *out = (struct process_end){r.status, output, errors, r.layers, started_us};
    return err;
}
