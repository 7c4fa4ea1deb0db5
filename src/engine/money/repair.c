/* Charges that MySQL has, and whose results Redis has lost (BIL-4).
 *
 * A charge gets its seq, its result and its record in one step. So a Redis that came back older
 * than it was has lost the results of exactly those charges of billing_log whose number is above
 * the seq of its ledger, and has all others. Nothing raises that seq before the balance is loaded:
 * the load script refuses a row with a higher billed_seq unless `repaired` covers the charges
 * between.
 *
 *   1. With the user's row locked and the fence held, seq is read from Redis. Whatever is up to
 *      billed_seq was synced before that; if it was made in this generation, seq counts it. So a
 *      slow node that comes after others have loaded and charged finds nothing to do.
 *   2. For each charge above seq: its verdict came to search_result with it (filing.h), and goes
 *      back to Redis. Only the runs that are archived, and whose keys have had their time to live
 *      for long enough to be on disk, need nothing in Redis. Where MySQL lacks the verdict (it was
 *      charged by a version before, or its result could not be read), the money goes back: a
 *      reversal, which is a move like a recharge, and a row of ledger_reversal, which makes it
 *      happen once.
 *   3. In batches, each a transaction. The repair is idempotent: if a node dies between two
 *      of them, the next begins anew at seq, and skips what is reversed or restored. On the same
 *      node a repair that was interrupted goes on where it was: a caller with little time is
 *      enough, if it comes again. */
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/money/ledger_private.h"
#include "engine/money/outcome.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define ANSWER_MS 1000 /* Redis, while the row is locked */

struct lost {
    int64_t number, cents;
    struct str qid, doi;
    struct str result;    /* p == NULL: MySQL has none */
    enum outcome outcome; /* of it; none that failed was charged */
};

struct repair {
    struct ledger *l;
    int64_t uid;
    const struct generation *generation;
    int64_t upto;  /* billed_seq when it began; -1: not begun */
    int64_t after; /* all up to this one are good */
    /* of one batch: */
    bool same; /* Redis and MySQL are still in that generation; else nothing was done */
    size_t count;
    struct lost *lost;
    int64_t reversed, reversed_cents;
    /* of all: */
    int64_t all, all_reversed, all_reversed_cents;
};

/* --- what is lost --- */

static int read_seq(struct task *t, struct repair *x, int64_t *seq)
{
    struct redis *r = x->l->redis;
    struct str key = key_ledger(task_arena(t), x->uid);
    const struct redis_reply *reply;
    if (!generation_lasts(r, x->generation)) /* a reply now would be of another generation */
        return 0;
    int64_t old = task_deadline(t, ANSWER_MS);
    int err = redis_call(t, r, key, &reply, STR("HGET"), key, STR("seq"));
    task_deadline_restore(t, old);
    x->same = !err && generation_lasts(r, x->generation);
    if (err || !x->same)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    *seq = 0;
    if (reply->type == REDIS_STRING && !str_to_i64(reply->str, seq))
        return ledger_alarm(
            t, x->l,
            "user %lld: seq in the Redis ledger is no number; the balance is not loaded "
            "until it is corrected",
            (long long)x->uid);
    return 0;
}

/* As the charge stored it. */
static struct str result_json(struct task *t, struct str block_key, struct str ai_result)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    jw_key(&w, STR("ai_result"));
    if (ai_result.p)
        jw_raw(&w, ai_result);
    else
        jw_null(&w);
    jw_put_str(&w, "block_key", block_key);
    jw_end_object(&w);
    struct str json = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return json;
}

#define LIVES "(q.archived = 0 OR o.query_id IS NOT NULL)" /* its results are needed in Redis */

/* Nothing before the first charge of a run that lives can be lost. A user may have millions. */
static int skip_archived(struct task *t, struct sql *c, struct repair *x)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT MIN(first) FROM (SELECT (SELECT b.number FROM billing_log b"
                     " WHERE b.qid = q.query_id AND b.uid = q.uid AND b.source = 'redis'"
                     " ORDER BY b.number LIMIT 1) AS first FROM query_log q"
                     " LEFT JOIN archive_outbox o ON o.query_id = q.query_id"
                     " WHERE q.uid = ? AND " LIVES ") runs",
                     sql_int(x->uid));
    if (err)
        return err;
    int64_t first = r.cells[0].type == SQL_NULL ? x->upto + 1 : r.cells[0].i;
    if (first - 1 > x->after)
        x->after = first - 1;
    return 0;
}

