/* http_client_test_front.h -- a server of TLS on the test's loop, before a plain one.
 *
 * Each connection to it is one to the plain server; an end on either side ends the other. */
#ifndef WIRE_HTTP_CLIENT_TEST_FRONT_H
#define WIRE_HTTP_CLIENT_TEST_FRONT_H

#include "loop/watch.h"
#include "wire/http_client/http_client_test_peer.h"
#include "wire/tls/tls_test_certs.h"

struct front {
    struct group group;
    int fd, port, to_port;
    struct watch watch;
    SSL_CTX *server;
    char ca_file[48];
    int64_t delay_ms; /* of the handshake */
    bool frozen;      /* moves nothing, on no connection, but keeps them open */
    size_t accepted, resumed, open;
};

/* alpn as in tls_test_certs.h. The certificate is for 127.0.0.1 and localhost. */
void front_open(struct front *f, struct loop *l, int to_port, const char *alpn);
void front_close(struct task *t, struct front *f);
/* The URLs of the peer are those of a front from now on. */
void front_open_for_peer(struct front *f, struct loop *l, struct peer *p);
#endif
