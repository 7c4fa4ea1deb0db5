/* store_cluster.h -- a real Redis Cluster for tests, on loopback, in directories of its own. These
 * calls block. */
#ifndef TESTS_STORE_CLUSTER_H
#define TESTS_STORE_CLUSTER_H

#include "tests/store.h"

#define STORE_CLUSTER_NODES_MAX 6

/* Masters come first; replica i is of master i. Slots are in equal ranges, in the order of the
 * masters. */
struct store_cluster {
    int masters, count;
    struct store_redis nodes[STORE_CLUSTER_NODES_MAX];
    char ids[STORE_CLUSTER_NODES_MAX][41];
    char bus_ports[STORE_CLUSTER_NODES_MAX][12];
    char url[256]; /* with the addresses of all */
};

/* Returns once all nodes serve. */
void store_cluster_start(struct store_cluster *c, int masters, int replicas);
void store_cluster_stop(struct store_cluster *c);

/* Of a node that was killed. */
void store_cluster_spawn(struct store_cluster *c, int node);

/* The four steps by which a slot moves, with all of its keys; the slot may be in use. begin: keys
 * that are not there are looked for at the other. keys: up to so many, the number that was moved.
 * end: told to all nodes that live. */
void store_cluster_move_begin(struct store_cluster *c, int slot, int from, int to);
int store_cluster_move_keys(struct store_cluster *c, int slot, int from, int to, int keys_max);
void store_cluster_move_end(struct store_cluster *c, int slot, int to);
#endif
