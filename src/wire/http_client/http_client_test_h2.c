#include "wire/http_client/http_client_test_h2.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

struct stream {
    struct list link;
    struct h2_server_conn *conn;
    int32_t id;
    char path[64], method[16], type[64];
    struct buf body, out;
    struct timer timer; /* when a late reply is due */
};

static ssize_t read_out(nghttp2_session *s, int32_t id, uint8_t *p, size_t room, uint32_t *flags,
                        nghttp2_data_source *source, void *conn)
{
    (void)s, (void)id, (void)conn;
    struct stream *x = source->ptr;
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

static void reply(struct stream *x, const char *status, struct str body)
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

static bool is(const struct stream *x, const char *path)
{
    return strcmp(x->path, path) == 0;
}

static void reset(struct stream *x, uint32_t code)
{
    nghttp2_submit_rst_stream(x->conn->wire.session, NGHTTP2_FLAG_NONE, x->id, code);
}

/* From within the session's callbacks: what is submitted leaves with the link's next flush. */
static void answer(struct stream *x)
{
    struct h2_server *v = x->conn->server;
    nghttp2_session *s = x->conn->wire.session;
    static char big[300000];
    if (x->conn->left)
        return; /* came before the GOAWAY could leave, which excludes it */
    v->requests++;
    if (v->swallows)
        return;
    if (v->single)
        nghttp2_submit_goaway(s, NGHTTP2_FLAG_NONE, x->id, NGHTTP2_NO_ERROR, NULL, 0);
    x->conn->left = v->single;
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
    } else if (is(x, "/leave-begun")) {
        nghttp2_nv fields[] = {field(":status", "200")};
        check(nghttp2_submit_headers(s, NGHTTP2_FLAG_NONE, x->id, NULL, fields, 1, NULL) == 0);
        nghttp2_submit_goaway(s, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
    } else if (is(x, "/leave-before") || is(x, "/leave-after") || is(x, "/calm")) {
        uint32_t code = is(x, "/calm") ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_NO_ERROR;
        if (!is(x, "/leave-before")) /* this one is the last */
            nghttp2_submit_goaway(s, NGHTTP2_FLAG_NONE, x->id, code, NULL, 0);
        timer_set(&x->timer, 0);
    } else {
        check(is(x, "/stall"));
    }
}

static int on_begin(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
    struct h2_server_conn *c = arg;
    struct stream *x = calloc(1, sizeof *x);
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
    struct stream *x = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
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
    struct stream *x = nghttp2_session_get_stream_user_data(s, id);
    buf_add(&x->body, p, n);
    return 0;
}

static int on_received(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
    (void)arg;
    struct stream *x = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
    if (x && (f->hd.flags & NGHTTP2_FLAG_END_STREAM) && f->hd.type <= NGHTTP2_HEADERS)
        answer(x);
    return 0;
}

static void stream_free(struct stream *x)
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
    struct h2_server_conn *c = arg;
    struct stream *x = nghttp2_session_get_stream_user_data(s, id);
    c->server->closed++;
    stream_free(x);
    return 0;
}

static void conn_free(void *arg)
{
    struct h2_server_conn *c = arg;
    list_each_safe (it, &c->streams)
        stream_free(list_entry(it, struct stream, link));
    list_del(&c->link);
    http2_link_release(&c->wire);
    free(c);
}

static void conn_new(struct h2_server *v, struct loop *l, int fd)
{
    struct h2_server_conn *c = calloc(1, sizeof *c);
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
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, v->full          ? 0
                                                  : v->streams_max ? v->streams_max
                                                                   : 100},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, v->window ? v->window : 65535},
    };
    check(nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, own, 2) == 0);
    if (v->window > 65535)
        check(nghttp2_session_set_local_window_size(s, NGHTTP2_FLAG_NONE, 0, (int32_t)v->window) ==
              0);
    if (v->leaves)
        check(nghttp2_submit_goaway(s, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0) == 0);
    http2_link_init(&c->wire, l, fd, s, conn_free, c);
    if (v->mute)
        poller_set(&c->wire.poller, 0);
    else
        http2_link_pack(&c->wire);
}

static void accept_all(struct task *t, void *arg)
{
    struct h2_server *v = arg;
    while (watch_wait(t, &v->watch, WATCH_READ) == 0) {
        int fd = accept4(v->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), yes = 1;
        if (fd < 0) {
            watch_drained(&v->watch, WATCH_READ);
            continue;
        }
        /* Else a reply waits for an acknowledgement, in real time, while virtual time goes on. */
        check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0);
        conn_new(v, task_loop(t), fd);
    }
}

void h2_server_open(struct h2_server *v, struct loop *l)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = v->address ? v->address : htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)v->port)};
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

void h2_server_close(struct task *t, struct h2_server *v)
{
    group_cancel(&v->group);
    check(group_join(t, &v->group) == 0);
    list_each_safe (it, &v->conns)
        conn_free(list_entry(it, struct h2_server_conn, link));
    watch_release(&v->watch);
    close(v->fd);
}
