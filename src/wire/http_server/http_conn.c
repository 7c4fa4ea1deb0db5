#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "wire/http_server/http2_conn.h"
#include "wire/http_server/http_exchange.h"
#include "wire/http_server/http_uri.h"

#define READ_BYTES 4096
/* After a read that has filled its room: a client that pipelines, or uploads. */
#define READ_BYTES_MANY (32 * 1024)
#define DRAIN_IDLE_MS   300
/* Cost of a request besides its bytes, for yielding. */
#define REQUEST_BYTES 4096
/* After the last reply input is still read for a while: unread bytes at close make the kernel send
 * a reset, which may overtake the reply. A proxy sends an upload that is refused to its end, and
 * tells its client that the server does not answer if it cannot. */
#define LINGER_MS        1000
#define LINGER_BYTES_MAX (64 * 1024 * 1024)

void http_conn_gone(void *conn)
{
    struct http_conn *c = conn;
    if (c->kit && c->kit->x.cancel_when_gone)
        task_cancel(c->task);
}

struct http_conn *http_conn_new(struct http_server *s, int fd)
{
    struct http_conn *c = check_memory(calloc(1, sizeof(*c)));
    c->server = s;
    watch_init(&c->watch, s->loop, fd);
    c->watch.on_gone = http_conn_gone;
    c->watch.arg = c;
    list_push(&s->conns, &c->link);
    return c;
}

void http_conn_close(struct http_conn *c)
{
    list_del(&c->link);
    int fd = c->watch.fd;
    watch_release(&c->watch);
    close(fd);
    free(c);
}

static int64_t now_ms(const struct http_conn *c)
{
    return loop_now_ms(c->server->loop);
}

/* Reads without waiting: 1, or 0 when there is nothing yet, or ERR_CLOSED. */
static int try_receive(struct http_conn *c)
{
    char *at = buf_reserve(&c->kit->in, c->read_filled ? READ_BYTES_MANY : READ_BYTES);
    size_t room = buf_room(&c->kit->in);
    ssize_t n = c->tls ? tls_task_recv(c->task, c->tls, at, room) : recv(c->watch.fd, at, room, 0);
    c->read_filled = n == (ssize_t)room;
    if (n > 0) {
        buf_added(&c->kit->in, (size_t)n);
        if ((size_t)n < room && !c->watch.gone && !c->tls) /* which may hold more */
            watch_drained(&c->watch, WATCH_READ);
        return 1;
    }
    if (n < 0 && errno == EAGAIN)
        watch_drained(&c->watch, WATCH_READ);
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : ERR_CLOSED;
}

static int wait_idle(struct task *t, struct http_conn *c, int64_t until_ms)
{
    int64_t old = task_deadline(t, until_ms - now_ms(c));
    c->waiting = true;
    int err = watch_wait(t, &c->watch, WATCH_READ);
    c->waiting = false;
    c->burst_bytes = 0;
    task_deadline_restore(t, old);
    return err;
}

/* During a drain no client is waited for longer than this. One that has not been served yet will
 * ask soon, or never. One that has may be asking right now: a reply with Connection: close is
 * better than a connection that ends before it. */
static int64_t patience_ms(const struct http_conn *c)
{
    const struct http_limits *limits = &c->server->options.limits;
    if (!c->server->draining)
        return limits->idle_ms;
    return c->served_count > 0 ? DRAIN_IDLE_MS : limits->header_ms;
}

/* Waits for the first byte of a request, without a kit as long as there is none. */
static int await_request(struct task *t, struct http_conn *c)
{
    int64_t until_ms = TIME_NEVER;
    for (;;) {
        if (c->watch.ready & WATCH_READ) {
            if (!c->kit)
                http_kit_get(c);
            int got = try_receive(c);
            if (got)
                return got > 0 ? 0 : ERR_CLOSED;
        }
        http_kit_put(c);
        if (until_ms > now_ms(c) + patience_ms(c))
            until_ms = now_ms(c) + patience_ms(c);
        int err = wait_idle(t, c, until_ms);
        if (err)
            return err;
    }
}

