#include "engine/runs/reserve.h"

#include "engine/runs/row.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"

#define ANSWER_MS 1000 /* Redis, while the user's row is locked */
#define LIST_MS   1000 /* MySQL, where the answer can do without */

/* --- the works --- */

struct works {
    struct ledger_work *list;
    size_t count;
};

/* Jobs are one work without a status: their sum. */
#define UNFINISHED                                                                                 \
    "SELECT query_id, ceiling, end_time IS NOT NULL, IF(ceiling IS NULL, search_params, NULL),"    \
    " is_distillation FROM query_log"                                                              \
    " WHERE uid = ? AND archived = 0 AND status IN ('QUEUED', 'RUNNING', 'PAUSED')"                \
    " UNION ALL SELECT '', CAST(SUM(cents) AS SIGNED), 0, NULL, 0 FROM job_reserve"                \
    " WHERE uid = ? HAVING COUNT(*) > 0"

static struct ledger_work work_of(struct task *t, int64_t uid, const struct sql_value *cell)
{
    struct run_row row = {.ceiling = cell[1].type == SQL_NULL ? -1 : cell[1].i,
                          .params = cell[3].s.p ? cell[3].s : STR("{}"),
                          .is_distillation = cell[4].i != 0};
    if (cell[0].s.n == 0)
        return (struct ledger_work){.status = STR(""), .ceiling = row.ceiling};
    return (struct ledger_work){.status = key_query_status(task_arena(t), uid, cell[0].s),
                                .ceiling = run_row_ceiling(t, &row),
                                .reopened = cell[2].i != 0};
}

/* All that a user's balance is promised to. c NULL: on any connection. */
static int list_works(struct task *t, const struct runs *r, struct sql *c, int64_t uid,
                      struct works *out)
{
    struct sql_rows rows;
    int err = c ? sql_on(t, c, &rows, UNFINISHED, sql_int(uid), sql_int(uid))
                : sql_call(t, r->sql, &rows, UNFINISHED, sql_int(uid), sql_int(uid));
    if (err)
        return err;
    out->list = ARENA_ARRAY(task_arena(t), struct ledger_work, rows.count + 1);
    out->count = rows.count;
    for (size_t i = 0; i < rows.count; i++)
        out->list[i] = work_of(t, uid, sql_row(&rows, i));
    return 0;
}

/* --- the same as Redis has seen it: lines of "<ceiling> <reopened> <key>" --- */

static struct str write_works(struct task *t, const struct works *w)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < w->count; i++) {
        buf_add_int(&b, w->list[i].ceiling);
        buf_add(&b, w->list[i].reopened ? " 1 " : " 0 ", 3);
        buf_add(&b, w->list[i].status.p, w->list[i].status.n);
        buf_add_char(&b, '\n');
    }
    struct str text = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return text;
}

static bool read_works(struct task *t, const struct redis_reply *r, struct works *out)
{
    size_t lines = 0;
    if (r->type != REDIS_STRING)
        return false;
    for (size_t i = 0; i < r->str.n; i++)
        lines += r->str.p[i] == '\n';
    *out = (struct works){ARENA_ARRAY(task_arena(t), struct ledger_work, lines + 1), lines};
    struct str rest = r->str;
    for (size_t i = 0; i < lines; i++) {
        struct ledger_work *w = &out->list[i];
        w->status = str_cut(&rest, '\n');
        if (!str_to_i64(str_cut(&w->status, ' '), &w->ceiling))
            return false;
        w->reopened = str_eq(str_cut(&w->status, ' '), STR("1"));
        if (!w->status.p)
            return false;
    }
    return true;
}

/* The list is dropped by every change of a run (run_tell.lua). A loader that was overtaken by one
 * can bring an older list back, for as long as the key lives. */
static int load_works(struct task *t, const struct runs *r, int64_t uid, struct works *out)
{
    struct str key = key_unfinished(task_arena(t), uid);
    int64_t old = task_deadline(t, LIST_MS);
    int err = list_works(t, r, NULL, uid, out);
    task_deadline_restore(t, old);
    if (err)
        return err;
    if (redis_call(t, r->redis, key, NULL, STR("SET"), key, write_works(t, out), STR("PX"),
                   str_int(task_arena(t), RESERVE_SEEN_MS)) == ERR_CANCELED)
        return ERR_CANCELED;
    return 0;
}

/* --- what they leave --- */

