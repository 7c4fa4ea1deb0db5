#include "engine/store/script.h"

#include <string.h>

#include "base/check.h"
#include "engine/store/keys.h"
#include "wire/redis/redis_slot.h"

static struct str *put(struct str *at, const struct str *from, size_t count)
{
    if (count > 0)
        memcpy(at, from, count * sizeof *at);
    return at + count;
}

/* On a cluster keys with different hash tags are on different servers. Two of them may be on the
 * same one by chance: that must not work, either. */
static int same_tag(struct task *t, const struct script *s, const struct str *keys, size_t count)
{
    if (!keys_are_on_cluster())
        return 0;
    struct str first = redis_hash_tag(keys[0]);
    for (size_t i = 1; i < count; i++)
        if (!str_eq(redis_hash_tag(keys[i]), first))
            return task_fail(t, ERR_REFUSED, "script %s has keys of two groups: %.*s and %.*s",
                             s->redis.name, STR_ARG(keys[0]), STR_ARG(keys[i]));
    return 0;
}

int script_run(struct task *t, struct redis *r, const struct script *s, const void *call,
               const struct redis_reply **out)
{
    const struct str *named = call;
    size_t count = s->keys + s->args, keys = s->keys;
    for (size_t i = 0; i < count; i++)
        check(named[i].p); /* a name that the caller has forgotten */
    int err = same_tag(t, s, named, keys);
    if (err)
        return err;
    if (!s->further_keys && !s->further_args)
        return redis_script_run(t, r, &s->redis, named[0], keys, count, named, out);

    const struct script_list *lists = (const void *)(named + count), none = {NULL, 0};
    struct script_list more_keys = s->further_keys ? *lists++ : none;
    struct script_list more_args = s->further_args ? *lists : none;
    size_t total = count + more_keys.n + more_args.n;
    struct str *argv = ARENA_ARRAY(task_arena(t), struct str, total + 1), *at = argv;
    at = put(at, named, s->keys);
    at = put(at, more_keys.p, more_keys.n);
    err = same_tag(t, s, argv, keys + more_keys.n);
    if (err)
        return err;
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
