/* jobs -- queues of jobs whose work is nothing, on the stores of the settings.
 *
 *   bench_jobs push COUNT FIRST       pushes jobs, 500 in a call
 *   bench_jobs work COUNT             works on so many, 100 at a time
 *   bench_jobs rows COUNT             jobs with rows, from their push to the end of all
 *   bench_jobs submit COUNT ROUNDS    rows of COUNT jobs written, and the jobs pushed
 *   bench_jobs start ROUNDS           from the push of a job to its begin, nothing else to do
 *   bench_jobs start-other ROUNDS     the same, on another node
 *   bench_jobs hold SECONDS           works on jobs of "put", which take so long; says which
 *   bench_jobs put COUNT FIRST        pushes these
 *
 * Each prints a line of JSON; cpu_us is CPU time of this process, for all jobs. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "engine/jobs/jobs.h"
#include "engine/setup/config.h"
#include "engine/setup/stores.h"

#define PUSH_JOBS   500
#define USERS       1000
#define CONCURRENCY 100
#define LEASE_MS    6000

/* What two processes know of each other. */
struct shared {
    volatile int64_t began_us;
    volatile bool ready;
};

struct bench {
    struct stores stores;
    const char *command;
    int64_t count, more; /* the numbers behind the command */
    struct shared *shared;
    struct redis *redis, *redis_wake;
    struct sql_pool *sql;
    struct metrics *metrics;
    struct jobs *jobs;
    struct roles *roles;
    struct group links, tasks;
};

static const struct job_rows rows = {.table = "bench_job",
                                     .id = "id",
                                     .uid = "uid",
                                     .position = "n",
                                     .version = "version",
                                     .priority = "priority",
                                     .created = "created_at",
                                     .changed = "changed_at",
                                     .state = "state",
                                     .error = "error",
                                     .pending = "pending",
                                     .working = "working",
                                     .completed = "completed",
                                     .failed = "failed"};

/* --- time --- */

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static int64_t cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * INT64_C(1000000) + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

