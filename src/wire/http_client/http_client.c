#include "wire/http_client.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_plain_url.h"

#define H2_CONNECTIONS_MAX 100
#define H1_CONNECTIONS_MAX 12000
#define CONNECT_MS         5000
#define REPLY_BYTES_MAX    (16 << 20)

/* --- metrics --- */

static int64_t *counter(struct http_client *c, const char *result)
{
    char labels[64];
    snprintf(labels, sizeof labels, "result=\"%s\"", result);
    return metric(c->options.metrics, METRIC_COUNTER, "millrace_http_client_calls_total", labels,
                  "Calls to other servers that ended, by class of status or error.");
}

static void open_metrics(struct http_client *c)
{
    struct metrics *m = c->options.metrics;
    c->metrics.in_flight = metric(m, METRIC_GAUGE, "millrace_http_client_in_flight", "",
                                  "Calls to other servers under way.");
    c->metrics.seconds =
        histogram_new(m, "millrace_http_client_seconds", "Duration of calls to other servers.");
}

static void count_end(struct http_client *c, int err, int status, int64_t us)
{
    struct httpc_metrics *m = &c->metrics;
    metric_set(m->in_flight, (int64_t)--c->in_flight);
    static const char *const classes[] = {"other", "other", "2xx", "3xx", "4xx", "5xx"};
    int class = status <= 599 ? status / 100 : 0;
    if (err && (err > 0 || err < ERR_LAST))
        err = ERR_INTERNAL; /* on_piece may return anything */
    int64_t **slot = err ? &m->errors[-err] : &m->replies[class];
    if (!*slot) /* made when first needed */
        *slot = counter(c, err ? err_name(err) : classes[class]);
    metric_add(*slot, 1);
    histogram_add_us(m->seconds, us);
}

/* --- life --- */

/* Begins submitted transfers and removes abandoned ones, on the loop's stack like all of curl. */
static void pump(void *arg)
{
    struct http_client *c = arg;
    struct list *it;
    while ((it = list_pop(&c->abandoned))) {
        struct httpc_transfer *x = list_entry(it, struct httpc_transfer, link);
        struct httpc_host *h = x->host;
        struct httpc_shard *s = x->shard;
        bool timed_out = x->stopped_by == ERR_TIMEOUT && x->begun && httpc_host_multiplexes(h);
        httpc_shard_remove(x);
        httpc_transfer_end(x, x->stopped_by);
        if (timed_out && httpc_silence_timeout(&s->silence, c->loop, x->begun_ms))
            httpc_host_retire(s);
        httpc_host_start_waiting(h);
    }
    while ((it = list_pop(&c->submitted))) {
        struct httpc_host *h = list_entry(it, struct httpc_transfer, link)->host;
        list_push(&h->waiting, it);
        httpc_host_start_waiting(h);
    }
}

static void sweep(void *arg)
{
    struct http_client *c = arg;
    bool some_left = false;
    list_each (it, &c->hosts) {
        struct httpc_host *h = list_entry(it, struct httpc_host, link);
        httpc_host_sweep(h);
        some_left =
            some_left || !list_empty(&h->shards) || !list_empty(&h->idle) || h->h2_count > 0;
    }
    if (some_left)
        timer_set(&c->sweep, loop_now_ms(c->loop) + SHARD_IDLE_MS / 4);
}

static struct http_client_options with_defaults(const struct http_client_options *given)
{
    struct http_client_options o = *given;
    if (!o.h2_connections_max)
        o.h2_connections_max = H2_CONNECTIONS_MAX;
    if (!o.h1_connections_max)
        o.h1_connections_max = H1_CONNECTIONS_MAX;
    if (!o.connect_ms)
        o.connect_ms = CONNECT_MS;
    if (!o.reply_bytes_max)
        o.reply_bytes_max = REPLY_BYTES_MAX;
    return o;
}

struct http_client *http_client_new(struct loop *l, const struct http_client_options *o)
{
    check(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); /* counts its users */
    struct http_client *c = check_memory(calloc(1, sizeof *c));
    c->loop = l;
    c->options = with_defaults(o);
    if (o->ca_file)
        c->ca_file = check_memory(strdup(o->ca_file));
    c->receive = check_memory(malloc(PLAIN_RECEIVE_BYTES));
    buf_init(&c->request);
    c->host_by_origin = map_new();
    list_init(&c->hosts);
    list_init(&c->submitted);
    list_init(&c->abandoned);
    timer_init(&c->pump, l, pump, c);
    timer_init(&c->sweep, l, sweep, c);
    open_metrics(c);
    return c;
}

