#include "wire/sql/sql_harness.h"

#include <stdio.h>

#include "base/log.h"

struct mariadb server;

int run_tests(const struct mariadb_options *o, size_t n, task_fn *const *tests)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    mariadb_start(&server, o);
    for (size_t i = 0; i < n; i++)
        tap_task(tests[i], NULL, true);
    mariadb_release(&server);
    return tap_done();
}

struct sql_pool *pool_with(struct task *t, struct sql_options o)
{
    if (!o.url)
        o.url = server.url;
    return sql_pool_new(task_loop(t), &o);
}

struct sql_pool *pool_of(struct task *t, size_t connections)
{
    return pool_with(t, (struct sql_options){.connections_max = connections});
}

int64_t now(struct task *t)
{
    return loop_now_us(task_loop(t)) / 1000;
}

int64_t number(struct task *t, struct sql_pool *p, const char *statement)
{
    struct sql_rows r;
    int err = sql_argv(t, p, statement, 0, NULL, &r);
    if (err)
        printf("# %s: %s: %s\n", statement, err_name(err), task_error(t));
    check(err == 0 && r.count == 1 && r.cells[0].type == SQL_INT);
    return r.cells[0].i;
}

void tick_task(struct task *t, void *arg)
{
    struct tick *k = arg;
    k->last = now(t);
    while (task_sleep(t, 1) == 0) {
        if (now(t) - k->last > k->gap_max)
            k->gap_max = now(t) - k->last;
        k->last = now(t);
    }
}
