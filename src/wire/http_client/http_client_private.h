/* http_client_private.h -- what the files of the HTTP client share.
 *
 * How a call travels:
 *
 *   1. http_client.c checks it, finds its host, and waits until the host, or the proxy before it,
 *      has an address and, for https://, until the trusted certificates are read.
 *   2. http_client_h2.c takes a place on a connection of HTTP/2, which http_client_h2_conn.c opens
 *      if need be. Over TLS the server chooses the protocol (ALPN); over plain HTTP see
 *      http_client_options.plain_h2.
 *   3. For a host that speaks HTTP/1.1, http_client_h1.c takes a connection of its own from
 *      http_client_pool.c.
 *
 * http_client_dial.c opens connections; http_client_proxy.c makes one to a proxy a tunnel to the
 * host, before TLS: what follows is the same with and without a proxy.
 *
 * http_client_io.c moves the bytes of a connection, plain or over TLS, for a task; those of HTTP/2
 * are http2_link.h's once the connection stands. OpenSSL runs on the loop's own stack only: a
 * handshake needs more stack than ten thousand tasks should have each. */
#ifndef WIRE_HTTP_CLIENT_PRIVATE_H
#define WIRE_HTTP_CLIENT_PRIVATE_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "loop/net.h"
#include "loop/sync.h"
#include "loop/timer.h"
#include "loop/watch.h"
#include "wire/http2/http2_link.h"
#include "wire/http_client.h"
#include "wire/http_client/http_client_reply.h"
#include "wire/http_server/http_field.h"
#include "wire/tls.h"

#define HOSTS_MAX      256
#define URL_BYTES_MAX  8192
#define URL_KEPT_BYTES 256   /* longer ones are split for every call */
#define HEAD_BYTES_MAX 65536 /* of a reply */
#define RECEIVE_BYTES  32768 /* one buffer per client */
#define H2_FIELDS_MAX  64    /* headers of a request */
#define H2_FIELDS_OURS 7     /* of them */
#define KEEPALIVE_S    20
#define DEAD_PEER_MS   30000 /* unacknowledged for so long: the connection is lost */
#define TRIES_MAX      4     /* of a call that servers refuse before they handle it */

/* Whether a connection shared by HTTP/2 calls still brings replies. A time-out counts when no byte
 * of any reply came for at least half of the call's wait: one slow call among answered ones proves
 * nothing. After two in a row the connection is closed. */
struct httpc_silence {
    int64_t heard_ms; /* the last byte of a reply */
    int timeouts;     /* in a row */
};

/* http_client_names.c: the addresses of a host. */
struct httpc_names {
    bool literal; /* an address itself, or localhost: needs no lookup */
    struct net_addresses found;
    int64_t looked_ms;           /* when the last lookup ended; 0: never */
    bool suspect;                /* connecting failed: the next call looks up again */
    struct httpc_lookup *lookup; /* under way; else NULL */
    struct waitq waiters;
    char problem[160]; /* of the last lookup */
};

/* What connections are made to: a host, or the proxy before it. Owns no text. */
struct httpc_place {
    struct http_client *client;
    const char *label; /* for messages: "https://api.example.com:443", "the proxy 10.0.0.1:3128" */
    const char *name, *port;
    struct httpc_names names;
    int64_t unreachable_until_ms; /* the last attempt to connect failed: no other before this */
    char unreachable[400];        /* why */
};

struct httpc_proxy {
    struct list link; /* in client.proxies */
    struct httpc_place place;
    char *url;           /* as it was set */
    const char *problem; /* why it cannot be used; NULL: it can */
    struct str login;    /* the value of Proxy-Authorization; p == NULL: none */
    struct arena arena;  /* of all of its text */
};

struct httpc_host {
    struct http_client *client;
    struct list link; /* in client.hosts, least recently used first */
    char *origin;     /* "https://api.example.com:443" */
    char *name, *port;
    const char *authority; /* "name:port", without the port if it is the scheme's own */
    bool tls;
    struct tls_resume resume;
    size_t users;              /* calls that point here */
    struct httpc_place place;  /* its names are not used behind a proxy */
    struct httpc_proxy *proxy; /* NULL: connections are made to the host itself */
    int64_t backoff_ms;        /* connections end without a reply; 0: the last one brought one */
    int64_t dial_after_ms;     /* no new connection before this */

    struct sem permits; /* of calls of HTTP/1.1 under way, one to a connection */
    struct list idle;   /* their connections, last used first */

    struct list h2;       /* connections of HTTP/2; those with room first */
    size_t h2_count;      /* of them */
    struct waitq h2_room; /* tasks that wait for a place on one, or for one to be opened */
    bool h2_opening;
    bool h2_spoken;       /* it has replied in HTTP/2: silence does not mean HTTP/1.1 */
    size_t h2_failures;   /* to open one */
    char h2_problem[400]; /* of the last failure */
    size_t h2_fruitless;  /* connections that ended without a reply */
    int64_t h1_until_ms;  /* it speaks HTTP/1.1: HTTP/2 is not tried before this */
};

