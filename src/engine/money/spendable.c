/* What a user can still spend: the balance less what unfinished works may still cost (SCR-1). */
#include "engine/money/ledger_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

/* Never less than the truth: a sum that cannot be counted leaves nothing to spend. */
static int64_t add(int64_t sum, int64_t cents)
{
    int64_t more;
    return __builtin_add_overflow(sum, cents, &more) ? INT64_MAX : more;
}

static int64_t left_of(const struct ledger_work *w, int64_t cost, bool done)
{
    if (w->ceiling <= cost || (done && !w->reopened))
        return 0;
    return w->ceiling - cost;
}

int ledger_spendable(struct task *t, struct ledger *l, int64_t uid, const struct ledger_work *works,
                     size_t count, struct ledger_spendable *out)
{
    struct arena *a = task_arena(t);
    struct str *keys = ARENA_ARRAY(a, struct str, count + 1);
    const struct redis_reply *reply;
    for (size_t i = 0; i < count; i++)
        keys[i] = works[i].status;
    int err = SCRIPT(t, l->redis, spendable, &reply, .balance = key_balance(a, uid),
                     .ledger = key_ledger(a, uid), .works = {keys, count});
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* it changes nothing */
    if (reply->type != REDIS_ARRAY || reply->count != 1 + 2 * count)
        return task_fail(t, ERR_PROTO, "script spendable returned something else");
    struct ledger_spendable s = {.balance = reply->items[0]->integer};
    s.loaded = s.balance >= 0;
    for (size_t i = 0; i < count; i++)
        s.reserved = add(s.reserved, left_of(&works[i], reply->items[1 + 2 * i]->integer,
                                             reply->items[2 + 2 * i]->integer == 1));
    *out = s;
    return 0;
}
