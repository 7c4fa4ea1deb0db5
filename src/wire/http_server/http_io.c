/* Bytes between a connection and its socket. Waiting for the client does not count as the handler's
 * time: its deadline is suspended, and only the transfer's holds. */
#include <errno.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/http_server/http2_conn.h"
#include "wire/http_server/http_exchange.h"

/* A client as fast as the server never makes its task wait: it yields after so many bytes. */
#define BURST_BYTES_MAX (256 * 1024)

struct http_pause http_pause(struct task *t, int64_t until_ms)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    struct http_pause p = {task_deadline(t, TIME_NEVER), now_ms};
    task_deadline_restore(t, TIME_NEVER);
    (void)task_deadline(t, until_ms - now_ms);
    return p;
}

void http_resume(struct task *t, struct http_exchange *x, struct http_pause p)
{
    if (x->handler_deadline_ms && p.deadline_ms == x->handler_deadline_ms) {
        x->handler_deadline_ms += loop_now_ms(task_loop(t)) - p.since_ms;
        p.deadline_ms = x->handler_deadline_ms;
    }
    task_deadline_restore(t, p.deadline_ms);
}

int http_take_turns(struct task *t, struct http_conn *c, size_t bytes)
{
    c->burst_bytes += bytes;
    if (c->burst_bytes < BURST_BYTES_MAX)
        return 0;
    c->burst_bytes = 0;
    return task_yield(t);
}

int http_receive(struct task *t, struct http_conn *c, int64_t until_ms, void *p, size_t n,
                 size_t *got)
{
    struct http_pause pause = http_pause(t, until_ms);
    int err = c->tls ? tls_task_read(t, c->tls, &c->watch, p, n, got)
                     : watch_read(t, &c->watch, p, n, got);
    http_resume(t, &c->kit->x, pause);
    if (err || *got == 0)
        return err ? err : ERR_CLOSED;
    return http_take_turns(t, c, *got);
}

static int fail(struct http_conn *c, int err)
{
    c->broken = true;
    buf_clear(&c->kit->out);
    return err;
}

/* After a send that moved nothing: waits until another may move something. */
static int wait_writable(struct task *t, struct http_conn *c)
{
    if (errno == EINTR)
        return 0;
    if (errno != EAGAIN)
        return ERR_CLOSED;
    int wants = c->tls ? tls_wants(c->tls) : WATCH_WRITE;
    watch_drained(&c->watch, wants);
    int64_t write_ms = c->server->options.limits.write_ms;
    struct http_pause pause = http_pause(t, loop_now_ms(task_loop(t)) + write_ms);
    int err = watch_wait(t, &c->watch, wants);
    http_resume(t, &c->kit->x, pause);
    return err;
}

/* One piece is the common case, and send is cheaper than sendmsg. */
static ssize_t send_both(int fd, struct str first, struct str second, int flags)
{
    if (second.n == 0 || first.n == 0)
        return send(fd, first.n ? first.p : second.p, first.n + second.n, flags);
    struct iovec iov[2] = {{(char *)(uintptr_t)first.p, first.n},
                           {(char *)(uintptr_t)second.p, second.n}};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
    return sendmsg(fd, &m, flags);
}

static int send_all(struct task *t, struct http_conn *c, struct str body, int flags)
{
    struct str out = buf_str(&c->kit->out);
    while (out.n + body.n > 0) {
        ssize_t n = c->tls ? tls_task_send(t, c->tls, out.n ? out : body)
                           : send_both(c->watch.fd, out, body, flags);
        int err = n < 0 ? wait_writable(t, c) : http_take_turns(t, c, (size_t)n);
        if (err)
            return fail(c, err);
        if (n < 0)
            continue;
        size_t of_out = (size_t)n < out.n ? (size_t)n : out.n;
        out = str_from(out.p + of_out, out.n - of_out);
        body = str_from(body.p + ((size_t)n - of_out), body.n - ((size_t)n - of_out));
    }
    buf_clear(&c->kit->out);
    return 0;
}

int http_send(struct task *t, struct http_conn *c, struct str body)
{
    if (c->broken)
        return ERR_CLOSED;
    return c->stream ? http2_stream_send(t, c->stream, body) : send_all(t, c, body, 0);
}

/* The kernel has no key to encrypt with. */
static int send_file_secure(struct task *t, struct http_conn *c, int fd, uint64_t offset,
                            uint64_t count)
{
    int err = send_all(t, c, STR(""), 0);
    while (count > 0 && !err) {
        size_t step = count < HTTP_OUT_BYTES_MAX ? (size_t)count : HTTP_OUT_BYTES_MAX;
        ssize_t n = pread(fd, buf_reserve(&c->kit->out, step), step, (off_t)offset);
        if (n <= 0)
            return fail(c, ERR_IO); /* it has become shorter than its Content-Length */
        buf_added(&c->kit->out, (size_t)n);
        err = send_all(t, c, STR(""), 0);
        offset += (uint64_t)n;
        count -= (uint64_t)n;
    }
    return err;
}

int http_send_file(struct task *t, struct http_conn *c, int fd, uint64_t offset, uint64_t count)
{
    if (c->broken)
        return ERR_CLOSED;
    if (c->stream)
        return http2_stream_send_file(t, c->stream, fd, offset, count);
    if (c->tls)
        return send_file_secure(t, c, fd, offset, count);
    int err = send_all(t, c, STR(""), MSG_MORE);
    off_t at = (off_t)offset;
    while (count > 0 && !err) {
        size_t step = count < BURST_BYTES_MAX ? (size_t)count : BURST_BYTES_MAX;
        ssize_t n = sendfile(c->watch.fd, fd, &at, step);
        if (n > 0) {
            count -= (uint64_t)n;
            err = http_take_turns(t, c, (size_t)n);
        } else {
            /* At 0 the file has become shorter than its Content-Length. */
            err = n == 0 ? ERR_IO : wait_writable(t, c);
        }
    }
    return err ? fail(c, err) : 0;
}
