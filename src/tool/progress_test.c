#include "tool/progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop/task.h"
#include "tests/tap.h"

static char shown[4096];

/* What standard error got meanwhile. */
static int begin(void)
{
    FILE *f = tmpfile();
    check(f);
    int old = dup(STDERR_FILENO);
    check(old >= 0 && dup2(fileno(f), STDERR_FILENO) >= 0);
    fclose(f);
    return old;
}

static struct str end(int old)
{
    ssize_t n = pread(STDERR_FILENO, shown, sizeof shown, 0);
    check(n >= 0 && dup2(old, STDERR_FILENO) >= 0);
    close(old);
    return str_from(shown, (size_t)n);
}

static void wait_ms(struct task *t, int64_t ms)
{
    check(task_sleep(t, ms) == 0);
}

static void test_lines(struct task *t, void *arg)
{
    (void)arg;
    int old = begin();
    struct progress p;
    progress_init(&p, task_loop(t), "db init", "papers", 4000);
    progress_show(&p, 0, 0);
    wait_ms(t, 1999);
    progress_show(&p, 900, 90);
    wait_ms(t, 1);
    progress_show(&p, 1000, 100);
    progress_show(&p, 1001, 101);
    wait_ms(t, 2000);
    progress_show(&p, 5000, 200);
    progress_end(&p);
    double seconds = progress_seconds(&p);
    is_str(end(old),
           STR("millrace db init:  25%  100 papers  50 papers/s  6 s left\n"
               "millrace db init: 100%  200 papers  50 papers/s  0 s left\n"),
           "a line each two seconds, with the share of the total");
    ok(seconds > 3.999 && seconds < 4.001, "seconds");
}

static void test_long_times(struct task *t, void *arg)
{
    (void)arg;
    int old = begin();
    struct progress p;
    progress_init(&p, task_loop(t), "db init", "papers", 21);
    wait_ms(t, 10000);
    progress_show(&p, 1, 1);
    p.total = 1000;
    wait_ms(t, 10000);
    progress_show(&p, 1, 1);
    is_str(end(old),
           STR("millrace db init:   4%  1 papers  0 papers/s  3 min 20 s left\n"
               "millrace db init:   0%  1 papers  0 papers/s  5 h 33 min left\n"),
           "minutes and hours");
}

static void test_no_total(struct task *t, void *arg)
{
    (void)arg;
    int old = begin();
    struct progress p;
    progress_init(&p, task_loop(t), "db init", "papers", 0);
    wait_ms(t, 2000);
    progress_show(&p, 1000, 100);
    p.terminal = true;
    wait_ms(t, 2000);
    progress_show(&p, 1000, 100);
    is_str(end(old),
           STR("millrace db init: 100 papers  50 papers/s\n\r\033[K100 papers  25 papers/s"),
           "an unknown total: no share, no time left, no bar");
}

static void test_bar(struct task *t, void *arg)
{
    (void)arg;
    int old = begin();
    struct progress p;
    progress_init(&p, task_loop(t), "db init", "papers", 100);
    p.terminal = true;
    progress_end(&p); /* nothing to wipe */
    wait_ms(t, 100);
    progress_show(&p, 50, 50);
    wait_ms(t, 99);
    progress_show(&p, 60, 60);
    wait_ms(t, 1);
    progress_show(&p, 75, 75);
    wait_ms(t, 800);
    progress_show(&p, 80, 80);
    progress_end(&p);
    is_str(end(old),
           STR("\r\033[K[############------------]  50%  50 papers  500 papers/s"
               "\r\033[K[##################------]  75%  75 papers  375 papers/s"
               "\r\033[K[####################----]  80%  80 papers  80 papers/s  0 s left"
               "\r\033[K"),
           "a bar each tenth of a second, with the time left after a second, wiped at the end");
}

int main(void)
{
    tap_task(test_lines, NULL, false);
    tap_task(test_long_times, NULL, false);
    tap_task(test_no_total, NULL, false);
    tap_task(test_bar, NULL, false);
    return tap_done();
}