static void tell(int64_t jobs, int64_t began_us, int64_t used_us)
{
    printf("{\"jobs\": %" PRId64 ", \"seconds\": %.6f, \"cpu_us\": %" PRId64 "}\n", jobs,
           (double)(now_us() - began_us) / 1e6, cpu_us() - used_us);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void tell_spread(int64_t *us, int64_t n)
{
    qsort(us, (size_t)n, sizeof *us, compare);
    printf("{\"rounds\": %" PRId64 ", \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"most_ms\": %.3f}\n", n,
           (double)us[n / 2] / 1e3, (double)us[n * 99 / 100] / 1e3, (double)us[n - 1] / 1e3);
}

/* --- jobs --- */

static int nothing(struct task *t, void *arg, const struct job *j)
{
    const struct bench *b = arg;
    (void)t, (void)j;
    b->shared->began_us = now_us();
    return 0;
}

static int hold(struct task *t, void *arg, const struct job *j)
{
    const struct bench *b = arg;
    printf("begun %.*s %" PRId64 "\n", STR_ARG(j->id), now_us());
    fflush(stdout);
    return task_sleep(t, b->count * 1000);
}

static const struct job_kind alone = {.name = "alone",
                                      .concurrency = CONCURRENCY,
                                      .lease_ms = LEASE_MS,
                                      .deadline_ms = 60000,
                                      .tries_max = 3,
                                      .backoff_ms = 1000,
                                      .work = nothing},
                             kept = {.name = "kept",
                                     .concurrency = CONCURRENCY,
                                     .lease_ms = LEASE_MS,
                                     .deadline_ms = 60000,
                                     .tries_max = 3,
                                     .backoff_ms = 1000,
                                     .rows = &rows,
                                     .work = nothing},
                             held = {.name = "held",
                                     .concurrency = CONCURRENCY,
                                     .lease_ms = LEASE_MS,
                                     .deadline_ms = 600000,
                                     .tries_max = 3,
                                     .backoff_ms = 1000,
                                     .work = hold};

static struct job_push *some(struct task *t, int64_t first, int64_t count)
{
    struct job_push *list = ARENA_ARRAY(task_arena(t), struct job_push, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        list[i] = (struct job_push){
            .id = str_printf(task_arena(t), "%" PRId64 "-%012" PRId64, (first + i) % 97, first + i),
            .uid = 1 + (first + i) % USERS,
            .version = 1,
            .priority = 1,
            .order = first + i};
    return list;
}

static void push(struct task *t, struct bench *b, const char *queue, int64_t first, int64_t count)
{
    for (int64_t done = 0; done < count; done += PUSH_JOBS) {
        struct task_scope s = task_scope(t);
        int64_t n = count - done < PUSH_JOBS ? count - done : PUSH_JOBS;
        check(jobs_push(t, b->jobs, queue, some(t, first + done, n), (size_t)n, NULL) == 0);
        task_scope_end(t, s);
    }
}

static void go(struct bench *b)
{
    static const bool draining;
    b->roles = roles_new(b->redis, &draining);
    roles_go(b->roles, &b->tasks,
             &(struct role){.name = "jobs-keep",
                            .round = jobs_keep_role,
                            .arg = b->jobs,
                            .each_ms = JOBS_KEEP_EACH_MS,
                            .complaint = "leases are not renewed"});
    check(task_go(&b->tasks, "jobs", jobs_task, b->jobs) == 0);
}

static void await_done(struct task *t, const struct bench *b, const char *queue, int64_t count)
{
    const int64_t *done =
        metric(b->metrics, METRIC_COUNTER, "millrace_jobs_done_total",
               arena_printf(task_arena(t), "queue=\"%s\"", queue), "Jobs that this node has done.");
    while (*done < count)
        check(task_sleep(t, 1) == 0);
}

/* --- rows --- */

static void make_table(struct task *t, struct bench *b)
{
    check(sql_call(t, b->sql, NULL, "DROP TABLE IF EXISTS bench_job") == 0);
    check(sql_call(t, b->sql, NULL,
                   "CREATE TABLE bench_job (n BIGINT PRIMARY KEY AUTO_INCREMENT,"
                   " id VARCHAR(64) COLLATE utf8mb4_nopad_bin NOT NULL UNIQUE, uid INT NOT NULL,"
                   " version BIGINT NOT NULL DEFAULT 1, priority INT NOT NULL,"
                   " state VARCHAR(16) NOT NULL, error TEXT,"
                   " created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),"
                   " changed_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),"
                   " KEY (state, n), KEY (state, changed_at)) ENGINE=InnoDB") == 0);
}

struct promise {
    const struct job_push *list;
    int64_t count;
};

static int write_rows(struct task *t, struct sql *c, void *arg)
{
    const struct promise *p = arg;
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, (size_t)p->count * 5);
    for (int64_t i = 0; i < p->count; i++) {
        const struct job_push *j = &p->list[i];
        struct sql_value *at = v + i * 5;
        at[0] = sql_int(j->order);
        at[1] = sql_text(j->id);
        at[2] = sql_int(j->uid);
        at[3] = sql_int(j->priority);
        at[4] = sql_text(STR("pending"));
    }
    return sql_bulk(t, c, "INSERT INTO bench_job (n, id, uid, priority, state) VALUES", "", 5,
                    (size_t)p->count, v, NULL);
}

static void promise(struct task *t, struct bench *b, int64_t first, int64_t count, bool pushed)
{
    struct task_scope s = task_scope(t);
    struct job_push *list = some(t, first, count);
    for (int64_t i = 0; i < count; i++)
        list[i].uid = 1; /* one user submits them */
    struct promise p = {list, count};
    check(sql_tx(t, b->sql, write_rows, &p) == 0);
    if (pushed)
        check(jobs_push(t, b->jobs, "kept", p.list, (size_t)count, NULL) == 0);
    task_scope_end(t, s);
}

/* --- commands --- */

static void do_push(struct task *t, struct bench *b)
{
    int64_t began_us = now_us(), used_us = cpu_us();
    push(t, b, strcmp(b->command, "put") == 0 ? "held" : "alone", b->more, b->count);
    tell(b->count, began_us, used_us);
}

static void do_work(struct task *t, struct bench *b)
{
    int64_t began_us = now_us(), used_us = cpu_us();
    go(b);
    await_done(t, b, "alone", b->count);
    tell(b->count, began_us, used_us);
}

static void do_rows(struct task *t, struct bench *b)
{
    for (int64_t n = 0; n < b->count; n += 1000)
        promise(t, b, 1 + n, b->count - n < 1000 ? b->count - n : 1000, false);
    int64_t began_us = now_us(), used_us = cpu_us();
    go(b);
    push(t, b, "kept", 1, b->count);
    await_done(t, b, "kept", b->count);
    tell(b->count, began_us, used_us);
    struct sql_rows r;
    check(sql_call(t, b->sql, &r, "SELECT COUNT(*) FROM bench_job WHERE state = 'completed'") == 0);
    check(r.cells[0].i == b->count);
}

static void do_submit(struct task *t, struct bench *b)
{
    int64_t *us = ARENA_ARRAY(task_arena(t), int64_t, (size_t)b->more);
    promise(t, b, 1, b->count, true);
    for (int64_t i = 0; i < b->more; i++) {
        int64_t began_us = now_us();
        promise(t, b, 1 + (i + 1) * b->count, b->count, true);
        us[i] = now_us() - began_us;
    }
    tell_spread(us, b->more);
}

static void do_start(struct task *t, struct bench *b)
{
    int64_t *us = ARENA_ARRAY(task_arena(t), int64_t, (size_t)b->count);
    if (strcmp(b->command, "start") == 0)
        go(b);
    for (int64_t i = 0; i < b->count; i++) {
        check(task_sleep(t, 20 + i % 17) == 0);
        b->shared->began_us = 0;
        int64_t began_us = now_us();
        push(t, b, "alone", 1 + i, 1);
        while (!b->shared->began_us)
            check(task_sleep(t, 1) == 0);
        us[i] = b->shared->began_us - began_us;
    }
    tell_spread(us, b->count);
}

static void do_hold(struct task *t, struct bench *b)
{
    go(b);
    printf("ready\n");
    fflush(stdout);
    check(task_sleep(t, 600000) == 0);
}

/* The other node, until it is killed. */
static void do_child(struct task *t, struct bench *b)
{
    go(b);
    b->shared->ready = true;
    check(task_sleep(t, 600000) == 0);
}

static const struct command {
    const char *name;
    void (*run)(struct task *t, struct bench *b);
    int arguments;
} commands[] = {
    {"push", do_push, 2},   {"work", do_work, 1},         {"rows", do_rows, 1},
    {"start", do_start, 1}, {"start-other", do_start, 1}, {"submit", do_submit, 2},
    {"hold", do_hold, 1},   {"child", do_child, 0},       {"put", do_push, 2},
};

/* --- a process --- */

static void refill(struct task *t, struct bench *b)
{
    struct role_turn turn = {.locked = false};
    if (redis_call(t, b->redis, STR_NULL, NULL, STR("PING")) ||
        jobs_refill_role(t, b->jobs, &turn)) {
        fprintf(stderr, "error: %s\n", task_error(t));
        exit(1);
    }
}

static void run(struct task *t, void *arg)
{
    struct bench *b = arg;
    bool with_rows = strcmp(b->command, "rows") == 0 || strcmp(b->command, "submit") == 0;
    b->jobs = jobs_new(&(struct jobs_options){.redis = b->redis,
                                              .redis_wake = b->redis_wake,
                                              .sql = b->sql,
                                              .metrics = b->metrics,
                                              .incarnation = (uint64_t)getpid()});
    jobs_add(b->jobs, &alone, b);
    jobs_add(b->jobs, &held, b);
    if (with_rows) {
        make_table(t, b);
        jobs_add(b->jobs, &kept, b);
    }
    refill(t, b);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(b->command, commands[i].name) == 0)
            commands[i].run(t, b);
    fflush(stdout);
    _exit(0); /* what is in hand, and the stores, are of no use any more */
}

