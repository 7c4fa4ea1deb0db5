#include "engine/store/lock.h"

#include "engine/store/scripts.h"

int lock_take(struct task *t, struct redis *r, struct str key, int64_t ms, struct lock *out)
{
    check(ms > 0);
    struct lock l = {.redis = r, .key = key};
    loop_token(task_loop(t), l.token, sizeof l.token);
    const struct redis_reply *reply;
    int err = redis_call(t, r, key, &reply, STR("SET"), key, lock_token(&l), STR("NX"), STR("PX"),
                         str_int(task_arena(t), ms));
    if (err)
        return err;
    if (reply->type == REDIS_NIL)
        return task_fail(t, ERR_BUSY, "another holder has the lock %.*s", STR_ARG(key));
    *out = l;
    return 0;
}

int lock_keep(struct task *t, const struct lock *l, int64_t ms)
{
    check(ms > 0);
    const struct redis_reply *reply;
    int err = SCRIPT(t, l->redis, lock_keep, &reply, .lock = l->key, .token = lock_token(l),
                     .ms = str_int(task_arena(t), ms));
    if (err)
        return err;
    if (reply->type != REDIS_INT || reply->integer != 1)
        return task_fail(t, ERR_CONFLICT, "the lock %.*s has expired", STR_ARG(l->key));
    return 0;
}

bool lock_drop(struct task *t, const struct lock *l)
{
    const char *text = arena_strdup(task_arena(t), task_error(t));
    int err = SCRIPT(t, l->redis, lock_drop, NULL, .lock = l->key, .token = lock_token(l));
    if (err)
        (void)task_fail(t, 0, "%s", text);
    return !err;
}
