/* http_client_private.h -- what the files of the HTTP client share.
 *
 * Calls to http:// do without libcurl (http_client_plain.c, http_client_pool.c): one such call
 * takes a third of the time that libcurl needs. Calls to https:// go through libcurl; the rest of
 * this is about them. Hosts and their addresses are common to both.
 *
 * How a call travels:
 *
 *   1. http_client.c checks it and makes a struct httpc_transfer on the calling task's stack,
 *      finds its host, waits until the host has an address, and submits the transfer.
 *   2. The pump, a timer on the loop's own stack, hands it to the host, and the host to the first
 *      of its shards with room. If none has room it waits there, first come, first served.
 *   3. A shard is one curl multi with a bounded number of connections to that one host. It runs
 *      from its timer and from the pollers of its sockets.
 *   4. When curl is done the transfer leaves its shard, its task is woken, and the first of those
 *      that wait takes the place.
 *
 * A task that gives up leaves a queue by itself; from a shard the pump removes it.
 *
 * All of libcurl runs on the loop's own stack: a TLS handshake needs more stack than ten thousand
 * tasks should have each, and no task can be cancelled in the middle of libcurl.
 *
 * Why shards: a multi searches its connections for each call it begins, so the cost of a call
 * grows with their number (10,000 plain calls: 45 us each up to 1,024 connections per multi, 95 at
 * 4,096, 180 at 10,000). A host fills its first shard before it opens the next, so that few calls
 * use few connections. Shards are per host because curl's limit of connections per host is one
 * number for a whole multi. A TLS shard has to read the CA file once, which takes 19 ms for the
 * system's: therefore HTTP/2 has ten connections in each, not one. */
#ifndef WIRE_HTTP_CLIENT_PRIVATE_H
#define WIRE_HTTP_CLIENT_PRIVATE_H

#include <curl/curl.h>

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

#define HOSTS_MAX            256
#define SHARD_H1_CONNECTIONS 256
#define SHARD_H2_CONNECTIONS 10
#define STREAMS_MAX          100 /* calls on one HTTP/2 connection */
#define SHARD_IDLE_MS        30000
#define SPARE_HANDLES_MAX    2048
#define RECEIVE_BYTES        4096 /* per call in flight, therefore small */
#define URL_BYTES_MAX        8192
#define URL_KEPT_BYTES       256   /* longer ones are split for every call */
#define HEAD_BYTES_MAX       65536 /* of a reply */
#define PLAIN_RECEIVE_BYTES  32768 /* one buffer per client */
#define H2_FIELDS_MAX        64    /* headers of a request */
#define H2_FIELDS_OURS       7     /* of them */
#define KEEPALIVE_S          20
#define DEAD_PEER_MS         30000 /* unacknowledged for so long: the connection is lost */
#define CONNECTION_AGE_S     30    /* idle for longer is not reused; most servers keep them 60 */
#define TRIES_MAX            4     /* of a call that servers refuse before they handle it */

struct httpc_transfer {
    struct list link; /* in client.submitted, host.waiting, shard.transfers or client.abandoned */
    struct http_client *client;
    struct httpc_host *host;
    struct task *task;
    const struct http_call *call;
    struct curl_slist *headers; /* in the task's arena */
    struct curl_slist resolve;  /* its text too; data == NULL: none needed */

    struct httpc_shard *shard; /* NULL: not with curl */
    CURL *easy;
    bool begun; /* something of the request may have been sent */
    int64_t begun_ms;
    int stopped_by; /* the error for which a callback stopped curl */
    struct http_reply_head head;
    size_t head_bytes, body_bytes;
    struct http_reply_body body;

    bool done;
    int err; /* once done */
    char problem[CURL_ERROR_SIZE];
};

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
    char *entry;       /* "name:port:address,address" as curl wants it; NULL: not looked up */
    int64_t looked_ms; /* when the last lookup ended; 0: never */
    bool suspect;      /* connecting failed: the next call looks up again */
    struct httpc_lookup *lookup; /* under way; else NULL */
    struct waitq waiters;
    char problem[160]; /* of the last lookup */
};

