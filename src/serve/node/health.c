#include "serve/node/health.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/metrics.h"
#include "base/str.h"
#include "engine/papers/warm.h"
#include "engine/setup/store_check.h"
#include "wire/http_server.h"
#include "wire/redis.h"
#include "wire/sql.h"

#define PROBE_MS 1000
#define LATE_MS  50 /* the sleep whose end shows how late the loop is */

/* --- the stores --- */

static void probe(struct task *t, const struct node *n,
                  int (*ask)(struct task *, const struct node *), struct probe *out)
{
    int64_t old = task_deadline(t, PROBE_MS);
    int64_t began = loop_now_us(n->loop);
    out->err = ask(t, n);
    out->latency_us = loop_now_us(n->loop) - began;
    task_deadline_restore(t, old);
    const char *words = *task_error(t) ? task_error(t) : err_name(out->err);
    out->problem = out->err ? arena_strdup(task_arena(t), words) : "";
}

static int ask_redis(struct task *t, const struct node *n)
{
    const struct redis_reply *reply;
    return redis_call(t, n->redis, STR_NULL, &reply, STR("PING"));
}

static int ask_mysql(struct task *t, const struct node *n)
{
    return sql_call(t, n->sql, NULL, "SELECT 1");
}

static int ask_for_change(struct task *t, const struct node *n)
{
    return store_check_writable(t, n->sql);
}

void health_probe(struct task *t, const struct node *n, bool tables, struct health *out)
{
    struct probe change = {.err = 0};
    probe(t, n, ask_redis, &out->redis);
    probe(t, n, ask_mysql, &out->mysql);
    if (tables && !out->mysql.err)
        probe(t, n, ask_for_change, &change);
    out->read_only = change.err && sql_pool_read_only(n->sql);
    if (change.err)
        out->mysql.problem = change.problem;
    if (change.err && !out->read_only)
        out->mysql.err = change.err;
}

/* --- the process --- */

struct vitals {
    struct node *node;
    int64_t *resident, *cpu, *files, *tasks, *late, *draining, *drained;
    int64_t *warm_blocks, *warm_blocks_ready;
};

struct vitals *vitals_new(struct node *n)
{
    struct vitals *v = check_memory(calloc(1, sizeof *v));
    struct metrics *m = n->metrics;
    v->node = n;
    v->resident = metric(m, METRIC_GAUGE, "millrace_node_resident_bytes", "",
                         "Memory of the process that is in RAM.");
    v->cpu =
        metric(m, METRIC_COUNTER_US, "millrace_node_cpu_seconds_total", "", "Processor time used.");
    v->files = metric(m, METRIC_GAUGE, "millrace_node_open_files", "", "Open file descriptors.");
    v->tasks = metric(m, METRIC_GAUGE, "millrace_node_tasks", "", "Tasks that have not ended.");
    v->late = metric(m, METRIC_GAUGE_US, "millrace_node_loop_late_seconds", "",
                     "How much too late the last timer of this kind fired.");
    v->draining =
        metric(m, METRIC_GAUGE, "millrace_node_draining", "", "1: the node takes no new work.");
    v->drained = metric(m, METRIC_GAUGE, "millrace_node_drained", "",
                        "1: an admin has told the node to take no work.");
    v->warm_blocks = metric(m, METRIC_GAUGE, "millrace_warm_blocks", "",
                            "Blocks of papers that Redis should have, as of the last warm-up.");
    v->warm_blocks_ready = metric(m, METRIC_GAUGE, "millrace_warm_blocks_ready", "",
                                  "Those of them that it had, or has been given since.");
    return v;
}

void vitals_free(struct vitals *v)
{
    free(v);
}

static int64_t resident_bytes(void)
{
    char text[128];
    struct str rest = file_head("/proc/self/statm", text, sizeof text);
    int64_t pages = 0;
    str_cut(&rest, ' ');
    if (rest.p)
        str_to_i64(str_cut(&rest, ' '), &pages);
    return pages * sysconf(_SC_PAGESIZE);
}

static int64_t open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int64_t n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n > 3 ? n - 3 : 0; /* ".", ".." and the folder itself */
}

static int64_t cpu_us(void)
{
    struct rusage r;
    if (getrusage(RUSAGE_SELF, &r) < 0)
        return 0;
    return (int64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec +
           r.ru_stime.tv_usec;
}

void vitals_update(struct vitals *v)
{
    v->node->resident_bytes = resident_bytes();
    metric_set(v->resident, v->node->resident_bytes);
    metric_set(v->cpu, cpu_us());
    metric_set(v->files, open_files());
    metric_set(v->tasks, (int64_t)loop_task_count(v->node->loop));
    metric_set(v->draining, v->node->draining);
    metric_set(v->drained, v->node->drained);
    metric_set(v->warm_blocks, v->node->warm->blocks);
    metric_set(v->warm_blocks_ready, v->node->warm->blocks_ready);
}

int vitals_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    struct vitals *v = arg;
    struct loop *l = task_loop(t);
    vitals_update(v);
    int64_t due_us = (loop_now_ms(l) + LATE_MS) * 1000;
    int err = task_sleep(t, LATE_MS);
    int64_t late_us = loop_now_us(l) - due_us;
    if (!err) {
        v->node->late_us = late_us > 0 ? late_us : 0;
        metric_set(v->late, v->node->late_us);
    }
    return err;
}
