#include "serve/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "tests/tap.h"

static char dir[] = "/tmp/child_test.XXXXXX";

static const char *in_dir(struct task *t, const char *name)
{
    return arena_printf(task_arena(t), "%s/%s", dir, name);
}

/* Runs a script with out as its output and fd 3. */
static struct child_spec script(struct task *t, const char *text, const int *out)
{
    const char **argv = ARENA_ARRAY(task_arena(t), const char *, 4);
    argv[0] = "sh";
    argv[1] = "-c";
    argv[2] = text;
    return (struct child_spec){.path = "/bin/sh",
                               .argv = argv,
                               .out_fd = out ? *out : -1,
                               .err_fd = -1,
                               .fds = out,
                               .fd_count = out ? 1 : 0};
}

static void await(struct task *t, struct child *c)
{
    int64_t until = loop_now_ms(task_loop(t)) + 10000;
    while (c->running && loop_now_ms(task_loop(t)) < until)
        supervision_wait(t, c->shared, until);
}

/* What a script prints. */
static struct str output(struct task *t, const char *text)
{
    struct supervision shared;
    struct child c;
    int out[2];
    supervision_init(&shared, task_loop(t), NULL);
    check(pipe(out) == 0);
    struct child_spec s = script(t, text, &out[1]);
    check(child_start(t, &c, &shared, &s) == 0);
    close(out[1]);
    await(t, &c);
    char *reply = arena_alloc(task_arena(t), 4096);
    ssize_t n = read(out[0], reply, 4096);
    close(out[0]);
    return str_from(reply, n > 0 ? (size_t)n : 0);
}

static bool gone(pid_t pid) /* or a zombie that its new parent has not noticed */
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return true;
    bool zombie = fgets(text, sizeof text, f) && strstr(text, ") Z ");
    fclose(f);
    return zombie;
}

static bool soon_gone(struct task *t, pid_t pid)
{
    for (int i = 0; i < 500 && !gone(pid); i++)
        check(task_sleep(t, 10) == 0);
    return gone(pid);
}

static void test_start(struct task *t)
{
    struct supervision shared;
    struct child c;
    supervision_init(&shared, task_loop(t), NULL);
    struct child_spec s = script(t, "sleep 0.05; exit 3", NULL);
    s.pid_path = in_dir(t, "pid");
    is_int(child_start(t, &c, &shared, &s), 0, "start");
    ok(c.running && c.pid > 0, "it runs");
    is_int(getsid(c.pid), c.pid, "in a session of its own");
    FILE *f = fopen(s.pid_path, "re");
    int pid = 0;
    ok(f && fscanf(f, "%d", &pid) == 1 && pid == c.pid, "its pid is in the file");
    if (f)
        fclose(f);
    await(t, &c);
    ok(!c.running, "its end is noticed");
    is_str(str_of(child_outcome(&c, task_arena(t))), STR("exit status 3"), "and its outcome");
    is_int(waitpid(-1, NULL, WNOHANG), -1, "it has been waited for");
    child_signal(&c, SIGTERM);
    child_stop(t, &c, 1000, 1);
    ok(true, "signals to one that has ended are harmless");
}

static void test_missing(struct task *t)
{
    struct supervision shared;
    struct child c = {0};
    supervision_init(&shared, task_loop(t), NULL);
    struct child_spec s = script(t, "", NULL);
    s.path = "/no/such/program";
    is_int(child_start(t, &c, &shared, &s), ERR_IO, "no such program");
    is_str(str_of(task_error(t)), STR("cannot start /no/such/program: No such file or directory"),
           "is said");
    s = script(t, "", NULL);
    s.dir = "/no/such/folder";
    is_int(child_start(t, &c, &shared, &s), ERR_IO, "no such folder");
    ok(!c.running, "nothing runs");
    is_int(waitpid(-1, NULL, WNOHANG), -1, "no child is left");
    child_stop(t, &c, 1000, 1);
    ok(true, "stopping one that was never started is harmless");
}

static void test_surroundings(struct task *t)
{
    /* One without close-on-exec, as a library might leave it. */
    int leak = open("/dev/null", O_RDONLY);
    check(leak >= 0);
    /* Without a pipe or a glob, for which the shell itself opens files. */
    const char *list = "i=0; while [ $i -lt 64 ]; do [ -e /proc/$$/fd/$i ] && printf '%s ' $i; "
                       "i=$((i + 1)); done; true";
    is_str(output(t, list), STR("0 1 2 3 "), "no other files are open");
    is_str(output(t, "echo here >&3"), STR("here\n"), "the named one is number 3");
    is_str(output(t, "readlink /proc/$$/fd/0"), STR("/dev/null\n"), "nothing to read");
    signal(SIGPIPE, SIG_IGN);
    is_str(output(t, "grep -E 'SigIgn|SigBlk' /proc/$$/status | tr -d ' \\t\\n'"),
           STR("SigBlk:0000000000000000SigIgn:0000000000000000"), "default signals");
    close(leak);
}

