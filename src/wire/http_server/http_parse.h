/* http_parse.h -- the head of a request: request line and headers.
 *
 * Takes nothing that two programs could read in two ways. Incremental: a head may come in any
 * number of pieces, and where it was cut makes no difference. Copies nothing: the head points into
 * the bytes that were fed. */
#ifndef WIRE_HTTP_PARSE_H
#define WIRE_HTTP_PARSE_H

#include <stdint.h>

#include "base/str.h"
#include "wire/http_server/http_status.h"

struct http_field {
    struct str name, value;
};

enum http_framing { HTTP_NO_BODY, HTTP_SIZED, HTTP_CHUNKED };

struct http_head {
    struct str method, target; /* without "http://host" */
    struct str path, query;    /* parts of the target, still encoded; query.p == NULL if none */
    int minor;                 /* of HTTP/1.x */
    struct http_field *fields;
    size_t field_count;
    enum http_framing framing;
    uint64_t body_bytes; /* when sized */
    bool close;          /* the client wants no more requests on this connection */
    bool expects_continue;
};

struct http_parse_limits {
    size_t target_bytes, head_bytes, fields;
};

enum http_verdict { HTTP_MORE, HTTP_DONE, HTTP_BAD };

struct http_parser {
    struct http_parse_limits limits;
    struct http_head head;       /* whole after HTTP_DONE */
    struct http_problem problem; /* after HTTP_BAD */
    struct str authority;        /* of a target "http://host/path"; else p == NULL */
    int empty_lines;             /* before the request line */
    size_t used;                 /* bytes of complete lines; after HTTP_DONE those of the head */
    size_t scanned;              /* up to here no line feed was found after used; bytes of fields */
    unsigned seen;               /* headers that may come only once */
};

/* fields is the caller's, with room for limits.fields of them. */
void http_parser_init(struct http_parser *p, struct http_parse_limits limits,
                      struct http_field *fields);
/* in holds every byte since http_parser_init, where it was at the last call. Bytes after the head
 * are left alone. */
enum http_verdict http_parse(struct http_parser *p, struct str in);

/* For a head that comes as fields, not as text (HTTP/2): the same checks, part by part. The strings
 * are the caller's. After HTTP_BAD the rest need not be passed. */
enum http_verdict http_parse_field(struct http_parser *p, struct str name, struct str value);
enum http_verdict http_parse_end(struct http_parser *p, struct str method, struct str target);

/* p == NULL if there is none. */
struct str http_head_field(const struct http_head *h, struct str name);
#endif
