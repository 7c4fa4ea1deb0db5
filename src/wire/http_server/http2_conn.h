/* http2_conn.h -- a connection that speaks HTTP/2, and its streams.
 *
 * How a request goes:
 *
 *   http2_conn.c     the session's callbacks gather head and body in a kit    (on the loop's stack)
 *   http2_stream.c   a task answers it with the code that answers HTTP/1.1
 *   http2_link.c     the output of all tasks in one turn leaves in one write
 *
 * A stream is a struct http_conn without a socket: handlers, routes, replies, metrics and errors do
 * not know the difference. Where HTTP/1.1 sends kit.out, a stream lets the session take it, as fast
 * as the client's windows allow. One whose reply is known and due later frees its task and kit
 * meanwhile (http2_later.c).
 *
 * The connection's own task waits until the link has ended and the last stream has gone. */
#ifndef WIRE_HTTP2_CONN_H
#define WIRE_HTTP2_CONN_H

#include "wire/http2/http2_link.h"
#include "wire/http_server/http_exchange.h"

#define HTTP2_PREFACE_BYTES NGHTTP2_CLIENT_MAGIC_LEN

struct http2_conn {
    struct http_conn *conn;
    struct http2_link link;
    struct list streams;          /* all of them, by conn.link */
    struct list gathering;        /* those whose request is not complete, oldest first */
    struct http2_stream *reading; /* whose head comes now; else NULL */
    size_t stream_count;
    int64_t idle_since_ms;
    struct timer tick;
    bool left;  /* GOAWAY has been sent */
    bool ended; /* the link */
};

/* http2_conn.c. Whether in, shorter or longer than a preface, begins like one. */
bool http2_preface_begins(struct str in);
/* kit.in holds the preface, and what came with it; over TLS nothing has been read yet. Returns when
 * the connection has ended. */
void http2_conn_serve(struct task *t, struct http_conn *c);
void http2_conn_drain(struct http2_conn *h);

/* http2_stream.c */
struct http2_stream *http2_stream_new(struct http2_conn *h, int32_t id);
void http2_stream_free(struct http2_stream *s); /* its task has ended, or never began */
void http2_stream_task(struct task *t, void *stream);
/* Ends the stream after its exchange; the session drops it. */
void http2_stream_part(struct http2_stream *s);
/* The session has closed it. A stream without a task is freed by this. */
void http2_stream_closed(struct http2_stream *s);
/* Begins the reply. Its fields are ours and those that the handler has set. */
void http2_stream_submit(struct http2_stream *s, const struct http_field *ours, size_t count,
                         bool empty);
/* Like http_send and http_send_file. */
MUST_CHECK int http2_stream_send(struct task *t, struct http2_stream *s, struct str body);
MUST_CHECK int http2_stream_send_file(struct task *t, struct http2_stream *s, int fd,
                                      uint64_t offset, uint64_t count);

/* http2_later.c */
void http2_later_drop(struct http2_later *r); /* the stream is gone: no reply is sent */
void http2_wakes_free(struct http_server *s);
#endif
