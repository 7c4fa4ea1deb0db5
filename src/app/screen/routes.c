#include "app/screen/routes.h"

#include "engine/history.h"
#include "engine/ledger.h"

#define LIMIT_DEFAULT 20

static void put_run(struct task *t, struct json_writer *w, const struct history_run *r)
{
    jw_object(w);
    jw_put_str(w, "query_id", r->query_id);
    jw_put_str(w, "state", r->state);
    jw_put_str(w, "reason", r->reason);
    jw_put_str(w, "question", r->question);
    jw_put_int(w, "papers", r->papers);
    jw_put_int(w, "finished", r->finished);
    jw_put_int(w, "relevant", r->relevant);
    jw_put_int(w, "failed", r->failed);
    jw_put_str(w, "cost", ledger_decimal(task_arena(t), r->cents));
    api_put_time(w, "created_at", r->created_ms);
    api_put_time(w, "start_time", r->started_ms);
    api_put_time(w, "end_time", r->ended_ms);
    jw_put_bool(w, "is_distillation", r->is_distillation);
    jw_put_str(w, "original_query_id", r->original_query_id);
    jw_end_object(w);
}

static int list_runs(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct history h = {n->redis, n->sql, n->cache};
    struct history_page page;
    int64_t limit = LIMIT_DEFAULT;
    api_int(c, "limit", &limit);
    int err = history_list(t, &h, c->session.uid, api_text(c, "cursor"), limit, &page);
    if (err == ERR_INVALID)
        return api_refuse(t, c, "cursor", "%s", task_error(t));
    if (err)
        return err;
    cache_touch(t, n->cache, c->session.uid);
    c->degraded = page.degraded;
    jw_key(w, STR("queries"));
    jw_array(w);
    for (size_t i = 0; i < page.count; i++)
        put_run(t, w, &page.runs[i]);
    jw_end_array(w);
    jw_put_str(w, "next", page.next);
    return 0;
}

#define COUNT .most = INT32_MAX

static const struct api_field list_query[] = {
    {"limit", API_INT, .optional = true, .least = 1, .most = HISTORY_LIMIT_MAX,
     .about = "runs on a page; 20 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = 128,
     .about = "next of the page before"},
    API_END,
};
static const struct api_field run_fields[] = {
    {"query_id", API_TEXT, .most = 64, .about = "names the run"},
    {"state", API_TEXT, .choices = "QUEUED|RUNNING|PAUSED|DONE|CANCELLED|FAILED",
     .about = "what it does now"},
    {"reason", API_TEXT, .optional = true, .most = 255, .about = "why it is paused or failed"},
    {"question", API_TEXT, .most = INT32_MAX, .about = "what the AI was asked"},
    {"papers", API_INT, COUNT, .about = "in the run"},
    {"finished", API_INT, COUNT, .about = "judged or failed so far"},
    {"relevant", API_INT, COUNT, .about = "of those"},
    {"failed", API_INT, COUNT,
     .about = "of those: the AI gave no verdict, and nothing was charged"},
    {"cost", API_MONEY, .about = "charged so far"},
    {"created_at", API_TIME, .about = "when it was submitted"},
    {"start_time", API_TIME, .optional = true, .about = "when it began to run"},
    {"end_time", API_TIME, .optional = true, .about = "when it ended"},
    {"is_distillation", API_BOOL, .about = "it judges the relevant papers of another run"},
    {"original_query_id", API_TEXT, .optional = true, .most = 64, .about = "that other run"},
    API_END,
};
static const struct api_field list_reply[] = {
    {"queries", API_OBJECTS, .about = "newest first", .fields = run_fields},
    {"next", API_TEXT, .optional = true, .most = 128,
     .about = "cursor of the next page; null: none"},
    API_END,
};

const struct api_route screen_routes[] = {
    {"GET", "/api/queries", API_USER, list_runs, "My runs", .query = list_query,
     .reply = list_reply},
    {.method = NULL},
};
