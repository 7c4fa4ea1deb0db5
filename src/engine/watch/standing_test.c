/* The facts that hold runs up, collected from a real Redis. Keys, users and switches are made up:
 * what is defined below is linked instead of the real ones. */
#include "engine/watch/standing.h"

#include "engine/ai/permits.h"
#include "engine/people/switches.h"
#include "engine/people/user.h"
#include "engine/store/keys.h"
#include "tests/store.h"
#include "tests/tap.h"

#define UID 7

static struct store_redis store;

/* --- what is made up --- */

static struct permits_state keys[2];
static size_t key_count;
static int64_t permission;
static bool banned;

bool permits_looked(const struct permits *k)
{
    (void)k;
    return true;
}

bool permits_keyless(const struct permits *k)
{
    (void)k;
    return false;
}

int permits_states(struct task *t, struct permits *k, struct permits_state **out, size_t *count)
{
    (void)t, (void)k;
    *out = keys;
    *count = key_count;
    return 0;
}

int user_get(struct task *t, struct cache *c, int64_t uid, struct user *out)
{
    (void)t, (void)c;
    *out = (struct user){.uid = uid, .permission = permission, .banned = banned};
    return 0;
}

/* --- Redis as nodes leave it --- */

static struct node node;
static struct standing *standing;

#define CALL(t, key, ...) check(redis_call(t, node.redis, key, NULL, __VA_ARGS__) == 0)

static void say(struct task *t, const char *incarnation, const char *more)
{
    struct str note = str_printf(task_arena(t),
                                 "{\"takes\":true,\"workers\":2,\"latency_us\":500000,"
                                 "\"tokens\":100%s}",
                                 more);
    CALL(t, key_nodes, STR("ZADD"), key_nodes, STR("1"), str_of(incarnation));
    CALL(t, key_nodes_info, STR("HSET"), key_nodes_info, str_of(incarnation), note);
}

static void claim(struct task *t, const char *qid, const char *incarnation, const char *workers)
{
    struct str key = key_workers(task_arena(t), UID);
    CALL(t, key, STR("HSET"), key, str_printf(task_arena(t), "%s:%s", qid, incarnation),
         str_printf(task_arena(t), "%s@1", workers));
}

#define A "000000000000000a"
#define B "000000000000000b"
#define OPEN                                                                                       \
    ",\"service\":{\"open\":true,\"since_ms\":5000,\"cause\":\"dns\",\"words\":\"no host\"}"

static void fine(struct task *t)
{
    CALL(t, STR_NULL, STR("FLUSHALL"));
    CALL(t, key_dispatched, STR("SET"), key_dispatched, redis_run_id(node.redis));
    permission = 4;
    banned = false;
    key_count = 2;
    for (int i = 0; i < 2; i++)
        keys[i] = (struct permits_state){.id = i + 1,
                                         .active = true,
                                         .requests_limit = 600,
                                         .tokens_limit = 1000000,
                                         .caps = {-1, -1, -1}};
    say(t, A, "");
    say(t, B, "");
    claim(t, "run", A, "2");
}

/* So that what was read of the whole is read again. */
static void forget(void)
{
    standing_free(standing);
    standing = standing_new(&node);
}

static struct run_view look(struct task *t, enum run_state state)
{
    struct run_id id = {UID, STR("run")};
    struct run_view v = {.state = state, .papers = 1000, .finished = 400, .reason = STR("")};
    forget();
    standing_tell(t, standing, &id, &v, 1);
    return v;
}

static enum reason_code code(struct task *t, enum run_state state)
{
    return look(t, state).why.code;
}

/* --- tests --- */

