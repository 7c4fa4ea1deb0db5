/* http_client.h -- calls to other servers.
 *
 * One client per node, many calls at once, to http:// and https:// alike. Where the server speaks
 * HTTP/2, many calls share few connections; else connections of HTTP/1.1 are kept alive, one call
 * each at a time. Over TLS (tls.h) the peer is verified, and the server chooses the protocol; over
 * plain HTTP see option plain_h2. The task's deadline and cancellation end a call at once.
 *
 * Always true:
 *   - a call is at most one request on the wire if its method may not be repeated
 *     (POST, PATCH and all methods but GET, HEAD, OPTIONS, PUT and DELETE). When a kept-alive
 *     connection turns out to be dead, the request is sent again on a fresh one, also if the
 *     server has read it and died over it. Other methods end with ERR_UNCERTAIN instead: a
 *     repeat may cost money, and only the caller can decide;
 *   - but a request of any method that the server has surely not handled is sent again on HTTP/2, a
 *     few times: it was refused (REFUSED_STREAM), left out (GOAWAY), or had not left this machine;
 *   - an HTTP/2 connection that is silent while calls are under way, for ping_ms and after a PING
 *     for ping_wait_ms more, is closed, and so is one on which two calls in a row time out in
 *     silence: its other calls end as on a lost connection. After a connection that brought no
 *     reply, or ended with ENHANCE_YOUR_CALM, the next one to that host waits: exponential backoff,
 *     100 ms to 5 s, until a reply. For 200 ms after a connection could not be made, calls that
 *     need one fail with the same error;
 *   - behind a proxy (option proxy) a host is called through a tunnel (CONNECT), http:// as well as
 *     https://: the proxy looks up its name, TLS is verified against the host, and HTTP/2 and
 *     HTTP/1.1 are spoken as without one. What fails before the tunnel stands is ERR_UNAVAILABLE,
 *     and the message names the proxy, never its password. After a proxy's 407 the next attempt
 *     waits for 5 s: wrong passwords in a row may lock an account;
 *   - a name is looked up again after a minute of use. Connections to addresses that it does not
 *     have any more take no new calls;
 *   - no redirect is followed, no .netrc, cookie or HSTS file is used;
 *   - replies are asked for as they are (no Accept-Encoding): they are a few KB, inflating costs
 *     40 KB per call in flight, and no small reply can grow large. */
#ifndef WIRE_HTTP_CLIENT_H
#define WIRE_HTTP_CLIENT_H

#include "base/metrics.h"
#include "base/str.h"
#include "loop/task.h"

struct http_client;

struct http_client_options {
    size_t h2_connections_max; /* per host, HTTP/2; 0: 100 */
    size_t h1_connections_max; /* per host, HTTP/1.1; 0: 12000 */
    int64_t connect_ms;        /* TCP, CONNECT and TLS together; 0: 5000 */
    size_t reply_bytes_max;    /* 0: 16 MB; longer is ERR_LIMIT */
    int64_t ping_ms;           /* HTTP/2, silent for so long: a PING; 0: 10000 */
    int64_t ping_wait_ms;      /* and for so much longer: it is closed; 0: 5000 */
    int64_t idle_ms;           /* unused for so long is closed; 0: 30000, most servers wait 60 s */
    const char *ca_file;       /* see tls.h */
    /* For servers that ask for a certificate; see tls.h. */
    const char *cert_file, *key_file;
    /* "http://user:password@host:port", "none"; NULL or "": the environment's; see http_proxy.h. */
    const char *proxy;
    /* NULL, or which addresses may be connected to, "10.0.0.1" or "::1": asked for each connection
     * with the address that it is made to, so a name cannot change its meaning in between. A proxy
     * is asked about, not what is behind it. */
    bool (*allows)(void *arg, struct str address);
    void *allows_arg;
    /* Tries HTTP/2 with prior knowledge on http:// servers: the first connection begins with the
     * preface, which is no request; a server that answers anything but settings gets HTTP/1.1. */
    bool plain_h2;
    struct metrics *metrics; /* may be NULL */
};

struct http_client *http_client_new(struct loop *l, const struct http_client_options *o);
/* No call may be under way. A name lookup may: the loop runs until it has ended. */
void http_client_free(struct http_client *c);

struct http_call {
    const char *method;        /* NULL: POST with a body, GET without */
    const char *url;           /* http or https only, without user and password */
    const struct str *headers; /* whole lines: "Authorization: Bearer …" */
    size_t header_count;
    struct str body; /* borrowed until the call returns; p == NULL: none */
    /* Instead of body: makes it just before it is sent, valid until the task waits again, so that
     * calls waiting for their replies hold no bodies. Called when the connection is ready, tunnel,
     * TLS and all, and again if the request is sent again. Other than 0 ends the call with that
     * error; the connection is kept. */
    int (*body_fn)(struct task *t, void *arg, struct str *out);
    /* If set, takes pieces of a reply with status 200..299 as they come, on the loop's stack or the
     * caller's: must not wait. Other than 0 ends the call with that error. */
    int (*on_piece)(void *arg, struct str piece);
    void *arg;
    size_t reply_bytes_max; /* also of a reply taken in pieces; 0: the client's */
};

struct http_response {
    int status;
    struct str body;         /* in the task's arena, NUL-terminated; empty if on_piece had it */
    struct str content_type; /* in the task's arena; p == NULL if absent */
    struct str location;     /* likewise: where a redirect points to */
    int64_t retry_after_ms;  /* from Retry-After (seconds or date); -1 if absent */
    int http_version;        /* 10, 11, 20 */
};

/* 0 for every reply, whatever its status. The message names the host, never credentials.
 * ERR_UNAVAILABLE: surely not handled: no address, no connection, a proxy that makes no tunnel, a
 *   refused certificate, or the server refused the request each time.
 * ERR_UNCERTAIN: cut after sending began, or reset by the server; it may have been done.
 * ERR_PROTO: the reply was not HTTP. ERR_LIMIT: it was too long. Both: it may have been done.
 * ERR_INVALID: url, method or headers; nothing was sent. ERR_BUSY: calls to too many hosts at once;
 *   nothing was sent.
 * ERR_TIMEOUT, ERR_CANCELED: it may have been done. */
MUST_CHECK int http_call(struct task *t, struct http_client *c, const struct http_call *call,
                         struct http_response *out);
#endif
