/* Money that an admin takes. It goes the way of charges, so that it cannot overdraw:
 *
 *   1. look:  generation and synced of the ledger in Redis, and the balance;
 *   2. note:  the request in MySQL, with the audit log; one that is there already is found;
 *   3. take:  the script takes the money, unless the request is taken or something was trimmed;
 *   4. sync:  the record goes to MySQL, and with it the number to the request.
 *
 * Then it begins anew, and step 2 finds the number: done. The request is idempotent: if the node
 * dies after any step, the same request_id, sent again, completes it. What 3 has taken is recorded
 * in Redis until 4, and in MySQL from 4 on. The look in step 1 closes the gap between the two: had
 * the record been synced and trimmed after MySQL was asked in 2, synced would have changed, and 3
 * refuses. A record that Redis lost before 4 was never taken: step 2 finds no number, and it is
 * taken again.
 *
 * The audit log is written in 2 and not in 4: any node may do 4, without the request at hand. A
 * noted request that was short of money stays noted: another node may be in step 3 with it, so
 * removing it is not safe. */
#include "base/buf.h"
#include "base/json.h"
#include "engine/money/ledger_private.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define ROUNDS_MAX 60
#define PAUSE_MS   100

/* --- 1 --- */

int ledger_look(struct task *t, struct ledger *l, int64_t uid, struct ledger_look *out)
{
    struct str ledger = key_ledger(task_arena(t), uid), balance = key_balance(task_arena(t), uid);
    struct redis_batch b;
    const struct redis_reply *const *r;
    redis_batch_init(&b, t, l->redis);
    redis_batch_add(&b, ledger, STR("HGET"), ledger, STR("run"));
    redis_batch_add(&b, ledger, STR("HGET"), ledger, STR("synced"));
    redis_batch_add(&b, balance, STR("GET"), balance);
    int err = redis_batch_run(&b, &r);
    if (err)
        return err;
    *out = (struct ledger_look){.synced = r[1]->type == REDIS_STRING ? r[1]->str : STR("")};
    out->loaded = r[0]->type == REDIS_STRING && r[2]->type == REDIS_STRING &&
                  generation_is(l->redis, r[0]->str) && str_to_i64(r[2]->str, &out->cents);
    if (out->loaded)
        out->generation = generation_now(l->redis);
    return 0;
}

/* --- 2 --- */

struct note {
    const struct ledger_move *m;
    const struct ledger_look *look;
    struct ledger_request *request;
};

static int note_body(struct task *t, struct sql *c, void *arg)
{
    const struct note *x = arg;
    const struct ledger_move *m = x->m;
    struct ledger_row row;
    int err = ledger_row_lock(t, c, m->uid, &row);
    if (!err)
        err = ledger_request_find(t, c, m, "deduction", x->request);
    if (err || x->request->found)
        return err;
    if (x->look->cents < m->cents) { /* nothing was ever taken for it: not noted at all */
        x->request->verdict = ERR_FUNDS;
        return 0;
    }
    err = sql_on(t, c, NULL,
                 "INSERT INTO ledger_request (uid, request_id, kind, cents)"
                 " VALUES (?, ?, 'deduction', ?)",
                 sql_int(m->uid), sql_text(m->request_id), sql_int(m->cents));
    if (!err && m->also)
        err = m->also(t, c, m->also_arg);
    return err;
}

int ledger_deduct_note(struct task *t, struct ledger *l, const struct ledger_move *m,
                       const struct ledger_look *look, struct ledger_request *out)
{
    struct note x = {m, look, out};
    return ledger_tx(t, l, note_body, &x);
}

/* --- 3 --- */

struct str ledger_deduction_text(struct task *t, int64_t cents, struct str request_id)
{
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, ",\"timestamp\":");
    buf_add_int(&b, loop_wall_ms(task_loop(t)));
    buf_add_lit(&b, ",\"kind\":\"deduction\",\"cost\":");
    buf_add_int(&b, cents);
    buf_add_lit(&b, ",\"request_id\":\"");
    json_escape(&b, request_id);
    buf_add_char(&b, '"');
    struct str text = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return text;
}

