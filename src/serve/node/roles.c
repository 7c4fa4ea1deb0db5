/* Every background role of a node, in one table (engine/store/role.h), and the tasks that wait for
 * other tasks instead of for the time. */
#include "app/download/downloads.h"
#include "engine/ai/permits.h"
#include "engine/crew/dispatcher.h"
#include "engine/people/attempts.h"
#include "engine/people/session.h"
#include "engine/people/switches.h"
#include "engine/runs/keeper.h"
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
        {"permits", permits_task, n->permits},       /* wakes for workers that wait */
        {"downloads", downloads_task, n->downloads}, /* for files that are asked for */
        {"overview", overview_task, n->overview},    /* for pages that show it */
    };
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
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
        {.name = "sessions",
         .round = session_role,
         .arg = n->cache,
         .each_ms = 10 * MINUTE_MS,
         .complaint = "expired sessions cannot be removed: their rows stay in table session"},
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
    start_upkeep(e);
    start_tasks(e->node);
}
