#include "wire/http2/http2_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "wire/http2/http2_memory.h"

#define READ_BYTES 65536
#define SEND_BYTES 65536  /* so many are sent before the turn ends, while in the CPU cache */
#define KEPT_BYTES 262144 /* by an empty buffer */

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

/* Sends what the kernel takes; the poller calls again for the rest. */
static void send_out(struct http2_link *k)
{
    while (k->out.len > 0) {
        struct str s = buf_str(&k->out);
        ssize_t n = send(k->fd, s.p, s.n, MSG_NOSIGNAL | MSG_DONTWAIT);
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
    if (!k->why)
        poller_set(&k->poller, WATCH_READ | (k->out.len > 0 ? WATCH_WRITE : 0));
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
    if (k->out.len >= SEND_BYTES)
        send_out(k);
    else
        timer_set(&k->flush, loop_now_ms(k->loop));
}

static void on_flush(void *arg)
{
    struct http2_link *k = arg;
    http2_link_pack(k);
    send_out(k); /* also before an end: it may be a GOAWAY that says why */
    if (k->why)
        end(k);
    else if (k->out.len == 0 && !nghttp2_session_want_read(k->session) &&
             !nghttp2_session_want_write(k->session))
        http2_link_end(k, "the connection was closed");
}

/* --- in --- */

static void feed(struct http2_link *k, size_t n)
{
    ssize_t used = nghttp2_session_mem_recv(k->session, (const uint8_t *)received, n);
    if (used < 0)
        http2_link_end(k, nghttp2_strerror((int)used));
    timer_set(&k->flush, loop_now_ms(k->loop)); /* acknowledgements, windows */
}

static void on_ready(void *arg, int fd, int events)
{
    struct http2_link *k = arg;
    if (events & WATCH_WRITE) {
        send_out(k);
        timer_set(&k->flush, loop_now_ms(k->loop)); /* there may be more, or the end */
    }
    if (!(events & WATCH_READ) || k->why)
        return;
    ssize_t n = recv(fd, received, sizeof received, MSG_DONTWAIT);
    if (n > 0)
        feed(k, (size_t)n);
    else if (n == 0)
        http2_link_end(k, "the connection was closed");
    else if (errno != EAGAIN && errno != EINTR)
        http2_link_end(k, strerror(errno));
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

void http2_link_release(struct http2_link *k)
{
    poller_release(&k->poller);
    timer_clear(&k->flush);
    nghttp2_session_del(k->session);
    http2_memory_trim();
    buf_release(&k->out);
    close(k->fd);
}
