/* alerts_fixture.h -- what the tests of alerts have in common: nodes that watch, on real stores.
 * The overview and the webhook are made up: what is defined below is linked instead of the real
 * ones. */
#ifndef ENGINE_WATCH_ALERTS_FIXTURE_H
#define ENGINE_WATCH_ALERTS_FIXTURE_H

#include "engine/watch/alerts_private.h"

#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "engine/ai/service.h"
#include "engine/crew/members.h"
#include "engine/runs/state.h"
#include "engine/setup/schema.h"
#include "engine/store/keys.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

#define PATIENCE_MS 5000
#define QUIET_MS    60 /* in which nothing more is said */
#define RECORDS_MAX 5

static struct mariadb server;
static struct store_redis store;
static struct metrics *metrics;

/* --- what is made up --- */

static struct overview_data now;
static bool certain = true;

int overview_wait(struct task *t, struct overview *o, uint64_t seen,
                  const struct overview_data **out)
{
    (void)t, (void)o;
    now.number = seen + 1;
    *out = &now;
    return 0;
}

bool members_certain(const struct members *m, int64_t now_ms)
{
    (void)m, (void)now_ms;
    return certain;
}

static struct alerts_fact facts[ALERTS_FACTS_MAX];
static size_t fact_count;
static bool facts_known;

static int look(struct task *t, void *arg, struct alerts_fact **out, size_t *count)
{
    if (!facts_known)
        return task_fail(t, ERR_UNAVAILABLE, "not known");
    check(arg == facts);
    *out = facts;
    *count = fact_count;
    return 0;
}

static const struct alerts_source sources[] = {{"pool:", look, facts}};

static char told[2000]; /* "begun redis;ended redis;" */
static char last[1000]; /* text of the last message */
static char id[100];    /* of the first message after fine() */
static int other_ids;   /* messages with another one */
static int hook_status, tries;
static bool hook_slow; /* it takes what it is sent, and its answer is late */

struct http_client *http_client_new(struct loop *l, const struct http_client_options *o)
{
    (void)l, (void)o;
    return NULL;
}

void http_client_free(struct http_client *c)
{
    (void)c;
}

int http_call(struct task *t, struct http_client *c, const struct http_call *call,
              struct http_response *out)
{
    (void)c;
    const struct json *j;
    tries++;
    check(strcmp(call->url, "http://hook/secret") == 0);
    check(json_parse(task_arena(t), call->body, &j, NULL) == 0);
    *out = (struct http_response){.status = hook_status};
    if (hook_status == 0)
        return task_fail(t, ERR_UNAVAILABLE, "the webhook is away");
    if (hook_status != 200)
        return 0;
    size_t n = strlen(told);
    snprintf(told + n, sizeof told - n, "%.*s %.*s;", STR_ARG(json_str(json_get(j, "event"))),
             STR_ARG(json_str(json_get(j, "alert"))));
    snprintf(last, sizeof last, "%.*s", STR_ARG(json_str(json_get(j, "text"))));
    struct str its = json_str(json_get(j, "id"));
    if (!*id)
        snprintf(id, sizeof id, "%.*s", STR_ARG(its));
    other_ids += !str_eq(its, str_of(id));
    return hook_slow ? ERR_TIMEOUT : 0;
}

/* --- nodes that watch --- */

struct side {
    struct node node;
    struct group links, tasks;
    struct alerts *alerts;
};

static void open_side(struct task *t, struct side *s, uint64_t incarnation)
{
    static struct members members;
    *s = (struct side){.node = {.incarnation = incarnation, .metrics = metrics}};
    group_init(&s->links, task_loop(t));
    group_init(&s->tasks, task_loop(t));
    s->node.loop = task_loop(t);
    s->node.members = &members;
    s->node.redis =
        redis_open(&s->links, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    s->node.sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    s->alerts = alerts_new(&(struct alerts_options){.node = &s->node,
                                                    .url = "http://hook/secret",
                                                    .records_max = RECORDS_MAX,
                                                    .store_ms = 30,
                                                    .standing_ms = 30,
                                                    .records_ms = 30,
                                                    .sources = sources,
                                                    .source_count = 1});
    check(redis_call(t, s->node.redis, STR_NULL, NULL, STR("PING")) == 0);
    role_in(&s->tasks, alerts_role, s->alerts, 10);
}

/* killed: it lets go of nothing. */
static void close_side(struct task *t, struct side *s, bool killed)
{
    group_cancel(&s->tasks);
    check(group_join(t, &s->tasks) == 0);
    if (!killed)
        alerts_part(t, s->alerts);
    alerts_free(s->alerts);
    sql_pool_free(s->node.sql);
    redis_close(s->node.redis);
    check(group_join(t, &s->links) == 0);
}

static void expect(struct task *t, const char *want, const char *name)
{
    for (int ms = 0; ms < PATIENCE_MS && strcmp(told, want) != 0; ms += 5)
        check(task_sleep(t, 5) == 0);
    check(task_sleep(t, QUIET_MS) == 0);
    is_str(str_of(told), str_of(want), "%s", name);
    told[0] = '\0';
}

static void fine(void)
{
    now = (struct overview_data){.audited_ms = 1, .keys_known = true, .standing_known = true};
    now.redis.up = now.mysql.up = true;
    now.redis.problem = now.mysql.problem = STR("no answer");
    hook_status = 200;
    certain = facts_known = true;
    fact_count = 0;
    told[0] = id[0] = '\0';
    tries = other_ids = 0;
}

static void reset(struct task *t)
{
    struct side s;
    fine();
    open_side(t, &s, 1);
    group_cancel(&s.tasks);
    check(sql_call(t, s.node.sql, NULL, "DELETE FROM setting") == 0);
    check(redis_call(t, s.node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    close_side(t, &s, true);
}

static void make_schema(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    struct schema_report report;
    check(schema_migrate(t, sql, &report) == 0);
    sql_pool_free(sql);
}

static inline void alerts_start(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    mariadb_start(&server, NULL);
    store_redis_start(&store, NULL);
    metrics = metrics_open(-1, 1, 0);
    tap_task(make_schema, NULL, true);
}

static inline int alerts_stop(void)
{
    metrics_close(metrics);
    store_redis_stop(&store);
    mariadb_release(&server);
    return tap_done();
}
#endif
