#include "engine/money/ledger.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/money/ledger_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

/* A row is read again when a move or a sync came in between. So many times in a row is a fault. */
#define LOADS_MAX 50

static int64_t *slot(struct ledger *l, struct metrics *m, enum metric_kind kind, const char *name,
                     const char *help)
{
    return m ? metric(m, kind, name, "", help) : &l->unseen;
}

struct ledger *ledger_new(const struct ledger_options *o)
{
    struct ledger *l = check_memory(calloc(1, sizeof *l));
    struct metrics *m = o->metrics;
    l->redis = o->redis;
    l->sql = o->sql;
    l->cache = o->cache;
    l->unknown_ms = LEDGER_UNKNOWN_MS;
    l->records_waiting = slot(l, m, METRIC_GAUGE, "millrace_ledger_records_waiting",
                              "Records of Redis that are not in MySQL yet, when last looked.");
    l->moves_waiting = slot(l, m, METRIC_GAUGE, "millrace_ledger_moves_waiting",
                            "Users with moves that Redis may not have yet, when last looked.");
    l->synced = slot(l, m, METRIC_COUNTER, "millrace_ledger_records_synced_total",
                     "Records written to MySQL.");
    l->applied = slot(l, m, METRIC_COUNTER, "millrace_ledger_moves_applied_total",
                      "Moves of MySQL added to a balance in Redis.");
    l->alarms = slot(l, m, METRIC_COUNTER, "millrace_ledger_alarms_total",
                     "Times that the stores contradicted each other about money.");
    l->drift = slot(l, m, METRIC_GAUGE, "millrace_ledger_drift_cents",
                    "Cents that are not where they belong, as this node last found.");
    l->reversed = slot(l, m, METRIC_COUNTER, "millrace_ledger_reversals_total",
                       "Charges given back, because Redis had lost what they paid for.");
    l->restored = slot(l, m, METRIC_COUNTER, "millrace_ledger_restored_total",
                       "Results that Redis had lost and MySQL had.");
    l->loading = map_new();
    waitq_init(&l->loaded);
    l->troubled = map_new();
    ledger_payments_init(l, o->group);
    return l;
}

void ledger_free(struct ledger *l)
{
    check(map_count(l->loading) == 0 && l->payments.clerks == 0);
    map_free(l->loading);
    struct str key;
    void *trouble;
    for (size_t at = 0; map_next(l->troubled, &at, &key, &trouble);)
        free(trouble);
    map_free(l->troubled);
    free(l);
}

/* --- what the other files use --- */

int ledger_alarm(struct task *t, struct ledger *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(task_arena(t), fmt, ap);
    va_end(ap);
    log_error("ledger", "%s", text);
    metric_add(l->alarms, 1);
    return task_fail(t, ERR_INTERNAL, "%s", text);
}

#define ROW "SELECT CAST(balance * 100 AS SIGNED), billed_seq, move_no FROM user_info WHERE uid = ?"

static int row_of(struct task *t, int64_t uid, const struct sql_rows *r, struct ledger_row *out)
{
    if (r->count == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no user %lld", (long long)uid);
    *out = (struct ledger_row){
        .cents = r->cells[0].i, .billed_seq = r->cells[1].i, .move_no = r->cells[2].i};
    return 0;
}

int ledger_row_read(struct task *t, struct ledger *l, int64_t uid, struct ledger_row *out)
{
    struct sql_rows r;
    int err = sql_call(t, l->sql, &r, ROW, sql_int(uid));
    return err ? err : row_of(t, uid, &r, out);
}

int ledger_row_lock(struct task *t, struct sql *c, int64_t uid, struct ledger_row *out)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, ROW " FOR UPDATE", sql_int(uid));
    return err ? err : row_of(t, uid, &r, out);
}

int ledger_tx(struct task *t, struct ledger *l,
              int (*body)(struct task *t, struct sql *c, void *arg), void *arg)
{
    int err = sql_tx(t, l->sql, body, arg);
    return err == ERR_CONFLICT ? ERR_BUSY : err;
}

/* --- loading --- */

int ledger_load_row(struct task *t, struct ledger *l, int64_t uid, const struct generation *g,
                    const struct ledger_row *row, bool *loaded, struct ledger_row *seen,
                    int64_t *cents)
{
    struct arena *a = task_arena(t);
    int64_t out[5];
    int err =
        SCRIPT_NUMBERS(t, l->redis, ledger_load, 5, out, .balance = key_balance(a, uid),
                       .ledger = key_ledger(a, uid), .queue = key_billing_queue(a, uid),
                       .aside = key_aside(a, uid), .generation = generation_str(g),
                       .cents = str_int(a, row->cents), .billed_seq = str_int(a, row->billed_seq),
                       .move_no = str_int(a, row->move_no), .repaired = str_int(a, row->repaired));
    if (err)
        return err;
    *seen = (struct ledger_row){.move_no = out[2], .billed_seq = out[3], .seq = out[4]};
    switch (out[0]) {
    case 1:
        *loaded = true;
        *cents = out[1];
        return 0;
    case -2:
        return ledger_alarm(
            t, l,
            "user %lld: balance not loaded: unsynced records exceed the MySQL balance by "
            "%lld cents; compare billing_queue with billing_log",
            (long long)uid, (long long)-out[1]);
    case -3: /* the syncer alarms, once */
        return task_fail(t, ERR_INTERNAL,
                         "user %lld has a billing record that cannot be read; it is not charged "
                         "until the operator has looked at it (millrace user release)",
                         (long long)uid);
    default:
        return 0;
    }
}