static int spendable(struct task *t, const struct runs *r, int64_t uid, const struct works *w,
                     struct ledger_spendable *out)
{
    struct ledger_work *runs = ARENA_ARRAY(task_arena(t), struct ledger_work, w->count + 1);
    int64_t jobs_cents = 0;
    size_t count = 0;
    for (size_t i = 0; i < w->count; i++)
        if (w->list[i].status.n)
            runs[count++] = w->list[i];
        else
            jobs_cents += w->list[i].ceiling;
    int err = ledger_spendable(t, r->ledger, uid, runs, count, out);
    if (!err && __builtin_add_overflow(out->reserved, jobs_cents, &out->reserved))
        out->reserved = INT64_MAX;
    return err;
}

/* --- to be shown --- */

static void take(struct reserve *out, const struct ledger_spendable *s)
{
    out->balance = s->balance;
    out->reserved = s->reserved;
    out->free = ledger_free_cents(s);
    out->known = true;
}

static int add_costs(struct task *t, const struct runs *r, int64_t uid, const struct works *w,
                     struct reserve *out)
{
    struct ledger_spendable s = {.loaded = true, .balance = out->balance};
    int err = w->count ? spendable(t, r, uid, w, &s) : 0;
    if (!err && !s.loaded) /* it has left Redis since */
        err = task_fail(t, ERR_UNAVAILABLE, "Redis comes and goes");
    if (!err)
        take(out, &s);
    return err;
}

/* Balance and list in one round trip; most users have nothing under way. */
static int from_redis(struct task *t, const struct runs *r, int64_t uid, struct reserve *out)
{
    struct str key = key_unfinished(task_arena(t), uid);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    struct works w;
    redis_batch_init(&b, t, r->redis);
    ledger_ask(&b, uid);
    redis_batch_add(&b, key, STR("GET"), key);
    int err = redis_batch_run(&b, &replies);
    if (err)
        return err;
    bool seen = read_works(t, replies[LEDGER_ASK_COMMANDS], &w);
    err = ledger_answer(t, r->ledger, uid, replies, &out->balance);
    if (err)
        return err;
    err = seen ? 0 : load_works(t, r, uid, &w);
    if (err_may_pass(err)) { /* MySQL is away: the balance alone is known */
        out->degraded = true;
        return 0;
    }
    return err ? err : add_costs(t, r, uid, &w, out);
}

/* Costs so far are in Redis: with works under way only the balance is known. */
static int from_mysql(struct task *t, const struct runs *r, int64_t uid, struct reserve *out)
{
    struct works w;
    int err = ledger_balance(t, r->ledger, uid, &out->balance, &out->degraded);
    if (!err)
        err = list_works(t, r, NULL, uid, &w);
    out->degraded = true;
    out->known = !err && w.count == 0;
    out->free = out->known ? out->balance : 0;
    return err;
}

int reserve_look(struct task *t, const struct runs *r, int64_t uid, struct reserve *out)
{
    struct reserve seen = {.known = false};
    int err = cache_trusts_redis(r->cache) ? from_redis(t, r, uid, &seen) : ERR_UNAVAILABLE;
    if (err_may_pass(err)) {
        seen = (struct reserve){.known = false};
        err = from_mysql(t, r, uid, &seen);
    }
    if (!err)
        *out = seen;
    return err;
}

/* --- to be relied on --- */

const char *reserve_text(struct task *t, const struct reserve *r)
{
    struct arena *a = task_arena(t);
    return arena_printf(a, "the balance is %s, %s of it reserved for unfinished work, %s free",
                        amount_decimal(a, r->balance).p, amount_decimal(a, r->reserved).p,
                        amount_decimal(a, r->free).p);
}

int reserve_check(struct task *t, const struct runs *r, struct sql *c, int64_t uid, int64_t cents,
                  const char *what, bool *loaded)
{
    struct works w;
    struct ledger_spendable s;
    struct reserve seen = {.known = false};
    int err = list_works(t, r, c, uid, &w);
    if (err)
        return err;
    int64_t old = task_deadline(t, ANSWER_MS);
    err = spendable(t, r, uid, &w, &s);
    task_deadline_restore(t, old);
    if (err_may_pass(err))
        return task_fail(t, ERR_UNAVAILABLE, "nothing can be reserved while Redis is away");
    *loaded = !err && s.loaded;
    if (err || !*loaded)
        return err;
    take(&seen, &s);
    if (seen.free >= cents)
        return 0;
    return task_fail(t, ERR_FUNDS, "the %s costs %s: %s", what,
                     amount_decimal(task_arena(t), cents).p, reserve_text(t, &seen));
}
