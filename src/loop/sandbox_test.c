#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "loop/process.h"
#include "tests/probe.h"
#include "tests/tap.h"

enum { DONE, REFUSED, KILLED };

static char folder[] = "/tmp/millrace-sandbox.XXXXXX";
static char probe[64], secret[64], fresh[64], parent[16], port[16];
static const char *const readable[] = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/none", NULL};
static int in_force;

static int run(struct task *t, int layers, bool threads, const char *action, const char *arg)
{
    const char *const argv[] = {probe, action, arg, NULL};
    struct sandbox box = {.layers = layers,
                          .memory_bytes = 256 << 20,
                          .cpu_seconds = 1,
                          .readable = readable,
                          .threads = threads};
    struct process p = {
        .argv = argv, .input = STR(""), .output_max = 1000, .errors_max = 1000, .sandbox = &box};
    struct process_end end;
    int dumpable = prctl(PR_GET_DUMPABLE);
    int err = process_run(t, &p, &end);
    if (err)
        printf("# %s: %s\n", action, task_error(t));
    check(!err && (end.layers & ~layers) == 0 && prctl(PR_GET_DUMPABLE) == dumpable);
    in_force = end.layers;
    if (end.errors.n && layers == SANDBOX_ALL)
        printf("# %s: %.*s", action, STR_ARG(end.errors));
    if (WIFSIGNALED(end.status))
        return KILLED;
    check(WEXITSTATUS(end.status) != 2);
    return WEXITSTATUS(end.status) ? REFUSED : DONE;
}

/* What each of these layers alone refuses, and no other. */
static const struct {
    const char *action, *arg;
    int layers;
} rows[] = {
    {"tcp", "", SANDBOX_SECCOMP},
    {"udp", "", SANDBOX_SECCOMP},
    {"unix", "", SANDBOX_SECCOMP},
    {"connect", port, SANDBOX_SECCOMP | SANDBOX_LANDLOCK | SANDBOX_NAMESPACES},
    {"read", "/etc/passwd", SANDBOX_LANDLOCK},
    {"read", secret, SANDBOX_LANDLOCK},
    {"read", "/proc/self/maps", SANDBOX_LANDLOCK},
    {"list", "/tmp", SANDBOX_LANDLOCK},
    {"write", fresh, SANDBOX_LIMITS | SANDBOX_SECCOMP | SANDBOX_LANDLOCK},
    {"write", secret, SANDBOX_LIMITS | SANDBOX_SECCOMP | SANDBOX_LANDLOCK},
    {"unlink", fresh, SANDBOX_SECCOMP | SANDBOX_LANDLOCK},
    {"fork", "", SANDBOX_LIMITS | SANDBOX_SECCOMP},
    {"outlive", "1", SANDBOX_LIMITS | SANDBOX_SECCOMP},
    {"thread", "", SANDBOX_LIMITS | SANDBOX_SECCOMP},
    {"traceme", "", SANDBOX_SECCOMP},
    {"keyctl", "", SANDBOX_SECCOMP},
    {"memory", "512", SANDBOX_LIMITS},
    {"files", "100", SANDBOX_LIMITS},
    {"survive", "", SANDBOX_LIMITS | SANDBOX_LANDLOCK},
};

static void make_files(void)
{
    FILE *f = fopen(fresh, "w");
    check(f && fclose(f) == 0 && chmod(fresh, 0666) == 0);
}

static long landlock_abi(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
}

static void test_layers(struct task *t, void *arg)
{
    int available = *(int *)arg;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *action = rows[i].action, *with = rows[i].arg;
        make_files();
        is_int(run(t, SANDBOX_ALL, false, action, with), REFUSED, "refused: %s %s", action, with);
        is_int(run(t, 0, false, action, with), DONE, "%s %s can be done without", action, with);
        for (int layer = 1; layer < SANDBOX_ALL; layer <<= 1) {
            if (!(layer & available))
                continue;
            if (layer == SANDBOX_LANDLOCK && rows[i].arg == port && landlock_abi() < 4)
                continue; /* the network came later */
            make_files();
            is_int(run(t, layer, false, action, with), rows[i].layers & layer ? REFUSED : DONE,
                   "%s %s with layer %d alone", action, with, layer);
        }
    }
    is_int(run(t, SANDBOX_ALL, true, "thread", ""), DONE, "threads can be allowed");
    is_int(run(t, SANDBOX_ALL, true, "fork", ""), REFUSED, "processes cannot");
}

/* Whether these could be done without a sandbox depends on the user, and on the kernel. */
static void test_others(struct task *t, void *arg)
{
    (void)arg;
    const char *const actions[][2] = {
        {"ptrace", ""},    {"signal", parent}, {"owner", parent}, {"limit", parent},
        {"namespace", ""}, {"uring", ""},      {"root", ""},      {"read", "/etc/shadow"},
    };
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        is_int(run(t, SANDBOX_ALL, true, actions[i][0], actions[i][1]), REFUSED, "refused: %s",
               actions[i][0]);
        if (i < 6)
            is_int(run(t, SANDBOX_SECCOMP, true, actions[i][0], actions[i][1]), REFUSED,
                   "by seccomp alone");
    }
    is_int(run(t, SANDBOX_ALL, false, "spin", "5"), KILLED, "the processor time is limited");
    is_int(run(t, SANDBOX_ALL, false, "abort", ""), KILLED, "a program can abort itself");
    is_int(run(t, SANDBOX_ALL, false, "memory", "100"), DONE, "and take the memory it may have");
    is_int(run(t, SANDBOX_ALL, false, "read", "/usr/bin/env"), DONE, "and read what it may");
}

