/* The connections of HTTP/2 to a host: opened one at a time, shared by many calls.
 *
 * Over TLS the server chooses HTTP/2 or HTTP/1.1 in the handshake. A plain connection begins with
 * the preface of HTTP/2 and settings: a server that answers with its own settings gets HTTP/2; any
 * other answer means HTTP/1.1, and so does silence unless the host has replied in HTTP/2 before.
 * Either way no request has left before the server's settings have come, which say how many calls
 * it takes at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "wire/http2/http2_memory.h"
#include "wire/http_client/http_client_private.h"

#define H1_MS              300000 /* then HTTP/2 is tried again */
#define GREETING_BYTES_MAX 240    /* forty settings; there are nine */

/* --- places --- */

static bool has_room(const struct httpc_h2 *k)
{
    return !k->leaving && k->places_used < k->places;
}

/* Connections with room are in front. */
static void find_place_in_list(struct httpc_h2 *k)
{
    struct httpc_host *h = k->host;
    list_del(&k->link);
    if (has_room(k))
        list_push_front(&h->h2, &k->link);
    else
        list_push(&h->h2, &k->link);
}

static struct httpc_h2 *conn_with_room(struct httpc_host *h)
{
    if (list_empty(&h->h2))
        return NULL;
    struct httpc_h2 *k = list_entry(h->h2.next, struct httpc_h2, link);
    return has_room(k) ? k : NULL;
}

static void take_place(struct httpc_h2 *k)
{
    k->places_used++;
    if (!has_room(k))
        find_place_in_list(k);
    if (k->health.pos == 0) {
        k->quiet_since_ms = loop_now_ms(k->wire.loop);
        timer_set(&k->health, k->quiet_since_ms + k->host->client->options.ping_ms);
    }
}

static void give_place_back(struct httpc_h2 *k)
{
    struct http_client *c = k->host->client;
    bool was_full = !has_room(k);
    k->places_used--;
    if (was_full && has_room(k))
        find_place_in_list(k);
    waitq_wake_one(&k->host->h2_room);
    if (k->places_used > 0)
        return;
    timer_clear(&k->health);
    k->pinged = false;
    k->idle_since_ms = loop_now_ms(c->loop);
    if (k->leaving) /* calls may wait for its place among the host's connections */
        timer_set(&c->sweep, k->idle_since_ms);
    else if (c->sweep.pos == 0)
        timer_set(&c->sweep, k->idle_since_ms + c->options.idle_ms);
}

void httpc_h2_leave(struct httpc_h2_call *x)
{
    struct httpc_h2 *k = x->conn;
    if (!k)
        return;
    list_del(&x->link);
    x->conn = NULL;
    if (x->stream == 0) {
        give_place_back(k);
        return;
    }
    /* If the stream has closed, its place is free already. Else on_stream_close follows the reset,
     * also of a request that was never sent. */
    nghttp2_session *s = k->wire.session;
    if (nghttp2_session_set_stream_user_data(s, x->stream, NULL) != 0)
        return;
    nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, x->stream, NGHTTP2_CANCEL);
    http2_link_pack(&k->wire);
}

/* --- silence --- */

static void give_up(struct httpc_h2 *k, const char *why)
{
    k->leaving = true;
    find_place_in_list(k);
    http2_link_end(&k->wire, why);
}

void httpc_h2_timeout(struct httpc_h2_call *x)
{
    struct httpc_h2 *k = x->conn;
    if (httpc_silence_timeout(&k->silence, k->wire.loop, x->sent_ms))
        give_up(k, "no reply in time, twice in a row");
}

/* A slow server still answers a PING; a connection that leads nowhere does not. */
static void check_health(void *arg)
{
    struct httpc_h2 *k = arg;
    const struct http_client_options *o = &k->host->client->options;
    int64_t now_ms = loop_now_ms(k->wire.loop);
    int64_t next_ms = k->quiet_since_ms + o->ping_ms;
    if (k->wire.why)
        return;
    if (k->pinged) {
        give_up(k, "no answer to a PING");
        return;
    }
    if (next_ms <= now_ms) {
        k->pinged = true;
        nghttp2_submit_ping(k->wire.session, NGHTTP2_FLAG_NONE, NULL);
        http2_link_pack(&k->wire);
        next_ms = now_ms + o->ping_wait_ms;
    }
    timer_set(&k->health, next_ms);
}

