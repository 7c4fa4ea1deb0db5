/* What a run that was paused, or has failed papers, still needs. */
#include "engine/runs/row.h"
#include "engine/store/amount.h"

#define POINT_CENTS     100
#define DISTILLED_SHARE 10 /* a distillation costs a tenth of the price (DIS-2) */

struct need {
    int64_t cheapest, dearest; /* paper, in cents */
    int64_t all;               /* what the run may still cost, at most */
};

/* The prices that were frozen; a run of the system before millrace has none. */
static bool need_of(struct task *t, const struct run_row *row, struct need *out)
{
    const struct json *params;
    int64_t total = 0, cents = row->is_distillation ? POINT_CENTS / DISTILLED_SHARE : POINT_CENTS;
    struct need n = {.cheapest = INT64_MAX};
    if (json_parse(task_arena(t), row->params, &params, NULL))
        return false;
    json_each (journal, json_get(params, "journals")) {
        int64_t price, papers, cost;
        if (!json_int(json_get(journal, "price"), &price) || price < 0 ||
            !json_int(json_get(journal, "papers"), &papers) || papers < 0 ||
            __builtin_mul_overflow(price, cents, &price) ||
            __builtin_mul_overflow(price, papers, &cost) ||
            __builtin_add_overflow(total, cost, &total))
            return false;
        if (papers == 0)
            continue;
        n.cheapest = price < n.cheapest ? price : n.cheapest;
        n.dearest = price > n.dearest ? price : n.dearest;
    }
    n.all = total;
    *out = n;
    return n.cheapest != INT64_MAX;
}

static int refuse(struct task *t, int64_t needed, int64_t all, int64_t balance)
{
    struct arena *a = task_arena(t);
    return task_fail(t, ERR_FUNDS,
                     "the balance is %s, the next paper may cost %s and all that is left %s: at "
                     "least %s is missing, %s for all of it",
                     amount_decimal(a, balance).p, amount_decimal(a, needed).p,
                     amount_decimal(a, all).p, amount_decimal(a, needed - balance).p,
                     amount_decimal(a, all - balance).p);
}

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* Which papers are left is not known here: to resume, the balance must do for any paper, or for all
 * that is left; to retry, for the cheapest one. */
static int compare(struct task *t, const struct runs *r, const struct run_row *row,
                   const struct run_view *v, enum run_event e)
{
    struct need n;
    int64_t balance;
    bool degraded = false;
    if (!need_of(t, row, &n))
        return 0;
    int64_t all = n.all > v->cents ? n.all - v->cents : 0;
    int64_t needed = e == RUN_RESUME ? least(n.dearest, all) : n.cheapest;
    all = e == RUN_RESUME ? all : least(all, v->failed * n.dearest);
    int err = ledger_balance(t, r->ledger, row->uid, &balance, &degraded);
    if (err || degraded) /* not known: what the run meets then, it says itself */
        return err == ERR_CANCELED ? err : 0;
    if (balance >= needed)
        return 0;
    return refuse(t, needed, all > needed ? all : needed, balance);
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
