#include "serve/node_routes.h"

#include "base/json.h"
#include "base/metrics.h"

#define IGNORED_BODY_MAX (64 * 1024) /* of a request to nowhere */

static const char placeholder[] =
    "<!doctype html>\n"
    "<html lang=\"en\"><meta charset=\"utf-8\"><title>millrace</title>\n"
    "<style>body{font:16px/1.5 sans-serif;max-width:38em;margin:4em auto;padding:0 1em}</style>\n"
    "<h1>millrace is running</h1>\n"
    "<p>The pages have not been built yet, or <code>web_dir</code> points elsewhere. The API is "
    "under\n"
    "<code>/api</code>; <a href=\"/readyz\">/readyz</a> tells how the stores are,\n"
    "<a href=\"/metrics\">/metrics</a> how the nodes are.</p></html>\n";

/* The loop turns, so we are alive. */
static int get_health(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    http_set_header(x, "Cache-Control", STR("no-store"));
    return http_reply(t, x, 200, "text/plain; charset=utf-8", STR("ok\n"));
}

static void put_probe(struct json_writer *w, struct str name, const struct probe *p)
{
    jw_key(w, name);
    jw_object(w);
    jw_put_bool(w, "up", p->err == 0);
    jw_put_int(w, "latency_us", p->latency_us);
    if (p->err)
        jw_put_str(w, "problem", str_of(p->problem));
    jw_end_object(w);
}

static int get_ready(struct task *t, struct http_exchange *x, void *ctx)
{
    const struct node_pages *p = ctx;
    struct health h;
    health_probe(t, p->node, &h);
    bool ready = health_fine(&h) && !p->node->draining;
    struct json_writer w;
    http_set_header(x, "Cache-Control", STR("no-store"));
    http_json(x, &w);
    jw_object(&w);
    jw_put_bool(&w, "success", ready);
    if (!ready) {
        jw_key(&w, STR("error"));
        jw_object(&w);
        jw_put_str(&w, "code", STR("unavailable"));
        jw_put_str(&w, "message",
                   p->node->draining ? STR("this node is stopping")
                                     : STR("a store does not answer"));
        jw_end_object(&w);
    }
    jw_put_int(&w, "node", p->node->index);
    jw_put_bool(&w, "draining", p->node->draining);
    jw_key(&w, STR("stores"));
    jw_object(&w);
    put_probe(&w, STR("redis"), &h.redis);
    put_probe(&w, STR("mysql"), &h.mysql);
    jw_end_object(&w);
    jw_end_object(&w);
    return http_reply_json(t, x, ready ? 200 : 503);
}

static int get_metrics(struct task *t, struct http_exchange *x, void *ctx)
{
    const struct node_pages *p = ctx;
    struct buf b;
    buf_init(&b);
    vitals_update(p->vitals);
    metrics_render(p->node->metrics, &b);
    int err = http_reply(t, x, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&b));
    buf_release(&b);
    return err;
}

static int get_page(struct task *t, struct http_exchange *x, void *ctx)
{
    const struct node_pages *p = ctx;
    struct str path = http_param(x, "*");
    if (p->files)
        return http_reply_file(t, x, p->files, path);
    if (path.n == 0)
        return http_reply(t, x, 200, "text/html; charset=utf-8", str_of(placeholder));
    return task_fail(t, ERR_NOT_FOUND, "there is no such page");
}

static int no_route(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str path = http_path(x);
    return task_fail(t, ERR_NOT_FOUND, "the API has no %.*s", STR_ARG(path));
}

static const struct http_route routes[] = {
    {"GET", "/healthz", get_health, 0},
    {"GET", "/readyz", get_ready, 0},
    {"GET", "/metrics", get_metrics, 0},
    {"GET", "/api/*", no_route, 0},
    {"POST", "/api/*", no_route, IGNORED_BODY_MAX},
    {"PUT", "/api/*", no_route, IGNORED_BODY_MAX},
    {"PATCH", "/api/*", no_route, IGNORED_BODY_MAX},
    {"DELETE", "/api/*", no_route, IGNORED_BODY_MAX},
    {"GET", "/*", get_page, 0},
};

void node_routes_add(struct http_server *s, struct node_pages *p)
{
    http_server_add(s, routes, sizeof routes / sizeof *routes, p);
}
