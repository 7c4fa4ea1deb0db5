#include "tests/tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/store/keys.h"
#include "loop/task.h"

static int count, failed;

static bool report(bool held, const char *file, int line, const char *fmt, va_list ap)
{
    char name[512];
    vsnprintf(name, sizeof name, fmt, ap);
    for (char *p = name; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' '; /* a line is one assertion */
    printf("%sok %d - %s\n", held ? "" : "not ", ++count, name);
    if (!held) {
        failed++;
        printf("# at %s:%d\n", file, line);
    }
    fflush(stdout);
    return held;
}

bool tap_ok(bool held, const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(held, file, line, fmt, ap);
    va_end(ap);
    return held;
}

bool tap_int(int64_t got, int64_t want, const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(got == want, file, line, fmt, ap);
    va_end(ap);
    if (got != want)
        printf("#  got %lld\n# want %lld\n", (long long)got, (long long)want);
    return got == want;
}

bool tap_str(struct str got, struct str want, const char *file, int line, const char *fmt, ...)
{
    bool held = str_eq(got, want) && !got.p == !want.p;
    va_list ap;
    va_start(ap, fmt);
    report(held, file, line, fmt, ap);
    va_end(ap);
    if (!held)
        printf("#  got \"%.*s\"\n# want \"%.*s\"\n", STR_ARG(got), STR_ARG(want));
    return held;
}

int tap_done(void)
{
    printf("1..%d\n", count);
    return failed ? 1 : 0;
}

void tap_task(void (*fn)(struct task *t, void *arg), void *arg, bool real_time)
{
    struct loop *l = loop_new(&(struct loop_options){.virtual_time = !real_time, .seed = 1});
    struct group g;
    group_init(&g, l);
    keys_on_cluster(getenv("MILLRACE_TEST_TAGS"));
    check(task_go(&g, "test", fn, arg) == 0);
    loop_run(l);
    loop_free(l);
}
