/* A call over HTTP/2, which shares its connection with others.
 *
 * The calling task takes a place on a connection, packs its request into the connection's output,
 * and waits. Input is read on the loop's stack, put into the caller's arena, and the task is woken
 * when the reply is whole. Only its own task ends a call: until then it is in its connection's
 * list, and the stream's user data is the call. */
#include "wire/http_client/http_client_private.h"

void httpc_h2_finish(struct httpc_h2_call *x, int err, const char *problem)
{
    if (x->done)
        return;
    x->done = true;
    x->err = err;
    if (err)
        x->ask->problem = problem;
    task_wake(x->task);
}

/* --- the reply --- */

static struct str to_str(const uint8_t *p, size_t n)
{
    return str_from((const char *)p, n);
}

static void take_status(struct httpc_h2_call *x, struct str value)
{
    int64_t status;
    http_reply_head_init(&x->head); /* an interim reply may have come before */
    x->head.version = 20;
    if (str_to_i64(value, &status) && status >= 100 && status <= 999)
        x->head.status = (int)status;
}

static void take_field(struct httpc_h2_call *x, struct str name, struct str value)
{
    struct http_reply_head *h = &x->head;
    int64_t length;
    if (str_eq(name, STR("content-type")))
        h->content_type = str_dup(task_arena(x->task), value);
    else if (str_eq(name, STR("location")))
        h->location = str_dup(task_arena(x->task), value);
    else if (str_eq(name, STR("retry-after")))
        h->retry_after_ms = http_retry_after_ms(value, loop_wall_ms(x->ask->client->loop));
    else if (str_eq(name, STR("content-length")) && str_to_i64(value, &length) && length >= 0)
        x->ahead = (uint64_t)length;
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t n,
                     const uint8_t *value, size_t vn, uint8_t flags, void *conn)
{
    (void)flags, (void)conn;
    struct httpc_h2_call *x = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
    if (!x || x->done)
        return 0;
    x->head_bytes += n + vn;
    if (x->head_bytes > HEAD_BYTES_MAX)
        httpc_h2_finish(x, ERR_LIMIT, "the reply is too long");
    else if (str_eq(to_str(name, n), STR(":status")))
        take_status(x, to_str(value, vn));
    else if (!x->head_done) /* else it is a trailer */
        take_field(x, to_str(name, n), to_str(value, vn));
    return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *p, size_t n,
                   void *conn)
{
    (void)flags, (void)conn;
    struct httpc_h2_call *x = nghttp2_session_get_stream_user_data(s, stream);
    if (!x || x->done)
        return 0;
    if (n > x->ask->call->reply_bytes_max - x->body_bytes) {
        httpc_h2_finish(x, ERR_LIMIT, "the reply is too long");
        return 0;
    }
    x->body_bytes += n;
    if (x->ask->call->on_piece && x->head.status / 100 == 2) {
        int err = x->ask->call->on_piece(x->ask->call->arg, to_str(p, n));
        if (err)
            httpc_h2_finish(x, err, NULL);
        return 0;
    }
    if (x->ahead != UINT64_MAX) /* the session has checked that no more comes than was announced */
        x->ahead -= n < x->ahead ? n : x->ahead;
    http_reply_body_add(&x->body, task_arena(x->task), to_str(p, n), x->ahead);
    return 0;
}

int httpc_h2_on_frame(nghttp2_session *s, const nghttp2_frame *f)
{
    if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA)
        return 0;
    struct httpc_h2_call *x = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
    if (!x)
        return 0;
    if (f->hd.type == NGHTTP2_HEADERS && x->head.status >= 200)
        x->head_done = true;
    if (f->hd.flags & NGHTTP2_FLAG_END_STREAM)
        httpc_h2_finish(x, 0, NULL);
    return 0;
}

/* --- the request --- */

/* Returns how much follows; send_body writes it to the output, so that it is copied only once. */
static ssize_t read_body(nghttp2_session *s, int32_t stream, uint8_t *out, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *conn)
{
    (void)out, (void)source, (void)conn;
    struct httpc_h2_call *x = nghttp2_session_get_stream_user_data(s, stream);
    if (!x)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* given up */
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (x->unsent.n <= room)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)(x->unsent.n < room ? x->unsent.n : room);
}

static int send_body(nghttp2_session *s, nghttp2_frame *f, const uint8_t *head, size_t n,
                     nghttp2_data_source *source, void *conn)
{
    (void)source;
    struct buf *out = &((struct httpc_h2 *)conn)->wire.out;
    struct httpc_h2_call *x = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
    buf_add(out, head, HTTP2_FRAME_HEAD_BYTES);
    buf_add(out, x->unsent.p, n);
    x->unsent = str_from(x->unsent.p + n, x->unsent.n - n);
    return 0;
}

