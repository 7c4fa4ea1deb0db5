/* http_exchange.h -- what the files of the HTTP server share: server, connection, exchange.
 *
 * How a request goes through a connection's task:
 *
 *   http_conn_task   waits for the first byte, reads the head          (http_conn.c)
 *   the handler      asks for the body and replies                     (http_body.c, http_reply.c)
 *   http_conn_task   skips the rest of the body, goes on to the next head
 *
 * Replies gather in kit.out. They leave when no complete request is left in kit.in, when they are
 * many, and before every wait for the client.
 *
 * The head and a small body stay in kit.in until the exchange ends: handlers borrow them, so the
 * buffer must not move meanwhile.
 *
 * Buffers and the exchange itself come in kits that the server lends. A connection that waits for a
 * request holds none, so that ten thousand idle ones cost little, and all that are at work share a
 * few warm ones. */
#ifndef WIRE_HTTP_EXCHANGE_H
#define WIRE_HTTP_EXCHANGE_H

#include <netinet/in.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/time.h"
#include "loop/watch.h"
#include "wire/http_server.h"
#include "wire/http_server/http_chunk.h"
#include "wire/http_server/http_parse.h"
#include "wire/http_server/http_route.h"
#include "wire/http_server/http_status.h"
#include "wire/tls.h"

/* Output beyond this leaves at once. */
#define HTTP_OUT_BYTES_MAX (64 * 1024)
/* A request body that the handler has not read is read after the reply, to keep the connection; a
 * longer one ends it. */
#define HTTP_SKIP_BYTES_MAX (64 * 1024)
/* Bodies up to this are copied behind their head, so that both leave in one write. */
#define HTTP_COPY_BYTES_MAX (16 * 1024)

struct http_counts {
    int64_t *by_class[6]; /* 2 for 2xx … */
    int64_t *connections;
    int64_t *refused[HTTP_REFUSALS];
    struct histogram *seconds; /* NULL without metrics */
};

struct http_server {
    struct loop *loop;
    struct http_options options;
    struct http_router *router;
    size_t body_max;         /* the largest of all routes, and what is ignored */
    struct group *group;     /* of connections and streams, while http_server_run is under way */
    struct task *acceptor;   /* NULL unless http_server_run is under way */
    struct watch *listening; /* its own */
    struct list conns;       /* struct http_conn, by link */
    struct list wakes;       /* of replies that are due later, see http2_later.c */
    size_t conn_count;
    size_t refusing_count; /* connections beyond the limit, being answered 503 */
    struct http_kit *kits; /* not lent */
    size_t kit_count;
    bool draining;
    bool out_of_fds;            /* logged already */
    char date[TIME_HTTP_BYTES]; /* as replies have it */
    int64_t date_expired_ms;
    struct http_counts counts;
};

enum http_reply_state {
    HTTP_UNANSWERED,
    HTTP_STREAMING, /* the head is out, the end is open */
    HTTP_ANSWERED,
    HTTP_LATER, /* by http_reply_later */
    HTTP_CUT,   /* by http_abort */
};

struct http_exchange {
    struct http_conn *conn;
    struct task *task;
    const struct http_head *head;
    struct http_match match;
    struct str path; /* decoded */
    int64_t began_us;
    int64_t handler_deadline_ms; /* 0 when none holds */
    bool cancel_when_gone;

    /* The body. */
    size_t at; /* from the start of kit.in: the first byte of the body not taken yet */
    bool body_ended;
    bool continue_due; /* the client may be waiting for 100 Continue */
    uint64_t body_max;
    uint64_t body_left;  /* when sized */
    uint64_t body_taken; /* when chunked */
    struct http_chunks chunks;
    int64_t body_deadline_ms;    /* 0 until something is waited for */
    struct str body;             /* the whole of it, after http_body */
    struct http_problem problem; /* what was wrong with it */

    /* The reply. */
    enum http_reply_state state;
    int status;
    const char *excuse; /* of http_excuse; NULL: none */
    bool close;         /* the connection ends after this one */
    bool headless;      /* a HEAD request: no body is sent */
    bool chunked, events;
    bool sized;             /* a stream of known length */
    uint64_t stream_left;   /* of it, before it is compressed */
    bool gzip_allowed;      /* by http_allow_gzip */
    struct http_gzip *gzip; /* a stream that is compressed; else NULL */
};

struct http_conn {
    struct http_server *server;
    struct task *task;
    struct watch watch; /* of a stream: only gone is used */
    struct tls *tls;    /* NULL: plain, or HTTP/2, whose link has it */
    struct list link;
    bool refused;     /* over the limit: answered 503 */
    bool waiting;     /* for a first byte */
    bool broken;      /* nothing more may be sent */
    bool read_filled; /* the last read found no end */
    size_t served_count;
    size_t burst_bytes;          /* of work since the last yield */
    struct http_kit *kit;        /* NULL while it waits for a request */
    struct http2_conn *http2;    /* once it speaks HTTP/2: its streams do the work; else NULL */
    struct http2_stream *stream; /* set: this is a stream of a connection, not one itself */
    char peer[INET6_ADDRSTRLEN];
};

/* One request of HTTP/2: to the rest of the server a connection that has one exchange. */
struct http2_stream {
    struct http_conn conn;
    struct http2_conn *owner;
    struct list gathering; /* in owner.gathering, until the request is complete */
    int32_t id;
    int64_t due_ms; /* when the request must be complete */
    struct str method, target;
    bool has_authority;
    bool complete;             /* the client has sent all of it */
    bool closed;               /* the session has dropped it */
    bool waiting;              /* its task does, for bytes to leave */
    bool ending;               /* nothing will be added to the reply */
    bool sent;                 /* the session has all of the reply */
    struct str rest;           /* of the reply: borrowed bytes after kit.out */
    struct http2_later *later; /* it has no task and no kit, but this reply; else NULL */
};

