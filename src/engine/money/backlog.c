#include "engine/money/ledger_private.h"
#include "engine/store/keys.h"

#define USERS_MAX 1000 /* of the announced, in one round trip */

static int count_page(struct task *t, struct ledger *l, int64_t from, size_t *users,
                      int64_t *records)
{
    struct arena *a = task_arena(t);
    const struct redis_reply *page;
    const struct redis_reply *const *lengths;
    struct redis_batch b;
    int err = redis_call(t, l->redis, key_billing, &page, STR("ZRANGE"), key_billing,
                         str_int(a, from), str_int(a, from + USERS_MAX - 1));
    *users = err ? 0 : page->count;
    if (err || *users == 0)
        return err;
    redis_batch_init(&b, t, l->redis);
    for (size_t i = 0; i < *users; i++) {
        int64_t uid = 0;
        (void)str_to_i64(page->items[i]->str, &uid); /* ledger_role reports other members */
        struct str key = key_billing_queue(a, uid);
        redis_batch_add(&b, key, STR("LLEN"), key);
    }
    err = redis_batch_run(&b, &lengths);
    for (size_t i = 0; !err && i < *users; i++)
        *records += lengths[i]->type == REDIS_INT ? lengths[i]->integer : 0;
    return err;
}

int ledger_backlog(struct task *t, struct ledger *l, int64_t *records)
{
    int64_t total = 0;
    size_t users = USERS_MAX;
    int err = 0;
    for (int64_t from = 0; !err && users == USERS_MAX; from += USERS_MAX) {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = count_page(t, l, from, &users, &total);
        arena_reset(task_arena(t), mark);
    }
    if (!err)
        *records = total;
    return err;
}
