/* net.h -- name lookup and outgoing connections. */
#ifndef LOOP_NET_H
#define LOOP_NET_H

#include <netinet/in.h>

#include "loop/watch.h"

#define NET_ADDRESSES_MAX 8

struct net_addresses {
    size_t count;
    char text[NET_ADDRESSES_MAX][INET6_ADDRSTRLEN]; /* "192.0.2.1", "2001:db8::1" */
};

/* The addresses of a host, at least one; of an address, itself. A name is looked up on a helper
 * thread. ERR_UNAVAILABLE when there is no such name. */
MUST_CHECK int net_look_up(struct task *t, const char *host, struct net_addresses *out);

/* Connects a new non-blocking socket, which *w then watches. errno tells why it could not be made
 * (ERR_IO) or connected (ERR_UNAVAILABLE). */
MUST_CHECK int net_connect(struct task *t, const struct sockaddr *addr, socklen_t n,
                           struct watch *w);

/* Connects a new non-blocking socket; the caller closes *fd. ERR_UNAVAILABLE: refused. */
MUST_CHECK int net_connect_unix(struct task *t, const char *path, int *fd);
MUST_CHECK int net_connect_tcp(struct task *t, const char *host, const char *port, int *fd);
#endif