static int find_lost(struct task *t, struct sql *c, struct repair *x)
{
    struct sql_rows r;
    int err =
        sql_on(t, c, &r,
               "SELECT b.number, b.cents, b.qid, b.doi, s.relevant, s.block_key, s.ai_result"
               " FROM billing_log b JOIN query_log q ON q.query_id = b.qid"
               " LEFT JOIN archive_outbox o ON o.query_id = b.qid"
               " LEFT JOIN ledger_reversal v ON v.uid = b.uid AND v.number = b.number"
               " LEFT JOIN search_result s"
               " ON s.query_id = b.qid AND s.doi = b.doi AND s.relevant IS NOT NULL"
               " WHERE b.uid = ? AND b.source = 'redis' AND b.number > ? AND b.number <= ?"
               " AND b.kind = 'charge' AND v.number IS NULL"
               " AND " LIVES " ORDER BY b.number LIMIT ?",
               sql_int(x->uid), sql_int(x->after), sql_int(x->upto), sql_int(LEDGER_REPAIR_BATCH));
    if (err)
        return err;
    x->count = r.count;
    x->lost = ARENA_ARRAY(task_arena(t), struct lost, r.count + 1);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        struct lost *lost = &x->lost[i];
        *lost = (struct lost){
            .number = cell[0].i, .cents = cell[1].i, .qid = cell[2].s, .doi = cell[3].s};
        if (cell[4].type == SQL_NULL)
            continue;
        lost->outcome = cell[4].i ? OUTCOME_HIT : OUTCOME_MISS;
        lost->result = result_json(t, cell[5].s, cell[6].type == SQL_NULL ? STR_NULL : cell[6].s);
    }
    return 0;
}

/* --- the money goes back --- */

/* One by one: there are few, if any. */
static int reverse_one(struct task *t, struct sql *c, const struct repair *x,
                       const struct lost *lost, int64_t move_no)
{
    struct filing_paper taken_back = {.qid = lost->qid, .doi = lost->doi, .cents = -lost->cents};
    int err =
        sql_on(t, c, NULL, "INSERT INTO ledger_reversal (uid, number, move_no) VALUES (?, ?, ?)",
               sql_int(x->uid), sql_int(lost->number), sql_int(move_no));
    if (!err)
        err = sql_on(t, c, NULL,
                     "INSERT INTO billing_log (uid, source, number, kind, qid, doi, cents, at)"
                     " VALUES (?, 'mysql', ?, 'reversal', ?, ?, ?, UTC_TIMESTAMP(3))",
                     sql_int(x->uid), sql_int(move_no), sql_text(lost->qid), sql_text(lost->doi),
                     sql_int(lost->cents));
    return err ? err : filing_count(t, c, x->uid, &taken_back, 1);
}

static int reverse(struct task *t, struct sql *c, struct repair *x, const struct ledger_row *row)
{
    struct ledger_row now = *row;
    int err = 0;
    for (size_t i = 0; i < x->count && !err; i++) {
        const struct lost *lost = &x->lost[i];
        if (lost->result.p)
            continue;
        if (lost->cents > LEDGER_BALANCE_MAX - now.cents)
            return ledger_alarm(t, x->l,
                                "user %lld: cannot reverse charges: the balance would exceed its "
                                "column; the balance is not loaded until it is lowered",
                                (long long)x->uid);
        err = reverse_one(t, c, x, lost, ++now.move_no);
        now.cents += lost->cents;
    }
    x->reversed = now.move_no - row->move_no;
    x->reversed_cents = now.cents - row->cents;
    return err || !x->reversed ? err : ledger_move_made(t, c, x->uid, &now);
}

static int repair_body(struct task *t, struct sql *c, void *arg)
{
    struct repair *x = arg;
    struct ledger_row row;
    bool holds = false;
    int64_t seq = 0;
    x->same = false;
    x->count = 0;
    int err = ledger_row_lock(t, c, x->uid, &row);
    if (!err)
        err = ledger_fence_holds(t, c, x->generation, &holds);
    if (!err && holds)
        err = read_seq(t, x, &seq);
    if (err || !x->same)
        return err;
    bool begins = x->upto < 0;
    if (begins)
        x->upto = row.billed_seq;
    if (seq > x->after)
        x->after = seq;
    err = begins ? skip_archived(t, c, x) : 0;
    if (!err)
        err = find_lost(t, c, x);
    return err ? err : reverse(t, c, x, &row);
}

