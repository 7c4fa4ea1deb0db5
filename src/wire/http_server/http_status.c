#include "wire/http_server/http_status.h"

#include "base/check.h"
#include "base/err.h"
#include "wire/http_server.h"

const struct http_refused http_refused[HTTP_REFUSALS] = {
    [HTTP_BAD_REQUEST] = {400, "bad_request"},
    [HTTP_NOT_FOUND] = {404, "not_found"},
    [HTTP_METHOD_NOT_ALLOWED] = {405, "method_not_allowed"},
    [HTTP_REQUEST_TIMEOUT] = {408, "request_timeout"},
    [HTTP_TOO_LARGE] = {413, "too_large"},
    [HTTP_URI_TOO_LONG] = {414, "uri_too_long"},
    [HTTP_UNSUPPORTED_CODING] = {415, "unsupported_coding"},
    [HTTP_EXPECTATION_FAILED] = {417, "expectation_failed"},
    [HTTP_HEADERS_TOO_LARGE] = {431, "headers_too_large"},
    [HTTP_VERSION_NOT_SUPPORTED] = {505, "version_not_supported"},
    [HTTP_TOO_MANY_CONNECTIONS] = {503, "too_many_connections"},
};

#define LINE(status, reason)                                                                       \
    {                                                                                              \
        status, STR("HTTP/1.1 " #status " " reason "\r\n")                                         \
    }

static const struct {
    int status;
    struct str line;
} lines[] = {
    LINE(200, "OK"),
    LINE(201, "Created"),
    LINE(202, "Accepted"),
    LINE(204, "No Content"),
    LINE(206, "Partial Content"),
    LINE(301, "Moved Permanently"),
    LINE(302, "Found"),
    LINE(303, "See Other"),
    LINE(304, "Not Modified"),
    LINE(307, "Temporary Redirect"),
    LINE(308, "Permanent Redirect"),
    LINE(400, "Bad Request"),
    LINE(401, "Unauthorized"),
    LINE(402, "Payment Required"),
    LINE(403, "Forbidden"),
    LINE(404, "Not Found"),
    LINE(405, "Method Not Allowed"),
    LINE(406, "Not Acceptable"),
    LINE(408, "Request Timeout"),
    LINE(409, "Conflict"),
    LINE(410, "Gone"),
    LINE(413, "Content Too Large"),
    LINE(414, "URI Too Long"),
    LINE(415, "Unsupported Media Type"),
    LINE(416, "Range Not Satisfiable"),
    LINE(417, "Expectation Failed"),
    LINE(418, "I'm a teapot"),
    LINE(422, "Unprocessable Content"),
    LINE(429, "Too Many Requests"),
    LINE(431, "Request Header Fields Too Large"),
    LINE(500, "Internal Server Error"),
    LINE(501, "Not Implemented"),
    LINE(502, "Bad Gateway"),
    LINE(503, "Service Unavailable"),
    LINE(504, "Gateway Timeout"),
    LINE(505, "HTTP Version Not Supported"),
    LINE(507, "Insufficient Storage"),
};

struct str http_status_line(int status)
{
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (lines[i].status == status)
            return lines[i].line;
    bool known = false;
    check(known); /* a handler chose a status that is not in the list */
    return STR_NULL;
}

/* The one table. An error that is not the caller's fault has a public message: its own text may
 * name hosts, keys and queries, and goes to the log only. */
static const struct http_failure answers[] = {
    [-ERR_CANCELED] = {503, "the request was given up, try again", "", true},
    [-ERR_TIMEOUT] = {504, "the request took too long", "", false},
    [-ERR_IO] = {500, "internal error", "", false},
    [-ERR_CLOSED] = {502, "a service this depends on failed", "", false},
    [-ERR_PROTO] = {502, "a service this depends on failed", "", false},
    [-ERR_LIMIT] = {413, NULL, "too large", false},
    [-ERR_BUSY] = {503, "busy, try again", "", true},
    [-ERR_UNAVAILABLE] = {503, "temporarily unavailable, try again", "", true},
    /* No Retry-After: an automatic retry might do it twice. */
    [-ERR_UNCERTAIN] = {502, "the outcome is unknown, look before trying again", "", false},
    [-ERR_INVALID] = {400, NULL, "the request is invalid", false},
    [-ERR_NOT_FOUND] = {404, NULL, "not found", false},
    [-ERR_EXISTS] = {409, NULL, "exists already", false},
    [-ERR_CONFLICT] = {409, NULL, "not possible in the present state", false},
    [-ERR_UNAUTHENTICATED] = {401, NULL, "not logged in", false},
    [-ERR_FORBIDDEN] = {403, NULL, "not allowed", false},
    [-ERR_FUNDS] = {402, NULL, "the balance is too low", false},
    [-ERR_RATE] = {429, NULL, "too many requests", true},
    [-ERR_REFUSED] = {502, "a service this depends on failed", "", false},
    [-ERR_INTERNAL] = {500, "internal error", "", false},
    [-ERR_SCOPE] = {403, NULL, "the API token is not for this", false},
};
_Static_assert(sizeof(answers) / sizeof(answers[0]) == -ERR_LAST + 1, "every code has an answer");

const struct http_failure *http_failure_of(int err)
{
    check(err < 0);
    return &answers[err < ERR_LAST ? -ERR_INTERNAL : -err];
}

int http_status_of(int err)
{
    return http_failure_of(err)->status;
}
