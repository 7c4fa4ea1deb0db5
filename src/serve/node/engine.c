#include "serve/node/engine.h"

#include <stdlib.h>
#include <unistd.h>

#include "app/account/routes.h"
#include "app/admin/routes.h"
#include "app/catalog/routes.h"
#include "app/distill/application.h"
#include "app/distill/routes.h"
#include "app/download/downloads.h"
#include "app/download/routes.h"
#include "app/embed/paper/paper.h"
#include "app/embed/paper/routes.h"
#include "app/embed/post/post.h"
#include "app/embed/post/routes.h"
#include "app/embed/search/routes.h"
#include "app/embed/search/search.h"
#include "app/extract/document.h"
#include "app/extract/extract.h"
#include "app/extract/routes.h"
#include "app/plan/plans.h"
#include "app/plan/routes.h"
#include "app/plan/template.h"
#include "app/plan/template_routes.h"
#include "app/pool/pools.h"
#include "app/pool/routes.h"
#include "app/screen/application.h"
#include "app/screen/routes.h"
#include "base/log.h"
#include "engine/ai/ai.h"
#include "engine/ai/embedding.h"
#include "engine/ai/embedding_reply.h"
#include "engine/ai/faults.h"
#include "engine/ai/permits.h"
#include "engine/api/api.h"
#include "engine/crew/claims.h"
#include "engine/crew/crew.h"
#include "engine/crew/dispatcher.h"
#include "engine/crew/members.h"
#include "engine/jobs/jobs.h"
#include "engine/jobs/limits.h"
#include "engine/judge/judge.h"
#include "engine/money/audit.h"
#include "engine/money/ledger.h"
#include "engine/money/sweeper.h"
#include "engine/papers/block.h"
#include "engine/papers/catalog.h"
#include "engine/people/api_token.h"
#include "engine/people/attempts.h"
#include "engine/people/hooks.h"
#include "engine/people/password.h"
#include "engine/people/session.h"
#include "engine/people/switches.h"
#include "engine/runs/archive.h"
#include "engine/search/collection.h"
#include "engine/setup/address.h"
#include "engine/setup/config.h"
#include "engine/store/cache.h"
#include "engine/watch/alerts.h"
#include "engine/watch/controls.h"
#include "engine/watch/overview.h"
#include "engine/watch/standing.h"
#include "loop/backoff.h"
#include "serve/node/machines.h"
#include "serve/node/routes.h"
#include "wire/sql.h"

static const struct api_application applications[] = {
    {"account", account_routes},
    {"catalog", catalog_routes},
    {"distill", distill_routes},
    {"download", download_routes},
    {"extract", extract_routes},
    {"plan", plan_routes},
    {"pool", pool_routes},
    {"post", post_routes},
    {"screen", screen_routes},
    {"search", search_routes},
    ADMIN_APPLICATIONS,
    {"admin embedding", admin_embedding_routes},
    {"admin pools", admin_pool_routes},
    {"admin templates", admin_template_routes},
    {"server", node_routes_told},
};

const struct api_table node_api = {applications, sizeof applications / sizeof *applications};

static const struct application *const run_applications[] = {&screen_application,
                                                             &distill_application, NULL};

#define LOOK_MS        2000 /* if MySQL hangs, the node starts without its answer */
#define TABLES_LOOK_MS 1000
#define PART_MS        1000 /* to release leases: other nodes need not wait until they expire */

