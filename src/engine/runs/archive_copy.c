/* One run, from Redis to MySQL: steps 1 to 3 of archive.h. */
#include "engine/runs/archive_private.h"
#include "engine/money/filing.h"
#include "engine/store/keys.h"

static int restarted(struct task *t)
{
    return task_fail(t, ERR_UNAVAILABLE, "Redis was lost while a run was archived");
}

/* --- 1: Redis is whole, the run has ended, its charges are in MySQL --- */

/* A run that is DONE has all its units done in Redis, too, or else Redis has lost some: then the
 * keeper reopens it. A run in another state only must not be charged any more, and without a status
 * it cannot be. */
static bool has_ended(const struct archive_run *run, const struct redis_reply *const *field)
{
    enum run_state state;
    bool known = field[0]->type == REDIS_STRING;
    bool final = known && run_state_parse(field[0]->str, &state) && run_state_final(state);
    if (str_eq(run->state, str_of(run_state_name(RUN_DONE))))
        return final && redis_number(field[2], -1) >= redis_number(field[1], INT64_MAX);
    return final || !known;
}

static int look(struct task *t, const struct archive *a, struct archive_run *run, bool *ended)
{
    struct arena *m = task_arena(t);
    struct str status = key_query_status(m, run->id.uid, run->id.qid);
    struct str result = key_result(m, run->id.uid, run->id.qid);
    struct str failed = key_failed(m, run->id.uid, run->id.qid);
    struct redis_batch b;
    const struct redis_reply *const *r;
    redis_batch_init(&b, t, a->redis);
    redis_batch_add(&b, status, STR("HMGET"), status, STR("state"), STR("total_blocks"),
                    STR("finished_blocks"));
    redis_batch_add(&b, result, STR("HLEN"), result);
    redis_batch_add(&b, failed, STR("SCARD"), failed);
    int err = redis_batch_run(&b, &r);
    if (!err && (r[0]->type != REDIS_ARRAY || r[0]->count != 3 || r[1]->type != REDIS_INT ||
                 r[2]->type != REDIS_INT))
        err = task_fail(t, ERR_PROTO, "the keys of a run hold something else");
    if (err)
        return err;
    *ended = has_ended(run, r[0]->items);
    run->results = r[1]->integer;
    run->failed = r[2]->integer;
    return 0;
}

int archive_prepare(struct task *t, struct archive *a, struct archive_run *run, bool *ready)
{
    int64_t cents;
    bool degraded, ended = false;
    run->generation = generation_now(a->redis);
    int err = ledger_balance(t, a->ledger, run->id.uid, &cents, &degraded);
    if (err)
        return err;
    if (degraded || !generation_lasts(a->redis, &run->generation))
        return restarted(t);
    err = look(t, a, run, &ended);
    if (!err && ended) /* only now: there may be no more of them */
        err = ledger_sync(t, a->ledger, run->id.uid);
    *ready = !err && ended;
    return err;
}

/* --- 2: results that did not come with a charge --- */

struct batch {
    const struct archive_run *run;
    struct filing_paper *papers;
    size_t count;
    void (*change)(
        struct filing_paper *p); /* what Redis has, before it is written; NULL: nothing */
    bool fenced;                 /* false: MySQL has another generation; nothing was done */
};

static int write_batch(struct task *t, struct sql *c, void *arg)
{
    struct batch *b = arg;
    int err = ledger_fence_holds(t, c, &b->run->generation, &b->fenced);
    if (err || !b->fenced)
        return err;
    return filing_write(t, c, b->run->id.uid, b->papers, b->count);
}

static int file_batch(struct task *t, struct archive *a, struct batch *b)
{
    int err = filing_read(t, a->redis, b->run->id.uid, b->papers, b->count);
    if (err)
        return err;
    if (!generation_lasts(a->redis, &b->run->generation))
        return restarted(t);
    for (size_t i = 0; i < b->count; i++)
        if (!b->papers[i].readable)
            return task_fail(t, ERR_PROTO, "the result of %.*s is damaged",
                             STR_ARG(b->papers[i].doi));
    for (size_t i = 0; b->change && i < b->count; i++)
        b->change(&b->papers[i]);
    err = b->count ? sql_tx(t, a->sql, write_batch, b) : 0;
    return !err && b->count && !b->fenced ? restarted(t) : err;
}

enum { CURSOR_BYTES = 24 }; /* of SSCAN: 64 bits in decimal */

