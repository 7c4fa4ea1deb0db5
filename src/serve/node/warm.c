#include "serve/node/warm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/papers/warm.h"
#include "engine/setup/schema.h"
#include "engine/store/generation.h"
#include "engine/store/keys.h"
#include "loop/backoff.h"
#include "serve/node/health.h"

#define TASKS          4 /* blocks built at a time */
#define SETTLE_LOOK_MS 10

struct node_warm {
    struct node *node;
    struct warm_progress progress;
    int64_t database; /* its newest migration; -1: not read yet */
    bool schema_fine;
    bool tried;  /* a first try with both stores is over */
    bool probed; /* it is known whether they answer */
    bool filled;
    struct generation generation;                          /* of Redis, when the last try began */
    char said[sizeof((struct warm_progress *)0)->problem]; /* last in the log */
};

struct node_warm *node_warm_new(struct node *n)
{
    struct node_warm *w = check_memory(calloc(1, sizeof *w));
    w->node = n;
    w->database = -1;
    n->warm = &w->progress;
    return w;
}

void node_warm_free(struct node_warm *w)
{
    free(w);
}

/* --- one try --- */

static int refuse(struct node_warm *w, int err, const char *why)
{
    w->progress.state = WARM_FAILED;
    snprintf(w->progress.problem, sizeof w->progress.problem, "%s", why);
    return err;
}

static int await_stores(struct task *t, struct node_warm *w)
{
    struct health h;
    health_probe(t, w->node, false, &h);
    w->probed = true;
    if (health_fine(&h))
        return 0;
    w->progress.state = WARM_WAITING;
    w->progress.problem[0] = '\0';
    return ERR_UNAVAILABLE;
}

static int look_at_schema(struct task *t, struct node_warm *w)
{
    struct schema_report r;
    int err = schema_check(t, w->node->sql, &r);
    if (err) {
        /* When the database is unreachable the last answer stands. */
        w->schema_fine = w->schema_fine && err != ERR_CONFLICT && err != ERR_EXISTS;
        return refuse(w, err, *task_error(t) ? task_error(t) : err_name(err));
    }
    w->database = r.database;
    w->schema_fine = r.database == r.program;
    return w->schema_fine ? 0
                          : refuse(w, ERR_CONFLICT,
                                   "the database lacks migrations: run \"millrace db migrate\"");
}

/* Whether readers find a catalog before this node has loaded it: Redis has one from earlier, or
 * MySQL has no journals. Without this a node would wait for the lock of one that died while
 * loading. */
static bool finds_catalog(struct task *t, const struct node *n)
{
    const struct redis_reply *reply;
    struct sql_rows r;
    if (!redis_call(t, n->redis, key_journals, &reply, STR("EXISTS"), key_journals) &&
        reply->integer)
        return true;
    return !sql_call(t, n->sql, &r, "SELECT 1 FROM contentlist LIMIT 1") && r.count == 0;
}

static int try_once(struct task *t, struct node_warm *w)
{
    const struct node *n = w->node;
    int err = await_stores(t, w);
    if (err)
        return err;
    struct generation now = generation_now(n->redis);
    if (!str_eq(generation_str(&now), generation_str(&w->generation)))
        w->progress.catalog_loaded = false; /* it may have come back empty */
    w->generation = now;
    err = look_at_schema(t, w);
    struct warm_options o = {.redis = n->redis, .sql = n->sql, .blocks = n->blocks, .tasks = TASKS};
    if (!err && !w->progress.catalog_loaded)
        w->progress.catalog_loaded = finds_catalog(t, n);
    if (!err)
        err = warm_run(t, &o, &w->progress);
    w->tried = true;
    return err;
}

/* --- repeating --- */

/* Of the tables: once, however often they are looked for. What else fails, the role reports. */
static void tell(struct node_warm *w)
{
    const struct warm_progress *p = &w->progress;
    if (w->filled)
        log_info("warm",
                 "Redis is filled: %lld blocks, %lld papers, of which %lld blocks were "
                 "built here",
                 (long long)p->blocks, (long long)p->papers, (long long)p->blocks_built);
    else if (!w->schema_fine && p->state == WARM_FAILED && strcmp(w->said, p->problem) != 0)
        log_warn("warm", "cannot fill Redis: %s; it is tried again", p->problem);
    memcpy(w->said, p->problem, sizeof w->said);
}

int node_warm_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    struct node_warm *w = arg;
    const struct redis *r = w->node->redis;
    /* Until Redis is another one. One that is only away may come back as it was. */
    if (w->filled && (!redis_up(r) || generation_lasts(r, &w->generation)))
        return 0;
    int err = try_once(t, w);
    if (task_canceled(t))
        return ERR_CANCELED;
    w->filled = !err;
    tell(w);
    /* Backoff is for failures to fill: stores and tables are looked for at every interval. */
    return w->schema_fine && w->progress.state != WARM_WAITING ? err : 0;
}

/* --- state --- */

void node_warm_settle(struct task *t, const struct node_warm *w, int64_t ms)
{
    int64_t until = loop_now_ms(w->node->loop) + ms;
    while (!w->tried && !w->progress.catalog_loaded && loop_now_ms(w->node->loop) < until &&
           !(w->probed && w->progress.state == WARM_WAITING))
        if (backoff_wait(t, &(struct backoff){.ms = SETTLE_LOOK_MS}))
            return;
}

const char *node_warm_lacks(const struct node_warm *w)
{
    const struct warm_progress *p = &w->progress;
    if (w->schema_fine && p->catalog_loaded && generation_lasts(w->node->redis, &w->generation))
        return NULL;
    if (p->state == WARM_FAILED)
        return p->problem;
    return "the catalog has not been loaded yet";
}

bool node_warm_has_tables(const struct node_warm *w)
{
    return w->schema_fine;
}

int64_t node_warm_database(const struct node_warm *w)
{
    return w->database;
}
