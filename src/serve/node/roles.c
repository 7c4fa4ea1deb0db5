/* Every background role of a node, in one table (engine/store/role.h), and the tasks that wait for
 * other tasks instead of for the time. */
#include "app/embed/paper/paper.h"
#include "app/embed/post/post.h"
#include "app/extract/document.h"
#include "app/extract/extract.h"
#include "app/plan/plans.h"
#include "app/plan/template.h"
#include "app/pool/pools.h"
#include "engine/ai/permits.h"
#include "engine/crew/dispatcher.h"
#include "engine/jobs/pay.h"
#include "engine/people/api_token.h"
#include "engine/people/attempts.h"
#include "engine/people/hooks.h"
#include "engine/people/session.h"
#include "engine/people/switches.h"
#include "engine/runs/keeper.h"
#include "engine/search/collection.h"
#include "engine/setup/node.h"
#include "engine/store/cache.h"
#include "engine/store/keys.h"
#include "engine/watch/alerts.h"
#include "engine/watch/overview.h"
#include "serve/node/engine.h"
#include "serve/node/health.h"
#include "serve/node/warm.h"

#define MINUTE_MS 60000

static void start(struct node_engine *e, const struct role *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        roles_go(e->roles, e->node->group, &table[i]);
}

void node_roles_first(struct node_engine *e, struct vitals *v, struct node_warm *w)
{
    const struct role table[] = {
        {.name = "vitals",
         .round = vitals_role,
         .arg = v,
         .each_ms = 5000,
         .complaint = "the metrics of the process are not updated"},
        {.name = "warm",
         .round = node_warm_role,
         .arg = w,
         .each_ms = 1000,
         .each_ms_max = 30000,
         .complaint = "Redis cannot be filled: papers are read from MySQL"},
    };
    start(e, table, sizeof table / sizeof *table);
}

static void start_tasks(struct node *n)
{
    const struct {
        const char *name;
        task_fn *fn;
        void *arg;
    } tasks[] = {
        {"permits", permits_task, n->permits},                     /* wakes for workers that wait */
        {"embedding-permits", permits_task, n->embedding_permits}, /* NULL: no such service */
        {"jobs", jobs_task, n->jobs},                              /* for jobs that are pushed */
        {"overview", overview_task, n->overview},                  /* for pages that show it */
    };
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        if (tasks[i].arg)
            check(task_go(n->group, tasks[i].name, tasks[i].fn, tasks[i].arg) == 0);
}

/* Runs, and their money. */
static void start_work(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role table[] = {
        {.name = "ledger",
         .round = ledger_role,
         .arg = n->ledger,
         .each_ms = 200,
         .each_ms_max = 5000,
         .complaint = "money is not carried between the stores"},
        {.name = "dispatcher",
         .round = dispatcher_role,
         .arg = e->dispatcher,
         .each_ms = 200,
         .lock = &key_dispatcher_lock,
         .lock_ms = 3000,
         .complaint = "no runs are dispatched: runs wait in the queue"},
        {.name = "keeper",
         .round = keeper_role,
         .arg = &e->runs,
         .each_ms = 2000,
         .lock = &key_keeper_lock,
         .lock_ms = 10000,
         .complaint = "runs are not reconciled with MySQL"},
        {.name = "archive",
         .round = archive_role,
         .arg = &e->archive,
         .each_ms = 250, /* a run that has ended can be distilled within a second */
         .each_ms_max = 1000,
         .lock = &key_archive_lock,
         .lock_ms = 5000,
         .complaint = "runs that have ended are not archived: they cannot be distilled",
         .elsewhere = archive_elsewhere},
        {.name = "sweeper",
         .round = sweeper_role,
         .arg = &e->sweeper,
         .each_ms = 10000,
         .complaint = "users cannot be evicted from Redis: its memory will grow"},
        {.name = "audit",
         .round = audit_role,
         .arg = &e->audit,
         .each_ms = 5000,
         .lock = &key_audit_lock,
         .lock_ms = 60000,
         .complaint = "money is not audited",
         .elsewhere = audit_elsewhere},
        {.name = "audit-age",
         .round = audit_age_role,
         .arg = &e->audit,
         .each_ms = 5000,
         .complaint = "the age of the last audit is not known"},
    };
    start(e, table, sizeof table / sizeof *table);
}

