#include <stdlib.h>
#include <unistd.h>

#include "wire/http_server/http2_conn.h"

/* Lines of a reply: the handler's and the server's. */
#define REPLY_FIELDS_MAX 64
#define FILE_BYTES       65536 /* read at a time */

/* --- life --- */

struct http2_stream *http2_stream_new(struct http2_conn *h, int32_t id)
{
    struct http_server *server = h->conn->server;
    struct http2_stream *s = check_memory(malloc(sizeof(*s)));
    *s = (struct http2_stream){.owner = h, .id = id, .method = STR(""), .target = STR("")};
    s->conn = (struct http_conn){.server = server, .watch.fd = -1, .stream = s};
    s->conn.kit = http_kit_take(server);
    http_begin_parsing(&s->conn);
    memcpy(s->conn.peer, h->conn->peer, sizeof(s->conn.peer));
    s->due_ms = loop_now_ms(server->loop) + server->options.limits.body_ms;
    list_push(&h->streams, &s->conn.link);
    list_push(&h->gathering, &s->gathering);
    h->stream_count++;
    return s;
}

void http2_stream_free(struct http2_stream *s)
{
    struct http2_conn *h = s->owner;
    list_del(&s->gathering);
    list_del(&s->conn.link);
    h->idle_since_ms = loop_now_ms(h->link.loop);
    if (--h->stream_count == 0 && h->ended)
        task_wake(h->conn->task);
    if (s->conn.kit)
        http_kit_give(s->conn.server, s->conn.kit);
    free(s);
}

void http2_stream_closed(struct http2_stream *s)
{
    struct http_conn *c = &s->conn;
    bool taskless = s->later || !list_empty(&s->gathering);
    s->closed = true;
    if (s->later)
        http2_later_drop(s->later);
    if (taskless) {
        http2_stream_free(s);
        return;
    }
    if (!s->sent) {
        c->broken = c->watch.gone = true;
        if (c->task)
            http_conn_gone(c);
    }
    if (s->waiting)
        task_wake(c->task);
}

/* --- the reply --- */

/* Gives the session as much of the reply as it takes. */
static ssize_t read_reply(nghttp2_session *session, int32_t id, uint8_t *p, size_t n,
                          uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void)source, (void)arg;
    struct http2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (!s)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    struct buf *out = &s->conn.kit->out;
    size_t first = n < out->len ? n : out->len;
    size_t second = n - first < s->rest.n ? n - first : s->rest.n;
    memcpy(p, buf_str(out).p, first);
    buf_consume(out, first);
    if (second > 0)
        memcpy(p + first, s->rest.p, second);
    s->rest = str_from(s->rest.p + second, s->rest.n - second);
    if (s->waiting)
        task_wake(s->conn.task);
    if (s->ending && out->len + s->rest.n == 0) {
        s->sent = true;
        *flags = NGHTTP2_DATA_FLAG_EOF;
    } else if (first + second == 0) {
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)(first + second);
}

static size_t split_lines(struct str text, nghttp2_nv *out, size_t most)
{
    size_t n = 0;
    while (text.n > 0) {
        struct str value = str_cut(&text, '\n');
        struct str name = str_cut(&value, ':');
        check(n < most && value.n >= 2);
        out[n++] = http2_field(name, str_from(value.p + 1, value.n - 2), 0); /* a blank, CR */
    }
    return n;
}

/* The session makes names lower case. */
void http2_stream_submit(struct http2_stream *s, const struct http_field *ours, size_t count,
                         bool empty)
{
    const struct http_exchange *x = &s->conn.kit->x;
    nghttp2_nv fields[1 + REPLY_FIELDS_MAX];
    char digits[STR_INT_BYTES];
    fields[0] = http2_field(STR(":status"), str_digits(digits, x->status), 0);
    size_t n = 1;
    check(count <= REPLY_FIELDS_MAX);
    for (size_t i = 0; i < count; i++)
        fields[n++] = http2_field(ours[i].name, ours[i].value, 0);
    n += split_lines(buf_str(&s->conn.kit->fields), fields + n, REPLY_FIELDS_MAX - count);
    if (s->closed)
        return;
    nghttp2_data_provider provider = {.read_callback = read_reply};
    s->sent = empty || x->headless || x->status == 204 || x->status == 304;
    int err = nghttp2_submit_response(s->owner->link.session, s->id, fields, n,
                                      s->sent ? NULL : &provider);
    check(err == 0);
}