void httpc_h2_callbacks(nghttp2_session_callbacks *to)
{
    nghttp2_session_callbacks_set_on_header_callback(to, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(to, on_data);
    nghttp2_session_callbacks_set_send_data_callback(to, send_body);
}

struct fields {
    nghttp2_nv *at; /* the client's */
    size_t n;
};

/* What outlives the connection is not copied. Such names are in lower case already. */
enum { COPIED = 0, NAME_LASTS = NGHTTP2_NV_FLAG_NO_COPY_NAME };
enum { BOTH_LAST = NAME_LASTS | NGHTTP2_NV_FLAG_NO_COPY_VALUE };

static void add(struct fields *f, struct str name, struct str value, uint8_t flags)
{
    f->at[f->n++] = http2_field(name, value, flags);
}

/* The call's headers, but for Host, which becomes :authority. Returns it. */
static struct str add_call_headers(struct fields *f, const struct http_call *call, bool *agent,
                                   bool *accept)
{
    struct str host = STR_NULL;
    for (size_t i = 0; i < call->header_count; i++) {
        struct str value = call->headers[i], name = str_cut(&value, ':');
        value = str_trim(value);
        if (str_ieq(name, STR("Host"))) {
            host = value;
            continue;
        }
        *agent = *agent || str_ieq(name, STR("User-Agent"));
        *accept = *accept || str_ieq(name, STR("Accept"));
        add(f, name, value, COPIED);
    }
    return host;
}

static struct str path(struct task *t, struct str target)
{
    if (target.n > 0 && target.p[0] == '/')
        return target;
    return STR_JOIN(task_arena(t), STR("/"), target);
}

static int submit(struct task *t, struct httpc_h2_call *x, struct str body)
{
    const struct httpc_ask *ask = x->ask;
    if (ask->call->header_count > H2_FIELDS_MAX - H2_FIELDS_OURS)
        return task_fail(t, ERR_INVALID, "more than %d headers", H2_FIELDS_MAX - H2_FIELDS_OURS);
    struct fields f = {.at = ask->client->h2_fields, .n = 4}; /* the names with colons come first */
    bool agent = false, accept = false;
    struct str host = add_call_headers(&f, ask->call, &agent, &accept);
    size_t n = f.n;
    f.n = 0;
    add(&f, STR(":method"), str_of(ask->call->method), NAME_LASTS);
    add(&f, STR(":scheme"), ask->host->tls ? STR("https") : STR("http"), BOTH_LAST);
    add(&f, STR(":authority"), host.p ? host : str_of(ask->host->authority),
        host.p ? NAME_LASTS : BOTH_LAST);
    add(&f, STR(":path"), path(t, ask->target), NAME_LASTS);
    f.n = n;
    if (!agent)
        add(&f, STR("user-agent"), STR("millrace/" MILLRACE_VERSION), BOTH_LAST);
    if (!accept)
        add(&f, STR("accept"), STR("*/*"), BOTH_LAST);
    char length[STR_INT_BYTES];
    bool has_body = body.p || strcmp(ask->call->method, "POST") == 0;
    if (has_body)
        add(&f, STR("content-length"), str_digits(length, (int64_t)body.n), NAME_LASTS);
    x->unsent = body.p ? body : STR("");
    x->sent_at = x->conn->wire.sent + x->conn->wire.out.len;
    x->sent_ms = loop_now_ms(ask->client->loop);
    nghttp2_data_provider provider = {.read_callback = read_body};
    int32_t id = nghttp2_submit_request(x->conn->wire.session, NULL, f.at, f.n,
                                        body.n > 0 ? &provider : NULL, x);
    if (id < 0)
        return task_fail(t, ERR_UNAVAILABLE, "%s: %s", ask->host->origin, nghttp2_strerror(id));
    x->stream = id;
    http2_link_pack(&x->conn->wire);
    return 0;
}

/* --- the call --- */

static int begin(struct task *t, struct httpc_h2_call *x)
{
    const struct http_call *call = x->ask->call;
    struct str body = call->body;
    int err = call->body_fn ? call->body_fn(t, call->arg, &body) : 0;
    if (!err)
        err = httpc_still_wanted(t);
    if (err || x->done) /* the connection ended while the body was made */
        return err;
    if (!nghttp2_session_check_request_allowed(x->conn->wire.session)) {
        x->untouched = true;
        httpc_h2_finish(x, ERR_UNAVAILABLE, "the server takes no more calls");
        return 0;
    }
    err = submit(t, x, body);
    if (!err && call->body_fn && x->unsent.n > 0) /* valid only until the next wait */
        x->unsent = str_dup(task_arena(t), x->unsent);
    return err;
}

static int attempt(struct task *t, struct httpc_h2_call *x)
{
    int err = begin(t, x);
    while (!err && !x->done)
        err = task_wait(t);
    if (x->done)
        err = x->err;
    else if (err == ERR_TIMEOUT && x->stream)
        httpc_h2_timeout(x);
    httpc_h2_leave(x);
    return err;
}

/* Whether the request may be sent again: the server has not handled it, or it is idempotent. */
static bool may_repeat(const struct httpc_h2_call *x)
{
    return x->done && (x->untouched || (x->err == ERR_UNCERTAIN && x->head.status == 0 &&
                                        httpc_method_repeatable(x->ask->call->method)));
}

int httpc_h2_call(struct task *t, struct httpc_ask *ask, struct http_response *out, bool *answered)
{
    int tries = 0;
    for (;;) {
        struct httpc_h2_call x = {.ask = ask, .task = t, .ahead = UINT64_MAX};
        list_init(&x.link);
        http_reply_head_init(&x.head);
        ask->problem = NULL;
        int err = httpc_h2_join(t, &x);
        if (err || !x.conn)
            return err;
        err = attempt(t, &x);
        tries += !x.left_out; /* servers end connections after so many calls: that is progress */
        if (err && tries < TRIES_MAX && may_repeat(&x))
            continue;
        *answered = !err;
        if (!err)
            *out = httpc_response(&x.head, &x.body);
        return err;
    }
}
