/* Once for each episode, whichever node watches: on real stores. The overview and the webhook are
 * made up: what is defined below is linked instead of the real ones. */
#include "engine/watch/alerts_private.h"

#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
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
        return task_fail(t, ERR_UNAVAILABLE, "nobody is there");
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

static void say_state(struct task *t, struct side *s, const char *qid, const char *state)
{
    check(sql_call(t, s->node.sql, NULL, "UPDATE query_log SET status = ? WHERE query_id = ?",
                   sql_text(str_of(state)), sql_text(str_of(qid))) == 0);
}

/* Two of user 7 and one of user 8 wait for the operator, and one of user 9 for money. */
static void add_runs(struct task *t, struct side *s)
{
    check(sql_call(t, s->node.sql, NULL,
                   "INSERT INTO query_log (query_id, uid, search_params, status, reason) VALUES"
                   " ('run1', 7, '{}', 'PAUSED', ?), ('run2', 7, '{}', 'PAUSED', ?),"
                   " ('run3', 8, '{}', 'PAUSED', ?), ('run4', 9, '{}', 'PAUSED', ?)",
                   sql_text(STR(RUN_REASON_UNRECORDED ": one")),
                   sql_text(STR(RUN_REASON_UNRECORDED ": two")), sql_text(STR(RUN_REASON_ACCOUNT)),
                   sql_text(STR(RUN_REASON_FUNDS))) == 0);
}

/* --- tests --- */

static void test_kinds(struct task *t, void *arg)
{
    (void)arg;
    struct side a, b;
    reset(t);
    open_side(t, &a, 0xa);
    open_side(t, &b, 0xb);
    expect(t, "", "nothing is wrong");
    now.redis.up = false;
    expect(t, "begun redis;", "a store is down: one message, whichever node watches");
    ok(strstr(last, "no answer") != NULL, "and why");
    now.redis.up = true;
    expect(t, "ended redis;", "and one when it is back");
    now.mysql.up = false;
    expect(t, "begun mysql;", "the other one");
    now.mysql.up = true;
    expect(t, "ended mysql;", "is back");
    now.records = RECORDS_MAX;
    expect(t, "", "as many records as may wait");
    now.records = RECORDS_MAX + 1;
    expect(t, "begun billing;", "too many");
    now.redis.up = false;
    now.records = 0;
    expect(t, "begun redis;", "Redis is away: how many wait is not known");
    now.redis.up = true;
    expect(t, "ended billing;ended redis;", "until it is back");
    now.drift_cents = 1234;
    now.findings = 2;
    expect(t, "begun drift;", "money is off");
    ok(strstr(last, "12.34") != NULL, "by how much");
    now.drift_cents = now.findings = now.audited_ms = 0;
    expect(t, "", "a Redis that knows of no audit does not end that");
    now.audited_ms = 1;
    expect(t, "ended drift;", "an audit does");
    struct permits_state keys[] = {{.id = 3, .active = true, .shown = STR("sk-…")},
                                   {.id = 4, .shown = STR("sk-…"), .error = STR("status 401")}};
    now.keys = keys;
    now.key_count = 2;
    expect(t, "", "keys that work, or that an admin has switched off");
    keys[1].refused = true;
    expect(t, "begun key:4;", "one that was refused");
    keys[1].refused = false;
    expect(t, "ended key:4;", "and is not any more");
    add_runs(t, &a);
    expect(t, "begun verdicts:7;begun verdicts:8;",
           "verdicts that cannot be recorded: once for each user, however many runs");
    ok(strstr(last, "user 8") && strstr(last, RUN_REASON_ACCOUNT), "which user, and why");
    say_state(t, &a, "run1", "RUNNING");
    expect(t, "", "one of two runs is resumed");
    say_state(t, &a, "run2", "CANCELLED");
    say_state(t, &a, "run3", "RUNNING");
    expect(t, "ended verdicts:7;ended verdicts:8;", "all are");
    close_side(t, &a, false);
    close_side(t, &b, false);
}

