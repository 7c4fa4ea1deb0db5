#include "engine/api/run.h"

#include "engine/money/ledger.h"
#include "engine/store/amount.h"

#define COUNT .most = INT32_MAX

/* --- one run --- */

void api_put_progress(struct task *t, struct json_writer *w, const struct run_view *v)
{
    jw_put_str(w, "state", str_of(run_state_name(v->state)));
    const char *code = run_reason_code(v->reason);
    jw_put_str(w, "reason", v->reason.n ? v->reason : STR_NULL);
    jw_put_str(w, "reason_code", code ? str_of(code) : STR_NULL);
    jw_put_int(w, "papers", v->papers);
    jw_put_int(w, "finished", v->finished);
    jw_put_int(w, "relevant", v->relevant);
    jw_put_int(w, "failed", v->failed - v->not_judged);
    jw_put_int(w, "not_judged", v->not_judged);
    jw_put_str(w, "cost", amount_decimal(task_arena(t), v->cents));
    jw_put_int(w, "workers", v->workers);
}

void api_put_run(struct task *t, struct json_writer *w, struct str qid, const struct run_view *v)
{
    jw_put_str(w, "query_id", qid);
    api_put_progress(t, w, v);
    jw_put_str(w, "question", v->question);
    api_put_time(w, "created_at", v->created_ms);
    api_put_time(w, "start_time", v->started_ms);
    api_put_time(w, "end_time", v->ended_ms);
    jw_put_bool(w, "is_distillation", v->is_distillation);
    jw_put_str(w, "original_query_id", v->original_query_id);
    jw_put_bool(w, "simulated", v->simulated);
}

/* --- all of them --- */

int api_list_runs(struct task *t, struct api_call *c, struct json_writer *w, int64_t uid,
                  int64_t limit_default)
{
    struct node *n = c->node;
    struct history h = {n->redis, n->sql, n->cache};
    struct history_page page;
    int64_t limit = limit_default;
    api_int(c, "limit", &limit);
    int err = history_list(t, &h, uid, api_text(c, "cursor"), limit, &page);
    if (err == ERR_INVALID)
        return api_refuse(t, c, "cursor", "%s", task_error(t));
    if (err)
        return err;
    cache_touch(t, n->cache, uid); /* history_list may have filled Redis */
    c->degraded = c->degraded || page.degraded;
    jw_key(w, STR("queries"));
    jw_array(w);
    for (size_t i = 0; i < page.count; i++) {
        struct run_view v = run_row_view(t, &page.runs[i]);
        jw_object(w);
        api_put_run(t, w, page.runs[i].qid, &v);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_put_str(w, "next", page.next);
    return 0;
}

/* --- the tables --- */

const struct api_field api_run_fields[] = {
    {"query_id", API_TEXT, .most = 64, .about = "names the run"},
    {"state", API_TEXT, .choices = API_RUN_STATES, .about = "what it does now"},
    {"reason", API_TEXT, .optional = true, .most = RUN_REASON_BYTES_MAX,
     .about = "why it is paused, was ended by an admin, or failed"},
    {"reason_code", API_TEXT, .optional = true, .choices = RUN_REASON_CODES,
     .about = "the same for programs; funds: the balance is used up, resume after a recharge"},
    {"question", API_TEXT, .most = INT32_MAX, .about = "what the AI was asked"},
    {"papers", API_INT, COUNT, .about = "in the run"},
    {"finished", API_INT, COUNT, .about = "judged, failed or not judged so far"},
    {"relevant", API_INT, COUNT, .about = "of those"},
    {"failed", API_INT, COUNT,
     .about = "of those: the AI gave no verdict, and nothing was charged"},
    {"not_judged", API_INT, COUNT,
     .about = "of those: they have neither title nor abstract, the AI was not asked, and nothing "
              "was charged"},
    {"cost", API_MONEY, .about = "charged so far"},
    {"workers", API_INT, COUNT, .about = "that judge its papers now; 0 in lists"},
    {"created_at", API_TIME, .about = "when it was submitted"},
    {"start_time", API_TIME, .optional = true, .about = "when it began to run"},
    {"end_time", API_TIME, .optional = true, .about = "when it ended"},
    {"is_distillation", API_BOOL, .about = "it judges the relevant papers of another run"},
    {"original_query_id", API_TEXT, .optional = true, .most = 64, .about = "that other run"},
    {"simulated", API_BOOL,
     .about = "verdicts of it are of the simulated AI, and mean nothing; each result tells"},
    {"distillations", API_TEXTS, .optional = true, .most = RUN_DISTILLATIONS_MAX, .item_most = 64,
     .about = "runs that judge the relevant papers of this one, newest first; not in lists"},
    API_END,
};
const struct api_field api_runs_reply[] = {
    {"queries", API_OBJECTS, .about = "newest first", .fields = api_run_fields},
    {"next", API_TEXT, .optional = true, .most = 128,
     .about = "cursor of the next page; null: none"},
    API_END,
};
const struct api_field api_state_reply[] = {
    {"state", API_TEXT, .choices = API_RUN_STATES, .about = "what it does now"},
    API_END,
};
