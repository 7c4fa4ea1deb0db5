#include <stdlib.h>

#include "wire/http_client/http_client_private.h"

#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 5000

static struct httpc_host *host_new(struct http_client *c, bool tls, const char *name,
                                   const char *port, struct str origin)
{
    struct httpc_host *h = check_memory(calloc(1, sizeof *h));
    h->client = c;
    h->origin = check_memory(strdup(origin.p));
    h->name = check_memory(strdup(name));
    h->port = check_memory(strdup(port));
    h->authority = strcmp(port, "80") == 0 ? h->name : strstr(h->origin, "//") + 2;
    h->tls = tls;
    list_init(&h->waiting);
    list_init(&h->shards);
    list_init(&h->idle);
    list_init(&h->h2);
    waitq_init(&h->h2_room);
    sem_init(&h->permits, c->options.h1_connections_max);
    httpc_names_init(&h->names, str_of(name));
    list_push(&c->hosts, &h->link);
    map_set(c->host_by_origin, origin, h);
    return h;
}

void httpc_host_free(struct httpc_host *h)
{
    check(h->users == 0);
    if (h->client->last.host == h)
        h->client->last.host = NULL;
    struct list *it;
    while ((it = list_pop(&h->shards)))
        httpc_shard_free(list_entry(it, struct httpc_shard, link));
    httpc_pool_release(h);
    httpc_h2_release(h);
    map_del(h->client->host_by_origin, str_of(h->origin));
    list_del(&h->link);
    httpc_names_release(&h->names);
    free(h->origin);
    free(h->name);
    free(h->port);
    free(h);
}

/* Drops the host that has been unused for longest. */
static bool make_room(struct http_client *c)
{
    list_each (it, &c->hosts) {
        struct httpc_host *h = list_entry(it, struct httpc_host, link);
        if (h->users == 0) {
            httpc_host_free(h);
            return true;
        }
    }
    return false;
}

struct httpc_host *httpc_host_get(struct http_client *c, bool tls, const char *name,
                                  const char *port)
{
    struct buf origin;
    buf_init(&origin);
    buf_add_str(&origin, tls ? STR("https://") : STR("http://")); /* for every call: no printf */
    buf_add_str(&origin, str_of(name));
    buf_add_char(&origin, ':');
    buf_add_str(&origin, str_of(port));
    struct str key = buf_str(&origin);
    struct httpc_host *h = map_get(c->host_by_origin, key);
    if (!h && (map_count(c->host_by_origin) < HOSTS_MAX || make_room(c))) {
        buf_add_char(&origin, '\0');
        key.p = buf_str(&origin).p;
        h = host_new(c, tls, name, port, key);
    }
    buf_release(&origin);
    if (h)
        httpc_host_use(h);
    return h;
}

void httpc_host_use(struct httpc_host *h)
{
    h->users++;
    list_del(&h->link);
    list_push(&h->client->hosts, &h->link);
}

void httpc_host_put(struct httpc_host *h)
{
    check(h->users > 0);
    h->users--;
}

bool httpc_host_multiplexes(const struct httpc_host *h)
{
    return h->tls && !h->h1_only;
}

static size_t connections_left(const struct httpc_host *h)
{
    const struct http_client_options *o = &h->client->options;
    bool h2 = httpc_host_multiplexes(h);
    size_t most = h2 ? o->h2_connections_max : o->h1_connections_max;
    size_t per_shard = h2 ? SHARD_H2_CONNECTIONS : SHARD_H1_CONNECTIONS;
    size_t left = most > h->connections ? most - h->connections : 0;
    return left < per_shard ? left : per_shard;
}

static bool has_room(const struct httpc_shard *s)
{
    size_t calls_per_connection = httpc_host_multiplexes(s->host) ? STREAMS_MAX : 1;
    return s->count < s->connections * calls_per_connection;
}

