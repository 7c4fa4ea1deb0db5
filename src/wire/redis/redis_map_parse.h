/* redis_map_parse.h -- what a node of a Redis Cluster says about slots. */
#ifndef WIRE_REDIS_MAP_PARSE_H
#define WIRE_REDIS_MAP_PARSE_H

#include "wire/redis.h"
#include "wire/redis/redis_slot.h"
#include "wire/redis/redis_url.h"

#define REDIS_HOST_MAX   253 /* bytes */
#define REDIS_RANGES_MAX 16384

/* Strings live in the arena. A node that does not know its own address leaves it out: then it is
 * the host that was asked. */

struct redis_redirect {
    bool ask; /* ASK: for this command alone. Else MOVED: from now on */
    unsigned slot;
    struct redis_address to;
};
/* "MOVED 3999 127.0.0.1:6381", "ASK 3999 ::1:6381". False: it is no redirection. */
bool redis_redirect_parse(struct arena *a, struct str words, const char *asked_host,
                          struct redis_redirect *out);

struct redis_range {
    unsigned first, last;
    struct redis_address master;
};
/* The reply to CLUSTER SLOTS; false: it is none. Ranges may overlap: the last one counts. */
bool redis_slots_parse(struct arena *a, const struct redis_reply *reply, const char *asked_host,
                       struct redis_range **out, size_t *count);

/* cluster_current_epoch of the reply to CLUSTER INFO: of two nodes, the one with the greater has
 * heard of later changes. -1: it has none. */
int64_t redis_cluster_epoch(struct str info);
#endif
