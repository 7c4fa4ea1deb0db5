/* Opening a connection to one of the addresses of a host, or of the proxy before it.
 *
 * Several addresses are raced (RFC 8305): the next one is tried when one has failed, or has not
 * answered for RACE_MS; the first connection that is ready, CONNECT, TLS and all, wins. So a
 * machine whose IPv6 leads nowhere calls over IPv4 a quarter of a second later. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "wire/http_client/http_client_private.h"

#define UNREACHABLE_MS 200  /* at most five attempts a second */
#define LOGIN_MS       5000 /* after a proxy's 407: directories lock accounts after some of them */
#define RACE_MS        250

/* --- one address --- */

/* Bytes of the address; 0: invalid. */
static socklen_t make_address(const char *text, const char *port, struct sockaddr_storage *out)
{
    struct sockaddr_in *in = (struct sockaddr_in *)out;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
    in_port_t number = htons((uint16_t)strtoul(port, NULL, 10));
    *out = (struct sockaddr_storage){.ss_family = AF_INET};
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        in->sin_port = number;
        return sizeof *in;
    }
    out->ss_family = AF_INET6;
    in6->sin6_port = number;
    return inet_pton(AF_INET6, text, &in6->sin6_addr) == 1 ? sizeof *in6 : 0;
}

static void set_option(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

/* Without these a call over a connection whose peer has vanished would wait for its deadline. */
static void set_options(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, DEAD_PEER_MS);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_S);
}

static int no_connection(struct task *t, const char *where, const char *why)
{
    return task_fail(t, ERR_UNAVAILABLE, "%s: no connection: %s", where, why);
}

/* CONNECT and TLS, on a connection that stands. */
static int make_ready(struct task *t, struct httpc_conn *k, bool h2, enum httpc_stage *stage)
{
    int err = 0;
    if (k->host->proxy) {
        *stage = HTTPC_CONNECT;
        err = httpc_proxy_connect(t, k, stage);
    }
    if (!err && k->host->tls) {
        *stage = HTTPC_TLS;
        err = httpc_conn_secure(t, k, h2);
    }
    return err;
}

static bool may_connect(const struct http_client *c, const char *address)
{
    return !c->options.allows || c->options.allows(c->options.allows_arg, str_of(address));
}

static int open_to(struct task *t, struct httpc_host *h, const char *address, bool h2,
                   enum httpc_stage *stage, struct httpc_conn **out)
{
    const struct httpc_place *to = httpc_host_way(h);
    struct sockaddr_storage a;
    socklen_t n = make_address(address, to->port, &a);
    *stage = HTTPC_TCP;
    if (n == 0)
        return no_connection(t, to->label, "its address cannot be used");
    if (!may_connect(h->client, address))
        return no_connection(t, to->label, "its address is not allowed");
    struct httpc_conn *k = check_memory(calloc(1, sizeof *k));
    int err = net_connect(t, (struct sockaddr *)&a, n, &k->watch);
    if (err == ERR_UNAVAILABLE || err == ERR_IO)
        err = no_connection(t, to->label, strerror(errno));
    if (err) {
        free(k);
        return err;
    }
    k->host = h;
    list_init(&k->link);
    snprintf(k->address, sizeof k->address, "%s", address);
    set_options(k->watch.fd);
    err = make_ready(t, k, h2, stage);
    if (err)
        httpc_conn_close(k);
    else
        *out = k;
    return err;
}

/* ERR_UNAVAILABLE if it takes longer than ms. */
static int open_within(struct task *t, struct httpc_host *h, const char *address, bool h2,
                       int64_t ms, enum httpc_stage *stage, struct httpc_conn **out)
{
    int64_t old = task_deadline(t, ms);
    int err = open_to(t, h, address, h2, stage, out);
    task_deadline_restore(t, old);
    if (err != ERR_TIMEOUT || task_time_left_ms(t) == 0)
        return err;
    if (*stage == HTTPC_TLS)
        return no_connection(t, h->origin, "the TLS handshake was not done in time");
    if (*stage == HTTPC_CONNECT)
        return task_fail(t, ERR_UNAVAILABLE, "%s: %s did not answer CONNECT in time", h->origin,
                         httpc_host_way(h)->label);
    return no_connection(t, httpc_host_way(h)->label, "no answer in time");
}

/* --- several --- */

struct race {
    struct httpc_host *host;
    bool h2;
    struct task *waiter;
    int64_t until_ms;
    size_t started, ended; /* of the addresses */
    struct httpc_conn *won;
    const char *winner;                                         /* its address */
    char problem[sizeof((struct httpc_place *)0)->unreachable]; /* of the one that came furthest: */
    enum httpc_stage stage; /* what a server said tells more than that others are not there */
};

struct racer {
    struct race *race;
    const char *address;
};