/* Queues of jobs: one that is late, one that fails. */
static void test_queues(struct task *t, void *arg)
{
    (void)arg;
    struct side a;
    reset(t);
    open_side(t, &a, 0xa);
    now.queue_count = 2;
    now.queues[0] = (struct jobs_look){.name = "plan", .waiting = 3, .oldest_ms = 500000};
    now.queues[1] = (struct jobs_look){.name = "download", .done = 100, .failed = 50};
    expect(t, "", "a queue, and failures of before");
    now.queues[0].oldest_ms = 660000;
    expect(t, "begun queue:plan;", "its oldest job has waited for long");
    ok(strstr(last, "3 jobs of queue plan wait, the oldest for 11 minutes"), "%s", last);
    now.queues[0].paused = true;
    expect(t, "ended queue:plan;", "an admin has paused it");
    now.queues[1].failed = 59;
    expect(t, "", "nine failures");
    now.queues[1].failed = 60;
    expect(t, "begun failing:download;", "ten, and nothing was done");
    now.queues[1].done = 200;
    expect(t, "", "it lasts until the minute is over");
    now.queue_count = 0;
    expect(t, "", "what is not known goes on");
    now.queue_count = 2;
    now.queues[1] = (struct jobs_look){.name = "download"};
    expect(t, "ended failing:download;", "a Redis that counts from 0 again begins a new minute");
    close_side(t, &a, false);
}

/* What an application finds. */
static void test_sources(struct task *t, void *arg)
{
    (void)arg;
    struct side a;
    reset(t);
    open_side(t, &a, 0xa);
    facts[0] = (struct alerts_fact){STR("pool:titles/7"), STR("it is low"), true};
    facts[1] = (struct alerts_fact){STR("pool:titles/8"), STR("it is low, too"), false};
    fact_count = 1;
    expect(t, "", "what may last does not begin by that");
    facts[0].lasts = false;
    expect(t, "begun pool:titles/7;", "then it begins");
    ok(strcmp(last, "millrace: it is low") == 0, "with its words: %s", last);
    facts[0].lasts = true;
    expect(t, "", "and lasts");
    facts_known = false;
    expect(t, "", "also while that is not known");
    facts_known = true;
    fact_count = 2;
    expect(t, "begun pool:titles/8;", "another one");
    for (size_t i = 0; i < ALERTS_FACTS_MAX; i++)
        facts[i] = (struct alerts_fact){STR("pool:titles/9"), STR("one of many"), false};
    fact_count = ALERTS_FACTS_MAX;
    expect(t, "begun pool:titles/9;", "a list that is full may lack some: none is over");
    fact_count = 0;
    expect(t, "ended pool:titles/7;ended pool:titles/8;ended pool:titles/9;", "all are over");
    close_side(t, &a, false);
}

/* Runs that stand: one message for each cause, however many runs. */
static void test_standing(struct task *t, void *arg)
{
    (void)arg;
    struct side a;
    struct standing_group groups[] = {
        {{.code = REASON_NO_KEY, .cause = STR("refused")}, 3, {7, STR("run7")}},
        {{.code = REASON_DRAINED, .nodes = 2}, 1, {8, STR("run8")}}};
    reset(t);
    open_side(t, &a, 0xa);
    now.standing = groups;
    now.standing_count = 1;
    expect(t, "begun standing:no_key;", "runs stand for want of a key");
    ok(strstr(last, "run7 of user 7") && strstr(last, "refused all of its keys"), "%s", last);
    groups[0].runs = 2;
    groups[0].why.cause = STR("off");
    expect(t, "", "one less, and another lack of the same: no news");
    now.standing_count = 2;
    expect(t, "begun standing:drained;", "another cause");
    now.standing_known = false;
    now.standing_count = 0;
    expect(t, "", "what is not known goes on");
    now.standing_known = true;
    expect(t, "ended standing:no_key;ended standing:drained;", "they move again");
    check(sql_call(t, a.node.sql, NULL,
                   "INSERT INTO query_log (query_id, uid, search_params, status, reason) VALUES"
                   " ('run5', 7, '{}', 'PAUSED', ?)",
                   sql_text(STR(RUN_REASON_REFUSED ": no max_tokens"))) == 0);
    expect(t, "begun standing:refused;", "a run whose requests are refused");
    ok(strstr(last, "run5 of user 7") && strstr(last, "no max_tokens"), "%s", last);
    say_state(t, &a, "run5", "RUNNING");
    expect(t, "ended standing:refused;", "it was resumed");
    close_side(t, &a, false);
}

