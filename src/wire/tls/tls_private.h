/* tls_private.h -- what the files of this room share. */
#ifndef WIRE_TLS_PRIVATE_H
#define WIRE_TLS_PRIVATE_H

#include <openssl/ssl.h>

#include "wire/tls.h"

#define TLS_HOST_BYTES 256

struct tls {
    SSL *ssl;
    int fd;
    struct tls_resume *resume;
    char host[TLS_HOST_BYTES];
    bool established;
    bool broken;  /* OpenSSL forbids any further call */
    bool cut;     /* the peer has closed the connection */
    int os_error; /* of the socket; 0: none */
    int wants;    /* WATCH_ bit */
    char problem[TLS_PROBLEM_BYTES];
};

/* tls.c. Neither side's yet. */
struct tls *tls_on_socket(SSL_CTX *c, int fd);

/* tls_cert.c. A problem has room for TLS_PROBLEM_BYTES. key_file NULL: it is in cert_file. */
bool tls_readable(const char *what, const char *path, char *problem);
bool tls_use_cert(SSL_CTX *c, const char *cert_file, const char *key_file, char *problem);

/* tls_context.c */
void tls_set_up(SSL_CTX *c); /* what both sides share */
SSL_CTX *tls_context_ssl(struct tls_context *c);
int tls_ssl_index(void); /* of the struct tls of an SSL */

/* tls_problem.c */
/* Why the chain was refused; called by OpenSSL while it verifies. */
int tls_on_verify(int fine, X509_STORE_CTX *store);
/* Fills in s->problem after a failed call, unless there is one already. */
void tls_explain(struct tls *s);
/* The last error of this thread in words. */
const char *tls_last_error(void);
#endif