static void test_service(struct task *t)
{
    fine(t);
    is_int(code(t, RUN_RUNNING), REASON_NONE, "a run that moves");
    say(t, A, OPEN);
    struct run_view v = look(t, RUN_RUNNING);
    ok(v.why.code == REASON_SERVICE_DOWN && v.why.since_ms == 5000 &&
           str_eq(v.why.cause, STR("dns")) && str_eq(v.why.words, STR("no host")),
       "the service is down for the node that has its workers");
    ok(!v.seconds_known, "no time left is told");
    is_int(code(t, RUN_QUEUED), REASON_SERVICE_DOWN, "and for a run that waits for it");
    claim(t, "run", B, "1");
    is_int(code(t, RUN_RUNNING), REASON_NONE, "another node of its workers reaches it");
    say(t, B, OPEN);
    is_int(code(t, RUN_RUNNING), REASON_SERVICE_DOWN, "none does");
    say(t, A, ",\"service\":{\"open\":false}");
    say(t, B, ",\"service\":null");
    is_int(code(t, RUN_RUNNING), REASON_NONE, "it is back");
    say(t, A, OPEN);
    CALL(t, key_nodes, STR("ZREM"), key_nodes, STR(A));
    is_int(code(t, RUN_RUNNING), REASON_NONE, "what a dead node said does not count");
}

static void test_keys(struct task *t)
{
    fine(t);
    keys[0].active = false;
    is_int(code(t, RUN_RUNNING), REASON_NONE, "one key is enough");
    keys[1].rests_ms = 3000;
    struct run_view v = look(t, RUN_RUNNING);
    int64_t rests_ms = v.why.until_ms - loop_wall_ms(task_loop(t));
    ok(v.why.code == REASON_KEYS_RESTING && rests_ms > 2000 && rests_ms <= 3000, "it rests");
    keys[1].rests_ms = 0;
    keys[1].caps[1] = keys[1].calls[1] = 10;
    v = look(t, RUN_RUNNING);
    ok(v.why.code == REASON_NO_KEY && str_eq(v.why.cause, STR("mixed")) &&
           v.why.until_ms % 86400000 == 0 && v.why.until_ms > loop_wall_ms(task_loop(t)),
       "it has used up its day");
    keys[1].caps[1] = -1;
    keys[1].caps[2] = keys[1].calls[2] = 10;
    int64_t month_ms = look(t, RUN_RUNNING).why.until_ms;
    ok(month_ms % 86400000 == 0 && month_ms - loop_wall_ms(task_loop(t)) <= 31LL * 86400000,
       "or its month");
    keys[1].active = false;
    keys[0].refused = keys[1].refused = true;
    is_str(look(t, RUN_RUNNING).why.cause, STR("refused"), "both are refused");
    key_count = 0;
    is_str(look(t, RUN_RUNNING).why.cause, STR("none"), "there is none");
    fine(t);
    keys[0].requests_used = keys[1].requests_used = 590;
    v = look(t, RUN_RUNNING);
    ok(v.why.code == REASON_RATE_LIMIT && v.why.limit == 1200, "their limits are used up");
    ok(v.seconds_known && v.seconds_min >= 30, "and it moves: %lld to %lld s",
       (long long)v.seconds_min, (long long)v.seconds_max);
}

/* However many tasks ask, the whole is read twice a second. */
static void test_fresh(struct task *t)
{
    struct run_id id = {UID, STR("run")};
    fine(t);
    struct run_view v = look(t, RUN_RUNNING);
    key_count = 0;
    standing_tell(t, standing, &id, &v, 1);
    ok(v.why.code == REASON_NONE && v.seconds_known, "what was read a moment ago is fresh");
    check(task_sleep(t, STANDING_FRESH_MS) == 0);
    standing_tell(t, standing, &id, &v, 1);
    is_int(v.why.code, REASON_NO_KEY, "and is not after half a second");
    ok(!v.seconds_known, "the time left that was told before is not known any more");
}

