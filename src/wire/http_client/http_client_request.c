/* Checks a call and converts it to libcurl's form. */
#include <stdlib.h>

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

/* --- headers --- */

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

static char *header_text(struct arena *a, struct str line)
{
    struct str value = line, name = str_cut(&value, ':');
    if (str_trim(value).n == 0) /* "Name:" would make curl drop the header; this sends it empty */
        return arena_printf(a, "%.*s;", STR_ARG(name));
    return str_z(a, line);
}

static bool is_content_type(struct str line)
{
    return str_ieq(str_cut(&line, ':'), STR("Content-Type"));
}

/* Curl reads the list and never frees it. */
static void prepare_headers(struct task *t, struct httpc_transfer *x)
{
    const struct http_call *call = x->call;
    struct arena *a = task_arena(t);
    struct curl_slist *nodes = ARENA_ARRAY(a, struct curl_slist, call->header_count + 2);
    size_t n = 0;
    bool typed = false;
    for (size_t i = 0; i < call->header_count; i++) {
        nodes[n++].data = header_text(a, call->headers[i]);
        typed = typed || is_content_type(call->headers[i]);
    }
    nodes[n++].data = arena_strdup(a, "Expect:"); /* else curl waits a second for "100 Continue" */
    if (!typed)
        nodes[n++].data = arena_strdup(a, "Content-Type:"); /* else curl sends that of a form */
    for (size_t i = 0; i + 1 < n; i++)
        nodes[i].next = &nodes[i + 1];
    x->headers = nodes;
}

/* --- url --- */

static bool url_part(CURLU *url, CURLUPart part, unsigned flags, struct arena *a, char **out)
{
    char *text;
    if (curl_url_get(url, part, &text, flags) != CURLUE_OK)
        return false;
    *out = arena_strdup(a, text);
    curl_free(text);
    return true;
}

/* Short, and printable ASCII without blanks. */
static bool is_plain(const char *url)
{
    size_t n = 0;
    while (n <= URL_BYTES_MAX && url[n] > ' ' && url[n] < 0x7f)
        n++;
    return n <= URL_BYTES_MAX && url[n] == '\0';
}

/* Parsed by curl, so that the host found here is the host it connects to. */
static int find_host(struct task *t, struct httpc_transfer *x)
{
    struct arena *a = task_arena(t);
    CURLU *url = check_memory(curl_url());
    char *scheme = NULL, *name = NULL, *port = NULL;
    bool valid = is_plain(x->call->url) &&
                 curl_url_set(url, CURLUPART_URL, x->call->url, CURLU_DISALLOW_USER) == CURLUE_OK &&
                 url_part(url, CURLUPART_SCHEME, 0, a, &scheme) &&
                 url_part(url, CURLUPART_HOST, 0, a, &name) &&
                 url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, a, &port);
    curl_url_cleanup(url);
    if (!valid)
        return task_fail(t, ERR_INVALID, "not a URL to call");
    bool tls = strcmp(scheme, "https") == 0;
    if (!tls && strcmp(scheme, "http") != 0)
        return task_fail(t, ERR_INVALID, "not an http or https URL");
    x->host = httpc_host_get(x->client, tls, str_lower(a, str_of(name)).p, port);
    if (!x->host)
        return task_fail(t, ERR_BUSY, "calls to %d hosts are under way", HOSTS_MAX);
    return 0;
}

int httpc_request_prepare(struct task *t, struct httpc_transfer *x)
{
    prepare_headers(t, x);
    return find_host(t, x);
}
