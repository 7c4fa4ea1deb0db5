/* The run of Redis that MySQL takes records of.
 *
 *   1. Redis dies, and comes back with another run id, older than it was. A syncer still holds
 *      records that it read before.
 *   2. Whoever first wants to load a balance writes the new id to the row of setting. It waits
 *      there for syncers that hold the row, which is until they have committed; later ones find
 *      the new id and throw away what they hold.
 *   3. Only then are rows of user_info read to load balances from: what the dead Redis had is in
 *      them by now, or will never be.
 *
 * Ids are not ordered. But the one that is written is that of a server that answers while the row is
 * locked, so an id that has been replaced cannot come back: its server is dead. */
#include "engine/money/ledger_private.h"

#define FENCE_NAME "ledger.redis_run"
#define ANSWER_MS  1000 /* Redis, while the row is locked */

struct fence {
    struct redis *redis;
    char run[LEDGER_RUN_BYTES];
};

/* The id of a server that answers now. */
static int ask_run(struct task *t, struct redis *r, char run[LEDGER_RUN_BYTES])
{
    int64_t old = task_deadline(t, ANSWER_MS);
    int err = redis_call(t, r, STR_NULL, NULL, STR("PING"));
    task_deadline_restore(t, old);
    struct str id = redis_run_id(r);
    if (!err && id.n != LEDGER_RUN_BYTES - 1)
        err = task_fail(t, ERR_UNAVAILABLE, "Redis does not answer");
    if (err)
        return err;
    memcpy(run, id.p, id.n);
    run[id.n] = '\0';
    return 0;
}

static struct str as_json(struct task *t, const char *run)
{
    return str_printf(task_arena(t), "\"%s\"", run);
}

static int fence_body(struct task *t, struct sql *c, void *arg)
{
    struct fence *f = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT value FROM setting WHERE name = ? FOR UPDATE",
                     sql_text(STR(FENCE_NAME)));
    if (!err)
        err = ask_run(t, f->redis, f->run);
    if (err || (r.count && str_eq(r.cells[0].s, as_json(t, f->run))))
        return err;
    return sql_on(t, c, NULL,
                  "INSERT INTO setting (name, value, version, changed_at)"
                  " VALUES (?, ?, 1, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE"
                  " value = VALUES(value), version = version + 1, changed_at = VALUES(changed_at)",
                  sql_text(STR(FENCE_NAME)), sql_text(as_json(t, f->run)));
}

int ledger_fence(struct task *t, struct ledger *l, char run[LEDGER_RUN_BYTES])
{
    if (l->run[0] == '\0' || !str_eq(redis_run_id(l->redis), str_of(l->run))) {
        struct fence f = {.redis = l->redis};
        int err = ask_run(t, l->redis, f.run); /* locks nothing while Redis is down */
        if (!err)
            err = ledger_tx(t, l, fence_body, &f);
        if (err) /* a repeat does no harm, so it does not matter whether it was done */
            return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
        memcpy(l->run, f.run, LEDGER_RUN_BYTES);
    }
    memcpy(run, l->run, LEDGER_RUN_BYTES);
    return 0;
}

int ledger_fence_holds(struct task *t, struct sql *c, const char *run, bool *holds)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT value FROM setting WHERE name = ? LOCK IN SHARE MODE",
                     sql_text(STR(FENCE_NAME)));
    if (!err)
        *holds = r.count && str_eq(r.cells[0].s, as_json(t, run));
    return err;
}