void http_begin_parsing(struct http_conn *c)
{
    const struct http_limits *l = &c->server->options.limits;
    struct http_parse_limits limits = {l->target_bytes_max, l->header_bytes_max, l->headers_max};
    http_parser_init(&c->kit->parser, limits, c->kit->head_fields);
}

/* Makes room for more input. Pointers into it are invalid if it has moved. */
static char *make_room(struct http_conn *c, size_t n)
{
    const char *before = buf_str(&c->kit->in).p;
    char *at = buf_reserve(&c->kit->in, n);
    if (buf_str(&c->kit->in).p != before)
        http_begin_parsing(c);
    return at;
}

static int receive_head(struct task *t, struct http_conn *c, int64_t until_ms)
{
    int err = http_send(t, c, STR("")); /* the client may want these replies first */
    if (err)
        return err;
    struct buf *in = &c->kit->in;
    size_t got;
    char *at = make_room(c, READ_BYTES / 4);
    err = http_receive(t, c, until_ms, at, buf_room(in), &got);
    if (!err)
        buf_added(in, got);
    return err;
}

/* A chunked body is read into the room behind the head, which must not move then. */
static bool room_for_chunks(struct http_conn *c)
{
    if (c->kit->parser.head.framing != HTTP_CHUNKED)
        return true;
    size_t room = c->kit->in.cap - c->kit->in.head - c->kit->parser.used;
    if (room >= READ_BYTES)
        return true;
    buf_reserve(&c->kit->in, READ_BYTES);
    http_begin_parsing(c);
    return false;
}

/* HTTP_MORE: *err says why there is no more. */
static enum http_verdict read_head(struct task *t, struct http_conn *c, int *err)
{
    const struct http_limits *l = &c->server->options.limits;
    int64_t until_ms = now_ms(c) + l->header_ms;
    http_begin_parsing(c);
    for (;;) {
        enum http_verdict v = http_parse(&c->kit->parser, buf_str(&c->kit->in));
        if (v == HTTP_BAD || (v == HTTP_DONE && room_for_chunks(c)))
            return v;
        *err = v == HTTP_MORE ? receive_head(t, c, until_ms) : 0;
        if (*err)
            return HTTP_MORE;
    }
}

static struct http_problem problem(enum http_refusal why, const char *message)
{
    return (struct http_problem){why, message};
}

static bool is_coded(const struct http_exchange *x)
{
    struct str codings = http_header_list(x, "content-encoding");
    while (codings.p) {
        struct str coding = str_trim(str_cut(&codings, ','));
        if (coding.n > 0 && !str_ieq(coding, STR("identity")))
            return true;
    }
    return false;
}

/* A route without a body ignores one (RFC 9110, 9.3.1): to its handler it is empty. */
static struct http_problem check_body(struct http_exchange *x)
{
    const struct http_head *h = x->head;
    bool ignored = x->match.route->body_max == 0;
    if (ignored)
        x->body = STR("");
    else
        x->body_max = x->match.route->body_max;
    if (h->framing == HTTP_SIZED && h->body_bytes > x->body_max)
        return problem(HTTP_TOO_LARGE, ignored ? "a body that is ignored here is too large"
                                               : "the body is too large");
    if (!ignored && !x->body_ended && is_coded(x))
        return problem(HTTP_UNSUPPORTED_CODING, "the body must not be compressed: the only "
                                                "Content-Encoding taken is identity");
    return problem(0, NULL);
}

