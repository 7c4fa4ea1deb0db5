#include "loop/process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/offload.h"
#include "tests/tap.h"

#define SHELL(script) ((const char *const[]){"/bin/sh", "-c", script, NULL})

static struct process_end end;

static int run(struct task *t, const char *const *argv, struct str input)
{
    struct process p = {.argv = argv, .input = input, .output_max = 1 << 20, .errors_max = 100};
    end = (struct process_end){0};
    return process_run(t, &p, &end);
}

static size_t open_files(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    check(d && closedir(d) == 0);
    return n;
}

static bool lives(pid_t pid)
{
    for (int i = 0; i < 500; i++) { /* a killed orphan may wait for init to reap it */
        char path[64], state = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *f = fopen(path, "r");
        bool there = f && fscanf(f, "%*d %*s %c", &state) == 1 && state != 'Z';
        if (f)
            fclose(f);
        if (!there)
            return false;
        usleep(1000);
    }
    return true;
}

static void test_streams(struct task *t, void *arg)
{
    (void)arg;
    is_int(run(t, SHELL("cat; echo two >&2; exit 3"), STR("one\n")), 0, "a program runs");
    is_str(end.output, STR("one\n"), "its output is what it was given");
    is_str(end.errors, STR("two\n"), "its errors come apart");
    ok(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 3, "and its status");
    is_int(run(t, SHELL("kill -TERM $$"), STR("")), 0, "one that ends by a signal");
    ok(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGTERM, "says which");
    is_int(run(t, SHELL("cat"), STR("")), 0, "an empty input");
    is_str(end.output, STR(""), "is at its end at once");
    is_int(run(t, SHELL("echo x >&0"), STR("abc")), 0, "the input");
    ok(WEXITSTATUS(end.status) != 0, "cannot be written to: %.*s", STR_ARG(end.errors));
    is_int(run(t, SHELL("head -c 5000 /dev/zero >&2; echo done"), STR("")), 0,
           "more errors than are kept");
    is_int((int64_t)end.errors.n, 100, "are cut");
    is_str(end.output, STR("done\n"), "and do not stop the program");
}

static void test_surroundings(struct task *t, void *arg)
{
    (void)arg;
    setenv("SECRET", "42", 1);
    is_int(run(t, SHELL("env | grep -v ^_= | sort; pwd"), STR("")), 0, "the environment");
    is_str(end.output,
           STR("HOME=/nonexistent\nLANG=C.UTF-8\nLC_ALL=C.UTF-8\n"
               "PATH=/usr/local/bin:/usr/bin:/bin\nPWD=/\n/\n"),
           "has fixed variables only, the folder is /");
    int leak = dup(1); /* without close-on-exec */
    check(leak > 2 && leak < 30);
    is_int(run(t, SHELL("for i in $(seq 3 30); do [ -e /proc/$$/fd/$i ] && echo $i; done; exit 0"),
               STR("")),
           0, "of our files");
    is_str(end.output, STR(""), "it has none");
    close(leak);
    signal(SIGPIPE, SIG_IGN);
    is_int(run(t, SHELL("kill -PIPE $$; echo deaf"), STR("")), 0, "a signal that we ignore");
    ok(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGPIPE, "the program does not");
}

static void test_failures(struct task *t, void *arg)
{
    (void)arg;
    const char *const none[] = {"/nonexistent/program", NULL};
    is_int(run(t, none, STR("")), ERR_NOT_FOUND, "a program that is not there");
    ok(strstr(task_error(t), "/nonexistent/program"), "is named: %s", task_error(t));
    const char *const folder[] = {"/tmp", NULL};
    is_int(run(t, folder, STR("")), ERR_IO, "one that cannot be run: %s", task_error(t));
    is_int(run(t, SHELL("yes"), STR("")), ERR_LIMIT, "endless output ends it: %s", task_error(t));
    is_int(run(t, SHELL("yes & sleep 1000"), STR("")), ERR_LIMIT, "that of its child, too");
    is_int(run(t, SHELL("head -c 1048576 /dev/zero"), STR("")), 0, "as much as is allowed");
    is_int((int64_t)end.output.n, 1 << 20, "is not too much");
    is_int(run(t, SHELL("head -c 1048577 /dev/zero"), STR("")), ERR_LIMIT, "a byte more is");
}

static char pid_path[64];

static int run_script(struct task *t, const char *script)
{
    const char *const argv[] = {"/bin/sh",
                                "-c",
                                "eval \"$1\"",
                                "sh",
                                arena_printf(task_arena(t), "f=%s; %s", pid_path, script),
                                NULL};
    return run(t, argv, STR(""));
}

