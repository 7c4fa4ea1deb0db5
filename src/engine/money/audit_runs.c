/* Runs against what they were submitted for, and against their charges and verdicts in MySQL. */
#include "engine/money/audit_private.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define RUNS_MAX  200 /* looked at in one go */
#define TRIES_MAX 20  /* while records are synced between two reads */
#define TRY_MS    20

static void report(struct task *t, struct audit_state *s, int64_t uid, const char *what,
                   struct str qid, const char *which, int64_t expected, int64_t found, bool cents)
{
    struct arena *a = task_arena(t);
    const char *want = cents && expected >= 0 ? amount_decimal(a, expected).p
                                              : arena_printf(a, "%lld", (long long)expected);
    const char *got = cents && found >= 0 ? amount_decimal(a, found).p
                                          : arena_printf(a, "%lld", (long long)found);
    int64_t off = found > expected ? found - expected : expected - found;
    audit_report(s, &(struct audit_finding){
                        .uid = uid,
                        .what = what,
                        .expected = expected,
                        .found = found,
                        .cents = cents ? off : 0,
                        .detail = arena_printf(a, "run %.*s: %s: %s is expected, %s is there",
                                               STR_ARG(qid), which, want, got)});
}

/* --- no run above its estimate --- */

static int check_ceilings(struct task *t, struct audit_state *s, const struct audit_row *row)
{
    struct sql_rows r;
    int err = sql_call(t, s->audit->sql, &r,
                       "SELECT query_id, total_papers, judged_papers,"
                       " CAST(total_cost * 100 AS SIGNED), COALESCE(ceiling, -1) FROM query_log"
                       " WHERE uid = ? AND (archived = 0 OR ?) AND"
                       " (judged_papers > total_papers OR total_cost * 100 > ceiling) LIMIT ?",
                       sql_int(row->uid), sql_int(s->audit->deep), sql_int(RUNS_MAX));
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        if (cell[2].i > cell[1].i)
            report(t, s, row->uid, "estimate", cell[0].s, "papers judged, by its estimate",
                   cell[1].i, cell[2].i, false);
        if (cell[4].i >= 0 && cell[3].i > cell[4].i)
            report(t, s, row->uid, "estimate", cell[0].s, "its cost, by its estimate", cell[4].i,
                   cell[3].i, true);
    }
    return err;
}

/* --- what is reserved follows from what runs have cost so far --- */

struct costs {
    size_t count;
    struct sql_rows rows; /* qid, cost in MySQL, billed_seq: from one snapshot */
    const struct redis_reply *redis;
};