/* A moment is no alert. */
static void test_brief(struct task *t, void *arg)
{
    (void)arg;
    struct side a;
    struct standing_group group = {{.code = REASON_SERVICE_DOWN}, 1, {7, STR("run7")}};
    reset(t);
    open_side(t, &a, 0xa);
    a.alerts->options.standing_ms = 10000;
    now.standing = &group;
    now.standing_count = 1;
    expect(t, "", "a run that stands for less than the setting");
    a.alerts->options.standing_ms = 100;
    expect(t, "begun standing:service_down;", "and for longer");
    now.standing_count = 0;
    expect(t, "ended standing:service_down;", "is over");
    close_side(t, &a, false);
}

static void well(void)
{
    struct standing_group group = {{.code = REASON_NO_KEY}, 1, {7, STR("run7")}};
    struct overview_fault fault = {.kind = STR("dns"), .count = 1};
    struct overview_alert alert = {.name = STR("drift")};
    struct permits_state key = {.refused = true};
    fine();
    ok(overview_well(&now), "all is well");
    now.standing = &group;
    now.standing_count = 1;
    ok(!overview_well(&now), "not with a run that stands");
    fine();
    now.faults = &fault;
    now.fault_count = 1;
    ok(!overview_well(&now), "nor with errors of the AI");
    fine();
    now.alerts = &alert;
    now.alert_count = 1;
    ok(!overview_well(&now), "nor with an alert");
    fine();
    now.keys = &key;
    now.key_count = 1;
    ok(!overview_well(&now), "nor with a key that was refused");
    fine();
    now.mysql.up = false;
    ok(!overview_well(&now), "nor without a store");
    fine();
    now.standing_known = false;
    ok(!overview_well(&now), "nor when that is not known");
}

/* A store that answers, and still cannot be relied on. */
static void test_settings(struct task *t, void *arg)
{
    (void)arg;
    struct side a;
    reset(t);
    open_side(t, &a, 0xa);
    now.read_only = true;
    expect(t, "begun read_only;", "MySQL takes no changes");
    ok(strstr(last, "MySQL is read-only") != NULL, "in words: %s", last);
    now.mysql.up = now.read_only = false;
    expect(t, "begun mysql;", "it is away: whether it would is not known");
    now.mysql.up = true;
    expect(t, "ended read_only;ended mysql;", "it does again");
    now.redis.settings = STR("Redis has \"appendonly no\"");
    now.mysql.settings = STR("MySQL has \"sync_binlog = 0\"");
    expect(t, "begun settings:redis;begun settings:mysql;", "unsafe settings");
    ok(strstr(last, "sync_binlog = 0") != NULL, "which: %s", last);
    now.redis.up = false;
    now.redis.settings = STR("");
    expect(t, "begun redis;", "it is away: its settings are not known");
    now.redis.up = true;
    now.mysql.settings = STR("");
    expect(t, "ended settings:redis;ended settings:mysql;ended redis;", "they are safe");
    close_side(t, &a, false);
}

static void test_nodes(struct task *t, void *arg)
{
    (void)arg;
    struct side a;
    struct overview_lost lost = {STR("000a"), STR("host-1"), STR("host:77")};
    struct overview_node node = {.id = STR("host-1"), .name = STR("host:78")};
    reset(t);
    open_side(t, &a, 0xa);
    check(redis_call(t, a.node.redis, key_nodes_lost, NULL, STR("HSET"), key_nodes_lost,
                     STR("000a"), STR("{}")) == 0);
    now.lost = &lost;
    now.lost_count = 1;
    certain = false;
    expect(t, "", "Redis was away: silence means nothing");
    certain = true;
    expect(t, "begun node:host-1;", "a node is lost");
    const struct redis_reply *r;
    check(redis_call(t, a.node.redis, key_nodes_lost, &r, STR("HLEN"), key_nodes_lost) == 0);
    is_int(r->integer, 0, "and needs not be listed any more");
    now.lost_count = 0;
    expect(t, "", "it is missed");
    certain = false;
    expect(t, "", "whatever is not known");
    certain = true;
    now.nodes = &node;
    now.node_count = 1;
    expect(t, "ended node:host-1;", "until another has its place");
    now.lost_count = 1;
    expect(t, "begun node:host-1;", "one that died and was replaced before anybody saw it");
    now.lost_count = 0;
    expect(t, "ended node:host-1;", "is told of, too");
    close_side(t, &a, false);
}

