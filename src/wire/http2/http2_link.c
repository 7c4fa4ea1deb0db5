#include "wire/http2/http2_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "wire/http2/http2_memory.h"

#define READ_BYTES          65536
#define SEND_BYTES          65536  /* are sent before the turn ends, while in the CPU cache */
#define KEPT_BYTES          262144 /* by an empty buffer */
#define RECORDS_IN_ONE_TURN 64     /* of TLS, of 16 KB at most */

/* One buffer for all links: no task waits while it is in use. */
static char received[READ_BYTES];

/* --- the end --- */

void http2_link_end(struct http2_link *k, const char *why)
{
    if (!k->why)
        k->why = why;
    poller_set(&k->poller, 0);
    timer_set(&k->flush, loop_now_ms(k->loop));
}

static void end(struct http2_link *k)
{
    timer_clear(&k->flush);
    k->on_end(k->arg); /* k may be gone after this */
}

/* --- out --- */

static ssize_t write_some(struct http2_link *k, struct str s)
{
    if (k->tls)
        return tls_send(k->tls, s.p, s.n);
    return send(k->fd, s.p, s.n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* TLS may have to write before it can read on. */
static void watch_on(struct http2_link *k)
{
    bool writes = k->out.len > 0 || (k->tls && tls_wants(k->tls) == WATCH_WRITE);
    if (!k->why)
        poller_set(&k->poller, WATCH_READ | (writes ? WATCH_WRITE : 0));
}

/* Sends what the kernel takes; the poller calls again for the rest. */
static void send_out(struct http2_link *k)
{
    while (k->out.len > 0) {
        ssize_t n = write_some(k, buf_str(&k->out));
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && errno != EINTR) {
            http2_link_end(k, strerror(errno));
            return;
        }
        if (n > 0) {
            buf_consume(&k->out, (size_t)n);
            k->sent += (uint64_t)n;
            k->moved_ms = loop_now_ms(k->loop);
        }
    }
    buf_shrink(&k->out, KEPT_BYTES);
    watch_on(k);
}

void http2_link_pack(struct http2_link *k)
{
    const uint8_t *p;
    ssize_t n;
    if (k->out.len == 0)
        k->moved_ms = loop_now_ms(k->loop);
    while (!k->why && k->out.len < HTTP2_OUT_BYTES_MAX &&
           (n = nghttp2_session_mem_send(k->session, &p)) != 0) {
        if (n < 0) {
            http2_link_end(k, nghttp2_strerror((int)n));
            return;
        }
        buf_add(&k->out, p, (size_t)n);
    }
    if (k->out.len == 0 || (k->poller.events & WATCH_WRITE))
        return;
    if (k->out.len >= SEND_BYTES && !k->tls) /* which needs the loop's stack */
        send_out(k);
    else
        timer_set(&k->flush, loop_now_ms(k->loop));
}

/* --- in --- */

static void feed(struct http2_link *k, size_t n)
{
    ssize_t used = nghttp2_session_mem_recv(k->session, (const uint8_t *)received, n);
    if (used < 0)
        http2_link_end(k, nghttp2_strerror((int)used));
    timer_set(&k->flush, loop_now_ms(k->loop)); /* acknowledgements, windows */
}

/* What TLS has read ahead makes no event: all of it is read, now or in the next turn. */
static void receive(struct http2_link *k)
{
    k->unread = k->tls != NULL;
    for (int i = 0; !k->why && i < (k->tls ? RECORDS_IN_ONE_TURN : 1); i++) {
        ssize_t n = k->tls ? tls_recv(k->tls, received, sizeof received)
                           : recv(k->fd, received, sizeof received, MSG_DONTWAIT);
        if (n > 0) {
            feed(k, (size_t)n);
            continue;
        }
        k->unread = false;
        if (n == 0)
            http2_link_end(k, "the connection was closed");
        else if (errno != EAGAIN && errno != EINTR)
            http2_link_end(k, strerror(errno));
        break;
    }
    if (k->tls)
        watch_on(k);
}

static void on_flush(void *arg)
{
    struct http2_link *k = arg;
    if (k->unread && !k->why)
        receive(k);
    http2_link_pack(k);
    send_out(k); /* also before an end: it may be a GOAWAY that says why */
    if (k->why)
        end(k);
    else if (k->out.len == 0 && !nghttp2_session_want_read(k->session) &&
             !nghttp2_session_want_write(k->session))
        http2_link_end(k, "the connection was closed");
    else if (k->unread)
        timer_set(&k->flush, loop_now_ms(k->loop));
}

static void on_ready(void *arg, int fd, int events)
{
    (void)fd;
    struct http2_link *k = arg;
    if (events & WATCH_WRITE) {
        send_out(k);
        timer_set(&k->flush, loop_now_ms(k->loop)); /* there may be more, or the end */
    }
    if (!k->why && ((events & WATCH_READ) || k->tls))
        receive(k);
    if (k->unread)
        timer_set(&k->flush, loop_now_ms(k->loop));
}

/* --- life --- */

void http2_link_greet(nghttp2_session *session)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTP2_STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP2_HEAD_BYTES_MAX},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    check(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings,
                                  sizeof settings / sizeof *settings) == 0);
    check(nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
                                                HTTP2_CONNECTION_WINDOW) == 0);
}

void http2_link_init(struct http2_link *k, struct loop *l, int fd, nghttp2_session *session,
                     void (*on_end)(void *arg), void *arg)
{
    *k = (struct http2_link){.loop = l, .fd = fd, .session = session, .on_end = on_end, .arg = arg};
    buf_init(&k->out);
    timer_init(&k->flush, l, on_flush, k);
    poller_init(&k->poller, l, fd, on_ready, k);
    poller_set(&k->poller, WATCH_READ);
}

void http2_link_secure(struct http2_link *k, struct tls *tls)
{
    k->tls = tls;
    k->unread = true; /* it may have read ahead before */
    timer_set(&k->flush, loop_now_ms(k->loop));
}

void http2_link_release(struct http2_link *k)
{
    poller_release(&k->poller);
    timer_clear(&k->flush);
    nghttp2_session_del(k->session);
    http2_memory_trim();
    buf_release(&k->out);
    if (k->tls)
        tls_end(k->tls);
    close(k->fd);
}
