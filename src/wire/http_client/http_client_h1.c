/* A call by HTTP/1.1, plain or over TLS, on the calling task's own stack:
 *
 *   1. wait for one of the host's permits;
 *   2. take the connection that was used last, or open one;
 *   3. send head and body, and read until the reply is whole. A server may answer before it has
 *      read everything, so both go on at the same time;
 *   4. keep the connection if both sides agree where the next request begins, else close it.
 *
 * A call that waits owns nothing but its connection: requests are written in a buffer of the
 * client's, replies are read into another, and both are free again before the next wait. */
#include <errno.h>

#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_plain_parse.h"

#define HEAD_KEPT_BYTES    65536 /* of the buffer for requests */
#define READS_IN_ONE_TURN  16    /* of a server that is faster than the client */
#define WRITES_IN_ONE_TURN 16    /* likewise */

struct h1_call {
    struct httpc_ask *ask;
    struct str sent_body;
    struct iovec unsent[2]; /* of head and body */
    bool begun;             /* some bytes of the request were sent */
    bool answered;          /* some bytes of a reply have come */
    struct http_plain reply;
    struct http_reply_body body;
};

/* --- the request --- */

enum { HAS_HOST = 1, HAS_AGENT = 2, HAS_ACCEPT = 4 };

static int known_header(struct str line)
{
    struct str name = str_cut(&line, ':');
    return str_ieq(name, STR("Host"))         ? HAS_HOST
           : str_ieq(name, STR("User-Agent")) ? HAS_AGENT
           : str_ieq(name, STR("Accept"))     ? HAS_ACCEPT
                                              : 0;
}

static void write_headers(struct buf *b, const struct h1_call *x)
{
    const struct http_call *call = x->ask->call;
    int has = 0;
    for (size_t i = 0; i < call->header_count; i++)
        has |= known_header(call->headers[i]);
    if (!(has & HAS_HOST)) {
        buf_add_lit(b, "Host: ");
        buf_add_str(b, str_of(x->ask->host->authority));
        buf_add_lit(b, "\r\n");
    }
    if (!(has & HAS_AGENT))
        buf_add_lit(b, "User-Agent: millrace/" MILLRACE_VERSION "\r\n");
    if (!(has & HAS_ACCEPT))
        buf_add_lit(b, "Accept: */*\r\n");
    for (size_t i = 0; i < call->header_count; i++) {
        buf_add_str(b, call->headers[i]);
        buf_add_lit(b, "\r\n");
    }
    if (x->sent_body.p || strcmp(x->ask->call->method, "POST") == 0) {
        buf_add_lit(b, "Content-Length: ");
        buf_add_int(b, (int64_t)x->sent_body.n);
        buf_add_lit(b, "\r\n");
    }
    buf_add_lit(b, "\r\n");
}

/* Over TLS the body is copied behind the head: it leaves in the same record. */
static void write_request(struct h1_call *x, bool tls)
{
    struct buf *b = &x->ask->client->request;
    buf_clear(b);
    buf_shrink(b, HEAD_KEPT_BYTES);
    buf_add_str(b, str_of(x->ask->call->method));
    buf_add_char(b, ' ');
    if (x->ask->target.n == 0 || x->ask->target.p[0] != '/')
        buf_add_char(b, '/');
    buf_add_str(b, x->ask->target);
    buf_add_lit(b, " HTTP/1.1\r\n");
    write_headers(b, x);
    x->unsent[1] = (struct iovec){(void *)(uintptr_t)x->sent_body.p, x->sent_body.n};
    if (tls) {
        buf_add_str(b, x->sent_body);
        x->unsent[1].iov_len = 0;
    }
    x->unsent[0] = (struct iovec){b->p + b->head, b->len};
}

static bool all_sent(const struct h1_call *x)
{
    return x->unsent[0].iov_len + x->unsent[1].iov_len == 0;
}

static void use_up(struct iovec *v, size_t *n)
{
    size_t part = *n < v->iov_len ? *n : v->iov_len;
    if (part > 0)
        v->iov_base = (char *)v->iov_base + part;
    v->iov_len -= part;
    *n -= part;
}

