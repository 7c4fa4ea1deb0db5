/* Once for each episode, whatever is wrong. */
#include "engine/watch/alerts_fixture.h"

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
    struct permits_state keys[] = {
        {.id = 3, .service = AI_CHAT, .active = true, .shown = STR("sk-…")},
        {.id = 4, .service = AI_EMBEDDING, .shown = STR("sk-…"), .error = STR("status 401")}};
    now.keys = keys;
    now.key_count = 2;
    expect(t, "", "keys that work, or that an admin has switched off");
    keys[1].refused = true;
    expect(t, "begun key:4;", "one that was refused");
    ok(strstr(last, "the embedding service refused key 4") != NULL, "by which service");
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
    now.queues[0] = (struct jobs_look){.name = "plan", .delayed = 1, .oldest_ms = 660000};
    expect(t, "begun queue:plan;", "one is tried again later");
    ok(strstr(last, "1 jobs of queue plan wait"), "%s", last);
    now.queues[0] = (struct jobs_look){.name = "plan", .working = 1};
    expect(t, "", "while it is tried that lasts");
    now.queues[0] = (struct jobs_look){.name = "plan", .delayed = 1};
    expect(t, "", "also when it was taken between the count and the look at its age");
    now.queues[0] = (struct jobs_look){.name = "plan", .held = 1};
    expect(t, "", "or is held, without the rate or the permission");
    now.queues[0].done = 1;
    expect(t, "ended queue:plan;", "until it is done, or another one");
    now.queues[0].oldest_ms = 660000;
    now.queues[0].delayed = 1;
    expect(t, "begun queue:plan;", "the next one");
    now.queues[0] = (struct jobs_look){.name = "plan", .done = 1};
    expect(t, "ended queue:plan;", "a queue that is empty, withdrawn or dropped");
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

int main(void)
{
    alerts_start();
    tap_task(test_kinds, NULL, true);
    tap_task(test_standing, NULL, true);
    tap_task(test_queues, NULL, true);
    tap_task(test_sources, NULL, true);
    tap_task(test_brief, NULL, true);
    well();
    tap_task(test_settings, NULL, true);
    tap_task(test_nodes, NULL, true);
    tap_task(test_deaf, NULL, true);
    return alerts_stop();
}