struct load {
    int64_t uid;
    struct ledger_row seen;
    struct generation generation; /* of the last repair */
    int64_t repaired;
};

static int load_once(struct task *t, struct ledger *l, struct load *x, bool *loaded, int64_t *cents)
{
    struct generation now;
    struct ledger_row row;
    int err = ledger_fence(t, l, &now);
    if (!err)
        err = ledger_row_read(t, l, x->uid, &row);
    if (err)
        return err;
    /* seen was in Redis before this row was read, and had come from MySQL. */
    if (row.move_no < x->seen.move_no || row.billed_seq < x->seen.billed_seq)
        return ledger_alarm(
            t, l,
            "MySQL is older than Redis: user %lld has move %lld and record %lld in "
            "MySQL, %lld and %lld in Redis; this user is not charged until MySQL is "
            "restored",
            (long long)x->uid, (long long)row.move_no, (long long)row.billed_seq,
            (long long)x->seen.move_no, (long long)x->seen.billed_seq);
    if (str_eq(generation_str(&now), generation_str(&x->generation)))
        row.repaired = x->repaired;
    err = ledger_load_row(t, l, x->uid, &now, &row, loaded, &x->seen, cents);
    if (err || *loaded || row.billed_seq <= x->seen.seq || row.billed_seq <= row.repaired)
        return err;
    x->generation = now;
    x->repaired = 0;
    return ledger_repair(t, l, x->uid, &now, &x->repaired);
}

static int load_alone(struct task *t, struct ledger *l, int64_t uid, int64_t *cents)
{
    struct load x = {.uid = uid};
    for (int i = 0; i < LOADS_MAX; i++) {
        bool loaded = false;
        int err = load_once(t, l, &x, &loaded, cents);
        if (err || loaded)
            return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* idempotent */
    }
    return task_fail(t, ERR_BUSY, "the balance of user %lld changes too fast to be loaded",
                     (long long)uid);
}

void ledger_close_user(struct task *t, struct ledger *l, int64_t uid)
{
    struct str key = key_ledger(task_arena(t), uid);
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (redis_call(t, l->redis, key, NULL, STR("HDEL"), key, STR("run")))
        (void)task_fail(t, 0, "%s", text); /* the next sync or audit closes the user */
}

void ledger_ask(struct redis_batch *b, int64_t uid)
{
    struct arena *a = task_arena(b->task);
    struct str ledger = key_ledger(a, uid), balance = key_balance(a, uid);
    redis_batch_add(b, ledger, STR("HGET"), ledger, STR("run"));
    redis_batch_add(b, balance, STR("GET"), balance);
}

/* False: no balance, or one of an earlier generation. */
static bool in_replies(struct ledger *l, const struct redis_reply *const *replies, int64_t *cents)
{
    return replies[0]->type == REDIS_STRING && replies[1]->type == REDIS_STRING &&
           generation_is(l->redis, replies[0]->str) && str_to_i64(replies[1]->str, cents);
}

static int look(struct task *t, struct ledger *l, int64_t uid, bool *there, int64_t *cents)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, l->redis);
    ledger_ask(&b, uid);
    int err = redis_batch_run(&b, &replies);
    if (!err)
        *there = in_replies(l, replies, cents);
    return err;
}

int ledger_load(struct task *t, struct ledger *l, int64_t uid, int64_t *cents)
{
    struct str key = str_int(task_arena(t), uid);
    while (map_get(l->loading, key)) {
        bool there = false;
        int err = waitq_wait(t, &l->loaded);
        if (!err && !map_get(l->loading, key))
            err = look(t, l, uid, &there, cents);
        if (err || there)
            return err;
    }
    map_set(l->loading, key, l);
    int err = load_alone(t, l, uid, cents);
    map_del(l->loading, key);
    waitq_wake_all(&l->loaded);
    return err;
}

/* --- reading --- */

static int have(struct task *t, struct ledger *l, int64_t uid, bool there, int64_t *cents)
{
    cache_touch(t, l->cache, uid); /* first: a balance without a deadline is never swept */
    return there ? 0 : ledger_load(t, l, uid, cents);
}

int ledger_answer(struct task *t, struct ledger *l, int64_t uid,
                  const struct redis_reply *const *replies, int64_t *cents)
{
    return have(t, l, uid, in_replies(l, replies, cents), cents);
}

static int from_redis(struct task *t, struct ledger *l, int64_t uid, int64_t *cents)
{
    bool there = false;
    int err = look(t, l, uid, &there, cents);
    return err ? err : have(t, l, uid, there, cents);
}

int ledger_balance(struct task *t, struct ledger *l, int64_t uid, int64_t *cents, bool *degraded)
{
    *degraded = false;
    if (cache_trusts_redis(l->cache)) {
        int err = from_redis(t, l, uid, cents);
        if (!err_may_pass(err))
            return err;
    }
    struct ledger_row row;
    int err = ledger_row_read(t, l, uid, &row);
    if (!err) {
        *cents = row.cents;
        *degraded = true;
    }
    return err;
}
