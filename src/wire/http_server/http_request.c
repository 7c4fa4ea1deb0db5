/* A handler's view of its request. */
#include "wire/http_server/http_exchange.h"
#include "wire/http_server/http_field.h"

struct str http_method(const struct http_exchange *x)
{
    return x->head->method;
}

struct str http_path(const struct http_exchange *x)
{
    return x->path;
}

struct str http_param(const struct http_exchange *x, const char *name)
{
    return http_match_param(&x->match, str_of(name));
}

struct str http_query_string(const struct http_exchange *x)
{
    return x->head->query;
}

struct str http_header(const struct http_exchange *x, const char *name)
{
    return http_head_field(x->head, str_of(name));
}

struct str http_header_list(const struct http_exchange *x, const char *name)
{
    struct str all = STR_NULL;
    for (size_t i = 0; i < x->head->field_count; i++) {
        const struct http_field *f = &x->head->fields[i];
        if (str_ieq(f->name, str_of(name)))
            all = all.p ? str_printf(task_arena(x->task), "%.*s, %.*s", STR_ARG(all),
                                     STR_ARG(f->value))
                        : f->value;
    }
    return all;
}

struct str http_cookie(const struct http_exchange *x, const char *name)
{
    return http_cookie_find(http_header(x, "cookie"), str_of(name));
}

struct str http_peer(const struct http_exchange *x)
{
    return str_of(x->conn->peer);
}

bool http_gone(const struct http_exchange *x)
{
    return x->conn->watch.gone;
}

void http_cancel_when_gone(struct http_exchange *x)
{
    x->cancel_when_gone = true;
    if (http_gone(x))
        task_cancel(x->task);
}

bool http_draining(const struct http_exchange *x)
{
    return x->conn->server->draining;
}
