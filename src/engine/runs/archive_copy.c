/* One run, from Redis to MySQL: steps 1 to 3 of archive.h. */
#include "engine/runs/archive_private.h"
#include "engine/store/amount.h"
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

static int look_at_state(struct task *t, const struct archive *a, const struct archive_run *run,
                         bool *ended)
{
    struct str key = key_query_status(task_arena(t), run->id.uid, run->id.qid);
    const struct redis_reply *r;
    int err = redis_call(t, a->redis, key, &r, STR("HMGET"), key, STR("state"), STR("total_blocks"),
                         STR("finished_blocks"));
    if (!err && (r->type != REDIS_ARRAY || r->count != 3))
        err = task_fail(t, ERR_PROTO, "HMGET returned something else");
    if (!err)
        *ended = has_ended(run, r->items);
    return err;
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
    err = look_at_state(t, a, run, &ended);
    if (!err && ended) /* only now: there may be no more of them */
        err = ledger_sync(t, a->ledger, run->id.uid);
    *ready = !err && ended;
    return err;
}

/* --- 2: results --- */

enum { COLUMNS = 6 };

struct batch {
    const struct archive_run *run;
    size_t rows;
    struct sql_value *cells;
    bool fenced; /* false: MySQL has another generation; nothing was done */
};

static int add_row(struct task *t, struct batch *b, struct buf *words, struct str doi,
                   struct str json)
{
    struct result r;
    if (result_read(task_arena(t), json, &r))
        return task_fail(t, ERR_PROTO, "the result of %.*s is damaged", STR_ARG(doi));
    buf_clear(words);
    result_write_verdict(words, &r);
    const struct sql_value row[COLUMNS] = {
        sql_int(b->run->id.uid),
        sql_text(b->run->id.qid),
        sql_text(doi),
        sql_text(r.block_key),
        r.outcome == OUTCOME_FAILED ? sql_null() : sql_int(r.outcome == OUTCOME_HIT),
        sql_text(str_dup(task_arena(t), buf_str(words))),
    };
    memcpy(b->cells + b->rows++ * COLUMNS, row, sizeof row);
    return 0;
}

/* pairs: DOI, result, DOI, … */
static int make_batch(struct task *t, const struct redis_reply *pairs, struct batch *b)
{
    struct buf words;
    int err = 0;
    buf_init(&words);
    b->cells = ARENA_ARRAY(task_arena(t), struct sql_value, pairs->count / 2 * COLUMNS);
    for (size_t i = 0; i + 1 < pairs->count && !err; i += 2)
        err = add_row(t, b, &words, pairs->items[i]->str, pairs->items[i + 1]->str);
    buf_release(&words);
    return err;
}

/* The order of the assignments matters: each sees what those before it have made of the row. */
static int write_batch(struct task *t, struct sql *c, void *arg)
{
    struct batch *b = arg;
    int err = ledger_fence_holds(t, c, &b->run->generation, &b->fenced);
    if (err || !b->fenced)
        return err;
    return sql_bulk(t, c,
                    "INSERT INTO search_result (uid, query_id, doi, block_key, relevant, ai_result)"
                    " VALUES",
                    "ON DUPLICATE KEY UPDATE"
                    " block_key = IF(VALUES(relevant) IS NULL AND relevant IS NOT NULL, block_key,"
                    " VALUES(block_key)),"
                    " ai_result = IF(VALUES(relevant) IS NULL AND relevant IS NOT NULL, ai_result,"
                    " VALUES(ai_result)),"
                    " relevant = COALESCE(VALUES(relevant), relevant)",
                    COLUMNS, b->rows, b->cells, NULL);
}

enum { CURSOR_BYTES = 24 }; /* of HSCAN: 64 bits in decimal */

/* One page of the hash. cursor: "0" when it was the last. */
static int copy_page(struct task *t, struct archive *a, struct archive_run *run,
                     char cursor[CURSOR_BYTES])
{
    struct str key = key_result(task_arena(t), run->id.uid, run->id.qid);
    const struct redis_reply *r;
    int err = redis_call(t, a->redis, key, &r, STR("HSCAN"), key, str_of(cursor), STR("COUNT"),
                         str_int(task_arena(t), ARCHIVE_BATCH));
    if (err)
        return err;
    if (!generation_lasts(a->redis, &run->generation))
        return restarted(t);
    if (r->type != REDIS_ARRAY || r->count != 2 || r->items[0]->str.n >= CURSOR_BYTES ||
        r->items[0]->type != REDIS_STRING || r->items[1]->type != REDIS_ARRAY)
        return task_fail(t, ERR_PROTO, "HSCAN returned something else");
    struct batch b = {.run = run, .fenced = true};
    err = make_batch(t, r->items[1], &b);
    if (!err && b.rows)
        err = sql_tx(t, a->sql, write_batch, &b);
    if (err)
        return err;
    if (!b.fenced)
        return restarted(t);
    run->results += (int64_t)b.rows;
    memcpy(cursor, r->items[0]->str.p, r->items[0]->str.n + 1);
    return 0;
}

int archive_copy(struct task *t, struct archive *a, struct archive_run *run)
{
    char cursor[CURSOR_BYTES] = "0";
    int err;
    do {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = copy_page(t, a, run, cursor);
        arena_reset(task_arena(t), mark);
        if (!err)
            err = archive_keep(t, a);
    } while (!err && strcmp(cursor, "0") != 0);
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* idempotent */
}

/* --- 3: the row --- */

struct closing {
    const struct archive_run *run;
    bool fenced, closed;
};

static int write_row(struct task *t, struct sql *c, const struct archive_run *run,
                     const struct sql_value *counts, int64_t cents)
{
    int err = sql_on(t, c, NULL,
                     "UPDATE query_log SET archived = 1, finished_papers = ?, relevant_papers = ?,"
                     " failed_papers = ?, total_cost = ? WHERE query_id = ?",
                     counts[0], counts[1], counts[2],
                     sql_text(amount_decimal(task_arena(t), cents)), sql_text(run->id.qid));
    if (!err)
        err = sql_on(t, c, NULL,
                     "INSERT INTO archive_outbox (query_id, uid, changed_ms, told_at)"
                     " VALUES (?, ?, ?, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE"
                     " changed_ms = VALUES(changed_ms), told_at = VALUES(told_at)",
                     sql_text(run->id.qid), sql_int(run->id.uid), sql_int(run->changed_ms));
    return err;
}

static int count_and_write(struct task *t, struct sql *c, const struct archive_run *run)
{
    struct sql_rows counts, cost;
    int err = sql_on(t, c, &counts,
                     "SELECT COUNT(*), CAST(COALESCE(SUM(relevant = 1), 0) AS SIGNED),"
                     " COUNT(*) - COUNT(relevant) FROM search_result WHERE query_id = ?",
                     sql_text(run->id.qid));
    if (!err)
        err = sql_on(t, c, &cost,
                     "SELECT CAST(COALESCE(SUM(IF(kind = 'charge', cents, -cents)), 0) AS SIGNED)"
                     " FROM billing_log WHERE qid = ? AND uid = ?"
                     " AND kind IN ('charge', 'reversal')",
                     sql_text(run->id.qid), sql_int(run->id.uid));
    return err ? err : write_row(t, c, run, counts.cells, cost.cells[0].i);
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
    err = count_and_write(t, c, k->run);
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
