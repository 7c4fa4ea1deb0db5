/* node_routes.h -- what every node answers, whatever applications it has: /healthz, /readyz,
 * /metrics, the pages, and 404 for the rest of /api. */
#ifndef SERVE_NODE_ROUTES_H
#define SERVE_NODE_ROUTES_H

#include "engine/setup/node.h"
#include "serve/node_health.h"
#include "serve/node_warm.h"
#include "wire/http_server.h"

struct node_pages {
    struct node *node;
    struct vitals *vitals;
    struct node_warm *warm;
    struct http_files *files; /* NULL: there are no built pages */
};

/* p is borrowed as long as the server lives. */
void node_routes_add(struct http_server *s, struct node_pages *p);
#endif
