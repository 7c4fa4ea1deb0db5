/* One curl multi, driven by the loop. */
#include <stdlib.h>

#include "loop/watch.h"
#include "wire/http_client/http_client_private.h"

#define set_multi(multi, option, value)                                                            \
    check(curl_multi_setopt((multi), (option), (value)) == CURLM_OK)

/* --- the pool of easy handles --- */

static CURL *handle_get(struct http_client *c)
{
    if (c->spare_count > 0)
        return c->spare[--c->spare_count];
    return check_memory(curl_easy_init());
}

/* A handle that left a shared connection keeps its receive buffer, but a reset makes it forget the
 * size. Setting a size then fails: such a handle is not kept. */
static void handle_put(struct http_client *c, CURL *easy)
{
    curl_easy_reset(easy); /* drops pointers to the transfer */
    if (c->spare_count < SPARE_HANDLES_MAX &&
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)RECEIVE_BYTES) == CURLE_OK)
        c->spare[c->spare_count++] = easy;
    else
        curl_easy_cleanup(easy);
}

/* --- the outcome --- */

static void finish(struct httpc_transfer *x, CURLcode code)
{
    int err = httpc_transfer_outcome(x, code);
    httpc_transfer_name_cause(x, code);
    if (err == ERR_UNAVAILABLE)
        x->host->names.suspect = true;
    bool cut = err == ERR_UNAVAILABLE || err == ERR_UNCERTAIN;
    if (cut && x->head.status == 0 && httpc_host_multiplexes(x->host))
        httpc_host_back_off(x->host);
    httpc_shard_remove(x);
    httpc_transfer_end(x, err);
}

/* Ends the transfers that curl has finished. */
static void settle(struct httpc_shard *s)
{
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(s->multi, &left))) {
        struct httpc_transfer *x;
        check(m->msg == CURLMSG_DONE);
        check(curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x) == CURLE_OK);
        finish(x, m->data.result);
    }
    if (s->host->h1_seen)
        httpc_host_change_to_h1(s->host);
    httpc_host_start_waiting(s->host);
}

/* --- curl's socket and timer callbacks --- */

static void act(struct httpc_shard *s, curl_socket_t fd, int what)
{
    int running;
    check(curl_multi_socket_action(s->multi, fd, what, &running) == CURLM_OK);
    settle(s);
}

static void on_ready(void *arg, int fd, int events)
{
    int what = ((events & WATCH_READ) ? CURL_CSELECT_IN : 0) |
               ((events & WATCH_WRITE) ? CURL_CSELECT_OUT : 0);
    act(arg, fd, what);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    (void)easy;
    struct httpc_shard *s = arg;
    struct poller *p = socket_arg;
    if (what == CURL_POLL_REMOVE) {
        if (p)
            poller_release(p);
        free(p);
        return 0;
    }
    if (!p) {
        p = check_memory(malloc(sizeof *p));
        poller_init(p, s->host->client->loop, fd, on_ready, s);
        check(curl_multi_assign(s->multi, fd, p) == CURLM_OK);
    }
    poller_set(p, ((what & CURL_POLL_IN) ? WATCH_READ : 0) |
                      ((what & CURL_POLL_OUT) ? WATCH_WRITE : 0));
    return 0;
}

static void on_time(void *arg)
{
    act(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* The loop's clock is fixed during a turn, so this may fire early; then curl sets it again. */
static int on_timer(CURLM *multi, long ms, void *arg)
{
    (void)multi;
    struct httpc_shard *s = arg;
    if (ms < 0)
        timer_clear(&s->timer);
    else
        timer_set(&s->timer, loop_now_ms(s->host->client->loop) + ms);
    return 0;
}

/* --- the shard --- */

struct httpc_shard *httpc_shard_new(struct httpc_host *h, size_t connections)
{
    struct http_client *c = h->client;
    struct httpc_shard *s = check_memory(calloc(1, sizeof *s));
    s->host = h;
    s->connections = connections;
    s->multi = check_memory(curl_multi_init());
    list_init(&s->transfers);
    timer_init(&s->timer, c->loop, on_time, s);
    s->idle_since_ms = loop_now_ms(c->loop);
    set_multi(s->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    set_multi(s->multi, CURLMOPT_SOCKETDATA, s);
    set_multi(s->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    set_multi(s->multi, CURLMOPT_TIMERDATA, s);
    set_multi(s->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    set_multi(s->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)STREAMS_MAX);
    set_multi(s->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)connections);
    /* By default curl keeps four per call under way, and closes the rest when a burst ends. */
    set_multi(s->multi, CURLMOPT_MAXCONNECTS, (long)connections);
    if (c->sweep.pos == 0)
        timer_set(&c->sweep, loop_now_ms(c->loop) + SHARD_IDLE_MS);
    return s;
}

void httpc_shard_free(struct httpc_shard *s)
{
    check(s->count == 0);
    check(curl_multi_cleanup(s->multi) == CURLM_OK);
    timer_clear(&s->timer);
    free(s);
}

void httpc_shard_add(struct httpc_shard *s, struct httpc_transfer *x)
{
    x->shard = s;
    x->easy = handle_get(x->client);
    httpc_transfer_set_up(x, x->easy);
    check(curl_multi_add_handle(s->multi, x->easy) == CURLM_OK);
    list_push(&s->transfers, &x->link);
    s->count++;
}

void httpc_shard_remove(struct httpc_transfer *x)
{
    struct httpc_shard *s = x->shard;
    check(curl_multi_remove_handle(s->multi, x->easy) == CURLM_OK);
    handle_put(x->client, x->easy);
    x->easy = NULL;
    x->shard = NULL;
    list_del(&x->link);
    if (--s->count == 0)
        s->idle_since_ms = loop_now_ms(s->host->client->loop);
}
