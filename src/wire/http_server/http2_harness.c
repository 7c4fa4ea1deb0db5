#include "wire/http_server/http2_harness.h"

#include <string.h>

#include "wire/http_server/http_uri.h"

static struct call *find(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    (void)flags, (void)arg;
    struct call *c = find(session, f->hd.stream_id);
    struct str text = str_from((const char *)value, value_n);
    int64_t status;
    if (!c)
        return 0;
    if (name[0] == ':' && str_to_i64(text, &status))
        c->status = (int)status;
    buf_add(&c->head, name, name_n);
    buf_add_lit(&c->head, ": ");
    buf_add_str(&c->head, text);
    buf_add_char(&c->head, '\n');
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *arg)
{
    (void)flags, (void)arg;
    struct call *c = find(session, id);
    check(nghttp2_session_consume_connection(session, n) == 0);
    if (c && !c->deaf)
        check(nghttp2_session_consume_stream(session, id, n) == 0);
    if (c)
        buf_add(&c->reply, p, n);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
    struct h2 *h = arg;
    struct call *c = f->hd.stream_id ? find(session, f->hd.stream_id) : NULL;
    if (f->hd.type == NGHTTP2_GOAWAY) {
        h->goaway = true;
        h->goaway_error = f->goaway.error_code;
    }
    if (!c)
        return 0;
    c->heads += f->hd.type == NGHTTP2_HEADERS;
    c->frames += f->hd.type == NGHTTP2_DATA;
    if (f->hd.type <= NGHTTP2_HEADERS && (f->hd.flags & NGHTTP2_FLAG_END_STREAM))
        c->ended = true;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
    (void)arg;
    struct call *c = find(session, id);
    if (!c)
        return 0;
    c->closed = true;
    c->error = error;
    return 0;
}

static nghttp2_session *session_new(struct h2 *h)
{
    nghttp2_session_callbacks *does;
    nghttp2_option *option;
    nghttp2_session *session;
    check(nghttp2_session_callbacks_new(&does) == 0 && nghttp2_option_new(&option) == 0);
    nghttp2_session_callbacks_set_on_header_callback(does, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(does, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(does, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(does, on_close);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_peer_max_concurrent_streams(option, 100000); /* until its settings come */
    check(nghttp2_session_client_new2(&session, does, h, option) == 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(does);
    return session;
}

void h2_open(struct task *t, struct site *s, struct h2 *h, struct h2_settings settings)
{
    *h = (struct h2){.gone = false};
    client_open(t, s, &h->raw);
    buf_init(&h->said);
    h->session = session_new(h);
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings.window};
    check(nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, &window, settings.window > 0) ==
          0);
}

void h2_close(struct h2 *h)
{
    nghttp2_session_del(h->session);
    client_close(&h->raw);
    buf_release(&h->said);
}

void h2_say(struct task *t, struct h2 *h)
{
    const uint8_t *p;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(h->session, &p)) > 0) {
        struct str bytes = str_from((const char *)p, (size_t)n);
        if (h->record)
            buf_add_str(&h->said, bytes);
        client_send(t, &h->raw, bytes);
    }
    check(n == 0);
}

void h2_step(struct task *t, struct h2 *h)
{
    h2_say(t, h);
    struct task_scope scope = task_scope(t);
    struct str in = client_read(t, &h->raw);
    h->silent = !in.p;
    h->gone = in.p && in.n == 0;
    if (in.n > 0)
        check(nghttp2_session_mem_recv(h->session, (const uint8_t *)in.p, in.n) == (ssize_t)in.n);
    task_scope_end(t, scope);
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *p, size_t n,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void)session, (void)id, (void)arg;
    struct call *c = source->ptr;
    size_t left = c->body.n - c->sent;
    if (n > left)
        n = left;
    memcpy(p, c->body.p + c->sent, n);
    c->sent += n;
    if (c->endless && n == 0)
        return NGHTTP2_ERR_DEFERRED;
    if (c->sent == c->body.n && !c->endless)
        *flags = NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

void h2_begin(struct h2 *h, struct call *c)
{
    buf_init(&c->head);
    buf_init(&c->reply);
    nghttp2_nv fields[5] = {field(":method", c->method ? c->method : "GET"),
                            field(":scheme", "http"), field(":authority", "test.example:80"),
                            field(":path", c->path)};
    if (c->name)
        fields[4] = field(c->name, c->value);
    nghttp2_data_provider body = {.source.ptr = c, .read_callback = read_body};
    c->id = nghttp2_submit_request(h->session, NULL, fields, c->name ? 5 : 4,
                                   c->body.p ? &body : NULL, c);
    check(c->id > 0);
}

static bool all_closed(const struct call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!calls[i].closed)
            return false;
    return true;
}

void h2_await(struct task *t, struct h2 *h, struct call *calls, size_t n)
{
    while (!all_closed(calls, n) && !h->gone && !h->silent)
        h2_step(t, h);
}

void h2_call(struct task *t, struct h2 *h, struct call *c)
{
    h2_begin(h, c);
    h2_await(t, h, c, 1);
}

struct str call_field(const struct call *c, const char *name)
{
    struct str rest = buf_str(&c->head);
    while (rest.n > 0) {
        struct str value = str_cut(&rest, '\n');
        struct str found = str_cut(&value, ':');
        if (value.p && str_eq(found, str_of(name)))
            return str_trim(value);
    }
    return STR_NULL;
}

void call_release(struct call *c)
{
    buf_release(&c->head);
    buf_release(&c->reply);
}

/* --- handlers --- */

int h2_hello(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "application/json", STR("{\"a\":1}"));
}

int h2_echo(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str body;
    int err = http_body(t, x, &body);
    return err ? err : http_reply(t, x, 200, "text/plain", body);
}

int h2_read_json(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    const struct json *body;
    int err = http_body_json(t, x, &body);
    return err ? err : http_reply(t, x, 200, "text/plain", json_str(json_get(body, "a")));
}

int h2_mirror(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str q = STR("");
    (void)http_query_find(task_arena(t), http_query_string(x), STR("q"), 0, &q);
    struct str text =
        str_printf(task_arena(t), "%.*s|%.*s|%.*s|%.*s|%.*s|%.*s", STR_ARG(http_method(x)),
                   STR_ARG(http_param(x, "name")), STR_ARG(q), STR_ARG(http_peer(x)),
                   STR_ARG(http_header(x, "Host")), STR_ARG(http_header(x, "X-One")));
    http_set_header(x, "X-Two", STR("2"));
    return http_reply(t, x, 200, "text/plain", text);
}

int h2_large(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    char *p = arena_alloc(task_arena(t), H2_LARGE_BYTES);
    memset(p, 'L', H2_LARGE_BYTES);
    return http_reply(t, x, 200, "text/plain", str_from(p, H2_LARGE_BYTES));
}
