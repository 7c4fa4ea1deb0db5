/* results_fixture.h -- runs with results, for the tests of results and of the archive. */
#ifndef ENGINE_RUNS_RESULTS_FIXTURE_H
#define ENGINE_RUNS_RESULTS_FIXTURE_H

#include "engine/money/ledger_fixture.h"
#include "engine/runs/archive_private.h"
#include "engine/runs/results_private.h"

static inline struct results results_of(struct node *n)
{
    return (struct results){.redis = n->redis, .sql = n->sql, .ledger = n->ledger};
}

static inline struct archive archive_of(struct node *n)
{
    return (struct archive){
        .redis = n->redis, .sql = n->sql, .ledger = n->ledger, .metrics = metrics, .after_ms = 1};
}

static inline struct str doi_of(struct task *t, int i)
{
    return str_printf(task_arena(t), "10.1000/%05d", i);
}

#define MONEY 100000000 /* of a user, cents */

/* 'r' relevant, 'n' not, 'f' failed. Papers are of two blocks, turn by turn; a verdict costs 10
 * cents. */
static inline struct charge verdict_of(struct task *t, struct run_id id, int i, char kind)
{
    struct arena *a = task_arena(t);
    enum outcome outcome;
    check(outcome_read(kind, &outcome));
    struct result r = {.block_key =
                           key_block_name(a, i % 2 ? STR("A: B") : STR("Zoo"), 2000 + i % 2),
                       .outcome = outcome,
                       .reason = str_printf(a, "\"%c\" of %d", kind, i)};
    struct buf json;
    buf_init(&json);
    result_write(&json, &r);
    struct charge c = {.uid = id.uid,
                       .qid = id.qid,
                       .doi = doi_of(t, i),
                       .cents = kind == 'f' ? 0 : 10,
                       .outcome = outcome,
                       .result = str_dup(a, buf_str(&json))};
    buf_release(&json);
    return c;
}

static inline void judge(struct task *t, struct node *n, struct run_id id, int i, char kind)
{
    check(pay(t, n, verdict_of(t, id, i, kind)) == CHARGE_DONE);
}

/* Papers from first on, one for each letter. */
static inline void judge_all(struct task *t, struct node *n, struct run_id id, int first,
                             const char *kinds)
{
    for (int i = 0; kinds[i]; i++)
        judge(t, n, id, first + i, kinds[i]);
}

static inline struct run_id new_run(struct task *t, struct node *n)
{
    int64_t uid = add_user(t, n, MONEY);
    return (struct run_id){uid, add_run(t, n, uid)};
}

/* As run_control does it: the row, then Redis. Times grow by seconds, from an hour ago. */
static inline void set_state(struct task *t, struct node *n, struct run_id id, const char *state)
{
    struct str key = key_query_status(task_arena(t), id.uid, id.qid);
    struct sql_rows r;
    check(sql_call(t, n->sql, NULL,
                   "UPDATE query_log SET status = ?, archived = 0, changed_at ="
                   " IF(changed_at < UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, changed_at + INTERVAL 1"
                   " SECOND, UTC_TIMESTAMP(3) - INTERVAL 2 HOUR) WHERE query_id = ?",
                   sql_text(str_of(state)), sql_text(id.qid)) == 0);
    check(sql_call(t, n->sql, &r,
                   "SELECT CAST(UNIX_TIMESTAMP(changed_at) * 1000 AS SIGNED) FROM query_log"
                   " WHERE query_id = ?",
                   sql_text(id.qid)) == 0);
    say(t, n, STR("HSET"), key, STR("state"), str_of(state), STR("changed"),
        str_int(task_arena(t), r.cells[0].i));
    if (strcmp(state, "DONE") == 0)
        say(t, n, STR("HSET"), key, STR("total_blocks"), STR("2"), STR("finished_blocks"),
            STR("2"));
}

/* "10.1000/00001r 10.1000/00002f …": what a walk page by page gives. */
static inline struct str walk(struct task *t, struct node *n, struct run_id id,
                              enum results_kind kind, int64_t limit)
{
    struct results r = results_of(n);
    struct buf all;
    struct str cursor = STR_NULL;
    buf_init(&all);
    do {
        struct results_page page;
        int err = results_list(t, &r, id, kind, cursor, limit, &page);
        if (err)
            printf("# results_list: %s %s\n", err_name(err), task_error(t));
        check(!err && page.count <= (size_t)limit);
        for (size_t i = 0; i < page.count; i++) {
            const struct result *result = &page.rows[i].result;
            char letter = outcome_letter(result->outcome);
            check(str_eq(page.rows[i].journal, STR("A: B")) == (page.rows[i].year == 2001));
            check(result->reason.n > 3 && result->reason.p[1] == letter);
            buf_printf(&all, "%s%.*s%c", all.len ? " " : "", (int)(page.rows[i].doi.n - 8),
                       page.rows[i].doi.p + 8, letter);
        }
        cursor = page.next;
    } while (cursor.p);
    struct str out = str_dup(task_arena(t), buf_str(&all));
    buf_release(&all);
    return out;
}
#endif
