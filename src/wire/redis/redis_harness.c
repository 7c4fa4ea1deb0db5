#include "wire/redis/redis_harness.h"

#include "tests/tap.h"

void open_with(struct task *t, struct fixture *f, struct redis_options o)
{
    group_init(&f->group, task_loop(t));
    if (!o.url)
        o.url = f->store.url_unix;
    o.name = "hot";
    o.metrics = f->metrics;
    f->redis = redis_open(&f->group, &o);
    check(f->redis);
}

void close_redis(struct task *t, struct fixture *f)
{
    redis_close(f->redis);
    check(group_join(t, &f->group) == 0);
}

void with_server(task_fn *fn, const char *const *extra)
{
    struct fixture f = {.metrics = metrics_open(-1, 1, 0)};
    store_redis_start(&f.store, extra);
    tap_task(fn, &f, true);
    store_redis_stop(&f.store);
    metrics_close(f.metrics);
}
