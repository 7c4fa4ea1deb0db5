/* http2_link.h -- the bytes of one HTTP/2 connection, between its socket and an nghttp2 session.
 *
 * Client and server share this; what the frames mean is theirs. Everything that tasks have to say in
 * one turn of the loop leaves in one write, and everything that has come is read in one go: so a
 * thousand calls on one connection cost a few system calls, not thousands.
 *
 * Runs on the loop's own stack, but for http2_link_pack, which runs on its caller's. */
#ifndef WIRE_HTTP2_LINK_H
#define WIRE_HTTP2_LINK_H

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "loop/timer.h"
#include "loop/watch.h"

#define HTTP2_FRAME_HEAD_BYTES  9
#define HTTP2_STREAMS_MAX       1000 /* on one connection */
#define HTTP2_STREAM_WINDOW     (1 << 20)
#define HTTP2_CONNECTION_WINDOW (64 << 20)
#define HTTP2_HEAD_BYTES_MAX    65536
#define HTTP2_OUT_BYTES_MAX     (1 << 20) /* that the kernel does not take: the session waits then */

struct http2_link {
    struct loop *loop;
    int fd;
    nghttp2_session *session;
    struct poller poller;
    struct timer flush;
    struct buf out;
    uint64_t sent;    /* bytes the kernel has taken */
    int64_t moved_ms; /* when bytes have last left; of meaning while out holds some */
    const char *why;  /* it has ended; NULL: not yet */
    /* Called once, on the loop's stack. The owner lets go of the session's streams, and may release the link. */
    void (*on_end)(void *arg);
    void *arg;
};

/* Takes over fd, which is connected and does not block, and the session. Reads from the next turn on. */
void http2_link_init(struct http2_link *k, struct loop *l, int fd, nghttp2_session *session,
                     void (*on_end)(void *arg), void *arg);
void http2_link_release(struct http2_link *k); /* closes the socket, frees the session */

/* Turns what has been submitted into bytes, which leave at the end of the turn, or when they are many. */
void http2_link_pack(struct http2_link *k);
/* Ends the connection at the end of the turn; on_end follows. */
void http2_link_end(struct http2_link *k, const char *why);
/* Submits the settings that both sides begin with, and the larger window. */
void http2_link_greet(nghttp2_session *session);
#endif
