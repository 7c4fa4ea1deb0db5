#include "wire/http_server/http_exchange.h"

/* A stream may go on for hours: from here on only the write deadline holds. A deadline that the
 * handler has set itself stays. */
static void lift_handler_deadline(struct task *t, struct http_exchange *x)
{
    int64_t deadline_ms = task_deadline(t, TIME_NEVER);
    if (deadline_ms == x->handler_deadline_ms)
        task_deadline_restore(t, TIME_NEVER);
    x->handler_deadline_ms = 0;
}

static int begin(struct task *t, struct http_exchange *x)
{
    x->state = HTTP_STREAMING;
    lift_handler_deadline(t, x);
    return http_send(t, x->conn, STR(""));
}

static int begin_unsized(struct task *t, struct http_exchange *x, int status, const char *type)
{
    /* Without chunks the body ends with the connection, or with the HTTP/2 stream. */
    x->chunked = x->head->minor > 0 && !x->conn->stream;
    http_add_head(x, status, type, false, 0);
    return begin(t, x);
}

int http_stream_begin(struct task *t, struct http_exchange *x, int status, const char *type)
{
    (void)http_gzip_begin(x, UINT64_MAX);
    return begin_unsized(t, x, status, type);
}

int http_stream_begin_sized(struct task *t, struct http_exchange *x, int status, const char *type,
                            uint64_t length)
{
    x->sized = true;
    x->stream_left = x->headless ? 0 : length;
    if (http_gzip_begin(x, length))
        return begin_unsized(t, x, status, type);
    http_add_head(x, status, type, true, length);
    return begin(t, x);
}

static int write_piece(struct task *t, struct http_exchange *x, struct str piece)
{
    struct http_conn *c = x->conn;
    if (piece.n == 0) /* an empty chunk would be the end */
        return 0;
    if (x->chunked)
        buf_printf(&c->kit->out, "%zx\r\n", piece.n);
    if (piece.n > HTTP_COPY_BYTES_MAX) {
        int err = http_send(t, c, piece);
        if (err)
            return err;
    } else {
        buf_add_str(&c->kit->out, piece);
    }
    if (x->chunked)
        buf_add_lit(&c->kit->out, "\r\n");
    return http_send(t, c, STR(""));
}

int http_stream_write(struct task *t, struct http_exchange *x, struct str piece)
{
    if (x->conn->broken)
        return ERR_CLOSED;
    check(x->state == HTTP_STREAMING);
    if (x->headless)
        return 0;
    if (x->sized) {
        check(piece.n <= x->stream_left);
        x->stream_left -= piece.n;
    }
    int err = x->gzip ? http_gzip_piece(t, x, &piece, false) : 0;
    return err ? err : write_piece(t, x, piece);
}

int http_stream_end(struct task *t, struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    if (c->broken)
        return ERR_CLOSED;
    check(x->state == HTTP_STREAMING && x->stream_left == 0);
    struct str rest = STR("");
    int err = x->gzip ? http_gzip_piece(t, x, &rest, true) : 0;
    if (!err)
        err = write_piece(t, x, rest);
    if (err)
        return err;
    x->state = HTTP_ANSWERED;
    if (x->chunked && !x->headless)
        buf_add_lit(&c->kit->out, "0\r\n\r\n");
    return 0;
}

int sse_begin(struct task *t, struct http_exchange *x)
{
    x->events = true;
    http_set_header(x, "Cache-Control", STR("no-store"));
    http_set_header(x, "X-Accel-Buffering", STR("no")); /* nginx would hold events back */
    return http_stream_begin(t, x, 200, "text/event-stream; charset=utf-8");
}

/* Cuts a line off; CR, LF and CR LF all end one in event streams. */
static struct str cut_line(struct str *rest)
{
    struct str line = *rest;
    size_t n = 0;
    while (n < line.n && line.p[n] != '\n' && line.p[n] != '\r')
        n++;
    if (n == line.n) {
        *rest = STR_NULL;
        return line;
    }
    size_t end = n + (line.p[n] == '\r' && n + 1 < line.n && line.p[n + 1] == '\n' ? 2 : 1);
    *rest = str_from(line.p + end, line.n - end);
    return str_from(line.p, n);
}

int sse_send(struct task *t, struct http_exchange *x, const char *event, struct str data)
{
    check(x->events && (!event || !strpbrk(event, "\r\n")));
    struct buf *b = &x->conn->kit->fields; /* free: the headers are out */
    buf_clear(b);
    if (event)
        buf_printf(b, "event: %s\n", event);
    while (data.p) {
        buf_add_lit(b, "data: ");
        buf_add_str(b, cut_line(&data));
        buf_add_char(b, '\n');
    }
    buf_add_char(b, '\n');
    return http_stream_write(t, x, buf_str(b));
}

int sse_ping(struct task *t, struct http_exchange *x)
{
    return http_stream_write(t, x, STR(":\n\n"));
}

void http_abort(struct http_exchange *x)
{
    x->state = HTTP_CUT;
    x->conn->broken = true;
    buf_clear(&x->conn->kit->out);
}
