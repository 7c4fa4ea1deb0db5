/* tls_test_certs.h -- certificates for tests, and the server's side of TLS. */
#ifndef WIRE_TLS_TEST_CERTS_H
#define WIRE_TLS_TEST_CERTS_H

#include <openssl/ssl.h>
#include <stdbool.h>

struct test_cert {
    X509 *cert;
    EVP_PKEY *key;
};

struct test_cert_spec {
    const char *name;               /* the common name */
    const char *san;                /* "DNS:a.test,IP:127.0.0.1"; NULL: none */
    bool authority;                 /* may issue others */
    const struct test_cert *issuer; /* NULL: itself */
    const char *curve;              /* of the key; NULL: P-256 */
    unsigned rsa_bits;              /* instead; 0: none */
    long from_s, to_s;              /* valid, from now; both 0: an hour before to an hour after */
};

struct test_cert test_cert_make(const struct test_cert_spec *s);
void test_cert_free(struct test_cert *c);
void test_cert_save(const struct test_cert *c, const char *path); /* PEM, without the key */
void test_key_save(const struct test_cert *c, const char *path);

/* A server that shows the certificate, and above it the other one unless NULL. alpn: "h2" or
 * "http/1.1" is chosen if it is offered; NULL: none is. */
SSL_CTX *test_server_new(const struct test_cert *leaf, const struct test_cert *above,
                         const char *alpn);
#endif
