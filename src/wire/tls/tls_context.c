/* Settings and trusted certificates, read on a helper thread (singleflight). */
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "loop/offload.h"
#include "loop/sync.h"
#include "wire/tls/tls_private.h"

/* One read of the socket takes so much: several small records. Freed when it is empty. */
#define READ_AHEAD_BYTES 32768

struct tls_context {
    char *ca_file, *cert_file, *key_file; /* NULL: none named */
    SSL_CTX *ssl;                         /* NULL: not read yet */
    struct sem helper;
    bool reading;
    struct waitq waiters;
    size_t failures; /* to read */
    char problem[TLS_PROBLEM_BYTES];
};

/* On a helper thread: touches nothing else. */
struct reading {
    const struct tls_context *context;
    SSL_CTX *ssl; /* NULL: failed */
    char problem[TLS_PROBLEM_BYTES];
};

static char *copy(const char *text)
{
    return text && *text ? check_memory(strdup(text)) : NULL;
}

struct tls_context *tls_context_new(const struct tls_options *o)
{
    struct tls_context *c = check_memory(calloc(1, sizeof *c));
    c->ca_file = copy(o->ca_file);
    c->cert_file = copy(o->cert_file);
    c->key_file = copy(o->key_file);
    waitq_init(&c->waiters);
    sem_init(&c->helper, TLS_HELPERS);
    return c;
}

void tls_context_free(struct tls_context *c)
{
    check(!c->reading);
    SSL_CTX_free(c->ssl);
    free(c->ca_file);
    free(c->cert_file);
    free(c->key_file);
    free(c);
}

SSL_CTX *tls_context_ssl(struct tls_context *c)
{
    check(c->ssl); /* else tls_context_ready was not called */
    return c->ssl;
}

struct sem *tls_context_helper(struct tls_context *c)
{
    return &c->helper;
}

int tls_ssl_index(void)
{
    static int index = -1;
    if (index < 0)
        index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    check(index >= 0);
    return index;
}

/* --- files --- */

static bool trust_file(struct reading *r, X509_STORE *store, const char *path)
{
    if (!tls_readable("the CA file", path, r->problem))
        return false;
    ERR_clear_error();
    if (X509_STORE_load_file(store, path))
        return true;
    snprintf(r->problem, sizeof r->problem, "the CA file %s has no usable certificate in it: %s",
             path, tls_last_error());
    return false;
}

/* What SSL_CTX_set_default_verify_paths does; but that is silent when there is nothing. */
static bool trust_system(struct reading *r, X509_STORE *store)
{
    const char *file = secure_getenv(X509_get_default_cert_file_env());
    const char *dir = secure_getenv(X509_get_default_cert_dir_env());
    if (file && !trust_file(r, store, file))
        return false;
    bool some = file || (access(X509_get_default_cert_file(), R_OK) == 0 &&
                         trust_file(r, store, X509_get_default_cert_file()));
    if (!dir)
        dir = X509_get_default_cert_dir();
    /* Certificates in it are looked up by their hash when they are needed. */
    if (access(dir, R_OK | X_OK) == 0 && X509_STORE_load_path(store, dir))
        some = true;
    if (!some)
        snprintf(r->problem, sizeof r->problem,
                 "this machine has no CA certificates: neither %s nor %s can be read",
                 X509_get_default_cert_file(), dir);
    return some;
}

/* --- settings --- */

/* TLS 1.3 brings sessions after the handshake, any number: the last one counts. None comes in the
 * step that verifies or signs; if one did, it would be let go: resume is the loop's. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls *s = SSL_get_ex_data(ssl, tls_ssl_index());
    if (!s->resume || s->heavy)
        return 0;
    SSL_SESSION_free(s->resume->session);
    s->resume->session = session;
    return 1; /* kept */
}

void tls_set_up(SSL_CTX *c)
{
    check(SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) == 1);
    SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(c, 1);
    SSL_CTX_set_default_read_buffer_len(c, READ_AHEAD_BYTES);
}

static void set_up(SSL_CTX *c)
{
    tls_set_up(c);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(c, on_session);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, tls_on_verify);
    SSL_CTX_set_cert_verify_callback(c, tls_on_chain, NULL);
    /* An intermediate authority in the CA file is trusted like a root. */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(c), X509_V_FLAG_PARTIAL_CHAIN);
}

/* On a helper thread. */
static void read_files(void *arg)
{
    struct reading *r = arg;
    r->ssl = check_memory(SSL_CTX_new(TLS_client_method()));
    set_up(r->ssl);
    X509_STORE *store = SSL_CTX_get_cert_store(r->ssl);
    const char *file = r->context->ca_file;
    const char *cert = r->context->cert_file, *key = r->context->key_file;
    bool fine = (file ? trust_file(r, store, file) : trust_system(r, store)) &&
                (!cert || tls_use_cert(r->ssl, cert, key, r->problem));
    ERR_clear_error(); /* nothing of it is for the next job of this thread */
    if (fine)
        return;
    SSL_CTX_free(r->ssl);
    r->ssl = NULL;
}

static int read_for_all(struct task *t, struct tls_context *c)
{
    struct reading r = {.context = c};
    c->reading = true;
    int err = offload(t, read_files, &r);
    c->reading = false;
    c->ssl = r.ssl;
    if (!err && !c->ssl) {
        c->failures++;
        memcpy(c->problem, r.problem, sizeof c->problem);
        err = task_fail(t, ERR_UNAVAILABLE, "TLS: %s", c->problem);
    }
    waitq_wake_all(&c->waiters);
    return err;
}

int tls_context_ready(struct task *t, struct tls_context *c)
{
    while (!c->ssl) {
        size_t failures = c->failures;
        int err = c->reading ? waitq_wait(t, &c->waiters) : read_for_all(t, c);
        if (err)
            return err;
        if (failures != c->failures)
            return task_fail(t, ERR_UNAVAILABLE, "TLS: %s", c->problem);
    }
    return 0;
}