/* Of runs after that one. */
static int read_costs(struct task *t, const struct audit *a, int64_t uid, struct str after,
                      struct costs *out)
{
    struct arena *m = task_arena(t);
    int err = sql_call(t, a->sql, &out->rows,
                       "SELECT q.query_id, CAST(q.total_cost * 100 AS SIGNED), u.billed_seq"
                       " FROM user_info u JOIN query_log q ON q.uid = u.uid WHERE u.uid = ?"
                       " AND q.archived = 0 AND q.status IN ('QUEUED', 'RUNNING', 'PAUSED')"
                       " AND q.query_id > ? ORDER BY q.query_id LIMIT ?",
                       sql_int(uid), sql_text(after), sql_int(RUNS_MAX));
    out->count = err ? 0 : out->rows.count;
    if (err || out->count == 0)
        return err;
    struct str *statuses = ARENA_ARRAY(m, struct str, out->count);
    struct str *qids = ARENA_ARRAY(m, struct str, out->count);
    for (size_t i = 0; i < out->count; i++) {
        qids[i] = sql_row(&out->rows, i)[0].s;
        statuses[i] = key_query_status(m, uid, qids[i]);
    }
    err = SCRIPT(t, a->redis, audit_costs, &out->redis, .ledger = key_ledger(m, uid),
                 .queue = key_billing_queue(m, uid), .statuses = {statuses, out->count},
                 .billed_seq = str_int(m, out->rows.cells[2].i), .qids = {qids, out->count});
    if (!err && (out->redis->type != REDIS_ARRAY || out->redis->count != 1 + 2 * out->count))
        err = task_fail(t, ERR_PROTO, "script audit_costs returned something else");
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

/* -1: all of them are right. Else the first that is not. */
static int64_t wrong_cost(const struct costs *c, size_t from)
{
    for (size_t i = from; i < c->count; i++) {
        int64_t cost = c->redis->items[1 + 2 * i]->integer;
        int64_t due = sql_row(&c->rows, i)[1].i + c->redis->items[2 + 2 * i]->integer;
        if (cost >= 0 && cost != due)
            return (int64_t)i;
    }
    return -1;
}

/* A record that was written off gave its money back, and the run does not know which it was. */
static int was_written_off(struct task *t, const struct audit *a, int64_t uid, bool *out)
{
    struct sql_rows r;
    int err = sql_call(t, a->sql, &r,
                       "SELECT 1 FROM ledger_request WHERE uid = ? AND request_id LIKE 'aside-%'"
                       " LIMIT 1",
                       sql_int(uid));
    *out = !err && r.count > 0;
    return err;
}

static void report_costs(struct task *t, struct audit_state *s, int64_t uid, const struct costs *c,
                         bool written_off)
{
    for (int64_t i = -1; (i = wrong_cost(c, (size_t)(i + 1))) >= 0;) {
        int64_t due = sql_row(&c->rows, (size_t)i)[1].i + c->redis->items[2 + 2 * i]->integer;
        int64_t cost = c->redis->items[1 + 2 * i]->integer;
        if (cost < due || !written_off)
            report(t, s, uid, "reserved", sql_row(&c->rows, (size_t)i)[0].s,
                   "its cost so far in Redis, by MySQL and what is not synced", due, cost, true);
    }
}

/* One page of them. *after: the last of it; *count: how many it had. */
static int check_costs_page(struct task *t, struct audit_state *s, const struct audit_row *row,
                            const struct generation *g, bool *settled, struct str *after,
                            size_t *count)
{
    struct costs c = {.count = 0};
    int err = 0;
    bool stood = false;
    for (int i = 0; i < TRIES_MAX && !err && !stood; i++) {
        if (i > 0)
            err = backoff_wait(t, &(struct backoff){.ms = TRY_MS});
        if (!err)
            err = read_costs(t, s->audit, row->uid, *after, &c);
        if (err || c.count == 0)
            break;
        stood = wrong_cost(&c, 0) < 0 || c.redis->items[0]->integer <= c.rows.cells[2].i;
    }
    *count = c.count;
    if (err || c.count == 0)
        return err;
    *after = sql_row(&c.rows, c.count - 1)[0].s;
    *settled = stood && generation_lasts(s->audit->redis, g);
    bool written_off = false;
    if (!*settled || wrong_cost(&c, 0) < 0)
        return 0;
    err = was_written_off(t, s->audit, row->uid, &written_off);
    if (!err)
        report_costs(t, s, row->uid, &c, written_off);
    return err;
}

static int check_costs(struct task *t, struct audit_state *s, const struct audit_row *row,
                       const struct generation *g, bool *settled)
{
    struct str after = STR("");
    size_t count = RUNS_MAX;
    int err = 0;
    while (!err && *settled && count == RUNS_MAX)
        err = check_costs_page(t, s, row, g, settled, &after, &count);
    return err;
}

/* --- every verdict has its charge, and every charge its verdict --- */

static int check_run(struct task *t, struct audit_state *s, int64_t uid, struct str qid)
{
    struct sql_rows r;
    int err = sql_call(
        t, s->audit->sql, &r,
        "SELECT q.judged_papers, q.relevant_papers, CAST(q.total_cost * 100 AS SIGNED),"
        " (SELECT COUNT(relevant) FROM search_result s WHERE s.query_id = q.query_id),"
        " (SELECT COUNT(*) FROM search_result s WHERE s.query_id = q.query_id AND s.relevant = 1),"
        " b.charges, b.cents FROM query_log q,"
        " (SELECT CAST(COALESCE(SUM(IF(kind = 'charge', 1, -1)), 0) AS SIGNED) AS charges,"
        " CAST(COALESCE(SUM(IF(kind = 'charge', cents, -cents)), 0) AS SIGNED) AS cents"
        " FROM billing_log WHERE qid = ? AND uid = ? AND kind IN ('charge', 'reversal')) b"
        " WHERE q.query_id = ? AND " AUDIT_COMPLETE,
        sql_text(qid), sql_int(uid), sql_text(qid));
    if (err || r.count == 0)
        return err;
    const struct sql_value *v = r.cells;
    if (v[3].i != v[5].i)
        report(t, s, uid, "verdicts", qid, "verdicts in search_result, by its charges", v[5].i,
               v[3].i, false);
    if (v[0].i != v[3].i)
        report(t, s, uid, "counts", qid, "papers judged, by search_result", v[3].i, v[0].i, false);
    if (v[1].i != v[4].i)
        report(t, s, uid, "counts", qid, "relevant papers, by search_result", v[4].i, v[1].i,
               false);
    if (v[2].i != v[6].i)
        report(t, s, uid, "counts", qid, "its cost, by billing_log", v[6].i, v[2].i, true);
    return 0;
}

static int check_all(struct task *t, struct audit_state *s, int64_t uid)
{
    struct str after = STR("");
    struct sql_rows r = {.count = RUNS_MAX};
    int err = 0;
    while (!err && r.count == RUNS_MAX) {
        err = sql_call(t, s->audit->sql, &r,
                       "SELECT query_id FROM query_log WHERE uid = ? AND query_id > ?"
                       " ORDER BY query_id LIMIT ?",
                       sql_int(uid), sql_text(after), sql_int(RUNS_MAX));
        for (size_t i = 0; !err && i < r.count; i++) {
            after = r.cells[i].s;
            err = check_run(t, s, uid, after);
        }
    }
    return err;
}

int audit_runs(struct task *t, struct audit_state *s, const struct audit_row *row,
               const struct generation *g, bool open, bool *settled)
{
    int err = check_ceilings(t, s, row);
    if (!err && open)
        err = check_costs(t, s, row, g, settled);
    return err || !s->audit->deep ? err : check_all(t, s, row->uid);
}
