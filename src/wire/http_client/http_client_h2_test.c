/* Calls over HTTP/2, to a server on the test's own loop that does what the path asks for. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/tap.h"
#include "wire/http2/http2_link.h"
#include "wire/http_client.h"
#include "wire/http_client/http_client_test_peer.h"

/* --- the server --- */

struct server {
    struct group group;
    int fd, port;
    struct watch watch;
    uint32_t streams_max, window; /* its settings; 0: the usual */
    size_t accepted, requests, busy, busiest, refusals, closed;
    struct list conns;
};

struct server_conn {
    struct list link;
    struct server *server;
    struct http2_link wire;
    struct list streams;
};

struct server_stream {
    struct list link;
    struct server_conn *conn;
    int32_t id;
    char path[64], method[16], type[64];
    struct buf body, out;
    struct timer timer; /* when a late reply is due */
};

static ssize_t read_out(nghttp2_session *s, int32_t id, uint8_t *p, size_t room, uint32_t *flags,
                        nghttp2_data_source *source, void *conn)
{
    (void)s, (void)id, (void)conn;
    struct server_stream *x = source->ptr;
    size_t n = x->out.len < room ? x->out.len : room;
    memcpy(p, buf_str(&x->out).p, n);
    buf_consume(&x->out, n);
    if (x->out.len == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static void reply(struct server_stream *x, const char *status, struct str body)
{
    nghttp2_nv fields[] = {field(":status", status), field("content-type", "a/b"),
                           field("retry-after", "7")};
    buf_add_str(&x->out, body);
    nghttp2_data_provider provider = {.source.ptr = x, .read_callback = read_out};
    check(nghttp2_submit_response(x->conn->wire.session, x->id, fields, 3,
                                  body.n ? &provider : NULL) == 0);
    http2_link_pack(&x->conn->wire);
}

static void reply_late(void *arg)
{
    reply(arg, "200", STR("hello"));
}

static bool is(const struct server_stream *x, const char *path)
{
    return strcmp(x->path, path) == 0;
}

static void reset(struct server_stream *x, uint32_t code)
{
    nghttp2_submit_rst_stream(x->conn->wire.session, NGHTTP2_FLAG_NONE, x->id, code);
}

/* From within the session's callbacks: what is submitted leaves with the link's next flush. */
static void answer(struct server_stream *x)
{
    struct server *v = x->conn->server;
    nghttp2_session *s = x->conn->wire.session;
    static char big[300000];
    v->requests++;
    if (is(x, "/ok")) {
        timer_set(&x->timer, 0);
    } else if (is(x, "/slow")) {
        timer_set(&x->timer, loop_now_ms(x->conn->wire.loop) + 50);
    } else if (is(x, "/echo")) {
        nghttp2_nv fields[] = {field(":status", "200"), field("content-type", x->type)};
        buf_add_str(&x->out, buf_str(&x->body));
        nghttp2_data_provider provider = {.source.ptr = x, .read_callback = read_out};
        check(nghttp2_submit_response(s, x->id, fields, 2, &provider) == 0);
    } else if (is(x, "/big")) {
        memset(big, 'b', sizeof big);
        nghttp2_nv fields[] = {field(":status", "200")};
        buf_add(&x->out, big, sizeof big);
        nghttp2_data_provider provider = {.source.ptr = x, .read_callback = read_out};
        check(nghttp2_submit_response(s, x->id, fields, 1, &provider) == 0);
    } else if (is(x, "/hint")) {
        nghttp2_nv hint[] = {field(":status", "103"), field("retry-after", "1")};
        nghttp2_nv fields[] = {field(":status", "429"), field("retry-after", "7")};
        check(nghttp2_submit_headers(s, NGHTTP2_FLAG_NONE, x->id, NULL, hint, 2, NULL) == 0);
        check(nghttp2_submit_response(s, x->id, fields, 2, NULL) == 0);
    } else if (is(x, "/refuse-twice") && v->refusals < 2) {
        v->refusals++;
        reset(x, NGHTTP2_REFUSED_STREAM);
    } else if (is(x, "/refuse-twice")) {
        timer_set(&x->timer, 0);
    } else if (is(x, "/refuse")) {
        reset(x, NGHTTP2_REFUSED_STREAM);
    } else if (is(x, "/reset")) {
        reset(x, NGHTTP2_INTERNAL_ERROR);
    } else if (is(x, "/cut") || (is(x, "/cut-once") && v->accepted == 1)) {
        http2_link_end(&x->conn->wire, "as asked");
    } else if (is(x, "/cut-once")) {
        timer_set(&x->timer, 0);
    } else if (is(x, "/leave-before") && v->accepted == 1) { /* this one was not handled */
        nghttp2_submit_goaway(s, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
    } else if (is(x, "/leave-before") || is(x, "/leave-after")) {
        if (is(x, "/leave-after")) /* this one is the last */
            nghttp2_submit_goaway(s, NGHTTP2_FLAG_NONE, x->id, NGHTTP2_NO_ERROR, NULL, 0);
        timer_set(&x->timer, 0);
    } else {
        check(is(x, "/stall"));
    }
}

static int on_begin(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
    struct server_conn *c = arg;
    struct server_stream *x = calloc(1, sizeof *x);
    check(x);
    x->conn = c;
    x->id = f->hd.stream_id;
    timer_init(&x->timer, c->wire.loop, reply_late, x);
    list_push(&c->streams, &x->link);
    nghttp2_session_set_stream_user_data(s, x->id, x);
    if (++c->server->busy > c->server->busiest)
        c->server->busiest = c->server->busy;
    return 0;
}

static int on_field(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t n,
                    const uint8_t *value, size_t vn, uint8_t flags, void *arg)
{
    (void)flags, (void)arg;
    struct server_stream *x = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
    struct str key = str_from((const char *)name, n);
    char *to = str_eq(key, STR(":path"))          ? x->path
               : str_eq(key, STR(":method"))      ? x->method
               : str_eq(key, STR("content-type")) ? x->type
                                                  : NULL;
    if (to)
        memcpy(to, value, vn);
    return 0;
}

static int on_chunk(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                    void *arg)
{
    (void)flags, (void)arg;
    struct server_stream *x = nghttp2_session_get_stream_user_data(s, id);
    buf_add(&x->body, p, n);
    return 0;
}

static int on_received(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
    (void)arg;
    struct server_stream *x = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
    if (x && (f->hd.flags & NGHTTP2_FLAG_END_STREAM) && f->hd.type <= NGHTTP2_HEADERS)
        answer(x);
    return 0;
}

static void stream_free(struct server_stream *x)
{
    x->conn->server->busy--;
    timer_clear(&x->timer);
    list_del(&x->link);
    buf_release(&x->body);
    buf_release(&x->out);
    free(x);
}

static int on_closed(nghttp2_session *s, int32_t id, uint32_t code, void *arg)
{
    (void)code;
    struct server_conn *c = arg;
    struct server_stream *x = nghttp2_session_get_stream_user_data(s, id);
    c->server->closed++;
    stream_free(x);
    return 0;
}

static void conn_free(void *arg)
{
    struct server_conn *c = arg;
    list_each_safe (it, &c->streams)
        stream_free(list_entry(it, struct server_stream, link));
    list_del(&c->link);
    http2_link_release(&c->wire);
    free(c);
}

static void conn_new(struct server *v, struct loop *l, int fd)
{
    struct server_conn *c = calloc(1, sizeof *c);
    check(c);
    c->server = v;
    list_init(&c->streams);
    list_push(&v->conns, &c->link);
    v->accepted++;
    nghttp2_session_callbacks *to;
    check(nghttp2_session_callbacks_new(&to) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(to, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(to, on_field);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(to, on_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(to, on_received);
    nghttp2_session_callbacks_set_on_stream_close_callback(to, on_closed);
    nghttp2_session *s;
    check(nghttp2_session_server_new(&s, to, c) == 0);
    nghttp2_session_callbacks_del(to);
    nghttp2_settings_entry own[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, v->streams_max ? v->streams_max : 100},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, v->window ? v->window : 65535},
    };
    check(nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, own, 2) == 0);
    if (v->window > 65535)
        check(nghttp2_session_set_local_window_size(s, NGHTTP2_FLAG_NONE, 0, (int32_t)v->window) ==
              0);
    http2_link_init(&c->wire, l, fd, s, conn_free, c);
    http2_link_pack(&c->wire);
}

static void accept_all(struct task *t, void *arg)
{
    struct server *v = arg;
    while (watch_wait(t, &v->watch, WATCH_READ) == 0) {
        int fd = accept4(v->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            watch_drained(&v->watch, WATCH_READ);
        else
            conn_new(v, task_loop(t), fd);
    }
}

static void server_open(struct server *v, struct loop *l)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    v->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    check(v->fd >= 0 && bind(v->fd, (struct sockaddr *)&a, n) == 0 && listen(v->fd, 64) == 0);
    check(getsockname(v->fd, (struct sockaddr *)&a, &n) == 0);
    v->port = ntohs(a.sin_port);
    list_init(&v->conns);
    group_init(&v->group, l);
    watch_init(&v->watch, l, v->fd);
    check(task_go(&v->group, "server", accept_all, v) == 0);
}

static void server_close(struct task *t, struct server *v)
{
    group_cancel(&v->group);
    check(group_join(t, &v->group) == 0);
    list_each_safe (it, &v->conns)
        conn_free(list_entry(it, struct server_conn, link));
    watch_release(&v->watch);
    close(v->fd);
}

/* --- the fixture --- */

struct fixture {
    struct server server;
    struct http_client *client;
};

static void fixture_open(struct fixture *f, struct task *t)
{
    server_open(&f->server, task_loop(t));
    f->client = http_client_new(task_loop(t), &(struct http_client_options){.plain_h2 = true});
}

static void fixture_close(struct fixture *f, struct task *t)
{
    is_int((int64_t)http_client_in_flight(f->client), 0, "no call is left");
    http_client_free(f->client);
    server_close(t, &f->server);
}

static int call_with(struct fixture *f, struct task *t, const char *path, struct http_call c,
                     struct http_response *r)
{
    c.url = arena_printf(task_arena(t), "http://127.0.0.1:%d%s", f->server.port, path);
    return http_call(t, f->client, &c, r);
}

static int post(struct fixture *f, struct task *t, const char *path, struct str body,
                struct http_response *r)
{
    return call_with(f, t, path, (struct http_call){.body = body}, r);
}

static int get(struct fixture *f, struct task *t, const char *path, struct http_response *r)
{
    return call_with(f, t, path, (struct http_call){.method = "GET"}, r);
}

/* --- replies --- */

static void test_replies(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    struct http_response r;
    fixture_open(&f, t);
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "a call is answered");
    is_int(r.http_version, 20, "by HTTP/2");
    is_int(r.status, 200, "with its status");
    is_str(r.body, STR("hello"), "its body");
    is_str(r.content_type, STR("a/b"), "its type");
    is_int(r.retry_after_ms, 7000, "and when to come again");
    struct str type = STR("Content-Type: application/json");
    struct http_call c = {.body = STR("{}"), .headers = &type, .header_count = 1};
    is_int(call_with(&f, t, "/echo", c, &r), 0, "a header");
    is_str(r.content_type, STR("application/json"), "is sent as it is");
    is_str(r.body, STR("{}"), "and so is a body");
    is_int(post(&f, t, "/hint", STR("x"), &r), 0, "an interim reply");
    is_int(r.status, 429, "is passed over");
    is_int(r.retry_after_ms, 7000, "with its headers");
    is_int(get(&f, t, "/big", &r), 0, "a long reply");
    is_int((int64_t)r.body.n, 300000, "comes whole");
    is_int((int64_t)f.server.accepted, 1, "all over one connection");
    fixture_close(&f, t);
}

/* A window smaller than the body: the rest is sent as the server reads. */
static int make_body(struct task *t, void *arg, struct str *out)
{
    struct buf *b = arg;
    (void)t;
    buf_clear(b);
    for (int i = 0; i < 20000; i++)
        buf_printf(b, "%d,", i);
    *out = buf_str(b);
    return 0;
}

static void spoil(struct task *t, void *arg)
{
    struct buf *b = arg;
    check(task_sleep(t, 0) == 0);
    memset(b->p, 'x', b->cap); /* the maker of a body may use its memory again */
}

static void test_windows(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.server.window = 1000};
    struct http_response r;
    struct buf made, want;
    struct str expected;
    buf_init(&made);
    buf_init(&want);
    check(make_body(t, &want, &expected) == 0);
    fixture_open(&f, t);
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "the connection stands");
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "spoil", spoil, &made) == 0);
    struct http_call c = {.body_fn = make_body, .arg = &made};
    is_int(call_with(&f, t, "/echo", c, &r), 0, "a body of 100 windows");
    ok(str_eq(r.body, expected), "arrives whole");
    check(group_join(t, &g) == 0);
    buf_release(&made);
    buf_release(&want);
    fixture_close(&f, t);
}