static void test_watchers(struct task *t, void *arg)
{
    (void)arg;
    struct side a, b;
    reset(t);
    open_side(t, &a, 0xa);
    now.drift_cents = now.findings = 1;
    expect(t, "begun drift;", "one watches");
    open_side(t, &b, 0xb);
    expect(t, "", "another one does not");
    ok(a.alerts->watching && !b.alerts->watching, "by its lock");
    close_side(t, &a, false);
    for (int ms = 0; ms < PATIENCE_MS && !b.alerts->watching; ms += 5)
        check(task_sleep(t, 5) == 0);
    ok(b.alerts->watching, "when it ends, the other one watches");
    expect(t, "", "and does not repeat what was told");
    struct overview_alert *list;
    size_t count;
    check(alerts_list(t, &b.node, task_arena(t), &list, &count) == 0);
    ok(count == 1 && str_eq(list[0].name, STR("drift")), "anybody can ask what is so");
    close_side(t, &b, true);
    open_side(t, &a, 0xc);
    expect(t, "", "a node that is killed keeps the lock for a while");
    ok(!a.alerts->watching, "so none watches");
    check(redis_call(t, a.node.redis, key_alerts_lock, NULL, STR("DEL"), key_alerts_lock) == 0);
    now.drift_cents = now.findings = 0;
    expect(t, "ended drift;", "then the next one tells the end");
    is_int(other_ids, 0, "which has the id of the beginning, though another node has told that");
    close_side(t, &a, false);
}

static void test_deaf(struct task *t, void *arg)
{
    (void)arg;
    struct side a;
    reset(t);
    hook_status = 500;
    open_side(t, &a, 0xa);
    now.drift_cents = now.findings = 1;
    expect(t, "", "the webhook refuses");
    int before = tries;
    ok(before == 1, "it is not asked all the time: %d", before);
    hook_status = 0;
    check(task_sleep(t, 1100) == 0);
    ok(tries == 2, "but again after a second");
    hook_status = 200;
    expect(t, "begun drift;", "until it takes the message");
    now.drift_cents = now.findings = 0;
    expect(t, "ended drift;", "once");
    hook_status = 500;
    now.drift_cents = now.findings = 1;
    expect(t, "", "it refuses again");
    now.drift_cents = now.findings = 0;
    check(task_sleep(t, QUIET_MS) == 0);
    hook_status = 200;
    expect(t, "", "the end of what nobody heard of is not told");
    for (int ms = 0; ms < PATIENCE_MS && a.alerts->count > 0; ms += 5)
        check(task_sleep(t, 5) == 0);
    ok(a.alerts->count == 0, "and it is forgotten");
    hook_slow = true;
    now.drift_cents = now.findings = 1;
    expect(t, "begun drift;", "it takes one, and is too slow to say so");
    ok(a.alerts->list[0].unsure && !a.alerts->list[0].told, "whether it has it is not known");
    hook_slow = false;
    now.drift_cents = now.findings = 0;
    expect(t, "ended drift;", "so the end is told");
    close_side(t, &a, false);
}

