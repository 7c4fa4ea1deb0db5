/* Once for each episode, whichever node watches, and whichever store can be told. */
#include "engine/watch/alerts_fixture.h"

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

int main(void)
{
    alerts_start();
    tap_task(test_watchers, NULL, true);
    tap_task(test_away, NULL, true);
    tap_task(test_receipt, NULL, true);
    tap_task(test_overtaken, NULL, true);
    tap_task(test_no_lock, NULL, true);
    return alerts_stop();
}