static int count_piece(void *arg, struct str piece)
{
    size_t *n = arg;
    *n += piece.n;
    return *n > 100000 ? ERR_NOT_FOUND : 0;
}

static void test_limits(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    struct http_response r;
    fixture_open(&f, t);
    struct http_call c = {.method = "GET", .reply_bytes_max = 1000};
    is_int(call_with(&f, t, "/big", c, &r), ERR_LIMIT, "a reply that is too long");
    size_t seen = 0;
    c = (struct http_call){.method = "GET", .on_piece = count_piece, .arg = &seen};
    is_int(call_with(&f, t, "/big", c, &r), ERR_NOT_FOUND, "who takes pieces may have had enough");
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "the connection goes on");
    is_int((int64_t)f.server.accepted, 1, "as before");
    is_int((int64_t)f.server.busy, 0, "and nothing is left on it");
    fixture_close(&f, t);
}

/* --- many --- */

struct many {
    struct fixture f;
    const char *path;
    size_t good, bad;
};

static void one_of_many(struct task *t, void *arg)
{
    struct many *m = arg;
    struct http_response r;
    if (post(&m->f, t, m->path, STR("x"), &r) == 0 && str_eq(r.body, STR("hello")))
        m->good++;
    else
        m->bad++;
}

static void run_many(struct task *t, struct many *m, size_t n)
{
    struct group g;
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < n; i++)
        check(task_go(&g, "call", one_of_many, m) == 0);
    check(group_join(t, &g) == 0);
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct many m = {.path = "/slow"};
    fixture_open(&m.f, t);
    run_many(t, &m, 250);
    is_int((int64_t)m.good, 250, "250 calls at once");
    is_int((int64_t)m.f.server.accepted, 3, "over three connections of 100");
    is_int((int64_t)m.f.server.busiest, 250, "all at the same time");
    fixture_close(&m.f, t);
}

