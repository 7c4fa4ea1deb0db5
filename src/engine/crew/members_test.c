/* Heartbeats and the member list, shares of nodes, and that no user has more workers than
 * permitted; on a real Redis. */
#include "engine/crew/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "tests/store.h"
#include "tests/tap.h"

static struct store_redis store;

struct node {
    struct group links;
    struct redis *redis;
    struct members members;
};

static void open_node(struct task *t, struct node *n, uint64_t incarnation)
{
    *n = (struct node){.members = {.incarnation = incarnation}};
    group_init(&n->links, task_loop(t));
    n->redis =
        redis_open(&n->links, &(struct redis_options){.url = store.url_unix, .name = "test"});
    check(n->redis && redis_call(t, n->redis, STR_NULL, NULL, STR("PING")) == 0);
    n->members.redis = n->redis;
}

static void close_node(struct task *t, struct node *n)
{
    redis_close(n->redis);
    check(group_join(t, &n->links) == 0);
}

static int beat(struct task *t, struct node *n, bool takes, int64_t latency_us)
{
    struct member_note note = {.self = {.takes = takes, .workers = 7, .latency_us = latency_us},
                               .name = STR("here:1"),
                               .runs = STR("{\"1:a\":7}")};
    return members_beat(t, &n->members, &note);
}