/* Queues of jobs. */
static void start_jobs(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role table[] = {
        {.name = "jobs-keep",
         .round = jobs_keep_role,
         .arg = n->jobs,
         .each_ms = JOBS_KEEP_EACH_MS,
         .complaint = "leases of jobs are not renewed: other nodes may take them"},
        {.name = "jobs-fill",
         .round = jobs_refill_role,
         .arg = n->jobs,
         .each_ms = JOBS_FILL_EACH_MS,
         .lock = &key_jobs_lock,
         .lock_ms = 10000,
         .complaint = "queues of jobs are not compared with MySQL: lost jobs wait"},
        {.name = "jobs-soon",
         .round = jobs_soon_role,
         .arg = n->jobs,
         .each_ms = JOBS_SOON_EACH_MS,
         .each_ms_max = 10000,
         .lock = &key_jobs_soon_lock,
         .lock_ms = 10000,
         .complaint = "units of papers that were queued wait for some seconds"},
        {.name = "jobs-paid",
         .round = jobs_paid_role,
         .arg = &e->jobs_paid,
         .each_ms = JOBS_PAID_EACH_MS,
         .lock = &key_jobs_paid_lock,
         .lock_ms = 30000,
         .complaint = "payments of jobs are not looked at"},
    };
    start(e, table, sizeof table / sizeof *table);
}

/* Lists of pools are full, and what was handed out is noted. */
static void start_pools(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role table[] = {
        {.name = "pools",
         .round = pools_fill_role,
         .arg = n->pools,
         .each_ms = 5000,
         .lock = &key_pools_lock,
         .lock_ms = 10000,
         .complaint = "lists of pools are not filled: pops find them empty, and are slow"},
        {.name = "pool-marks",
         .round = pools_mark_role,
         .arg = n->pools,
         .each_ms = 250,
         .each_ms_max = 5000,
         .complaint = "items that were handed out are not marked as used"},
    };
    start(e, table, sizeof table / sizeof *table);
}

/* Plans in Redis are those of MySQL, and tasks come to an end. */
static void start_plans(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role table[] = {
        {.name = "plans",
         .round = plans_role,
         .arg = n->plans,
         .each_ms = PLANS_LOOK_EACH_MS,
         .each_ms_max = 1000,
         .complaint = "Redis is not told of changed plans: they are read from MySQL"},
        {.name = "plans-sweep",
         .round = plans_sweep_role,
         .arg = n->plans,
         .each_ms = PLANS_SWEEP_EACH_MS,
         .each_ms_max = 10000,
         .lock = &key_plans_lock,
         .lock_ms = 10000,
         .complaint = "old tasks of plans do not end, and deleted plans stay in the stores"},
        {.name = "plans-warm",
         .round = plans_warm_role,
         .arg = n->plans,
         .each_ms = PLANS_WARM_EACH_MS,
         .each_ms_max = 60000,
         .lock = &key_plans_warm_lock,
         .lock_ms = 30000,
         .complaint = "active plans are not loaded into Redis: each is when it is first read"},
    };
    start(e, table, sizeof table / sizeof *table);
}

/* Documents that are not needed go; tasks of extraction are closed, and webhooks told. */
static void start_extract(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role table[] = {
        {.name = "documents-sweep",
         .round = documents_sweep_role,
         .arg = n->documents,
         .each_ms = DOCUMENTS_SWEEP_EACH_MS,
         .each_ms_max = 10000,
         .lock = &key_documents_lock,
         .lock_ms = 10000,
         .complaint = "deleted documents and uploads that were cut stay in MySQL"},
        {.name = "extract-close",
         .round = extract_close_role,
         .arg = n->extract,
         .each_ms = EXTRACT_CLOSE_EACH_MS,
         .lock = &key_extract_lock,
         .lock_ms = 30000,
         .complaint = "tasks of extraction whose documents are done are not closed"},
        {.name = "hooks",
         .round = hooks_role,
         .arg = n->hooks,
         .each_ms = HOOKS_EACH_MS,
         .each_ms_max = 30000,
         .lock = &key_hooks_lock,
         .lock_ms = 30000,
         .complaint = "webhooks of users are not called"},
    };
    start(e, table, sizeof table / sizeof *table);
}