static void test_crowded(struct task *t, void *arg)
{
    (void)arg;
    struct many m = {.path = "/slow", .f.server.streams_max = 2};
    server_open(&m.f.server, task_loop(t));
    m.f.client = http_client_new(
        task_loop(t), &(struct http_client_options){.plain_h2 = true, .h2_connections_max = 2});
    run_many(t, &m, 20);
    is_int((int64_t)m.good, 20, "20 calls where four find room");
    is_int((int64_t)m.f.server.busiest, 4, "take turns");
    fixture_close(&m.f, t);
}

/* --- what goes wrong --- */

static void test_refused(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    struct http_response r;
    fixture_open(&f, t);
    is_int(post(&f, t, "/refuse-twice", STR("x"), &r), 0, "a refused call is sent again");
    is_int((int64_t)f.server.requests, 3, "until it is taken");
    is_int(post(&f, t, "/refuse", STR("x"), &r), ERR_UNAVAILABLE, "but not for ever");
    is_int((int64_t)f.server.requests, 7, "four times in all");
    is_int(post(&f, t, "/reset", STR("x"), &r), ERR_UNCERTAIN, "who knows what a reset means");
    is_int((int64_t)f.server.requests, 8, "it is not sent again");
    fixture_close(&f, t);
}

static void test_leaving(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    struct http_response r;
    fixture_open(&f, t);
    is_int(post(&f, t, "/leave-before", STR("x"), &r), 0,
           "a server that leaves before a call was handled: another connection");
    is_int((int64_t)f.server.accepted, 2, "is opened");
    is_int(post(&f, t, "/leave-after", STR("x"), &r), 0, "the last call of a connection");
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "and the next");
    is_int((int64_t)f.server.accepted, 3, "are on two");
    is_int((int64_t)f.server.requests, 4, "and nothing is sent twice that was handled");
    fixture_close(&f, t);
}

