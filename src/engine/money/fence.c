/* The generation of Redis that MySQL takes records of.
 *
 *   1. Redis dies, and comes back in another generation, older than it was. A syncer still holds
 *      records that it read before.
 *   2. The node that first wants to load a balance writes the new generation to the row of setting.
 *      It waits there for syncers that hold the row, which is until they have committed; later ones
 *      find the new generation and throw away what they hold.
 *   3. Only then are rows of user_info read to load balances from: what the dead Redis had is in
 *      them by now, or will never be.
 *
 * Generations are not ordered. But the one that is written is that of a server that answers while
 * the row is locked, so one that has been replaced cannot come back: its server is dead. */
#include "engine/money/ledger_private.h"
#include "engine/store/cluster.h"

#define FENCE_NAME "ledger.redis_run"
#define ANSWER_MS  1000 /* Redis, while the row is locked */

struct fence {
    struct redis *redis;
    struct generation generation;
};

/* The generation of a server that answers now. */
static int ask_generation(struct task *t, struct redis *r, struct generation *out)
{
    int64_t old = task_deadline(t, ANSWER_MS);
    int err = redis_call(t, r, STR_NULL, NULL, STR("PING"));
    task_deadline_restore(t, old);
    struct generation now = generation_now(r);
    if (!err && !generation_lasts(r, &now)) /* lost since it answered */
        err = task_fail(t, ERR_UNAVAILABLE, "Redis does not answer");
    if (!err)
        *out = now;
    return err;
}

static struct str as_json(struct task *t, const struct generation *g)
{
    return str_printf(task_arena(t), "\"%s\"", g->id);
}

static int fence_body(struct task *t, struct sql *c, void *arg)
{
    struct fence *f = arg;
    struct sql_rows r;
    int err = cluster_turn_all(t, c, FENCE_NAME);
    if (!err)
        err = sql_on(t, c, &r, "SELECT value FROM setting WHERE name = ? FOR UPDATE",
                     sql_text(STR(FENCE_NAME)));
    if (!err)
        err = ask_generation(t, f->redis, &f->generation);
    if (err || (r.count && str_eq(r.cells[0].s, as_json(t, &f->generation))))
        return err;
    return sql_on(t, c, NULL,
                  "INSERT INTO setting (name, value, version, changed_at)"
                  " VALUES (?, ?, 1, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE"
                  " value = VALUES(value), version = version + 1, changed_at = VALUES(changed_at)",
                  sql_text(STR(FENCE_NAME)), sql_text(as_json(t, &f->generation)));
}

int ledger_fence(struct task *t, struct ledger *l, struct generation *out)
{
    if (!generation_lasts(l->redis, &l->generation)) {
        struct fence f = {.redis = l->redis};
        int err =
            ask_generation(t, l->redis, &f.generation); /* locks nothing while Redis is down */
        if (!err)
            err = ledger_tx(t, l, fence_body, &f);
        if (err) /* idempotent: uncertain or not, the caller repeats */
            return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
        l->generation = f.generation;
    }
    *out = l->generation;
    return 0;
}

int ledger_fence_holds(struct task *t, struct sql *c, const struct generation *g, bool *holds)
{
    struct sql_rows r;
    int err = cluster_turn_part(t, c, FENCE_NAME);
    if (!err)
        err = sql_on(t, c, &r, "SELECT value FROM setting WHERE name = ? LOCK IN SHARE MODE",
                     sql_text(STR(FENCE_NAME)));
    if (!err)
        *holds = r.count && str_eq(r.cells[0].s, as_json(t, g));
    return err;
}
