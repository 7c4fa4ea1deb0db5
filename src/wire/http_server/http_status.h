/* http_status.h -- statuses and their texts: reason phrases, reasons for refusal, and the one
 * table from ERR_ codes to statuses (http_status_of in http_server.h). */
#ifndef WIRE_HTTP_STATUS_H
#define WIRE_HTTP_STATUS_H

#include <stdbool.h>

#include "base/str.h"

/* Why a request is answered without a handler. */
enum http_refusal {
    HTTP_BAD_REQUEST, /* broken or ambiguous; the connection cannot be trusted any more */
    HTTP_NOT_FOUND,
    HTTP_METHOD_NOT_ALLOWED,
    HTTP_REQUEST_TIMEOUT,
    HTTP_TOO_LARGE,
    HTTP_URI_TOO_LONG,
    HTTP_UNSUPPORTED_CODING,
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

extern const struct http_refused {
    int status;
    const char *code; /* "bad_request": error.code, metric label */
} http_refused[HTTP_REFUSALS];

/* "HTTP/1.1 200 OK\r\n". An unknown status stops the process. */
struct str http_status_line(int status);

struct http_failure {
    int status;
    const char *public_message;  /* it is not the caller's fault; NULL: its own text is public */
    const char *default_message; /* where it came without a text */
    bool retry_later;            /* the reply carries Retry-After */
};
const struct http_failure *http_failure_of(int err);
#endif
