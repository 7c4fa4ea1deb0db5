#include "serve/offline.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void prepare(struct offline *o, struct store *store, const struct store_kind *kind)
{
    *store = (struct store){.kind = kind,
                            .config = &o->config,
                            .data_dir = o->dir.path,
                            .user = &o->user,
                            .nodes = 1,
                            .shared = &o->shared};
}

int offline_open(struct task *t, const struct config *c, struct arena *a, struct offline *out)
{
    const char *why = NULL;
    *out = (struct offline){.config = *c};
    int err = system_user_find(a, c->user, &out->user, &why);
    if (!err)
        err = datadir_open(a, c->data_dir, out->user.uid, out->user.gid, &out->dir, &why);
    if (!err)
        err = system_user_become(a, &out->user, &why);
    if (err)
        return task_fail(t, err, "%s", why);
    if (access(out->dir.path, R_OK | W_OK | X_OK) < 0)
        return task_fail(t, ERR_IO, "%s: user \"%s\" cannot write there: %s", out->dir.path,
                         out->user.name, strerror(errno));
    out->config.data_dir = out->dir.path;
    supervision_init(&out->shared, task_loop(t), "");
    group_init(&out->stores, task_loop(t));
    prepare(out, &out->redis, &store_redis);
    prepare(out, &out->mariadb, &store_mariadb);
    return 0;
}

void offline_clear(struct task *t, struct offline *o)
{
    store_clear(t, &o->redis);
    store_clear(t, &o->mariadb);
}

static bool is_up(const struct store *s, const char *url)
{
    return *url || s->state == STORE_READY;
}

static bool has_failed(const struct store *s)
{
    return s->state == STORE_FAILED || s->state == STORE_DOWN;
}

int offline_start(struct task *t, struct offline *o)
{
    const char *redis_url = o->config.redis_url, *mysql_url = o->config.mysql_url;
    if ((!*redis_url && store_go(&o->redis, &o->stores)) ||
        (!*mysql_url && store_go(&o->mariadb, &o->stores)))
        return ERR_LIMIT;
    while (!o->shared.stops && !has_failed(&o->redis) && !has_failed(&o->mariadb) &&
           !(is_up(&o->redis, redis_url) && is_up(&o->mariadb, mysql_url)))
        supervision_wait(t, &o->shared, TIME_NEVER);
    if (o->shared.stops)
        return ERR_CANCELED;
    if (has_failed(&o->redis) || has_failed(&o->mariadb))
        return task_fail(t, ERR_IO, "%s",
                         has_failed(&o->redis) ? o->redis.problem : o->mariadb.problem);
    return 0;
}

void offline_stop(struct task *t, struct offline *o)
{
    o->redis.stop = o->mariadb.stop = true;
    supervision_wake(&o->shared);
    check(group_join(t, &o->stores) == 0);
}

void offline_cancel(struct offline *o)
{
    o->shared.stops++;
    supervision_wake(&o->shared);
}
