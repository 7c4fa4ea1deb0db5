#include "engine/runs/account.h"

#include "base/json.h"
#include "engine/money/ledger.h"
#include "engine/people/user.h"

#define PAUSED_FOR_IT                                                                              \
    "archived = 0 AND status = 'PAUSED' AND (reason = '" RUN_REASON_ACCOUNT                        \
    "' OR reason LIKE '" RUN_REASON_UNRECORDED "%')"

int account_look(struct task *t, const struct runs *r, int64_t uid, struct account_state *out)
{
    *out = (struct account_state){.stopped = false};
    int err = reserve_look(t, r, uid, &out->money);
    if (!ledger_is_stopped(err))
        return err;
    struct sql_rows rows;
    out->stopped = true;
    out->why = str_dup(task_arena(t), str_of(task_error(t)));
    err = sql_call(t, r->sql, &rows,
                   "SELECT CAST(balance * 100 AS SIGNED), (SELECT"
                   " CAST(UNIX_TIMESTAMP(MIN(changed_at)) * 1000 AS SIGNED) FROM query_log"
                   " WHERE uid = u.uid AND " PAUSED_FOR_IT ") FROM user_info u WHERE uid = ?",
                   sql_int(uid));
    if (!err && rows.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "there is no user %lld", (long long)uid);
    if (err)
        return err;
    out->money = (struct reserve){.balance = rows.cells[0].i};
    out->since_ms = rows.cells[1].type == SQL_NULL ? 0 : rows.cells[1].i;
    return 0;
}

/* --- release --- */

static int write_off(struct task *t, const struct runs *r, int64_t uid, const struct admin_deed *by,
                     struct account_release *x)
{
    const struct str *list;
    size_t count = 0;
    int err = ledger_aside(t, r->ledger, uid, &list, &count);
    for (size_t i = 0; !err && i < count; i++) {
        struct admin_deed d = *by;
        struct buf b;
        struct json_writer w;
        jw_begin(&w, &b);
        jw_put_str(&w, "record", admin_audit_cut(list[i]));
        d.action = "user.write_off";
        d.before = jw_finish(&w, task_arena(t));
        err = admin_audit_note(t, r->sql, &d);
        if (!err)
            err = ledger_write_off(t, r->ledger, uid, list[i]);
        x->written_off += !err;
    }
    return err;
}

/* Records that cannot be read go aside; other contradictions are for the audit to tell. */
static int sync_first(struct task *t, const struct runs *r, int64_t uid)
{
    int err = ledger_sync(t, r->ledger, uid);
    return ledger_is_stopped(err) ? 0 : err;
}

static int audit(struct task *t, const struct runs *r, int64_t uid, struct account_release *x)
{
    const struct audit a = {.redis = r->redis,
                            .sql = r->sql,
                            .ledger = r->ledger,
                            .deep = true,
                            .found = x->found,
                            .arg = x->arg};
    int err = audit_user(t, &a, uid, &x->report);
    if (err)
        return err;
    if (x->report.findings)
        return task_fail(t, ERR_CONFLICT, "its money does not add up");
    if (x->report.unsettled)
        return task_fail(t, ERR_CONFLICT, "its money kept changing during the check; try again");
    return 0;
}

static int resume(struct task *t, const struct runs *r, int64_t uid, const struct admin_deed *by,
                  struct account_release *x)
{
    struct sql_rows rows;
    struct admin_deed d = *by;
    enum run_state state;
    d.action = "run.resume";
    int err = sql_call(t, r->sql, &rows,
                       "SELECT query_id FROM query_log WHERE uid = ? AND " PAUSED_FOR_IT
                       " ORDER BY created_at",
                       sql_int(uid));
    for (size_t i = 0; !err && i < rows.count; i++) {
        struct run_id id = {uid, sql_row(&rows, i)[0].s};
        err = run_control_by(t, r, id, RUN_RESUME, "", &d, &state);
        x->runs_resumed += !err;
        x->runs_waiting += err == ERR_FORBIDDEN;
        if (err == ERR_FORBIDDEN || err == ERR_CONFLICT || err == ERR_NOT_FOUND)
            err = 0; /* banned; or its user was faster */
    }
    return err;
}

int account_release(struct task *t, const struct runs *r, int64_t uid, const struct admin_deed *by,
                    struct account_release *x)
{
    bool degraded = false;
    struct admin_deed d = *by;
    d.user_uid = uid;
    struct account_state was;
    int err = sync_first(t, r, uid);
    if (!err)
        err = account_look(t, r, uid, &was);
    x->was_stopped = !err && was.stopped;
    if (!err && x->write_off)
        err = write_off(t, r, uid, &d, x);
    if (!err)
        err = audit(t, r, uid, x);
    if (!err)
        err = ledger_sync(t, r->ledger, uid);
    if (!err)
        err = ledger_balance(t, r->ledger, uid, &x->cents, &degraded);
    if (!err && degraded)
        err = task_fail(t, ERR_UNAVAILABLE, "Redis does not answer");
    if (!err)
        err = admin_audit_note(t, r->sql, &d);
    return err ? err : resume(t, r, uid, &d, x);
}