/* One page of the papers without a verdict. cursor: "0" when it was the last. */
static int file_failures(struct task *t, struct archive *a, struct archive_run *run,
                         char cursor[CURSOR_BYTES])
{
    struct str key = key_failed(task_arena(t), run->id.uid, run->id.qid);
    const struct redis_reply *r;
    int err = redis_call(t, a->redis, key, &r, STR("SSCAN"), key, str_of(cursor), STR("COUNT"),
                         str_int(task_arena(t), ARCHIVE_BATCH));
    if (err)
        return err;
    if (r->type != REDIS_ARRAY || r->count != 2 || r->items[0]->type != REDIS_STRING ||
        r->items[0]->str.n >= CURSOR_BYTES || r->items[1]->type != REDIS_ARRAY)
        return task_fail(t, ERR_PROTO, "SSCAN returned something else");
    const struct redis_reply *dois = r->items[1];
    struct batch b = {.run = run, .count = dois->count};
    b.papers = ARENA_ARRAY(task_arena(t), struct filing_paper, b.count + 1);
    for (size_t i = 0; i < b.count; i++)
        b.papers[i] = (struct filing_paper){.qid = run->id.qid, .doi = dois->items[i]->str};
    memcpy(cursor, r->items[0]->str.p, r->items[0]->str.n + 1);
    return file_batch(t, a, &b);
}

/* One page of the charges after *after whose verdicts MySQL lacks: a version before wrote them
 * without, or their results could not be read. *count: how many it had. */
static int file_verdicts(struct task *t, struct archive *a, struct archive_run *run, int64_t *after,
                         size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, a->sql, &r,
                       "SELECT b.number, b.doi FROM billing_log b"
                       " LEFT JOIN ledger_reversal v ON v.uid = b.uid AND v.number = b.number"
                       " LEFT JOIN search_result s ON s.query_id = b.qid AND s.doi = b.doi"
                       " AND s.relevant IS NOT NULL"
                       " WHERE b.qid = ? AND b.uid = ? AND b.source = 'redis' AND b.number > ?"
                       " AND b.kind = 'charge' AND v.number IS NULL AND s.id IS NULL"
                       " ORDER BY b.number LIMIT ?",
                       sql_text(run->id.qid), sql_int(run->id.uid), sql_int(*after),
                       sql_int(ARCHIVE_BATCH));
    if (err)
        return err;
    struct batch b = {.run = run, .count = *count = r.count};
    b.papers = ARENA_ARRAY(task_arena(t), struct filing_paper, b.count + 1);
    for (size_t i = 0; i < b.count; i++) {
        *after = sql_row(&r, i)[0].i;
        b.papers[i] = (struct filing_paper){.qid = run->id.qid, .doi = sql_row(&r, i)[1].s};
    }
    return file_batch(t, a, &b);
}

/* --- verdicts without a charge ---
 *
 * The record of a charge could not be read and was written off (money/aside.c): the verdict is in
 * Redis, and neither it nor its charge is in MySQL. A verdict that is not paid for is none. The
 * paper is filed as failed, so that the run has all of its papers, and it can be tried again. A
 * verdict that is in MySQL stays (filing.h). */
#define UNPAID "{\"error\":\"its charge could not be recorded, so it cost nothing\"}"

static int refuse_aside(struct task *t, struct archive *a, int64_t uid)
{
    const struct str *list;
    size_t count = 0;
    int err = ledger_aside(t, a->ledger, uid, &list, &count);
    if (!err && count)
        err = task_fail(t, ERR_CONFLICT,
                        "a record of a charge cannot be read: release the user (millrace user "
                        "release)");
    return err;
}

static void make_unpaid(struct filing_paper *p)
{
    p->readable = p->readable && p->result.outcome != OUTCOME_FAILED;
    p->result.outcome = OUTCOME_FAILED;
    p->verdict = STR(UNPAID);
}

/* One page of all papers, from *at on. *count: how many it had. */
static int file_unpaid(struct task *t, struct archive *a, struct archive_run *run, int64_t *at,
                       size_t *count)
{
    struct str key = key_arrivals(task_arena(t), run->id.uid, run->id.qid);
    const struct redis_reply *r;
    int err = redis_call(t, a->redis, key, &r, STR("LRANGE"), key, str_int(task_arena(t), *at),
                         str_int(task_arena(t), *at + ARCHIVE_BATCH - 1));
    if (err)
        return err;
    if (r->type != REDIS_ARRAY)
        return task_fail(t, ERR_PROTO, "LRANGE returned something else");
    *at += (int64_t)r->count;
    struct batch b = {.run = run, .count = *count = r->count, .change = make_unpaid};
    b.papers = ARENA_ARRAY(task_arena(t), struct filing_paper, b.count + 1);
    for (size_t i = 0; i < b.count; i++)
        b.papers[i] = (struct filing_paper){.qid = run->id.qid, .doi = r->items[i]->str};
    return file_batch(t, a, &b);
}

/* --- all of them --- */

/* *lacks: Redis has more verdicts than `verdicts` says of MySQL. */
static int compare(struct task *t, struct archive *a, const struct archive_run *run,
                   const char *verdicts, bool *lacks)
{
    struct sql_rows r;
    int err = sql_call(t, a->sql, &r, verdicts, sql_text(run->id.qid));
    *lacks = !err && r.count && run->results - run->failed > r.cells[0].i;
    return err;
}

