/* Money that an admin takes, or that jobs cost. It goes the way of charges, so that it cannot
 * overdraw, and any number of requests of one user go together:
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
    int64_t uid;
    const struct ledger_look *look;
    struct ledger_deduction *list;
    size_t count;
    struct map *by_id; /* request_id -> struct ledger_deduction */
};

static int find_requests(struct task *t, struct sql *c, const struct note *x)
{
    struct arena *a = task_arena(t);
    struct sql_rows r;
    size_t marks = sql_padded(x->count);
    struct sql_value *v = ARENA_ARRAY(a, struct sql_value, marks + 1);
    v[0] = sql_int(x->uid);
    for (size_t i = 0; i < marks; i++)
        v[i + 1] = sql_text(x->list[i < x->count ? i : x->count - 1].m->request_id);
    for (size_t i = 0; i < x->count; i++)
        x->list[i].request = (struct ledger_request){0};
    int err = sql_on_argv(t, c,
                          sql_marks(a,
                                    "SELECT kind, cents, number, request_id FROM ledger_request"
                                    " WHERE uid = ? AND request_id IN",
                                    x->count, ""),
                          marks + 1, v, &r);
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *cells = sql_row(&r, i);
        struct ledger_deduction *d = map_get(x->by_id, cells[3].s);
        if (d)
            ledger_request_read(cells, d->m, "deduction", &d->request);
    }
    return err;
}

/* Those that MySQL lacks, as far as the money goes. Nothing was ever taken for the others: they are
 * not noted at all. */
static int write_requests(struct task *t, struct sql *c, const struct note *x)
{
    enum { COLUMNS = 4 };
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, x->count * COLUMNS);
    int64_t left = x->look->cents;
    size_t n = 0;
    for (size_t i = 0; i < x->count; i++) {
        struct ledger_deduction *d = &x->list[i];
        if (d->request.found)
            continue;
        if (left < d->m->cents) {
            d->request.verdict = ERR_FUNDS;
            continue;
        }
        left -= d->m->cents;
        struct sql_value *cell = cells + n++ * COLUMNS;
        cell[0] = sql_int(x->uid);
        cell[1] = sql_text(d->m->request_id);
        cell[2] = sql_text(STR("deduction"));
        cell[3] = sql_int(d->m->cents);
    }
    return n == 0
               ? 0
               : sql_bulk(t, c, "INSERT INTO ledger_request (uid, request_id, kind, cents) VALUES",
                          "", COLUMNS, n, cells, NULL);
}

static int note_body(struct task *t, struct sql *c, void *arg)
{
    const struct note *x = arg;
    struct ledger_row row;
    int err = ledger_row_lock(t, c, x->uid, &row);
    if (!err)
        err = find_requests(t, c, x);
    if (!err)
        err = write_requests(t, c, x);
    for (size_t i = 0; !err && i < x->count; i++) {
        const struct ledger_deduction *d = &x->list[i];
        if (!d->request.found && !d->request.verdict && d->m->also)
            err = d->m->also(t, c, d->m->also_arg);
    }
    return err;
}

int ledger_deduct_note(struct task *t, struct ledger *l, const struct ledger_look *look,
                       struct ledger_deduction *list, size_t count)
{
    struct note x = {list[0].m->uid, look, list, count, map_new()};
    for (size_t i = 0; i < count; i++)
        map_set(x.by_id, list[i].m->request_id, &list[i]);
    check(map_count(x.by_id) == count); /* no request_id twice */
    int err = ledger_tx(t, l, note_body, &x);
    map_free(x.by_id);
    return err;
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

static int run_script(struct task *t, struct ledger *l, const struct ledger_look *look,
                      struct ledger_deduction *list, size_t count)
{
    enum { WORDS = 4 };
    struct arena *a = task_arena(t);
    int64_t uid = list[0].m->uid, *status = ARENA_ARRAY(a, int64_t, count);
    struct str *words = ARENA_ARRAY(a, struct str, count * WORDS);
    for (size_t i = 0; i < count; i++) {
        const struct ledger_move *m = list[i].m;
        struct str *at = words + i * WORDS;
        at[0] = m->request_id;
        at[1] = str_int(a, m->cents);
        at[2] = ledger_deduction_text(t, m->cents, m->request_id);
        at[3] = str_int(a, ledger_record_sum(at[2]));
    }
    int err = SCRIPT_NUMBERS(
        t, l->redis, ledger_deduct, count, status, .balance = key_balance(a, uid),
        .ledger = key_ledger(a, uid), .queue = key_billing_queue(a, uid),
        .deductions = key_deductions(a, uid), .generation = generation_str(&look->generation),
        .synced = look->synced, .requests = {words, count * WORDS});
    for (size_t i = 0; !err && i < count; i++)
        list[i].status = status[i];
    return err;
}

int ledger_take(struct task *t, struct ledger *l, const struct ledger_look *look,
                struct ledger_deduction *list, size_t count)
{
    /* Announced first: an announcement without a record costs one read, a record without an
     * announcement would stay unsynced until the sweeper runs. */
    struct str now = str_int(task_arena(t), loop_wall_ms(task_loop(t)));
    int err = redis_call(t, l->redis, key_billing, NULL, STR("ZADD"), key_billing, STR("GT"), now,
                         str_int(task_arena(t), list[0].m->uid));
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    return run_script(t, l, look, list, count);
}

/* --- all --- */

/* Those that are neither done nor refused come first. */
static size_t open_first(struct ledger_deduction *list, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].done || list[i].err)
            continue;
        struct ledger_deduction d = list[n];
        list[n++] = list[i];
        list[i] = d;
    }
    return n;
}

