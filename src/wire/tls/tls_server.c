/* The server's side: certificate, key, ALPN; sessions are in tickets, the server keeps none. */
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "wire/tls/tls_private.h"

struct tls_server {
    SSL_CTX *ssl;
    struct sem helper;
    bool h2;
};

/* The server's order counts. A client that offers only others is refused (RFC 7301, 3.2). */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                   const unsigned char *offered, unsigned n, void *arg)
{
    (void)ssl;
    const struct tls_server *s = arg;
    unsigned char *chosen;
    static const unsigned char both[] = "\2h2\10http/1.1";
    unsigned from = s->h2 ? 0 : 3;
    if (SSL_select_next_proto(&chosen, out_n, both + from, (unsigned)sizeof both - 1 - from,
                              offered, n) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static void set_up(struct tls_server *s)
{
    tls_set_up(s->ssl);
    SSL_CTX_set_session_cache_mode(s->ssl, SSL_SESS_CACHE_OFF);
    static const unsigned char id[] = "millrace";
    check(SSL_CTX_set_session_id_context(s->ssl, id, sizeof id - 1) == 1);
    SSL_CTX_set_alpn_select_cb(s->ssl, on_alpn, s);
}

/* Clients tell their users, who cannot do anything about it. */
static void check_dates(SSL_CTX *c, const char *cert_file)
{
    const X509 *cert = SSL_CTX_get0_certificate(c);
    if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
        log_warn("tls", "the certificate %s has expired: clients refuse it; renew it", cert_file);
    else if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
        log_warn("tls",
                 "the certificate %s is not valid yet, by this machine's clock: clients refuse it",
                 cert_file);
}

struct tls_server *tls_server_new(const struct tls_server_options *o, char *problem)
{
    struct tls_server *s = check_memory(calloc(1, sizeof *s));
    s->h2 = o->h2;
    sem_init(&s->helper, TLS_HELPERS);
    s->ssl = check_memory(SSL_CTX_new(TLS_server_method()));
    set_up(s);
    if (!tls_use_cert(s->ssl, o->cert_file, o->key_file, problem)) {
        tls_server_free(s);
        return NULL;
    }
    check_dates(s->ssl, o->cert_file);
    return s;
}

void tls_server_free(struct tls_server *s)
{
    if (!s)
        return;
    SSL_CTX_free(s->ssl);
    free(s);
}

struct tls *tls_accept(struct tls_server *s, int fd)
{
    struct tls *c = tls_on_socket(s->ssl, fd, &s->helper);
    SSL_set_accept_state(c->ssl);
    return c;
}