/* Waits until the session has taken everything. */
static int drain(struct task *t, struct http2_stream *s)
{
    struct http_conn *c = &s->conn;
    int err = 0;
    while (!err && !s->closed && !s->sent && (s->ending || c->kit->out.len + s->rest.n > 0)) {
        int64_t write_ms = c->server->options.limits.write_ms;
        struct http_pause pause = http_pause(t, loop_now_ms(task_loop(t)) + write_ms);
        s->waiting = true;
        err = task_wait(t);
        s->waiting = false;
        http_resume(t, &c->kit->x, pause);
    }
    return err;
}

static void take(struct http2_stream *s)
{
    if (s->closed || s->sent)
        return;
    /* Fails where nothing was deferred: then the session reads more by itself. */
    (void)nghttp2_session_resume_data(s->owner->link.session, s->id);
}

int http2_stream_send(struct task *t, struct http2_stream *s, struct str body)
{
    struct http_conn *c = &s->conn;
    s->rest = body;
    take(s);
    if (!s->closed)
        http2_link_pack(&s->owner->link);
    int err = drain(t, s);
    s->rest = STR_NULL;
    if (!err && s->closed && !s->sent)
        err = ERR_CLOSED;
    if (err)
        c->broken = true;
    return err;
}

int http2_stream_send_file(struct task *t, struct http2_stream *s, int fd, uint64_t offset,
                           uint64_t count)
{
    struct buf *b = &s->conn.kit->body;
    buf_clear(b);
    char *piece = buf_reserve(b, FILE_BYTES);
    int err = 0;
    while (count > 0 && !err) {
        ssize_t n =
            pread(fd, piece, count < FILE_BYTES ? (size_t)count : FILE_BYTES, (off_t)offset);
        if (n <= 0) {
            s->conn.broken = true; /* it has become shorter than its Content-Length */
            return ERR_IO;
        }
        err = http2_stream_send(t, s, str_from(piece, (size_t)n));
        offset += (uint64_t)n;
        count -= (uint64_t)n;
    }
    return err;
}

/* --- the exchange --- */

void http2_stream_part(struct http2_stream *s)
{
    nghttp2_session *session = s->owner->link.session;
    if (s->closed)
        return;
    nghttp2_session_set_stream_user_data(session, s->id, NULL);
    /* A reply may end before its request does: the rest is refused. */
    bool reset = !s->sent || !s->complete;
    if (reset) {
        uint32_t why = s->sent ? NGHTTP2_NO_ERROR : NGHTTP2_INTERNAL_ERROR;
        check(nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->id, why) == 0);
    }
    if (reset || s->conn.broken) /* else all has been packed */
        http2_link_pack(&s->owner->link);
}

static void answer(struct task *t, struct http2_stream *s)
{
    struct http_conn *c = &s->conn;
    struct http_exchange *x = http_exchange_begin(t, c);
    x->headless = str_eq(s->method, STR("HEAD"));
    if (c->kit->parser.problem.message)
        http_refuse(t, x, c->kit->parser.problem);
    else
        http_answer(t, x);
    s->ending = !s->later;
    if (s->ending && http_send(t, c, STR("")) != 0)
        c->broken = true; /* http2_stream_part resets what is not sent */
}

void http2_stream_task(struct task *t, void *stream)
{
    struct http2_stream *s = stream;
    struct task_scope scope = task_scope(t);
    s->conn.task = t;
    http_kit_use(&s->conn);
    answer(t, s);
    if (!s->later)
        http2_stream_part(s);
    task_scope_end(t, scope);
    http_kit_use(&s->conn); /* gives the memory of the arena back */
    if (!s->later) {
        http2_stream_free(s);
        return;
    }
    http_kit_give(s->conn.server, s->conn.kit);
    s->conn.kit = NULL;
    s->conn.task = NULL;
}