/* Each store has what the other one cannot be told. */
static void test_away(struct task *t, void *arg)
{
    (void)arg;
    struct side a, b;
    const struct redis_reply *r;
    struct sql_rows rows;
    reset(t);
    open_side(t, &a, 0xa);
    expect(t, "", "all is well");
    mariadb_kill(&server);
    now.mysql.up = false;
    expect(t, "begun mysql;", "MySQL is away: the node that watched goes on");
    check(redis_call(t, a.node.redis, key_alerts, &r, STR("GET"), key_alerts) == 0);
    ok(str_find(r->str, STR("\"mysql\"")) > 0, "Redis knows it");
    ok(a.alerts->turn.locked, "and has the lock");
    store_redis_kill(&store);
    now.redis.up = false;
    expect(t, "begun redis;", "both are away: it goes on by itself");
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    mariadb_restart(&server);
    for (int ms = 0; ms < PATIENCE_MS && a.alerts->in_mysql < a.alerts->changes; ms += 5)
        check(task_sleep(t, 5) == 0);
    check(sql_call(t, a.node.sql, &rows,
                   "SELECT value FROM setting WHERE name = 'alerts.episodes'") == 0 &&
          rows.count == 1);
    ok(str_find(rows.cells[0].s, STR("\"mysql\"")) > 0 &&
           str_find(rows.cells[0].s, STR("\"redis\"")) > 0,
       "MySQL is told when it is back");
    close_side(t, &a, false);
    open_side(t, &b, 0xb);
    expect(t, "", "the next one repeats nothing");
    now.redis.up = now.mysql.up = true;
    expect(t, "ended mysql;ended redis;", "and tells the ends");
    close_side(t, &b, false);
}

/* A message was sent, and that could not be noted before the note of another node was read. */
static void test_receipt(struct task *t, void *arg)
{
    (void)arg;
    struct side a;
    reset(t);
    open_side(t, &a, 0xa);
    now.drift_cents = now.findings = 1;
    expect(t, "begun drift;", "something is told");
    group_cancel(&a.tasks);
    check(group_join(t, &a.tasks) == 0);
    struct alerts *x = a.alerts;
    const int64_t since_ms = x->list[0].since_ms;
    x->list[0].told = false;
    x->changes++;
    check(alerts_save(t, x) == 0);
    x->list[0].told = true;
    x->outdated = true;
    check(alerts_load(t, x) == 0 && x->count == 1);
    ok(x->list[0].told && x->list[0].since_ms == since_ms, "a note without the receipt is read");
    x->list[0].since_ms--;
    x->outdated = true;
    check(alerts_load(t, x) == 0 && x->count == 1);
    ok(!x->list[0].told, "a receipt of an earlier episode is none of this one");
    close_side(t, &a, true);
}

/* MySQL hangs while node x tells that; what it has sent is in Redis at once. Then x has lost the
 * lock, and MySQL has a newer note, of a node that knew nothing of the message. */
static int hang_and_replace(struct task *t, struct sql *c, void *arg)
{
    struct side *x = arg;
    const struct redis_reply *r;
    const char *none = "{\"changes\":1000,\"episodes\":[]}";
    check(sql_on(t, c, NULL, "SELECT 1 FROM setting WHERE name = 'alerts.episodes' FOR UPDATE") ==
          0);
    now.mysql.up = false;
    expect(t, "begun mysql;", "MySQL hangs");
    check(redis_call(t, x->node.redis, key_alerts, &r, STR("GET"), key_alerts) == 0);
    ok(str_find(r->str, STR("\"told\":true")) > 0, "Redis has the receipt before MySQL answers");
    check(redis_call(t, x->node.redis, key_alerts_lock, NULL, STR("SET"), key_alerts_lock,
                     STR("of another node")) == 0);
    x->alerts->turn.kept_ms = 0; /* it asks for its lock at once */
    return sql_on(t, c, NULL,
                  "UPDATE setting SET value = ?, version = 1000 WHERE name = 'alerts.episodes'",
                  sql_text(str_of(none)));
}

static void test_overtaken(struct task *t, void *arg)
{
    (void)arg;
    struct side a;
    reset(t);
    open_side(t, &a, 0xa);
    now.drift_cents = now.findings = 1;
    expect(t, "begun drift;", "something is noted");
    now.drift_cents = now.findings = 0;
    expect(t, "ended drift;", "and is over");
    id[0] = '\0';
    check(sql_tx(t, a.node.sql, hang_and_replace, &a) == 0);
    now.mysql.up = true;
    expect(t, "ended mysql;", "the node that told the beginning tells the end");
    is_int(other_ids, 0, "with its id");
    for (int ms = 0; ms < PATIENCE_MS && a.alerts->watching; ms += 5)
        check(task_sleep(t, 5) == 0);
    ok(!a.alerts->watching, "then it leaves the watch to the one with the lock");
    close_side(t, &a, true);
}