static void test_queue(struct task *t)
{
    struct str ledger = key_ledger(task_arena(t), UID);
    fine(t);
    CALL(t, key_workers(task_arena(t), UID), STR("DEL"), key_workers(task_arena(t), UID));
    CALL(t, key_queue, STR("ZADD"), key_queue, STR("1"), STR("8:other"), STR("2"), STR("7:run"));
    struct run_view v = look(t, RUN_QUEUED);
    ok(v.why.code == REASON_QUEUED && v.why.position == 2 && v.why.of == 2, "its place");
    claim(t, "more", A, "4");
    ok(look(t, RUN_QUEUED).why.others == 4, "the user's other runs");
    banned = true;
    is_int(code(t, RUN_QUEUED), REASON_ACCOUNT_STOPPED, "the user is banned");
    banned = false;
    permission = 0;
    is_int(code(t, RUN_QUEUED), REASON_NO_PERMISSION, "the user may have no workers");
    permission = 4;
    CALL(t, key_dispatched, STR("SET"), key_dispatched, STR("an older one"));
    is_str(look(t, RUN_QUEUED).why.cause, STR("queue"), "the queue is being rebuilt");
    fine(t);
    CALL(t, ledger, STR("HSET"), ledger, STR("run"), STR("an older one"));
    is_str(look(t, RUN_RUNNING).why.cause, STR("account"), "the account is being repaired");
    CALL(t, ledger, STR("HSET"), ledger, STR("run"), redis_run_id(node.redis));
    is_int(code(t, RUN_RUNNING), REASON_NONE, "it is");
    is_int(code(t, RUN_DONE), REASON_NONE, "a run that has ended");
}

static void test_expected(struct task *t)
{
    struct run_view v;
    fine(t);
    forget();
    standing_expect(t, standing, UID, 1000, &v);
    ok(v.why.code == REASON_NONE && v.seconds_known && v.seconds_min >= 100 && v.seconds_max < 1000,
       "1,000 papers, 4 workers, half a second each: %lld to %lld s", (long long)v.seconds_min,
       (long long)v.seconds_max);
    permission = 0;
    standing_expect(t, standing, UID, 1000, &v);
    ok(v.why.code == REASON_NO_PERMISSION && !v.seconds_known, "what would hold it");
    standing_expect(t, NULL, UID, 1000, &v);
    ok(v.why.code == REASON_NONE && !v.seconds_known, "nothing is known");
}

static void test_groups(struct task *t)
{
    struct standing_group *groups;
    size_t count;
    struct str status = key_query_status(task_arena(t), UID, STR("run"));
    struct str other = key_query_status(task_arena(t), UID, STR("other"));
    fine(t);
    CALL(t, status, STR("HSET"), status, STR("state"), STR("RUNNING"));
    CALL(t, other, STR("HSET"), other, STR("state"), STR("QUEUED"));
    CALL(t, key_running, STR("HSET"), key_running, STR("7:run"), STR("2"));
    CALL(t, key_queue, STR("ZADD"), key_queue, STR("1"), STR("7:other"), STR("2"), STR("7:gone"));
    forget();
    check(standing_groups(t, standing, task_arena(t), &groups, &count) == 0);
    is_int((int64_t)count, 0, "a queue is nothing to mend");
    key_count = 0;
    forget();
    check(standing_groups(t, standing, task_arena(t), &groups, &count) == 0);
    ok(count == 1 && groups[0].why.code == REASON_NO_KEY && groups[0].runs == 2 &&
           groups[0].example.uid == UID && str_eq(groups[0].example.qid, STR("other")),
       "two runs stand for one cause; a run that Redis does not know is none");
}

static void test_away(struct task *t, struct group *links)
{
    redis_close(node.redis);
    store_redis_stop(&store);
    check(group_join(t, links) == 0);
    node.redis = redis_open(links, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    int64_t old = task_deadline(t, 2000);
    is_str(look(t, RUN_RUNNING).why.cause, STR("redis"), "Redis is away");
    struct run_view v = {.state = RUN_PAUSED, .reason = STR(RUN_REASON_FUNDS)};
    standing_tell(t, standing, &(struct run_id){UID, STR("run")}, &v, 1);
    is_int(v.why.code, REASON_FUNDS, "a run that paused itself needs no Redis");
    task_deadline_restore(t, old);
}

static void test(struct task *t, void *arg)
{
    (void)arg;
    struct group links;
    group_init(&links, task_loop(t));
    node.redis = redis_open(&links, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    standing = standing_new(&node);
    CALL(t, STR_NULL, STR("PING"));
    test_service(t);
    test_keys(t);
    test_fresh(t);
    test_queue(t);
    test_expected(t);
    test_groups(t);
    test_away(t, &links);
    standing_free(standing);
    redis_close(node.redis);
    check(group_join(t, &links) == 0);
}

int main(void)
{
    store_redis_start(&store, NULL);
    tap_task(test, NULL, true);
    return tap_done();
}
