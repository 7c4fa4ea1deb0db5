/* routes.h -- the routes outside of applications: /healthz, /readyz, /metrics, the pages, and
 * 404 for the rest of /api. */
#ifndef SERVE_NODE_ROUTES_H
#define SERVE_NODE_ROUTES_H

#include "engine/api/api.h"
#include "engine/setup/node.h"
#include "serve/node/engine.h"
#include "serve/node/health.h"
#include "serve/node/warm.h"
#include "wire/http_server.h"

struct node_pages {
    struct node *node;
    struct vitals *vitals;
    struct node_warm *warm;
    struct http_files *files; /* NULL: the pages are not built */
    const struct node_engine *engine;
};

/* Why a submit would not be taken now, and how the stores are; NULL: it would. Valid until the next
 * wait. */
const char *node_lacks(struct task *t, const struct node_pages *p, struct health *h);

/* p is borrowed until the server is freed. /metrics is left out if it has an address of its own. */
void node_routes_add(struct http_server *s, struct node_pages *p);
void node_routes_add_metrics(struct http_server *s, struct node_pages *p);
/* Those of them that /openapi.json tells. */
extern const struct api_route node_routes_told[];
#endif