/* The one that a script has written to its file. */
static pid_t said_pid(void)
{
    int pid = 0;
    FILE *f = fopen(pid_path, "r");
    check(f && fscanf(f, "%d", &pid) == 1 && fclose(f) == 0);
    unlink(pid_path);
    return pid;
}

#define WITH_GRANDCHILD "sleep 1000 & echo $! > $f; trap '' TERM; sleep 1000"

static void canceled_run(struct task *t, void *arg)
{
    *(int *)arg = run_script(t, WITH_GRANDCHILD);
}

static void test_kills(struct task *t, void *arg)
{
    (void)arg;
    int64_t old = task_deadline(t, 300);
    is_int(run_script(t, WITH_GRANDCHILD), ERR_TIMEOUT, "the deadline");
    task_deadline_restore(t, old);
    is_int(waitpid(-1, NULL, WNOHANG), -1, "leaves no child");
    ok(!lives(said_pid()), "and no grandchild");

    struct group g;
    int err = 0;
    group_init(&g, task_loop(t));
    check(task_go(&g, "canceled", canceled_run, &err) == 0);
    check(task_sleep(t, 300) == 0);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    is_int(err, ERR_CANCELED, "a cancellation");
    is_int(waitpid(-1, NULL, WNOHANG), -1, "leaves no child");
    ok(!lives(said_pid()), "and no grandchild");

    int64_t began = loop_now_us(task_loop(t));
    is_int(run_script(t, "sleep 1000 & echo $! > $f; echo out"), 0,
           "a program that ends before its child");
    is_str(end.output, STR("out\n"), "has its output");
    ok(loop_now_us(task_loop(t)) - began < 5000000, "at once");
    ok(!lives(said_pid()), "and its child ends");
}

static void endless_run(struct task *t, void *arg)
{
    *(int *)arg = run_script(t, "echo $$ > $f; while :; do sleep 1; done");
}

/* The node is killed: what it runs must not go on. */
static void test_parent_dies(void)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        int err;
        struct loop *l = loop_new(NULL);
        struct group g;
        group_init(&g, l);
        check(task_go(&g, "run", endless_run, &err) == 0);
        alarm(1); /* SIGALRM ends it */
        loop_run(l);
        _exit(0);
    }
    int status;
    check(waitpid(pid, &status, 0) == pid);
    ok(WIFSIGNALED(status), "a process dies while its program runs");
    ok(!lives(said_pid()), "the program does, too");
}

static void nap(void *arg)
{
    (void)arg;
    usleep(2000);
}

static void napper(struct task *t, void *arg)
{
    (void)arg;
    while (!task_canceled(t))
        if (offload(t, nap, NULL))
            break;
}

static int mistakes;

static void runner(struct task *t, void *arg)
{
    struct process p = {.argv = SHELL("cat"), .output_max = 1 << 22, .errors_max = 100};
    size_t n = (size_t)(uintptr_t)arg * 1000;
    char *bytes = arena_alloc(task_arena(t), n + 1);
    memset(bytes, 'a' + (int)((uintptr_t)arg % 26), n);
    p.input = str_from(bytes, n);
    for (int i = 0; i < 5; i++) {
        struct task_scope s = task_scope(t);
        struct process_end e;
        mistakes += process_run(t, &p, &e) != 0 || !str_eq(e.output, p.input);
        task_scope_end(t, s);
    }
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct group busy, g;
    group_init(&busy, task_loop(t));
    group_init(&g, task_loop(t));
    for (int i = 0; i < 4; i++)
        check(task_go(&busy, "napper", napper, NULL) == 0);
    check(task_sleep(t, 20) == 0);
    size_t files = open_files();
    for (uintptr_t i = 1; i <= 20; i++)
        check(task_go(&g, "runner", runner, (void *)(i * 100)) == 0);
    check(group_join(t, &g) == 0);
    is_int(mistakes, 0, "100 programs, beside helper threads, each with its own megabytes");
    is_int((int64_t)open_files(), (int64_t)files, "no file is left open");
    is_int(waitpid(-1, NULL, WNOHANG), -1, "no child is left");
    ok(errno == ECHILD, "none at all");
    group_cancel(&busy);
    check(group_join(t, &busy) == 0);
}

int main(void)
{
    snprintf(pid_path, sizeof pid_path, "/tmp/millrace-process-%d.pid", (int)getpid());
    tap_task(test_streams, NULL, true);
    tap_task(test_surroundings, NULL, true);
    tap_task(test_failures, NULL, true);
    tap_task(test_kills, NULL, true);
    test_parent_dies();
    tap_task(test_many, NULL, true);
    return tap_done();
}