static void start(struct bench *b)
{
    struct loop *l = loop_new(NULL);
    struct group g;
    group_init(&g, l);
    group_init(&b->links, l);
    group_init(&b->tasks, l);
    struct redis_options o = {
        .url = b->stores.redis_url, .password = b->stores.redis_password, .name = "bench"};
    b->redis = redis_open(&b->links, &o);
    o.command_ms = JOBS_WAKE_MS;
    b->redis_wake = redis_open(&b->links, &o);
    b->sql = sql_pool_new(
        l, &(struct sql_options){.url = b->stores.mysql_url, .password = b->stores.mysql_password});
    b->metrics = metrics_open(-1, 1, 0);
    check(b->redis && b->redis_wake && task_go(&g, "bench", run, b) == 0);
    loop_run(l);
}

static void start_child(struct bench *b)
{
    if (fork())
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    b->command = "child";
    start(b);
    exit(1);
}

int main(int argc, char **argv)
{
    const struct command *found = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            found = &commands[i];
    if (!found || argc != 2 + found->arguments) {
        fprintf(stderr, "usage: %s COMMAND …, see the head of bench/jobs.c\n", argv[0]);
        return 2;
    }
    struct arena a;
    struct config c;
    const char *why;
    struct bench b = {.command = argv[1],
                      .count = argc > 2 ? atoll(argv[2]) : 0,
                      .more = argc > 3 ? atoll(argv[3]) : 0};
    arena_init(&a);
    log_setup(LOG_WARN, LOG_TEXT, "bench");
    check(config_load(&a, NULL, true, environ, &c, &why) == 0);
    check(stores_find(&a, &c, &b.stores, &why) == 0);
    b.shared =
        mmap(NULL, sizeof *b.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(b.shared != MAP_FAILED);
    if (strcmp(b.command, "start-other") == 0) {
        start_child(&b);
        while (!b.shared->ready)
            usleep(10000);
    }
    start(&b);
    return 0;
}
