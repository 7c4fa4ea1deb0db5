#include "loop/task.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "loop/loop_private.h"
#include "tests/tap.h"

static char trail[256];

static void note(const char *what)
{
    strncat(trail, what, sizeof trail - strlen(trail) - 1);
}

static void say_twice(struct task *t, void *arg)
{
    note(arg);
    check(task_yield(t) == 0);
    note(arg);
}

static void test_turns(struct task *t, void *arg)
{
    (void)arg;
    struct group g;
    group_init(&g, task_loop(t));
    trail[0] = '\0';
    check(task_go(&g, "a", say_twice, "a") == 0);
    check(task_go(&g, "b", say_twice, "b") == 0);
    is_str(str_of(trail), STR(""), "a new task does not run at once");
    is_int(group_join(t, &g), 0, "join");
    is_str(str_of(trail), STR("abab"), "tasks take turns");
    is_int(group_join(t, &g), 0, "joining an empty group returns at once");
}

struct far {
    uintptr_t from;
    bool far;
};

static void look_where(void *arg)
{
    struct far *f = arg;
    char here = 0;
    uintptr_t at = (uintptr_t)&here, away = at > f->from ? at - f->from : f->from - at;
    f->far = away > 16 * TASK_STACK_BYTES;
    note("aside");
}

static void go_aside(struct task *t, void *arg)
{
    (void)arg;
    char here = 0;
    struct far f = {.from = (uintptr_t)&here};
    note("[");
    for (int i = 0; i < 2; i++)
        task_aside(t, look_where, &f);
    note("]");
    ok(f.far, "what is called aside is on another stack");
}

static void test_aside(struct task *t, void *arg)
{
    (void)arg;
    struct group g;
    group_init(&g, task_loop(t));
    trail[0] = '\0';
    check(task_go(&g, "a", go_aside, NULL) == 0);
    check(task_go(&g, "b", say_twice, "b") == 0);
    is_int(group_join(t, &g), 0, "join");
    is_str(str_of(trail), STR("[asideaside]bb"), "it is no wait: no other task runs meanwhile");
}

static void test_sleep(struct task *t, void *arg)
{
    (void)arg;
    struct loop *l = task_loop(t);
    int64_t start = loop_now_ms(l), wall = loop_wall_ms(l);
    is_int(task_sleep(t, 3600 * 1000), 0, "an hour of virtual time");
    is_int(loop_now_ms(l) - start, 3600 * 1000, "the clock went on by just that");
    is_int(loop_wall_ms(l) - wall, 3600 * 1000, "so did the wall clock");

    int64_t old = task_deadline(t, 100);
    is_int(task_sleep(t, 500), ERR_TIMEOUT, "a deadline cuts a sleep short");
    is_int(loop_now_ms(l) - start, 3600 * 1000 + 100, "at the deadline");
    is_int(task_sleep(t, 500), ERR_TIMEOUT, "a passed deadline fails the next wait");
    is_int(task_time_left_ms(t), 0, "no time is left");
    task_deadline_restore(t, old);
    is_int(task_sleep(t, 1), 0, "and is gone when restored");
    ok(task_time_left_ms(t) == TIME_NEVER, "no deadline");

    old = task_deadline(t, 50);
    task_deadline(t, 5000);
    is_int(task_time_left_ms(t), 50, "a deadline inside another cannot widen it");
    task_deadline_restore(t, old);
}

/* The timer of a task is left where it is when it need not be earlier: it must still be right. */
static void test_lazy_deadlines(struct task *t, void *arg)
{
    (void)arg;
    struct loop *l = task_loop(t);
    int64_t start = loop_now_ms(l);
    for (int i = 0; i < 10; i++) {
        int64_t old = task_deadline(t, 100);
        check(task_sleep(t, 60) == 0);
        task_deadline_restore(t, old);
    }
    is_int(loop_now_ms(l) - start, 600, "deadlines that move on do not fire");
    int64_t old = task_deadline(t, 100);
    is_int(task_wait(t), ERR_TIMEOUT, "the last one does");
    is_int(loop_now_ms(l) - start, 700, "in time");
    task_deadline_restore(t, old);
}

static int sleeper_result;

