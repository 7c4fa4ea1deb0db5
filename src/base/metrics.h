/* metrics.h -- counters that every node of this machine can read.
 *
 * The page is shared memory made by the supervisor, with a slab per node.
 * A node writes its own slab only; any node renders all of them for /metrics.
 * Slots carry their own names, so that nodes of two binaries can share the page
 * during a reload. Values are single 64-bit words: no locks.
 * Registering the same name and labels again returns the same slot. */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include "base/buf.h"

#define METRICS_SLOTS_MAX 2048 /* some 500 of a node, five for each key of an AI service */
#define METRICS_NODES_MAX 64

struct metrics;

/* 2 and 3 are parts of histograms, inside. Values of the _US kinds are microseconds, and are shown
 * in seconds, the base unit of Prometheus. */
enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_COUNTER_US = 4, METRIC_GAUGE_US };

/* fd: a file of shared memory, made metrics_bytes(nodes) long if it is shorter; -1 for a private
 * page (tests, single processes). The caller keeps fd and may close it afterwards.
 * node: the slab this process writes; -1 for readers. Opening a slab clears it. */
struct metrics *metrics_open(int fd, int nodes, int node);
void metrics_close(struct metrics *m);
size_t metrics_bytes(int nodes);

/* labels: `code="200"` or "", escaped as Prometheus requires. m == NULL: the metric is not shown.
 * Full page, or labels too long for it: the metric is kept privately and is not shown; logged
 * once. Readers get private metrics always. */
int64_t *metric(struct metrics *m, enum metric_kind kind, const char *name, const char *labels,
                const char *help);

static inline void metric_add(int64_t *slot, int64_t n)
{
    __atomic_store_n(slot, *slot + n, __ATOMIC_RELAXED); /* one writer */
}
static inline void metric_set(int64_t *slot, int64_t v)
{
    __atomic_store_n(slot, v, __ATOMIC_RELAXED);
}

/* A histogram of durations with fixed buckets, 100 µs to 60 s, in the form of Prometheus. Freeing
 * it leaves its numbers on the page. Without metrics it is NULL, and adding to it does nothing. */
struct histogram;
struct histogram *histogram_new(struct metrics *m, const char *name, const char *help);
void histogram_free(struct histogram *h);
void histogram_add_us(struct histogram *h, int64_t us);

/* Prometheus text format 0.0.4, label node="N" added, HELP and TYPE once per name. */
void metrics_render(const struct metrics *m, struct buf *out);
#endif
