#include "serve/machine.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

#define MAPPINGS_OTHER 2000 /* libraries, heap, helper threads */

/* Calls fn with the folder of this process's cgroup and of all above it. controller is "memory" or
 * "cpu" where each has a tree of its own (version 1), "" where all share one (version 2). */
static void each_cgroup(struct str controller, void (*fn)(const char *folder, void *arg), void *arg)
{
    char text[4096];
    struct str rest = file_head("/proc/self/cgroup", text, sizeof text);
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');
        struct str path = line;
        str_cut(&path, ':');
        struct str names = path;
        names = str_cut(&path, ':');
        bool ours = false;
        for (struct str n = names; n.p && !ours;)
            ours = str_eq(str_cut(&n, ','), controller);
        if (!ours || !path.p)
            continue;
        for (;;) {
            char folder[PATH_MAX];
            snprintf(folder, sizeof folder, "/sys/fs/cgroup%s%.*s%.*s", controller.n ? "/" : "",
                     STR_ARG(controller), STR_ARG(path));
            fn(folder, arg);
            if (path.n == 0)
                break;
            const char *slash = memrchr(path.p, '/', path.n);
            path.n = slash ? (size_t)(slash - path.p) : 0;
        }
    }
}

static void lower_memory(const char *folder, void *arg)
{
    static const char *const files[] = {"memory.max", "memory.limit_in_bytes"};
    int64_t *least = arg, limit;
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX], text[64];
        if (snprintf(path, sizeof path, "%s/%s", folder, files[i]) >= (int)sizeof path)
            continue;
        struct str rest = file_head(path, text, sizeof text);
        if (str_to_i64(str_cut(&rest, '\n'), &limit) && limit > 0 && limit < *least)
            *least = limit;
    }
}

int64_t machine_memory_bytes(void)
{
    int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    each_cgroup(STR("memory"), lower_memory, &bytes);
    each_cgroup(STR(""), lower_memory, &bytes);
    return bytes;
}

static void lower_cores(const char *folder, void *arg)
{
    char path[PATH_MAX], text[64];
    int *least = arg;
    int64_t quota, period;
    if (snprintf(path, sizeof path, "%s/cpu.max", folder) >= (int)sizeof path)
        return;
    struct str rest = file_head(path, text, sizeof text); /* "200000 100000", "max 100000" */
    struct str first = str_cut(&rest, ' ');
    if (!rest.p || !str_to_i64(first, &quota) || !str_to_i64(str_cut(&rest, '\n'), &period))
        return;
    int64_t cores = period > 0 ? (quota + period - 1) / period : *least;
    if (cores >= 1 && cores < *least)
        *least = (int)cores;
}

int machine_cores(void)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                            : (int)sysconf(_SC_NPROCESSORS_ONLN);
    each_cgroup(STR(""), lower_cores, &cores);
    return cores > 0 ? cores : 1;
}

void machine_raise_file_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

void machine_check_mappings(int64_t tasks)
{
    char text[64];
    struct str rest = file_head("/proc/sys/vm/max_map_count", text, sizeof text);
    int64_t limit, needed = 2 * tasks + MAPPINGS_OTHER;
    if (str_to_i64(str_cut(&rest, '\n'), &limit) && limit < needed)
        log_warn("serve",
                 "vm.max_map_count is %lld, enough for about %lld connections and workers per node "
                 "of the %lld configured; to raise it: sysctl -w vm.max_map_count=%lld",
                 (long long)limit, (long long)(limit - MAPPINGS_OTHER) / 2, (long long)tasks,
                 (long long)needed);
}
