/* Runs of users. */
#include "engine/api/run.h"

#include "app/admin/call.h"
#include "app/admin/routes.h"

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    int64_t uid;
    int err = admin_path_user(t, c, &uid);
    return err ? err : api_list_runs(t, c, w, uid, ADMIN_LIMIT_DEFAULT);
}

static int find_owner(struct task *t, struct api_call *c, struct run_id *id)
{
    struct sql_rows r;
    id->qid = http_param(c->x, "id");
    int err = sql_call(t, c->node->sql, &r, "SELECT uid FROM query_log WHERE query_id = ?",
                       sql_text(id->qid));
    if (!err && r.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "there is no such run");
    if (!err)
        id->uid = r.cells[0].i;
    return err;
}

static int terminate(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed d = admin_deed_of(c);
    struct run_id id;
    enum run_state state;
    int err = find_owner(t, c, &id);
    if (!err)
        err = run_control_by(t, c->node->runs, id, RUN_TERMINATE, RUN_REASON_ADMIN, &d, &state);
    if (!err)
        jw_put_str(w, "state", str_of(run_state_name(state)));
    return err;
}

/* --- the table --- */

static const struct api_field list_query[] = {
    {API_RUNS_LIMIT_FIELD("50")}, {API_RUNS_CURSOR_FIELD}, API_END};
static const struct api_field terminate_body[] = {{ADMIN_REASON_FIELD}, API_END};

const struct api_route admin_runs_routes[] = {
    {"GET", "/api/admin/users/:uid/runs", API_ADMIN, list, "A user's runs", .query = list_query,
     .reply = api_runs_reply},
    {"POST", "/api/admin/runs/:id/terminate", API_ADMIN, terminate,
     "End a run for good; what was judged stays", .body = terminate_body, .reply = api_state_reply,
     .audit = "run.terminate"},
    {.method = NULL},
};
