#include "wire/http_server/http_route.h"

#include "tests/tap.h"

static int handler(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)t, (void)x, (void)ctx;
    return 0;
}

static const struct http_route routes[] = {
    {"GET", "/", handler, 0},
    {"GET", "/api/queries", handler, 0},
    {"POST", "/api/queries", handler, 100},
    {"GET", "/api/queries/:id", handler, 0},
    {"DELETE", "/api/queries/:qid", handler, 0},
    {"GET", "/api/queries/recent", handler, 0},
    {"GET", "/api/queries/:id/papers/:doi", handler, 0},
    {"POST", "/api/queries/recent/stop", handler, 0},
    {"GET", "/*", handler, 0},
    {"POST", "/upload", handler, 0},
};
#define COUNT (sizeof(routes) / sizeof(routes[0]))

static struct http_router *router;
static struct arena arena;
static struct http_match match;

/* The pattern that answers, "405" or "404". */
static struct str find(const char *method, const char *path)
{
    if (!http_router_find(router, &arena, str_of(method), str_of(path), &match))
        return STR("404");
    return match.route ? str_of(match.route->pattern) : STR("405");
}

static void places(void)
{
    is_str(find("GET", "/"), STR("/"), "the root");
    is_str(find("GET", "/api/queries"), STR("/api/queries"), "a literal");
    ok(str_eq(find("POST", "/api/queries"), STR("/api/queries")) && match.route->body_max == 100,
       "each method has its own");
    is_str(find("GET", "/api/queries/17"), STR("/api/queries/:id"), "a parameter");
    is_str(find("GET", "/api/queries/recent"), STR("/api/queries/recent"),
           "a literal goes before a parameter");
    is_str(find("GET", "/api/queries/recent/papers/x"), STR("/api/queries/:id/papers/:doi"),
           "a literal that leads nowhere is given up");
    is_str(find("GET", "/%61pi/queries"), STR("/api/queries"), "encoded is the same");
    is_str(find("GET", "/other/page.html"), STR("/*"), "the rest");
    is_str(find("HEAD", "/api/queries/17"), STR("/api/queries/:id"), "GET answers HEAD");
}

static void misses(void)
{
    is_str(find("PUT", "/api/queries"), STR("405"), "a known path, an unknown method");
    is_str(find("GET", "/upload"), STR("405"), "the rest does not take what is known");
    is_str(find("HEAD", "/upload"), STR("405"), "POST does not answer HEAD");
    is_str(find("POST", "/nowhere"), STR("405"), "the rest is known for GET");
    is_str(find("get", "/"), STR("405"), "methods have their case");
    is_str(find("OPTIONS", "*"), STR("404"), "no path");
    ok(str_eq(find("GET", "/api/queries/"), STR("/*")) && match.value_count == 1,
       "a parameter is never empty");
    ok(str_eq(find("GET", "/api/queries/17/papers"), STR("/*")) && match.value_count == 1,
       "too short, and what was taken on the way is given back");
    is_str(find("GET", "/API/queries"), STR("/*"), "paths have their case");
}

static void values(void)
{
    find("GET", "/api/queries/17/papers/10.1000%2Fx+y%20z");
    is_str(http_match_param(&match, STR("id")), STR("17"), "the first value");
    is_str(http_match_param(&match, STR("doi")), STR("10.1000/x+y z"), "the second, decoded");
    is_str(http_match_param(&match, STR("none")), STR_NULL, "no such name");
    is_str(http_match_param(&match, STR("*")), STR_NULL, "no rest");
    find("DELETE", "/api/queries/17");
    is_str(http_match_param(&match, STR("qid")), STR("17"), "each route has its own names");
    find("GET", "/a/b%20c/d");
    is_str(http_match_param(&match, STR("*")), STR("a/b c/d"), "the rest, decoded");
    find("GET", "/api/queries/recent/papers/x");
    is_str(http_match_param(&match, STR("id")), STR("recent"),
           "what was tried before is forgotten");
}

static void allowed(void)
{
    struct buf b;
    buf_init(&b);
    find("PUT", "/api/queries");
    http_match_allow(&match, &b);
    is_str(buf_str(&b), STR("GET, HEAD, POST"), "what is allowed");
    buf_release(&b);
}

int main(void)
{
    arena_init(&arena);
    router = http_router_new();
    for (size_t i = 0; i < COUNT; i++)
        http_router_add(router, &routes[i], NULL);
    places();
    misses();
    values();
    allowed();
    http_router_free(router);
    arena_release(&arena);
    return tap_done();
}
