/* What went wrong, in one sentence that says what can be done about it. */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "wire/tls/tls_private.h"

#define NAME_BYTES_MAX  80
#define NAMES_BYTES_MAX 160
#define WHEN_BYTES      32

const char *tls_last_error(void)
{
    unsigned long e = ERR_peek_last_error();
    const char *words = e ? ERR_reason_error_string(e) : NULL;
    return words ? words : "no reason is known";
}

/* --- certificates --- */

/* Bytes of a certificate come from the peer: only printable ASCII gets into a log. */
static void add_clean(struct buf *b, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n && i < NAME_BYTES_MAX; i++)
        buf_add_char(b, p[i] > ' ' - 1 && p[i] < 0x7f && p[i] != '"' ? (char)p[i] : '?');
}

/* The common name, or the last part of the name: "Example CA". */
static void add_subject(struct buf *b, const X509_NAME *name)
{
    int last = X509_NAME_entry_count(name) - 1;
    int at = X509_NAME_get_index_by_NID((X509_NAME *)(uintptr_t)name, NID_commonName, -1);
    const X509_NAME_ENTRY *entry = X509_NAME_get_entry(name, at >= 0 ? at : last);
    if (!entry) {
        buf_add_lit(b, "an authority without a name");
        return;
    }
    const ASN1_STRING *text = X509_NAME_ENTRY_get_data(entry);
    buf_add_char(b, '"');
    add_clean(b, ASN1_STRING_get0_data(text), (size_t)ASN1_STRING_length(text));
    buf_add_char(b, '"');
}

static void add_time(struct buf *b, const ASN1_TIME *when)
{
    struct tm tm;
    char text[WHEN_BYTES];
    if (!ASN1_TIME_to_tm(when, &tm) || !strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm))
        snprintf(text, sizeof text, "at an unreadable time");
    buf_add_str(b, str_of(text));
}

static void add_alternative(struct buf *b, const GENERAL_NAME *name)
{
    char address[INET6_ADDRSTRLEN];
    const ASN1_STRING *text = name->d.ia5;
    if (name->type != GEN_DNS && name->type != GEN_IPADD)
        return;
    if (b->len > 0)
        buf_add_lit(b, ", ");
    const unsigned char *p = ASN1_STRING_get0_data(text);
    size_t n = (size_t)ASN1_STRING_length(text);
    if (name->type == GEN_DNS)
        add_clean(b, p, n);
    else if (inet_ntop(n == 4 ? AF_INET : AF_INET6, p, address, sizeof address))
        buf_add_str(b, str_of(address));
}

/* "a.test, b.test, 192.0.2.1" */
static void add_names(struct buf *b, X509 *cert)
{
    struct buf names;
    buf_init(&names);
    GENERAL_NAMES *all = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    int i = 0, count = sk_GENERAL_NAME_num(all);
    for (; i < count && names.len < NAMES_BYTES_MAX; i++)
        add_alternative(&names, sk_GENERAL_NAME_value(all, i));
    GENERAL_NAMES_free(all);
    if (i < count)
        buf_add_lit(&names, ", …");
    buf_add_str(b, names.len > 0 ? buf_str(&names) : STR("none"));
    buf_release(&names);
}

/* "its certificate", or that of an authority above it. */
static void add_which(struct buf *b, X509 *cert, int depth)
{
    buf_add_str(b, depth == 0 ? STR("its certificate") : STR("the certificate of its authority "));
    if (depth > 0)
        add_subject(b, X509_get_subject_name(cert));
}

static void add_unknown_issuer(struct buf *b, X509 *cert, int depth)
{
    add_which(b, cert, depth);
    buf_add_lit(b, " was issued by ");
    add_subject(b, X509_get_issuer_name(cert));
    buf_add_lit(b, ", which is not among the trusted authorities");
    if (depth == 0) /* the same to us: no certificate above it has come */
        buf_add_lit(b, ", or the server does not send the intermediate certificate");
}