/* A service of its own beside the chat, with its own keys; none if there is no address. */
static void make_embedding(struct node *n)
{
    const struct config *c = n->config;
    if (!*c->ai_embedding_url)
        return;
    n->embedding_permits = permits_new(&(struct permits_options){.service = AI_EMBEDDING,
                                                                 .redis = n->redis,
                                                                 .sql = n->sql,
                                                                 .metrics = n->metrics,
                                                                 .keyless = n->simulated_embedding,
                                                                 .jobs_share = c->ai_jobs_share});
    n->embedding_faults = ai_faults_new(n->metrics, AI_EMBEDDING);
    n->embedding_ai = ai_new(&(struct ai_options){.service = AI_EMBEDDING,
                                                  .url = c->ai_embedding_url,
                                                  .path = AI_EMBEDDING_PATH,
                                                  .headers = c->ai_embedding_headers,
                                                  .key_header = c->ai_embedding_key_header,
                                                  .timeout_ms = c->ai_timeout_ms,
                                                  .reply_bytes_max = EMBEDDING_REPLY_BYTES_MAX,
                                                  .client = n->embedding_client,
                                                  .permits = n->embedding_permits,
                                                  .metrics = n->metrics,
                                                  .faults = n->embedding_faults});
    n->embedding =
        embedding_new(&(struct embedding_options){.ai = n->embedding_ai,
                                                  .permits = n->embedding_permits,
                                                  .metrics = n->metrics,
                                                  .model = c->ai_embedding_model,
                                                  .params = c->ai_embedding_params,
                                                  .dimensions = c->ai_embedding_dimensions,
                                                  .batch_texts = c->ai_embedding_batch_max,
                                                  .batch_tokens = c->ai_embedding_batch_tokens});
}

/* What was embedded can be looked at without the service, too. */
static void make_search(struct node *n)
{
    make_embedding(n);
    n->collections = collections_new(&(struct collections_options){
        .config = n->config,
        .sql = n->sql,
        .embedding = n->embedding,
        .metrics = n->metrics,
        .ai = n->embedding_ai,
        .permits = n->embedding_permits,
        .qdrant = n->vectors_client,
        .calls_max = {[COLLECTION_PAPERS] = n->config->embedding_papers_calls}});
}

static void free_embedding(struct node *n)
{
    if (!n->embedding_permits)
        return;
    embedding_free(n->embedding);
    ai_free(n->embedding_ai);
    ai_faults_free(n->embedding_faults);
    permits_free(n->embedding_permits);
}

/* The parts that workers need. */
static void make_workers(struct node_engine *e)
{
    struct node *n = e->node;
    const char *why = NULL;
    e->runs = (struct runs){.redis = n->redis,
                            .sql = n->sql,
                            .cache = n->cache,
                            .ledger = n->ledger,
                            .catalog = n->catalog};
    n->runs = &e->runs;
    e->archive = (struct archive){
        .redis = n->redis, .sql = n->sql, .ledger = n->ledger, .metrics = n->metrics};
    n->archive = &e->archive;
    n->applications = run_applications;
    n->permits = permits_new(&(struct permits_options){.redis = n->redis,
                                                       .sql = n->sql,
                                                       .metrics = n->metrics,
                                                       .keyless = n->simulated,
                                                       .jobs_share = n->config->ai_jobs_share});
    n->faults = ai_faults_new(n->metrics, AI_CHAT);
    n->ai = ai_new(&(struct ai_options){.service = AI_CHAT,
                                        .url = n->config->ai_url,
                                        .path = AI_CHAT_PATH,
                                        .headers = n->config->ai_headers,
                                        .key_header = n->config->ai_key_header,
                                        .timeout_ms = n->config->ai_timeout_ms,
                                        .client = n->client,
                                        .permits = n->permits,
                                        .metrics = n->metrics,
                                        .faults = n->faults});
    check(n->ai); /* the supervisor has put in the address of the simulated AI */
    int err = judge_new(
        &e->arena, &(struct judge_options){.ai = n->ai, .blocks = n->blocks, .config = n->config},
        &n->judge, &why);
    if (err)
        log_error("node", "%s", why); /* the supervisor has checked the same settings */
    check(!err);
    e->runs.judge = n->judge;
    e->dispatcher = dispatcher_new(n);
    e->crew = crew_new(n);
    jobs_cap(n->jobs, &(struct claimant){.redis = n->redis,
                                         .cache = n->cache,
                                         .members = n->members,
                                         .incarnation = n->incarnation});
    e->roles = roles_new(n->redis, &n->draining);
}

