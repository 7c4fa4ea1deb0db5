#include "app/screen/routes.h"

#include "app/screen/screen.h"
#include "engine/ai.h"
#include "engine/api_choice.h"
#include "engine/archive.h"
#include "engine/history.h"
#include "engine/ledger.h"

#define LIMIT_DEFAULT 20

/* --- one run --- */

static int submit(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct run_wish wish = {.question = run_question(api_text(c, "question"))};
    char qid[RUN_ID_BYTES];
    struct str unknown;
    if (wish.question.n == 0)
        return api_refuse(t, c, "question", "must not be empty");
    int err = api_choice(t, c, &wish.choice);
    if (err)
        return err;
    err = run_submit(t, c->node->runs, c->session.uid, &wish, qid, &unknown);
    if (err == ERR_NOT_FOUND)
        return api_choice_unknown(t, c, unknown);
    if (err == ERR_INVALID)
        return api_refuse(t, c, "journals", "%s", task_error(t));
    if (err)
        return err;
    jw_put_str(w, "query_id", str_of(qid));
    return 0;
}

static void put_money(struct task *t, struct json_writer *w, const char *name, int64_t cents)
{
    jw_key(w, str_of(name));
    jw_str(w, ledger_decimal(task_arena(t), cents));
}

void screen_put_progress(struct task *t, struct json_writer *w, const struct run_view *v)
{
    jw_put_str(w, "state", str_of(run_state_name(v->state)));
    jw_put_str(w, "reason", v->reason.n ? v->reason : STR_NULL);
    jw_put_int(w, "papers", v->papers);
    jw_put_int(w, "finished", v->finished);
    jw_put_int(w, "relevant", v->relevant);
    jw_put_int(w, "failed", v->failed);
    put_money(t, w, "cost", v->cents);
    jw_put_int(w, "workers", v->workers);
}

static void put_members(struct task *t, struct json_writer *w, const struct run_view *v)
{
    screen_put_progress(t, w, v);
    jw_put_str(w, "question", v->question);
    api_put_time(w, "created_at", v->created_ms);
    api_put_time(w, "start_time", v->started_ms);
    api_put_time(w, "end_time", v->ended_ms);
    jw_put_bool(w, "is_distillation", v->is_distillation);
    jw_put_str(w, "original_query_id", v->original_query_id);
}

static struct run_id id_of(const struct api_call *c)
{
    return (struct run_id){c->session.uid, http_param(c->x, "id")};
}

static int put_distillations(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str *ids;
    size_t count;
    int err = run_distillations(t, c->node->runs, id_of(c), &ids, &count);
    if (err)
        return err;
    jw_key(w, STR("distillations"));
    jw_array(w);
    for (size_t i = 0; i < count; i++)
        jw_str(w, ids[i]);
    jw_end_array(w);
    return 0;
}

static int show_run(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct run_view v;
    int err = run_view(t, c->node->runs, id_of(c), &v);
    if (err)
        return err;
    c->degraded = v.degraded;
    jw_put_str(w, "query_id", http_param(c->x, "id"));
    put_members(t, w, &v);
    return put_distillations(t, c, w);
}

static int control(struct task *t, struct api_call *c, struct json_writer *w, enum run_event e)
{
    enum run_state state;
    int err = run_control(t, c->node->runs, id_of(c), e, "", &state);
    if (err)
        return err;
    c->degraded = !cache_trusts_redis(c->node->cache);
    jw_put_str(w, "state", str_of(run_state_name(state)));
    return 0;
}

static int pause_run(struct task *t, struct api_call *c, struct json_writer *w)
{
    return control(t, c, w, RUN_PAUSE);
}

static int resume_run(struct task *t, struct api_call *c, struct json_writer *w)
{
    return control(t, c, w, RUN_RESUME);
}

static int terminate_run(struct task *t, struct api_call *c, struct json_writer *w)
{
    return control(t, c, w, RUN_TERMINATE);
}

/* Once it is DONE: one request for all of them (SCR-7). */
static int retry_failed(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct run_view v;
    int err = run_view(t, c->node->runs, id_of(c), &v);
    if (!err && v.degraded)
        err = task_fail(t, ERR_UNAVAILABLE, "Redis does not answer now");
    if (!err && v.state == RUN_DONE && v.failed == 0)
        err = task_fail(t, ERR_CONFLICT, "no paper of this run has failed");
    if (!err && v.state == RUN_DONE)
        err = archive_recall(t, c->node->archive, id_of(c));
    return err ? err : control(t, c, w, RUN_RETRY_FAILED);
}

