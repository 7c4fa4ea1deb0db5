#include "engine/money/charge.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "corpus/doi.h"
#include "engine/money/ledger_private.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define TRIES_MAX   8     /* of a call: after lost replies and evicted balances */
#define ANNOUNCE_MS 20000 /* renew well before ledger_round drops it, at 60 s */

/* That the syncer will take for the records that wait. It sees to one user after the other, so the
 * oldest of a crowd is up to three times as old. */
#define LATE_MS      1200
#define LATE_WAIT_MS 20
#define PACE_MS      5000 /* what is known of the syncer holds for so long */

/* --- one call --- */

enum { WORDS = 3 }; /* of the script, at most, for each paper */

const char *charge_problem(const struct charge *c)
{
    if (c->qid.n == 0 || c->qid.n > CHARGE_QID_BYTES_MAX || !str_utf8_valid(c->qid))
        return "a run has an id of 1 to 64 bytes";
    if (c->doi.n == 0 || c->doi.n > DOI_BYTES_MAX || !str_utf8_valid(c->doi))
        return "a paper has a DOI of 1 to 255 bytes";
    if (c->result.n == 0 || c->result.n > CHARGE_RESULT_BYTES_MAX)
        return "a result has 1 to 262144 bytes";
    if (c->cents < 0 || c->cents > AMOUNT_CENTS_MAX || (c->outcome == OUTCOME_FAILED && c->cents))
        return "a paper costs from 0.00 to 999999999.99, and nothing if it failed";
    return NULL;
}

/* Outcomes in the form the script takes: a letter each. */
static struct str kinds(struct arena *a, size_t count, const struct charge *c)
{
    char *letters = arena_alloc(a, count);
    for (size_t i = 0; i < count; i++)
        letters[i] = outcome_letter(c[i].outcome);
    return str_from(letters, count);
}

/* One number where all cost the same, as papers of one price list mostly do. */
static struct str prices(struct arena *a, size_t count, const struct charge *c, struct buf *b)
{
    size_t same = 1;
    while (same < count && c[same].cents == c->cents)
        same++;
    if (same == count)
        return str_int(a, c->cents);
    buf_clear(b);
    for (size_t i = 0; i < count; i++) {
        buf_add_int(b, c[i].cents);
        buf_add_char(b, ' ');
    }
    return str_dup(a, buf_str(b));
}

/* The record from after its seq to within the quotes of its DOI; the script adds the rest. */
static struct str record_head(struct task *t, struct str qid, struct buf *b)
{
    buf_clear(b);
    buf_add_lit(b, ",\"timestamp\":");
    buf_add_int(b, loop_wall_ms(task_loop(t)));
    buf_add_lit(b, ",\"kind\":\"charge\",\"qid\":\"");
    json_escape(b, qid);
    buf_add_lit(b, "\",\"doi\":\"");
    return str_dup(task_arena(t), buf_str(b));
}

/* The DOIs as they stand in JSON. Returns how many: 0 if each stands there as it is. */
static size_t json_dois(struct arena *a, size_t count, const struct charge *c, struct buf *b,
                        struct str *out)
{
    bool odd = false;
    buf_clear(b);
    for (size_t i = 0; i < count; i++) {
        size_t before = b->len;
        json_escape(b, c[i].doi);
        out[i].n = b->len - before;
        odd = odd || out[i].n != c[i].doi.n;
    }
    if (!odd)
        return 0;
    const char *p = str_dup(a, buf_str(b)).p;
    for (size_t i = 0; i < count; p += out[i++].n)
        out[i].p = p;
    return count;
}

static struct script_list papers(struct arena *a, size_t count, const struct charge *c,
                                 struct buf *b)
{
    struct str *words = ARENA_ARRAY(a, struct str, WORDS * count), *at = words;
    for (size_t i = 0; i < count; i++) {
        *at++ = c[i].doi;
        *at++ = c[i].result;
    }
    at += json_dois(a, count, c, b, at);
    return (struct script_list){words, (size_t)(at - words)};
}

