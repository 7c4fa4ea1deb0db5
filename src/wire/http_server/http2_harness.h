/* http2_harness.h -- for tests: a client that speaks HTTP/2, with the session of nghttp2. */
#ifndef WIRE_HTTP2_HARNESS_H
#define WIRE_HTTP2_HARNESS_H

#include <nghttp2/nghttp2.h>

#include "wire/http_server/http_harness.h"

struct call {
    const char *method, *path;
    struct str body;          /* p == NULL: none */
    const char *name, *value; /* one more field, or NULL */
    bool endless;             /* the body never ends */
    bool deaf;                /* opens no window for the reply */

    int32_t id;
    size_t sent;
    int status;        /* 0: none has come */
    struct buf head;   /* "name: value\n" for each field */
    struct buf reply;  /* the body */
    int heads, frames; /* HEADERS and DATA that came */
    bool ended;        /* END_STREAM came */
    bool closed;
    uint32_t error; /* with which it was closed */
};

struct h2 {
    struct client raw;
    nghttp2_session *session;
    bool gone;   /* the connection has ended */
    bool silent; /* nothing came for an hour */
    bool goaway;
    uint32_t goaway_error;
    struct buf said; /* all bytes that were sent, if record is set */
    bool record;
};

struct h2_settings {
    uint32_t window; /* of a stream; 0: the default */
};

void h2_open(struct task *t, struct site *s, struct h2 *h, struct h2_settings settings);
void h2_close(struct h2 *h);
void h2_say(struct task *t, struct h2 *h);  /* sends what has been submitted */
void h2_step(struct task *t, struct h2 *h); /* sends, then takes what comes next */
void h2_begin(struct h2 *h, struct call *c);
/* Until all of them are closed or the connection is. */
void h2_await(struct task *t, struct h2 *h, struct call *calls, size_t n);
/* Sends and awaits one call, on an open connection. */
void h2_call(struct task *t, struct h2 *h, struct call *c);
struct str call_field(const struct call *c, const char *name); /* p == NULL if there is none */
void call_release(struct call *c);
/* Handlers that several tests have routes to. */
#define H2_LARGE_BYTES (3 << 20)
int h2_hello(struct task *t, struct http_exchange *x, void *ctx);
int h2_echo(struct task *t, struct http_exchange *x, void *ctx);
int h2_read_json(struct task *t, struct http_exchange *x, void *ctx); /* the member "a" */
int h2_mirror(struct task *t, struct http_exchange *x, void *ctx); /* what it sees of the request */
int h2_large(struct task *t, struct http_exchange *x, void *ctx);  /* so many bytes */
#endif
