/* http_status.h -- statuses and their words: reason phrases, what a request may be refused for,
 * and the one table from ERR_ codes to statuses (http_status_of in http_server.h). */
#ifndef WIRE_HTTP_STATUS_H
#define WIRE_HTTP_STATUS_H

#include <stdbool.h>

#include "base/str.h"

/* Why a request gets an answer that no handler gave. */
enum http_refusal {
    HTTP_BAD_REQUEST, /* broken or ambiguous; the connection cannot be trusted any more */
    HTTP_NOT_FOUND,
    HTTP_METHOD_NOT_ALLOWED,
    HTTP_REQUEST_TIMEOUT,
    HTTP_TOO_LARGE,
    HTTP_URI_TOO_LONG,
    HTTP_EXPECTATION_FAILED,
    HTTP_HEADERS_TOO_LARGE,
    HTTP_VERSION_NOT_SUPPORTED,
    HTTP_TOO_MANY_CONNECTIONS,
    HTTP_REFUSALS, /* how many there are */
};

struct http_problem {
    enum http_refusal why;
    const char *message; /* a constant, shown to the client; NULL when there is no problem */
};

int http_refusal_status(enum http_refusal why);
const char *http_refusal_code(enum http_refusal why); /* "bad_request": error.code, metric label */

/* "HTTP/1.1 200 OK\r\n". A status without a line is our mistake. */
struct str http_status_line(int status);

/* What outsiders may know of a failure that is not their own; NULL when they may see its text. */
const char *http_public_message(int err);
/* What is said of a failure that came without words. */
const char *http_default_message(int err);
bool http_retry_later(int err); /* the reply carries Retry-After */
#endif
