#include "tests/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "loop/process.h"

void probe_compile(struct task *t, const char *path)
{
    const char *name = arena_printf(task_arena(t), "%.*s/sandbox_probe.c",
                                    (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
    char *source = realpath(name, NULL);
    check(source);
    const char *const argv[] = {"/usr/bin/cc", "-D_GNU_SOURCE", "-Wall",    "-Werror", "-o",
                                path,          source,          "-pthread", NULL};
    struct process p = {.argv = argv, .input = STR(""), .output_max = 10000, .errors_max = 10000};
    struct process_end end = {0};
    int err = process_run(t, &p, &end);
    if (err || end.status)
        fprintf(stderr, "%s\n%.*s", err ? task_error(t) : name, STR_ARG(end.errors));
    check(!err && end.status == 0 && chmod(path, 0755) == 0);
    free(source);
}
