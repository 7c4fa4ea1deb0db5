/* http_server.h -- HTTP/1.1 for the API and the pages: one task per connection.
 * HTTP/2, with prior knowledge over plain TCP or by ALPN over TLS: one task per stream.
 *
 * The parser takes nothing ambiguous: a request that two programs could read in
 * two ways is answered 400 and the connection is closed. Every connection is
 * always under exactly one deadline: idle, header, body, handler or write.
 * A handler is straight-line code; it returns 0 after replying, or an ERR_ code,
 * which one table turns into a status and the API's error body. */
#ifndef WIRE_HTTP_SERVER_H
#define WIRE_HTTP_SERVER_H

#include "base/json.h"
#include "base/metrics.h"
#include "base/str.h"
#include "loop/task.h"

struct http_server;
struct tls_server;
struct http_exchange; /* one request and its reply */

struct http_limits {
    size_t connections_max;  /* more are answered 503 at once; a flood of them is just closed */
    size_t header_bytes_max; /* request line and headers together */
    size_t headers_max;
    size_t target_bytes_max;
    int64_t idle_ms;    /* between requests */
    int64_t header_ms;  /* first byte to the end of the headers; a TLS handshake from its accept */
    int64_t body_ms;    /* the whole body */
    int64_t handler_ms; /* the handler, without the times of its body and reply; no streams */
    int64_t write_ms;   /* progress must be made within this */
};
extern const struct http_limits http_limits_default;

struct http_options {
    struct http_limits limits;
    struct metrics *metrics; /* may be NULL */
    bool behind_tls;         /* adds Strict-Transport-Security */
    bool http2;              /* also HTTP/2, for clients that begin with its preface */
    /* Borrowed; NULL: plain. Over TLS its ALPN decides about HTTP/2. A client that speaks plain
     * HTTP is answered 400; one over connections_max is closed without a reply. */
    struct tls_server *tls;
    int64_t tls_delay_ms; /* each handshake takes so much longer; for the simulator */
};

typedef int http_handler(struct task *t, struct http_exchange *x, void *ctx);

/* In a pattern ":name" takes one segment, a last "*" the rest. At each segment a literal goes
 * before ":name" and that before "*". The path alone decides; a method that it does not have is
 * answered 405, even where a "*" would match. */
struct http_route {
    const char *method;  /* "GET" also answers HEAD */
    const char *pattern; /* "/api/queries/:id/events" */
    http_handler *handler;
    size_t body_max; /* 0: a body of up to 64 KB is ignored, a longer one refused */
};

struct http_server *http_server_new(struct loop *l, const struct http_options *o);
/* Routes and ctx are borrowed. Two routes for the same path and method stop the process. */
void http_server_add(struct http_server *s, const struct http_route *routes, size_t n, void *ctx);
/* Serves until the task is cancelled or http_server_drain() has been called and the last
 * connection has ended. fd is borrowed, listening and non-blocking; several processes may
 * serve the same one. */
MUST_CHECK int http_server_run(struct task *t, struct http_server *s, int fd);
/* Takes no more connections, ends idle ones that have been served, lets exchanges finish with
 * `Connection: close`, tells streams to end. A connection that has not been served yet gets its
 * answer. */
void http_server_drain(struct http_server *s);
void http_server_free(struct http_server *s); /* after http_server_run has returned */
size_t http_server_connections(const struct http_server *s);

/* The request. Everything borrowed until the exchange ends. */
struct str http_method(const struct http_exchange *x);
struct str http_path(const struct http_exchange *x); /* decoded */
/* A parameter of the pattern, decoded; "*" is the rest. p == NULL if there is none. */
struct str http_param(const struct http_exchange *x, const char *name);
struct str
http_query_string(const struct http_exchange *x); /* all of it, as it came; p == NULL: none */
struct str http_header(const struct http_exchange *x, const char *name); /* p == NULL if none */
/* All values of a header that may come several times, as one list: "a, b". In the task's arena. */
struct str http_header_list(const struct http_exchange *x, const char *name);
struct str http_cookie(const struct http_exchange *x, const char *name);
struct str http_peer(const struct http_exchange *x); /* "127.0.0.1", "unix" */
/* Reads the whole body, at most the route's body_max (ERR_LIMIT). Answers Expect: 100-continue.
 * If it fails for the client's fault the reply says so, whatever error the handler returns. */
MUST_CHECK int http_body(struct task *t, struct http_exchange *x, struct str *out);
/* The body as JSON: ERR_INVALID with line and column when it is not. */
MUST_CHECK int http_body_json(struct task *t, struct http_exchange *x, const struct json **out);
/* Reads a piece of the body; *got == 0 at the end. For uploads that are not held in memory. */
MUST_CHECK int http_body_read(struct task *t, struct http_exchange *x, void *p, size_t n,
                              size_t *got);

