/* How a run begins: its row, then Redis. */
#include <unictype.h>
#include <unistr.h>

#include "base/log.h"
#include "engine/runs/row.h"
#include "engine/runs/run.h"
#include "engine/store/amount.h"

/* --- the question --- */

static const struct str spaces[] = {STR(" "),  STR("\t"),     STR("\n"),
                                    STR("\r"), STR("\u00a0"), STR("\u3000")};

/* The space that s begins with, or ends with; NULL: none. */
static const struct str *space_at(struct str s, bool end)
{
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        size_t n = spaces[i].n;
        if (s.n >= n && str_eq(str_from(end ? s.p + s.n - n : s.p, n), spaces[i]))
            return &spaces[i];
    }
    return NULL;
}

/* Spaces of all kinds, format and control characters cannot be seen; nor can the blank of
 * braille, which Unicode has among the symbols. */
static bool visible(ucs4_t c)
{
    return c != 0x2800 && !uc_is_property_default_ignorable_code_point(c) &&
           !uc_is_general_category_withtable(c, UC_CATEGORY_MASK_Z | UC_CATEGORY_MASK_C);
}

static bool any_visible(struct str s)
{
    ucs4_t c;
    for (size_t at = 0; at < s.n;) {
        int bytes = u8_mbtouc(&c, (const uint8_t *)s.p + at, s.n - at);
        if (bytes <= 0)
            return false;
        if (visible(c))
            return true;
        at += (size_t)bytes;
    }
    return false;
}

struct str run_question(struct str typed)
{
    for (const struct str *space; (space = space_at(typed, false));)
        typed = str_from(typed.p + space->n, typed.n - space->n);
    for (const struct str *space; (space = space_at(typed, true));)
        typed.n -= space->n;
    return any_visible(typed) ? typed : str_from(typed.p, 0);
}

/* --- of any kind --- */

struct entering {
    const struct run_entry *entry;
    struct str qid;
    struct run_row row;
};

/* The user's row is locked, so that two at once cannot both be the hundredth. */
static int check_user(struct task *t, struct sql *c, int64_t uid)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT permission, banned FROM user_info WHERE uid = ? FOR UPDATE",
                     sql_int(uid));
    if (err)
        return err;
    if (r.count == 0 || r.cells[1].i != 0)
        return task_fail(t, ERR_FORBIDDEN, "this account is banned");
    if (r.cells[0].i == 0)
        return task_fail(t, ERR_FORBIDDEN, "this account may not submit runs");
    err = sql_on(t, c, &r, "SELECT COUNT(*) FROM query_log WHERE uid = ? AND status = 'QUEUED'",
                 sql_int(uid));
    if (!err && r.cells[0].i >= RUN_QUEUED_MAX)
        err = task_fail(t, ERR_RATE, "%d of your runs are waiting already", RUN_QUEUED_MAX);
    return err;
}

static int write_run(struct task *t, struct sql *c, void *arg)
{
    struct entering *x = arg;
    const struct run_entry *e = x->entry;
    struct str original = e->original_query_id;
    int err = check_user(t, c, e->uid);
    if (!err && e->also)
        err = e->also(t, c, x->qid, e->arg);
    if (!err)
        err = sql_on(t, c, NULL,
                     "INSERT INTO query_log (query_id, uid, search_params, created_at, changed_at,"
                     " status, total_papers, is_distillation, original_query_id)"
                     " VALUES (?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 'QUEUED', ?, ?, ?)",
                     sql_text(x->qid), sql_int(e->uid), sql_text(e->params), sql_int(e->papers),
                     sql_int(original.p != NULL), original.p ? sql_text(original) : sql_null());
    if (!err && original.p)
        err = sql_on(t, c, NULL,
                     "INSERT INTO distillation (original_query_id, query_id) VALUES (?, ?)",
                     sql_text(original), sql_text(x->qid));
    return err ? err : run_row_lock(t, c, (struct run_id){e->uid, x->qid}, &x->row);
}

static int check_balance(struct task *t, const struct runs *r, const struct run_entry *e)
{
    bool degraded = false;
    int64_t balance;
    int err = ledger_balance(t, r->ledger, e->uid, &balance, &degraded);
    if (ledger_is_stopped(err))
        err = task_fail(t, ERR_FORBIDDEN, "%s: no run can be submitted until then",
                        RUN_REASON_ACCOUNT);
    if (!err && degraded)
        err = task_fail(t, ERR_UNAVAILABLE, "runs cannot be submitted while Redis is away");
    if (!err && balance < e->cents)
        err = task_fail(t, ERR_FUNDS, "the run costs %s, the balance is %s",
                        amount_decimal(task_arena(t), e->cents).p,
                        amount_decimal(task_arena(t), balance).p);
    return err;
}

int run_enter(struct task *t, const struct runs *r, const struct run_entry *e,
              char qid[RUN_ID_BYTES])
{
    int err = check_balance(t, r, e);
    if (err)
        return err;
    loop_token(task_loop(t), qid, RUN_ID_BYTES);
    struct entering x = {.entry = e, .qid = str_of(qid)};
    err = sql_tx(t, r->sql, write_run, &x);
    if (err)
        return err;
    cache_touch(t, r->cache, e->uid);
    if (run_announce(t, r, &x.row))
        log_warn("run", "run %s is submitted but not in Redis yet, the keeper will retry: %s", qid,
                 task_error(t));
    return 0;
}

void run_put_journals(struct json_writer *j, const struct catalog_estimate_row *rows, size_t count)
{
    jw_put_array(j, "journals");
    for (size_t i = 0; i < count; i++) {
        jw_object(j);
        jw_put_str(j, "name", rows[i].journal);
        jw_put_int(j, "price", rows[i].price);
        jw_put_int(j, "papers", rows[i].papers);
        jw_end_object(j);
    }
    jw_end_array(j);
}

/* --- of screening --- */

/* The choice of the run with the price of each paper, frozen against later price changes. */
static struct str params_of(struct task *t, const struct run_wish *w,
                            const struct catalog_estimate *e)
{
    struct buf b;
    struct json_writer j;
    jw_begin(&j, &b);
    jw_put_str(&j, "question", w->question);
    jw_put_int(&j, "year_from", w->choice.year_from);
    jw_put_int(&j, "year_to", w->choice.year_to);
    if (e->bare >= 0)
        jw_put_int(&j, "without_abstract", e->bare);
    jw_put_int(&j, "load", e->load);
    run_put_journals(&j, e->rows, w->choice.journal_count);
    return jw_finish(&j, task_arena(t));
}

int run_submit(struct task *t, const struct runs *r, int64_t uid, const struct run_wish *w,
               char qid[RUN_ID_BYTES], struct str *unknown)
{
    struct catalog_estimate e;
    bool degraded;
    if (!cache_trusts_redis(r->cache))
        return task_fail(t, ERR_UNAVAILABLE, "runs cannot be submitted while Redis is away");
    int err = catalog_price(t, r->catalog, &w->choice, &e, unknown, &degraded);
    if (!err && e.papers == 0)
        err = task_fail(t, ERR_INVALID, "there are no papers in these journals and years");
    if (err)
        return err;
    struct run_entry entry = {
        .uid = uid, .papers = e.papers, .cents = e.cents, .params = params_of(t, w, &e)};
    return run_enter(t, r, &entry, qid);
}
