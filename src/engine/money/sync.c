/* Records of Redis to MySQL: read the head of the queue and the results of its papers, write both
 * in one transaction with the balance and billed_seq, then trim what is at most billed_seq. Each
 * step is idempotent, on any node, in any order. */
#include "base/log.h"
#include "base/time.h"
#include "engine/money/ledger_private.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define READS_MAX  5    /* tries; each failed because Redis restarted meanwhile */
#define SLICE_ROWS 2500 /* of a batch: its cells still fit the CPU cache when sent */

#define PACE_RECORDS 1000 /* of a batch that tells how fast records are written */

/* --- reading --- */

/* last: the value of the previous record, most often the same. */
static struct str keep(struct arena *a, struct str s, struct str last)
{
    if (!s.p)
        return STR_NULL;
    return last.p && str_eq(s, last) ? last : str_dup(a, s);
}

/* Up to the first that cannot be read. The JSON trees of a whole batch would take more memory than
 * the rest of the node. */
static void read_records(struct arena *a, const struct redis_reply *r, struct ledger_batch *out)
{
    struct arena scratch;
    struct ledger_record last = {.seq = 0};
    arena_init(&scratch);
    out->records = ARENA_ARRAY(a, struct ledger_record, r->count + 1);
    for (size_t i = 0; i < r->count; i++) {
        struct ledger_record *record = &out->records[i];
        arena_reset(&scratch, (struct arena_mark){0});
        if (!ledger_record_read(&scratch, r->items[i]->str, record))
            break;
        record->kind = keep(a, record->kind, last.kind);
        record->qid = keep(a, record->qid, last.qid);
        record->doi = keep(a, record->doi, STR_NULL);
        record->request_id = keep(a, record->request_id, STR_NULL);
        last = *record;
        out->count++;
    }
    arena_release(&scratch);
}

/* The record that cannot be read, and the next one that can: its place tells its seq. */
static void pass_unreadable(const struct redis_reply *r, struct ledger_batch *out)
{
    struct arena scratch;
    struct ledger_record next;
    arena_init(&scratch);
    out->unreadable = r->items[out->count]->str;
    for (size_t i = out->count + 1; out->readable_seq == 0 && i < r->count; i++) {
        arena_reset(&scratch, (struct arena_mark){0});
        if (!ledger_record_read(&scratch, r->items[i]->str, &next))
            continue;
        out->readable_seq = next.seq;
        out->readable_distance = (int64_t)(i - out->count);
    }
    arena_release(&scratch);
}

/* Counters first: they came from MySQL, so a later read of the row must not be older. */
static int ask_queue(struct task *t, struct ledger *l, int64_t uid,
                     const struct redis_reply *const **out)
{
    struct arena *a = task_arena(t);
    struct str ledger = key_ledger(a, uid), queue = key_billing_queue(a, uid);
    struct redis_batch b;
    redis_batch_init(&b, t, l->redis);
    redis_batch_add(&b, ledger, STR("HGET"), ledger, STR("synced"));
    redis_batch_add(&b, ledger, STR("HGET"), ledger, STR("move"));
    redis_batch_add(&b, queue, STR("LRANGE"), queue, STR("0"), str_int(a, LEDGER_BATCH - 1));
    int err = redis_batch_run(&b, out);
    for (size_t i = 0; !err && i < 3; i++)
        if ((*out)[i]->type == REDIS_ERROR)
            err = task_fail(t, ERR_REFUSED, "the records of user %lld: %s", (long long)uid,
                            (*out)[i]->str.p);
    return err;
}

/* The results of the charges. A charge writes both in one step, and only an archived run
 * expires. */
static int read_results(struct task *t, struct ledger *l, struct ledger_batch *b)
{
    b->papers = ARENA_ARRAY(task_arena(t), struct filing_paper, b->count + 1);
    for (size_t i = 0; i < b->count; i++) {
        const struct ledger_record *r = &b->records[i];
        b->papers[i] = (struct filing_paper){.qid = r->qid, .doi = r->doi, .cents = r->cents};
    }
    return filing_read(t, l->redis, b->uid, b->papers, b->count);
}

