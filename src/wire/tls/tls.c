/* One connection. */
#include "wire/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "loop/watch.h"
#include "wire/tls/tls_private.h"

/* --- the socket, as OpenSSL sees it: its own would write without MSG_NOSIGNAL --- */

static int on_write(BIO *b, const char *p, int n)
{
    struct tls *s = BIO_get_data(b);
    ssize_t r;
    BIO_clear_retry_flags(b);
    do
        r = send(s->fd, p, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (r < 0 && errno == EINTR);
    if (r < 0 && errno == EAGAIN)
        BIO_set_retry_write(b);
    else if (r < 0)
        s->os_error = errno;
    return (int)r;
}

static int on_read(BIO *b, char *p, int n)
{
    struct tls *s = BIO_get_data(b);
    ssize_t r;
    BIO_clear_retry_flags(b);
    do
        r = recv(s->fd, p, (size_t)n, MSG_DONTWAIT);
    while (r < 0 && errno == EINTR);
    if (r < 0 && errno == EAGAIN)
        BIO_set_retry_read(b);
    else if (r < 0)
        s->os_error = errno;
    else if (r == 0)
        s->cut = true;
    return (int)r;
}

/* BIO_CTRL_EOF is not answered: OpenSSL would send an alert after the end, and mark the session as
 * one that must not be resumed. */
static long on_control(BIO *b, int command, long number, void *pointer)
{
    (void)b, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static const BIO_METHOD *socket_method(void)
{
    static BIO_METHOD *m; /* of the process */
    if (!m) {
        m = check_memory(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket"));
        check(BIO_meth_set_write(m, on_write) && BIO_meth_set_read(m, on_read) &&
              BIO_meth_set_ctrl(m, on_control));
    }
    return m;
}

/* --- life --- */

static bool is_address(const char *host)
{
    struct in6_addr ignored;
    return inet_pton(AF_INET, host, &ignored) == 1 || inet_pton(AF_INET6, host, &ignored) == 1;
}

/* Without brackets, and without the dot that makes a name absolute: certificates have neither. */
static void set_host(struct tls *s, const char *host)
{
    size_t n = strlen(host);
    if (n > 1 && host[0] == '[' && host[n - 1] == ']') {
        host++;
        n -= 2;
    } else if (n > 1 && host[n - 1] == '.') {
        n--;
    }
    check(n < sizeof s->host);
    memcpy(s->host, host, n);
}

static void set_peer(struct tls *s)
{
    X509_VERIFY_PARAM *verify = SSL_get0_param(s->ssl);
    X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                                X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (is_address(s->host)) {
        check(X509_VERIFY_PARAM_set1_ip_asc(verify, s->host) == 1);
        return;
    }
    check(X509_VERIFY_PARAM_set1_host(verify, s->host, 0) == 1);
    check(SSL_set_tlsext_host_name(s->ssl, s->host) == 1);
}

static void set_protocols(struct tls *s, bool h2)
{
    static const unsigned char both[] = "\2h2\10http/1.1";
    size_t from = h2 ? 0 : 3;
    check(SSL_set_alpn_protos(s->ssl, both + from, (unsigned)(sizeof both - 1 - from)) == 0);
}

struct tls *tls_on_socket(SSL_CTX *c, int fd, struct sem *helper)
{
    struct tls *s = check_memory(calloc(1, sizeof *s));
    s->fd = fd;
    s->helper = helper;
    s->ssl = check_memory(SSL_new(c));
    check(SSL_set_ex_data(s->ssl, tls_ssl_index(), s) == 1);
    BIO *b = check_memory(BIO_new(socket_method()));
    BIO_set_data(b, s);
    BIO_set_init(b, 1);
    SSL_set_bio(s->ssl, b, b);
    return s;
}

struct tls *tls_new(struct tls_context *c, int fd, const struct tls_peer *peer)
{
    struct tls *s = tls_on_socket(tls_context_ssl(c), fd, tls_context_helper(c));
    s->resume = peer->resume;
    SSL_set_connect_state(s->ssl);
    set_host(s, peer->host);
    set_peer(s);
    set_protocols(s, peer->h2);
    if (s->resume && s->resume->session)
        (void)SSL_set_session(s->ssl, s->resume->session); /* else a full handshake */
    return s;
}

void tls_end(struct tls *s)
{
    ERR_clear_error();
    if (s->established && !s->broken)
        (void)SSL_shutdown(s->ssl);
    else if (s->established) /* else the session would count as bad, and not be resumed */
        SSL_set_shutdown(s->ssl, SSL_SENT_SHUTDOWN);
    SSL_free(s->ssl);
    ERR_clear_error();
    free(s);
}

void tls_resume_release(struct tls_resume *r)
{
    SSL_SESSION_free(r->session);
    r->session = NULL;
}

/* --- steps --- */

/* After a call that returned r. True: it is to be repeated when tls_wants has come. */
static bool waits(struct tls *s, int r)
{
    int why = SSL_get_error(s->ssl, r);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        s->wants = why == SSL_ERROR_WANT_READ ? WATCH_READ : WATCH_WRITE;
        return true;
    }
    s->broken = s->broken || why == SSL_ERROR_SSL || why == SSL_ERROR_SYSCALL;
    return false;
}

enum tls_step tls_handshake(struct tls *s)
{
    if (s->broken)
        return TLS_FAILED;
    ERR_clear_error();
    int r = SSL_do_handshake(s->ssl);
    int why = SSL_get_error(s->ssl, r);
    s->heavy = why == SSL_ERROR_WANT_RETRY_VERIFY || why == SSL_ERROR_WANT_X509_LOOKUP;
    if (s->heavy)
        return TLS_HEAVY;
    if (r == 1) {
        s->established = true;
        return TLS_DONE;
    }
    if (waits(s, r))
        return TLS_WAITS;
    s->broken = true;
    tls_explain(s);
    return TLS_FAILED;
}

static ssize_t failed(struct tls *s)
{
    tls_explain(s);
    errno = s->cut ? ECONNRESET : s->os_error ? s->os_error : EPROTO;
    return -1;
}

ssize_t tls_recv(struct tls *s, void *p, size_t n)
{
    size_t got;
    if (s->broken)
        return failed(s);
    ERR_clear_error();
    int r = SSL_read_ex(s->ssl, p, n, &got);
    if (r == 1)
        return (ssize_t)got;
    if (waits(s, r)) {
        errno = EAGAIN;
        return -1;
    }
    return s->broken ? failed(s) : 0; /* else the peer has said that it ends */
}

ssize_t tls_send(struct tls *s, const void *p, size_t n)
{
    size_t taken;
    if (s->broken)
        return failed(s);
    ERR_clear_error();
    int r = SSL_write_ex(s->ssl, p, n, &taken);
    if (r == 1)
        return (ssize_t)taken;
    if (waits(s, r)) {
        errno = EAGAIN;
        return -1;
    }
    return failed(s);
}

int tls_wants(const struct tls *s)
{
    return s->wants;
}

bool tls_is_h2(const struct tls *s)
{
    const unsigned char *name;
    unsigned n;
    SSL_get0_alpn_selected(s->ssl, &name, &n);
    return n == 2 && memcmp(name, "h2", 2) == 0;
}

bool tls_resumed(const struct tls *s)
{
    return SSL_session_reused(s->ssl) == 1;
}

const char *tls_problem(const struct tls *s)
{
    return s->problem;
}
