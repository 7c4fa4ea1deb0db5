#include "serve/node/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/metrics.h"
#include "engine/jobs/jobs.h"
#include "engine/judge/judge.h"
#include "engine/setup/config.h"
#include "engine/setup/node.h"
#include "engine/setup/stores.h"
#include "loop/backoff.h"
#include "loop/sync.h"
#include "serve/node/engine.h"
#include "serve/node/metrics_site.h"
#include "serve/node/routes.h"
#include "wire/http_client.h"
#include "wire/redis.h"
#include "wire/sql.h"

#define DOORS_WAIT_MS   2000 /* then it accepts connections, ready or not */
#define READY_WAIT_MS   5000 /* then it reports what it lacks */
#define READY_LOOK_MS   10
#define UNREADY_LOOK_MS 500
#define ALIVE_MS        2000
#define ACCEPT_END_MS   100 /* the acceptor needs a turn of the loop to release its socket */

struct process {
    struct node node;
    struct arena arena;
    struct config config;
    struct stores stores;
    struct node_pages pages;
    struct metrics_site *metrics_site;
    struct node_engine *engine;
    struct group serving, background, links;
    struct waitq changed;
    bool open; /* it accepts connections */
    int status;
};

/* --- start --- */

static int read_config(struct process *p, const char **why)
{
    struct str text;
    if (fcntl(NODE_FD_LISTEN, F_GETFD) < 0 ||
        file_read_fd(&p->arena, NODE_FD_CONFIG, CONFIG_FILE_BYTES_MAX, &text)) {
        *why = "\"node\" is started by \"serve\" only";
        return ERR_INVALID;
    }
    close(NODE_FD_CONFIG);
    int err = config_parse(&p->arena, "settings", text, NULL, &p->config, why);
    if (!err && (*why = judge_config_problem(&p->arena, &p->config)))
        err = ERR_INVALID;
    return err ? err : stores_find(&p->arena, &p->config, &p->stores, why);
}

/* The simulated AI is on this machine: no proxy leads to it. */
static void open_clients(struct process *p)
{
    struct node *n = &p->node;
    struct http_client_options o = {.ca_file = p->config.ai_ca_file,
                                    .cert_file = p->config.ai_cert_file,
                                    .key_file = p->config.ai_key_file,
                                    .proxy = n->simulated ? "none" : p->config.ai_proxy,
                                    .plain_h2 = true,
                                    .metrics = n->metrics};
    if (config_uses_qdrant(&p->config))
        n->vectors_client = http_client_new(
            n->loop, &(struct http_client_options){.ca_file = p->config.vectors_ca_file,
                                                   .metrics = n->metrics});
    n->simulated_embedding =
        n->simulated && strcmp(p->config.ai_embedding_url, p->config.ai_url) == 0;
    n->client = n->embedding_client = http_client_new(n->loop, &o);
    if (n->simulated == n->simulated_embedding)
        return;
    o.proxy = p->config.ai_proxy;
    n->embedding_client = http_client_new(n->loop, &o);
}

static void open_stores(struct process *p)
{
    struct node *n = &p->node;
    struct redis_options o = {.url = p->stores.redis_url,
                              .password = p->stores.redis_password,
                              .metrics = n->metrics,
                              .name = "hot"};
    n->redis = redis_open(&p->links, &o);
    o.name = "download";
    n->redis_bulk = redis_open(&p->links, &o);
    o.name = "wake";
    o.command_ms = JOBS_WAKE_MS;
    n->redis_wake = redis_open(&p->links, &o);
    check(n->redis && n->redis_bulk && n->redis_wake);
    n->sql = sql_pool_new(
        n->loop, &(struct sql_options){.url = p->stores.mysql_url,
                                       .password = p->stores.mysql_password,
                                       .connections_max = (size_t)p->config.mysql_connections,
                                       .metrics = n->metrics});
    open_clients(p);
}

