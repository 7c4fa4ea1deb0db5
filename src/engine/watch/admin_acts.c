#include "engine/watch/admin_acts.h"

#include "engine/money/ledger.h"
#include "engine/people/session.h"
#include "engine/people/user.h"
#include "engine/store/amount.h"

/* --- money --- */

struct moving {
    const struct admin_move *move;
    struct admin_deed deed;
    bool noted; /* by this call: not a repeat */
};

static struct str balance_json(struct task *t, int64_t cents)
{
    return str_printf(task_arena(t), "{\"balance\":\"%s\"}",
                      amount_decimal(task_arena(t), cents).p);
}

/* In the transaction of the ledger. A recharge is in the row by then; money that is taken goes
 * through Redis afterwards, and what comes of that is noted afterwards. */
static int note(struct task *t, struct sql *c, void *arg)
{
    struct moving *m = arg;
    struct admin_deed d = m->deed;
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT CAST(balance * 100 AS SIGNED) FROM user_info WHERE uid = ?",
                     sql_int(m->move->uid));
    if (err)
        return err;
    check(r.count == 1);
    int64_t now = r.cells[0].i;
    bool takes = m->move->takes;
    d.before = balance_json(t, takes ? now : now - m->move->cents);
    d.after = takes ? STR_NULL : balance_json(t, now);
    d.outcome = takes ? ADMIN_BEGUN : ADMIN_DONE;
    err = admin_audit_add(t, c, &d);
    m->noted = !err;
    return err;
}

static int note_outcome(struct task *t, struct sql_pool *sql, const struct moving *m,
                        int64_t balance)
{
    if (m->noted && !m->move->takes)
        return 0;
    struct admin_deed d = m->deed;
    d.outcome = m->noted ? ADMIN_DONE : ADMIN_REPEATED;
    d.after = balance_json(t, balance);
    return admin_audit_note(t, sql, &d);
}

int admin_move_money(struct task *t, const struct runs *r, const struct admin_move *m,
                     const struct admin_deed *by, int64_t *balance)
{
    struct moving x = {.move = m, .deed = *by};
    struct ledger_move move = {.uid = m->uid,
                               .cents = m->cents,
                               .request_id = m->request_id,
                               .also = note,
                               .also_arg = &x};
    x.deed.user_uid = m->uid;
    x.deed.request_id = m->request_id;
    x.deed.asked =
        str_printf(task_arena(t), "{\"amount\":\"%s\"}", amount_decimal(task_arena(t), m->cents).p);
    int err = m->takes ? ledger_deduct(t, r->ledger, &move, balance)
                       : ledger_recharge(t, r->ledger, &move, balance);
    return err ? err : note_outcome(t, r->sql, &x, *balance);
}

/* --- bans --- */

static int pause_run(struct task *t, const struct runs *r, struct run_id id,
                     const struct admin_deed *by)
{
    struct admin_deed d = *by;
    enum run_state state;
    d.action = "run.pause";
    d.reason = STR(RUN_REASON_BANNED);
    int err = run_control_by(t, r, id, RUN_PAUSE, RUN_REASON_BANNED, &d, &state);
    return err == ERR_CONFLICT || err == ERR_NOT_FOUND ? 0 : err; /* it has ended meanwhile */
}

/* No run can be added meanwhile: submit reads the ban under the row lock that the ban took. */
static int pause_runs(struct task *t, const struct runs *r, int64_t uid,
                      const struct admin_deed *by)
{
    struct sql_rows rows;
    int err = sql_call(t, r->sql, &rows,
                       "SELECT query_id FROM query_log WHERE uid = ?"
                       " AND status IN ('QUEUED', 'RUNNING') ORDER BY created_at",
                       sql_int(uid));
    for (size_t i = 0; !err && i < rows.count; i++)
        err = pause_run(t, r, (struct run_id){uid, sql_row(&rows, i)[0].s}, by);
    return err;
}

int admin_ban(struct task *t, const struct runs *r, int64_t uid, bool banned,
              const struct admin_deed *by)
{
    struct user_change ch = {.uid = uid, .part = USER_BANNED, .number = banned, .by = by};
    int err = user_change(t, r->cache, &ch);
    if (!err && banned)
        err = session_end_all(t, r->cache, SESSION_USER, uid, STR_NULL);
    if (!err && banned)
        err = pause_runs(t, r, uid, by);
    return err;
}
