#include "wire/redis/redis_map_parse.h"

#include <string.h>

#define PORT_MAX 65535

static bool parse_address(struct arena *a, struct str host, int64_t port, const char *asked_host,
                          struct redis_address *out)
{
    if (port < 1 || port > PORT_MAX || host.n > REDIS_HOST_MAX ||
        (host.n && memchr(host.p, '\0', host.n)))
        return false;
    /* "?": the node has no host name, though it was told to tell that. */
    bool known = host.n > 0 && !str_eq(host, STR("?"));
    out->host = known ? str_z(a, host) : arena_strdup(a, asked_host);
    out->port = arena_printf(a, "%d", (int)port);
    return true;
}

bool redis_redirect_parse(struct arena *a, struct str words, const char *asked_host,
                          struct redis_redirect *out)
{
    int64_t slot, port;
    struct str to = words;
    struct str kind = str_cut(&to, ' '), number = str_cut(&to, ' ');
    out->ask = str_eq(kind, STR("ASK"));
    if ((!out->ask && !str_eq(kind, STR("MOVED"))) || !to.p)
        return false;
    size_t at = to.n;
    while (at > 0 && to.p[at - 1] != ':')
        at--;
    if (at == 0 || !str_to_i64(str_skip(to, at), &port) || !str_to_i64(number, &slot) || slot < 0 ||
        slot >= REDIS_SLOTS)
        return false;
    out->slot = (unsigned)slot;
    return parse_address(a, str_from(to.p, at - 1), port, asked_host, &out->to);
}

/* [first, last, [host, port, ...] of the master, ... of its replicas] */
static bool parse_range(struct arena *a, const struct redis_reply *r, const char *asked_host,
                        struct redis_range *out)
{
    if (r->type != REDIS_ARRAY || r->count < 3 || r->items[0]->type != REDIS_INT ||
        r->items[1]->type != REDIS_INT || r->items[2]->type != REDIS_ARRAY ||
        r->items[2]->count < 2)
        return false;
    int64_t first = r->items[0]->integer, last = r->items[1]->integer;
    const struct redis_reply *host = r->items[2]->items[0], *port = r->items[2]->items[1];
    if (first < 0 || last < first || last >= REDIS_SLOTS || port->type != REDIS_INT ||
        (host->type != REDIS_STRING && host->type != REDIS_NIL))
        return false;
    out->first = (unsigned)first;
    out->last = (unsigned)last;
    return parse_address(a, host->type == REDIS_NIL ? STR("") : host->str, port->integer,
                         asked_host, &out->master);
}

bool redis_slots_parse(struct arena *a, const struct redis_reply *reply, const char *asked_host,
                       struct redis_range **out, size_t *count)
{
    if (reply->type != REDIS_ARRAY || reply->count > REDIS_RANGES_MAX)
        return false;
    struct redis_range *all = ARENA_ARRAY(a, struct redis_range, reply->count + 1);
    for (size_t i = 0; i < reply->count; i++)
        if (!parse_range(a, reply->items[i], asked_host, &all[i]))
            return false;
    *out = all;
    *count = reply->count;
    return true;
}

int64_t redis_cluster_epoch(struct str info)
{
    while (info.p) {
        struct str value = str_cut(&info, '\n'), name = str_cut(&value, ':');
        int64_t n;
        if (value.p && str_eq(name, STR("cluster_current_epoch")))
            return str_to_i64(str_cut(&value, '\r'), &n) && n >= 0 ? n : -1;
    }
    return -1;
}