static int read_batch(struct task *t, struct ledger *l, struct ledger_batch *out)
{
    const struct redis_reply *const *replies;
    int err = ask_queue(t, l, out->uid, &replies);
    if (err)
        return err;
    const struct redis_reply *r = replies[2];
    for (int i = 0; i < 2; i++)
        if (replies[i]->type == REDIS_STRING)
            (void)str_to_i64(replies[i]->str, i == 0 ? &out->synced : &out->move);
    read_records(task_arena(t), r, out);
    if (out->count < r->count)
        pass_unreadable(r, out);
    return read_results(t, l, out);
}

int ledger_batch_read(struct task *t, struct ledger *l, int64_t uid, struct ledger_batch *out)
{
    for (int i = 0; i < READS_MAX; i++) {
        *out = (struct ledger_batch){.uid = uid};
        int err = ledger_fence(t, l, &out->generation);
        if (err)
            return err;
        bool same = generation_lasts(l->redis, &out->generation);
        err = same ? read_batch(t, l, out) : 0;
        if (err)
            return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
        if (same && generation_lasts(l->redis, &out->generation))
            return 0;
    }
    return task_fail(t, ERR_UNAVAILABLE, "Redis comes and goes");
}

/* --- writing --- */

struct write {
    struct ledger *l;
    struct ledger_batch *b;
};

/* Those that are not in MySQL yet, and what they cost. */
static int new_records(struct task *t, const struct write *x, const struct ledger_row *row,
                       size_t *first, int64_t *cents)
{
    const struct ledger_batch *b = x->b;
    int64_t sum = 0;
    size_t at = 0;
    while (at < b->count && b->records[at].seq <= row->billed_seq)
        at++;
    *first = at;
    for (int64_t want = row->billed_seq + 1; at < b->count; at++, want++) {
        if (b->records[at].seq != want)
            return ledger_alarm(
                t, x->l,
                "user %lld: billing_queue has record %lld where %lld is due; records "
                "of this user are not synced until the gap is resolved",
                (long long)b->uid, (long long)b->records[at].seq, (long long)want);
        if (b->records[at].cents > row->cents - sum)
            return ledger_alarm(
                t, x->l,
                "user %lld: record %lld costs more than the %s left in MySQL; records "
                "of this user are not synced until that is resolved",
                (long long)b->uid, (long long)want,
                amount_decimal(task_arena(t), row->cents - sum).p);
        sum += b->records[at].cents;
    }
    *cents = sum;
    return 0;
}

struct str ledger_datetime(struct task *t, int64_t at_ms)
{
    char iso[TIME_ISO_BYTES];
    time_iso(at_ms * 1000, iso);
    iso[strcspn(iso, "T")] = ' ';
    iso[strcspn(iso, "Z")] = '\0';
    return str_dup(task_arena(t), str_of(iso));
}

static int write_slice(struct task *t, struct sql *c, int64_t uid, const struct ledger_record *r,
                       size_t count)
{
    enum { COLUMNS = 8 };
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, count * COLUMNS);
    for (size_t i = 0; i < count; i++) {
        struct sql_value *cell = cells + i * COLUMNS;
        bool same_time = i && r[i].at_ms == r[i - 1].at_ms;
        cell[0] = sql_int(uid);
        cell[1] = sql_text(STR("redis"));
        cell[2] = sql_int(r[i].seq);
        cell[3] = sql_text(r[i].kind);
        cell[4] = sql_text(r[i].qid);
        cell[5] = sql_text(r[i].doi);
        cell[6] = sql_int(r[i].cents);
        cell[7] = same_time ? cell[7 - COLUMNS] : sql_text(ledger_datetime(t, r[i].at_ms));
    }
    return sql_bulk(t, c,
                    "INSERT INTO billing_log (uid, source, number, kind, qid, doi, cents, at)"
                    " VALUES",
                    "", COLUMNS, count, cells, NULL);
}

