#include "engine/runs/archive.h"

#include "base/log.h"
#include "engine/runs/archive_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define RUNS_AT_ONCE   100
#define EXPIRE_AT_ONCE 500

int64_t archive_after_ms(const struct archive *a)
{
    return a->after_ms ? a->after_ms : ARCHIVE_AFTER_MS;
}

int archive_keep(struct task *t, struct archive *a)
{
    int err = a->turn ? role_keep(t, a->turn) : 0;
    return err == ERR_CONFLICT ? task_fail(t, ERR_UNAVAILABLE, "another node archives by now")
                               : err;
}

static void count(const struct archive *a, const char *name, const char *help, int64_t n)
{
    if (a->metrics && n)
        metric_add(metric(a->metrics, METRIC_COUNTER, name, "", help), n);
}

static void show(const struct archive *a, int64_t waiting)
{
    if (!a->metrics)
        return;
    metric_set(
        metric(a->metrics, METRIC_GAUGE, "millrace_archive_waiting", "",
               "Runs that have ended and are not archived yet, as the node sees that does it."),
        waiting);
    metric_set(metric(a->metrics, METRIC_GAUGE, "millrace_archive_stuck", "",
                      "Those of them that could not be archived when it was last tried."),
               a->stuck);
}

/* --- step 4: what is archived may leave Redis --- */

static int expire_run(struct task *t, struct archive *a, struct run_id id, int64_t changed_ms,
                      int64_t *keys)
{
    struct arena *m = task_arena(t);
    const struct str others[] = {
        key_query_info(m, id.uid, id.qid),   key_result(m, id.uid, id.qid),
        key_arrivals(m, id.uid, id.qid),     key_relevant(m, id.uid, id.qid),
        key_failed(m, id.uid, id.qid),       key_progress(m, id.uid, id.qid),
        key_pause_signal(m, id.uid, id.qid), key_terminate_signal(m, id.uid, id.qid),
    };
    int err = SCRIPT_NUMBER(
        t, a->redis, run_expire, keys, .status = key_query_status(m, id.uid, id.qid),
        .pending = key_pending(m, id.uid, id.qid), .inflight = key_inflight(m, id.uid, id.qid),
        .vain = key_vain(m, id.uid, id.qid), .others = {others, sizeof others / sizeof *others},
        .changed = str_int(m, changed_ms), .ms = str_int(m, ARCHIVE_TTL_MS));
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

/* cells: a row of archive_outbox. It is deleted once no key needed a TTL for archive_after_ms. */
static int settle(struct task *t, struct archive *a, const struct sql_value *cells)
{
    struct run_id id = {cells[1].i, cells[0].s};
    int64_t keys = 0;
    int err = expire_run(t, a, id, cells[2].i, &keys);
    if (err)
        return err;
    if (keys > 0)
        return sql_call(t, a->sql, NULL,
                        "UPDATE archive_outbox SET told_at = UTC_TIMESTAMP(3)"
                        " WHERE query_id = ? AND changed_ms = ?",
                        cells[0], cells[2]);
    bool old = cells[3].i != 0;
    return keys == 0 && !old ? 0
                             : sql_call(t, a->sql, NULL,
                                        "DELETE FROM archive_outbox"
                                        " WHERE query_id = ? AND changed_ms = ?",
                                        cells[0], cells[2]);
}

int archive_expire(struct task *t, struct archive *a)
{
    struct str after = STR("");
    int err = 0;
    for (bool more = true; more && !err;) {
        struct sql_rows r;
        err =
            sql_call(t, a->sql, &r,
                     "SELECT query_id, uid, changed_ms,"
                     " told_at <= UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND FROM archive_outbox"
                     " WHERE query_id > ? ORDER BY query_id LIMIT ?",
                     sql_int(1000 * archive_after_ms(a)), sql_text(after), sql_int(EXPIRE_AT_ONCE));
        for (size_t i = 0; !err && i < r.count; i++) {
            after = sql_row(&r, i)[0].s;
            err = settle(t, a, sql_row(&r, i));
            if (!err)
                err = archive_keep(t, a);
        }
        more = !err && r.count == EXPIRE_AT_ONCE;
    }
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

/* --- all runs --- */

int archive_run(struct task *t, struct archive *a, struct archive_run *run, bool *done)
{
    bool ready = false;
    int err = archive_prepare(t, a, run, &ready);
    if (err || !ready)
        return err;
    err = archive_copy(t, a, run);
    if (!err)
        err = archive_close(t, a, run, done);
    return err;
}

static int try_run(struct task *t, struct archive *a, struct archive_run *run, int64_t last_stuck,
                   int64_t *archived)
{
    bool done = false;
    int err = archive_run(t, a, run, &done);
    if (done) {
        (*archived)++;
        count(a, "millrace_archive_runs_total", "Runs archived.", 1);
        count(a, "millrace_archive_results_total", "Results of archived runs.", run->results);
    }
    if (!err || err_is_outage(err))
        return err;
    if (++a->stuck > last_stuck)
        log_error("archive",
                  "cannot archive run %.*s of user %lld, it stays in Redis, will retry: %s",
                  STR_ARG(run->id.qid), (long long)run->id.uid, task_error(t));
    return 0;
}

static int archive_page(struct task *t, struct archive *a, int64_t last_stuck, char *after,
                        size_t after_bytes, size_t *found, int64_t *archived)
{
    struct sql_rows r;
    int err = sql_call(t, a->sql, &r,
                       "SELECT query_id, uid, status,"
                       " CAST(UNIX_TIMESTAMP(changed_at) * 1000 AS SIGNED) FROM query_log"
                       " WHERE archived = 0 AND status IN ('DONE', 'CANCELLED', 'FAILED')"
                       " AND query_id > ? ORDER BY query_id LIMIT ?",
                       sql_text(str_of(after)), sql_int(RUNS_AT_ONCE));
    *found = err ? 0 : r.count;
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        struct arena_mark mark = arena_mark(task_arena(t));
        struct archive_run run = {
            .id = {cell[1].i, cell[0].s}, .state = cell[2].s, .changed_ms = cell[3].i};
        check(cell[0].s.n < after_bytes);
        memcpy(after, cell[0].s.p, cell[0].s.n + 1);
        err = try_run(t, a, &run, last_stuck, archived);
        arena_reset(task_arena(t), mark);
    }
    return err;
}

static int count_waiting(struct task *t, struct archive *a)
{
    struct sql_rows r;
    int err = sql_call(t, a->sql, &r,
                       "SELECT COUNT(*) FROM query_log WHERE archived = 0"
                       " AND status IN ('DONE', 'CANCELLED', 'FAILED')");
    if (!err)
        show(a, r.cells[0].i);
    return err;
}

int archive_round(struct task *t, struct archive *a, int64_t *archived)
{
    char after[256 + 1] = ""; /* 64 characters of UTF-8 */
    size_t found;
    int64_t last_stuck = a->stuck;
    int err;
    *archived = a->stuck = 0;
    do {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = archive_page(t, a, last_stuck, after, sizeof after, &found, archived);
        arena_reset(task_arena(t), mark);
    } while (!err && found == RUNS_AT_ONCE);
    if (!err)
        err = archive_expire(t, a);
    return err ? err : count_waiting(t, a);
}

/* --- in the background --- */

int archive_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct archive *a = arg;
    int64_t archived;
    a->turn = turn;
    int err = archive_round(t, a, &archived);
    a->turn = NULL;
    return err;
}

void archive_elsewhere(void *arg)
{
    struct archive *a = arg;
    a->stuck = 0;
    show(a, 0); /* only the node that archives reports */
}
