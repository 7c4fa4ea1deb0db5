#include "wire/http_server/http2_conn.h"

#include "base/log.h"
#include "wire/http2/http2_memory.h"

/* Replies queued for a client that does not read: acknowledgements of pings and settings; all. */
#define ACKS_MAX  100
#define QUEUE_MAX (10 * HTTP2_STREAMS_MAX)
/* Requests that a client may reset: in a burst, and per second. Older libraries have no such
 * limit; then HTTP2_STREAMS_MAX handlers at a time are the bound. */
#define RESETS_MAX        (10 * HTTP2_STREAMS_MAX)
#define RESETS_PER_SECOND HTTP2_STREAMS_MAX

/* --- requests --- */

static struct http2_stream *find(struct http2_conn *h, int32_t id)
{
    return nghttp2_session_get_stream_user_data(h->link.session, id);
}

static void reset(struct http2_conn *h, int32_t id, uint32_t why)
{
    check(nghttp2_submit_rst_stream(h->link.session, NGHTTP2_FLAG_NONE, id, why) == 0);
}

/* Ends the connection of a client that keeps sending and does not read. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *f, void *arg)
{
    (void)f, (void)arg;
    return nghttp2_session_get_outbound_queue_size(session) > QUEUE_MAX
               ? NGHTTP2_ERR_CALLBACK_FAILURE
               : 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
    struct http2_conn *h = arg;
    int32_t id = f->hd.stream_id;
    h->reading = NULL;
    if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    /* The session counts open streams only; handlers may still run for those that were reset. */
    if (h->stream_count >= HTTP2_STREAMS_MAX) {
        reset(h, id, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    h->reading = http2_stream_new(h, id);
    check(nghttp2_session_set_stream_user_data(session, id, h->reading) == 0);
    return 0;
}

static void take_pseudo(struct http2_stream *s, struct str name, struct str value)
{
    if (str_eq(name, STR(":method"))) {
        s->method = value;
    } else if (str_eq(name, STR(":path"))) {
        s->target = value;
    } else if (str_eq(name, STR(":authority"))) {
        s->has_authority = true;
        (void)http_parse_field(&s->conn.kit->parser, STR("host"), value);
    }
}

/* A client may cut its cookies into pieces, each in a field of its own. */
static bool add_cookie(struct http_kit *k, struct str value)
{
    struct http_head *head = &k->parser.head;
    for (size_t i = 0; i < head->field_count; i++) {
        struct http_field *f = &head->fields[i];
        if (!str_eq(f->name, STR("cookie")))
            continue;
        k->parser.scanned += value.n;
        if (k->parser.scanned <= k->parser.limits.head_bytes)
            f->value = STR_JOIN(&k->arena, f->value, STR("; "), value);
        return true;
    }
    return false;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    (void)session, (void)f, (void)flags;
    struct http2_stream *s = ((struct http2_conn *)arg)->reading;
    if (!s || s->conn.kit->parser.problem.message)
        return 0;
    struct http_kit *k = s->conn.kit;
    char *copy = arena_alloc(&k->arena, name_n + value_n + 1); /* never of 0 bytes */
    memcpy(copy, name, name_n);
    memcpy(copy + name_n, value, value_n);
    struct str key = str_from(copy, name_n), text = str_from(copy + name_n, value_n);
    if (name[0] == ':')
        take_pseudo(s, key, text);
    else if (s->has_authority && str_eq(key, STR("host")))
        return 0;
    else if (!str_eq(key, STR("cookie")) || !add_cookie(k, text))
        (void)http_parse_field(&k->parser, key, text);
    return 0;
}

/* The request is complete, or refused: starts its task. */
static void launch(struct http2_stream *s)
{
    struct http2_conn *h = s->owner;
    struct http_kit *k = s->conn.kit;
    list_del(&s->gathering);
    k->parser.head.framing = HTTP_SIZED;
    k->parser.head.body_bytes = k->in.len;
    k->parser.head.expects_continue = false;
    if (task_go(h->conn->server->group, "http2", http2_stream_task, s) == 0)
        return;
    reset(h, s->id, NGHTTP2_REFUSED_STREAM); /* no stack is left */
    nghttp2_session_set_stream_user_data(h->link.session, s->id, NULL);
    http2_stream_free(s);
}

static bool launched(const struct http2_stream *s)
{
    return list_empty(&s->gathering);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
    (void)session;
    struct http2_conn *h = arg;
    if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA)
        return 0;
    struct http2_stream *s = find(h, f->hd.stream_id);
    if (s && s == h->reading) {
        struct http_parser *p = &s->conn.kit->parser;
        h->reading = NULL;
        if (!p->problem.message)
            (void)http_parse_end(p, s->method, s->target);
    }
    if (!s || !(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    s->complete = true;
    if (!launched(s))
        launch(s);
    return 0;
}

static void refuse(struct http2_stream *s, enum http_refusal why, const char *message)
{
    s->conn.kit->parser.problem = (struct http_problem){why, message};
    launch(s);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *arg)
{
    (void)session, (void)flags;
    struct http2_stream *s = find(arg, id);
    if (!s || launched(s) || s->conn.kit->parser.problem.message)
        return 0;
    if (s->conn.kit->in.len + n > s->conn.server->body_max)
        refuse(s, HTTP_TOO_LARGE, "the body is too large");
    else
        buf_add(&s->conn.kit->in, p, n);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
    (void)session, (void)error;
    struct http2_conn *h = arg;
    struct http2_stream *s = find(h, id);
    if (s && s == h->reading)
        h->reading = NULL;
    if (s)
        http2_stream_closed(s);
    return 0;
}

/* --- time --- */

/* Sends GOAWAY; the link ends after the last open stream. */
static void leave(struct http2_conn *h)
{
    h->left = true;
    int32_t last = nghttp2_session_get_last_proc_stream_id(h->link.session);
    check(nghttp2_submit_goaway(h->link.session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL,
                                0) == 0);
    http2_link_pack(&h->link);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Fires often enough for every deadline, so that a request need not set a timer. */
static void on_tick(void *arg)
{
    struct http2_conn *h = arg;
    const struct http_limits *limits = &h->conn->server->options.limits;
    int64_t now_ms = loop_now_ms(h->link.loop);
    int64_t next_ms = now_ms + earlier(limits->idle_ms, earlier(limits->body_ms, limits->write_ms));
    while (!list_empty(&h->gathering)) {
        struct http2_stream *s = list_entry(h->gathering.next, struct http2_stream, gathering);
        if (s->due_ms > now_ms) {
            next_ms = earlier(next_ms, s->due_ms);
            break;
        }
        refuse(s, HTTP_REQUEST_TIMEOUT, "the request did not come in time");
    }
    if (h->link.out.len > 0) {
        if (now_ms - h->link.moved_ms >= limits->write_ms)
            http2_link_end(&h->link, "the client does not read");
        next_ms = earlier(next_ms, h->link.moved_ms + limits->write_ms);
    }
    if (h->stream_count == 0) {
        int64_t idle_ms = now_ms - h->idle_since_ms;
        if (idle_ms < limits->idle_ms)
            next_ms = earlier(next_ms, h->idle_since_ms + limits->idle_ms);
        else if (!h->left)
            leave(h);
        else
            http2_link_end(&h->link, "idle for too long");
    }
    timer_set(&h->tick, next_ms > now_ms ? next_ms : now_ms + 1);
}

/* --- life --- */

bool http2_preface_begins(struct str in)
{
    size_t n = in.n < HTTP2_PREFACE_BYTES ? in.n : HTTP2_PREFACE_BYTES;
    return memcmp(in.p, NGHTTP2_CLIENT_MAGIC, n) == 0;
}

static nghttp2_session *session_new(struct http2_conn *h)
{
    nghttp2_session_callbacks *does;
    nghttp2_option *option;
    nghttp2_session *session;
    check(nghttp2_session_callbacks_new(&does) == 0 && nghttp2_option_new(&option) == 0);
    nghttp2_session_callbacks_set_on_begin_frame_callback(does, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(does, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(does, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(does, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(does, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(does, on_close);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_outbound_ack(option, ACKS_MAX);
#ifdef HAVE_NGHTTP2_RESET_LIMIT
    nghttp2_option_set_stream_reset_rate_limit(option, RESETS_MAX, RESETS_PER_SECOND);
#endif
    check(nghttp2_session_server_new3(&session, does, h, option, http2_memory()) == 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(does);
    http2_link_greet(session);
    return session;
}

static void on_end(void *arg)
{
    struct http2_conn *h = arg;
    log_debug("http", "HTTP/2 connection from %s ended: %s", h->conn->peer, h->link.why);
    h->ended = true;
    timer_clear(&h->tick);
    list_each_safe (it, &h->streams)
        http2_stream_closed(
            list_entry(list_entry(it, struct http_conn, link), struct http2_stream, conn));
    task_wake(h->conn->task);
}

static void take_preface(struct http2_conn *h)
{
    struct str in = buf_str(&h->conn->kit->in);
    ssize_t used = nghttp2_session_mem_recv(h->link.session, (const uint8_t *)in.p, in.n);
    if (used < 0)
        http2_link_end(&h->link, nghttp2_strerror((int)used));
    http_kit_put(h->conn);
}

static void begin(struct http2_conn *h)
{
    struct http_conn *c = h->conn;
    struct loop *l = c->server->loop;
    int fd = c->watch.fd;
    watch_release(&c->watch);
    c->watch.fd = -1;
    list_init(&h->streams);
    list_init(&h->gathering);
    h->idle_since_ms = loop_now_ms(l);
    timer_init(&h->tick, l, on_tick, h);
    http2_link_init(&h->link, l, fd, session_new(h), on_end, h);
    if (c->tls) {
        http2_link_secure(&h->link, c->tls);
        c->tls = NULL;
    } else {
        take_preface(h);
    }
    if (c->server->draining)
        leave(h);
    http2_link_pack(&h->link);
    on_tick(h);
}

void http2_conn_serve(struct task *t, struct http_conn *c)
{
    struct http2_conn h = {.conn = c};
    bool canceled = false;
    c->http2 = &h;
    begin(&h);
    while (!h.ended || h.stream_count > 0) {
        if (canceled) {
            task_wait_always(t);
        } else if (task_wait(t) != 0) {
            canceled = true;
            http2_link_end(&h.link, "the server stops");
        }
    }
    http2_link_release(&h.link);
    c->http2 = NULL;
    c->broken = true; /* nothing more can be sent */
}

void http2_conn_drain(struct http2_conn *h)
{
    if (!h->ended)
        leave(h);
}
