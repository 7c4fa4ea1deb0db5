/* http_client_reply.h -- the parts of a reply's head that the client uses. */
#ifndef WIRE_HTTP_CLIENT_REPLY_H
#define WIRE_HTTP_CLIENT_REPLY_H

#include "base/str.h"

struct http_reply_head {
    int status;  /* 0 until there is a status line */
    int version; /* 10, 11, 20 */
    struct str content_type, location;
    int64_t retry_after_ms;
};

void http_reply_head_init(struct http_reply_head *h);

/* Takes one line, with or without its line end. A status line starts over, because interim replies
 * (100, 103) come before the real one. Values are copied into a. */
void http_reply_head_line(struct http_reply_head *h, struct arena *a, struct str line,
                          int64_t wall_ms);

/* The body, or a line, as it gathers in the caller's arena, with a NUL behind it. */
struct http_reply_body {
    char *p; /* NULL: nothing has come */
    size_t n, cap;
};

/* ahead: how many more bytes are to come; UINT64_MAX: unknown. */
void http_reply_body_add(struct http_reply_body *b, struct arena *a, struct str piece,
                         uint64_t ahead);

/* The value of a Retry-After header as time from now, 0 if it lies in the past; -1 if it is neither
 * seconds nor a date. */
int64_t http_retry_after_ms(struct str value, int64_t wall_ms);
#endif