static void open_server(struct process *p)
{
    struct node *n = &p->node;
    struct http_options o = {
        .limits = http_limits_default, .metrics = n->metrics, .behind_tls = p->config.behind_tls};
    o.limits.connections_max = (size_t)p->config.http_connections_max;
    n->http = http_server_new(n->loop, &o);
    p->pages = (struct node_pages){n, vitals_new(n), node_warm_new(n),
                                   http_files_new(p->config.web_dir), p->engine};
    node_routes_add(n->http, &p->pages);
    node_engine_serve(p->engine);
    p->metrics_site = metrics_site_new(&p->pages);
}

static void close_all(struct process *p)
{
    struct node *n = &p->node;
    http_server_free(n->http);
    metrics_site_free(p->metrics_site);
    http_files_free(p->pages.files);
    vitals_free(p->pages.vitals);
    node_warm_free(p->pages.warm);
    if (n->embedding_client != n->client)
        http_client_free(n->embedding_client);
    if (n->vectors_client)
        http_client_free(n->vectors_client);
    http_client_free(n->client);
    node_engine_free(p->engine);
    sql_pool_free(n->sql);
    metrics_close(n->metrics);
    loop_free(n->loop);
}

/* --- running --- */

static void serve(struct task *t, void *arg)
{
    struct process *p = arg;
    int err = 0;
    while (!p->open && !p->node.draining && !err)
        err = waitq_wait(t, &p->changed);
    if (p->node.draining)
        return;
    err = http_server_run(t, p->node.http, NODE_FD_LISTEN);
    if (!err || p->node.draining)
        return;
    log_error("node", "cannot serve: %s", *task_error(t) ? task_error(t) : err_name(err));
    p->status = 1;
    p->node.draining = true;
    waitq_wake_all(&p->changed);
}

static void on_stop(void *arg)
{
    struct process *p = arg;
    p->node.draining = true;
    waitq_wake_all(&p->changed);
}

/* From now on connections are accepted; until then they wait, or other nodes take them. */
static void open_doors(struct process *p)
{
    if (!p->open)
        waitq_wake_all(&p->changed);
    p->open = true;
}

static void report(const char *line)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%.*s\n", (int)sizeof text - 2, line);
    ssize_t ignored = write(NODE_FD_READY, text, (size_t)n);
    (void)ignored; /* a supervisor that is reloading has closed the pipe */
}

/* Logged before the supervisor acts on it, so that the lines are in order. Missing tables have been
 * logged already. */
static void report_lacking(const struct health *h, const char *lacks)
{
    if (h->redis.err)
        log_warn("node", "serves, but Redis does not answer: %s", h->redis.problem);
    else if (h->mysql.err)
        log_warn("node", "serves, but MySQL does not answer: %s", h->mysql.problem);
    else
        log_info("node", "serves, but is not ready");
    report(lacks);
}

static bool look_if_ready(struct task *t, struct process *p, int64_t ran_ms, bool *told)
{
    struct task_scope scope = task_scope(t);
    struct health h;
    const char *lacks = node_lacks(t, &p->pages, &h);
    if (!lacks) {
        log_info("node", *told ? "is ready" : "serves");
        report("ready");
    } else if (ran_ms >= READY_WAIT_MS && !*told && !p->node.draining) {
        report_lacking(&h, lacks);
        *told = true;
    }
    if (!lacks || ran_ms >= DOORS_WAIT_MS)
        open_doors(p);
    task_scope_end(t, scope);
    return !lacks;
}

/* A node is ready when a submit would be taken. If that takes too long it serves what it can
 * (ACC-5), says what it lacks, and reports again when it is ready. */
static void become_ready(struct task *t, void *arg)
{
    struct process *p = arg;
    int64_t began_ms = loop_now_ms(p->node.loop);
    bool told = false;
    while (!look_if_ready(t, p, loop_now_ms(p->node.loop) - began_ms, &told) && !p->node.draining)
        if (backoff_wait(t, &(struct backoff){.ms = told ? UNREADY_LOOK_MS : READY_LOOK_MS}))
            break;
    open_doors(p);
}

