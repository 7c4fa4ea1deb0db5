/* redis_map.h -- which master of a Redis Cluster has which slot, and a connection to each.
 *
 * The map is learned from CLUSTER SLOTS: of all nodes that answer, the one that has heard of the
 * latest change counts. It is learned again when a node answers MOVED, when a connection was lost
 * or made, and every REDIS_MAP_MS; each REDIS_MAP_DOWN_MS while a slot cannot be served. A MOVED
 * also changes the slot that it names at once.
 *
 * A connection lives as long as the map names its server, or a redirection has named it lately. */
#ifndef WIRE_REDIS_MAP_H
#define WIRE_REDIS_MAP_H

#include "wire/redis/redis_map_parse.h"
#include "wire/redis/redis_private.h"

#define REDIS_MAP_MS      5000
#define REDIS_MAP_DOWN_MS 500
#define REDIS_SHARDS_MAX  1024

struct redis_shard {
    struct list link;
    struct redis *server; /* owned */
    size_t slots;         /* that the map says it has */
    int64_t named_ms;     /* when map or redirection named it last */
};

struct redis_map {
    struct redis *front;
    struct group *group;
    struct list shards;
    size_t shard_count;
    struct redis_shard *owners[REDIS_SLOTS]; /* NULL: not known */
    bool known;                              /* the owners were learned */
    bool wanted;                             /* learn them again */
    struct waitq wake;                       /* of the task that learns */
    uint64_t connections;                    /* made so far: each has its number as its epoch */
    char run_id[41];                         /* of all servers together */
};

struct redis_map *redis_map_new(struct redis *front, struct group *g);
void redis_map_free(struct redis_map *m);
void redis_map_run(struct task *t, void *arg); /* the link task; arg: the handle */

/* A connection of the map has come up or gone down. */
void redis_map_changed(struct redis_map *m);

/* The server that has the key; of a key without bytes (STR_NULL): any one. NULL: not known. */
struct redis *redis_map_owner(const struct redis_map *m, struct str key);
/* The same, and waits for the first map. ERR_UNAVAILABLE: no node has it. */
MUST_CHECK int redis_map_find(struct task *t, struct redis_map *m, struct str key,
                              struct redis **out);

/* Asks the server that has the key by once, until it is one of the nodes that answers: redirections
 * are followed; what a node cannot do yet is tried again until the deadline, and is
 * ERR_UNAVAILABLE then. An error reply is a success here. */
typedef int redis_once_fn(struct task *t, struct redis *server, bool asking, void *call,
                          const struct redis_reply **out);
MUST_CHECK int redis_cluster_ask(struct task *t, struct redis *front, struct str key,
                                 redis_once_fn *once, void *call, const struct redis_reply **out);
/* Whether the reply is one that redis_cluster_ask would have followed or repeated. */
bool redis_cluster_repeats(const struct redis_reply *reply);
/* Notes a redirection, and gives the server that it names. NULL: none, or it cannot be reached. */
struct redis *redis_map_redirect(struct redis_map *m, const struct redis_redirect *to);
#endif
