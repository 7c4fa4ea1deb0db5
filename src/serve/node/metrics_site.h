/* metrics_site.h -- /metrics on an address of its own (metrics_listen), away from what users reach.
 *
 * Every node listens there with SO_REUSEPORT, so that one of them answers as long as any is alive,
 * and the nodes of a reload need not wait for each other. Any node shows the numbers of all. */
#ifndef SERVE_NODE_METRICS_SITE_H
#define SERVE_NODE_METRICS_SITE_H

#include "serve/node/routes.h"

struct metrics_site;
/* NULL: there is no such setting. p is borrowed. */
struct metrics_site *metrics_site_new(struct node_pages *p);
void metrics_site_free(struct metrics_site *m); /* after its task */
/* Serves until the task is cancelled; arg is a struct metrics_site. An address that cannot be had
 * is tried again and again: without metrics the node is still of use. */
void metrics_site_run(struct task *t, void *arg);
#endif