/* A loop that does not turn does not report, and the supervisor replaces this process. */
static void report_alive(struct task *t, void *arg)
{
    (void)arg;
    while (task_sleep(t, ALIVE_MS) == 0)
        report(NODE_ALIVE);
}

static void drain(struct task *t, struct process *p)
{
    log_info("node", "draining %zu connections", http_server_connections(p->node.http));
    http_server_drain(p->node.http);
    int64_t old = task_deadline(t, p->config.drain_ms);
    int err = task_sleep(t, ACCEPT_END_MS);
    /* If the supervisor was killed, the next one needs the port before this drain is over. */
    close(NODE_FD_LISTEN);
    err = group_join(t, &p->serving);
    if (err)
        log_warn("node", "requests were cut off after %lld ms; raise drain_ms to give them longer",
                 (long long)p->config.drain_ms);
    task_deadline_restore(t, old);
}

static void live(struct task *t, void *arg)
{
    struct process *p = arg;
    check(task_go(&p->background, "sql", sql_pool_watch, p->node.sql) == 0);
    if (p->metrics_site)
        check(task_go(&p->background, "metrics", metrics_site_run, p->metrics_site) == 0);
    node_engine_prepare(t, p->engine);
    check(task_go(&p->serving, "serve", serve, p) == 0);
    node_roles_first(p->engine, p->pages.vitals, p->pages.warm);
    node_engine_go(p->engine);
    check(task_go(&p->background, "ready", become_ready, p) == 0);
    check(task_go(&p->background, "alive", report_alive, NULL) == 0);
    int err = 0;
    while (!p->node.draining && !err)
        err = waitq_wait(t, &p->changed);
    int64_t began = loop_now_ms(p->node.loop);
    drain(t, p);
    int64_t left = began + p->config.drain_ms - loop_now_ms(p->node.loop);
    node_engine_drain(t, p->engine, left);
    group_cancel(&p->background);
    err = group_join(t, &p->background);
    node_engine_part(t, p->engine);
    redis_close(p->node.redis);
    redis_close(p->node.redis_bulk);
    redis_close(p->node.redis_wake);
    err = group_join(t, &p->links);
    (void)err; /* this task is never canceled and has no deadline */
}

static void run(struct process *p, int index, int place, bool simulated)
{
    struct node *n = &p->node;
    struct group self;
    n->loop = loop_new(NULL);
    n->index = index;
    n->place = place;
    n->simulated = simulated;
    n->config = &p->config;
    n->group = &p->background;
    n->metrics = metrics_open(NODE_FD_METRICS, METRICS_NODES_MAX, index);
    loop_secret(n->loop, &n->incarnation, sizeof n->incarnation);
    waitq_init(&p->changed);
    group_init(&p->serving, n->loop);
    group_init(&p->background, n->loop);
    group_init(&p->links, n->loop);
    group_init(&self, n->loop);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    loop_on_signal(n->loop, SIGTERM, on_stop, p);
    loop_on_signal(n->loop, SIGINT, on_stop, p);
    open_stores(p);
    p->engine = node_engine_new(n);
    open_server(p);
    check(task_go(&self, "node", live, p) == 0);
    loop_run(n->loop);
    close_all(p);
}

int node_process(int index, int place, bool simulated)
{
    struct process p = {.status = 0};
    const char *why = NULL;
    arena_init(&p.arena);
    if (read_config(&p, &why)) {
        fprintf(stderr, "millrace node: %s\n", why);
        p.status = 1;
    } else {
        char name[16];
        snprintf(name, sizeof name, "node-%d", index);
        log_setup(p.config.log_level, p.config.log_format, name);
        run(&p, index, place, simulated);
    }
    arena_release(&p.arena);
    return p.status;
}