static void sleeper(struct task *t, void *arg)
{
    (void)arg;
    sleeper_result = task_sleep(t, 1000000);
    if (sleeper_result == ERR_CANCELED)
        sleeper_result = task_sleep(t, 1) == ERR_CANCELED ? 77 : 0;
}

static void canceler(struct task *t, void *arg)
{
    check(task_sleep(t, 10) == 0);
    group_cancel(arg);
}

static void test_cancel(struct task *t, void *arg)
{
    (void)arg;
    struct group g, other;
    group_init(&g, task_loop(t));
    group_init(&other, task_loop(t));
    check(task_go(&g, "sleeper", sleeper, NULL) == 0);
    check(task_go(&other, "canceler", canceler, &g) == 0);
    is_int(group_join(t, &g), 0, "the group ends when it is cancelled");
    is_int(sleeper_result, 77, "the wait under way and the next one return ERR_CANCELED");
    sleeper_result = 0;
    check(task_go(&g, "late", sleeper, NULL) == 0);
    is_int(group_join(t, &g), 0, "a task started in a cancelled group");
    is_int(sleeper_result, 77, "is cancelled from the start");
    check(group_join(t, &other) == 0);

    group_init(&g, task_loop(t));
    sleeper_result = 0;
    check(task_go(&g, "sleeper", sleeper, NULL) == 0);
    int64_t old = task_deadline(t, 20);
    is_int(group_join(t, &g), ERR_TIMEOUT, "a join that times out");
    task_deadline_restore(t, old);
    is_int(sleeper_result, 77, "has cancelled the group");
    is_int((int64_t)g.count, 0, "and still waited for its end");
}

static void test_scope(struct task *t, void *arg)
{
    (void)arg;
    struct task_scope s = task_scope(t);
    task_deadline(t, 5);
    const char *first = arena_strdup(task_arena(t), "text");
    is_int(task_time_left_ms(t), 5, "a deadline inside a scope");
    task_scope_end(t, s);
    is_int(task_time_left_ms(t), TIME_NEVER, "ends with it");
    ok(arena_strdup(task_arena(t), "text") == first, "and so does its memory");
}

static void test_fail(struct task *t, void *arg)
{
    (void)arg;
    is_str(str_of(task_error(t)), STR(""), "no error yet");
    is_int(task_fail(t, ERR_LIMIT, "%d is too many", 7), ERR_LIMIT, "task_fail returns the code");
    is_str(str_of(task_error(t)), STR("7 is too many"), "and keeps the text");
    task_fail(t, ERR_LIMIT, "not done: %s", task_error(t));
    is_str(str_of(task_error(t)), STR("not done: 7 is too many"), "a text may quote the last one");
}

static int deep(int n, volatile char *above)
{
    volatile char here[512];
    memset((char *)(uintptr_t)here, n, sizeof here);
    if (above)
        here[0] = above[1];
    return n == 0 ? here[1] : deep(n - 1, here) + here[2];
}

static void go_deep(struct task *t, void *arg)
{
    (void)t, (void)arg;
    (void)deep(150, NULL);
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct group g;
    group_init(&g, task_loop(t));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2000; i++)
            check(task_go(&g, "deep", go_deep, NULL) == 0);
        check(group_join(t, &g) == 0);
    }
    ok(true, "6000 tasks with 80 KB of frames each");
    ok(task_loop(t)->stacks.free_count <= STACKS_KEPT_MAX,
       "free stacks are unmapped beyond the limit");
    is_int((int64_t)loop_task_count(task_loop(t)), 1, "only this task is left");
}

static void overflow(struct task *t, void *arg)
{
    (void)t, (void)arg;
    (void)deep(100000, NULL);
}

/* The guard page must end the process; without it the next stack would be overwritten. */
static void test_guard(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        (void)!freopen("/dev/null", "w", stderr);
        tap_task(overflow, NULL, false);
        _exit(0);
    }
    int status = 0;
    check(waitpid(pid, &status, 0) == pid);
    ok(!(WIFEXITED(status) && WEXITSTATUS(status) == 0), "a stack overflow ends the process");
}

/* --- standing back --- */

#define BURST   30
#define WORK_US 500

static int burst_done, burst_seen, beat_count;
static char burst_order[BURST + 1];

static void burn(int64_t us)
{
    int64_t until = time_mono_us() + us;
    while (time_mono_us() < until)
        ;
}

