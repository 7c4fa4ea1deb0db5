/* http_client_test_h2.h -- an HTTP/2 server on the test's own loop; the path says what it does.
 *
 *   /ok             200 "hello"
 *   /slow           the same after 50 ms
 *   /echo           the body and type it was sent
 *   /big            300,000 bytes
 *   /hint           103 with "retry-after: 1", then 429 with "retry-after: 7"
 *   /stall          nothing, ever
 *   /refuse         REFUSED_STREAM; /refuse-twice: two of them, then /ok
 *   /reset          INTERNAL_ERROR
 *   /cut            ends the connection; /cut-once: the first connection, then /ok
 *   /leave-before   on the first connection GOAWAY that excludes this stream; then /ok
 *   /leave-begun    begins a reply, then GOAWAY that excludes this stream; always
 *   /leave-after    GOAWAY that includes this stream, and /ok
 *   /calm           the same, with ENHANCE_YOUR_CALM */
#ifndef WIRE_HTTP_CLIENT_TEST_H2_H
#define WIRE_HTTP_CLIENT_TEST_H2_H

#include <netinet/in.h>

#include "wire/http2/http2_link.h"

struct h2_server {
    struct group group;
    int fd, port;      /* 0 before it is opened: any */
    in_addr_t address; /* 0: 127.0.0.1 */
    struct watch watch;
    uint32_t streams_max, window; /* its settings; 0: the usual */
    bool full;                    /* its settings say that it takes no request */
    bool swallows;                /* every request */
    bool leaves;                  /* sends GOAWAY with its settings */
    bool single;                  /* a connection takes one request, then GOAWAY */
    bool mute;                    /* accepts, and neither reads nor writes */
    size_t accepted, requests, busy, busiest, refusals, closed;
    struct list conns;
};

struct h2_server_conn {
    struct list link;
    struct h2_server *server;
    struct http2_link wire;
    bool left; /* after single */
    struct list streams;
};

void h2_server_open(struct h2_server *v, struct loop *l);
void h2_server_close(struct task *t, struct h2_server *v);
#endif
