#include "engine/store/script.h"

#include <string.h>

#include "base/check.h"

static struct str *put(struct str *at, const struct str *from, size_t count)
{
    if (count > 0)
        memcpy(at, from, count * sizeof *at);
    return at + count;
}

int script_run(struct task *t, struct redis *r, const struct script *s, const void *call,
               const struct redis_reply **out)
{
    const struct str *named = call;
    size_t count = s->keys + s->args, keys = s->keys;
    for (size_t i = 0; i < count; i++)
        check(named[i].p); /* a name that the caller has forgotten */
    if (!s->further_keys && !s->further_args)
        return redis_script_run(t, r, &s->redis, named[0], keys, count, named, out);

    const struct script_list *lists = (const void *)(named + count), none = {NULL, 0};
    struct script_list more_keys = s->further_keys ? *lists++ : none;
    struct script_list more_args = s->further_args ? *lists : none;
    size_t total = count + more_keys.n + more_args.n;
    struct str *argv = ARENA_ARRAY(task_arena(t), struct str, total + 1), *at = argv;
    at = put(at, named, s->keys);
    at = put(at, more_keys.p, more_keys.n);
    at = put(at, named + s->keys, s->args);
    (void)put(at, more_args.p, more_args.n);
    return redis_script_run(t, r, &s->redis, argv[0], keys + more_keys.n, total, argv, out);
}

int script_numbers(struct task *t, struct redis *r, const struct script *s, const void *call,
                   size_t count, int64_t *out)
{
    const struct redis_reply *reply;
    int err = script_run(t, r, s, call, &reply);
    if (err)
        return err;
    bool alone = count == 1 && reply->type == REDIS_INT;
    bool fits = alone || (reply->type == REDIS_ARRAY && reply->count == count);
    for (size_t i = 0; fits && i < count; i++) {
        const struct redis_reply *number = alone ? reply : reply->items[i];
        fits = number->type == REDIS_INT;
        out[i] = number->integer;
    }
    return fits ? 0 : task_fail(t, ERR_PROTO, "script %s returned something else", s->redis.name);
}