static void run_racer(struct task *t, void *arg)
{
    struct racer *r = arg;
    struct race *race = r->race;
    struct httpc_conn *k;
    enum httpc_stage stage;
    int64_t ms = race->until_ms - loop_now_ms(task_loop(t));
    int err = open_within(t, race->host, r->address, race->h2, ms, &stage, &k);
    race->ended++;
    if (err == ERR_UNAVAILABLE && (stage > race->stage || race->stage == HTTPC_TCP)) {
        snprintf(race->problem, sizeof race->problem, "%s", task_error(t));
        race->stage = stage;
    } else if (!err && race->won) {
        httpc_conn_close(k);
    } else if (!err) {
        race->won = k;
        race->winner = r->address;
    }
    task_wake(race->waiter);
}

/* Until one has won, all have failed, or the caller gives up. */
static int run_race(struct task *t, struct race *race, struct group *g, struct racer *racers,
                    size_t count)
{
    int err = 0;
    size_t seen = 0; /* of those that ended */
    int64_t next_ms = 0;
    while (!err && !race->won && race->ended < count) {
        int64_t now_ms = loop_now_ms(task_loop(t));
        bool more = race->started < count;
        if (more && (now_ms >= next_ms || race->ended > seen)) {
            seen = race->ended;
            next_ms = now_ms + RACE_MS;
            err = task_go(g, "http connect", run_racer, &racers[race->started++]);
            continue;
        }
        int64_t old = task_deadline(t, more ? next_ms - now_ms : TIME_NEVER);
        err = task_wait(t);
        task_deadline_restore(t, old);
        if (err == ERR_TIMEOUT && task_time_left_ms(t) > 0)
            err = 0;
    }
    return err;
}

static int open_first(struct task *t, struct race *race, const struct net_addresses *to,
                      struct httpc_conn **out)
{
    struct racer racers[NET_ADDRESSES_MAX];
    struct group g;
    for (size_t i = 0; i < to->count; i++)
        racers[i] = (struct racer){race, to->text[i]};
    group_init(&g, task_loop(t));
    int err = run_race(t, race, &g, racers, to->count);
    group_cancel(&g);
    int joined = group_join(t, &g);
    if (!err)
        err = joined;
    if (err && race->won)
        httpc_conn_close(race->won);
    if (err == ERR_LIMIT)
        return no_connection(t, race->host->origin, "no task is left to connect");
    if (err)
        return err;
    *out = race->won;
    return race->won ? 0 : task_fail(t, ERR_UNAVAILABLE, "%s", race->problem);
}

/* The address that has answered is the first to be tried, until the next lookup. */
static void prefer(struct net_addresses *known, const char *address)
{
    char first[sizeof known->text[0]];
    for (size_t i = 1; i < known->count; i++) {
        if (strcmp(known->text[i], address) != 0)
            continue;
        memcpy(first, known->text[0], sizeof first);
        memcpy(known->text[0], known->text[i], sizeof first);
        memcpy(known->text[i], first, sizeof first);
    }
}

/* Not inlined: the frames of a race would be on the stacks of thousands of calls. */
NOINLINE static int open_any(struct task *t, struct httpc_host *h, bool h2, enum httpc_stage *stage,
                             struct httpc_conn **out)
{
    struct net_addresses *known = &httpc_host_way(h)->names.found;
    struct net_addresses to = *known;               /* a lookup may replace them during a wait */
    int64_t ms = h->client->options.connect_ms + 1; /* the loop's milliseconds are truncated */
    if (to.count == 1)
        return open_within(t, h, to.text[0], h2, ms, stage, out);
    struct race race = {
        .host = h, .h2 = h2, .waiter = t, .until_ms = loop_now_ms(h->client->loop) + ms};
    int err = open_first(t, &race, &to, out);
    *stage = race.stage;
    if (!err)
        prefer(known, race.winner);
    return err;
}

/* No other attempt for a while: of this host, or if the proxy itself failed, of all behind it. */
static int note_failure(struct task *t, struct httpc_host *h, enum httpc_stage stage)
{
    struct httpc_place *to = stage <= HTTPC_LOGIN ? httpc_host_way(h) : &h->place;
    bool login = stage == HTTPC_LOGIN;
    to->names.suspect = to->names.suspect || !login;
    to->unreachable_until_ms = loop_now_ms(h->client->loop) + (login ? LOGIN_MS : UNREACHABLE_MS);
    snprintf(to->unreachable, sizeof to->unreachable, "%s", task_error(t));
    return to == &h->place ? ERR_UNAVAILABLE : httpc_way_failed(t, h, ERR_UNAVAILABLE);
}

int httpc_conn_open(struct task *t, struct httpc_host *h, bool h2, struct httpc_conn **out)
{
    int64_t now_ms = loop_now_ms(h->client->loop);
    if (now_ms < h->place.unreachable_until_ms)
        return task_fail(t, ERR_UNAVAILABLE, "%s", h->place.unreachable);
    if (now_ms < httpc_host_way(h)->unreachable_until_ms)
        return httpc_way_failed(
            t, h, task_fail(t, ERR_UNAVAILABLE, "%s", httpc_host_way(h)->unreachable));
    enum httpc_stage stage;
    int err = task_stand_back(t, false); /* before connect_ms begins */
    if (err)
        return err;
    err = open_any(t, h, h2, &stage, out);
    return err == ERR_UNAVAILABLE ? note_failure(t, h, stage) : err;
}
