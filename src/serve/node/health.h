/* health.h -- the health of a node and of the stores behind it. */
#ifndef SERVE_NODE_HEALTH_H
#define SERVE_NODE_HEALTH_H

#include "engine/setup/node.h"
#include "engine/store/role.h"

struct probe {
    int err; /* 0: it answered */
    int64_t latency_us;
    const char *problem; /* in the task's arena; "" if none */
};

struct health {
    struct probe redis, mysql;
    bool read_only; /* MySQL answers, but takes no changes */
};

/* Probes both stores; each may take a second. tables: MySQL has them, so that a change can be
 * tried. */
void health_probe(struct task *t, const struct node *n, bool tables, struct health *out);
static inline bool health_fine(const struct health *h)
{
    return !h->redis.err && !h->mysql.err;
}

/* Metrics of the process: memory, CPU, files, tasks, lateness of the loop, warm-up. */
struct vitals;
struct vitals *vitals_new(struct node *n); /* n->warm must be set when they are updated */
void vitals_free(struct vitals *v);
void vitals_update(struct vitals *v);
role_fn vitals_role; /* arg: one */
#endif
