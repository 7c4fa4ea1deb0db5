#include "tests/store_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

#define SLOTS    16384
#define START_MS 30000
#define STEP_MS  10

/* As fast as it can be: a master counts as dead after a second. */
static void spawn_arguments(const struct store_cluster *c, int node, const char *out[12])
{
    const char *all[12] = {"--cluster-enabled",
                           "yes",
                           "--cluster-port",
                           c->bus_ports[node],
                           "--cluster-node-timeout",
                           "1000",
                           "--repl-diskless-sync-delay",
                           "0",
                           "--cluster-allow-replica-migration",
                           "no",
                           NULL};
    memcpy(out, all, sizeof(all));
}

void store_cluster_spawn(struct store_cluster *c, int node)
{
    const char *extra[12];
    spawn_arguments(c, node, extra);
    store_redis_spawn(&c->nodes[node], extra);
    store_redis_await(&c->nodes[node]);
}

static void start_node(struct store_cluster *c, int node)
{
    const char *extra[12];
    char answer[128], line[64];
    snprintf(c->bus_ports[node], sizeof(c->bus_ports[node]), "%d", store_free_port());
    spawn_arguments(c, node, extra);
    store_redis_start(&c->nodes[node], extra);
    check(store_redis_say(&c->nodes[node], "CLUSTER MYID", answer, sizeof(answer)));
    memcpy(c->ids[node], answer + strlen("$40\r\n"), 40);
    snprintf(line, sizeof(line), "CLUSTER SET-CONFIG-EPOCH %d", node + 1);
    check(store_redis_say(&c->nodes[node], line, NULL, 0));
}

static void await(const struct store_redis *s, const char *line, const char *words)
{
    char answer[512];
    for (int ms = 0; ms < START_MS; ms += STEP_MS) {
        if (store_redis_say(s, line, answer, sizeof(answer)) && strstr(answer, words))
            return;
        usleep(STEP_MS * 1000);
    }
    fprintf(stderr, "%s: never %s\n", line, words);
    check(false);
}

static void meet(struct store_cluster *c)
{
    char line[96], known[48];
    for (int i = 1; i < c->count; i++) {
        snprintf(line, sizeof(line), "CLUSTER MEET 127.0.0.1 %d %s", c->nodes[i].port,
                 c->bus_ports[i]);
        check(store_redis_say(&c->nodes[0], line, NULL, 0));
    }
    snprintf(known, sizeof(known), "cluster_known_nodes:%d", c->count);
    for (int i = 0; i < c->count; i++)
        await(&c->nodes[i], "CLUSTER INFO", known);
}

static void share_slots(struct store_cluster *c)
{
    char line[96];
    for (int i = 0; i < c->masters; i++) {
        snprintf(line, sizeof(line), "CLUSTER ADDSLOTSRANGE %d %d", SLOTS * i / c->masters,
                 SLOTS * (i + 1) / c->masters - 1);
        check(store_redis_say(&c->nodes[i], line, NULL, 0));
    }
}

static void replicate(struct store_cluster *c)
{
    char line[96];
    for (int i = c->masters; i < c->count; i++) {
        snprintf(line, sizeof(line), "CLUSTER REPLICATE %s", c->ids[i - c->masters]);
        check(store_redis_say(&c->nodes[i], line, NULL, 0));
        await(&c->nodes[i], "INFO replication", "master_link_status:up");
    }
}

void store_cluster_start(struct store_cluster *c, int masters, int replicas)
{
    *c = (struct store_cluster){.masters = masters, .count = masters + replicas};
    check(c->count <= STORE_CLUSTER_NODES_MAX && replicas <= masters);
    char *at = c->url;
    for (int i = 0; i < c->count; i++) {
        start_node(c, i);
        at += snprintf(at, sizeof(c->url) - (size_t)(at - c->url), "%s127.0.0.1:%d",
                       i ? "," : "redis://", c->nodes[i].port);
    }
    share_slots(c);
    meet(c);
    for (int i = 0; i < c->count; i++)
        await(&c->nodes[i], "CLUSTER INFO", "cluster_state:ok");
    replicate(c);
}

void store_cluster_stop(struct store_cluster *c)
{
    for (int i = 0; i < c->count; i++)
        store_redis_stop(&c->nodes[i]);
}

static void set_slot(struct store_cluster *c, int node, int slot, const char *how, int other)
{
    char line[128];
    snprintf(line, sizeof(line), "CLUSTER SETSLOT %d %s %s", slot, how, c->ids[other]);
    check(store_redis_say(&c->nodes[node], line, NULL, 0));
}

void store_cluster_move_begin(struct store_cluster *c, int slot, int from, int to)
{
    set_slot(c, to, slot, "IMPORTING", from);
    set_slot(c, from, slot, "MIGRATING", to);
}

/* The n-th string of a list as it is on the wire; false: it has none. */
static bool nth_of(const char *list, int n, char *out, size_t size)
{
    const char *at = strchr(list, '$');
    for (int i = 0; at && i < n; i++)
        at = strchr(at + 1, '$');
    const char *text = at ? strchr(at, '\n') : NULL;
    if (!text)
        return false;
    snprintf(out, size, "%.*s", (int)strcspn(text + 1, "\r"), text + 1);
    return true;
}

int store_cluster_move_keys(struct store_cluster *c, int slot, int from, int to, int keys_max)
{
    char line[256], list[512], key[64];
    int moved = 0;
    snprintf(line, sizeof(line), "CLUSTER GETKEYSINSLOT %d %d", slot, keys_max);
    check(store_redis_say(&c->nodes[from], line, list, sizeof(list)));
    for (; moved < keys_max && nth_of(list, moved, key, sizeof(key)); moved++) {
        snprintf(line, sizeof(line), "MIGRATE 127.0.0.1 %d %s 0 5000", c->nodes[to].port, key);
        check(store_redis_say(&c->nodes[from], line, NULL, 0));
    }
    return moved;
}

void store_cluster_move_end(struct store_cluster *c, int slot, int to)
{
    set_slot(c, to, slot, "NODE", to);
    for (int i = 0; i < c->masters; i++)
        if (i != to && c->nodes[i].pid)
            set_slot(c, i, slot, "NODE", to);
}
