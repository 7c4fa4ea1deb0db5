#include "engine/setup/endpoint.h"

#include "base/ip.h"
#include "wire/http_client/http_proxy.h"
#include "wire/http_server/http_field.h"

/* --- the address --- */

/* What follows "http://" or "https://"; p == NULL: neither does. */
static struct str after_scheme(struct str url)
{
    if (str_starts(url, STR("http://")))
        return str_skip(url, strlen("http://"));
    return str_starts(url, STR("https://")) ? str_skip(url, strlen("https://")) : STR_NULL;
}

/* Name, port and perhaps a user, up to path or query. */
static struct str authority_of(struct str rest)
{
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#')
        n++;
    return str_from(rest.p, n);
}

const char *endpoint_url_problem(struct arena *a, const char *url)
{
    struct http_url parts;
    struct str rest = after_scheme(str_of(url));
    struct str authority = rest.p ? authority_of(rest) : STR("");
    if (authority.n == 0)
        return "expected is http://… or https://…";
    if (memchr(authority.p, '@', authority.n))
        return "leave user and password before \"@\" out: they would not be sent";
    if (memchr(rest.p, '#', rest.n))
        return "leave \"#\" and what follows it out: it would not be sent";
    /* Both schemes have the same form behind the colon. */
    if (!http_url_split(str_printf(a, "http://%.*s", STR_ARG(rest)), &parts))
        return "its host, port or path cannot be read";
    return NULL;
}

const char *endpoint_base_problem(struct arena *a, const char *url)
{
    const char *problem = endpoint_url_problem(a, url);
    if (!problem && strchr(url, '?'))
        problem = "leave \"?\" and what follows it out: it would not be sent";
    return problem;
}

bool endpoint_is_plain(const char *url)
{
    struct http_url parts;
    struct ip ip;
    if (!http_url_split(str_of(url), &parts) || parts.tls)
        return false;
    struct str name = str_of(parts.name);
    if (str_starts(name, STR("["))) /* IPv6 */
        name = str_from(name.p + 1, name.n - 2);
    return ip_parse(name, &ip) ? !ip_is_loopback(&ip) : !http_name_is_local(name);
}

const char *endpoint_url(struct arena *a, const char *url, const char *path)
{
    struct str query = str_of(url), base = str_cut(&query, '?');
    while (str_ends(base, STR("/")))
        base.n--;
    return arena_printf(a, "%.*s%s%s%.*s", STR_ARG(base), str_ends(base, str_of(path)) ? "" : path,
                        query.p ? "?" : "", (int)query.n, query.p ? query.p : "");
}

const char *endpoint_proxy(struct arena *a, const char *setting, const char *url,
                           const char **problem)
{
    struct http_url parts;
    struct http_proxy_choice choice;
    struct http_proxy proxy;
    *problem = NULL;
    if (!http_url_split(str_of(url), &parts) ||
        !http_proxy_choose(setting, parts.tls, parts.name, parts.port, &choice))
        return NULL;
    const char *wrong = http_proxy_parse(a, &choice, &proxy);
    const char *source = choice.variable ? choice.variable : "ai.proxy";
    if (wrong)
        *problem = arena_printf(a, "%s is not accepted: %s", source, wrong);
    return wrong ? NULL : arena_printf(a, "%s:%s (%s)", proxy.name, proxy.port, source);
}

/* --- members of the request --- */

/* NULL: the text is no JSON object. */
static const struct json *object_of(struct arena *a, const char *text)
{
    const struct json *j;
    return json_parse(a, str_of(text), &j, NULL) == 0 && j->type == JSON_OBJECT ? j : NULL;
}

const char *endpoint_params_problem(struct arena *a, const char *text)
{
    const struct json *params = object_of(a, text);
    if (!params)
        return "expected is a JSON object, like {\"temperature\": null, \"top_p\": 1}";
    if (json_get(params, "messages") || json_get(params, "input"))
        return "\"messages\" and \"input\" are what is asked, and cannot be set";
    return NULL;
}

const struct json *endpoint_params(struct arena *a, const char *text)
{
    return *text ? object_of(a, text) : NULL;
}

/* --- headers --- */

/* Those that millrace or its HTTP client writes, or whose replies cannot be read. */
static bool is_ours(struct str name)
{
    static const struct str ours[] = {STR("Accept-Encoding"), STR("Connection"),
                                      STR("Content-Length"),  STR("Content-Type"),
                                      STR("Expect"),          STR("Transfer-Encoding")};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (str_ieq(name, ours[i]))
            return true;
    return false;
}

const char *endpoint_headers_problem(struct arena *a, const char *text)
{
    const struct json *headers = object_of(a, text);
    if (!headers)
        return "expected is a JSON object of names and values, like {\"X-Team\": \"biology\"}";
    if (headers->count > ENDPOINT_HEADERS_MAX)
        return arena_printf(a, "at most %d headers can be added", ENDPOINT_HEADERS_MAX);
    json_each (j, headers) {
        if (!http_token_valid(j->key))
            return "a name has characters that no header may have";
        if (is_ours(j->key))
            return arena_printf(a, "%.*s is not for you to set", STR_ARG(j->key));
        if (j->type != JSON_STRING || !http_value_valid(j->s))
            return arena_printf(a, "the value of %.*s must be one line of text", STR_ARG(j->key));
    }
    return NULL;
}

struct str *endpoint_headers(struct arena *a, const char *text, size_t *count)
{
    const struct json *headers = *text ? object_of(a, text) : NULL;
    struct str *lines = ARENA_ARRAY(a, struct str, headers ? headers->count : 0);
    *count = 0;
    json_each (j, headers)
        lines[(*count)++] = str_printf(a, "%.*s: %.*s", STR_ARG(j->key), STR_ARG(j->s));
    return lines;
}

const char *endpoint_key_header_problem(struct arena *a, const char *text)
{
    (void)a;
    struct str name = str_of(text);
    return http_token_valid(name) && !is_ours(name)
               ? NULL
               : "expected is the name of a header, like api-key";
}

const char *endpoint_plain_key_problem(struct arena *a, const char *text)
{
    (void)a;
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p > '~')
            return "expected is a key of printable ASCII characters, without blanks";
    return NULL;
}

struct str endpoint_key_line(struct arena *a, const char *key_header, struct str key)
{
    struct str name = str_of(key_header);
    bool bearer = str_ieq(name, STR(ENDPOINT_KEY_HEADER));
    return STR_JOIN(a, name, bearer ? STR(": Bearer ") : STR(": "), key);
}
