#include "wire/tls/tls_test_certs.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

static void add_extension(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    check(x && X509_add_ext(cert, x, -1));
    X509_EXTENSION_free(x);
}

struct test_cert test_cert_make(const struct test_cert_spec *s)
{
    static long serial = 1;
    struct test_cert c = {X509_new(), s->rsa_bits ? EVP_RSA_gen(s->rsa_bits)
                                                  : EVP_EC_gen(s->curve ? s->curve : "P-256")};
    check(c.cert && c.key);
    bool usual = s->from_s == 0 && s->to_s == 0;
    check(X509_set_version(c.cert, X509_VERSION_3));
    check(ASN1_INTEGER_set(X509_get_serialNumber(c.cert), serial++));
    check(X509_gmtime_adj(X509_getm_notBefore(c.cert), usual ? -3600 : s->from_s));
    check(X509_gmtime_adj(X509_getm_notAfter(c.cert), usual ? 3600 : s->to_s));
    check(X509_set_pubkey(c.cert, c.key));
    X509_NAME *name = X509_get_subject_name(c.cert);
    check(X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
                                     (unsigned char *)(uintptr_t)s->name, -1, -1, 0));
    const struct test_cert *issuer = s->issuer ? s->issuer : &c;
    check(X509_set_issuer_name(c.cert, X509_get_subject_name(issuer->cert)));
    add_extension(c.cert, NID_basic_constraints,
                  s->authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (s->san)
        add_extension(c.cert, NID_subject_alt_name, s->san);
    check(X509_sign(c.cert, issuer->key, EVP_sha256()));
    return c;
}

void test_cert_free(struct test_cert *c)
{
    X509_free(c->cert);
    EVP_PKEY_free(c->key);
}

void test_cert_save(const struct test_cert *c, const char *path)
{
    FILE *f = fopen(path, "w");
    check(f && PEM_write_X509(f, c->cert));
    check(fclose(f) == 0);
}

void test_key_save(const struct test_cert *c, const char *path)
{
    FILE *f = fopen(path, "w");
    check(f && PEM_write_PrivateKey(f, c->key, NULL, NULL, 0, NULL, NULL));
    check(fclose(f) == 0);
}

static int choose(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in,
                  unsigned in_n, void *arg)
{
    (void)ssl;
    const char *wanted = arg;
    for (unsigned i = 0; i < in_n; i += in[i] + 1u) {
        if (in[i] != strlen(wanted) || memcmp(in + i + 1, wanted, in[i]) != 0)
            continue;
        *out = in + i + 1;
        *n = in[i];
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_NOACK;
}

SSL_CTX *test_server_new(const struct test_cert *leaf, const struct test_cert *above,
                         const char *alpn)
{
    SSL_CTX *c = SSL_CTX_new(TLS_server_method());
    check(c && SSL_CTX_use_certificate(c, leaf->cert) == 1);
    check(SSL_CTX_use_PrivateKey(c, leaf->key) == 1);
    if (above)
        check(SSL_CTX_add1_chain_cert(c, above->cert) == 1);
    if (alpn)
        SSL_CTX_set_alpn_select_cb(c, choose, (void *)(uintptr_t)alpn);
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    check(SSL_CTX_set_session_id_context(c, (const unsigned char *)"test", 4) == 1);
    return c;
}
