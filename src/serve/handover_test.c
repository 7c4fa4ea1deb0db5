/* Replaces itself by itself, and looks at what has come through. */
#include "serve/handover.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "tests/tap.h"

static int file_with(const char *text)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    return fd;
}

static void holds(int fd, const char *text)
{
    char got[16] = "";
    ssize_t n = pread(fd, got, sizeof got, 0);
    is_str(str_from(got, n > 0 ? (size_t)n : 0), str_of(text), "file %s is the same", text);
    is_int(fcntl(fd, F_GETFD), FD_CLOEXEC, "and closed by the next exec");
}

static bool blocked(int signo)
{
    sigset_t set;
    sigprocmask(SIG_SETMASK, NULL, &set);
    return sigismember(&set, signo) == 1;
}

static void first_life(char **argv)
{
    struct handover h = {.listen = "127.0.0.1:0",
                         .data_dir = "/a \"b\"",
                         .listen_fd = file_with("listen"),
                         .lock_fd = file_with("lock"),
                         .metrics_fd = file_with("metrics"),
                         .listen_given = true,
                         .retired = "unix:/a/b",
                         .sim_pid = 12,
                         .sim_port = 34,
                         .drain_ms = 5678,
                         .node_count = 2,
                         .nodes = {{56, 0, true}, {78, 63, false}}};
    int leak = file_with("leak");
    fcntl(leak, F_SETFD, 0); /* as a library might leave it */
    char number[16];
    snprintf(number, sizeof number, "%d", leak);
    setenv("LEAK", number, 1);

    handover_exec(&h, "/no/such/program", argv);
    bool same = !getenv("MILLRACE_HANDOVER") && !blocked(SIGTERM) &&
                fcntl(h.lock_fd, F_GETFD) == FD_CLOEXEC;
    setenv("FAILED_WELL", same ? "1" : "0", 1);
    handover_exec(&h, "/proc/self/exe", argv);
    ok(false, "exec works");
}

static void second_life(const struct handover *h)
{
    is_str(str_of(getenv("FAILED_WELL")), STR("1"), "an exec that fails leaves all as it was");
    is_str(str_of(h->listen), STR("127.0.0.1:0"), "listen");
    is_str(str_of(h->data_dir), STR("/a \"b\""), "data_dir");
    holds(h->listen_fd, "listen");
    holds(h->lock_fd, "lock");
    holds(h->metrics_fd, "metrics");
    is_int(fcntl(atoi(getenv("LEAK")), F_GETFD), -1, "nothing else is open");
    ok(h->listen_given, "where the socket came from");
    is_str(str_of(h->retired), STR("unix:/a/b"), "and the one before");
    is_int(h->sim_pid, 12, "the simulator");
    is_int(h->sim_port, 34, "its port");
    is_int(h->drain_ms, 5678, "the time to drain");
    is_int((int64_t)h->node_count, 2, "two nodes");
    is_int(h->nodes[0].pid, 56, "the first");
    ok(h->nodes[0].draining && !h->nodes[1].draining, "one of them draining");
    is_int(h->nodes[1].index, 63, "the index of the second");
    ok(!getenv("MILLRACE_HANDOVER"), "children will not see it");
    ok(blocked(SIGTERM) && blocked(SIGHUP) && blocked(SIGINT), "signals wait until we are ready");
    handover_signals(SIG_UNBLOCK);
    ok(!blocked(SIGTERM), "and then come in");
}

int main(int argc, char **argv)
{
    (void)argc;
    struct arena a;
    struct handover h;
    arena_init(&a);
    if (handover_take(&a, &h))
        second_life(&h);
    else
        first_life(argv);
    arena_release(&a);
    return tap_done();
}