/* Finds the handler, or what is wrong with the request. */
static struct http_problem route(struct task *t, struct http_exchange *x)
{
    struct arena *a = task_arena(t);
    struct str ignored;
    if (str_eq(x->head->path, STR("*")))
        return problem(HTTP_NOT_FOUND, "there is nothing to say about * as a whole");
    if (!http_uri_decode(a, x->head->path, false, &x->path) || !http_path_valid(x->path))
        return problem(HTTP_BAD_REQUEST, "the path is not valid");
    if (x->head->query.p && !http_uri_decode(a, x->head->query, true, &ignored))
        return problem(HTTP_BAD_REQUEST, "the query is not valid");
    if (!http_router_find(x->conn->server->router, a, x->head->method, x->head->path, &x->match))
        return problem(HTTP_NOT_FOUND, "there is nothing at this path");
    if (!x->match.route)
        return problem(HTTP_METHOD_NOT_ALLOWED, "this method is not allowed here");
    return check_body(x);
}

static int run_handler(struct task *t, struct http_exchange *x)
{
    int64_t handler_ms = x->conn->server->options.limits.handler_ms;
    if (task_error(t)[0])
        task_fail(t, 0, "%s", ""); /* clears the text of an earlier request */
    (void)task_deadline(t, handler_ms);
    x->handler_deadline_ms = now_ms(x->conn) + handler_ms;
    int err = x->match.route->handler(t, x, x->match.ctx);
    x->handler_deadline_ms = 0;
    x->cancel_when_gone = false;
    task_deadline_restore(t, TIME_NEVER);
    return err;
}

/* Completes the reply that the handler has left open. */
static int settle(struct task *t, struct http_exchange *x, int err)
{
    if (!err) {
        check(x->state != HTTP_UNANSWERED);
        if (x->state != HTTP_STREAMING)
            return 0;
        check(x->events); /* other streams are ended by their handler */
        return http_stream_end(t, x);
    }
    if (x->conn->broken || task_canceled(t))
        return ERR_CLOSED;
    if (x->state == HTTP_UNANSWERED)
        return http_reply_error(t, x, err, task_error(t));
    log_warn("http", "%.*s %.*s failed after its reply had begun, which is cut: %s: %s",
             STR_ARG(x->head->method), STR_ARG(x->path), err_name(err), task_error(t));
    return x->state == HTTP_STREAMING ? err : 0; /* the missing end tells the client */
}

void http_count(struct http_exchange *x)
{
    struct http_counts *n = &x->conn->server->counts;
    x->conn->served_count++;
    if (x->state == HTTP_UNANSWERED || x->state == HTTP_LATER || x->state == HTTP_CUT)
        return;
    metric_add(n->by_class[x->status / 100], 1);
    if (x->began_us && !x->events) /* not without a head, and not for event streams */
        histogram_add_us(n->seconds, loop_now_us(x->conn->server->loop) - x->began_us);
}

struct http_exchange *http_exchange_begin(struct task *t, struct http_conn *c)
{
    struct http_exchange *x = &c->kit->x;
    *x =
        (struct http_exchange){.conn = c, .task = t, .head = &c->kit->parser.head, .path = STR("")};
    buf_clear(&c->kit->fields);
    return x;
}

void http_answer(struct task *t, struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    if (c->server->counts.seconds)
        x->began_us = loop_now_us(c->server->loop);
    x->headless = str_eq(x->head->method, STR("HEAD"));
    http_body_begin(x);
    struct http_problem p = route(t, x);
    int err = p.message ? http_reply_problem(t, x, p) : settle(t, x, run_handler(t, x));
    http_gzip_end(x);
    http_count(x);
    if (err)
        c->broken = true;
}

/* The head has been read. False: the connection ends here. */
static bool answer(struct task *t, struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    http_answer(t, x);
    if (c->broken || x->close || http_body_skip(t, x) != 0)
        return false;
    buf_consume(&c->kit->in, x->at);
    return http_take_turns(t, c, REQUEST_BYTES) == 0;
}

void http_refuse(struct task *t, struct http_exchange *x, struct http_problem p)
{
    if (http_reply_problem(t, x, p) != 0)
        x->conn->broken = true;
    http_count(x);
}

