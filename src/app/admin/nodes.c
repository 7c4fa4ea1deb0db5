/* What is told to nodes: to take no work, to read the prompt again. */
#include "engine/judge/judge.h"
#include "engine/watch/controls.h"

#include "app/admin/call.h"
#include "app/admin/routes.h"

static int set_drained(struct task *t, struct api_call *c, struct json_writer *w)
{
    bool drained = c->route->option;
    struct admin_deed d = admin_deed_of(c);
    struct str id = http_param(c->x, "id");
    int err = control_drain(t, c->node->controls, id, drained, &d);
    if (err)
        return err;
    jw_put_str(w, "id", id);
    jw_put_bool(w, "drained", drained);
    return 0;
}

static int reload(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed d = admin_deed_of(c);
    int err = control_reload(t, c->node->controls, &d);
    if (!err)
        jw_put_str(w, "prompt", str_of(judge_prompt_mark(c->node->judge)));
    return err;
}

/* --- the table --- */

static const struct api_field reason_body[] = {{ADMIN_REASON_FIELD}, API_END};
static const struct api_field drained_reply[] = {
    {"id", API_TEXT, .most = CONTROL_ID_CHARS_MAX, .about = "of the node"},
    {"drained", API_BOOL, .about = "it takes no work, and still answers requests"},
    API_END,
};
static const struct api_field prompt_reply[] = {
    {"prompt", API_TEXT, .most = 64,
     .about = "fingerprint of what is in force now; runs that are at work keep what they have"},
    API_END,
};

const struct api_route admin_nodes_routes[] = {
    {"POST", "/api/admin/nodes/:id/drain", API_ADMIN, set_drained, "Have a node take no more work",
     .body = reason_body, .reply = drained_reply, .audit = "node.drain", .option = true},
    {"POST", "/api/admin/nodes/:id/undrain", API_ADMIN, set_drained, "Have a node take work again",
     .body = reason_body, .reply = drained_reply, .audit = "node.undrain", .option = false},
    {"POST", "/api/admin/prompts/reload", API_ADMIN, reload,
     "Read ai.prompt_file again, on all nodes", .body = reason_body, .reply = prompt_reply,
     .audit = "prompts.reload"},
    {.method = NULL},
};
