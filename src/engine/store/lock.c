#include "engine/store/lock.h"

#include "base/sha256.h"
#include "engine/scripts.h"

static void make_token(struct loop *loop, char out[LOCK_TOKEN_BYTES])
{
    uint8_t bytes[(LOCK_TOKEN_BYTES - 1) / 2];
    loop_secret(loop, bytes, sizeof bytes);
    hex_write(bytes, sizeof bytes, out);
}

int lock_take(struct task *t, struct redis *r, struct str key, int64_t ms, struct lock *out)
{
    check(ms > 0);
    struct lock l = {.redis = r, .key = key};
    make_token(task_loop(t), l.token);
    const struct redis_reply *reply;
    int err = redis_call(t, r, key, &reply, STR("SET"), key, lock_token(&l), STR("NX"), STR("PX"),
                         str_int(task_arena(t), ms));
    if (err)
        return err;
    if (reply->type == REDIS_NIL)
        return task_fail(t, ERR_BUSY, "somebody else holds the lock %.*s", STR_ARG(key));
    *out = l;
    return 0;
}

int lock_keep(struct task *t, const struct lock *l, int64_t ms)
{
    check(ms > 0);
    const struct str argv[] = {l->key, lock_token(l), str_int(task_arena(t), ms)};
    const struct redis_reply *reply;
    int err = redis_script_run(t, l->redis, &script_lock_keep, l->key, 1, 3, argv, &reply);
    if (err)
        return err;
    if (reply->type != REDIS_INT || reply->integer != 1)
        return task_fail(t, ERR_CONFLICT, "the lock %.*s has expired", STR_ARG(l->key));
    return 0;
}

void lock_drop(struct task *t, const struct lock *l)
{
    const struct str argv[] = {l->key, lock_token(l)};
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (redis_script_run(t, l->redis, &script_lock_drop, l->key, 1, 2, argv, NULL))
        (void)task_fail(t, 0, "%s", text); /* what went wrong before matters more */
}
