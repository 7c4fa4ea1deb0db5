/* tls.h -- TLS over connected sockets, by OpenSSL 3.
 *
 * TLS 1.2 and up. A client always verifies the server's certificate: its chain against the CA file
 * or the system's store, its validity, and the host's name or address against its subjectAltName (a
 * common name does not count). Revocation is not checked. Names are sent as SNI, addresses are
 * not. A server asks for no certificate. No renegotiation, no compression, no early data.
 *
 * No step waits, and none raises SIGPIPE. OpenSSL's calls are deep: handshake, recv and send run on
 * the loop's own stack, from pollers and timers or by task_aside.
 *
 * No text of this room has a byte of a key in it, or of what was sent. */
#ifndef WIRE_TLS_H
#define WIRE_TLS_H

#include <sys/types.h>

#include "base/str.h"
#include "loop/task.h"

#define TLS_PROBLEM_BYTES 400 /* room for a text */

/* --- the client's side --- */

/* Each may be NULL or empty: none. */
struct tls_options {
    const char *ca_file; /* PEM; none: the system's, or SSL_CERT_FILE and SSL_CERT_DIR */
    /* PEM: the certificate that is shown to servers that ask for one, its chain, and the key.
     * Without a key_file the key is in cert_file, too. */
    const char *cert_file, *key_file;
};

/* What the connections of one client share: settings and trusted certificates. */
struct tls_context;
struct tls_context *tls_context_new(const struct tls_options *o); /* reads no file */
void tls_context_free(struct tls_context *c); /* no connection is left, no task waits */
/* Reads the files, once, on a helper thread: the system's store takes 20 ms. Must have returned 0
 * before tls_new. ERR_UNAVAILABLE: a file cannot be used, and the message names it; the next call
 * reads again. */
MUST_CHECK int tls_context_ready(struct task *t, struct tls_context *c);

/* The last session with a host, which makes the next handshake cheap. All zero: none. */
struct tls_resume {
    struct ssl_session_st *session;
};
void tls_resume_release(struct tls_resume *r);

struct tls; /* of a client or a server */

struct tls_peer {
    const char *host;          /* a name, or an address; of IPv6 with or without brackets */
    bool h2;                   /* offers HTTP/2 before HTTP/1.1, else HTTP/1.1 alone */
    struct tls_resume *resume; /* outlives the connection; may be NULL */
};
/* Does not own fd, which does not block. */
struct tls *tls_new(struct tls_context *c, int fd, const struct tls_peer *peer);

/* --- the server's side --- */

struct tls_server_options {
    const char *cert_file; /* PEM: the certificate, then the chain above it */
    const char *key_file;  /* PEM, without a password */
    bool h2;               /* HTTP/2 before HTTP/1.1, else HTTP/1.1 alone */
};

/* Settings, certificate and the keys of session tickets, which are made here: only tickets of this
 * process are resumed. */
struct tls_server;
/* Reads the files, on the caller's thread: for a start. NULL: a file cannot be used, and problem,
 * of TLS_PROBLEM_BYTES, names it. A certificate that has expired is used, with a warning. */
struct tls_server *tls_server_new(const struct tls_server_options *o, char *problem);
void tls_server_free(struct tls_server *s); /* no connection is left; NULL is fine */
/* Of an accepted socket, which does not block; does not own fd. */
struct tls *tls_accept(struct tls_server *s, int fd);

/* --- both --- */

/* Tells the peer, without waiting, and frees. The socket can then be closed. */
void tls_end(struct tls *s);

enum tls_step { TLS_DONE, TLS_WAITS, TLS_HEAVY, TLS_FAILED };
/* TLS_HEAVY: the next step can be taken at once, and takes milliseconds: it verifies or signs with
 * a large key. It may be taken on another thread, if no other call uses s meanwhile. */
enum tls_step tls_handshake(struct tls *s);
bool tls_is_h2(const struct tls *s); /* after the handshake */
bool tls_resumed(const struct tls *s);

/* As recv and send on a socket that does not block, with EAGAIN. tls_recv returns 0 only if the
 * peer has said that it ends: a cut connection is ECONNRESET. A short read does not mean that there
 * is no more: only EAGAIN does. What tls_send did not take must be sent again, from any address,
 * before anything else. Of what it did not take no byte can be read by the peer. */
ssize_t tls_recv(struct tls *s, void *p, size_t n);
ssize_t tls_send(struct tls *s, const void *p, size_t n);
/* After TLS_WAITS or EAGAIN: the WATCH_ bit to wait for. */
int tls_wants(const struct tls *s);

/* --- the same for a task, on the loop's stack --- */

struct watch;
/* tls_new or tls_accept, and the handshake until it is done. Steps stand back (task.h), heavy ones
 * run on a helper thread. ERR_CLOSED: it has failed; the task's text says why. *out must be ended
 * also after an error, unless it is NULL. */
MUST_CHECK int tls_task_connect(struct task *t, struct tls_context *c, const struct tls_peer *peer,
                                struct watch *w, struct tls **out);
MUST_CHECK int tls_task_accept(struct task *t, struct tls_server *s, struct watch *w,
                               struct tls **out);
ssize_t tls_task_recv(struct task *t, struct tls *s, void *p, size_t n);
ssize_t tls_task_send(struct task *t, struct tls *s, struct str text);
/* As watch_read. Another task may write meanwhile. */
MUST_CHECK int tls_task_read(struct task *t, struct tls *s, struct watch *w, void *p, size_t n,
                             size_t *got);
void tls_task_end(struct task *t, struct tls *s);

/* After TLS_FAILED, or -1 without EAGAIN: one sentence that names the cause. */
const char *tls_problem(const struct tls *s);
#endif
