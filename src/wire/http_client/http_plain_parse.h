/* http_plain_parse.h -- a reply of HTTP/1.1 as it comes over a plain connection.
 *
 * Takes nothing that two programs could read in two ways. Incremental: a reply may come in any
 * number of pieces, and where it was cut makes no difference. Interim replies (100, 103) are
 * skipped. Of a line that comes in several pieces the beginning is kept in the arena, nothing
 * else. */
#ifndef WIRE_HTTP_PLAIN_PARSE_H
#define WIRE_HTTP_PLAIN_PARSE_H

#include "wire/http_client/http_client_reply.h"
#include "wire/http_server/http_chunk.h"

enum http_plain_framing { HTTP_PLAIN_UNTIL_END, HTTP_PLAIN_SIZED, HTTP_PLAIN_CHUNKED };

struct http_plain_limits {
    size_t head_bytes; /* with those of interim replies */
    size_t body_bytes;
};

struct http_plain {
    struct arena *arena; /* of the head's values, too */
    struct http_plain_limits limits;
    bool to_head; /* the reply to a HEAD: no body, whatever it says */
    int64_t wall_ms;

    struct http_reply_head head; /* whole once the body has begun */
    enum http_plain_framing framing;
    bool framed; /* a header has said how long the body is */
    bool close;  /* the connection must be closed after this reply */
    bool in_body, done;
    uint64_t left; /* bytes of a sized body still to come; SIZED */
    struct http_chunks chunks;
    size_t head_bytes, body_bytes; /* so far */
    struct http_reply_body part;   /* the beginning of a line */
    const char *problem;           /* after HTTP_PLAIN_BAD */
};

/* BAD: not HTTP, or ambiguous. LIMIT: longer than allowed. */
enum http_plain_verdict {
    HTTP_PLAIN_MORE,
    HTTP_PLAIN_DATA,
    HTTP_PLAIN_END,
    HTTP_PLAIN_BAD,
    HTTP_PLAIN_LIMIT
};

void http_plain_init(struct http_plain *p, struct arena *a, struct http_plain_limits limits,
                     bool to_head, int64_t wall_ms);

/* Reads from in, and says in *used how far.
 * DATA: *data is the next piece of the body, never empty, a part of in; call again with the rest.
 * MORE: in is used up. END: the reply is whole; what is left of in does not belong to it. */
enum http_plain_verdict http_plain_next(struct http_plain *p, struct str in, size_t *used,
                                        struct str *data);

/* The connection has ended: whether that makes the reply whole (no length, no chunks). */
bool http_plain_ended(const struct http_plain *p);
#endif
