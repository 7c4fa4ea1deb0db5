#include "wire/http_client.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_url.h"

#define H2_CONNECTIONS_MAX 100
#define H1_CONNECTIONS_MAX 12000
#define CONNECT_MS         5000
#define REPLY_BYTES_MAX    (16 << 20)
#define PING_MS            10000
#define PING_WAIT_MS       5000
#define IDLE_MS            30000

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

static void sweep(void *arg)
{
    struct http_client *c = arg;
    bool some_left = false;
    list_each (it, &c->hosts) {
        struct httpc_host *h = list_entry(it, struct httpc_host, link);
        httpc_host_sweep(h);
        some_left = some_left || !list_empty(&h->idle) || h->h2_count > 0;
    }
    if (some_left)
        timer_set(&c->sweep, loop_now_ms(c->loop) + c->options.idle_ms / 4);
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
    if (!o.ping_ms)
        o.ping_ms = PING_MS;
    if (!o.ping_wait_ms)
        o.ping_wait_ms = PING_WAIT_MS;
    if (!o.idle_ms)
        o.idle_ms = IDLE_MS;
    return o;
}

struct http_client *http_client_new(struct loop *l, const struct http_client_options *o)
{
    struct http_client *c = check_memory(calloc(1, sizeof *c));
    c->loop = l;
    c->options = with_defaults(o);
    c->tls = tls_context_new(&(struct tls_options){
        .ca_file = o->ca_file, .cert_file = o->cert_file, .key_file = o->key_file});
    c->receive = check_memory(malloc(RECEIVE_BYTES));
    buf_init(&c->request);
    c->host_by_origin = map_new();
    list_init(&c->hosts);
    list_init(&c->proxies);
    c->proxy = o->proxy && *o->proxy ? check_memory(strdup(o->proxy)) : NULL;
    timer_init(&c->sweep, l, sweep, c);
    open_metrics(c);
    return c;
}

void http_client_free(struct http_client *c)
{
    check(c->in_flight == 0);
    list_each_safe (it, &c->hosts)
        httpc_host_free(list_entry(it, struct httpc_host, link));
    list_each_safe (it, &c->proxies)
        httpc_proxy_free(list_entry(it, struct httpc_proxy, link));
    free(c->proxy);
    tls_context_free(c->tls);
    timer_clear(&c->sweep);
    map_free(c->host_by_origin);
    histogram_free(c->metrics.seconds);
    free(c->receive);
    buf_release(&c->request);
    free(c);
}

/* --- a call --- */

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

static void remember(struct httpc_last *last, const struct httpc_ask *ask, struct str url)
{
    last->host = NULL;
    if (url.n >= sizeof last->url)
        return;
    memcpy(last->url, url.p, url.n + 1);
    last->target_at = (size_t)(ask->target.p - url.p);
    last->target_n = ask->target.n;
    last->host = ask->host;
}

static int find_host(struct task *t, struct httpc_ask *ask)
{
    const char *text = ask->call->url;
    struct httpc_last *last = &ask->client->last;
    if (last->host && strcmp(text, last->url) == 0) {
        ask->target = str_from(text + last->target_at, last->target_n);
        ask->host = last->host;
        httpc_host_use(ask->host);
        return 0;
    }
    struct http_url parts;
    struct str url = str_from(text, strnlen(text, URL_BYTES_MAX + 1));
    if (url.n > URL_BYTES_MAX || !http_url_split(url, &parts))
        return task_fail(t, ERR_INVALID, "not a URL to call");
    ask->target = parts.target;
    ask->host = httpc_host_get(ask->client, parts.tls, parts.name, parts.port);
    if (!ask->host)
        return task_fail(t, ERR_BUSY, "calls to %d hosts are under way", HOSTS_MAX);
    remember(last, ask, url);
    return 0;
}

static int run(struct task *t, struct httpc_ask *ask, struct http_response *out)
{
    bool answered = false, tls = ask->host->tls;
    int err = httpc_way_get(t, ask->host);
    if (!err && tls && (err = tls_context_ready(t, ask->client->tls)) == ERR_UNAVAILABLE)
        ask->problem = arena_strdup(task_arena(t), task_error(t));
    if (!err && (tls || ask->client->options.plain_h2))
        err = httpc_h2_call(t, ask, out, &answered);
    return err || answered ? err : httpc_h1_call(t, ask, out);
}

static int call_host(struct task *t, struct http_client *c, const struct http_call *call,
                     struct http_response *out)
{
    struct httpc_ask ask = {.client = c, .call = call};
    int err = find_host(t, &ask);
    if (err)
        return err;
    err = run(t, &ask, out);
    if (err == ERR_TIMEOUT)
        task_fail(t, err, "%s: no reply in time", ask.host->origin);
    else if (err && ask.problem)
        task_fail(t, err, "%s: %s%s", ask.host->origin,
                  err == ERR_PROTO ? "the reply is not HTTP: " : "", ask.problem);
    httpc_host_put(ask.host);
    return err;
}

int http_call(struct task *t, struct http_client *c, const struct http_call *call,
              struct http_response *out)
{
    int64_t start_us = loop_now_us(c->loop);
    metric_set(c->metrics.in_flight, (int64_t)++c->in_flight);
    struct http_call whole = *call;
    int err = httpc_call_complete(t, c, &whole);
    if (!err)
        err = call_host(t, c, &whole, out);
    count_end(c, err, err ? 0 : out->status, loop_now_us(c->loop) - start_us);
    return err;
}