/* Any frame shows that the connection works. */
static void heard(struct httpc_h2 *k)
{
    k->quiet_since_ms = loop_now_ms(k->wire.loop);
    k->pinged = false;
}

/* --- callbacks of the session --- */

/* On a stream that this side has opened; else the server breaks the protocol. */
static bool is_reply(nghttp2_session *s, const nghttp2_frame_hd *f)
{
    return (f->type == NGHTTP2_HEADERS || f->type == NGHTTP2_DATA) && f->stream_id % 2 == 1 &&
           (uint32_t)f->stream_id < nghttp2_session_get_next_stream_id(s);
}

/* Also for calls that have timed out: late replies show that the connection works. */
static int on_begin_frame(nghttp2_session *s, const nghttp2_frame_hd *f, void *conn)
{
    struct httpc_h2 *k = conn;
    if (k->wire.loop) /* else these are the first settings */
        heard(k);
    if (!is_reply(s, f))
        return 0;
    httpc_silence_end(&k->silence, k->wire.loop);
    k->host->h2_spoken = true;
    return 0;
}

/* Only a whole reply ends the backoff: a server may begin one, and then refuse the call. */
static void replied(struct httpc_h2 *k)
{
    k->replied = true;
    if (!k->calmed)
        httpc_host_replied(k->host);
}

static int on_stream_close(nghttp2_session *s, int32_t stream, uint32_t code, void *conn)
{
    struct httpc_h2 *k = conn;
    struct httpc_h2_call *x = nghttp2_session_get_stream_user_data(s, stream);
    give_place_back(k);
    if (!x)
        return 0;
    list_del(&x->link);
    x->conn = NULL;
    x->untouched = !x->done && code == NGHTTP2_REFUSED_STREAM;
    x->left_out = x->untouched && k->leaving && (k->replied || k->handles);
    httpc_h2_finish(x, x->untouched ? ERR_UNAVAILABLE : ERR_UNCERTAIN,
                    x->untouched ? "the server refuses the call" : HTTPC_LOST);
    return 0;
}

/* A connection that takes no more calls and has brought no reply delays the next one. */
static void fruitless(struct httpc_h2 *k)
{
    if (k->replied || k->fruitless)
        return;
    k->fruitless = true;
    k->host->h2_fruitless++;
    httpc_host_back_off(k->host);
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *conn)
{
    struct httpc_h2 *k = conn;
    if (f->hd.type == NGHTTP2_SETTINGS && !(f->hd.flags & NGHTTP2_FLAG_ACK)) {
        uint32_t most =
            nghttp2_session_get_remote_settings(s, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
        k->places = most < HTTP2_STREAMS_MAX ? most : HTTP2_STREAMS_MAX;
        k->greeted = true;
    } else if (f->hd.type == NGHTTP2_GOAWAY) {
        k->leaving = true;
        k->handles = f->goaway.last_stream_id > 0;
        if (!k->handles)
            fruitless(k);
        k->calmed = f->goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM;
        if (k->calmed)
            httpc_host_back_off(k->host);
    } else {
        if (is_reply(s, &f->hd) && (f->hd.flags & NGHTTP2_FLAG_END_STREAM))
            replied(k);
        return httpc_h2_on_frame(s, f);
    }
    find_place_in_list(k);
    waitq_wake_all(&k->host->h2_room);
    return 0;
}

/* --- the end --- */

static void conn_free(struct httpc_h2 *k)
{
    k->host->h2_count--;
    timer_clear(&k->health);
    list_del(&k->link);
    http2_link_release(&k->wire);
    free(k);
}

static void on_end(void *arg)
{
    struct httpc_h2 *k = arg;
    struct httpc_host *h = k->host;
    fruitless(k);
    list_each_safe (it, &k->calls) {
        struct httpc_h2_call *x = list_entry(it, struct httpc_h2_call, link);
        list_del(&x->link);
        x->conn = NULL;
        x->untouched = !x->done && (x->stream == 0 || k->wire.sent <= x->sent_at);
        x->left_out = x->untouched && (k->replied || k->handles);
        httpc_h2_finish(x, x->untouched ? ERR_UNAVAILABLE : ERR_UNCERTAIN, HTTPC_LOST);
    }
    conn_free(k);
    waitq_wake_all(&h->h2_room);
}

static void retire(struct httpc_h2 *k)
{
    if (k->leaving)
        return;
    k->leaving = true;
    find_place_in_list(k);
}

/* Ends what idles. A connection to an address that its host has left ends when its calls have. */
void httpc_h2_sweep(struct httpc_host *h)
{
    struct http_client *c = h->client;
    int64_t now_ms = loop_now_ms(c->loop);
    list_each_safe (it, &h->h2) {
        struct httpc_h2 *k = list_entry(it, struct httpc_h2, link);
        bool moved = !httpc_host_has(h, k->address);
        if (moved)
            retire(k);
        if (k->ending || k->places_used > 0 ||
            (!moved && now_ms - k->idle_since_ms < c->options.idle_ms))
            continue;
        retire(k);
        k->ending = true;
        nghttp2_session_terminate_session(k->wire.session, NGHTTP2_NO_ERROR);
        http2_link_pack(&k->wire);
    }
}

void httpc_h2_release(struct httpc_host *h)
{
    while (!list_empty(&h->h2))
        conn_free(list_entry(h->h2.next, struct httpc_h2, link));
}

/* --- opening --- */

static nghttp2_session *new_session(struct httpc_h2 *k)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_session *s;
    if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option))
        check_no_memory();
    httpc_h2_callbacks(callbacks);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option_set_no_closed_streams(option, 1);
    if (nghttp2_session_client_new3(&s, callbacks, k, option, http2_memory()))
        check_no_memory();
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    http2_link_greet(s);
    return s;
}

