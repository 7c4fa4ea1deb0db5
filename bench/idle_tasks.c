/* Memory of tasks that wait: bench_idle_tasks N prints one line of JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/time.h"
#include "loop/task.h"

static long rss_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    check(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld kB", &kb) == 1)
            break;
    fclose(f);
    return kb;
}

static void idle(struct task *t, void *arg)
{
    (void)arg;
    while (task_sleep(t, 60 * 1000) == 0)
        ;
}

static void measure(struct task *t, void *arg)
{
    int64_t count = *(int64_t *)arg;
    struct group g;
    group_init(&g, task_loop(t));
    long before = rss_kb();
    int64_t start_us = time_mono_us();
    for (int64_t i = 0; i < count; i++) {
        if (task_go(&g, "idle", idle, NULL)) {
            fprintf(stderr, "only %lld stacks: raise vm.max_map_count\n", (long long)i);
            break;
        }
    }
    check(task_sleep(t, 10) == 0); /* all of them have begun to wait */
    int64_t us = time_mono_us() - start_us;
    long kb = rss_kb();
    printf("{\"bench\": \"idle_tasks\", \"tasks\": %zu, \"rss_mb\": %.1f, \"kb_per_task\": %.2f, "
           "\"us_per_start\": %.2f, \"limit_mb\": 60, \"ratio\": %.2f}\n",
           g.count, (double)kb / 1024, (double)(kb - before) / (double)g.count,
           (double)us / (double)g.count, (double)kb / 1024 / 60);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
}

int main(int argc, char **argv)
{
    int64_t count = 10000;
    if (argc > 1 && !str_to_i64(str_of(argv[1]), &count)) {
        fprintf(stderr, "usage: %s [TASKS]\n", argv[0]);
        return 2;
    }
    struct loop *l = loop_new(NULL);
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "measure", measure, &count) == 0);
    loop_run(l);
    loop_free(l);
    return 0;
}