static bool serve(struct task *t, struct http_conn *c)
{
    struct task_scope scope = task_scope(t);
    struct http_exchange *x = http_exchange_begin(t, c);
    bool go_on = false;
    int err;
    switch (read_head(t, c, &err)) {
    case HTTP_DONE:
        go_on = answer(t, x);
        break;
    case HTTP_BAD:
        http_refuse(t, x, c->kit->parser.problem);
        break;
    case HTTP_MORE:
        /* Empty lines alone are no request: such a connection was idle. */
        if (err == ERR_TIMEOUT && !c->broken && c->kit->in.len > c->kit->parser.used)
            http_refuse(t, x, problem(HTTP_REQUEST_TIMEOUT, "the headers did not come in time"));
        else
            c->broken = true;
    }
    task_scope_end(t, scope);
    return go_on;
}

/* Whether the first bytes are the preface of HTTP/2; waits while they match its beginning. */
static bool greets_http2(struct task *t, struct http_conn *c)
{
    struct buf *in = &c->kit->in;
    int64_t until_ms = now_ms(c) + c->server->options.limits.header_ms;
    while (http2_preface_begins(buf_str(in))) {
        size_t got;
        char *at = buf_reserve(in, READ_BYTES);
        if (in->len >= HTTP2_PREFACE_BYTES)
            return true;
        if (http_receive(t, c, until_ms, at, buf_room(in), &got) != 0)
            return false;
        buf_added(in, got);
    }
    return false;
}

static void serve_all(struct task *t, struct http_conn *c)
{
    do {
        if (c->kit && c->kit->in.len > 0)
            continue;
        if (c->kit && http_send(t, c, STR("")) != 0)
            return;
        if (await_request(t, c) != 0) {
            c->broken = true; /* no reply to a partial preface */
            return;
        }
        bool may_greet = c->served_count == 0 && c->server->options.http2 && !c->tls;
        if (may_greet && greets_http2(t, c)) {
            http2_conn_serve(t, c);
            return;
        }
    } while (serve(t, c));
}

static void linger(struct task *t, struct http_conn *c)
{
    http_tls_end(t, c); /* input is not looked at any more */
    if (shutdown(c->watch.fd, SHUT_WR) != 0)
        return;
    buf_clear(&c->kit->in);
    char *trash = buf_reserve(&c->kit->in, READ_BYTES);
    int64_t until_ms = now_ms(c) + LINGER_MS;
    size_t got, total = 0;
    while (total < LINGER_BYTES_MAX &&
           http_receive(t, c, until_ms, trash, buf_room(&c->kit->in), &got) == 0)
        total += got;
}

static void turn_away(struct task *t, struct http_conn *c, struct http_problem p)
{
    http_kit_get(c);
    c->kit->parser.head = (struct http_head){.method = STR("GET"), .minor = 1};
    http_refuse(t, http_exchange_begin(t, c), p);
}

static void serve_secure(struct task *t, struct http_conn *c)
{
    int err = http_tls_begin(t, c);
    if (err == ERR_INVALID)
        turn_away(t, c, problem(HTTP_BAD_REQUEST, "this port speaks TLS only: use https"));
    else if (err)
        c->broken = true;
    else if (tls_is_h2(c->tls))
        http2_conn_serve(t, c);
    else
        serve_all(t, c);
}

void http_conn_task(struct task *t, void *conn)
{
    struct http_conn *c = conn;
    struct http_server *s = c->server;
    c->task = t;
    if (c->refused)
        turn_away(t, c, problem(HTTP_TOO_MANY_CONNECTIONS, "too many connections, try again"));
    else if (s->options.tls)
        serve_secure(t, c);
    else
        serve_all(t, c);
    if (!c->broken && http_send(t, c, STR("")) == 0)
        linger(t, c);
    http_tls_end(t, c);
    http_kit_put(c);
    if (c->refused)
        s->refusing_count--;
    else
        metric_set(s->counts.connections, (int64_t)--s->conn_count);
    http_conn_close(c);
}