/* Checksums of the records, four bytes each. The DOIs are in list, as papers() has put them. */
static struct str sums(struct arena *a, struct str record, const struct script_list *list,
                       size_t count, const struct charge *c, struct buf *b)
{
    bool odd = list->n > 2 * count;
    char *out = arena_alloc(a, 4 * count);
    buf_clear(b);
    buf_add_str(b, record);
    for (size_t i = 0; i < count; i++) {
        b->len = record.n;
        buf_add_str(b, odd ? list->p[2 * count + i] : list->p[2 * i]);
        buf_add_lit(b, "\",\"cost\":");
        buf_add_int(b, c[i].cents);
        uint32_t sum = htonl(ledger_record_sum(buf_str(b)));
        memcpy(out + 4 * i, &sum, sizeof sum);
    }
    return str_from(out, 4 * count);
}

static int run_script(struct task *t, struct ledger *l, size_t count, const struct charge *c,
                      const struct redis_reply **out)
{
    struct arena *a = task_arena(t);
    struct buf b;
    buf_init(&b);
    struct str cents = prices(a, count, c, &b), record = record_head(t, c->qid, &b);
    struct script_list list = papers(a, count, c, &b);
    struct str check_sums = sums(a, record, &list, count, c, &b);
    buf_release(&b);
    return SCRIPT(
        t, l->redis, charge, out, .balance = key_balance(a, c->uid),
        .ledger = key_ledger(a, c->uid), .queue = key_billing_queue(a, c->uid),
        .results = key_result(a, c->uid, c->qid), .status = key_query_status(a, c->uid, c->qid),
        .progress = key_progress(a, c->uid, c->qid), .failed = key_failed(a, c->uid, c->qid),
        .arrivals = key_arrivals(a, c->uid, c->qid), .relevant = key_relevant(a, c->uid, c->qid),
        .count = str_int(a, (int64_t)count), .kinds = kinds(a, count, c), .prices = cents,
        .record = record, .sums = check_sums, .papers = list);
}

static bool read_status(const struct redis_reply *r, enum charge_outcome *out)
{
    static const enum charge_outcome outcomes[] = {CHARGE_FUNDS, CHARGE_DONE, CHARGE_EXISTS};
    if (r->type != REDIS_INT || r->integer < 0 || r->integer > 2)
        return false;
    *out = outcomes[r->integer];
    return true;
}

/* Other than CALL_DONE: nothing was done. */
enum call { CALL_DONE, CALL_NO_BALANCE, CALL_NO_RUN };

static int call_script(struct task *t, struct ledger *l, size_t count, const struct charge *c,
                       enum call *call, enum charge_outcome *out)
{
    const struct redis_reply *r;
    int err = run_script(t, l, count, c, &r);
    if (err)
        return err;
    *call = CALL_DONE;
    if (r->type == REDIS_INT && (r->integer == -1 || r->integer == -3)) {
        *call = r->integer == -1 ? CALL_NO_BALANCE : CALL_NO_RUN;
        return 0;
    }
    bool all = r->type == REDIS_INT && (r->integer == 1 || r->integer == -2);
    bool fits = all || (r->type == REDIS_ARRAY && r->count == count);
    for (size_t i = 0; fits && i < count; i++) {
        if (all)
            out[i] = r->integer == 1 ? CHARGE_DONE : CHARGE_STOPPED;
        else
            fits = read_status(r->items[i], &out[i]);
    }
    return fits ? 0 : task_fail(t, ERR_PROTO, "script charge returned something else");
}