static int send_greeting(struct task *t, struct httpc_conn *raw, nghttp2_session *s)
{
    struct buf out;
    buf_init(&out);
    const uint8_t *p;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(s, &p)) > 0)
        buf_add(&out, p, (size_t)n);
    int err = httpc_conn_write(t, raw, buf_str(&out));
    buf_release(&out);
    return err;
}

/* A frame of settings on stream 0, of which n bytes have come. HTTP/1.1 begins with a letter. */
static bool may_be_settings(const uint8_t *p, size_t n)
{
    static const uint8_t head[HTTP2_FRAME_HEAD_BYTES] = {0, 0, 0, NGHTTP2_SETTINGS};
    for (size_t i = 0; i < n && i < HTTP2_FRAME_HEAD_BYTES; i++)
        if (i != 1 && i != 2 && p[i] != head[i]) /* its length, below 65,536 */
            return false;
    return true;
}

/* Reads exactly the server's settings; the link reads what follows. ERR_PROTO: not HTTP/2. */
static int read_greeting(struct task *t, struct httpc_conn *raw, struct httpc_h2 *k,
                         nghttp2_session *s)
{
    uint8_t in[HTTP2_FRAME_HEAD_BYTES + GREETING_BYTES_MAX];
    size_t have = 0, whole = HTTP2_FRAME_HEAD_BYTES;
    while (have < whole) {
        size_t got;
        int err = httpc_conn_read(t, raw, in + have, whole - have, &got);
        if (err)
            return err;
        have += got;
        if (got == 0)
            return task_fail(t, ERR_CLOSED, "the connection was closed");
        if (!may_be_settings(in, have))
            return ERR_PROTO;
        if (have >= HTTP2_FRAME_HEAD_BYTES)
            whole = HTTP2_FRAME_HEAD_BYTES + ((size_t)in[1] << 8 | in[2]);
        if (whole > sizeof in)
            return ERR_PROTO;
    }
    return nghttp2_session_mem_recv(s, in, have) < 0 || !k->greeted ? ERR_PROTO : 0;
}

static int greet(struct task *t, struct httpc_conn *raw, struct httpc_h2 *k, nghttp2_session *s)
{
    int64_t old = task_deadline(t, k->host->client->options.connect_ms);
    int err = send_greeting(t, raw, s);
    if (!err)
        err = read_greeting(t, raw, k, s);
    task_deadline_restore(t, old);
    /* A server of HTTP/1.1 may close before it has read everything, or may never answer. */
    bool silent = err == ERR_TIMEOUT && task_time_left_ms(t) > 0;
    if (raw->tls && (silent || err == ERR_CLOSED || err == ERR_PROTO)) {
        const char *why = err == ERR_CLOSED ? arena_strdup(task_arena(t), task_error(t))
                          : silent          ? "no HTTP/2 settings in time"
                                            : "its HTTP/2 settings are not valid";
        httpc_host_back_off(k->host);
        return task_fail(t, ERR_UNAVAILABLE, "%s: no connection: %s", k->host->origin, why);
    }
    if (silent && k->host->h2_spoken) {
        httpc_host_back_off(k->host);
        return task_fail(t, ERR_UNAVAILABLE, "%s: no connection: no HTTP/2 settings in time",
                         k->host->origin);
    }
    return silent || err == ERR_CLOSED ? ERR_PROTO : err;
}

