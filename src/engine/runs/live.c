#include "engine/runs/live.h"

#include "engine/store/keys.h"

static void take(const struct redis_reply *r, struct run_row *row)
{
    enum run_state state;
    if (r->type != REDIS_ARRAY || r->count != 5)
        return;
    if (r->items[0]->type == REDIS_STRING && run_state_parse(r->items[0]->str, &state) &&
        state == RUN_DONE)
        row->state = state; /* the row is written later */
    row->finished = redis_number(r->items[1], row->finished);
    row->relevant = redis_number(r->items[2], row->relevant);
    row->failed = redis_number(r->items[3], row->failed);
    row->cents = redis_number(r->items[4], row->cents);
}

int run_live(struct task *t, struct redis *r, struct run_row *rows, size_t count)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, r);
    for (size_t i = 0; i < count; i++) {
        struct str key = key_query_status(task_arena(t), rows[i].uid, rows[i].qid);
        if (!rows[i].archived)
            redis_batch_add(&b, key, STR("HMGET"), key, STR("state"), STR("finished"),
                            STR("relevant"), STR("failed"), STR("cost"));
    }
    int err = b.count ? redis_batch_run(&b, &replies) : 0;
    for (size_t i = 0, k = 0; !err && i < count; i++)
        if (!rows[i].archived)
            take(replies[k++], &rows[i]);
    return err;
}
