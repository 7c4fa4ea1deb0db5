#include "base/json.h"
#include "wire/http_server/http_exchange.h"

/* Extensions of chunks and trailers, in one body. */
#define EXTRA_BYTES_MAX (8 * 1024)
/* Memory follows the bytes received, not the length announced. */
#define FIRST_BYTES_MAX (64 * 1024)

void http_body_begin(struct http_exchange *x)
{
    const struct http_head *h = x->head;
    x->at = x->conn->kit->parser.used;
    x->body_left = h->body_bytes;
    x->body_max = HTTP_SKIP_BYTES_MAX;
    x->chunks.extra_max = EXTRA_BYTES_MAX;
    x->body_ended = h->framing == HTTP_NO_BODY || (h->framing == HTTP_SIZED && h->body_bytes == 0);
    x->continue_due = h->expects_continue && !x->body_ended;
}

static struct str unread(const struct http_exchange *x)
{
    struct str in = buf_str(&x->conn->kit->in);
    return str_from(in.p + x->at, in.n - x->at);
}

static int body_problem(struct http_exchange *x, enum http_refusal why, const char *message,
                        int err)
{
    x->problem = (struct http_problem){why, message};
    return task_fail(x->task, err, "%s", message);
}

/* Before waiting for the client everything it may be waiting for is sent. */
static int receive(struct task *t, struct http_exchange *x, void *p, size_t n, size_t *got)
{
    struct http_conn *c = x->conn;
    if (x->continue_due)
        buf_add_lit(&c->kit->out, "HTTP/1.1 100 Continue\r\n\r\n");
    x->continue_due = false;
    int err = http_send(t, c, STR(""));
    if (err)
        return err;
    if (x->body_deadline_ms == 0)
        x->body_deadline_ms = loop_now_ms(task_loop(t)) + c->server->options.limits.body_ms;
    err = http_receive(t, c, x->body_deadline_ms, p, n, got);
    if (err == ERR_TIMEOUT)
        return body_problem(x, HTTP_REQUEST_TIMEOUT, "the body did not come in time", err);
    if (err)
        c->broken = true;
    return err;
}

static int read_sized(struct task *t, struct http_exchange *x, void *p, size_t n, size_t *got)
{
    if (n > x->body_left)
        n = (size_t)x->body_left;
    struct str here = unread(x);
    if (here.n > 0) {
        *got = n < here.n ? n : here.n;
        memcpy(p, here.p, *got);
        x->at += *got;
    } else {
        int err = receive(t, x, p, n, got);
        if (err)
            return err;
    }
    x->body_left -= *got;
    x->body_ended = x->body_left == 0;
    return 0;
}

/* All bytes behind the head are consumed: reads more to the same place. */
static int refill(struct task *t, struct http_exchange *x)
{
    struct buf *in = &x->conn->kit->in;
    in->len = x->at = x->conn->kit->parser.used;
    check(buf_room(in) > 0); /* see read_head */
    size_t got;
    int err = receive(t, x, in->p + in->head + in->len, buf_room(in), &got);
    if (!err)
        buf_added(in, got);
    return err;
}

static int read_chunked(struct task *t, struct http_exchange *x, void *p, size_t n, size_t *got)
{
    for (;;) {
        struct str here = unread(x), data = STR("");
        if (here.n > n)
            here.n = n; /* so that no piece is larger than n */
        size_t used;
        enum http_chunk_verdict v = http_chunk_next(&x->chunks, here, &used, &data);
        x->at += used;
        x->body_taken += data.n;
        if (x->body_taken > x->body_max)
            return body_problem(x, HTTP_TOO_LARGE, "the body is too large", ERR_LIMIT);
        if (v == HTTP_CHUNK_BAD)
            return body_problem(x, HTTP_BAD_REQUEST, "the body is not chunked properly", ERR_PROTO);
        if (v != HTTP_CHUNK_MORE) {
            x->body_ended = v == HTTP_CHUNK_END;
            memcpy(p, data.p, data.n);
            *got = data.n;
            return 0;
        }
        int err = unread(x).n == 0 ? refill(t, x) : 0;
        if (err)
            return err;
    }
}

int http_body_read(struct task *t, struct http_exchange *x, void *p, size_t n, size_t *got)
{
    *got = 0;
    if (x->problem.message) /* the caller did not stop at the first error */
        return task_fail(t, ERR_PROTO, "%s", x->problem.message);
    if (x->body_ended || n == 0)
        return 0;
    return x->head->framing == HTTP_SIZED ? read_sized(t, x, p, n, got)
                                          : read_chunked(t, x, p, n, got);
}

static int gather(struct task *t, struct http_exchange *x)
{
    struct buf *b = &x->conn->kit->body;
    buf_clear(b);
    size_t step = x->body_left < FIRST_BYTES_MAX ? (size_t)x->body_left : FIRST_BYTES_MAX;
    while (!x->body_ended) {
        char *at = buf_reserve(b, b->len ? 1 : step + 1);
        size_t got;
        int err = http_body_read(t, x, at, buf_room(b), &got);
        if (err)
            return err;
        buf_added(b, got);
    }
    x->body = buf_str(b);
    return 0;
}

int http_body(struct task *t, struct http_exchange *x, struct str *out)
{
    struct str here = unread(x);
    int err = 0;
    if (x->body.p) {
        *out = x->body;
        return 0;
    }
    if (x->body_ended) {
        x->body = STR("");
    } else if (x->head->framing == HTTP_SIZED && here.n >= x->body_left) {
        x->body = str_from(here.p, (size_t)x->body_left);
        x->at += x->body.n;
        x->body_ended = true;
    } else {
        err = gather(t, x);
    }
    if (!err)
        *out = x->body;
    return err;
}

int http_body_json(struct task *t, struct http_exchange *x, const struct json **out)
{
    struct str text;
    struct json_error e;
    int err = http_body(t, x, &text);
    if (err)
        return err;
    err = json_parse(task_arena(t), text, out, &e);
    if (err)
        return task_fail(t, err, "the body is no JSON: line %zu, column %zu: %s", e.line, e.column,
                         e.message);
    return 0;
}

/* After Expect without 100 Continue the client may or may not send its body: its next bytes are
 * ambiguous. */
bool http_body_skippable(const struct http_exchange *x)
{
    if (x->body_ended)
        return true;
    return !x->problem.message && !x->continue_due && x->body_left <= HTTP_SKIP_BYTES_MAX;
}

int http_body_skip(struct task *t, struct http_exchange *x)
{
    char trash[2048];
    size_t total = 0, got = 0;
    while (!x->body_ended) {
        int err = http_body_read(t, x, trash, sizeof(trash), &got);
        if (err)
            return err;
        total += got;
        if (total > HTTP_SKIP_BYTES_MAX)
            return ERR_LIMIT;
    }
    return 0;
}