static void test_stop(struct task *t)
{
    struct supervision shared;
    struct child c;
    supervision_init(&shared, task_loop(t), NULL);
    struct child_spec s = script(t, "trap 'exit 7' TERM; while :; do sleep 0.02; done", NULL);
    check(child_start(t, &c, &shared, &s) == 0);
    check(task_sleep(t, 100) == 0);
    child_stop(t, &c, 5000, 1);
    is_str(str_of(child_outcome(&c, task_arena(t))), STR("exit status 7"), "SIGTERM comes first");

    s = script(t, "trap '' TERM; while :; do sleep 0.02; done", NULL);
    check(child_start(t, &c, &shared, &s) == 0);
    check(task_sleep(t, 100) == 0);
    int64_t began = loop_now_ms(task_loop(t));
    child_stop(t, &c, 300, 1);
    int64_t took = loop_now_ms(task_loop(t)) - began;
    ok(took >= 300 && took < 2000, "SIGKILL after the grace time: %d ms", (int)took);
    is_str(str_of(child_outcome(&c, task_arena(t))), STR("signal 9 (Killed)"), "and not before");

    shared.hurry = 1;
    check(child_start(t, &c, &shared, &s) == 0);
    check(task_sleep(t, 100) == 0);
    began = loop_now_ms(task_loop(t));
    child_stop(t, &c, 60000, 1);
    ok(loop_now_ms(task_loop(t)) - began < 2000, "at once when there is no time");
}

static void test_group(struct task *t)
{
    struct str text = output(t, "sleep 1000 >/dev/null 3>&- & echo $!; exit 0");
    int64_t pid = 0;
    check(str_to_i64(str_cut(&text, '\n'), &pid));
    ok(soon_gone(t, (pid_t)pid), "what a child leaves behind ends with it");
}

static void test_log(struct task *t)
{
    const char *path = in_dir(t, "log");
    struct stat st;
    int fd = child_log_open(path);
    check(fd >= 0 && write(fd, "one\n", 4) == 4);
    close(fd);
    fd = child_log_open(path);
    check(fd >= 0 && write(fd, "two\n", 4) == 4);
    close(fd);
    ok(stat(path, &st) == 0 && st.st_size == 8, "a log is continued");
    is_int(st.st_mode & 0777, 0600, "and private");
    check(truncate(path, 17 * 1024 * 1024) == 0);
    close(child_log_open(path));
    ok(stat(path, &st) == 0 && st.st_size == 0, "a long one begins anew");
    ok(stat(in_dir(t, "log.old"), &st) == 0 && st.st_size > 16 * 1024 * 1024,
       "the old one is kept");
}

static void test_respawn(void)
{
    struct respawn b = {0};
    is_int(respawn_after(&b, 0), 100, "first");
    is_int(respawn_after(&b, 100), 200, "doubled");
    for (int i = 0; i < 5; i++)
        respawn_after(&b, 100);
    is_int(respawn_after(&b, 100), 10000, "at most");
    is_int(respawn_after(&b, 29999), 10000, "still");
    is_int(respawn_after(&b, 30000), 100, "anew after a long run");
}

/* --- processes with other parents --- */

struct stranger {
    int out;
    int death_signal;
};

static void start_and_die(struct task *t, void *arg)
{
    struct stranger *st = arg;
    struct supervision shared;
    struct child c;
    supervision_init(&shared, task_loop(t), NULL);
    struct child_spec s = script(t, "exec sleep 1000", NULL);
    s.death_signal = st->death_signal;
    check(child_start(t, &c, &shared, &s) == 0);
    check(write(st->out, &c.pid, sizeof c.pid) == (ssize_t)sizeof c.pid);
    _exit(0);
}

/* The pid of a process that was started by one that has died since. */
static pid_t stranger(int death_signal)
{
    int out[2];
    pid_t pid, helper;
    check(pipe(out) == 0);
    helper = fork();
    if (helper == 0)
        tap_task(start_and_die, &(struct stranger){out[1], death_signal}, true);
    close(out[1]);
    check(helper > 0 && read(out[0], &pid, sizeof pid) == (ssize_t)sizeof pid);
    close(out[0]);
    waitpid(helper, NULL, 0);
    return pid;
}

static void test_strangers(struct task *t, void *arg)
{
    const pid_t *pids = arg;
    ok(soon_gone(t, pids[0]), "a child that shall die with its parent does");
    ok(!gone(pids[1]), "one that shall not does not");

    struct supervision shared;
    struct child c;
    supervision_init(&shared, task_loop(t), NULL);
    is_int(child_adopt(&c, &shared, pids[1]), 0, "it can be adopted");
    child_stop(t, &c, 5000, 1);
    ok(!c.running, "and stopped, and its end is noticed");
    is_str(str_of(child_outcome(&c, task_arena(t))), STR("an unknown outcome"), "without outcome");
    ok(soon_gone(t, pids[1]), "it has ended");
    is_int(child_adopt(&c, &shared, 0x3fffffff), ERR_NOT_FOUND,
           "a pid without a process cannot be adopted");
}

static void test_children(struct task *t, void *arg)
{
    (void)arg;
    test_start(t);
    test_missing(t);
    test_surroundings(t);
    test_stop(t);
    test_group(t);
    test_log(t);
}

int main(void)
{
    struct buf log;
    buf_init(&log);
    log_capture(&log);
    check(mkdtemp(dir));
    tap_task(test_children, NULL, true);
    test_respawn();
    pid_t pids[] = {stranger(SIGKILL), stranger(0)};
    tap_task(test_strangers, pids, true);

    char command[64];
    const char *const names[] = {"pid", "log", "log.old"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(command, sizeof command, "%s/%s", dir, names[i]);
        unlink(command);
    }
    rmdir(dir);
    log_capture(NULL);
    buf_release(&log);
    return tap_done();
}