/* Points of posts are what their rows say. */
static void start_posts(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role table[] = {
        {.name = "post-tags",
         .round = posts_tags_role,
         .arg = n->posts,
         .each_ms = POST_TAGS_EACH_MS,
         .each_ms_max = 10000,
         .lock = &key_post_tags_lock,
         .lock_ms = 30000,
         .complaint = "new titles of posts, and which are hidden, do not reach their vectors"},
        {.name = "post-space",
         .round = posts_space_role,
         .arg = n->posts,
         .each_ms = POST_SPACE_EACH_MS,
         .each_ms_max = 30000,
         .lock = &key_post_space_lock,
         .lock_ms = 30000,
         .complaint = "posts are not embedded again by a new model: the former one answers"},
    };
    start(e, table, sizeof table / sizeof *table);
}

/* What is indexed of papers is what the corpus has. */
static void start_papers(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role table[] = {
        {.name = "paper-space",
         .round = papers_space_role,
         .arg = n->papers,
         .each_ms = PAPER_SPACE_EACH_MS,
         .each_ms_max = 30000,
         .lock = &key_paper_space_lock,
         .lock_ms = 30000,
         .complaint = "papers are not embedded again by a new model: the former one answers"},
        {.name = "paper-news",
         .round = papers_news_role,
         .arg = n->papers,
         .each_ms = PAPER_NEWS_EACH_MS,
         .each_ms_max = 60000,
         .lock = &key_paper_news_lock,
         .lock_ms = 60000,
         .complaint = "papers that a load has changed are not indexed again"},
    };
    start(e, table, sizeof table / sizeof *table);
}

/* Texts become vectors, if there is a service for it; those that are there can be searched. */
static void start_embedding(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role collections[] = {
        {.name = "collections",
         .round = collection_role,
         .arg = n->collections,
         .each_ms = COLLECTION_EACH_MS,
         .each_ms_max = 5000,
         .complaint = "indexes of vectors are not looked after: searches by meaning miss changes"},
    };
    start(e, collections, 1);
    const struct role table[] = {
        {.name = "embedding-keys",
         .round = permits_role,
         .arg = n->embedding_permits,
         .each_ms = 500, /* changes by an admin hold within a second */
         .complaint = "keys of the embedding service cannot be read: they are used as they were"},
    };
    if (n->embedding_permits)
        start(e, table, sizeof table / sizeof *table);
}

/* What the node knows, and what it tells. */
static void start_upkeep(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role table[] = {
        {.name = "cache",
         .round = cache_role,
         .arg = n->cache,
         .each_ms = CACHE_LOOK_EACH_MS,
         .complaint = "stale records cannot be dropped from Redis: changes of users are not seen"},
        {.name = "templates",
         .round = plan_templates_role,
         .arg = n->plan_templates,
         .each_ms = PLAN_TEMPLATES_LOOK_EACH_MS,
         .each_ms_max = 5000,
         .complaint = "prompt templates cannot be put into Redis: they are read from MySQL"},
        {.name = "sessions",
         .round = session_role,
         .arg = n->cache,
         .each_ms = 10 * MINUTE_MS,
         .complaint = "expired sessions cannot be removed: their rows stay in table session"},
        {.name = "tokens",
         .round = api_tokens_role,
         .arg = n->tokens,
         .each_ms = API_TOKENS_EACH_MS,
         .each_ms_max = MINUTE_MS,
         .complaint = "when API tokens were last used is not noted"},
        {.name = "attempts",
         .round = attempts_role,
         .arg = n->attempts,
         .each_ms = ATTEMPTS_WINDOW_MS / 5,
         .complaint = "old log-in attempts cannot be removed: they stay in Redis"},
        {.name = "registrations",
         .round = attempts_role,
         .arg = n->registrations,
         .each_ms = REGISTRATIONS_WINDOW_MS / 5,
         .complaint = "old registrations cannot be removed: they stay in Redis"},
        {.name = "switches",
         .round = switches_role,
         .arg = n->switches,
         .each_ms = 500,
         .complaint = "switches cannot be read: their last values stay"},
        {.name = "keys",
         .round = permits_role,
         .arg = n->permits,
         .each_ms = 500, /* changes by an admin hold within a second */
         .complaint = "api_list cannot be read: its keys are used as they were"},
        {.name = "alerts",
         .round = alerts_role,
         .arg = n->alerts,
         .each_ms = 1000,
         .complaint = "this node does not watch for alerts"},
    };
    start(e, table, sizeof table / sizeof *table);
}

void node_roles_start(struct node_engine *e)
{
    start_work(e);
    start_jobs(e);
    start_pools(e);
    start_plans(e);
    start_extract(e);
    start_posts(e);
    start_papers(e);
    start_embedding(e);
    start_upkeep(e);
    start_tasks(e->node);
}
