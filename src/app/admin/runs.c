/* Runs of users. */
#include "app/admin/call.h"
#include "app/admin/routes.h"
#include "engine/history.h"
#include "engine/ledger.h"

#define STATES "QUEUED|RUNNING|PAUSED|DONE|CANCELLED|FAILED"
#define ENDED  "ended by an administrator"

/* --- listing --- */

static void put_run(struct task *t, struct json_writer *w, const struct run_row *row)
{
    jw_object(w);
    jw_put_str(w, "query_id", row->qid);
    jw_put_str(w, "state", str_of(run_state_name(row->state)));
    jw_put_str(w, "reason", row->reason.n ? row->reason : STR_NULL);
    jw_put_str(w, "question", run_row_question(t, row));
    jw_put_int(w, "papers", row->papers);
    jw_put_int(w, "finished", row->finished);
    jw_put_str(w, "cost", ledger_decimal(task_arena(t), row->cents));
    api_put_time(w, "created_at", row->created_ms);
    api_put_time(w, "end_time", row->ended_ms);
    jw_end_object(w);
}

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct history h = {n->redis, n->sql, n->cache};
    struct history_page page;
    int64_t uid, limit = ADMIN_LIMIT_DEFAULT;
    api_int(c, "limit", &limit);
    int err = admin_path_user(t, c, &uid);
    if (!err)
        err = history_list(t, &h, uid, api_text(c, "cursor"), limit, &page);
    if (err == ERR_INVALID)
        return admin_cursor_refused(t, c);
    if (err)
        return err;
    cache_touch(t, n->cache, uid); /* whoever puts something of a user into Redis does */
    c->degraded = c->degraded || page.degraded;
    jw_key(w, STR("queries"));
    jw_array(w);
    for (size_t i = 0; i < page.count; i++)
        put_run(t, w, &page.runs[i]);
    jw_end_array(w);
    jw_put_str(w, "next", page.next);
    return 0;
}

/* --- ending --- */

struct ending {
    struct run_id id;
    struct str before; /* its state */
};

static int find(struct task *t, struct api_call *c, struct ending *e)
{
    struct sql_rows r;
    e->id.qid = http_param(c->x, "id");
    int err = sql_call(t, c->node->sql, &r, "SELECT uid, status FROM query_log WHERE query_id = ?",
                       sql_text(e->id.qid));
    if (err)
        return err;
    if (r.count == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no such run");
    e->id.uid = r.cells[0].i;
    e->before = r.cells[1].s;
    return 0;
}

static struct str state_json(struct task *t, struct str state)
{
    return str_printf(task_arena(t), "{\"state\":\"%.*s\"}", STR_ARG(state));
}

/* Noted before and after: what run_control does is a transaction of its own. */
static int terminate(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct runs runs = admin_runs(c->node);
    struct admin_deed d = admin_deed_of(c);
    struct ending e;
    enum run_state state;
    int err = find(t, c, &e);
    if (err)
        return err;
    d.user_uid = e.id.uid;
    d.target = e.id.qid;
    d.before = state_json(t, e.before);
    d.outcome = ADMIN_BEGUN;
    err = admin_audit_note(t, c->node->sql, &d);
    if (!err)
        err = run_control(t, &runs, e.id, RUN_TERMINATE, ENDED, &state);
    if (err)
        return err;
    struct str after = str_of(run_state_name(state));
    d.after = state_json(t, after);
    d.outcome = str_eq(after, e.before) ? ADMIN_REPEATED : ADMIN_DONE;
    err = admin_audit_note(t, c->node->sql, &d);
    if (!err)
        jw_put_str(w, "state", after);
    return err;
}

/* --- the table --- */

static const struct api_field list_query[] = {
    {"limit", API_INT, .optional = true, .least = 1, .most = HISTORY_LIMIT_MAX,
     .about = "runs on a page; 50 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = 128,
     .about = "next of the page before"},
    API_END,
};
static const struct api_field run_fields[] = {
    {"query_id", API_TEXT, .most = 64, .about = "names the run"},
    {"state", API_TEXT, .choices = STATES, .about = "what it does"},
    {"reason", API_TEXT, .optional = true, .most = RUN_REASON_BYTES_MAX,
     .about = "why it is paused or has ended"},
    {"question", API_TEXT, .most = INT32_MAX, .about = "what the AI was asked"},
    {"papers", API_INT, .most = INT32_MAX, .about = "in the run"},
    {"finished", API_INT, .most = INT32_MAX, .about = "as of the last time it was written down"},
    {"cost", API_MONEY, .about = "likewise"},
    {"created_at", API_TIME, .about = "when it was submitted"},
    {"end_time", API_TIME, .optional = true, .about = "when it ended"},
    API_END,
};
static const struct api_field list_reply[] = {
    {"queries", API_OBJECTS, .about = "newest first", .fields = run_fields},
    {"next", API_TEXT, .optional = true, .most = 128,
     .about = "cursor of the next page; null: none"},
    API_END,
};
static const struct api_field terminate_body[] = {ADMIN_REASON_FIELD, API_END};
static const struct api_field terminate_reply[] = {
    {"state", API_TEXT, .choices = STATES, .about = "what it is now"},
    API_END,
};

const struct api_route admin_runs_routes[] = {
    {"GET", "/api/admin/users/:uid/runs", API_ADMIN, list, "A user's runs", .query = list_query,
     .reply = list_reply},
    {"POST", "/api/admin/runs/:id/terminate", API_ADMIN, terminate,
     "End a run for good; what was judged stays", .body = terminate_body, .reply = terminate_reply,
     .audit = "run.terminate"},
    {.method = NULL},
};