static void test_lost(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    struct http_response r;
    fixture_open(&f, t);
    is_int(get(&f, t, "/cut-once", &r), 0, "a GET whose connection is lost is sent again");
    is_int((int64_t)f.server.requests, 2, "once");
    is_int(post(&f, t, "/cut", STR("x"), &r), ERR_UNCERTAIN, "a POST is not");
    is_int((int64_t)f.server.requests, 3, "it may have been handled");
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "the next call has a new connection");
    fixture_close(&f, t);
}

struct stalled {
    struct fixture *f;
    int err;
};

static void stall(struct task *t, void *arg)
{
    struct stalled *s = arg;
    struct http_response r;
    s->err = post(s->f, t, "/stall", STR("x"), &r);
}

static void test_given_up(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    struct http_response r;
    fixture_open(&f, t);
    int64_t old = task_deadline(t, 100);
    is_int(post(&f, t, "/stall", STR("x"), &r), ERR_TIMEOUT, "a deadline ends a call");
    task_deadline_restore(t, old);
    struct stalled s = {.f = &f};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "stall", stall, &s) == 0);
    while (f.server.requests < 2)
        check(task_sleep(t, 1) == 0);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    is_int(s.err, ERR_CANCELED, "and so does a cancellation");
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "others go on");
    is_int((int64_t)f.server.closed, 3, "the server has heard of both");
    is_int((int64_t)f.server.accepted, 1, "over the same connection");
    fixture_close(&f, t);
}

