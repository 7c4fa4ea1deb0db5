#include "app/account/tokens.h"

#include "engine/api/scope.h"
#include "engine/api/tokens.h"

int account_tokens(struct task *t, struct api_call *c, struct json_writer *w)
{
    int err = api_put_tokens(t, c, w, c->session.uid, false);
    if (err)
        return err;
    jw_put_int(w, "most", API_TOKENS_PER_USER_MAX);
    api_put_scopes(w, c->table);
    return 0;
}

static int take_scopes(struct task *t, struct api_call *c, struct str *out)
{
    const struct str *scopes;
    size_t count = api_texts(t, c, "scopes", &scopes);
    for (size_t i = 0; i < count; i++) {
        const char *why = api_scope_problem(task_arena(t), c->table, scopes[i]);
        if (why)
            return api_refuse(t, c, arena_printf(task_arena(t), "scopes[%zu]", i), "%s", why);
    }
    *out = api_scopes_join(task_arena(t), scopes, count);
    return out->n <= API_TOKEN_SCOPES_BYTES_MAX
               ? 0
               : api_refuse(t, c, "scopes", "must have at most %d bytes together",
                            API_TOKEN_SCOPES_BYTES_MAX);
}

int account_token_add(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct api_token_new n = {.uid = c->session.uid, .name = api_text(c, "name")};
    char token[API_TOKEN_BYTES];
    struct api_token made;
    api_int(c, "expires_days", &n.days);
    const char *why = api_token_name_problem(n.name);
    if (why)
        return api_refuse(t, c, "name", "%s", why);
    int err = take_scopes(t, c, &n.scopes);
    if (!err)
        err = api_token_add(t, c->node->cache, &n, token, &made);
    if (err)
        return err;
    api_put_token(t, w, &made);
    jw_put_str(w, "token", str_of(token));
    explicit_bzero(token, sizeof token);
    return 0;
}

int account_token_revoke(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    return api_revoke_token(t, c, c->session.uid);
}

const struct api_field account_tokens_reply[] = {
    {API_TOKENS_FIELD},
    {"most", API_INT, .most = API_TOKENS_PER_USER_MAX, .about = "that may be active"},
    {"applications", API_OBJECTS, .fields = api_scope_fields,
     .about = "what scopes can be made of, besides \"read\""},
    API_END,
};
const struct api_field account_token_body[] = {
    {"name", API_TEXT, .least = 1, .most = API_TOKEN_NAME_CHARS_MAX,
     .about = "what it is for; of active tokens each has another"},
    {"scopes", API_TEXTS, .least = 1, .most = API_SCOPES_MAX, .item_most = API_SCOPE_CHARS_MAX,
     .about = "what it may do; see the security scheme \"token\""},
    {"expires_days", API_INT, .optional = true, .least = 1, .most = API_TOKEN_DAYS_MAX,
     .about = "after which it is refused; never if absent"},
    API_END,
};
const struct api_field account_token_reply[] = {
    API_TOKEN_FIELDS,
    {"token", API_TEXT, .most = API_TOKEN_BYTES, .secret = true,
     .about = "for Authorization: Bearer; it is never shown again"},
    API_END,
};