/* The charges, and the verdicts that were charged for. */
static int write_records(struct task *t, struct sql *c, int64_t uid, const struct ledger_record *r,
                         const struct filing_paper *p, size_t count)
{
    int err = 0;
    for (size_t done = 0; !err && done < count; done += SLICE_ROWS) {
        struct arena_mark mark = arena_mark(task_arena(t));
        size_t n = count - done < SLICE_ROWS ? count - done : SLICE_ROWS;
        err = write_slice(t, c, uid, r + done, n);
        if (!err)
            err = filing_write(t, c, uid, p + done, n);
        arena_reset(task_arena(t), mark);
    }
    return err;
}

/* The deductions among them: their requests get the numbers. */
static int write_requests(struct task *t, struct sql *c, int64_t uid, const struct ledger_record *r,
                          size_t count)
{
    enum { COLUMNS = 5 };
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += r[i].request_id.p != NULL;
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, n * COLUMNS + 1);
    struct sql_value *cell = cells;
    for (size_t i = 0; i < count; i++) {
        if (!r[i].request_id.p)
            continue;
        cell[0] = sql_int(uid);
        cell[1] = sql_text(r[i].request_id);
        cell[2] = sql_text(STR("deduction"));
        cell[3] = sql_int(r[i].cents);
        cell[4] = sql_int(r[i].seq);
        cell += COLUMNS;
    }
    return n == 0 ? 0
                  : sql_bulk(t, c,
                             "INSERT INTO ledger_request (uid, request_id, kind, cents, number)"
                             " VALUES",
                             "ON DUPLICATE KEY UPDATE number = VALUES(number)", COLUMNS, n, cells,
                             NULL);
}

static int64_t count_resultless(const struct filing_paper *p, size_t count)
{
    int64_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += p[i].qid.p && !p[i].readable;
    return n;
}

static int write_body(struct task *t, struct sql *c, void *arg)
{
    const struct write *x = arg;
    struct ledger_batch *b = x->b;
    struct ledger_row row;
    size_t first = 0;
    int64_t cents = 0;
    int err = ledger_row_lock(t, c, b->uid, &row);
    if (!err)
        err = ledger_fence_holds(t, c, &b->generation, &b->fenced);
    if (err || !b->fenced)
        return err;
    b->older = row.billed_seq < b->synced || row.move_no < b->move;
    if (b->older)
        return ledger_alarm(
            t, x->l,
            "MySQL is older than Redis: user %lld has move %lld and record %lld in "
            "MySQL, %lld and %lld in Redis; this user is not charged until MySQL is "
            "restored",
            (long long)b->uid, (long long)row.move_no, (long long)row.billed_seq,
            (long long)b->move, (long long)b->synced);
    err = new_records(t, x, &row, &first, &cents);
    if (err)
        return err;
    size_t count = b->count - first;
    b->new_records = (int64_t)count;
    b->billed_seq = row.billed_seq + (int64_t)count;
    b->resultless = count_resultless(b->papers + first, count);
    if (count == 0)
        return 0;
    err = write_records(t, c, b->uid, b->records + first, b->papers + first, count);
    if (!err)
        err = filing_count(t, c, b->uid, b->papers + first, count);
    if (!err)
        err = write_requests(t, c, b->uid, b->records + first, count);
    if (!err)
        err = sql_on(t, c, NULL, "UPDATE user_info SET balance = ?, billed_seq = ? WHERE uid = ?",
                     sql_text(amount_decimal(task_arena(t), row.cents - cents)),
                     sql_int(b->billed_seq), sql_int(b->uid));
    return err;
}

int ledger_batch_write(struct task *t, struct ledger *l, struct ledger_batch *b)
{
    struct write x = {l, b};
    int err = ledger_tx(t, l, write_body, &x);
    if (err && b->older)
        ledger_close_user(t, l, b->uid);
    if (err == ERR_EXISTS)
        return ledger_alarm(
            t, l,
            "billing_log has records of user %lld after billed_seq: MySQL is "
            "inconsistent; records of this user are not synced until it is restored",
            (long long)b->uid);
    if (!err && b->fenced)
        metric_add(l->synced, b->new_records);
    if (!err && b->fenced && b->resultless)
        (void)ledger_alarm(t, l,
                           "user %lld: Redis has no readable results of %lld papers that are "
                           "charged; MySQL has the charges alone: run an audit",
                           (long long)b->uid, (long long)b->resultless);
    return err;
}

