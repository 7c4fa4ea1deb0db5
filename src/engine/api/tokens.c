#include "engine/api/tokens.h"

const struct api_field api_token_fields[] = {API_TOKEN_FIELDS, API_END};

struct str api_token_state(struct task *t, const struct api_token *token)
{
    bool expired = token->expires_ms && token->expires_ms <= loop_wall_ms(task_loop(t));
    return token->revoked_ms ? STR("revoked") : expired ? STR("expired") : STR("active");
}

void api_put_token(struct task *t, struct json_writer *w, const struct api_token *token)
{
    api_put_fields(t, w, api_token_fields, token);
    jw_put_array(w, "scopes");
    for (struct str rest = token->scopes; rest.p;)
        jw_str(w, str_cut(&rest, ' '));
    jw_end_array(w);
    jw_put_str(w, "state", api_token_state(t, token));
}

int api_put_tokens(struct task *t, struct api_call *c, struct json_writer *w, int64_t uid, bool all)
{
    struct api_token *tokens;
    size_t count;
    int err = api_token_list(t, c->node->sql, uid, all, &tokens, &count);
    if (err)
        return err;
    jw_put_array(w, "tokens");
    for (size_t i = 0; i < count; i++) {
        jw_object(w);
        api_put_token(t, w, &tokens[i]);
        jw_end_object(w);
    }
    jw_end_array(w);
    return 0;
}

int api_revoke_token(struct task *t, struct api_call *c, int64_t uid)
{
    struct admin_deed d = {.target = STR_NULL};
    int64_t id;
    if (c->route->audit)
        d = api_deed(c);
    int err = str_to_i64(http_param(c->x, "token_id"), &id) && id > 0 ? 0 : ERR_NOT_FOUND;
    if (!err)
        err = api_token_revoke(t, c->node->cache, uid, id, c->route->audit ? &d : NULL);
    return err == ERR_NOT_FOUND ? task_fail(t, err, "there is no such API token") : err;
}
