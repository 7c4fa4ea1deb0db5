/* Names to addresses. libcurl would start a thread for each call that finds no address in its
 * cache, ten thousand for ten thousand first calls. So curl never looks up a name here: one task
 * per host does, on a helper thread, and curl is told the outcome. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "loop/offload.h"
#include "wire/http_client/http_client_private.h"

#define NAMES_REFRESH_MS    60000
#define NAMES_RETRY_MS      1000 /* between two lookups of a name that is gone */
#define NAMES_ADDRESSES_MAX 8

/* Outlives its host if need be, for a lookup cannot be called off. The task ends after its last
 * line has run, therefore a timer frees it. */
struct httpc_lookup {
    struct group group;
    struct timer reaper;
    struct httpc_host *host; /* NULL: gone */
    char *name, *port;
    struct buf entry; /* filled by the helper thread */
    int gai_error;
};

static bool is_literal(struct str host)
{
    char name[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    /* libcurl answers localhost by itself. */
    if (str_ieq(host, STR("localhost")) || str_ends(host, STR(".localhost")) || host.p[0] == '[')
        return true;
    if (host.n >= sizeof name)
        return false;
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    return inet_pton(AF_INET, name, address) == 1;
}

void httpc_names_init(struct httpc_names *n, struct str host)
{
    *n = (struct httpc_names){.literal = is_literal(host)};
    waitq_init(&n->waiters);
}

void httpc_names_release(struct httpc_names *n)
{
    if (n->lookup)
        n->lookup->host = NULL;
    free(n->entry);
}

void httpc_names_suspect(struct httpc_names *n)
{
    n->suspect = true;
}

static void lookup_free(void *arg)
{
    struct httpc_lookup *k = arg;
    check(k->group.count == 0);
    timer_clear(&k->reaper);
    buf_release(&k->entry);
    free(k->name);
    free(k->port);
    free(k);
}

/* On the helper thread. */
static void look_up(void *arg)
{
    struct httpc_lookup *k = arg;
    struct addrinfo hints = {.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    k->gai_error = getaddrinfo(k->name, k->port, &hints, &found);
    if (k->gai_error)
        return;
    buf_printf(&k->entry, "%s:%s:", k->name, k->port);
    int count = 0;
    for (struct addrinfo *a = found; a && count < NAMES_ADDRESSES_MAX; a = a->ai_next) {
        char text[INET6_ADDRSTRLEN];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        buf_printf(&k->entry, a->ai_family == AF_INET6 ? "%s[%s]" : "%s%s", count++ ? "," : "",
                   text);
    }
    freeaddrinfo(found);
    if (count == 0)
        k->gai_error = EAI_NONAME;
}

static void learn(struct httpc_names *n, struct httpc_lookup *k, int err, int64_t now_ms)
{
    n->lookup = NULL;
    n->looked_ms = now_ms;
    n->suspect = false;
    n->problem[0] = '\0';
    if (err || k->gai_error) { /* an old address is better than none */
        const char *why = err ? err_name(err) : gai_strerror(k->gai_error);
        snprintf(n->problem, sizeof n->problem, "cannot look up the name: %s", why);
    } else {
        buf_add_char(&k->entry, '\0');
        free(n->entry);
        n->entry = strdup(k->entry.p);
        if (!n->entry)
            check_no_memory();
    }
    waitq_wake_all(&n->waiters);
}

static void run(struct task *t, void *arg)
{
    struct httpc_lookup *k = arg;
    int err = offload(t, look_up, k);
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (k->host)
        learn(&k->host->names, k, err, now_ms);
    timer_set(&k->reaper, now_ms);
}

static int start(struct task *t, struct httpc_host *h)
{
    struct httpc_lookup *k = calloc(1, sizeof *k);
    if (!k)
        check_no_memory();
    group_init(&k->group, task_loop(t));
    timer_init(&k->reaper, task_loop(t), lookup_free, k);
    buf_init(&k->entry);
    k->host = h;
    k->name = strdup(h->name);
    k->port = strdup(h->port);
    if (!k->name || !k->port)
        check_no_memory();
    int err = task_go(&k->group, "http name", run, k);
    if (err) {
        lookup_free(k);
        return task_fail(t, ERR_UNAVAILABLE, "%s: no task left to look up the name", h->origin);
    }
    h->names.lookup = k;
    return 0;
}

int httpc_names_get(struct task *t, struct httpc_host *h)
{
    struct httpc_names *n = &h->names;
    if (n->literal)
        return 0;
    int64_t age_ms = n->looked_ms ? loop_now_ms(h->client->loop) - n->looked_ms : INT64_MAX;
    bool usable = n->entry && !n->suspect;
    if (usable && age_ms < NAMES_REFRESH_MS)
        return 0;
    int err = 0;
    if (!n->lookup && age_ms >= NAMES_RETRY_MS)
        err = start(t, h);
    if (usable)
        return 0; /* what has worked so far will do until the lookup has ended */
    while (!err && n->lookup)
        err = waitq_wait(t, &n->waiters);
    if (err)
        return err;
    if (!n->entry)
        return task_fail(t, ERR_UNAVAILABLE, "%s: %s", h->origin, n->problem);
    return 0;
}