/* Sends what the kernel takes. After a failure there may still be a reply to read: a server that
 * refuses the rest of the body answers and closes. False: failed before anything was sent. */
static bool send_some(struct task *t, struct h1_call *x, struct httpc_conn *k)
{
    for (int i = 0; i < WRITES_IN_ONE_TURN && !all_sent(x); i++) {
        ssize_t r = httpc_conn_send(t, k, x->unsent);
        if (r >= 0) {
            size_t n = (size_t)r;
            x->begun = true;
            use_up(&x->unsent[0], &n);
            use_up(&x->unsent[1], &n);
        } else if (errno == EAGAIN) {
            return true;
        } else {
            x->reply.close = true;
            x->unsent[0].iov_len = x->unsent[1].iov_len = 0;
            return x->begun;
        }
    }
    return true;
}

/* Copies what is unsent: the client's buffer and body_fn's are valid only until the next wait. */
static void keep_unsent(struct task *t, struct h1_call *x)
{
    for (int i = 0; i < (x->ask->call->body_fn ? 2 : 1); i++) {
        struct iovec *v = &x->unsent[i];
        if (v->iov_len > 0)
            v->iov_base =
                (char *)(uintptr_t)str_dup(task_arena(t), str_from(v->iov_base, v->iov_len)).p;
    }
}

/* --- the reply --- */

static int lost(struct h1_call *x)
{
    x->ask->problem = x->begun ? HTTPC_LOST : "the connection was closed before anything was sent";
    return x->begun ? ERR_UNCERTAIN : ERR_UNAVAILABLE;
}

/* A server may end TLS with words: that it wants a certificate from the client, for one. */
static int refused(struct task *t, struct h1_call *x, const struct httpc_conn *k)
{
    int err = lost(x);
    x->ask->problem = arena_printf(task_arena(t), "TLS: %s", tls_problem(k->tls));
    return err;
}

static int take(struct task *t, struct h1_call *x, struct str piece)
{
    if (x->ask->call->on_piece && x->reply.head.status / 100 == 2)
        return x->ask->call->on_piece(x->ask->call->arg, piece);
    http_reply_body_add(&x->body, task_arena(t), piece,
                        x->reply.framing == HTTP_PLAIN_SIZED ? x->reply.left : UINT64_MAX);
    return 0;
}

static int feed(struct task *t, struct h1_call *x, struct str in, bool *done)
{
    for (;;) {
        size_t used;
        struct str piece;
        enum http_plain_verdict v = http_plain_next(&x->reply, in, &used, &piece);
        in = str_from(in.p + used, in.n - used);
        int err = 0;
        switch (v) {
        case HTTP_PLAIN_MORE:
            return 0;
        case HTTP_PLAIN_DATA:
            err = take(t, x, piece);
            break;
        case HTTP_PLAIN_END:
            *done = true;
            if (in.n > 0) /* bytes after the reply: out of sync */
                x->reply.close = true;
            return 0;
        case HTTP_PLAIN_BAD:
            x->ask->problem = x->reply.problem;
            return ERR_PROTO;
        case HTTP_PLAIN_LIMIT:
            x->ask->problem = "the reply is too long";
            return ERR_LIMIT;
        }
        if (err)
            return err;
    }
}

/* Reads what has come, without waiting. */
static int receive(struct task *t, struct h1_call *x, struct httpc_conn *k, bool *done)
{
    char *p = x->ask->client->receive;
    check(!x->ask->client->receive_taken); /* else an on_piece has waited */
    ssize_t r = httpc_conn_recv(t, k, p, RECEIVE_BYTES);
    if (r < 0 && errno == EAGAIN)
        return 0;
    if (r == 0 && http_plain_ended(&x->reply)) {
        *done = true;
        return 0;
    }
    if (r < 0 && k->tls && errno == EPROTO)
        return refused(t, x, k);
    if (r <= 0)
        return lost(x);
    x->answered = true;
    /* A short read has emptied the socket, and the next byte brings a new edge; but an end that
     * came with the last one does not. */
    if (r < RECEIVE_BYTES && !k->tls && !k->watch.gone)
        watch_drained(&k->watch, WATCH_READ);
    x->ask->client->receive_taken = true;
    int err = feed(t, x, str_from(p, (size_t)r), done);
    x->ask->client->receive_taken = false;
    return err;
}