static void await_alone(struct task *t, struct side *s)
{
    s->alerts->turn.kept_ms = 0; /* it asks for its lock at once, and not after some seconds */
    /* It is alone first, then reads what was noted, then watches. */
    for (int ms = 0; ms < PATIENCE_MS && !(s->alerts->alone && s->alerts->watching); ms += 5)
        check(task_sleep(t, 5) == 0);
}

/* While this holds the note, both nodes find out that Redis is down, and each wants to note it. */
static int hold_note(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    struct sql_rows r;
    check(sql_on(t, c, &r, "SELECT 1 FROM setting WHERE name = 'alerts.episodes' FOR UPDATE") == 0);
    check(r.count == 1);
    now.redis.up = false;
    return task_sleep(t, 400);
}

/* Without Redis there is no lock: all nodes watch, and agree by MySQL what they say. */
static void test_no_lock(struct task *t, void *arg)
{
    (void)arg;
    struct side a, b;
    struct sql_rows rows;
    reset(t);
    open_side(t, &a, 0xa);
    now.drift_cents = now.findings = 1;
    expect(t, "begun drift;", "something is noted");
    id[0] = '\0';
    open_side(t, &b, 0xb);
    store_redis_kill(&store);
    await_alone(t, &a);
    await_alone(t, &b);
    ok(a.alerts->watching && b.alerts->watching, "Redis is away: both watch");
    check(sql_tx(t, a.node.sql, hold_note, NULL) == 0);
    for (int ms = 0; ms < PATIENCE_MS && !*told; ms += 5)
        check(task_sleep(t, 5) == 0);
    check(task_sleep(t, QUIET_MS) == 0);
    ok(strncmp(told, "begun redis;", 12) == 0, "its message is sent, by one of them at least");
    is_int(other_ids, 0, "always with the same id");
    check(sql_call(t, a.node.sql, &rows,
                   "SELECT value FROM setting WHERE name = 'alerts.episodes'") == 0 &&
          rows.count == 1);
    ok(str_find(rows.cells[0].s, STR("\"redis\"")) > 0, "MySQL knows it");
    told[0] = '\0';
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    now.redis.up = true;
    for (int ms = 0; ms < PATIENCE_MS && (!*told || a.alerts->watching == b.alerts->watching);
         ms += 5)
        check(task_sleep(t, 5) == 0);
    check(task_sleep(t, QUIET_MS) == 0);
    ok(strncmp(told, "ended redis;", 12) == 0 && !strstr(told, "begun"), "so is its end");
    is_int(other_ids, 0, "with that id");
    ok(a.alerts->watching != b.alerts->watching, "and one of them watches");
    told[0] = '\0';
    now.drift_cents = now.findings = 0;
    expect(t, "ended drift;", "and tells the rest, once");
    close_side(t, &a, false);
    close_side(t, &b, false);
}

static void make_schema(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    struct schema_report report;
    check(schema_migrate(t, sql, &report) == 0);
    sql_pool_free(sql);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    mariadb_start(&server, NULL);
    store_redis_start(&store, NULL);
    metrics = metrics_open(-1, 1, 0);
    tap_task(make_schema, NULL, true);
    tap_task(test_kinds, NULL, true);
    tap_task(test_receipt, NULL, true);
    tap_task(test_overtaken, NULL, true);
    tap_task(test_standing, NULL, true);
    tap_task(test_queues, NULL, true);
    tap_task(test_sources, NULL, true);
    tap_task(test_brief, NULL, true);
    well();
    tap_task(test_settings, NULL, true);
    tap_task(test_nodes, NULL, true);
    tap_task(test_watchers, NULL, true);
    tap_task(test_deaf, NULL, true);
    tap_task(test_away, NULL, true);
    tap_task(test_no_lock, NULL, true);
    metrics_close(metrics);
    store_redis_stop(&store);
    mariadb_release(&server);
    return tap_done();
}
