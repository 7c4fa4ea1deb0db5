#include "engine/runs/promise.h"
#include "engine/store/cluster.h"

struct making {
    const struct runs *runs;
    const struct promise *promise;
    bool repeated;
    bool loaded; /* false: the balance has left Redis */
};

static int check_user(struct task *t, const struct promise *p, const struct sql_rows *user)
{
    if (user->count == 0 || user->cells[1].i != 0)
        return task_fail(t, ERR_FORBIDDEN, "this account is banned");
    if (user->cells[0].i == 0)
        return task_fail(t, ERR_FORBIDDEN, "this account may not submit %ss", p->what);
    return 0;
}

/* While the row is locked, nothing is waited for that may wait for it: Redis has a second, and a
 * balance that must be loaded is loaded outside. */
static int body(struct task *t, struct sql *c, void *arg)
{
    struct making *m = arg;
    const struct promise *p = m->promise;
    struct sql_rows user;
    int err = cluster_turn(t, c, CLUSTER_USER, p->uid);
    if (!err)
        err =
            sql_on(t, c, &user, "SELECT permission, banned FROM user_info WHERE uid = ? FOR UPDATE",
                   sql_int(p->uid));
    m->repeated = false;
    m->loaded = true;
    if (!err && p->repeats)
        err = p->repeats(t, c, p->arg, &m->repeated);
    if (err || m->repeated)
        return err;
    err = check_user(t, p, &user);
    if (!err)
        err = reserve_check(t, m->runs, c, p->uid, p->cents, p->what, &m->loaded);
    return err || !m->loaded ? err : p->write(t, c, p->arg);
}

static int load_balance(struct task *t, const struct runs *r, const struct promise *p)
{
    bool degraded = false;
    int64_t balance;
    int err = ledger_balance(t, r->ledger, p->uid, &balance, &degraded);
    if (ledger_is_stopped(err))
        err = task_fail(t, ERR_FORBIDDEN, "%s: no %s can be submitted until then",
                        RUN_REASON_ACCOUNT, p->what);
    if (!err && degraded)
        err = task_fail(t, ERR_UNAVAILABLE, "%ss cannot be submitted while Redis is away", p->what);
    return err;
}

int promise_make(struct task *t, const struct runs *r, const struct promise *p, bool *repeated)
{
    struct making m = {.runs = r, .promise = p};
    for (int i = 0; i < RESERVE_LOADS_MAX; i++) {
        int err = load_balance(t, r, p);
        if (!err)
            err = sql_tx(t, r->sql, body, &m);
        *repeated = !err && m.repeated;
        if (err || m.repeated || m.loaded)
            return err;
    }
    return task_fail(t, ERR_UNAVAILABLE, "the balance leaves Redis again and again");
}