struct http_kit {
    struct buf in, out;
    struct buf fields;  /* header lines of the reply that the handler has set */
    struct buf body;    /* a request body that does not fit into `in` */
    struct buf json;    /* where http_json writes */
    struct buf packed;  /* compressed bytes of the reply */
    struct arena arena; /* the memory of a task's arena, while not lent */
    struct http_parser parser;
    struct http_field *head_fields; /* of the request: room for limits.headers_max */
    struct http_exchange x;         /* the present one, or the last */
    struct http_kit *next;
};

/* http_conn.c */
struct http_conn *http_conn_new(struct http_server *s, int fd); /* takes over fd */
void http_conn_close(struct http_conn *c);                      /* and frees it */
void http_conn_task(struct task *t, void *conn);                /* ends with http_conn_close */
void http_begin_parsing(struct http_conn *c);                   /* a head, into its kit */
void http_conn_gone(void *conn); /* cancels its handler after http_cancel_when_gone */
struct http_exchange *http_exchange_begin(struct task *t, struct http_conn *c);
/* The head has been read: routes, runs the handler, replies. */
void http_answer(struct task *t, struct http_exchange *x);
void http_refuse(struct task *t, struct http_exchange *x, struct http_problem p); /* the same */
void http_count(struct http_exchange *x); /* counts the reply, or that there was none */

/* http_kit.c. Both need an empty arena of the connection's task: they swap its memory. */
void http_kit_get(struct http_conn *c);
void http_kit_put(struct http_conn *c); /* no-op without one; the buffers' content is lost */
/* The same in two steps, for a kit that is in use before its task is: take, then use. */
struct http_kit *http_kit_take(struct http_server *s);
void http_kit_use(struct http_conn *c);
void http_kit_give(struct http_server *s, struct http_kit *k); /* that no task uses */
void http_kits_free(struct http_server *s);

/* http_io.c. Sends kit.out, then body. Fails with ERR_TIMEOUT when nothing moves for write_ms;
 * the connection is broken after any failure. */
MUST_CHECK int http_send(struct task *t, struct http_conn *c, struct str body);
/* While a task waits for the client its handler's deadline is suspended. */
struct http_pause {
    int64_t deadline_ms, since_ms;
};
struct http_pause http_pause(struct task *t, int64_t until_ms);
void http_resume(struct task *t, struct http_exchange *x, struct http_pause p);
/* The same for count bytes of a file, from offset on. */
MUST_CHECK int http_send_file(struct task *t, struct http_conn *c, int fd, uint64_t offset,
                              uint64_t count);
/* Yields to other tasks after more than a burst of bytes. */
MUST_CHECK int http_take_turns(struct task *t, struct http_conn *c, size_t bytes);
/* Reads what has come, at least one byte. ERR_CLOSED at the end, ERR_TIMEOUT at until_ms. */
MUST_CHECK int http_receive(struct task *t, struct http_conn *c, int64_t until_ms, void *p,
                            size_t n, size_t *got);

/* http_tls.c. The handshake, within its time. ERR_INVALID: the client speaks no TLS, and nothing of
 * what it has sent has been read. */
MUST_CHECK int http_tls_begin(struct task *t, struct http_conn *c);
void http_tls_end(struct task *t, struct http_conn *c); /* the socket is plain then; or it was */

/* http_body.c */
void http_body_begin(struct http_exchange *x);
/* Whether the rest is so short that reading it is cheaper than a new connection. */
bool http_body_skippable(const struct http_exchange *x);
MUST_CHECK int http_body_skip(struct task *t, struct http_exchange *x);

/* http_reply.c */
MUST_CHECK int http_reply_problem(struct task *t, struct http_exchange *x, struct http_problem p);
/* Begins the reply: status line and headers go to kit.out. Without a length it is chunked, or
 * ends with the connection. */
void http_add_head(struct http_exchange *x, int status, const char *type, bool has_length,
                   uint64_t length);
bool http_is_set(const struct http_exchange *x, const char *name); /* by http_set_header */

/* http_gzip.c. Whether a reply of so many bytes is compressed, as far as it is known by now. */
bool http_gzip_applies(const struct http_exchange *x, uint64_t bytes);
/* Replaces the body by its compressed form if that is allowed, wanted and shorter. */
void http_gzip_body(struct task *t, struct http_exchange *x, struct str *body);
/* Before the head of a stream of so many bytes; true: each piece goes through http_gzip_piece, and
 * the length is not known. */
bool http_gzip_begin(struct http_exchange *x, uint64_t bytes);
/* Replaces the piece; what is left over comes with later ones, or with the last. */
MUST_CHECK int http_gzip_piece(struct task *t, struct http_exchange *x, struct str *piece,
                               bool last);
void http_gzip_end(struct http_exchange *x); /* no-op without a stream */

/* http_part.c. Like http_part_choose, but of a body that has its own tag for each coding; modified
 * may have p == NULL. */
struct http_part http_part_range(const struct http_exchange *x, struct str etag,
                                 struct str modified, uint64_t size);

/* http_server.c. The Date header's value; valid until the next turn of the loop. */
struct str http_date(struct http_server *s);
#endif