/* The client has closed the connection while the handler ran. */
bool http_gone(const struct http_exchange *x);
/* From now on the client's close cancels the handler's task: for work useless without a reader. */
void http_cancel_when_gone(struct http_exchange *x);
/* A drain has begun: streams should come to an end. */
bool http_draining(const struct http_exchange *x);

/* The reply. Headers first, then exactly one of the reply functions. Setting a header again
 * replaces it, but cookies add up. Values with CR, LF or NUL stop the process, and so do headers
 * that the server sets itself: Date, Content-Type, Content-Length, Connection and the like. */
void http_set_header(struct http_exchange *x, const char *name, struct str value);
MUST_CHECK int http_reply(struct task *t, struct http_exchange *x, int status, const char *type,
                          struct str body);
/* Before the reply, whole or a stream: it is compressed if the client takes gzip, it is long enough
 * to gain, and it is no event stream. Not where the reply carries a token or a key: what else the
 * reply says, and its length, would tell them (BREACH). */
void http_allow_gzip(struct http_exchange *x);

/* What a request wants of a body of known size, by Range, If-Range and If-None-Match. tag is of
 * these bytes alone, without quotes. */
struct http_part {
    int status; /* 200: all of it; 206: a part; 304, 416: nothing, by http_reply without a body */
    uint64_t first, count, size;
    struct str etag;
};
struct http_part http_part_choose(const struct http_exchange *x, struct str tag, uint64_t size);
/* Sets ETag, Accept-Ranges and Content-Range; before the reply. */
void http_part_announce(struct http_exchange *x, const struct http_part *p);
/* Replies delay_ms from now, without headers of the handler's own, and lets the handler return at
 * once: a stream of HTTP/2 then holds little more than the body, of which this takes a copy. done
 * is called once, on any stack, when the reply leaves (0) or when it is known that none will. */
typedef void http_done(void *arg, int err);
MUST_CHECK int http_reply_later(struct task *t, struct http_exchange *x, int64_t delay_ms,
                                int status, const char *type, struct str body, http_done *done,
                                void *arg);
/* {"success": false, "error": {code, message}} with the status that belongs to err. The message is
 * shown for statuses below 500 only; others go to the log, and the client gets a request id. */
MUST_CHECK int http_reply_error(struct task *t, struct http_exchange *x, int err,
                                const char *message);
int http_status_of(int err);
/* What the client is told instead of the general words for err, if the request fails with one whose
 * own text is for the log only. A constant, without secrets. */
void http_excuse(struct http_exchange *x, const char *words);
/* Writes body as JSON:
 * `struct json_writer w; http_json(x, &w); jw_object(&w); … http_reply_json(…)`. */
void http_json(struct http_exchange *x, struct json_writer *w);
MUST_CHECK int http_reply_json(struct task *t, struct http_exchange *x, int status);

/* A reply of unknown length, chunked. Writing waits while the client does not read. A handler that
 * returns an error instead of ending it cuts the connection, so that the client notices. */
MUST_CHECK int http_stream_begin(struct task *t, struct http_exchange *x, int status,
                                 const char *type);
/* The same where the length is known: exactly so many bytes must be written. */
MUST_CHECK int http_stream_begin_sized(struct task *t, struct http_exchange *x, int status,
                                       const char *type, uint64_t length);
MUST_CHECK int http_stream_write(struct task *t, struct http_exchange *x, struct str piece);
MUST_CHECK int http_stream_end(struct task *t, struct http_exchange *x);

/* Server-sent events, with the same back-pressure. data may have several lines. The stream ends
 * when the handler returns 0. event may be NULL. */
MUST_CHECK int sse_begin(struct task *t, struct http_exchange *x);
MUST_CHECK int sse_send(struct task *t, struct http_exchange *x, const char *event,
                        struct str data);
/* A comment, so that proxies do not time out. */
MUST_CHECK int sse_ping(struct task *t, struct http_exchange *x);

/* Cuts the connection, or resets the stream of HTTP/2, without another byte; for the simulator's
 * faults. */
void http_abort(struct http_exchange *x);

/* Files below root: ETag, Last-Modified, conditional requests, `.br`/`.gz` beside the file, types
 * by ending, single ranges. Those with a hash in their name are immutable. Nothing outside root, no
 * hidden files, no links that lead out. */
struct http_files;
struct http_files *http_files_new(const char *root); /* NULL: no such folder */
void http_files_free(struct http_files *f);
/* path is relative to root, decoded; "" or a folder means its index.html. ERR_NOT_FOUND. */
MUST_CHECK int http_reply_file(struct task *t, struct http_exchange *x, const struct http_files *f,
                               struct str path);
#endif