static void test_available(struct task *t, void *arg)
{
    struct buf log;
    buf_init(&log);
    log_capture(&log);
    is_int(run(t, SANDBOX_ALL, false, "files", "1"), DONE, "the probe runs in the sandbox");
    is_int(run(t, SANDBOX_ALL, false, "files", "1"), DONE, "and again");
    log_capture(NULL);
    struct str text = buf_str(&log);
    ptrdiff_t at = str_find(text, STR("child processes run with limits, seccomp"));
    ok(at >= 0, "the log has the layers: %.*s", STR_ARG(text));
    ok(str_find(str_skip(text, (size_t)at + 1), STR("child processes")) < 0, "once");
    buf_release(&log);
    is_int(in_force & (SANDBOX_LIMITS | SANDBOX_SECCOMP), SANDBOX_LIMITS | SANDBOX_SECCOMP,
           "limits and seccomp are in force");
    int adjusted = 0;
    FILE *f = fopen("/proc/self/oom_score_adj", "r");
    check(f && fscanf(f, "%d", &adjusted) == 1 && fclose(f) == 0);
    ok(adjusted < 1000, "the parent stays as it was for the OOM killer: %d", adjusted);
    printf("# layers in force: %d\n", in_force);
    *(int *)arg = in_force;
}

/* --- what they need --- */

static void compile_probe(struct task *t, void *arg)
{
    (void)arg;
    probe_compile(t, probe);
}

static void make_world(void)
{
    check(mkdtemp(folder) && chmod(folder, 0777) == 0);
    snprintf(probe, sizeof probe, "%s/probe", folder);
    snprintf(secret, sizeof secret, "%s/secret", folder);
    snprintf(fresh, sizeof fresh, "%s/fresh", folder);
    FILE *f = fopen(secret, "w");
    check(f && fputs("secret", f) >= 0 && fclose(f) == 0 && chmod(secret, 0666) == 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    check(fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0 && listen(fd, 100) == 0 &&
          getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    snprintf(port, sizeof port, "%d", ntohs(at.sin_port));
    tap_task(compile_probe, NULL, true);
}

static void remove_world(void)
{
    unlink(probe);
    unlink(secret);
    unlink(fresh);
    rmdir(folder);
}

static void test_all(void)
{
    int available = 0;
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    tap_task(test_available, &available, true);
    tap_task(test_layers, &available, true);
    tap_task(test_others, NULL, true);
}

static void as_user(void)
{
    check(setgid(65534) == 0 && setuid(65534) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
    test_all();
}

static void test_strict(struct task *t, void *arg)
{
    (void)arg;
    struct buf log;
    buf_init(&log);
    log_capture(&log);
    is_int(run(t, SANDBOX_ALL, false, "files", "1"), DONE, "the probe runs with fewer layers");
    log_capture(NULL);
    is_int(in_force, SANDBOX_LIMITS | SANDBOX_SECCOMP, "two are left");
    ok(str_find(buf_str(&log), STR("without Landlock")) >= 0 &&
           str_find(buf_str(&log), STR("without a network namespace")) >= 0,
       "the log says which are not: %.*s", STR_ARG(buf_str(&log)));
    buf_release(&log);
    is_int(run(t, SANDBOX_ALL, false, "tcp", ""), REFUSED, "no socket, still");
    is_int(run(t, SANDBOX_ALL, false, "write", secret), REFUSED, "no file is written");
    is_int(run(t, SANDBOX_ALL, false, "fork", ""), REFUSED, "no process is made");
}

/* As in a unit of systemd or a container: Landlock and namespaces are refused. */
static void as_strict(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWNET, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
          prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    tap_task(test_strict, NULL, true);
}

static void test_unjoined(struct task *t, void *arg)
{
    (void)arg;
    is_int(run(t, SANDBOX_NAMESPACES, false, "connect", port), REFUSED, "the first one makes it");
    int first = in_force;
    is_int(run(t, SANDBOX_NAMESPACES, false, "connect", port), REFUSED, "so does the second one");
    is_int(in_force, first, "with the same layers");
    is_int(run(t, SANDBOX_ALL, false, "files", "1"), DONE, "and the next, with all layers");
    ok(!(first & SANDBOX_NAMESPACES) || (in_force & SANDBOX_NAMESPACES), "this one among them");
}

/* The network namespace that was kept cannot be joined. */
static void as_unjoined(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setns, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
          prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    tap_task(test_unjoined, NULL, true);
}

/* In a process of its own, whose lines go to standard error. */
static void test_apart(void (*fn)(void), const char *what)
{
    fflush(stdout);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        check(dup2(2, 1) == 1);
        fn();
        exit(tap_done());
    }
    int status;
    check(waitpid(pid, &status, 0) == pid);
    is_int(status, 0, "%s", what);
}

int main(void)
{
    make_world();
    if (geteuid() == 0)
        test_apart(as_user, "all of it is true of a process that is not root, too");
    test_apart(as_strict, "where Landlock and namespaces are refused, the others hold");
    test_apart(as_unjoined, "where no namespace can be joined, each program has its own");
    test_all();
    remove_world();
    return tap_done();
}
