/* Results against charges. */
#include "engine/money/audit_private.h"
#include "engine/store/keys.h"

#define CHARGES_MAX  1000  /* looked at in one go, in Redis */
#define VERDICTS_MAX 10000 /* in MySQL */

static void report_missing(struct task *t, struct audit_state *s, int64_t uid,
                           const struct sql_value *cell, const char *where)
{
    int64_t cents = cell[3].i;
    audit_report(s, &(struct audit_finding){
                        .uid = uid,
                        .what = "result",
                        .expected = cents,
                        .cents = cents,
                        .detail = arena_printf(
                            task_arena(t), "charge %lld: run %s, paper %s has no result in %s",
                            (long long)cell[0].i, cell[1].s.p, cell[2].s.p, where)});
}

/* One page of a run's charges. *after: the last of them. */
static int check_page(struct task *t, struct audit_state *s, const struct audit_row *row,
                      struct str qid, const struct generation *g, int64_t *after, bool *settled,
                      size_t *count)
{
    const struct audit *a = s->audit;
    struct sql_rows r;
    int err = sql_call(t, a->sql, &r,
                       "SELECT b.number, b.qid, b.doi, b.cents FROM billing_log b"
                       " LEFT JOIN ledger_reversal v ON v.uid = b.uid AND v.number = b.number"
                       " WHERE b.qid = ? AND b.uid = ? AND b.source = 'redis' AND b.number > ?"
                       " AND b.number <= ? AND b.kind = 'charge' AND v.number IS NULL"
                       " ORDER BY b.number LIMIT ?",
                       sql_text(qid), sql_int(row->uid), sql_int(*after), sql_int(row->billed_seq),
                       sql_int(CHARGES_MAX));
    *count = err ? 0 : r.count;
    if (err || r.count == 0)
        return err;
    struct str key = key_result(task_arena(t), row->uid, qid);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, a->redis);
    for (size_t i = 0; i < r.count; i++)
        redis_batch_add(&b, key, STR("HEXISTS"), key, sql_row(&r, i)[2].s);
    err = redis_batch_run(&b, &replies);
    *settled = !err && generation_lasts(a->redis, g);
    for (size_t i = 0; *settled && i < r.count; i++)
        if (replies[i]->type != REDIS_INT || replies[i]->integer != 1)
            report_missing(t, s, row->uid, sql_row(&r, i), "Redis");
    *after = sql_row(&r, r.count - 1)[0].i;
    return err;
}

static int check_run(struct task *t, struct audit_state *s, const struct audit_row *row,
                     struct str qid, int64_t after, const struct generation *g, bool *settled)
{
    size_t count;
    int err;
    do {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = check_page(t, s, row, qid, g, &after, settled, &count);
        arena_reset(task_arena(t), mark);
    } while (!err && *settled && count == CHARGES_MAX);
    return err;
}

int audit_results(struct task *t, struct audit_state *s, const struct audit_row *row, int64_t after,
                  const struct generation *g, bool *settled)
{
    const struct audit *a = s->audit;
    struct sql_rows r;
    int err =
        sql_call(t, a->sql, &r, "SELECT query_id FROM query_log WHERE uid = ? AND archived = 0",
                 sql_int(row->uid));
    *settled = true;
    for (size_t i = 0; !err && *settled && i < r.count; i++)
        err = check_run(t, s, row, r.cells[i].s, after, g, settled);
    if (err || !*settled || !a->deep)
        return err;
    err = sql_call(t, a->sql, &r,
                   "SELECT DISTINCT b.qid FROM billing_log b"
                   " LEFT JOIN query_log q ON q.query_id = b.qid WHERE b.uid = ?"
                   " AND b.source = 'redis' AND b.kind = 'charge' AND q.query_id IS NULL"
                   " AND b.qid IS NOT NULL",
                   sql_int(row->uid));
    for (size_t i = 0; !err && *settled && i < r.count; i++)
        err = check_run(t, s, row, r.cells[i].s, after, g, settled);
    return err;
}

/* A part at a time: a user may have millions of charges, and a statement has a time limit. */
int audit_verdicts(struct task *t, struct audit_state *s, const struct audit_row *row,
                   int64_t after)
{
    int err = 0;
    for (; !err && after < row->billed_seq; after += VERDICTS_MAX) {
        struct sql_rows r;
        struct arena_mark mark = arena_mark(task_arena(t));
        err = sql_call(t, s->audit->sql, &r,
                       "SELECT b.number, b.qid, b.doi, b.cents FROM billing_log b"
                       " JOIN query_log q ON q.query_id = b.qid AND " AUDIT_COMPLETE
                       " LEFT JOIN ledger_reversal v ON v.uid = b.uid AND v.number = b.number"
                       " LEFT JOIN search_result s ON s.query_id = b.qid AND s.doi = b.doi"
                       " AND s.relevant IS NOT NULL"
                       " WHERE b.uid = ? AND b.source = 'redis' AND b.number > ?"
                       " AND b.number <= LEAST(?, ?) AND b.kind = 'charge' AND v.number IS NULL"
                       " AND s.id IS NULL ORDER BY b.number",
                       sql_int(row->uid), sql_int(after), sql_int(after + VERDICTS_MAX),
                       sql_int(row->billed_seq));
        for (size_t i = 0; !err && i < r.count; i++)
            report_missing(t, s, row->uid, sql_row(&r, i), "search_result");
        arena_reset(task_arena(t), mark);
    }
    return err;
}