static void speaks_h1(struct httpc_host *h)
{
    h->h1_until_ms = loop_now_ms(h->client->loop) + H1_MS;
}

/* A server that has chosen HTTP/1.1 in the handshake: the connection is for the next call, if there
 * may be one more. */
static void keep_for_h1(struct httpc_host *h, struct httpc_conn *raw)
{
    speaks_h1(h);
    if (list_empty(&h->idle) && h->permits.free > 0)
        httpc_conn_keep(raw);
    else
        httpc_conn_close(raw);
}

static int open_conn(struct task *t, struct httpc_host *h)
{
    struct httpc_conn *raw;
    int err = httpc_conn_open(t, h, true, &raw);
    if (err)
        return err;
    if (raw->tls && !tls_is_h2(raw->tls)) {
        keep_for_h1(h, raw);
        return 0;
    }
    struct httpc_h2 *k = check_memory(calloc(1, sizeof *k));
    k->host = h;
    list_init(&k->link);
    list_init(&k->calls);
    k->idle_since_ms = k->silence.heard_ms = loop_now_ms(h->client->loop);
    memcpy(k->address, raw->address, sizeof k->address);
    timer_init(&k->health, h->client->loop, check_health, k);
    nghttp2_session *s = new_session(k);
    err = greet(t, raw, k, s);
    if (err) {
        list_del(&k->link);
        nghttp2_session_del(s);
        httpc_conn_close(raw);
        free(k);
    } else {
        struct tls *tls = raw->tls;
        http2_link_init(&k->wire, h->client->loop, httpc_conn_detach(raw), s, on_end, k);
        if (tls)
            http2_link_secure(&k->wire, tls);
        h->h2_count++;
        if (k->places == 0) /* it may take calls later; another one would not be better now */
            httpc_host_back_off(h);
        http2_link_pack(&k->wire); /* the acknowledgement of its settings */
    }
    if (err != ERR_PROTO)
        return err;
    speaks_h1(h);
    return 0;
}

/* Singleflight: all calls that wait for a connection share the outcome of one attempt. */
static int open_for_all(struct task *t, struct httpc_host *h)
{
    h->h2_opening = true;
    int err = open_conn(t, h);
    h->h2_opening = false;
    if (err == ERR_UNAVAILABLE) {
        h->h2_failures++;
        snprintf(h->h2_problem, sizeof h->h2_problem, "%s", task_error(t));
    }
    waitq_wake_all(&h->h2_room);
    return err;
}

static int wait_for_room(struct task *t, struct httpc_host *h)
{
    size_t failures = h->h2_failures;
    int err = waitq_wait(t, &h->h2_room);
    if (!err && failures != h->h2_failures)
        return task_fail(t, ERR_UNAVAILABLE, "%s", h->h2_problem);
    return err;
}

static int wait_for_backoff(struct task *t, struct httpc_host *h)
{
    int64_t old = task_deadline(t, httpc_host_backoff_left_ms(h));
    int err = wait_for_room(t, h);
    task_deadline_restore(t, old);
    return err == ERR_TIMEOUT && task_time_left_ms(t) > 0 ? 0 : err;
}

int httpc_h2_join(struct task *t, struct httpc_h2_call *x)
{
    struct httpc_host *h = x->ask->host;
    struct httpc_h2 *k;
    size_t fruitless_before = h->h2_fruitless;
    x->conn = NULL;
    while (!(k = conn_with_room(h))) {
        if (loop_now_ms(h->client->loop) < h->h1_until_ms)
            return 0;
        if (h->h2_fruitless - fruitless_before >= TRIES_MAX)
            return task_fail(t, ERR_UNAVAILABLE, "%s: new connections end before a reply",
                             h->origin);
        bool full = h->h2_count >= h->client->options.h2_connections_max;
        int err = h->h2_opening || full               ? wait_for_room(t, h)
                  : httpc_host_backoff_left_ms(h) > 0 ? wait_for_backoff(t, h)
                                                      : open_for_all(t, h);
        if (err)
            return err;
    }
    x->conn = k;
    take_place(k);
    list_push(&k->calls, &x->link);
    return 0;
}