/* --- both --- */

/* A server that is always ready would keep this task from ever waiting: yields, and checks deadline
 * and cancellation. */
static int give_way(struct task *t)
{
    int err = task_yield(t);
    return !err && task_time_left_ms(t) == 0 ? ERR_TIMEOUT : err;
}

static int talk(struct task *t, struct h1_call *x, struct httpc_conn *k)
{
    bool done = false;
    if (!send_some(t, x, k))
        return lost(x);
    keep_unsent(t, x);
    for (unsigned turn = 1;; turn++) {
        /* TLS may have to write before it can read on. */
        int in = WATCH_READ | (k->tls ? tls_wants(k->tls) : 0);
        int err = watch_wait(t, &k->watch, in | (all_sent(x) ? 0 : WATCH_WRITE));
        if (!err && (k->watch.ready & in))
            err = receive(t, x, k, &done);
        if (err || done)
            return err;
        if (!all_sent(x) && (k->watch.ready & WATCH_WRITE) && !send_some(t, x, k))
            return lost(x);
        if (turn % READS_IN_ONE_TURN == 0 && (err = give_way(t)))
            return err;
    }
}

static void begin_reply(struct task *t, struct h1_call *x)
{
    struct http_plain_limits limits = {HEAD_BYTES_MAX, x->ask->call->reply_bytes_max};
    http_plain_init(&x->reply, task_arena(t), limits, strcmp(x->ask->call->method, "HEAD") == 0,
                    loop_wall_ms(x->ask->client->loop));
    x->body = (struct http_reply_body){NULL, 0, 0};
}

int httpc_still_wanted(struct task *t)
{
    if (task_canceled(t))
        return ERR_CANCELED;
    return task_time_left_ms(t) == 0 ? ERR_TIMEOUT : 0;
}

static int exchange(struct task *t, struct h1_call *x, struct httpc_conn *k)
{
    const struct http_call *call = x->ask->call;
    int err = call->body_fn ? call->body_fn(t, call->arg, &x->sent_body) : 0;
    if (!err)
        err = httpc_still_wanted(t);
    if (err) { /* nothing was sent */
        httpc_conn_keep(k);
        return err;
    }
    begin_reply(t, x);
    write_request(x, k->tls != NULL);
    err = talk(t, x, k);
    if (!err && all_sent(x) && !x->reply.close)
        httpc_conn_keep(k);
    else
        httpc_conn_close(k);
    return err;
}

/* Whether the request may be sent again after a kept connection turned out dead. */
static bool may_repeat(const struct h1_call *x, int err)
{
    if (x->answered)
        return false;
    return err == ERR_UNAVAILABLE ||
           (err == ERR_UNCERTAIN && httpc_method_repeatable(x->ask->call->method));
}

static int run(struct task *t, struct h1_call *x)
{
    struct httpc_conn *k = httpc_conn_reuse(t, x->ask->host);
    if (k) {
        int err = exchange(t, x, k);
        if (!err || !may_repeat(x, err))
            return err;
        x->ask->problem = NULL;
    }
    int err = httpc_conn_open(t, x->ask->host, false, &k);
    if (!err)
        return exchange(t, x, k);
    if (err == ERR_UNAVAILABLE && x->begun) /* over the kept connection */
        return lost(x);
    return err;
}

/* --- the call --- */

int httpc_h1_call(struct task *t, struct httpc_ask *ask, struct http_response *out)
{
    struct h1_call x = {.ask = ask, .sent_body = ask->call->body};
    int err = sem_get(t, &ask->host->permits);
    if (err)
        return err;
    err = run(t, &x);
    sem_put(&ask->host->permits);
    if (!err)
        *out = httpc_response(&x.reply.head, &x.body);
    return err;
}
