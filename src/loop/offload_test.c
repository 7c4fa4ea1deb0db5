#include "loop/offload.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/tap.h"

struct sum {
    int64_t n, result;
    pthread_t thread;
};

static void add_up(void *arg)
{
    struct sum *s = arg;
    s->thread = pthread_self();
    for (int64_t i = 1; i <= s->n; i++)
        s->result += i;
}

static void nap(void *arg)
{
    usleep(50 * 1000);
    *(int *)arg = 1;
}

static int ticks;

static void ticker(struct task *t, void *arg)
{
    (void)arg;
    while (task_sleep(t, 1) == 0)
        __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
}

/* Ends when the loop has gone on, however slow the machine is; or after 10 s. */
static void await_ticks(void *arg)
{
    for (int i = 0; i < 10000 && __atomic_load_n(&ticks, __ATOMIC_RELAXED) <= 5; i++)
        usleep(1000);
    *(int *)arg = 1;
}

static void test_work(struct task *t, void *arg)
{
    (void)arg;
    struct sum s = {.n = 1000};
    is_int(offload(t, add_up, &s), 0, "the work is done");
    is_int(s.result, 500500, "with its result");
    ok(!pthread_equal(s.thread, pthread_self()), "on another thread");

    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "ticker", ticker, NULL) == 0);
    int done = 0;
    check(offload(t, await_ticks, &done) == 0);
    ok(done && ticks > 5, "the loop goes on meanwhile (%d ticks)", ticks);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
}

static void test_deadline(struct task *t, void *arg)
{
    (void)arg;
    int done = 0;
    int64_t old = task_deadline(t, 5);
    is_int(offload(t, nap, &done), 0, "work that has begun is waited for, deadline or not");
    is_int(done, 1, "to its end");
    is_int(task_sleep(t, 1), ERR_TIMEOUT, "the deadline is felt by the next wait");
    task_deadline_restore(t, old);
}

static int codes[3 * OFFLOAD_QUEUE_MAX];

static void napper(struct task *t, void *arg)
{
    static int done;
    int *code = arg;
    task_deadline(t, 20);
    *code = offload(t, nap, &done);
}

static void test_full(struct task *t, void *arg)
{
    (void)arg;
    struct group g;
    group_init(&g, task_loop(t));
    int n = OFFLOAD_QUEUE_MAX + 100;
    for (int i = 0; i < n; i++)
        check(task_go(&g, "napper", napper, &codes[i]) == 0);
    check(group_join(t, &g) == 0);
    int done = 0, busy = 0, late = 0;
    for (int i = 0; i < n; i++) {
        done += codes[i] == 0;
        busy += codes[i] == ERR_BUSY;
        late += codes[i] == ERR_TIMEOUT;
    }
    ok(busy >= 90 && busy <= 100, "a full queue refuses (%d refused)", busy);
    ok(late > 900, "what was not begun in time is withdrawn (%d)", late);
    is_int(done + busy + late, n, "every caller got an answer");
}

/* File 256, 512 … would else stop the loop for 10 to 20 ms each. */
static void test_file_table(struct task *t, void *arg)
{
    (void)arg;
    int done = 0, size = 0;
    char line[256];
    check(offload(t, nap, &done) == 0);
    struct rlimit files;
    check(getrlimit(RLIMIT_NOFILE, &files) == 0);
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "FDSize: %d", &size) == 1)
            break;
    check(f && fclose(f) == 0);
    ok(size >= 16384 || files.rlim_cur < 16384, "the table of files has its size: %d", size);
}

int main(void)
{
    tap_task(test_work, NULL, true);
    tap_task(test_file_table, NULL, true);
    tap_task(test_deadline, NULL, true);
    tap_task(test_full, NULL, true);
    return tap_done();
}