/* The URL of the last call: the next one probably has the same. */
struct httpc_last {
    struct httpc_host *host; /* NULL: there is none */
    char url[URL_KEPT_BYTES];
    size_t target_at, target_n; /* in url */
};

struct httpc_metrics {
    int64_t *in_flight;
    int64_t *replies[6];           /* by hundreds of the status */
    int64_t *errors[1 - ERR_LAST]; /* by negated code */
    struct histogram *seconds;     /* NULL without metrics */
};

struct http_client {
    struct loop *loop;
    struct http_client_options options;
    struct tls_context *tls;
    struct httpc_metrics metrics;
    size_t in_flight;

    struct map *host_by_origin;
    struct list hosts;
    struct httpc_last last;
    char *proxy;         /* the option; NULL: the environment's */
    struct list proxies; /* a few: as many as settings and environment have named */

    struct timer sweep; /* closes connections that idle */

    char *receive;                       /* RECEIVE_BYTES; not in use during a wait */
    bool receive_taken;                  /* on_piece reads from it and must not wait */
    struct buf request;                  /* not in use during a wait */
    nghttp2_nv h2_fields[H2_FIELDS_MAX]; /* neither */
};

/* http_client_names.c. httpc_names_get waits until there is an address. */
void httpc_names_init(struct httpc_names *n, struct str host);
void httpc_names_release(struct httpc_names *n);
MUST_CHECK int httpc_names_get(struct task *t, struct httpc_place *p);

/* http_client_proxy.c */
/* NULL: the host is called directly. */
struct httpc_proxy *httpc_proxy_for(struct http_client *c, bool tls, const char *name,
                                    const char *port);
void httpc_proxy_free(struct httpc_proxy *p);
/* Waits until what the host's connections are made to has an address. */
MUST_CHECK int httpc_way_get(struct task *t, struct httpc_host *h);
/* How far opening a connection came. Up to HTTPC_LOGIN a failure is the proxy's own, if there is
 * one; later ones may be of this host alone. */
enum httpc_stage { HTTPC_TCP, HTTPC_LOGIN, HTTPC_CONNECT, HTTPC_TLS };
/* Makes a connection to the host's proxy one to the host. ERR_UNAVAILABLE: it failed, and the
 * message says why, with the host in it unless *stage is HTTPC_LOGIN. */
struct httpc_conn;
MUST_CHECK int httpc_proxy_connect(struct task *t, struct httpc_conn *k, enum httpc_stage *stage);
/* After a failure of the proxy itself: returns err, and the message names the host, too. */
int httpc_way_failed(struct task *t, const struct httpc_host *h, int err);

/* http_client_host.c */
/* The host of a valid URL, counted as used; NULL: too many hosts are in use. */
struct httpc_host *httpc_host_get(struct http_client *c, bool tls, const char *name,
                                  const char *port);
void httpc_host_use(struct httpc_host *h); /* the same, of a host that is known */
void httpc_host_put(struct httpc_host *h);
void httpc_host_free(struct httpc_host *h); /* no call may be left */
void httpc_host_sweep(struct httpc_host *h);
/* What the host's connections are made to: itself, or its proxy. */
struct httpc_place *httpc_host_way(struct httpc_host *h);
/* False: the name has other addresses now, and new calls do not use a connection to this one. */
bool httpc_host_has(struct httpc_host *h, const char *address);
/* A lookup has ended: retires the connections to addresses that it did not find. */
void httpc_place_looked_up(struct httpc_place *p);
/* A connection ended without a reply: exponential backoff before the next one. */
void httpc_host_back_off(struct httpc_host *h);
void httpc_host_replied(struct httpc_host *h); /* ends the backoff */
int64_t httpc_host_backoff_left_ms(const struct httpc_host *h);
void httpc_silence_end(struct httpc_silence *s, struct loop *l); /* a byte of a reply came */
/* Counts the time-out of a call that was sent at sent_ms. True: the connection is to be closed. */
bool httpc_silence_timeout(struct httpc_silence *s, struct loop *l, int64_t sent_ms);
struct httpc_ask {
    struct http_client *client;
    struct httpc_host *host;
    const struct http_call *call;
    struct str target;   /* path and query; the path may be missing */
    const char *problem; /* after an error; NULL: the task has the text already */
};
#define HTTPC_LOST "the connection was lost, and the request may have been handled"

/* http_client_h1.c */
MUST_CHECK int httpc_h1_call(struct task *t, struct httpc_ask *ask, struct http_response *out);
/* ERR_CANCELED or ERR_TIMEOUT: the caller has given up, nothing may be sent. */
MUST_CHECK int httpc_still_wanted(struct task *t);

/* http_client_pool.c: a connection is either with a call or idles with its host. */
struct httpc_conn {
    struct list link; /* in host.idle */
    struct httpc_host *host;
    struct watch watch;
    struct tls *tls; /* NULL: plain */
    char address[INET6_ADDRSTRLEN];
    int64_t idle_since_ms;
};
/* NULL: none idles. */
struct httpc_conn *httpc_conn_reuse(struct task *t, struct httpc_host *h);
/* http_client_dial.c. h2: over TLS, HTTP/2 is offered. */
MUST_CHECK int httpc_conn_open(struct task *t, struct httpc_host *h, bool h2,
                               struct httpc_conn **out);