static void burst_task(struct task *t, void *arg)
{
    check(task_stand_back(t, false) == 0);
    burn(WORK_US);
    burst_order[burst_done++] = *(const char *)arg;
}

/* Counts how often it runs while the burst lasts: every millisecond or two. */
static void beat(struct task *t, void *arg)
{
    (void)arg;
    while (burst_done < BURST) {
        int before = burst_done;
        check(task_sleep(t, 1) == 0);
        beat_count++;
        if (burst_done - before > burst_seen)
            burst_seen = burst_done - before;
    }
}

static void test_stand_back(struct task *t, void *arg)
{
    (void)arg;
    static const char names[BURST + 1] = "abcdefghijklmnopqrstuvwxyz0123";
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "beat", beat, NULL) == 0);
    for (int i = 0; i < BURST; i++)
        check(task_go(&g, "burst", burst_task, (void *)(uintptr_t)&names[i]) == 0);
    is_int(group_join(t, &g), 0, "30 tasks of 0.5 ms each, ready at once");
    ok(burst_seen <= 8 && beat_count >= 4, "others run between them: %d at most at a time",
       burst_seen);
    is_str(str_of(burst_order), str_of(names), "first come, first served");
}

static void stand_back(struct task *t, void *arg)
{
    const char *name = arg;
    note("(");
    is_int(task_stand_back(t, *name >= 'A' && *name <= 'Z'), 0, "%s stands back", name);
    note(name);
}

static void stand_back_late(struct task *t, void *arg)
{
    int *err = arg;
    task_deadline(t, 0);
    *err = task_stand_back(t, false);
}

static void test_stand_back_order(struct task *t, void *arg)
{
    (void)arg;
    struct group g;
    group_init(&g, task_loop(t));
    trail[0] = '\0';
    for (const char *const *p = (const char *const[]){"a", "B", "c", "D", NULL}; *p; p++)
        check(task_go(&g, *p, stand_back, (void *)(uintptr_t)*p) == 0);
    check(task_go(&g, "x", say_twice, "x") == 0);
    is_int(group_join(t, &g), 0, "join");
    is_str(str_of(trail), STR("((((xBDacx"), "what is ready first, then what has begun");
    int err = 0;
    check(task_go(&g, "late", stand_back_late, &err) == 0);
    is_int(group_join(t, &g), 0, "join");
    is_int(err, ERR_TIMEOUT, "a deadline that has passed");
    check(task_go(&g, "late", stand_back_late, &err) == 0);
    group_cancel(&g);
    is_int(group_join(t, &g), 0, "join");
    is_int(err, ERR_CANCELED, "a task that is cancelled");
}

static uint64_t drawn[3];

static void draw(struct task *t, void *arg)
{
    drawn[*(int *)arg] = loop_random(task_loop(t));
    uint8_t secret[32] = {0};
    loop_secret(task_loop(t), secret, sizeof secret);
    for (int i = 0; i < 100; i++) {
        int64_t ms = loop_jitter(task_loop(t), 100);
        check(ms >= 50 && ms <= 100);
    }
}

static void test_random(void)
{
    for (int i = 0; i < 2; i++)
        tap_task(draw, &i, false);
    ok(drawn[0] == drawn[1] && drawn[0] != 0, "the same seed draws the same numbers");
    struct loop *l = loop_new(NULL);
    drawn[2] = loop_random(l);
    loop_free(l);
    ok(drawn[2] != drawn[0], "without a seed they differ");
}

static void on_usr1(void *arg)
{
    task_wake(arg);
}

static void test_signal(struct task *t, void *arg)
{
    (void)arg;
    loop_on_signal(task_loop(t), SIGUSR1, on_usr1, t);
    task_deadline(t, 5000);
    kill(getpid(), SIGUSR1);
    is_int(task_wait(t), 0, "a signal wakes a task");
}

int main(void)
{
    task_fn *const tests[] = {test_turns, test_aside, test_sleep, test_lazy_deadlines,  test_cancel,
                              test_scope, test_fail,  test_many,  test_stand_back_order};
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tap_task(tests[i], NULL, false);
    tap_task(test_signal, NULL, true);
    tap_task(test_stand_back, NULL, true);
    test_random();
    test_guard();
    return tap_done();
}
