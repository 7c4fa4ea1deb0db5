#include "base/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/tap.h"

static void fails(void)
{
    int answer = 41;
    check(answer == 42);
}

static void no_memory(void)
{
    check_memory(NULL);
}

/* Runs fn in a child, which must abort; what it wrote to standard error is in *out. */
static bool aborts(void (*fn)(void), struct buf *out)
{
    int ends[2];
    check(pipe(ends) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(ends[1]);
    ssize_t n;
    while ((n = read(ends[0], buf_reserve(out, 1024), 1024)) > 0)
        buf_added(out, (size_t)n);
    close(ends[0]);
    int status;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

int main(void)
{
    struct buf out;
    buf_init(&out);
    check(out.len == 0);
    ok(true, "a check that holds does nothing");
    ok(aborts(fails, &out), "a failed check aborts");
    ok(str_find(buf_str(&out), STR("check_test.c:")) >= 0, "and says where");
    ok(str_find(buf_str(&out), STR("fails: check failed: answer == 42")) >= 0, "and what");
    buf_clear(&out);
    ok(aborts(no_memory, &out), "so does a lack of memory");
    ok(str_starts(buf_str(&out), STR("out of memory\n")), "and says so"); /* qemu adds a line */
    ok(check_memory(&out) == &out, "check_memory passes what is there");
    buf_release(&out);
    return tap_done();
}
