#include "app/screen/routes.h"

#include "app/screen/nearest.h"
#include "app/screen/screen.h"
#include "engine/api/choice.h"
#include "engine/api/run.h"
#include "engine/judge/prompt.h"
#include "engine/runs/archive.h"
#include "engine/runs/owed.h"
#include "engine/watch/standing.h"

#define LIMIT_DEFAULT 20

/* --- one run --- */

static int enter(struct task *t, struct api_call *c, const struct run_wish *wish,
                 const struct run_nearest *nearest, char qid[RUN_ID_BYTES], struct str *unknown)
{
    struct node *n = c->node;
    if (!nearest->text.p)
        return run_submit(t, n->runs, c->session.uid, wish, qid, unknown);
    struct neighbours_from from = {n->collections, n->sql, n->catalog};
    struct nearest_wish near = {wish->question, *nearest, wish->choice, wish->request_id};
    return nearest_submit(t, n->runs, &from, c->session.uid, &near, qid, unknown);
}

static int submit(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct run_wish wish = {.question = run_question(api_text(c, "question"))};
    struct api_choice choice;
    char qid[RUN_ID_BYTES];
    struct str unknown;
    if (wish.question.n == 0)
        return api_refuse(t, c, "question", "must not be empty");
    int err = api_choice(t, c, &choice);
    if (!err)
        err = api_request_id(t, c, &wish.request_id);
    if (err)
        return err;
    wish.choice = choice.choice;
    err = enter(t, c, &wish, &choice.nearest, qid, &unknown);
    if (err == ERR_NOT_FOUND)
        return api_choice_unknown(t, c, unknown);
    if (err == ERR_INVALID)
        return api_refuse(t, c, choice.nearest.text.p ? "nearest" : "journals", "%s",
                          task_error(t));
    if (err)
        return err;
    jw_put_str(w, "query_id", str_of(qid));
    return 0;
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
    jw_put_array(w, "distillations");
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
    struct run_id id = id_of(c);
    standing_tell(t, c->node->standing, &id, &v, 1);
    api_put_run(t, w, http_param(c->x, "id"), &v);
    err = put_distillations(t, c, w);
    if (!err_may_pass(err))
        return err;
    c->degraded = true; /* MySQL is away, and they are not known */
    return 0;
}

/* Pause, terminate: also while MySQL is away. */
static int halt(struct task *t, struct api_call *c, struct json_writer *w)
{
    enum run_state state;
    int err = run_halt(t, c->node->runs, id_of(c), (enum run_event)c->route->option, &state,
                       &c->degraded);
    if (!err)
        jw_put_str(w, "state", str_of(run_state_name(state)));
    return err;
}

static int control(struct task *t, struct api_call *c, struct json_writer *w)
{
    enum run_event e = (enum run_event)c->route->option;
    enum run_state state;
    int err = run_control(t, c->node->runs, id_of(c), e, "", &state);
    if (err)
        return err;
    c->degraded = !cache_trusts_redis(c->node->cache);
    jw_put_str(w, "state", str_of(run_state_name(state)));
    return 0;
}

static int resume_run(struct task *t, struct api_call *c, struct json_writer *w)
{
    int err = run_check_funds(t, c->node->runs, id_of(c), RUN_RESUME);
    return err ? err : control(t, c, w);
}

/* Of a run that is DONE: one request tries all its failed papers again (SCR-7). */
static int retry_failed(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct run_view v;
    int err = run_view(t, c->node->runs, id_of(c), &v);
    if (!err && v.degraded)
        err = task_fail(t, ERR_UNAVAILABLE, "a store does not answer now");
    if (!err && v.state == RUN_DONE && v.failed == v.unjudged.not_judged)
        err = task_fail(t, ERR_CONFLICT, "no paper of this run has failed");
    if (!err)
        err = run_check_funds(t, c->node->runs, id_of(c), RUN_RETRY_FAILED);
    if (!err && v.state == RUN_DONE)
        err = archive_recall(t, c->node->archive, id_of(c));
    return err ? err : control(t, c, w);
}

static int list_runs(struct task *t, struct api_call *c, struct json_writer *w)
{
    return api_list_runs(t, c, w, c->session.uid, LIMIT_DEFAULT);
}

/* --- the table --- */

static const struct api_field list_query[] = {
    {API_RUNS_LIMIT_FIELD("20")}, {API_RUNS_CURSOR_FIELD}, API_END};
static const struct api_field submit_body[] = {
    {"question", API_TEXT, .least = 1, .most = PROMPT_QUESTION_CHARS_MAX,
     .about = "what the AI shall find out about each paper"},
    {API_JOURNALS_FIELD},
    {API_YEAR_FROM_FIELD},
    {API_YEAR_TO_FIELD},
    {API_NEAREST_FIELD},
    {API_REQUEST_ID_FIELD},
    API_END,
};
static const struct api_field submit_reply[] = {
    {"query_id", API_TEXT, .most = 64, .about = "names the run"},
    API_END,
};
const struct api_route screen_routes[] = {
    {"GET", "/api/queries", API_USER, list_runs, "My runs", .query = list_query,
     .reply = api_runs_reply},
    {"POST", "/api/queries", API_USER, submit, "Submit a run", .body = submit_body,
     .reply = submit_reply, .status = 202, .body_bytes_max = API_CHOICE_BYTES_MAX},
    {"GET", "/api/queries/:id", API_USER, show_run, "How a run is", .reply = api_run_fields},
    {"POST", "/api/queries/:id/pause", API_USER, halt, "Pause a run", .reply = api_state_reply,
     .option = RUN_PAUSE},
    {"POST", "/api/queries/:id/resume", API_USER, resume_run, "Resume a run",
     .reply = api_state_reply, .option = RUN_RESUME},
    {"POST", "/api/queries/:id/terminate", API_USER, halt,
     "End a run for good; what was judged stays", .reply = api_state_reply,
     .option = RUN_TERMINATE},
    {"POST", "/api/queries/:id/retry_failed", API_USER, retry_failed,
     "Judge the papers of a run again that failed", .reply = api_state_reply,
     .option = RUN_RETRY_FAILED},
    {"GET", "/api/queries/:id/scope", API_USER, screen_scope,
     "What a run is about, and what judged it", .reply = screen_scope_reply},
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