void http_client_free(struct http_client *c)
{
    check(c->in_flight == 0);
    list_each_safe (it, &c->hosts)
        httpc_host_free(list_entry(it, struct httpc_host, link));
    while (c->spare_count > 0)
        curl_easy_cleanup(c->spare[--c->spare_count]);
    timer_clear(&c->pump);
    timer_clear(&c->sweep);
    map_free(c->host_by_origin);
    histogram_free(c->metrics.seconds);
    free(c->ca_file);
    free(c->receive);
    buf_release(&c->request);
    free(c);
    curl_global_cleanup();
}

/* --- a call --- */

/* After a deadline or a cancellation. Waits until curl no longer uses the transfer's memory. */
static int give_up(struct task *t, struct httpc_transfer *x, int err)
{
    list_del(&x->link);
    if (!x->shard)
        return err;
    x->stopped_by = err;
    list_push(&x->client->abandoned, &x->link);
    timer_set(&x->client->pump, loop_now_ms(x->client->loop));
    while (!x->done)
        task_wait_always(t);
    return x->err;
}

static int run(struct task *t, struct httpc_transfer *x)
{
    struct http_client *c = x->client;
    int err = httpc_names_get(t, x->host);
    int64_t wait_ms;
    while (!err && (wait_ms = httpc_host_backoff_left_ms(x->host)) > 0)
        err = task_sleep(t, wait_ms);
    if (err)
        return err;
    if (x->host->names.entry)
        x->resolve.data = arena_strdup(task_arena(t), x->host->names.entry);
    list_push(&c->submitted, &x->link);
    timer_set(&c->pump, loop_now_ms(c->loop));
    while (!x->done && !err)
        err = task_wait(t);
    return x->done ? x->err : give_up(t, x, err);
}

/* The error text: curl's, unless that describes its internals. */
static void explain(struct task *t, const struct httpc_transfer *x, int err)
{
    const char *why = x->problem;
    if (err == ERR_TIMEOUT)
        why = "no reply in time";
    else if (err == ERR_LIMIT)
        why = "the reply is too long";
    else if (err == ERR_UNCERTAIN && (x->stopped_by || !why[0]))
        why = HTTPC_LOST;
    else if (err != ERR_UNAVAILABLE && err != ERR_UNCERTAIN && err != ERR_PROTO)
        return; /* the callback that returned it has set the text */
    if (why[0])
        task_fail(t, err, "%s: %s", x->host->origin, why);
}

struct http_response httpc_response(const struct http_reply_head *h,
                                    const struct http_reply_body *b)
{
    return (struct http_response){
        .status = h->status,
        .body = b->p ? str_from(b->p, b->n) : STR(""),
        .content_type = h->content_type,
        .location = h->location,
        .retry_after_ms = h->retry_after_ms,
        .http_version = h->version,
    };
}

/* Not inlined: its frame would be on the stacks of thousands of plain calls. */
NOINLINE static int call_by_curl(struct task *t, struct http_client *c, struct http_call *call,
                                 struct http_response *out)
{
    if (call->body_fn) {
        int err = call->body_fn(t, call->arg, &call->body);
        if (err)
            return err;
        call->body = str_dup(task_arena(t), call->body);
    }
    struct httpc_transfer x = {.client = c, .task = t, .call = call};
    list_init(&x.link);
    http_reply_head_init(&x.head);
    int err = httpc_request_prepare(t, &x);
    if (err)
        return err;
    err = run(t, &x);
    if (err)
        explain(t, &x, err);
    else
        *out = httpc_response(&x.head, &x.body);
    httpc_host_put(x.host);
    return err;
}

int http_call(struct task *t, struct http_client *c, const struct http_call *call,
              struct http_response *out)
{
    int64_t start_us = loop_now_us(c->loop);
    metric_set(c->metrics.in_flight, (int64_t)++c->in_flight);
    bool plain = http_plain_url_is(call->url) && !c->plain_by_curl;
    struct http_call whole = *call;
    int err = httpc_call_complete(t, c, &whole);
    if (!err)
        err = plain ? httpc_plain_call(t, c, &whole, out) : call_by_curl(t, c, &whole, out);
    count_end(c, err, err ? 0 : out->status, loop_now_us(c->loop) - start_us);
    return err;
}