/* A server that does not read: calls wait in our own memory, and those that are given up there leave nothing behind. */
static void send_much(struct task *t, void *arg)
{
    struct stalled *s = arg;
    struct http_response r;
    char *body = arena_alloc(task_arena(t), 1 << 20);
    memset(body, 'x', 1 << 20);
    s->err = post(s->f, t, "/stall", str_from(body, 1 << 20), &r);
}

static void test_not_begun(struct task *t, void *arg)
{
    (void)arg;
    struct many m = {.path = "/slow", .f.server.window = 100 << 20};
    struct http_response r;
    fixture_open(&m.f, t);
    is_int(post(&m.f, t, "/ok", STR("x"), &r), 0, "the connection stands");
    struct server_conn *c = list_entry(m.f.server.conns.next, struct server_conn, link);
    poller_set(&c->wire.poller, 0);
    struct stalled s = {.f = &m.f};
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 40; i++)
        check(task_go(&g, "much", send_much, &s) == 0);
    check(task_sleep(t, 50) == 0);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    is_int(s.err, ERR_CANCELED, "calls to a server that does not read are given up");
    poller_set(&c->wire.poller, WATCH_READ);
    is_int(post(&m.f, t, "/ok", STR("x"), &r), 0, "it reads again");
    run_many(t, &m, 100);
    is_int((int64_t)m.good, 100, "and has 100 places");
    is_int((int64_t)m.f.server.accepted, 1, "on the same connection");
    fixture_close(&m.f, t);
}

/* --- who speaks what --- */

static void test_h1(struct task *t, void *arg)
{
    (void)arg;
    struct peer p;
    peer_open(&p, task_loop(t));
    struct http_client *c =
        http_client_new(task_loop(t), &(struct http_client_options){.plain_h2 = true});
    struct http_response r;
    for (int i = 0; i < 3; i++) {
        struct http_call call = {.url = peer_url(t, &p, "/ok"), .body = STR("x")};
        is_int(http_call(t, c, &call, &r), 0, "a server of HTTP/1.1 is called");
        is_int(r.http_version, 11, "by HTTP/1.1");
    }
    is_int((int64_t)p.accepted, 2, "it was asked once");
    http_client_free(c);
    peer_close(t, &p);
}

/* Nobody listens: all who wait are told at once, not one after the other. */
static void test_nobody(struct task *t, void *arg)
{
    (void)arg;
    struct many m = {.path = "/ok"};
    fixture_open(&m.f, t);
    server_close(t, &m.f.server);
    int64_t began_ms = loop_now_ms(task_loop(t));
    run_many(t, &m, 100);
    is_int((int64_t)m.bad, 100, "without a server no call succeeds");
    ok(loop_now_ms(task_loop(t)) - began_ms < 1000, "and nobody waits");
    http_client_free(m.f.client);
}

static void test_idle(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    struct http_response r;
    fixture_open(&f, t);
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "a connection");
    ok(!list_empty(&f.server.conns), "is kept");
    check(task_sleep(t, 60000) == 0);
    ok(list_empty(&f.server.conns), "and closed when nobody has used it for long");
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "another call has a new one");
    is_int((int64_t)f.server.accepted, 2, "the second");
    fixture_close(&f, t);
}

int main(void)
{
    tap_task(test_replies, NULL, true);
    tap_task(test_windows, NULL, true);
    tap_task(test_limits, NULL, true);
    tap_task(test_many, NULL, true);
    tap_task(test_crowded, NULL, true);
    tap_task(test_refused, NULL, true);
    tap_task(test_leaving, NULL, true);
    tap_task(test_lost, NULL, true);
    tap_task(test_given_up, NULL, true);
    tap_task(test_not_begun, NULL, true);
    tap_task(test_h1, NULL, true);
    tap_task(test_nobody, NULL, true);
    tap_task(test_idle, NULL, false);
    return tap_done();
}
