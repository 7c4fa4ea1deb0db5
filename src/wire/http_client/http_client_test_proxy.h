/* http_client_test_proxy.h -- an HTTP proxy on the test's loop.
 *
 * Whatever host CONNECT names, the tunnel leads to one port of this machine. */
#ifndef WIRE_HTTP_CLIENT_TEST_PROXY_H
#define WIRE_HTTP_CLIENT_TEST_PROXY_H

#include "base/buf.h"
#include "loop/watch.h"

struct proxy {
    struct group group;
    int fd, port, to_port;
    struct watch watch;
    const char *login;  /* the Proxy-Authorization it wants; NULL: none */
    const char *answer; /* to CONNECT, instead of a tunnel; then it closes */
    bool stays;         /* after its answer, until the client has gone */
    bool silent;        /* never answers */
    size_t step;        /* bytes of an answer at a time, a millisecond apart; 0: all at once */
    int64_t delay_ms;   /* of the answer */
    size_t accepted, tunnels, open;
    struct buf last; /* the last CONNECT, all of its head */
};

void proxy_open(struct proxy *p, struct loop *l, int to_port);
void proxy_close(struct task *t, struct proxy *p);
bool proxy_was_told(const struct proxy *p, const char *text); /* in its last CONNECT */
#endif
