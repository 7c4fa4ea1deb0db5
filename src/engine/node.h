/* node.h -- what every part of a node shares: passed down, never global.
 *
 * One process, one thread, one loop. serve/node_process.c makes it and owns everything in it; the rest
 * borrows. Background tasks belong to group, and end when it is cancelled. */
#ifndef ENGINE_NODE_H
#define ENGINE_NODE_H

#include <stdbool.h>
#include <stdint.h>

struct blocks;
struct config;
struct group;
struct http_client;
struct http_server;
struct loop;
struct metrics;
struct redis;
struct sql_pool;
struct warm_progress;

struct node {
    struct loop *loop;
    struct group *group; /* background roles */
    const struct config *config;
    struct redis *redis;
    struct sql_pool *sql;
    struct blocks *blocks;      /* papers in Redis */
    struct warm_progress *warm; /* how far Redis is filled */
    struct http_server *http;
    struct http_client *client; /* calls to the AI and to webhooks */
    struct metrics *metrics;
    int index;            /* slab of metrics; unique among the living nodes of this machine */
    uint64_t incarnation; /* random: tells this process from all others, for leases */
    bool draining;        /* no new work */
};
#endif
