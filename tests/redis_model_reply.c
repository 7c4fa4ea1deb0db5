/* Replies of the model, each in an arena. */
#include "tests/redis_model_private.h"

static struct redis_reply *reply_new(struct arena *a, enum redis_type type)
{
    struct redis_reply *r = ARENA_NEW(a, struct redis_reply);
    r->type = type;
    return r;
}

const struct redis_reply *reply_str(struct arena *a, struct str s)
{
    struct redis_reply *r = reply_new(a, REDIS_STRING);
    r->str = str_dup(a, s);
    return r;
}

const struct redis_reply *reply_int(struct arena *a, int64_t v)
{
    struct redis_reply *r = reply_new(a, REDIS_INT);
    r->integer = v;
    return r;
}

const struct redis_reply *reply_nil(void)
{
    static const struct redis_reply nil = {.type = REDIS_NIL};
    return &nil;
}

const struct redis_reply *reply_status(struct arena *a, const char *text)
{
    struct redis_reply *r = reply_new(a, REDIS_STATUS);
    r->str = str_dup(a, str_of(text));
    return r;
}

const struct redis_reply *reply_error(struct arena *a, const char *text)
{
    struct redis_reply *r = reply_new(a, REDIS_ERROR);
    r->str = str_dup(a, str_of(text));
    return r;
}

const struct redis_reply *reply_array(struct arena *a, size_t count,
                                      const struct redis_reply *const *items)
{
    struct redis_reply *r = reply_new(a, REDIS_ARRAY);
    r->count = count;
    r->items = items;
    return r;
}
