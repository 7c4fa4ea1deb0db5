#include "wire/http_server/http_route.h"

#include <stdlib.h>

#include "base/check.h"
#include "wire/http_server/http_uri.h"

struct route_entry {
    const struct http_route *route;
    void *ctx;
    struct route_entry *next;
};

/* A node of the tree: the routes and children behind the segments that lead to it. */
struct node {
    struct str literal;
    struct node *literals; /* children with a literal segment, by sibling */
    struct node *sibling;
    struct node *param, *rest;
    struct route_entry *entries;
};

struct http_router {
    struct arena arena;
    struct node root;
};

struct http_router *http_router_new(void)
{
    struct http_router *r = check_memory(calloc(1, sizeof(*r)));
    arena_init(&r->arena);
    return r;
}

void http_router_free(struct http_router *r)
{
    if (!r)
        return;
    arena_release(&r->arena);
    free(r);
}

static struct node *find_literal(const struct node *n, struct str segment)
{
    for (struct node *child = n->literals; child; child = child->sibling)
        if (str_eq(child->literal, segment))
            return child;
    return NULL;
}

static struct node *child_of(struct http_router *r, struct node *n, struct str segment, bool last)
{
    struct node **place = NULL;
    if (segment.n > 1 && segment.p[0] == ':')
        place = &n->param;
    else if (last && str_eq(segment, STR("*")))
        place = &n->rest;
    struct node *child = place ? *place : find_literal(n, segment);
    if (child)
        return child;
    child = ARENA_NEW(&r->arena, struct node);
    child->literal = segment;
    if (place) {
        *place = child;
    } else {
        child->sibling = n->literals;
        n->literals = child;
    }
    return child;
}

static bool is_param(struct str segment)
{
    return (segment.n > 1 && segment.p[0] == ':') || str_eq(segment, STR("*"));
}

void http_router_add(struct http_router *r, const struct http_route *route, void *ctx)
{
    check(route->pattern[0] == '/');
    struct str rest = str_of(route->pattern + 1);
    struct node *n = &r->root;
    size_t params = 0;
    while (rest.p) {
        struct str segment = str_cut(&rest, '/');
        check(!rest.p || !str_eq(segment, STR("*"))); /* only the last one takes the rest */
        params += is_param(segment);
        n = child_of(r, n, segment, !rest.p);
    }
    check(params <= HTTP_PARAMS_MAX);
    struct route_entry **last = &n->entries;
    for (; *last; last = &(*last)->next)
        check(strcmp((*last)->route->method, route->method) != 0);
    *last = ARENA_NEW(&r->arena, struct route_entry);
    **last = (struct route_entry){route, ctx, NULL};
}

struct walk {
    struct arena *arena;
    bool encoded; /* there is something to decode */
    struct http_match *match;
};

static bool decode(struct walk *w, struct str raw, struct str *out)
{
    *out = raw;
    return !w->encoded || http_uri_decode(w->arena, raw, false, out);
}

/* The node for the segments in rest (p == NULL: none are left); collects values on the way. */
static const struct node *descend(struct walk *w, const struct node *n, struct str rest)
{
    if (!rest.p)
        return n->entries ? n : NULL;
    struct http_match *m = w->match;
    size_t depth = m->value_count;
    struct str later = rest, segment;
    if (decode(w, str_cut(&later, '/'), &segment)) {
        const struct node *child = find_literal(n, segment), *found = NULL;
        if (child && (found = descend(w, child, later)))
            return found;
        if (n->param && segment.n > 0) {
            m->values[m->value_count++] = segment;
            if ((found = descend(w, n->param, later)))
                return found;
            m->value_count = depth;
        }
    }
    if (!n->rest || !decode(w, rest, &m->values[depth]))
        return NULL;
    m->value_count++;
    return n->rest;
}

static const struct route_entry *entry_for(const struct route_entry *e, struct str method)
{
    const struct route_entry *get = NULL;
    for (; e; e = e->next) {
        if (str_eq(str_of(e->route->method), method))
            return e;
        if (strcmp(e->route->method, "GET") == 0)
            get = e;
    }
    return str_eq(method, STR("HEAD")) ? get : NULL;
}

bool http_router_find(const struct http_router *r, struct arena *a, struct str method,
                      struct str path, struct http_match *out)
{
    out->value_count = 0;
    out->route = NULL;
    if (path.n == 0 || path.p[0] != '/')
        return false;
    struct walk w = {a, memchr(path.p, '%', path.n), out};
    const struct node *n = descend(&w, &r->root, str_from(path.p + 1, path.n - 1));
    if (!n)
        return false;
    out->entries = n->entries;
    const struct route_entry *e = entry_for(n->entries, method);
    out->route = e ? e->route : NULL;
    out->ctx = e ? e->ctx : NULL;
    return true;
}

struct str http_match_param(const struct http_match *m, struct str name)
{
    struct str rest = str_of(m->route->pattern + 1);
    for (size_t i = 0; rest.p && i < m->value_count;) {
        struct str segment = str_cut(&rest, '/');
        if (!is_param(segment))
            continue;
        bool named = segment.p[0] == ':' && str_eq(str_from(segment.p + 1, segment.n - 1), name);
        if (named || (segment.p[0] == '*' && str_eq(name, STR("*"))))
            return m->values[i];
        i++;
    }
    return STR_NULL;
}

void http_match_allow(const struct http_match *m, struct buf *out)
{
    for (const struct route_entry *e = m->entries; e; e = e->next) {
        if (e != m->entries)
            buf_add_lit(out, ", ");
        buf_add_str(out, str_of(e->route->method));
        if (strcmp(e->route->method, "GET") == 0)
            buf_add_lit(out, ", HEAD");
    }
}