/* Comes before the record: an unannounced record would stay unsynced until the sweeper runs. */
static int announce(struct task *t, struct ledger *l, int64_t uid)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    struct ledger_announced *last = &l->announced[(uint64_t)uid % LEDGER_ANNOUNCED_MAX];
    if (last->uid == uid && now_ms - last->at_ms < ANNOUNCE_MS &&
        generation_lasts(l->redis, &last->generation))
        return 0;
    struct generation now = generation_now(l->redis);
    int err =
        redis_call(t, l->redis, key_billing, NULL, STR("ZADD"), key_billing, STR("GT"),
                   str_int(task_arena(t), loop_wall_ms(task_loop(t))), str_int(task_arena(t), uid));
    if (!err)
        *last = (struct ledger_announced){uid, now_ms, now};
    return err;
}

static int charge_once(struct task *t, struct ledger *l, size_t count, const struct charge *c,
                       enum call *call, enum charge_outcome *out)
{
    int64_t cents;
    int err = announce(t, l, c->uid);
    if (!err)
        err = call_script(t, l, count, c, call, out);
    if (!err && *call == CALL_NO_BALANCE)
        err = ledger_load(t, l, c->uid, &cents);
    return err;
}

/* A Redis that has lost everything learns of its runs again within a second (keeper.h). The
 * verdicts were paid for: they wait for that. Later the run is one that has left Redis. */
static int wait_for_run(struct task *t, struct ledger *l, int64_t until_ms, size_t count,
                        enum call *call, enum charge_outcome *out)
{
    if (loop_now_ms(task_loop(t)) < until_ms)
        return backoff_wait(t, &(struct backoff){.ms = l->unknown_ms / 100});
    for (size_t i = 0; i < count; i++)
        out[i] = CHARGE_STOPPED;
    *call = CALL_DONE;
    return 0;
}

/* Back pressure: the AI may be faster than MySQL, but what MySQL lacks would have to be asked again
 * if Redis lost it (BIL-7). Only while records are written: where MySQL is away, waiting gains
 * nothing. */
static int wait_for_mysql(struct task *t, const struct ledger *l)
{
    const struct ledger_pace *p = &l->pace;
    int err = 0;
    while (!err && p->waiting * (p->record_ns / 1000) > 1000 * LATE_MS &&
           loop_now_ms(task_loop(t)) - p->at_ms < PACE_MS)
        err = backoff_wait(t, &(struct backoff){.ms = LATE_WAIT_MS});
    return err;
}

static int charge_all(struct task *t, struct ledger *l, size_t count, const struct charge *c,
                      enum charge_outcome *out)
{
    int64_t until_ms = loop_now_ms(task_loop(t)) + l->unknown_ms;
    cache_touch(t, l->cache, c->uid); /* first: a balance without a deadline is never swept */
    for (int tries = 0; tries < TRIES_MAX;) {
        enum call call = CALL_NO_BALANCE;
        struct arena_mark mark = arena_mark(task_arena(t));
        int err = charge_once(t, l, count, c, &call, out);
        if (!err && call == CALL_NO_RUN)
            err = wait_for_run(t, l, until_ms, count, &call, out);
        arena_reset(task_arena(t), mark);
        if (call == CALL_DONE && !err)
            return 0;
        if (err && err != ERR_UNCERTAIN) /* uncertain: repeat, the script is idempotent */
            return err;
        tries += err || call != CALL_NO_RUN;
    }
    return task_fail(t, ERR_UNAVAILABLE, "Redis comes and goes");
}

int ledger_charge(struct task *t, struct ledger *l, size_t count, const struct charge *c,
                  enum charge_outcome *out)
{
    check(count > 0 && count <= CHARGE_MANY_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *problem = charge_problem(&c[i]);
        if (c[i].uid != c->uid || !str_eq(c[i].qid, c->qid))
            problem = "papers of several runs cannot be charged at once";
        if (problem)
            return task_fail(t, ERR_INVALID, "%s", problem);
    }
    int err = wait_for_mysql(t, l);
    if (!err)
        err = charge_all(t, l, count, c, out);
    if (!err)
        l->pace.waiting += (int64_t)count;
    return err;
}

int ledger_ready(struct task *t, struct ledger *l, int64_t uid)
{
    int64_t cents;
    return ledger_load(t, l, uid, &cents);
}