/* --- trimming --- */

int ledger_trim(struct task *t, struct ledger *l, int64_t uid, int64_t billed_seq)
{
    struct arena *a = task_arena(t);
    return SCRIPT(t, l->redis, ledger_trim, NULL, .ledger = key_ledger(a, uid),
                  .queue = key_billing_queue(a, uid), .deductions = key_deductions(a, uid),
                  .billed_seq = str_int(a, billed_seq));
}

/* How fast that was; the last batches count most, and small ones not at all: they take what a
 * commit takes. */
static void note_pace(struct task *t, struct ledger *l, const struct ledger_batch *b,
                      int64_t begun_us)
{
    struct ledger_pace *p = &l->pace;
    int64_t ns = 1000 * (loop_now_us(task_loop(t)) - begun_us) / b->new_records;
    if (b->new_records >= PACE_RECORDS)
        p->record_ns = p->record_ns ? (3 * p->record_ns + ns) / 4 : ns;
    p->waiting = p->waiting > b->new_records ? p->waiting - b->new_records : 0;
    p->at_ms = loop_now_ms(task_loop(t));
}

/* *taken stays false: fenced off, the records were read in another generation than MySQL has. */
static int sync_once(struct task *t, struct ledger *l, int64_t uid, bool *taken, bool *more)
{
    struct ledger_batch b;
    int64_t begun_us = loop_now_us(task_loop(t));
    int err = ledger_batch_read(t, l, uid, &b);
    if (!err && b.unreadable.p) {
        *more = true; /* it is read again, without that record */
        return ledger_put_aside(t, l, &b, taken);
    }
    if (!err && b.count)
        err = ledger_batch_write(t, l, &b);
    if (err)
        return err;
    if (b.count && b.fenced && b.new_records > 0)
        note_pace(t, l, &b, begun_us);
    *taken = b.count == 0 || b.fenced;
    *more = b.count == LEDGER_BATCH; /* also if another node was faster: the caller wants all */
    return b.count && b.fenced ? ledger_trim(t, l, uid, b.billed_seq) : 0;
}

int ledger_sync(struct task *t, struct ledger *l, int64_t uid)
{
    int err = 0;
    for (int refused = 0; refused < READS_MAX;) {
        bool taken = false, more = false;
        struct arena_mark mark = arena_mark(task_arena(t));
        err = sync_once(t, l, uid, &taken, &more);
        arena_reset(task_arena(t), mark);
        if (err || (taken && !more))
            return err;
        if (!taken) {
            l->generation = (struct generation){""}; /* read it again */
            refused++;
        }
    }
    return task_fail(t, ERR_UNAVAILABLE, "Redis comes and goes");
}

/* --- the end of a balance in Redis --- */

int ledger_let_go(struct task *t, struct ledger *l, int64_t uid)
{
    struct ledger_row row;
    int err = ledger_sync(t, l, uid);
    if (!err)
        err = ledger_row_read(t, l, uid, &row);
    if (err)
        return err;
    struct arena *a = task_arena(t);
    int64_t out[2];
    err = SCRIPT_NUMBERS(t, l->redis, ledger_let_go, 2, out, .balance = key_balance(a, uid),
                         .ledger = key_ledger(a, uid), .queue = key_billing_queue(a, uid),
                         .deductions = key_deductions(a, uid), .cents = str_int(a, row.cents),
                         .billed_seq = str_int(a, row.billed_seq),
                         .move_no = str_int(a, row.move_no));
    if (err || out[0] == 1)
        return err;
    if (out[0] == -1) {
        metric_set(l->drift, out[1] > row.cents ? out[1] - row.cents : row.cents - out[1]);
        (void)ledger_alarm(
            t, l,
            "user %lld has %s in Redis and %s in MySQL, with no record or move pending; "
            "the balance stays in Redis: run an audit",
            (long long)uid, amount_decimal(a, out[1]).p, amount_decimal(a, row.cents).p);
    }
    return task_fail(t, ERR_CONFLICT, "the balance of user %lld cannot leave Redis now",
                     (long long)uid);
}