/* Pages of one kind. */
static int file_all(struct task *t, struct archive *a, struct archive_run *run,
                    int (*file)(struct task *t, struct archive *a, struct archive_run *run,
                                int64_t *after, size_t *count))
{
    int64_t after = 0;
    size_t count = ARCHIVE_BATCH;
    int err = 0;
    while (!err && count == ARCHIVE_BATCH) {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = file(t, a, run, &after, &count);
        arena_reset(task_arena(t), mark);
        if (!err)
            err = archive_keep(t, a);
    }
    return err;
}

static int file_all_failures(struct task *t, struct archive *a, struct archive_run *run)
{
    char cursor[CURSOR_BYTES] = "0";
    int err = 0;
    for (bool more = run->failed > 0; !err && more;) {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = file_failures(t, a, run, cursor);
        more = strcmp(cursor, "0") != 0;
        arena_reset(task_arena(t), mark);
        if (!err)
            err = archive_keep(t, a);
    }
    return err;
}

int archive_copy(struct task *t, struct archive *a, struct archive_run *run)
{
    bool lacks = false;
    int err = file_all_failures(t, a, run);
    if (!err)
        err = compare(t, a, run, "SELECT judged_papers FROM query_log WHERE query_id = ?", &lacks);
    run->recount = lacks;
    if (!err && lacks)
        err = file_all(t, a, run, file_verdicts);
    if (!err && lacks)
        err = compare(t, a, run, "SELECT COUNT(relevant) FROM search_result WHERE query_id = ?",
                      &lacks);
    if (!err && lacks)
        err = refuse_aside(t, a, run->id.uid);
    if (!err && lacks)
        err = file_all(t, a, run, file_unpaid);
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* idempotent */
}

/* --- 3: the row --- */

struct closing {
    const struct archive_run *run;
    bool fenced, closed;
};

/* Verdicts, hits and cost have been counted by filing_count; but not verdicts that were filed here,
 * perhaps by two nodes. */
static int write_row(struct task *t, struct sql *c, const struct archive_run *run)
{
    struct sql_rows r;
    int err = 0;
    if (run->recount)
        err = sql_on(t, c, NULL,
                     "UPDATE query_log SET judged_papers = (SELECT COUNT(relevant)"
                     " FROM search_result WHERE query_id = ?), relevant_papers ="
                     " (SELECT COUNT(*) FROM search_result WHERE query_id = ? AND relevant = 1)"
                     " WHERE query_id = ?",
                     sql_text(run->id.qid), sql_text(run->id.qid), sql_text(run->id.qid));
    if (!err)
        err = sql_on(t, c, &r,
                     "SELECT COUNT(*) FROM search_result WHERE query_id = ? AND relevant IS NULL",
                     sql_text(run->id.qid));
    if (!err)
        err = sql_on(t, c, NULL,
                     "UPDATE query_log SET archived = 1, failed_papers = ?,"
                     " finished_papers = judged_papers + failed_papers WHERE query_id = ?",
                     r.cells[0], sql_text(run->id.qid));
    if (!err)
        err = sql_on(t, c, NULL,
                     "INSERT INTO archive_outbox (query_id, uid, changed_ms, told_at)"
                     " VALUES (?, ?, ?, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE"
                     " changed_ms = VALUES(changed_ms), told_at = VALUES(told_at)",
                     sql_text(run->id.qid), sql_int(run->id.uid), sql_int(run->changed_ms));
    return err;
}

static int close_row(struct task *t, struct sql *c, void *arg)
{
    struct closing *k = arg;
    struct sql_rows r;
    k->closed = false;
    int err = ledger_fence_holds(t, c, &k->run->generation, &k->fenced);
    if (err || !k->fenced)
        return err;
    err = sql_on(t, c, &r,
                 "SELECT 1 FROM query_log WHERE query_id = ? AND uid = ? AND status = ?"
                 " AND archived = 0 AND CAST(UNIX_TIMESTAMP(changed_at) * 1000 AS SIGNED) = ?"
                 " FOR UPDATE",
                 sql_text(k->run->id.qid), sql_int(k->run->id.uid), sql_text(k->run->state),
                 sql_int(k->run->changed_ms));
    if (err || r.count == 0)
        return err;
    err = write_row(t, c, k->run);
    k->closed = !err;
    return err;
}

int archive_close(struct task *t, struct archive *a, const struct archive_run *run, bool *closed)
{
    struct closing k = {.run = run};
    int err = sql_tx(t, a->sql, close_row, &k);
    if (!err && !k.fenced)
        err = restarted(t);
    *closed = !err && k.closed;
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* the next round reads the outcome */
}
