/* What a run that was paused, or has failed papers, still needs. */
#include "engine/runs/reserve.h"
#include "engine/runs/row.h"
#include "engine/store/amount.h"

/* have: what there is, as a clause and in cents. */
static int refuse(struct task *t, int64_t needed, int64_t all, const char *have, int64_t cents)
{
    struct arena *a = task_arena(t);
    return task_fail(t, ERR_FUNDS,
                     "%s, the next paper may cost %s and all that is left %s: at least %s is "
                     "missing, %s for all of it",
                     have, amount_decimal(a, needed).p, amount_decimal(a, all).p,
                     amount_decimal(a, needed - cents).p, amount_decimal(a, all - cents).p);
}

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* What trying its failed papers again costs at most. */
static int64_t retry_cents(const struct run_prices *n, int64_t cost, int64_t failed)
{
    return least(n->all > cost ? n->all - cost : 0, failed * n->dearest);
}

int run_reserve_retry(struct task *t, const struct runs *r, struct sql *c,
                      const struct run_row *row, bool *loaded)
{
    struct run_prices n;
    *loaded = true;
    if (!run_row_prices(t, row, &n))
        return 0;
    return reserve_check(t, r, c, row->uid, retry_cents(&n, row->cents, row->failed), "run",
                         loaded);
}

/* Which papers are left is not known here: to resume, the balance must do for any paper, or for all
 * that is left, which is reserved already. To retry, what is free must do for all that failed: a
 * run that is DONE has nothing reserved. */
static int compare(struct task *t, const struct runs *r, const struct run_row *row,
                   const struct run_view *v, enum run_event e)
{
    struct run_prices n;
    struct reserve have;
    if (!run_row_prices(t, row, &n))
        return 0;
    int64_t all = e == RUN_RESUME ? n.all > v->cents ? n.all - v->cents : 0
                                  : retry_cents(&n, v->cents, v->failed);
    int64_t needed = e == RUN_RESUME ? least(n.dearest, all) : all;
    int err = reserve_look(t, r, row->uid, &have);
    if (err || have.degraded) /* not known: what the run meets then, it says itself */
        return err == ERR_CANCELED ? err : 0;
    if (e == RUN_RESUME && have.balance < needed)
        return refuse(t, needed, all,
                      arena_printf(task_arena(t), "the balance is %s",
                                   amount_decimal(task_arena(t), have.balance).p),
                      have.balance);
    if (e == RUN_RETRY_FAILED && have.free < needed)
        return task_fail(t, ERR_FUNDS, "%s, and the papers that failed may cost %s: %s is missing",
                         reserve_text(t, &have), amount_decimal(task_arena(t), needed).p,
                         amount_decimal(task_arena(t), needed - have.free).p);
    return 0;
}

int run_check_funds(struct task *t, const struct runs *r, struct run_id id, enum run_event e)
{
    enum run_state from = e == RUN_RESUME ? RUN_PAUSED : RUN_DONE;
    struct run_row row;
    struct run_view v;
    struct sql_rows rows;
    int err = run_view(t, r, id, &v);
    if (err || v.state != from || v.degraded)
        return err;
    err = sql_call(t, r->sql, &rows,
                   "SELECT " RUN_ROW_COLUMNS " FROM query_log WHERE query_id = ? AND uid = ?",
                   sql_text(id.qid), sql_int(id.uid));
    if (err || rows.count == 0)
        return err;
    err = run_row_read(t, rows.cells, &row);
    return err ? err : compare(t, r, &row, &v, e);
}
