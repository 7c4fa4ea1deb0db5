/* Checks a call and fills in its defaults. */
#include "wire/http_client/http_client_private.h"

bool httpc_method_repeatable(const char *method)
{
    static const char *const repeatable[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
    for (size_t i = 0; i < sizeof repeatable / sizeof *repeatable; i++) {
        if (strcmp(method, repeatable[i]) == 0)
            return true;
    }
    return false;
}

/* Only the client frames the body: a second framing header would allow request smuggling. */
static bool is_framing(struct str name)
{
    return str_ieq(name, STR("Content-Length")) || str_ieq(name, STR("Transfer-Encoding")) ||
           str_ieq(name, STR("Connection")) || str_ieq(name, STR("Expect"));
}

/* Whether a caller may send it. */
static bool header_valid(struct str line)
{
    struct str value = line, name = str_cut(&value, ':');
    return value.p && http_token_valid(name) && http_one_line(value) && !is_framing(name);
}

int httpc_call_complete(struct task *t, const struct http_client *c, struct http_call *call)
{
    if (!call->method)
        call->method = call->body.p || call->body_fn ? "POST" : "GET";
    if (!call->reply_bytes_max)
        call->reply_bytes_max = c->options.reply_bytes_max;
    if (!http_token_valid(str_of(call->method)))
        return task_fail(t, ERR_INVALID, "not a method");
    for (size_t i = 0; i < call->header_count; i++) {
        if (!header_valid(call->headers[i]))
            return task_fail(t, ERR_INVALID, "header %zu cannot be sent", i + 1);
    }
    return 0;
}
