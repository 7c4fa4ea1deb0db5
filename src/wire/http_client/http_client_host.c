#include <stdlib.h>

#include "wire/http_client/http_client_private.h"

#define BACKOFF_MS_MIN 100
#define BACKOFF_MS_MAX 5000

static struct httpc_host *host_new(struct http_client *c, bool tls, const char *name,
                                   const char *port, struct str origin)
{
    struct httpc_host *h = check_memory(calloc(1, sizeof *h));
    h->client = c;
    h->origin = check_memory(strdup(origin.p));
    h->name = check_memory(strdup(name));
    h->port = check_memory(strdup(port));
    h->authority = strcmp(port, tls ? "443" : "80") == 0 ? h->name : strstr(h->origin, "//") + 2;
    h->tls = tls;
    list_init(&h->idle);
    list_init(&h->h2);
    waitq_init(&h->h2_room);
    sem_init(&h->permits, c->options.h1_connections_max);
    h->place =
        (struct httpc_place){.client = c, .label = h->origin, .name = h->name, .port = h->port};
    httpc_names_init(&h->place.names, str_of(name));
    h->proxy = httpc_proxy_for(c, tls, name, port);
    list_push(&c->hosts, &h->link);
    map_set(c->host_by_origin, origin, h);
    return h;
}

void httpc_host_free(struct httpc_host *h)
{
    check(h->users == 0);
    if (h->client->last.host == h)
        h->client->last.host = NULL;
    httpc_pool_release(h);
    httpc_h2_release(h);
    tls_resume_release(&h->resume);
    map_del(h->client->host_by_origin, str_of(h->origin));
    list_del(&h->link);
    httpc_names_release(&h->place.names);
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

void httpc_host_sweep(struct httpc_host *h)
{
    httpc_pool_sweep(h);
    httpc_h2_sweep(h);
}

/* --- addresses --- */

struct httpc_place *httpc_host_way(struct httpc_host *h)
{
    return h->proxy ? &h->proxy->place : &h->place;
}

bool httpc_host_has(struct httpc_host *h, const char *address)
{
    const struct net_addresses *known = &httpc_host_way(h)->names.found;
    for (size_t i = 0; i < known->count; i++) {
        if (strcmp(known->text[i], address) == 0)
            return true;
    }
    return false;
}

void httpc_place_looked_up(struct httpc_place *p)
{
    list_each (it, &p->client->hosts) {
        struct httpc_host *h = list_entry(it, struct httpc_host, link);
        if (httpc_host_way(h) == p)
            httpc_host_sweep(h);
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