struct httpc_host {
    struct http_client *client;
    struct list link; /* in client.hosts, least recently used first */
    char *origin;     /* "https://api.example.com:443" */
    char *name, *port;
    const char *authority; /* of plain calls: "name:port", without the port if it is HTTP's own */
    bool tls;
    bool h1_only;        /* over TLS: a reply has shown that it speaks no HTTP/2 */
    bool h1_seen;        /* the same; h1_only follows outside of curl's callbacks */
    size_t users;        /* transfers that point here */
    struct list waiting; /* transfers that no shard has room for */
    struct list shards;  /* oldest first */
    size_t connections;  /* that all its shards together may have */
    struct httpc_names names;
    int64_t backoff_ms;    /* connections end without a reply; 0: the last one brought one */
    int64_t dial_after_ms; /* no new connection before this */

    struct sem permits; /* of plain calls under way, one to a connection */
    struct list idle;   /* plain connections, last used first */

    struct list h2;       /* plain connections of HTTP/2; those with room first */
    size_t h2_count;      /* of them */
    struct waitq h2_room; /* tasks that wait for a place on one, or for one to be opened */
    bool h2_opening;
    bool h2_spoken;       /* it has replied in HTTP/2: silence does not mean HTTP/1.1 */
    size_t h2_failures;   /* to open one */
    char h2_problem[160]; /* of the last failure */
    size_t h2_fruitless;  /* connections that ended without a reply */
    int64_t h1_until_ms;  /* it speaks HTTP/1.1: HTTP/2 is not tried before this */
};

/* The URL of the last plain call: the next one probably has the same. */
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
    char *ca_file; /* NULL: the system's */
    struct httpc_metrics metrics;
    size_t in_flight;

    struct map *host_by_origin;
    struct list hosts;
    struct httpc_last last;

    struct timer pump;
    struct list submitted, abandoned; /* transfers */
    struct timer sweep;               /* closes shards and connections that idle */

    char *receive;                       /* PLAIN_RECEIVE_BYTES; not in use during a wait */
    bool receive_taken;                  /* on_piece reads from it and must not wait */
    struct buf request;                  /* not in use during a wait */
    nghttp2_nv h2_fields[H2_FIELDS_MAX]; /* neither */
    bool plain_by_curl; /* tests: libcurl's part with http://, which is easier to serve */

    CURL *spare[SPARE_HANDLES_MAX];
    size_t spare_count;
};

/* http_client_names.c. httpc_names_get waits until there is an address. */
void httpc_names_init(struct httpc_names *n, struct str host);
void httpc_names_release(struct httpc_names *n);
MUST_CHECK int httpc_names_get(struct task *t, struct httpc_host *h);

/* http_client_host.c */
/* The host of a valid URL, counted as used; NULL: too many hosts are in use. */
struct httpc_host *httpc_host_get(struct http_client *c, bool tls, const char *name,
                                  const char *port);
void httpc_host_use(struct httpc_host *h); /* the same, of a host that is known */
void httpc_host_put(struct httpc_host *h);
void httpc_host_free(struct httpc_host *h); /* no transfer may be left */
bool httpc_host_multiplexes(const struct httpc_host *h);
/* After a transfer has joined host.waiting, or left a shard. */
void httpc_host_start_waiting(struct httpc_host *h);
/* After a reply has shown that the server speaks HTTP/1.1 only. */
void httpc_host_change_to_h1(struct httpc_host *h);
void httpc_host_sweep(struct httpc_host *h);
/* A connection ended without a reply: exponential backoff before the next one. */
void httpc_host_back_off(struct httpc_host *h);
void httpc_host_replied(struct httpc_host *h); /* ends the backoff */
int64_t httpc_host_backoff_left_ms(const struct httpc_host *h);
void httpc_silence_end(struct httpc_silence *s, struct loop *l); /* a byte of a reply came */
/* Counts the time-out of a call that was sent at sent_ms. True: the connection is to be closed. */
bool httpc_silence_timeout(struct httpc_silence *s, struct loop *l, int64_t sent_ms);
/* Takes a silent shard out of use: calls not yet sent go to another one, the rest end with
 * ERR_UNCERTAIN. Outside of curl only. */
