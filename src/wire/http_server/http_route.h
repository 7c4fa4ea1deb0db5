/* http_route.h -- which handler answers a method and a path.
 *
 * Patterns form a tree of segments. At every segment a literal goes before ":name", and ":name"
 * before a last "*". The path alone decides the node; only then is the method looked at, so
 * that a wrong method on a known path (405) differs from an unknown path (404). */
#ifndef WIRE_HTTP_ROUTE_H
#define WIRE_HTTP_ROUTE_H

#include "wire/http_server.h"

#define HTTP_PARAMS_MAX 8

struct http_router;

struct http_match {
    const struct http_route *route; /* NULL: the path is known, the method is not allowed on it */
    void *ctx;
    const struct route_entry *entries;  /* all methods of this path */
    struct str values[HTTP_PARAMS_MAX]; /* decoded, in the order of the pattern */
    size_t value_count;
};

struct http_router *http_router_new(void);
void http_router_free(struct http_router *r);
/* Borrows route. A second one for the same method and path stops the process. */
void http_router_add(struct http_router *r, const struct http_route *route, void *ctx);

/* path is encoded, and valid UTF-8 once decoded; values are borrowed from it or lie in a. False: no
 * route has this path. */
bool http_router_find(const struct http_router *r, struct arena *a, struct str method,
                      struct str path, struct http_match *out);
/* p == NULL if the pattern has no such name. "*" names the rest. */
struct str http_match_param(const struct http_match *m, struct str name);
/* "GET, HEAD, POST" */
void http_match_allow(const struct http_match *m, struct buf *out);
#endif
