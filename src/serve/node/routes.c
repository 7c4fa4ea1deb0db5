#include "serve/node/routes.h"

#include "base/json.h"
#include "base/metrics.h"
#include "engine/setup/config.h"
#include "engine/papers/warm.h"
#include "engine/setup/schema_migrations.h"

#define IGNORED_BODY_MAX (64 * 1024) /* of a request that no route takes */
#define SETTLE_MS        2000        /* for a node that has just started */

static const char placeholder[] =
    "<!doctype html>\n"
    "<html lang=\"en\"><meta charset=\"utf-8\"><title>millrace</title>\n"
    "<style>body{font:16px/1.5 sans-serif;max-width:38em;margin:4em auto;padding:0 1em}</style>\n"
    "<h1>millrace is running</h1>\n"
    "<p>The pages have not been built yet, or <code>web_dir</code> points elsewhere. The API is "
    "under\n"
    "<code>/api</code>; <a href=\"/readyz\">/readyz</a> tells how the stores are,\n"
    "<a href=\"/metrics\">/metrics</a> how the nodes are.</p></html>\n";

/* Liveness: the loop runs. */
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
    if (*p->problem)
        jw_put_str(w, "problem", str_of(p->problem));
    jw_end_object(w);
}

static void put_schema(struct json_writer *w, const struct node_pages *p)
{
    int64_t database = node_warm_database(p->warm);
    jw_key(w, STR("schema"));
    jw_object(w);
    jw_key(w, STR("database"));
    if (database < 0)
        jw_null(w);
    else
        jw_int(w, database);
    jw_put_int(w, "program", (int64_t)schema_migration_count);
    jw_end_object(w);
}

static void put_warm_up(struct json_writer *w, const struct warm_progress *p)
{
    jw_key(w, STR("warm_up"));
    jw_object(w);
    jw_put_str(w, "state", str_of(warm_state_name(p->state)));
    jw_put_bool(w, "catalog", p->catalog_loaded);
    jw_put_int(w, "blocks", p->blocks);
    jw_put_int(w, "blocks_ready", p->blocks_ready);
    jw_put_int(w, "papers", p->papers);
    jw_put_int(w, "papers_ready", p->papers_ready);
    if (p->state == WARM_FAILED)
        jw_put_str(w, "problem", str_of(p->problem));
    jw_end_object(w);
}

/* Most important first. Blocks that are still missing in Redis do not count: a worker builds the
 * block it needs. */
static const char *why_not_ready(const struct node_pages *p, const struct health *h)
{
    if (p->node->draining)
        return "this node is stopping";
    if (h->redis.err && h->mysql.err)
        return "Redis and MySQL do not answer";
    if (h->redis.err)
        return "Redis does not answer";
    if (h->mysql.err)
        return "MySQL does not answer";
    if (h->read_only)
        return "MySQL is read-only: nothing can be submitted until it is writable again";
    const char *lacks = node_warm_lacks(p->warm);
    return lacks ? lacks : node_engine_lacks(p->engine);
}

const char *node_lacks(struct task *t, const struct node_pages *p, struct health *h)
{
    health_probe(t, p->node, node_warm_has_tables(p->warm), h);
    return why_not_ready(p, h);
}

static int get_ready(struct task *t, struct http_exchange *x, void *ctx)
{
    const struct node_pages *p = ctx;
    struct health h;
    node_warm_settle(t, p->warm, SETTLE_MS);
    const char *missing = node_lacks(t, p, &h);
    bool ready = !missing;
    struct json_writer w;
    http_set_header(x, "Cache-Control", STR("no-store"));
    http_json(x, &w);
    jw_object(&w);
    jw_put_bool(&w, "success", ready);
    if (!ready) {
        jw_key(&w, STR("error"));
        jw_object(&w);
        jw_put_str(&w, "code", STR("unavailable"));
        jw_put_str(&w, "message", str_of(missing));
        jw_end_object(&w);
    }
    jw_put_int(&w, "node", p->node->index);
    jw_put_bool(&w, "draining", p->node->draining);
    jw_key(&w, STR("stores"));
    jw_object(&w);
    put_probe(&w, STR("redis"), &h.redis);
    put_probe(&w, STR("mysql"), &h.mysql);
    jw_end_object(&w);
    put_schema(&w, p);
    put_warm_up(&w, p->node->warm);
    jw_end_object(&w);
    return http_reply_json(t, x, ready ? 200 : 503);
}

static int get_metrics(struct task *t, struct http_exchange *x, void *ctx)
{
    const struct node_pages *p = ctx;
    struct buf b;
    buf_init(&b);
    http_allow_gzip(x);
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
    {"GET", "/api/*", no_route, 0},
    {"POST", "/api/*", no_route, IGNORED_BODY_MAX},
    {"PUT", "/api/*", no_route, IGNORED_BODY_MAX},
    {"PATCH", "/api/*", no_route, IGNORED_BODY_MAX},
    {"DELETE", "/api/*", no_route, IGNORED_BODY_MAX},
    {"GET", "/*", get_page, 0},
};

static const struct http_route metrics_route = {"GET", "/metrics", get_metrics, 0};

void node_routes_add_metrics(struct http_server *s, struct node_pages *p)
{
    http_server_add(s, &metrics_route, 1, p);
}

void node_routes_add(struct http_server *s, struct node_pages *p)
{
    http_server_add(s, routes, sizeof routes / sizeof *routes, p);
    if (!*p->node->config->metrics_listen)
        node_routes_add_metrics(s, p);
}

/* --- as /openapi.json tells them --- */

static const struct api_field probe_fields[] = {
    {"up", API_BOOL, .about = "it answered just now"},
    {"latency_us", API_INT, .about = "of one question"},
    {"problem", API_TEXT, .optional = true, .about = "what went wrong"},
    API_END,
};
static const struct api_field stores_fields[] = {
    {"redis", API_OBJECT, .fields = probe_fields},
    {"mysql", API_OBJECT, .fields = probe_fields},
    API_END,
};
static const struct api_field schema_fields[] = {
    {"database", API_INT, .optional = true, .about = "migrations that it has; null: not known yet"},
    {"program", API_INT, .about = "migrations that this program has"},
    API_END,
};
static const struct api_field warm_up_fields[] = {
    {"state", API_TEXT, .about = "of loading Redis from MySQL"},
    {"catalog", API_BOOL, .about = "the catalog is loaded"},
    {"blocks", API_INT, .about = "blocks of papers that Redis should have"},
    {"blocks_ready", API_INT, .about = "those of them that it has"},
    {"papers", API_INT, .about = "their papers"},
    {"papers_ready", API_INT, .about = "those of them that Redis has"},
    {"problem", API_TEXT, .optional = true, .about = "why it failed"},
    API_END,
};
static const struct api_field ready_reply[] = {
    {"node", API_INT, .about = "number of the node that answers"},
    {"draining", API_BOOL, .about = "it takes no new work"},
    {"stores", API_OBJECT, .fields = stores_fields},
    {"schema", API_OBJECT, .fields = schema_fields},
    {"warm_up", API_OBJECT, .fields = warm_up_fields},
    API_END,
};

const struct api_route node_routes_told[] = {
    {"GET", "/healthz", API_PUBLIC, NULL, "Liveness: the process answers", .media = "text/plain"},
    {"GET", "/readyz", API_PUBLIC, NULL, "Readiness: a run could be submitted now",
     .reply = ready_reply, .fails_whole = true},
    {"GET", "/metrics", API_PUBLIC, NULL,
     "Metrics for Prometheus; at metrics_listen instead, where that is set", .media = "text/plain"},
    {.method = NULL},
};