/* NULL: all are full. */
static struct httpc_shard *shard_with_room(struct httpc_host *h)
{
    list_each (it, &h->shards) {
        struct httpc_shard *s = list_entry(it, struct httpc_shard, link);
        if (has_room(s))
            return s;
    }
    size_t connections = connections_left(h);
    if (connections == 0)
        return NULL;
    h->connections += connections;
    struct httpc_shard *s = httpc_shard_new(h, connections);
    list_push(&h->shards, &s->link);
    return s;
}

void httpc_host_start_waiting(struct httpc_host *h)
{
    while (!list_empty(&h->waiting)) {
        struct httpc_shard *s = shard_with_room(h);
        if (!s)
            return;
        httpc_shard_add(s, list_entry(list_pop(&h->waiting), struct httpc_transfer, link));
    }
}

/* Moves transfers that have not been sent yet back to the front of the host's queue. */
static void take_back(struct httpc_shard *s)
{
    for (struct list *it = s->transfers.prev, *before; it != &s->transfers; it = before) {
        before = it->prev;
        struct httpc_transfer *x = list_entry(it, struct httpc_transfer, link);
        if (x->begun)
            continue;
        httpc_shard_remove(x);
        list_push_front(&s->host->waiting, &x->link);
    }
}

/* Existing shards keep their few connections; waiting transfers go to new, larger ones. */
void httpc_host_change_to_h1(struct httpc_host *h)
{
    if (h->h1_only)
        return;
    for (struct list *it = h->shards.prev; it != &h->shards; it = it->prev)
        take_back(list_entry(it, struct httpc_shard, link));
    h->h1_only = true;
    httpc_host_start_waiting(h);
}

void httpc_host_retire(struct httpc_shard *s)
{
    struct httpc_host *h = s->host;
    h->connections -= s->connections;
    s->connections = 0;
    take_back(s);
    list_each_safe (it, &s->transfers) {
        struct httpc_transfer *x = list_entry(it, struct httpc_transfer, link);
        x->stopped_by = ERR_UNCERTAIN;
        httpc_shard_remove(x);
        httpc_transfer_end(x, ERR_UNCERTAIN);
    }
}

void httpc_host_sweep(struct httpc_host *h)
{
    int64_t now_ms = loop_now_ms(h->client->loop);
    httpc_pool_sweep(h);
    httpc_h2_sweep(h);
    list_each_safe (it, &h->shards) {
        struct httpc_shard *s = list_entry(it, struct httpc_shard, link);
        bool retired = s->connections == 0;
        if (s->count > 0 || (!retired && now_ms - s->idle_since_ms < SHARD_IDLE_MS))
            continue;
        h->connections -= s->connections;
        list_del(&s->link);
        httpc_shard_free(s);
    }
}

/* --- unwell servers --- */

int64_t httpc_host_backoff_left_ms(const struct httpc_host *h)
{
    int64_t left_ms = h->dial_after_ms - loop_now_ms(h->client->loop);
    return left_ms > 0 ? left_ms : 0;
}

void httpc_host_back_off(struct httpc_host *h)
{
    if (httpc_host_backoff_left_ms(h) > 0)
        return; /* was dialled before the backoff began: of many that end at once, one counts */
    h->backoff_ms = h->backoff_ms ? 2 * h->backoff_ms : BACKOFF_MS_MIN;
    if (h->backoff_ms > BACKOFF_MS_MAX)
        h->backoff_ms = BACKOFF_MS_MAX;
    struct loop *l = h->client->loop;
    h->dial_after_ms = loop_now_ms(l) + loop_jitter(l, h->backoff_ms);
}

void httpc_host_replied(struct httpc_host *h)
{
    if (h->backoff_ms == 0)
        return;
    h->backoff_ms = h->dial_after_ms = 0;
    waitq_wake_all(&h->h2_room);
}

void httpc_silence_end(struct httpc_silence *s, struct loop *l)
{
    s->heard_ms = loop_now_ms(l);
    s->timeouts = 0;
}

bool httpc_silence_timeout(struct httpc_silence *s, struct loop *l, int64_t sent_ms)
{
    int64_t now_ms = loop_now_ms(l);
    if (2 * (now_ms - s->heard_ms) < now_ms - sent_ms)
        return false;
    return ++s->timeouts >= 2;
}