/* --- results go back --- */

enum { RESTORE_WORDS = 4 }; /* of the script, for each paper */

/* Papers of the run of lost[first], as words, *count of them. Returns how many of lost are its. */
static size_t papers_of_run(struct task *t, const struct repair *x, size_t first, struct str *words,
                            size_t *count)
{
    struct str *at = words;
    size_t i = first;
    for (; i < x->count && str_eq(x->lost[i].qid, x->lost[first].qid); i++) {
        const struct lost *lost = &x->lost[i];
        if (!lost->result.p)
            continue;
        *at++ = lost->doi;
        *at++ = lost->outcome == OUTCOME_HIT ? STR("1") : STR("0");
        *at++ = str_int(task_arena(t), lost->cents);
        *at++ = lost->result;
    }
    *count = (size_t)(at - words);
    return i - first;
}

static int restore_run(struct task *t, struct repair *x, struct str qid, struct script_list papers)
{
    struct arena *a = task_arena(t);
    int64_t restored;
    int err = SCRIPT_NUMBER(
        t, x->l->redis, ledger_restore, &restored, .results = key_result(a, x->uid, qid),
        .status = key_query_status(a, x->uid, qid), .progress = key_progress(a, x->uid, qid),
        .failed = key_failed(a, x->uid, qid), .arrivals = key_arrivals(a, x->uid, qid),
        .relevant = key_relevant(a, x->uid, qid), .generation = generation_str(x->generation),
        .papers = papers);
    if (!err)
        x->same = restored == 1;
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

static int restore(struct task *t, struct repair *x)
{
    struct str *words = ARENA_ARRAY(task_arena(t), struct str, RESTORE_WORDS * x->count + 1);
    int err = 0;
    for (size_t i = 0; !err && i < x->count && x->same;) {
        struct str qid = x->lost[i].qid;
        size_t count;
        i += papers_of_run(t, x, i, words, &count);
        if (count)
            err = restore_run(t, x, qid, (struct script_list){words, count});
    }
    return err;
}

/* --- all --- */

static int repair_batch(struct task *t, struct repair *x)
{
    int err = ledger_tx(t, x->l, repair_body, x);
    if (err || !x->same)
        return err;
    metric_add(x->l->reversed, x->reversed);
    metric_add(x->l->restored, (int64_t)x->count - x->reversed);
    x->all += (int64_t)x->count;
    x->all_reversed += x->reversed;
    x->all_reversed_cents += x->reversed_cents;
    err = restore(t, x);
    if (!err && x->same && x->count)
        x->after = x->lost[x->count - 1].number;
    return err;
}

static struct ledger_repaired *progress(struct ledger *l, int64_t uid)
{
    return &l->repairs[(uint64_t)uid % LEDGER_REPAIRS_MAX];
}

static int64_t done_before(struct ledger *l, int64_t uid, const struct generation *g)
{
    const struct ledger_repaired *p = progress(l, uid);
    bool same = p->uid == uid && str_eq(generation_str(&p->generation), generation_str(g));
    return same ? p->after : 0;
}

static void report(struct task *t, const struct repair *x)
{
    if (x->all)
        log_warn("ledger",
                 "user %lld: Redis lost %lld paid results in a restart: %lld charges of %s are "
                 "reversed, the other results restored from MySQL; no action needed",
                 (long long)x->uid, (long long)x->all, (long long)x->all_reversed,
                 amount_decimal(task_arena(t), x->all_reversed_cents).p);
}

int ledger_repair(struct task *t, struct ledger *l, int64_t uid, const struct generation *g,
                  int64_t *repaired)
{
    struct repair x = {
        .l = l, .uid = uid, .generation = g, .upto = -1, .after = done_before(l, uid, g)};
    int err;
    do {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = repair_batch(t, &x);
        arena_reset(task_arena(t), mark);
        if (!err && x.same)
            *progress(l, uid) = (struct ledger_repaired){uid, x.after, *g};
    } while (!err && x.same && x.count == LEDGER_REPAIR_BATCH);
    report(t, &x);
    if (!err && x.same)
        *repaired = x.upto;
    return err;
}
