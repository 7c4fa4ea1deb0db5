#include "engine/runs/row.h"

#include "base/json.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define POINT_CENTS     100
#define DISTILLED_SHARE 10 /* a distillation costs a tenth of the price (DIS-2) */

int run_row_read(struct task *t, const struct sql_value *cells, struct run_row *out)
{
    struct run_row row = {
        .uid = cells[0].i,
        .qid = cells[1].s,
        .changed_ms = cells[3].i,
        .created_ms = cells[4].i,
        .started_ms = cells[5].i,
        .ended_ms = cells[6].i,
        .reason = cells[7].s.p ? cells[7].s : STR(""),
        .params = cells[8].s.p ? cells[8].s : STR("{}"),
        .original_query_id = cells[9].s,
        .is_distillation = cells[10].i != 0,
        .papers = cells[11].i,
        .finished = cells[12].i,
        .relevant = cells[13].i,
        .failed = cells[14].i,
        .cents = cells[15].i,
        .archived = cells[16].i != 0,
        .simulated = cells[17].i != 0,
        .ceiling = cells[18].type == SQL_NULL ? -1 : cells[18].i,
    };
    if (!run_state_parse(cells[2].s, &row.state))
        return task_fail(t, ERR_PROTO, "query_log: run %.*s has no known status", STR_ARG(row.qid));
    *out = row;
    return 0;
}

int run_row_settled(struct task *t, const struct run_row *row, const char *what)
{
    if (row->state != RUN_DONE && row->state != RUN_CANCELLED)
        return task_fail(t, ERR_CONFLICT,
                         "the run is %s: only one that is DONE or CANCELLED can be %s",
                         run_state_name(row->state), what);
    if (!row->archived)
        return task_fail(t, ERR_CONFLICT, "the run is not archived yet: try again in a moment");
    return 0;
}

bool run_nearest_read(const struct json *params, struct run_nearest *out)
{
    const struct json *n = json_get(params, "nearest");
    out->text = json_str(json_get(n, "q"));
    return out->text.p && json_int(json_get(n, "n"), &out->papers);
}

/* What is asked, and about which papers. */
static void read_params(struct task *t, const struct run_row *row, struct run_view *v)
{
    const struct json *j;
    if (json_parse(task_arena(t), row->params, &j, NULL))
        return;
    struct str question = json_str(json_get(j, "question"));
    if (question.p)
        v->question = question;
    if (!run_nearest_read(j, &v->nearest))
        v->nearest.text = STR_NULL;
}

struct str run_row_question(struct task *t, const struct run_row *row)
{
    struct run_view v = {.question = STR("")};
    read_params(t, row, &v);
    return v.question;
}

bool run_row_prices(struct task *t, const struct run_row *row, struct run_prices *out)
{
    const struct json *params;
    int64_t total = 0, cents = row->is_distillation ? POINT_CENTS / DISTILLED_SHARE : POINT_CENTS;
    struct run_prices n = {.cheapest = INT64_MAX};
    if (json_parse(task_arena(t), row->params, &params, NULL))
        return false;
    json_each (journal, json_get(params, "journals")) {
        int64_t price, papers, cost;
        if (!json_int(json_get(journal, "price"), &price) || price < 0 ||
            !json_int(json_get(journal, "papers"), &papers) || papers < 0 ||
            __builtin_mul_overflow(price, cents, &price) ||
            __builtin_mul_overflow(price, papers, &cost) ||
            __builtin_add_overflow(total, cost, &total))
            return false;
        if (papers == 0)
            continue;
        n.cheapest = price < n.cheapest ? price : n.cheapest;
        n.dearest = price > n.dearest ? price : n.dearest;
    }
    n.all = total;
    *out = n;
    return n.cheapest != INT64_MAX;
}

int64_t run_row_ceiling(struct task *t, const struct run_row *row)
{
    struct run_prices n;
    return row->ceiling >= 0 ? row->ceiling : run_row_prices(t, row, &n) ? n.all : 0;
}

struct run_view run_row_view(struct task *t, const struct run_row *row)
{
    struct run_view v = {.state = row->state,
                         .reason = row->reason,
                         .question = STR(""),
                         .original_query_id = row->original_query_id,
                         .is_distillation = row->is_distillation,
                         .papers = row->papers,
                         .finished = row->finished,
                         .relevant = row->relevant,
                         .failed = row->failed,
                         .unjudged = row->unjudged,
                         .simulated = row->simulated,
                         .cents = row->cents,
                         .ceiling = run_row_ceiling(t, row),
                         .created_ms = row->created_ms,
                         .started_ms = row->started_ms,
                         .ended_ms = run_state_final(row->state) ? row->ended_ms : 0};
    read_params(t, row, &v);
    return v;
}

int run_row_tell(struct task *t, struct redis *r, const struct run_row *row, bool *told)
{
    struct arena *a = task_arena(t);
    bool reopened = row->ended_ms && !run_state_final(row->state);
    int64_t uid = row->uid;
    struct str qid = row->qid;
    const struct str others[] = {key_result(a, uid, qid), key_arrivals(a, uid, qid),
                                 key_relevant(a, uid, qid), key_failed(a, uid, qid),
                                 key_progress(a, uid, qid)};
    const struct redis_reply *reply;
    int err = SCRIPT(
        t, r, run_tell, &reply, .info = key_query_info(a, uid, qid),
        .status = key_query_status(a, uid, qid), .pause = key_pause_signal(a, uid, qid),
        .terminate = key_terminate_signal(a, uid, qid), .pending = key_pending(a, uid, qid),
        .inflight = key_inflight(a, uid, qid), .vain = key_vain(a, uid, qid),
        .unfinished = key_unfinished(a, uid), .others = {others, sizeof others / sizeof *others},
        .state = str_of(run_state_name(row->state)), .changed = str_int(a, row->changed_ms),
        .reason = row->reason, .question = run_row_question(t, row), .params = row->params,
        .papers = str_int(a, row->papers), .submitted = str_int(a, row->created_ms),
        .started = str_int(a, row->started_ms), .ended = str_int(a, row->ended_ms),
        .original = row->original_query_id.p ? row->original_query_id : STR(""),
        .simulated = row->simulated ? STR("1") : STR("0"),
        .reopened = reopened ? STR("1") : STR("0"));
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* idempotent */
    if (reply->type != REDIS_ARRAY || reply->count != 2)
        return task_fail(t, ERR_PROTO, "script run_tell returned something else");
    *told = reply->items[0]->integer == 1;
    return 0;
}