void httpc_conn_keep(struct httpc_conn *k); /* for the next call; all of the reply has been read */
void httpc_conn_close(struct httpc_conn *k);
int httpc_conn_detach(struct httpc_conn *k);   /* frees k; the caller owns socket and tls */
void httpc_pool_sweep(struct httpc_host *h);   /* closes what has idled for too long */
void httpc_pool_release(struct httpc_host *h); /* closes all that idle */

/* http_client_io.c */
/* The handshake. ERR_UNAVAILABLE: it failed, and the message says why. */
MUST_CHECK int httpc_conn_secure(struct task *t, struct httpc_conn *k, bool h2);
/* As recv and sendmsg, without waiting; what is not ready after EAGAIN is marked so. Over TLS only
 * the first part is sent, and a short read does not mean that there is no more. */
ssize_t httpc_conn_recv(struct task *t, struct httpc_conn *k, void *p, size_t n);
ssize_t httpc_conn_send(struct task *t, struct httpc_conn *k, struct iovec parts[2]);
/* These wait. ERR_CLOSED: the connection was lost. */
MUST_CHECK int httpc_conn_read(struct task *t, struct httpc_conn *k, void *p, size_t n,
                               size_t *got);
MUST_CHECK int httpc_conn_write(struct task *t, struct httpc_conn *k, struct str text);

/* http_client_h2_conn.c: a connection of HTTP/2 and the calls on it. */
struct httpc_h2 {
    struct list link; /* in host.h2 */
    struct httpc_host *host;
    struct http2_link wire;
    char address[INET6_ADDRSTRLEN];
    struct list calls;  /* struct httpc_h2_call */
    size_t places_used; /* by calls, and by streams that outlive their call */
    size_t places;      /* the smaller of the server's limit and HTTP2_STREAMS_MAX */
    bool greeted;       /* its settings have come */
    bool leaving;       /* it takes no new calls */
    bool ending;        /* we have said goodbye */
    bool calmed;        /* the server said ENHANCE_YOUR_CALM: its replies end no backoff */
    bool replied;       /* at least once, to the end of the reply */
    bool fruitless;     /* it takes no more calls, and never replied: counted as such */
    bool handles;       /* its GOAWAY says that it handles some of the calls */
    struct httpc_silence silence;
    struct timer health;    /* set while calls are under way */
    int64_t quiet_since_ms; /* no frame has come since, or no call was under way before */
    bool pinged;            /* since then */
    int64_t idle_since_ms;
};

struct httpc_h2_call {
    struct list link; /* in conn.calls */
    struct httpc_ask *ask;
    struct task *task;
    struct httpc_h2 *conn; /* NULL: the connection has ended */
    int32_t stream;        /* 0: nothing has been sent */
    uint64_t sent_at;      /* nothing of it has left before the link has sent more than this */
    int64_t sent_ms;
    struct str unsent; /* of the body */
    struct http_reply_head head;
    size_t head_bytes, body_bytes;
    bool head_done;
    uint64_t ahead; /* of the body, as announced; UINT64_MAX: unknown */
    struct http_reply_body body;
    bool done;
    bool untouched; /* the server has surely not handled it: it may be sent again */
    bool left_out;  /* the same, because a connection that handles others takes no more */
    int err;        /* once done */
};

/* A place for x on a connection, which is opened if need be. x->conn is NULL: HTTP/1.1. */
MUST_CHECK int httpc_h2_join(struct task *t, struct httpc_h2_call *x);
/* Closes the connection of a call that timed out, if it was silent twice in a row. */
void httpc_h2_timeout(struct httpc_h2_call *x);
/* Gives the place back, at once or after the stream's reset has been sent. */
void httpc_h2_leave(struct httpc_h2_call *x);
void httpc_h2_sweep(struct httpc_host *h);
void httpc_h2_release(struct httpc_host *h); /* no call may be left */

/* http_client_h2.c. *answered stays false if the host speaks HTTP/1.1. */
MUST_CHECK int httpc_h2_call(struct task *t, struct httpc_ask *ask, struct http_response *out,
                             bool *answered);
void httpc_h2_callbacks(nghttp2_session_callbacks *to); /* for requests' bodies and replies */
int httpc_h2_on_frame(nghttp2_session *s, const nghttp2_frame *f);
void httpc_h2_finish(struct httpc_h2_call *x, int err, const char *problem);

/* http_client.c */
struct http_response httpc_response(const struct http_reply_head *h,
                                    const struct http_reply_body *b);

/* http_client_request.c */
/* Fills in the defaults, and checks method and headers; the URL is not looked at. */
MUST_CHECK int httpc_call_complete(struct task *t, const struct http_client *c,
                                   struct http_call *call);
bool httpc_method_repeatable(const char *method);
#endif