int ledger_take(struct task *t, struct ledger *l, const struct ledger_move *m,
                const struct ledger_look *look, int64_t *status)
{
    /* Announced first: an announcement without a record costs one read, a record without an
     * announcement would stay unsynced until the sweeper runs. */
    struct str now = str_int(task_arena(t), loop_wall_ms(task_loop(t)));
    int err = redis_call(t, l->redis, key_billing, NULL, STR("ZADD"), key_billing, STR("GT"), now,
                         str_int(task_arena(t), m->uid));
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    struct arena *a = task_arena(t);
    struct str text = ledger_deduction_text(t, m->cents, m->request_id);
    int64_t out[3];
    err = SCRIPT_NUMBERS(t, l->redis, ledger_deduct, 3, out, .balance = key_balance(a, m->uid),
                         .ledger = key_ledger(a, m->uid), .queue = key_billing_queue(a, m->uid),
                         .deductions = key_deductions(a, m->uid),
                         .generation = generation_str(&look->generation), .synced = look->synced,
                         .cents = str_int(a, m->cents), .request_id = m->request_id, .text = text,
                         .sum = str_int(a, ledger_record_sum(text)));
    if (!err)
        *status = out[0];
    return err;
}

/* --- all --- */

struct deduction {
    const struct ledger_move *m;
    bool done;
    bool maybe; /* money may have been taken, and is not known to be in MySQL */
};

static int short_of_money(struct task *t, const struct ledger_move *m)
{
    return task_fail(t, ERR_FUNDS, "the balance of user %lld is less than %s", (long long)m->uid,
                     amount_decimal(task_arena(t), m->cents).p);
}

static int take_and_sync(struct task *t, struct ledger *l, struct deduction *d,
                         const struct ledger_look *look)
{
    int64_t status = 0;
    int err = ledger_take(t, l, d->m, look, &status);
    if (err == ERR_UNCERTAIN || err == ERR_TIMEOUT || err == ERR_CANCELED)
        d->maybe = true;
    if (err)
        return err;
    if (status == LEDGER_SHORT) {
        d->maybe = false;
        return short_of_money(t, d->m);
    }
    if (status != LEDGER_TAKEN && status != LEDGER_TAKEN_BEFORE)
        return 0;
    d->maybe = true;
    return ledger_sync(t, l, d->m->uid);
}

static int deduct_round(struct task *t, struct ledger *l, struct deduction *d)
{
    struct ledger_look look;
    struct ledger_request request;
    int64_t cents;
    int err = ledger_look(t, l, d->m->uid, &look);
    if (err || !look.loaded)
        return err ? err : ledger_load(t, l, d->m->uid, &cents);
    err = ledger_deduct_note(t, l, d->m, &look, &request);
    if (err)
        return err;
    if (request.verdict == ERR_CONFLICT)
        return ledger_request_conflict(t, d->m);
    if (request.verdict == ERR_FUNDS)
        return short_of_money(t, d->m);
    d->done = request.done;
    return d->done ? 0 : take_and_sync(t, l, d, &look);
}

static int deduct(struct task *t, struct ledger *l, struct deduction *d)
{
    for (int i = 0; i < ROUNDS_MAX; i++) {
        struct arena_mark mark = arena_mark(task_arena(t));
        int err = deduct_round(t, l, d);
        arena_reset(task_arena(t), mark);
        if (d->done)
            return 0;
        if (err && !(d->maybe && err_may_pass(err)))
            return err;
        if (err && backoff_wait(t, &(struct backoff){.ms = PAUSE_MS}))
            return err;
    }
    return task_fail(t, ERR_BUSY, "user %lld is too busy", (long long)d->m->uid);
}

int ledger_deduct(struct task *t, struct ledger *l, const struct ledger_move *m, int64_t *balance)
{
    const char *problem = ledger_move_problem(m);
    if (problem)
        return task_fail(t, ERR_INVALID, "%s", problem);
    struct deduction d = {.m = m};
    cache_touch(t, l->cache, m->uid);
    int err = deduct(t, l, &d);
    bool degraded;
    if (!err)
        err = ledger_balance(t, l, m->uid, balance, &degraded);
    if (err && (d.maybe || d.done))
        return task_fail(t, ERR_UNCERTAIN,
                         "the money may have been taken; send the same request_id again");
    return err;
}