static void refuse(struct ledger_deduction *d, int err, const char *why)
{
    d->err = task_fail(d->task, err, "%s", why);
}

static void short_of_money(struct ledger_deduction *d)
{
    d->err = task_fail(d->task, ERR_FUNDS, "the balance of user %lld is less than %s",
                       (long long)d->m->uid, amount_decimal(task_arena(d->task), d->m->cents).p);
}

/* What step 2 found. */
static void read_request(struct ledger_deduction *d)
{
    if (d->request.verdict == ERR_CONFLICT)
        d->err = ledger_request_conflict(d->task, d->m);
    else if (d->request.verdict == ERR_FUNDS)
        short_of_money(d);
    else
        d->done = d->request.done;
}

static int take_and_sync(struct task *t, struct ledger *l, const struct ledger_look *look,
                         struct ledger_deduction *list, size_t count)
{
    bool taken = false;
    int err = ledger_take(t, l, look, list, count);
    bool maybe = err == ERR_UNCERTAIN || err == ERR_TIMEOUT || err == ERR_CANCELED;
    for (size_t i = 0; i < count; i++) {
        struct ledger_deduction *d = &list[i];
        if (maybe || (!err && (d->status == LEDGER_TAKEN || d->status == LEDGER_TAKEN_BEFORE))) {
            d->maybe = taken = true;
        } else if (!err && d->status == LEDGER_SHORT) {
            d->maybe = false;
            short_of_money(d);
        }
    }
    return err || !taken ? err : ledger_sync(t, l, list[0].m->uid);
}

/* All that are open. */
static int deduct_round(struct task *t, struct ledger *l, struct ledger_deduction *list,
                        size_t count)
{
    struct ledger_look look;
    int64_t cents, uid = list[0].m->uid;
    int err = ledger_look(t, l, uid, &look);
    if (err || !look.loaded)
        return err ? err : ledger_load(t, l, uid, &cents);
    err = ledger_deduct_note(t, l, &look, list, count);
    if (err)
        return err;
    for (size_t i = 0; i < count; i++)
        read_request(&list[i]);
    count = open_first(list, count);
    return count ? take_and_sync(t, l, &look, list, count) : 0;
}

/* Money that may have been taken is made certain, as far as that is possible. */
static void end_round(struct task *t, struct ledger_deduction *list, size_t count, int err,
                      bool last)
{
    const char *why = arena_strdup(task_arena(t), task_error(t));
    for (size_t i = 0; i < count; i++)
        if (!list[i].done && !list[i].err && (last || !list[i].maybe || !err_may_pass(err)))
            refuse(&list[i], err, why);
}

void ledger_deduct_all(struct task *t, struct ledger *l, struct ledger_deduction *list,
                       size_t count)
{
    size_t n = open_first(list, count);
    for (int i = 0; n && i < ROUNDS_MAX; i++) {
        struct arena_mark mark = arena_mark(task_arena(t));
        int err = deduct_round(t, l, list, n);
        if (err) {
            end_round(t, list, n, err, false);
            n = open_first(list, count);
        }
        if (err && n && backoff_wait(t, &(struct backoff){.ms = PAUSE_MS}))
            end_round(t, list, n, err, true);
        n = open_first(list, count);
        arena_reset(task_arena(t), mark);
    }
    for (size_t i = 0; i < n; i++)
        list[i].err =
            task_fail(list[i].task, ERR_BUSY, "user %lld is too busy", (long long)list[i].m->uid);
    for (size_t i = 0; i < count; i++)
        if (list[i].err && list[i].maybe)
            refuse(&list[i], ERR_UNCERTAIN, LEDGER_MAYBE_TAKEN);
}

int ledger_deduct(struct task *t, struct ledger *l, const struct ledger_move *m, int64_t *balance)
{
    const char *problem = ledger_move_problem(m);
    if (problem)
        return task_fail(t, ERR_INVALID, "%s", problem);
    struct ledger_deduction d = {.m = m, .task = t};
    bool degraded;
    cache_touch(t, l->cache, m->uid);
    ledger_deduct_all(t, l, &d, 1);
    if (d.err)
        return d.err;
    int err = ledger_balance(t, l, m->uid, balance, &degraded);
    return err ? task_fail(t, ERR_UNCERTAIN, LEDGER_MAYBE_TAKEN) : 0;
}
