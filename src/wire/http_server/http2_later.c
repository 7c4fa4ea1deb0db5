/* Replies that are known now and due later. A stream of HTTP/2 holds its body and no task, no kit
 * and no request meanwhile: ten thousand of them fit into a CPU cache. Those due in the same
 * millisecond share a timer; each reply is made on the loop's stack, with the same kit. Only a
 * client that does not read fast enough costs a task, which waits for it. */
#include <stdlib.h>

#include "wire/http_server/http2_conn.h"

struct wake {
    struct list link; /* in server.wakes */
    struct timer timer;
    struct list sleepers; /* struct http2_later, by link */
};

struct http2_later {
    struct list link; /* in its wake, until that comes */
    struct http2_stream *stream;
    int status;
    const char *type;
    int64_t began_us;
    http_done *done;
    void *arg;
    size_t n;
    char body[];
};

/* Waits for a client that has not taken all at once. */
static void finish(struct task *t, void *later)
{
    struct http2_later *r = later;
    struct http2_stream *s = r->stream;
    s->conn.task = t;
    http_kit_use(&s->conn);
    if (http2_stream_send(t, s, s->rest) != 0)
        s->conn.broken = true; /* http2_stream_part resets what is not sent */
    http_kit_use(&s->conn);
    http2_stream_part(s);
    http2_stream_free(s);
    free(r);
}

static void reply(struct http2_later *r)
{
    struct http2_stream *s = r->stream;
    struct http_kit *k = http_kit_take(s->conn.server);
    s->later = NULL;
    s->conn.kit = k;
    k->parser.head = (struct http_head){.minor = 1}; /* the request's own is freed */
    struct http_exchange *x = http_exchange_begin(NULL, &s->conn);
    x->began_us = r->began_us;
    http_add_head(x, r->status, r->type, true, r->n);
    http_count(x);
    r->done(r->arg, 0);
    s->rest = str_from(r->body, r->n);
    s->ending = true;
    http2_link_pack(&s->owner->link);
    if (!s->sent && !s->closed && task_go(s->conn.server->group, "http2", finish, r) == 0)
        return;
    http2_stream_part(s);
    http2_stream_free(s);
    free(r);
}

static void on_wake(void *arg)
{
    struct wake *w = arg;
    struct list *it;
    list_del(&w->link); /* no reply joins any more */
    while ((it = list_pop(&w->sleepers)))
        reply(list_entry(it, struct http2_later, link));
    free(w);
}

/* Replies with the same delay that are made in the same turn share one. */
static struct wake *wake_at(struct http_server *s, int64_t at_ms)
{
    struct wake *newest = list_entry(s->wakes.prev, struct wake, link);
    if (!list_empty(&s->wakes) && newest->timer.at_ms == at_ms)
        return newest;
    struct wake *w = check_memory(malloc(sizeof(*w)));
    list_init(&w->sleepers);
    timer_init(&w->timer, s->loop, on_wake, w);
    timer_set(&w->timer, at_ms);
    list_push(&s->wakes, &w->link);
    return w;
}

void http2_wakes_free(struct http_server *s)
{
    struct list *it;
    while ((it = list_pop(&s->wakes))) {
        struct wake *w = list_entry(it, struct wake, link);
        check(list_empty(&w->sleepers));
        timer_clear(&w->timer);
        free(w);
    }
}

void http2_later_drop(struct http2_later *r)
{
    list_del(&r->link);
    r->done(r->arg, ERR_CLOSED);
    free(r);
}

static int reply_when_awake(struct task *t, struct http_exchange *x, int64_t delay_ms, int status,
                            const char *type, struct str body)
{
    int err = task_sleep(t, delay_ms);
    return err ? err : http_reply(t, x, status, type, body);
}

int http_reply_later(struct task *t, struct http_exchange *x, int64_t delay_ms, int status,
                     const char *type, struct str body, http_done *done, void *arg)
{
    struct http2_stream *s = x->conn->stream;
    check(x->state == HTTP_UNANSWERED && x->conn->kit->fields.len == 0);
    if (!s || s->closed || x->headless) {
        int err = reply_when_awake(t, x, delay_ms, status, type, body);
        done(arg, err);
        return err;
    }
    struct http2_later *r = check_memory(malloc(sizeof(*r) + body.n));
    *r = (struct http2_later){.stream = s,
                              .status = status,
                              .type = type,
                              .began_us = x->began_us,
                              .done = done,
                              .arg = arg,
                              .n = body.n};
    memcpy(r->body, body.p, body.n);
    x->state = HTTP_LATER;
    s->later = r;
    struct wake *w = wake_at(s->conn.server, loop_now_ms(s->conn.server->loop) + delay_ms);
    list_push(&w->sleepers, &r->link);
    return 0;
}
