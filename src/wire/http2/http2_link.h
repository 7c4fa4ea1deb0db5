/* http2_link.h -- the bytes of one HTTP/2 connection, between its socket and an nghttp2 session.
 *
 * Client and server share this and have callbacks of their own for the frames. The output of all
 * tasks in one turn of the loop leaves in one write, and all input is read in one go: a thousand
 * calls on one connection cost a few system calls, not thousands.
 *
 * Runs on the loop's own stack, but for http2_link_pack, which runs on its caller's. */
#ifndef WIRE_HTTP2_LINK_H
#define WIRE_HTTP2_LINK_H

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "loop/timer.h"
#include "loop/watch.h"
#include "wire/tls.h"

#define HTTP2_FRAME_HEAD_BYTES  9
#define HTTP2_STREAMS_MAX       1000 /* on one connection */
#define HTTP2_STREAM_WINDOW     (1 << 20)
#define HTTP2_CONNECTION_WINDOW (64 << 20)
#define HTTP2_HEAD_BYTES_MAX    65536
#define HTTP2_OUT_BYTES_MAX     (1 << 20) /* unsent; then the session waits */

struct http2_link {
    struct loop *loop;
    int fd;
    struct tls *tls; /* NULL: plain */
    bool unread;     /* TLS may hold input that the poller does not see */
    nghttp2_session *session;
    struct poller poller;
    struct timer flush;
    struct buf out;
    uint64_t sent;    /* bytes the kernel has taken */
    int64_t moved_ms; /* of the last send; valid while out is not empty */
    const char *why;  /* why it ended; NULL: open */
    /* Called once, on the loop's stack. The owner drops the session's streams, and may release the
     * link. */
    void (*on_end)(void *arg);
    void *arg;
};

static inline nghttp2_nv http2_field(struct str name, struct str value, uint8_t flags)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
                        value.n, flags};
}

/* Takes over fd, which is connected and non-blocking, and the session. Reads from the next turn. */
void http2_link_init(struct http2_link *k, struct loop *l, int fd, nghttp2_session *session,
                     void (*on_end)(void *arg), void *arg);
/* Takes over the TLS of a connection right after http2_link_init. */
void http2_link_secure(struct http2_link *k, struct tls *tls);
void http2_link_release(struct http2_link *k); /* closes the socket, frees the session */

/* Turns submitted frames into bytes, which leave at the end of the turn, or when they are many. */
void http2_link_pack(struct http2_link *k);
/* Ends the connection at the end of the turn; on_end follows. */
void http2_link_end(struct http2_link *k, const char *why);
/* Submits the settings that both sides begin with, and the larger window. */
void http2_link_greet(nghttp2_session *session);
#endif
