/* What takes a handshake longer than a millisecond or so: before it the handshake pauses
 * (TLS_HEAVY), and its next step runs on a helper thread. A chain can be judged as soon as the
 * server has sent it, so the first handshake with a host is no later than the others.
 *
 * One operation of OpenSSL 3.0, in µs of one core:
 *
 *            RSA-2048  RSA-4096  RSA-7680  P-256  P-384  P-521  Ed448
 *   verify         18        65       230     63    820    560    240
 *   sign          250     4,300    40,000     21    860    380    210
 *
 * A full handshake verifies about three signatures: that of the server's certificate, that of the
 * authority above it, and the server's own. */
#include <openssl/err.h>

#include "wire/tls/tls_private.h"

#define CURVE_BITS_MAX      256
#define CURVE_SIG_BYTES_MAX 72 /* of ECDSA with P-256 */
#define RSA_SIGN_BITS_MAX   2048
#define RSA_VERIFY_BITS_MAX 4096

static bool is_rsa(int type)
{
    return type == EVP_PKEY_RSA || type == EVP_PKEY_RSA_PSS;
}

static bool key_is_heavy(const EVP_PKEY *key, int rsa_bits_max)
{
    int most = is_rsa(EVP_PKEY_get_base_id(key)) ? rsa_bits_max : CURVE_BITS_MAX;
    return EVP_PKEY_get_bits(key) > most;
}

/* The issuer's key made the signature, and may be in no certificate that was sent: the length
 * tells. */
static bool signature_is_heavy(const X509 *cert)
{
    const ASN1_BIT_STRING *signature;
    const X509_ALGOR *ignored;
    int type = NID_undef;
    X509_get0_signature(&signature, &ignored, cert);
    (void)OBJ_find_sigid_algs(X509_get_signature_nid(cert), NULL, &type);
    int most = is_rsa(type) ? RSA_VERIFY_BITS_MAX / 8 : CURVE_SIG_BYTES_MAX;
    return ASN1_STRING_length(signature) > most;
}

static bool chain_is_heavy(X509_STORE_CTX *store)
{
    const STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(store);
    const EVP_PKEY *key = X509_get0_pubkey(X509_STORE_CTX_get0_cert(store));
    bool heavy = key && key_is_heavy(key, RSA_VERIFY_BITS_MAX);
    for (int i = 0; i < sk_X509_num(chain) && !heavy; i++)
        heavy = signature_is_heavy(sk_X509_value(chain, i));
    return heavy;
}

int tls_on_chain(X509_STORE_CTX *store, void *arg)
{
    (void)arg;
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const struct tls *s = SSL_get_ex_data(ssl, tls_ssl_index());
    if (!s->heavy && chain_is_heavy(store))
        return SSL_set_retry_verify(ssl);
    return X509_verify_cert(store);
}

static int on_sign(SSL *ssl, void *arg)
{
    (void)arg;
    const struct tls *s = SSL_get_ex_data(ssl, tls_ssl_index());
    return s->heavy ? 1 : -1;
}

void tls_pause_to_sign(SSL_CTX *c)
{
    if (key_is_heavy(SSL_CTX_get0_privatekey(c), RSA_SIGN_BITS_MAX))
        SSL_CTX_set_cert_cb(c, on_sign, NULL);
}