/* The overview for admins, and the controls they have. */
static void make_controls(struct node_engine *e)
{
    struct node *n = e->node;
    struct alerts_source *sources = ARENA_ARRAY(&e->arena, struct alerts_source, 2);
    sources[0] = (struct alerts_source){"pool:", pools_low_look, n->pools};
    sources[1] = (struct alerts_source){MACHINES_PREFIX, machines_look, n->collections};
    char host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    n->id = control_node_id(&e->arena, host, n->config->data_dir, n->place);
    n->controls = controls_new(n);
    n->standing = standing_new(n);
    n->overview = overview_new(n);
    n->alerts = alerts_new(&(struct alerts_options){.node = n,
                                                    .overview = n->overview,
                                                    .url = n->config->alert_webhook_url,
                                                    .ca_file = n->config->alert_ca_file,
                                                    .records_max = n->config->alert_billing_records,
                                                    .standing_ms = n->config->alert_standing_ms,
                                                    .queue_ms = n->config->alert_queue_ms,
                                                    .sources = sources,
                                                    .source_count = 2});
}

struct node_engine *node_engine_new(struct node *n)
{
    struct node_engine *e = check_memory(calloc(1, sizeof *e));
    arena_init(&e->arena);
    e->node = n;
    n->blocks = blocks_new(
        &(struct blocks_options){.redis = n->redis, .sql = n->sql, .metrics = n->metrics});
    n->cache =
        cache_new(&(struct cache_options){.redis = n->redis, .sql = n->sql, .metrics = n->metrics});
    n->ledger = ledger_new(&(struct ledger_options){.redis = n->redis,
                                                    .sql = n->sql,
                                                    .cache = n->cache,
                                                    .metrics = n->metrics,
                                                    .group = n->group});
    n->jobs = jobs_new(&(struct jobs_options){.redis = n->redis,
                                              .redis_wake = n->redis_wake,
                                              .sql = n->sql,
                                              .metrics = n->metrics,
                                              .incarnation = n->incarnation,
                                              .drained = &n->drained});
    n->limits = limits_new(n->redis, n->metrics, n->config);
    n->downloads = downloads_new(&(struct downloads_options){.redis = n->redis_bulk,
                                                             .sql = n->sql,
                                                             .cache = n->cache,
                                                             .ledger = n->ledger,
                                                             .metrics = n->metrics,
                                                             .jobs = n->jobs,
                                                             .incarnation = n->incarnation});
    n->pools =
        pools_new(&(struct pools_options){.redis = n->redis,
                                          .redis_bulk = n->redis_bulk,
                                          .sql = n->sql,
                                          .group = n->group,
                                          .metrics = n->metrics,
                                          .lists_bytes_max = n->config->pool_list_bytes_max});
    n->documents = documents_new(n);
    n->plan_templates = plan_templates_new(
        &(struct plan_templates_options){.redis = n->redis, .sql = n->sql, .metrics = n->metrics});
    n->passwords = passwords_new();
    n->tokens = api_tokens_new(n->cache, n->group);
    n->attempts = attempts_new(n->redis, n->metrics, n->config->login_address_max);
    n->registrations =
        attempts_new_registrations(n->redis, n->metrics, n->config->new_user_hourly_max);
    n->switches = switches_new(n->sql);
    n->proxies = address_list_new(&e->arena, n->config->trusted_proxies);
    e->catalog = (struct catalog){n->redis, n->sql, n->cache};
    n->catalog = &e->catalog;
    e->sweeper = (struct sweeper){
        .redis = n->redis, .cache = n->cache, .ledger = n->ledger, .metrics = n->metrics};
    e->audit = (struct audit){.redis = n->redis,
                              .sql = n->sql,
                              .ledger = n->ledger,
                              .metrics = n->metrics,
                              .memory = audit_memory_new()};
    e->jobs_paid = (struct jobs_paid){
        .jobs = n->jobs,
        .ledger = n->ledger,
        .charged = metric(n->metrics, METRIC_COUNTER, "millrace_jobs_charged_late_total", "",
                          "Completed jobs whose payment was missing, and was made good.")};
    e->api = api_new(n, node_api.applications, node_api.count);
    make_workers(e);
    make_search(n);
    n->plans = plans_new(n);
    n->hooks = hooks_new(n);
    n->extract = extract_new(n);
    n->posts = posts_new(n);
    n->papers = papers_new(n);
    n->searches = searches_new(n);
    make_controls(e);
    return e;
}

