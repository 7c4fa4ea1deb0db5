/* tls_private.h -- what the files of this room share. */
#ifndef WIRE_TLS_PRIVATE_H
#define WIRE_TLS_PRIVATE_H

#include <openssl/ssl.h>

#include "loop/sync.h"
#include "wire/tls.h"

#define TLS_HOST_BYTES 256

struct tls {
    SSL *ssl;
    int fd;
    struct tls_resume *resume;
    struct sem *helper; /* of its context or server: the steps that a helper thread may have */
    char host[TLS_HOST_BYTES];
    bool heavy; /* the step after TLS_HEAVY, which may be on a helper thread */
    bool established;
    bool broken;  /* OpenSSL forbids any further call */
    bool cut;     /* the peer has closed the connection */
    int os_error; /* of the socket; 0: none */
    int wants;    /* WATCH_ bit */
    char problem[TLS_PROBLEM_BYTES];
};

/* A helper thread is lent for one step at a time: the others are left for passwords. */
#define TLS_HELPERS 1

/* tls.c. Neither side's yet. */
struct tls *tls_on_socket(SSL_CTX *c, int fd, struct sem *helper);

/* tls_cert.c. A problem has room for TLS_PROBLEM_BYTES. key_file NULL: it is in cert_file. */
bool tls_readable(const char *what, const char *path, char *problem);
bool tls_use_cert(SSL_CTX *c, const char *cert_file, const char *key_file, char *problem);

/* tls_context.c */
void tls_set_up(SSL_CTX *c); /* what both sides share */
SSL_CTX *tls_context_ssl(struct tls_context *c);
struct sem *tls_context_helper(struct tls_context *c);
int tls_ssl_index(void); /* of the struct tls of an SSL */

/* tls_heavy.c */
int tls_on_chain(X509_STORE_CTX *store, void *arg); /* verifies it; called by OpenSSL */
void tls_pause_to_sign(SSL_CTX *c);                 /* if its key is a large one */

/* tls_problem.c */
/* Why the chain was refused; called by OpenSSL while it verifies. */
int tls_on_verify(int fine, X509_STORE_CTX *store);
/* Fills in s->problem after a failed call, unless there is one already. */
void tls_explain(struct tls *s);
/* The last error of this thread in words. */
const char *tls_last_error(void);
#endif
