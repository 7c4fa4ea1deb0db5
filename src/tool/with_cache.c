#include "tool/with_cache.h"

/* Until it has looked once, the cache does not trust Redis. */
static void settle(struct task *t, const struct cache *c)
{
    for (int i = 0; i < 100 && !cache_trusts_redis(c); i++)
        if (task_sleep(t, 10))
            return;
}

int with_cache(struct task *t, struct db *d,
               int (*body)(struct task *t, struct db *d, struct cache *c))
{
    struct cache *c = cache_new(&(struct cache_options){.redis = d->redis, .sql = d->sql});
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "cache", cache_task, c) == 0);
    settle(t, c);
    int status = body(t, d, c);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    cache_free(c);
    return status;
}