static void add_refusal(struct buf *b, struct tls *s, X509 *cert, int depth, int why)
{
    switch (why) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        add_which(b, cert, depth);
        buf_add_lit(b, " has expired: ");
        add_time(b, X509_get0_notAfter(cert));
        return;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        add_which(b, cert, depth);
        buf_add_lit(b, " is not valid yet, by this machine's clock: from ");
        add_time(b, X509_get0_notBefore(cert));
        return;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        buf_printf(b, "its certificate is not for %s; its names: ", s->host);
        add_names(b, cert);
        return;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        buf_add_lit(b, "its certificate is self-signed, and not among the trusted ones");
        return;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        buf_add_lit(b, "its certificate comes from the authority ");
        add_subject(b, X509_get_subject_name(cert));
        buf_add_lit(b, ", which is not trusted");
        return;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        add_unknown_issuer(b, cert, depth);
        return;
    default:
        add_which(b, cert, depth);
        buf_printf(b, " is refused: %s", X509_verify_cert_error_string(why));
    }
}

static void set_problem(struct tls *s, struct str text)
{
    if (s->problem[0] == '\0')
        snprintf(s->problem, sizeof s->problem, "%.*s", STR_ARG(text));
}

int tls_on_verify(int fine, X509_STORE_CTX *store)
{
    if (fine)
        return 1;
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    X509 *cert = X509_STORE_CTX_get_current_cert(store);
    struct buf b;
    buf_init(&b);
    add_refusal(&b, SSL_get_ex_data(ssl, tls_ssl_index()),
                cert ? cert : X509_STORE_CTX_get0_cert(store),
                X509_STORE_CTX_get_error_depth(store), X509_STORE_CTX_get_error(store));
    set_problem(SSL_get_ex_data(ssl, tls_ssl_index()), buf_str(&b));
    buf_release(&b);
    return 0;
}

/* --- all else --- */

struct reason {
    int reason;
    const char *words;
};

/* To a client. */
static const struct reason reasons[] = {
    {SSL_R_WRONG_VERSION_NUMBER, "the server speaks no TLS on this port"},
    {SSL_R_PACKET_LENGTH_TOO_LONG, "the server speaks no TLS on this port"},
    {SSL_R_HTTP_REQUEST, "the server speaks no TLS on this port"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "the server speaks only TLS below 1.2"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "the server speaks no TLS of 1.2 or 1.3"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
     "the server refuses the handshake: no common cipher, or it wants a client certificate"},
    {SSL_R_TLSV1_UNRECOGNIZED_NAME, "the server does not serve this name"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "the server wants a client certificate"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "the server refuses the client certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "the server refuses the client certificate"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, "the server does not know the client certificate's issuer"},
    {SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL, "the server speaks neither HTTP/2 nor HTTP/1.1"},
};

/* To a server. */
static const struct reason server_reasons[] = {
    {SSL_R_WRONG_VERSION_NUMBER, "the client speaks no TLS"},
    {SSL_R_HTTP_REQUEST, "the client speaks no TLS"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "the client speaks only TLS below 1.2"},
    {SSL_R_NO_SHARED_CIPHER, "client and server have no common cipher"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, "the client does not know the certificate's issuer"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "the client refuses the certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "the client refuses the certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "the client refuses the certificate: it has expired"},
    {SSL_R_NO_APPLICATION_PROTOCOL, "the client offers no protocol that this server speaks"},
};

static const char *words_of(const struct tls *s, unsigned long e)
{
    const struct reason *all = reasons;
    size_t n = sizeof reasons / sizeof *reasons;
    if (SSL_is_server(s->ssl)) {
        all = server_reasons;
        n = sizeof server_reasons / sizeof *server_reasons;
    }
    for (size_t i = 0; i < n; i++)
        if (ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) == all[i].reason)
            return all[i].words;
    return NULL;
}

void tls_explain(struct tls *s)
{
    unsigned long e = ERR_peek_error();
    const char *during = s->established ? "" : " during the handshake";
    char text[TLS_PROBLEM_BYTES];
    if (s->cut)
        snprintf(text, sizeof text, "the connection was closed%s", during);
    else if (s->os_error)
        snprintf(text, sizeof text, "the connection was lost%s: %s", during, strerror(s->os_error));
    else if (words_of(s, e))
        snprintf(text, sizeof text, "%s", words_of(s, e));
    else
        snprintf(text, sizeof text, "the connection failed%s: %s", during, tls_last_error());
    set_problem(s, str_of(text));
    ERR_clear_error();
}