void node_engine_free(struct node_engine *e)
{
    struct node *n = e->node;
    alerts_free(n->alerts);
    overview_free(n->overview);
    standing_free(n->standing);
    controls_free(n->controls);
    roles_free(e->roles);
    audit_memory_free(e->audit.memory);
    crew_free(e->crew);
    dispatcher_free(e->dispatcher);
    judge_free(n->judge);
    searches_free(n->searches);
    collections_free(n->collections);
    free_embedding(n);
    ai_free(n->ai);
    ai_faults_free(n->faults);
    permits_free(n->permits);
    api_free(e->api);
    switches_free(n->switches);
    attempts_free(n->registrations);
    attempts_free(n->attempts);
    api_tokens_free(n->tokens);
    passwords_free(n->passwords);
    jobs_free(n->jobs);
    papers_free(n->papers);
    posts_free(n->posts);
    extract_free(n->extract);
    hooks_free(n->hooks);
    plans_free(n->plans);
    plan_templates_free(n->plan_templates);
    documents_free(n->documents);
    limits_free(n->limits);
    pools_free(n->pools);
    downloads_free(n->downloads);
    ledger_free(n->ledger);
    cache_free(n->cache);
    blocks_free(n->blocks);
    arena_release(&e->arena);
    free(e);
}

void node_engine_serve(struct node_engine *e)
{
    api_serve(e->api, e->node->http);
}

/* True also when MySQL does not answer: it may have them. Selecting from a missing table would be
 * logged as an error. */
static bool has_tables(struct task *t, struct node *n)
{
    struct sql_rows r;
    int err = sql_call(t, n->sql, &r,
                       "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE()"
                       " AND table_name = 'setting'");
    return err || r.count;
}

/* A drained node takes no work from its start on, and a closed registration stays closed. */
void node_engine_prepare(struct task *t, struct node_engine *e)
{
    struct task_scope scope = task_scope(t);
    int64_t old = task_deadline(t, LOOK_MS);
    e->tables = has_tables(t, e->node);
    if (e->tables && switches_look(t, e->node->switches))
        log_debug("node", "switches are not known yet: %s", task_error(t));
    task_deadline_restore(t, old);
    task_scope_end(t, scope);
}

static void start_roles(struct node_engine *e)
{
    e->started = true;
    node_roles_start(e);
    crew_go(e->crew);
}

/* Without tables every role would fail and log it; node/warm.c logs once that they are missing. */
static void await_tables(struct task *t, void *arg)
{
    struct node_engine *e = arg;
    while (!e->tables) {
        if (backoff_wait(t, &(struct backoff){.ms = TABLES_LOOK_MS}))
            return;
        node_engine_prepare(t, e);
    }
    if (!e->node->draining && !task_canceled(t))
        start_roles(e);
}

void node_engine_go(struct node_engine *e)
{
    if (e->tables)
        start_roles(e);
    else
        check(task_go(e->node->group, "roles", await_tables, e) == 0);
}

const char *node_engine_lacks(const struct node_engine *e)
{
    if (!e->started)
        return "the background roles have not been started yet";
    if (!cache_trusts_redis(e->node->cache)) /* then there is neither a submit nor a charge */
        return "records in Redis have not been checked against MySQL yet";
    return NULL;
}

void node_engine_drain(struct task *t, struct node_engine *e, int64_t ms)
{
    int64_t began_ms = loop_now_ms(e->node->loop);
    crew_drain(t, e->crew, ms);
    jobs_drain(t, e->node->jobs, ms - (loop_now_ms(e->node->loop) - began_ms));
}

void node_engine_part(struct task *t, struct node_engine *e)
{
    int64_t old = task_deadline(t, PART_MS);
    roles_part(t, e->roles);
    alerts_part(t, e->node->alerts);
    if (e->started)
        pools_part(t, e->node->pools);
    if (e->started && e->node->members->count == 0) { /* this was the last node */
        permits_close(t, e->node->permits);
        if (e->node->embedding_permits)
            permits_close(t, e->node->embedding_permits);
    }
    task_deadline_restore(t, old);
}
