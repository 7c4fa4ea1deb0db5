/* Names to addresses: looked up by one task per place, for all calls (singleflight), on a helper
 * thread. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_url.h"

#define NAMES_REFRESH_MS 60000
#define NAMES_RETRY_MS   1000 /* between two lookups of a name that does not resolve */

/* May outlive its place, for a lookup cannot be cancelled. The task ends after its last line has
 * run, therefore a timer frees it. */
struct httpc_lookup {
    struct group group;
    struct timer reaper;
    struct httpc_place *place; /* NULL: gone */
    char *name;
};

static void add(struct net_addresses *a, struct str address)
{
    char *text = a->text[a->count++];
    check(address.n < sizeof a->text[0]);
    memcpy(text, address.p, address.n);
    text[address.n] = '\0';
}

/* The addresses of a host that needs no lookup; none: it needs one. */
static void find_literal(struct str host, struct net_addresses *out)
{
    unsigned char ignored[sizeof(struct in6_addr)];
    if (http_name_is_local(host)) {
        add(out, STR("127.0.0.1"));
        add(out, STR("::1"));
    } else if (host.p[0] == '[' && host.n - 2 < sizeof out->text[0]) {
        add(out, str_from(host.p + 1, host.n - 2));
    } else if (host.n < sizeof out->text[0]) {
        add(out, host);
        if (inet_pton(AF_INET, out->text[0], ignored) != 1)
            out->count = 0;
    }
}

void httpc_names_init(struct httpc_names *n, struct str host)
{
    *n = (struct httpc_names){.suspect = false};
    find_literal(host, &n->found);
    n->literal = n->found.count > 0;
    waitq_init(&n->waiters);
}

void httpc_names_release(struct httpc_names *n)
{
    if (n->lookup)
        n->lookup->place = NULL;
}

static void lookup_free(void *arg)
{
    struct httpc_lookup *k = arg;
    check(k->group.count == 0);
    timer_clear(&k->reaper);
    free(k->name);
    free(k);
}

/* An old address is better than none; found == NULL: the problem says why. */
static void learn(struct httpc_names *n, const struct net_addresses *found, const char *problem,
                  int64_t now_ms)
{
    n->lookup = NULL;
    n->looked_ms = now_ms;
    n->suspect = false;
    snprintf(n->problem, sizeof n->problem, "%s", found ? "" : problem);
    if (found)
        n->found = *found;
    waitq_wake_all(&n->waiters);
}

static void run(struct task *t, void *arg)
{
    struct httpc_lookup *k = arg;
    struct net_addresses found;
    int err = net_look_up(t, k->name, &found);
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (k->place)
        learn(&k->place->names, err ? NULL : &found, task_error(t), now_ms);
    if (k->place && !err) {
        k->place->unreachable_until_ms = 0;
        httpc_place_looked_up(k->place);
    }
    timer_set(&k->reaper, now_ms);
}

static int start(struct task *t, struct httpc_place *p)
{
    struct httpc_lookup *k = check_memory(calloc(1, sizeof *k));
    group_init(&k->group, task_loop(t));
    timer_init(&k->reaper, task_loop(t), lookup_free, k);
    k->place = p;
    k->name = check_memory(strdup(p->name));
    int err = task_go(&k->group, "http name", run, k);
    if (err) {
        lookup_free(k);
        return task_fail(t, ERR_UNAVAILABLE, "%s: no task left to look up the name", p->label);
    }
    p->names.lookup = k;
    return 0;
}

int httpc_names_get(struct task *t, struct httpc_place *p)
{
    struct httpc_names *n = &p->names;
    if (n->literal)
        return 0;
    int64_t age_ms = n->looked_ms ? loop_now_ms(p->client->loop) - n->looked_ms : INT64_MAX;
    bool usable = n->found.count > 0 && !n->suspect;
    if (usable && age_ms < NAMES_REFRESH_MS)
        return 0;
    int err = 0;
    if (!n->lookup && age_ms >= NAMES_RETRY_MS)
        err = start(t, p);
    if (usable)
        return 0; /* the known address is used until the lookup has ended */
    while (!err && n->lookup)
        err = waitq_wait(t, &n->waiters);
    if (err)
        return err;
    if (n->found.count == 0)
        return task_fail(t, ERR_UNAVAILABLE, "%s: %s", p->label, n->problem);
    return 0;
}