static void test_life(struct task *t, void *arg)
{
    (void)arg;
    struct node a, b;
    open_node(t, &a, 0xa);
    open_node(t, &b, 0xb000000000000001);
    check(redis_call(t, a.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    check(beat(t, &b, false, 250) == 0 && beat(t, &a, true, 0) == 0);
    is_int((int64_t)a.members.count, 2, "two live");
    ok(members_live(&a.members, 0xa) && members_live(&a.members, 0xb000000000000001) &&
           !members_live(&a.members, 0xb),
       "each by its incarnation");
    const struct member *m = &a.members.list[1];
    ok(!m->takes && m->latency_us == 250 && m->workers == 7, "with what it reports about itself");
    ok(members_any_takes(&a.members), "one of them takes work");
    check(beat(t, &a, false, 0) == 0);
    ok(!members_any_takes(&a.members), "or none");
    check(beat(t, &a, true, 0) == 0);
    int64_t now_ms = loop_now_ms(task_loop(t));
    ok(!members_certain(&a.members, now_ms), "a missing heartbeat means nothing at first");
    ok(members_certain(&a.members, now_ms + MEMBER_SILENT_MS), "but later the node is dead");
    /* As if the other had sent no heartbeat. */
    check(redis_call(t, a.redis, key_nodes, NULL, STR("ZADD"), key_nodes, STR("1"),
                     STR("b000000000000001")) == 0);
    check(beat(t, &a, true, 0) == 0);
    ok(a.members.count == 1 && !members_live(&a.members, 0xb000000000000001),
       "a node without heartbeats is dead");
    const struct redis_reply *r;
    check(redis_call(t, a.redis, key_nodes_info, &r, STR("HLEN"), key_nodes_info) == 0);
    is_int(r->integer, 1, "and is not shown any more");
    check(beat(t, &b, true, 0) == 0 && b.members.count == 2);
    ok(members_beat(t, &a.members, NULL) == 0 && a.members.count == 1,
       "a node that leaves is removed");
    close_node(t, &b);
    close_node(t, &a);
}

/* A machine whose clock is off, by more or less than what counts. */
static void test_clock(struct task *t, void *arg)
{
    (void)arg;
    struct node a;
    struct loop *l = task_loop(t);
    open_node(t, &a, 0xa);
    check(beat(t, &a, true, 0) == 0);
    is_int(loop_wall_ahead(l), 0, "clocks that agree are left alone");
    int64_t true_ms = loop_wall_ms(l), off_ms[] = {-60000, 60000, -500};
    for (size_t i = 0; i < sizeof off_ms / sizeof *off_ms; i++) {
        loop_set_wall_ahead(l, off_ms[i]); /* as if this machine's were off by as much */
        check(beat(t, &a, true, 0) == 0);
        int64_t since_ms = loop_wall_ms(l) - true_ms;
        ok(since_ms >= 0 && since_ms < 5000 && llabs(loop_wall_ahead(l)) < 300,
           "%lld ms: Redis' clock is used", (long long)off_ms[i]);
    }
    loop_set_wall_ahead(l, 20);
    check(beat(t, &a, true, 0) == 0);
    is_int(loop_wall_ahead(l), 20, "what a reply takes is no difference");
    loop_set_wall_ahead(l, 0);
    close_node(t, &a);
}

static void test_share(void)
{
    struct members m[3];
    for (int n = 0; n < 3; n++) {
        m[n] = (struct members){.incarnation = (uint64_t)n + 1, .count = 4};
        for (int i = 0; i < 4; i++)
            m[n].list[i] = (struct member){.incarnation = (uint64_t)i + 1, .takes = i < 3};
    }
    bool all = true, even = true;
    int64_t first[3] = {0};
    for (int64_t workers = 0; workers < 50; workers++)
        for (int run = 0; run < 20; run++) {
            char name[8];
            struct str s = str_from(name, (size_t)snprintf(name, sizeof name, "1:%d", run));
            int64_t sum = 0;
            for (int n = 0; n < 3; n++) {
                int64_t share = members_share(&m[n], s, workers);
                even = even && share >= workers / 3 && share <= workers / 3 + 1;
                sum += share;
                first[n] += workers == 1 && share == 1;
            }
            all = all && sum == workers;
        }
    ok(all, "the shares of all nodes are all workers");
    ok(even, "and are even");
    ok(first[0] && first[1] && first[2], "single workers are not all on one node");
    m[0].list[0].takes = false;
    is_int(members_share(&m[0], STR("1:a"), 10), 0, "a node that drains has no share");
}

/* One run of a user on one node. */
static int64_t claim_part(struct task *t, struct node *n, const char *part, int64_t permission,
                          const char *qid, int64_t has, int64_t wants)
{
    struct arena *a = task_arena(t);
    const struct str words[] = {STR("0000000000000001"), STR("0000000000000002"), str_of(qid),
                                str_int(a, has), str_int(a, wants)};
    const struct redis_reply *r;
    check(SCRIPT(t, n->redis, workers_claim, &r, .workers = key_workers(a, 1),
                 .permission = str_int(a, permission),
                 .node = str_printf(a, "%016" PRIx64, n->members.incarnation), .part = str_of(part),
                 .node_count = STR("2"), .nodes_and_claims = {words, 5}) == 0);
    return r->items[0]->integer;
}

static int64_t claim(struct task *t, struct node *n, int64_t permission, const char *qid,
                     int64_t has, int64_t wants)
{
    return claim_part(t, n, "runs", permission, qid, has, wants);
}

static void test_claims(struct task *t, void *arg)
{
    (void)arg;
    struct node a, b, dead;
    open_node(t, &a, 1);
    open_node(t, &b, 2);
    open_node(t, &dead, 3);
    check(redis_call(t, a.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    is_int(claim(t, &a, 10, "x", 0, 7), 7, "seven of ten");
    is_int(claim(t, &b, 10, "x", 0, 7), 3, "the rest");
    is_int(claim(t, &b, 10, "x", 3, 7), 3, "no more than that");
    is_int(claim(t, &a, 10, "x", 7, 4), 7, "a lower share keeps workers that run");
    is_int(claim(t, &a, 10, "x", 4, 4), 4, "until they have ended");
    is_int(claim(t, &b, 10, "x", 3, 7), 6, "then another node may claim them");
    is_int(claim(t, &a, 5, "x", 4, 6), 4, "a permission that was lowered gives nothing new");
    is_int(claim(t, &a, 10, "x", 0, 0), 0, "and all go");
    is_int(claim(t, &b, 10, "x", 0, 0), 0, "on both nodes");
    is_int(claim(t, &dead, 10, "x", 9, 9), 9, "a node that is not among the living");
    is_int(claim(t, &a, 10, "x", 0, 10), 1, "counts for a while: it may have joined a moment ago");
    check(task_sleep(t, 2100) == 0);
    is_int(claim(t, &a, 10, "x", 0, 10), 10, "but not for ever");
    struct str key = key_workers(task_arena(t), 1);
    const struct str odd[] = {STR("HSET"),
                              key,
                              STR("y:0000000000000003"),
                              STR("9@99999999999999"),
                              STR("z:0000000000000003"),
                              STR("9")};
    check(redis_argv(t, a.redis, key, 6, odd, NULL) == 0);
    is_int(claim(t, &a, 20, "x", 10, 20), 20, "nor if its time is to come, or missing");
    close_node(t, &dead);
    close_node(t, &b);
    close_node(t, &a);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    tap_task(test_life, NULL, true);
    tap_task(test_clock, NULL, true);
    test_share();
    tap_task(test_claims, NULL, true);
    store_redis_stop(&store);
    return tap_done();
}
