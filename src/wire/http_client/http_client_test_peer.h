/* http_client_test_peer.h -- an HTTP/1.1 server on the test's loop; the path says what it does.
 *
 *   /ok             "hello", keeps the connection
 *   /echo           the body it was sent
 *   /echo-all       all it was sent, head and body
 *   /slow           "hello" after 50 ms
 *   /stall          nothing, ever
 *   /trickle        five pieces, 20 ms apart
 *   /trickle-404    the same as an error reply
 *   /big            Content-Length 100000 and as many bytes
 *   /endless        pieces without end
 *   /long-head      header lines without end
 *   /die            reads the request and closes
 *   /half           closes after 10 of 100 bytes
 *   /garbage        no HTTP
 *   /leave          "hello", then closes without Connection: close
 *   /second-dies    "hello" to the first request of a connection; reads the second and closes
 *   /hint           "103 Early Hints", then 429 with "Retry-After: 7"
 *   /retry-date     429 with the date of a minute from now
 *   /redirect       302 to /ok
 *   /raw            raw, raw_step bytes every millisecond; then raw_late after 5 ms; then closes
 *                   unless raw_stays
 *   /leave-soon     "hello", closes within 3 ms */
#ifndef WIRE_HTTP_CLIENT_TEST_PEER_H
#define WIRE_HTTP_CLIENT_TEST_PEER_H

#include "base/buf.h"
#include "loop/watch.h"

struct peer {
    struct group group;
    int fd, port;
    int front_port; /* of TLS before it; 0: none */
    struct watch watch;
    size_t accepted, open, requests, busy, busiest;
    struct buf last; /* the last request, head and body */

    struct str raw, raw_late;
    size_t raw_step; /* 0: all at once */
    bool raw_stays;
};

void peer_open(struct peer *p, struct loop *l);
void peer_open_ipv6(struct peer *p, struct loop *l); /* on [::1] only */
void peer_close(struct task *t, struct peer *p);
/* Runs fn(arg) in so many tasks at once, and waits for all. */
void crowd(struct task *t, size_t count, task_fn *fn, void *arg);
/* The URL of a path, in t's arena. */
const char *peer_url(struct task *t, const struct peer *p, const char *path);
#endif