/* --- all of them --- */

static void put_run(struct task *t, struct json_writer *w, const struct run_row *row)
{
    struct run_view v = run_row_view(t, row);
    jw_object(w);
    jw_put_str(w, "query_id", row->qid);
    put_members(t, w, &v);
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

#define STATES "QUEUED|RUNNING|PAUSED|DONE|CANCELLED|FAILED"
#define COUNT  .most = INT32_MAX

static const struct api_field list_query[] = {
    {"limit", API_INT, .optional = true, .least = 1, .most = HISTORY_LIMIT_MAX,
     .about = "runs on a page; 20 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = 128,
     .about = "next of the page before"},
    API_END,
};
static const struct api_field run_fields[] = {
    {"query_id", API_TEXT, .most = 64, .about = "names the run"},
    {"state", API_TEXT, .choices = STATES, .about = "what it does now"},
    {"reason", API_TEXT, .optional = true, .most = 255, .about = "why it is paused or failed"},
    {"question", API_TEXT, .most = INT32_MAX, .about = "what the AI was asked"},
    {"papers", API_INT, COUNT, .about = "in the run"},
    {"finished", API_INT, COUNT, .about = "judged or failed so far"},
    {"relevant", API_INT, COUNT, .about = "of those"},
    {"failed", API_INT, COUNT,
     .about = "of those: the AI gave no verdict, and nothing was charged"},
    {"cost", API_MONEY, .about = "charged so far"},
    {"workers", API_INT, COUNT, .about = "that judge its papers now"},
    {"created_at", API_TIME, .about = "when it was submitted"},
    {"start_time", API_TIME, .optional = true, .about = "when it began to run"},
    {"end_time", API_TIME, .optional = true, .about = "when it ended"},
    {"is_distillation", API_BOOL, .about = "it judges the relevant papers of another run"},
    {"original_query_id", API_TEXT, .optional = true, .most = 64, .about = "that other run"},
    {"distillations", API_TEXTS, .optional = true, .most = RUN_DISTILLATIONS_MAX, .item_most = 64,
     .about = "runs that judge the relevant papers of this one, newest first; not in lists"},
    API_END,
};
static const struct api_field submit_body[] = {
    {"question", API_TEXT, .least = 1, .most = AI_QUESTION_CHARS_MAX,
     .about = "what the AI shall find out about each paper"},
    API_CHOICE_FIELDS,
    API_END,
};
static const struct api_field submit_reply[] = {
    {"query_id", API_TEXT, .most = 64, .about = "names the run"},
    API_END,
};
static const struct api_field state_reply[] = {
    {"state", API_TEXT, .choices = STATES, .about = "what it does now"},
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
    {"POST", "/api/queries", API_USER, submit, "Submit a run", .body = submit_body,
     .reply = submit_reply, .status = 202, .body_bytes_max = API_CHOICE_BYTES_MAX},
    {"GET", "/api/queries/:id", API_USER, show_run, "How a run is", .reply = run_fields},
    {"POST", "/api/queries/:id/pause", API_USER, pause_run, "Pause a run", .reply = state_reply},
    {"POST", "/api/queries/:id/resume", API_USER, resume_run, "Resume a run", .reply = state_reply},
    {"POST", "/api/queries/:id/terminate", API_USER, terminate_run,
     "End a run for good; what was judged stays", .reply = state_reply},
    {"POST", "/api/queries/:id/retry_failed", API_USER, retry_failed,
     "Judge the papers of a run again that failed", .reply = state_reply},
    {"GET", "/api/queries/:id/events", API_USER, screen_events,
     "How a run goes on, as server-sent events: state, progress", .media = "text/event-stream"},
    {"GET", "/api/queries/:id/results", API_USER, screen_results,
     "What was found out, page by page", .query = screen_results_query,
     .reply = screen_results_reply},
    {"GET", "/api/queries/:id/paper", API_USER, screen_paper,
     "One paper of a run: what it says, and what was found out", .query = screen_paper_query,
     .reply = screen_paper_reply},
    {.method = NULL},
};
