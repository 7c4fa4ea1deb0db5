#include "engine/api/limit.h"

int api_limit_take(struct task *t, struct api_call *c, enum limit_kind kind, int64_t count,
                   struct limit_taken *out)
{
    int64_t retry_after_s;
    int err = limit_take(t, c->node->limits, c->session.uid, kind, count, out, &retry_after_s);
    if (err == ERR_RATE)
        http_set_header(c->x, "Retry-After", str_int(task_arena(t), retry_after_s));
    return err;
}