void httpc_host_retire(struct httpc_shard *s);

/* http_client_shard.c */
struct httpc_shard {
    struct list link; /* in host.shards */
    struct httpc_host *host;
    CURLM *multi;
    struct timer timer;
    struct list transfers;
    size_t count;       /* of transfers, the abandoned ones too */
    size_t connections; /* at most; 0: retired */
    struct httpc_silence silence;
    int64_t idle_since_ms;
};
struct httpc_shard *httpc_shard_new(struct httpc_host *h, size_t connections);
void httpc_shard_free(struct httpc_shard *s);
void httpc_shard_add(struct httpc_shard *s, struct httpc_transfer *x);
void httpc_shard_remove(struct httpc_transfer *x);

/* A call to an http:// URL, over HTTP/1.1 or HTTP/2. */
struct httpc_ask {
    struct http_client *client;
    struct httpc_host *host;
    const struct http_call *call;
    struct str target;   /* path and query; the path may be missing */
    const char *problem; /* after an error; NULL: the task has the text already */
};
#define HTTPC_LOST "the connection was lost, and the request may have been handled"

/* http_client_plain.c */
MUST_CHECK int httpc_plain_call(struct task *t, struct http_client *c, const struct http_call *call,
                                struct http_response *out);
/* ERR_CANCELED or ERR_TIMEOUT: the caller has given up, nothing may be sent. */
MUST_CHECK int httpc_still_wanted(struct task *t);

/* http_client_pool.c: a connection is either with a call or idles with its host. */
struct httpc_conn {
    struct list link; /* in host.idle */
    struct httpc_host *host;
    struct watch watch;
    int64_t idle_since_ms;
};
struct httpc_conn *httpc_conn_reuse(struct httpc_host *h); /* NULL: none idles */
MUST_CHECK int httpc_conn_open(struct task *t, struct httpc_host *h, struct httpc_conn **out);
void httpc_conn_keep(struct httpc_conn *k); /* for the next call; all of the reply has been read */
void httpc_conn_close(struct httpc_conn *k);
void httpc_pool_sweep(struct httpc_host *h);   /* closes what has idled for too long */
void httpc_pool_release(struct httpc_host *h); /* closes all that idle */

int httpc_conn_detach(struct httpc_conn *k); /* frees k; the caller owns the socket */

/* http_client_h2_conn.c: a connection of HTTP/2 and the calls on it. */
struct httpc_h2 {
    struct list link; /* in host.h2 */
    struct httpc_host *host;
    struct http2_link wire;
    struct list calls;  /* struct httpc_h2_call */
    size_t places_used; /* by calls, and by streams that outlive their call */
    size_t places;      /* the smaller of the server's limit and HTTP2_STREAMS_MAX */
    bool greeted;       /* its settings have come */
    bool leaving;       /* it takes no new calls */
    bool replied;       /* at least once, or counted as fruitless */
    struct httpc_silence silence;
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
/* Headers and host of a transfer that knows its call. */
MUST_CHECK int httpc_request_prepare(struct task *t, struct httpc_transfer *x);

/* http_client_transfer.c */
void httpc_transfer_set_up(struct httpc_transfer *x, CURL *easy);
int httpc_transfer_outcome(const struct httpc_transfer *x, CURLcode code);
/* Makes the text of a call that was not sent say which: TLS, a refused connection, no answer. */
void httpc_transfer_name_cause(struct httpc_transfer *x, CURLcode code);
void httpc_transfer_end(struct httpc_transfer *x, int err); /* wakes its task */
#endif
